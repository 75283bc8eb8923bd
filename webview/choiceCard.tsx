/** Asks the person a question of the skill, with answers to choose from. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type ApprovalDecision, type ApprovalRequest, skipped } from '../src/protocol/run.ts';
import { t } from './host.ts';
import { Icon } from './icons.tsx';
import { answerApproval, draft, focusComposer } from './store.ts';
import { UntrustedText } from './untrustedText.tsx';
import { visible } from './visibleText.ts';

/** In milliseconds from the moment that a card is shown. A key that was meant for something else answers nothing. */
const tooEarly = 400;

/** In characters. */
const longestAnswer = 2_000;

export function ChoiceCard({ request, label }: { request: ApprovalRequest; label: string }) {
  const { choices = [], token } = request;
  const [answered, setAnswered] = useState(false);
  const [words, setWords] = useState('');
  const card = useRef<HTMLDivElement>(null);
  const shownAt = useRef(performance.now());
  const answers = () => [...(card.current?.querySelectorAll<HTMLElement>('.choices button, textarea') ?? [])];
  useLayoutEffect(() => {
    const inChat = document.hasFocus() && document.activeElement !== document.body;
    const isAnswering = document.activeElement?.closest('.approval') != null;
    if (inChat && draft.peek() === '' && !isAnswering) answers()[0]?.focus();
  }, []);
  const answer = (decision: ApprovalDecision) => {
    setAnswered(true);
    answerApproval(token, decision);
    // The card goes away with what has the focus.
    focusComposer();
  };
  const say = (said: string) => answer({ allow: true, scope: 'once', answer: said });
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const isTyping = event.target instanceof HTMLTextAreaElement;
    const isEarly = event.repeat || performance.now() - shownAt.current < tooEarly;
    const place = answers().indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const choice = isTyping ? undefined : choices[Number(event.key) - 1];
    if (step !== undefined && (!isTyping || words === '')) answers()[place + step]?.focus();
    else if (event.key === 'Escape') isEarly || answered || answer(skipped);
    else if (choice !== undefined) isEarly || answered || say(choice);
    else if (event.key === 'Enter' && isTyping && !event.shiftKey) {
      if (words.trim() !== '' && !isEarly) say(words.trim());
    } else if (!(isEarly && /^(?:Enter| )$/.test(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div ref={card} role="group" aria-label={label} class="card approval" onKeyDown={onKeyDown}>
      <div class="card-title">
        <Icon name="info" />
        <span>{t('A question for you')}</span>
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
            onClick={() => say(choice)}
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
            onClick={() => say(words.trim())}
          >
            {t('Answer')}
          </button>
          <button
            type="button"
            class="secondary"
            disabled={answered}
            aria-keyshortcuts="Escape"
            title={t('Skip (Escape): the run decides by itself')}
            onClick={() => answer(skipped)}
          >
            {t('Skip')}
          </button>
        </div>
      </div>
    </div>
  );
}
