/** Asks the person before something is done. Shows exactly what, where and why, and the possible answers. */

import { describeQuestion, describeWhy } from '@telos/protocol/describe';
import type { FormField } from '@telos/protocol/form';
import { type ApprovalDecision, type ApprovalRequest, leaveBox, skipped } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AgentCardView } from './agentCardView.tsx';
import { ChoiceCard } from './choiceCard.tsx';
import { t } from './host.ts';
import { Icon } from './icons.tsx';
import { isTextbox, Key, keyNames, pressable, settleAgain, useMenu, useQuestion } from './questions.tsx';
import type { ApprovalItem } from './runItems.ts';
import { answerApproval, elsewhere, focusComposer } from './store.ts';
import { DiffText, UntrustedText } from './untrustedText.tsx';
import { visible } from './visibleText.ts';
import { allowLabel, denial, deniedFor, describeAnswer, longestWhy } from './wording.ts';

export function ApprovalCard({ item }: { item: ApprovalItem }) {
  const { request, answer } = item;
  const label = t('Approval: {0}', visible(describeQuestion(request, t)));
  const isAskedThere = !answer && elsewhere.value !== undefined;
  if (!answer && !isAskedThere && request.choices) return <ChoiceCard request={request} label={label} />;
  if (!answer && !isAskedThere) return <OpenApproval item={item} label={label} />;
  const allowed = answer !== undefined && answer !== 'withdrawn' && answer.allow;
  const isInterview = request.tool === 'plan_interview';
  // Of Telos's own tools the subject says enough, in the person's words.
  const about = isInterview ? request.subject : aboutOf(request);
  const filledIn = allowed && isInterview ? Object.values(answer.content ?? {}) : [];
  const said = filledIn.filter(value => typeof value === 'string' && value !== '').join(' · ');
  const isQuestion = ownQuestions.test(request.tool);
  const subject = isInterview ? said : isQuestion ? '' : (allowed && answer.command) || request.subject;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div role="group" aria-label={label} class="line answered">
      <Icon name={allowed || isAskedThere ? 'shield' : 'denied'} />
      <span class="answer">
        <span>
          {answer ? answered(answer, request, isInterview) : t('Waiting for an answer there')}
          {about !== '' && `: ${visible(about)}`}
        </span>
        {allowed && answer.answer !== undefined && <span>{visible(answer.answer)}</span>}
        {subject && <code class="one-line">{visible(beginningOf(subject.split('\n', 1)[0]!, 200))}</code>}
      </span>
    </div>
  );
}

/** Returns what a question was about beside its subject: nothing for a tool of Telos, and for what is no tool the question itself. */
function aboutOf(request: ApprovalRequest): string {
  if (ownTools.test(request.tool) && request.subject) return '';
  return ownQuestions.test(request.tool) ? describeQuestion(request, t) : request.tool;
}

const ownQuestions = /^(?:mcp_(?:servers|form|open_url|resource|sampling|sign_in)|keep_changes|more_rounds)$/;

const ownTools =
  /^(?:run_command(?:\.host)?|(?:read|write|edit)_file|list_directory|glob|search_files|fetch_url|ask_user|use_skill)$/;

/** An interview that is left is not denied: it goes on later. */
function answered(
  answer: NonNullable<ApprovalItem['answer']>,
  request: ApprovalItem['request'],
  isInterview: boolean,
): string {
  const isLeft = isInterview && answer !== 'withdrawn' && !answer.allow;
  return isLeft ? t('Later') : describeAnswer(answer, request);
}

function OpenApproval({ item, label }: { item: ApprovalItem; label: string }) {
  const { request } = item;
  const danger = request.danger !== undefined;
  const [answered, setAnswered] = useState(false);
  const [without, setWithout] = useState<readonly string[]>([]);
  const card = useRef<HTMLDivElement>(null);
  const deny = useRef<HTMLButtonElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const answer = (decision: ApprovalDecision) => {
    if (answered) return;
    setAnswered(true);
    answerApproval(request.token, decision);
    settleAgain();
    if (card.current?.contains(document.activeElement)) focusComposer();
  };
  const [once] = request.scopes;
  const question = useQuestion(card, {
    isAnswered: answered,
    allow: () => {
      if (request.form) goTo(form.current);
      // What is dangerous takes a click, or a press of the button itself.
      else if (danger || once === undefined) deny.current?.focus();
      else answer({ allow: true, scope: once });
    },
    deny: () => answer(request.form ? skipped : denial),
    leave: focusComposer,
  });
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div
      role="group"
      aria-label={label}
      class={danger ? 'card approval danger' : 'card approval'}
      ref={card}
      onKeyDown={dropRepeats}
    >
      <div class="card-title">
        <Icon name={danger ? 'warning' : 'shield'} />
        <span>{visible(describeQuestion(request, t))}</span>
      </div>
      <pre class="subject">
        <UntrustedText text={request.subject} limit={request.showsWhole ? Number.POSITIVE_INFINITY : 300} />
      </pre>
      <p class={danger ? 'why danger' : 'why'}>{visible(describeWhy(request, t))}</p>
      {request.inBackground && <p class="why">{t('It goes on in the background until it is stopped.')}</p>}
      {request.timeLimit !== undefined && (
        <p class="why">{t('It may take up to {0}.', formatDuration(request.timeLimit * 1_000))}</p>
      )}
      {request.diff !== undefined && (
        <pre class="subject">
          <DiffText text={request.diff} />
        </pre>
      )}
      {request.card !== undefined && (
        <AgentCardView
          card={request.card}
          without={without}
          {...(request.scopes.includes('always') && !answered && { onSwitch: setWithout })}
        />
      )}
      {request.tool !== 'plan_interview' && <Details request={request} />}
      {request.form ? (
        <Form
          fields={request.form}
          isInterview={request.tool === 'plan_interview'}
          form={form}
          {...question}
          answered={answered}
          answer={answer}
        />
      ) : (
        <Answers
          {...question}
          request={request}
          without={without}
          deny={deny}
          answered={answered}
          answer={answer}
        />
      )}
    </div>
  );
}

/** A key that is still held was meant for what was here before. */
function dropRepeats(event: KeyboardEvent): void {
  if (event.repeat && !isTextbox(event.target) && /^(?:Enter| )$/.test(event.key)) event.preventDefault();
}

/** Sends the form from within; from elsewhere, goes to its first field. */
function goTo(form: HTMLFormElement | null): void {
  if (form?.contains(document.activeElement)) form.requestSubmit();
  else form?.querySelector<HTMLElement>('input, select, button')?.focus();
}

interface CardState {
  isSettled: boolean;
  hasKeys: boolean;
  answered: boolean;
  answer(decision: ApprovalDecision): void;
}

/** The form, whose code loads with the first one. */
function Form({
  answer,
  ...rest
}: CardState & {
  fields: readonly FormField[];
  isInterview: boolean;
  form: RefObject<HTMLFormElement | null>;
}) {
  const [loaded, setLoaded] = useState<typeof import('./formCard.tsx')>();
  useEffect(() => {
    import('./formCard.tsx').then(setLoaded);
  }, []);
  if (!loaded) return null;
  return (
    <loaded.FormFields
      {...rest}
      send={content => answer({ allow: true, scope: 'once', content })}
      decline={() => answer(denial)}
      skip={() => answer(skipped)}
    />
  );
}

/** Where the call runs, the whole reason and its rule, folded. */
function Details({ request }: { request: ApprovalRequest }) {
  return (
    <details class="about">
      <summary>{t('Details')}</summary>
      <dl>
        <dt>{t('Tool')}</dt>
        <dd>
          <code>{visible(request.tool)}</code>
        </dd>
        {request.folder !== undefined && (
          <>
            <dt>{t('In')}</dt>
            <dd>
              <code>{visible(request.folder)}</code>
            </dd>
          </>
        )}
        <dt>{t('Why')}</dt>
        <dd>
          {visible(request.reason)} <span class="rule">({t('rule: {0}', visible(request.rule))})</span>
        </dd>
      </dl>
    </details>
  );
}

interface AnswersProps extends CardState {
  request: ApprovalRequest;
  /** Lines of the card that are switched off. */
  without: readonly string[];
  deny: RefObject<HTMLButtonElement | null>;
}

/** Two buttons, and a menu for longer scopes and for a reason. No key allows what is dangerous. */
function Answers({ request, without, deny, answered, answer, isSettled, hasKeys }: AnswersProps) {
  const [isOpen, setOpen] = useState(false);
  const [isSayingWhy, setSayingWhy] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const more = useRef<HTMLButtonElement>(null);
  const closeMenu = () => {
    setOpen(false);
    if (document.activeElement?.closest('.menu')) more.current?.focus();
  };
  useMenu(isOpen && !isSayingWhy && !isEditing, closeMenu);
  const back = () => {
    const hadFocus = document.activeElement?.closest('.words') != null;
    setSayingWhy(false);
    setEditing(false);
    if (hadFocus) requestAnimationFrame(() => more.current?.focus());
  };
  const danger = request.danger !== undefined;
  const takesKey = hasKeys && !danger;
  const [once, ...longer] = request.scopes;
  // What is hidden in the command would not be seen in a textbox.
  const canEdit = request.isEditable && visible(request.subject) === request.subject;
  if (isSayingWhy)
    return (
      <Words
        label={t('Why not? The model reads this.')}
        send={t('Deny')}
        isSettled={isSettled}
        answered={answered}
        onSend={why => answer(deniedFor(why))}
        back={back}
      />
    );
  if (isEditing)
    return (
      <Words
        label={t('The command to run instead')}
        text={request.subject}
        send={t('Run once')}
        danger={danger}
        isSettled={isSettled}
        answered={answered}
        onSend={command => answer({ allow: true, scope: 'once', command })}
        back={back}
      />
    );
  return (
    <>
      <div class="buttons">
        {once !== undefined && (
          <button
            type="button"
            class={danger ? 'secondary' : 'primary'}
            disabled={answered}
            {...(takesKey && { 'aria-keyshortcuts': keyNames.allow })}
            {...pressable(isSettled, () => answer({ allow: true, scope: once }))}
          >
            {allowLabel(once, request)}
            {takesKey && <Key of="allow" />}
          </button>
        )}
        <span class="together">
          <button
            ref={deny}
            type="button"
            class="secondary"
            disabled={answered}
            {...(hasKeys && { 'aria-keyshortcuts': keyNames.deny })}
            {...pressable(isSettled, () => answer(denial))}
          >
            {t('Deny')}
            {hasKeys && <Key of="deny" />}
          </button>
          <button
            ref={more}
            type="button"
            class="small"
            aria-expanded={isOpen}
            aria-label={t('More answers')}
            title={t('More answers')}
            disabled={answered}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="more" />
          </button>
        </span>
      </div>
      {isOpen && (
        <div class="menu">
          {longer.map(scope => (
            <button
              key={scope}
              type="button"
              disabled={answered}
              {...pressable(isSettled, () =>
                answer({ allow: true, scope, ...(scope === 'always' && without.length > 0 && { without }) }),
              )}
            >
              {scope === 'always' && request.card
                ? t('Trust {0}', visible(request.card.agent))
                : allowLabel(scope, request)}
            </button>
          ))}
          {canEdit && (
            <button type="button" disabled={answered} onClick={() => setEditing(true)}>
              {t('Edit Command…')}
            </button>
          )}
          {request.mayLeave && (
            <button type="button" disabled={answered} {...pressable(isSettled, () => answer(leaveBox))}>
              {t('Run Outside the Sandbox…')}
            </button>
          )}
          <button type="button" disabled={answered} onClick={() => setSayingWhy(true)}>
            {t('Deny and Say Why…')}
          </button>
        </div>
      )}
    </>
  );
}

interface WordsProps {
  label: string;
  /** The words to begin with. With them, an empty textbox is not sent. */
  text?: string;
  /** The label of the button that sends. */
  send: string;
  /** Enter alone never allows what is dangerous. */
  danger?: boolean;
  isSettled: boolean;
  answered: boolean;
  onSend(words: string): void;
  back(): void;
}

/** Takes words for an answer: why something is denied, or the command to run in its place. */
function Words(props: WordsProps) {
  const { label, text, send: sendLabel, danger = false, isSettled, answered, onSend, back } = props;
  useMenu(true, back);
  const [words, setWords] = useState(text ?? '');
  const box = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => box.current?.focus(), []);
  const isDisabled = answered || (text !== undefined && words.trim() === '');
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.shiftKey || event.key !== 'Enter') return;
    event.preventDefault();
    if (!event.repeat && !isDisabled && !danger) onSend(words);
  };
  return (
    <div class={text === undefined ? 'words' : 'words code'}>
      <textarea
        ref={box}
        rows={Math.min(8, Math.max(2, words.split('\n').length))}
        spellcheck={text === undefined}
        {...(text === undefined && { maxLength: longestWhy, placeholder: label })}
        aria-label={label}
        value={words}
        onInput={event => setWords(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class="buttons">
        <button
          type="button"
          class={danger ? 'secondary' : 'primary'}
          disabled={isDisabled}
          {...pressable(isSettled, () => onSend(words))}
        >
          {sendLabel}
        </button>
        <button type="button" class="secondary" disabled={answered} onClick={back}>
          {t('Back')}
        </button>
      </div>
    </div>
  );
}
