/** A question to the person before something is done: exactly what, where and why, and the answers that it offers. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ApprovalDecision } from '../src/protocol/run.ts';
import { AgentCardView } from './agentCardView.tsx';
import { DiffText, HonestText } from './honestText.tsx';
import { Icon } from './icons.tsx';
import type { ApprovalItem } from './runItems.ts';
import { answerApproval, draft, elsewhere } from './store.ts';
import { visible } from './visibleText.ts';
import { denial, describeAnswer, scopeLabels } from './wording.ts';
import { t } from './words.ts';

export function ApprovalCard({ item }: { item: ApprovalItem }) {
  const { request, answer } = item;
  const label = t('Approval: {0}', visible(request.tool));
  const isAskedThere = !answer && elsewhere.value !== undefined;
  if (!answer && !isAskedThere) return <OpenApproval item={item} label={label} />;
  const allowed = answer !== undefined && answer !== 'withdrawn' && answer.allow;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is no form
    <div role="group" aria-label={label} class="line answered">
      <Icon name={allowed || isAskedThere ? 'shield' : 'denied'} />
      <span class="answer">
        <span>
          {answer ? describeAnswer(answer) : t('Waits for an answer there')}: {visible(request.tool)}
        </span>
        <code class="one-line">{visible(request.subject.split('\n', 1)[0]!.slice(0, 200))}</code>
      </span>
    </div>
  );
}

function OpenApproval({ item, label }: { item: ApprovalItem; label: string }) {
  const { request } = item;
  // The name stands somewhere in the sentence, as the language wants it.
  const [before, after] = t('Allow {0}?', '\n').split('\n');
  const [answered, setAnswered] = useState(false);
  const deny = useRef<HTMLButtonElement>(null);
  // Before it is shown: later, it would be taken from where the person has gone meanwhile.
  useLayoutEffect(() => {
    const inChat = document.hasFocus() && document.activeElement !== document.body;
    if (inChat && draft.peek() === '' && !isInAnotherApproval()) deny.current?.focus();
  }, []);
  const answer = (decision: ApprovalDecision) => {
    setAnswered(true);
    answerApproval(request.token, decision);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is no form
    <div role="group" aria-label={label} class="card approval" onKeyDown={ignoreHeldKeys}>
      <div class="card-title">
        <Icon name="shield" />
        <span>
          {before}
          <code>{visible(request.tool)}</code>
          {after}
        </span>
      </div>
      <pre class="subject">
        <HonestText text={request.subject} limit={600} />
      </pre>
      <dl>
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
      {request.diff !== undefined && (
        <pre class="subject">
          <DiffText text={request.diff} />
        </pre>
      )}
      {request.card !== undefined && <AgentCardView card={request.card} />}
      <div class="buttons">
        {request.scopes.map((scope, index) => (
          <button
            key={scope}
            type="button"
            class={index === 0 ? 'primary' : 'secondary'}
            disabled={answered}
            onClick={() => answer({ allow: true, scope })}
          >
            {scopeLabels[scope]}
          </button>
        ))}
        {/* The focus goes here: a key that was meant for something else is never a yes. */}
        <button ref={deny} type="button" class="secondary" disabled={answered} onClick={() => answer(denial)}>
          {t('Deny')}
        </button>
      </div>
    </div>
  );
}

/** A key that is held down, from sending the request for one, is no answer. */
function ignoreHeldKeys(event: KeyboardEvent) {
  if (event.repeat && (event.key === 'Enter' || event.key === ' ')) event.preventDefault();
}

function isInAnotherApproval(): boolean {
  return document.activeElement?.closest('.approval') != null;
}
