/** Asks the person a question of the skill, with answers to choose from. */

import { type ApprovalDecision, type ApprovalRequest, skipped } from '@telos/protocol/run';
import { useRef, useState } from 'preact/hooks';
import { t } from './host.ts';
import { Icon } from './icons.tsx';
import { Key, keyNames, pressable, settleAgain, useQuestion } from './questions.tsx';
import { answerApproval, focusComposer } from './store.ts';
import { UntrustedText } from './untrustedText.tsx';
import { visible } from './visibleText.ts';

/** In characters. */
const longestAnswer = 2_000;

export function ChoiceCard({ request, label }: { request: ApprovalRequest; label: string }) {
  const { choices = [], token } = request;
  const [answered, setAnswered] = useState(false);
  const [words, setWords] = useState('');
  const card = useRef<HTMLDivElement>(null);
  const answers = () => [...(card.current?.querySelectorAll<HTMLElement>('.choices button, textarea') ?? [])];
  const answer = (decision: ApprovalDecision) => {
    if (answered) return;
    setAnswered(true);
    answerApproval(token, decision);
    settleAgain();
    // The card goes away with what has the focus.
    if (card.current?.contains(document.activeElement)) focusComposer();
  };
  const { isSettled, hasKeys } = useQuestion(card, {
    isAnswered: answered,
    allow: () => {
      if (words.trim() !== '') say(words.trim());
      else if (!card.current?.contains(document.activeElement)) answers()[0]?.focus();
    },
    deny: () => answer(skipped),
    leave: focusComposer,
  });
  const say = (said: string) => answer({ allow: true, scope: 'once', answer: said });
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target instanceof HTMLTextAreaElement;
    const isEarly = event.repeat || !isSettled;
    const place = answers().indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const choice = isTyping ? undefined : choices[Number(event.key) - 1];
    if (step !== undefined && (!isTyping || words === '')) answers()[place + step]?.focus();
    else if (choice !== undefined) isEarly || answered || say(choice);
    else if (event.key === 'Enter' && isTyping && !event.shiftKey) {
      if (words.trim() !== '' && !event.repeat) say(words.trim());
    } else if (isTyping || !isEarly || !/^(?:Enter| )$/.test(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div ref={card} role="group" aria-label={label} class="card approval" onKeyDown={onKeyDown}>
      <div class="card-title">
        <Icon name="info" />
        <span>{t('Question from the skill')}</span>
      </div>
      <p class="question">
        <UntrustedText text={request.subject} calm />
      </p>
      <div class="menu choices">
        {choices.map((choice, index) => (
          <button
            key={choice}
            type="button"
            disabled={answered}
            aria-keyshortcuts={String(index + 1)}
            {...pressable(isSettled, () => say(choice))}
          >
            {index + 1}. {visible(choice)}
          </button>
        ))}
      </div>
      <div class="words">
        <textarea
          rows={1}
          maxLength={longestAnswer}
          disabled={answered}
          aria-label={t('Your own answer')}
          placeholder={t('Your own answer')}
          value={words}
          onInput={event => setWords(event.currentTarget.value)}
        />
        <div class="buttons">
          <button
            type="button"
            class="primary"
            disabled={answered || words.trim() === ''}
            {...(hasKeys && { 'aria-keyshortcuts': keyNames.allow })}
            {...pressable(isSettled, () => say(words.trim()))}
          >
            {t('Answer')}
            {hasKeys && <Key of="allow" />}
          </button>
          <button
            type="button"
            class="secondary"
            disabled={answered}
            {...(hasKeys && { 'aria-keyshortcuts': keyNames.deny })}
            title={t('The run decides by itself')}
            {...pressable(isSettled, () => answer(skipped))}
          >
            {t('Skip')}
            {hasKeys && <Key of="deny" />}
          </button>
        </div>
      </div>
    </div>
  );
}
