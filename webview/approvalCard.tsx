/** Asks the person before something is done. Shows exactly what, where and why, and the possible answers. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  type AgentCard,
  type CardFolder,
  describeChange,
  describeFlag,
  describeLeftOut,
} from '../src/protocol/agentCard.ts';
import type { ApprovalDecision } from '../src/protocol/run.ts';
import { t } from './host.ts';
import { Icon } from './icons.tsx';
import type { ApprovalItem } from './runItems.ts';
import { answerApproval, draft, elsewhere } from './store.ts';
import { DiffText, UntrustedText } from './untrustedText.tsx';
import { visible } from './visibleText.ts';
import { denial, describeAnswer, scopeLabels } from './wording.ts';

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
          {answer ? describeAnswer(answer) : t('Waiting for an answer there')}: {visible(request.tool)}
        </span>
        <code class="one-line">{visible(request.subject.split('\n', 1)[0]!.slice(0, 200))}</code>
      </span>
    </div>
  );
}

function OpenApproval({ item, label }: { item: ApprovalItem; label: string }) {
  const { request } = item;
  // Its position in the sentence depends on the language.
  const [before, after] = t('Allow {0}?', '\n').split('\n');
  const [answered, setAnswered] = useState(false);
  const [without, setWithout] = useState<readonly string[]>([]);
  const deny = useRef<HTMLButtonElement>(null);
  // Runs before the card is shown. Later, it would take the focus from where the person has moved it meanwhile.
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
        <UntrustedText text={request.subject} limit={600} />
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
      {request.card !== undefined && (
        <AgentCardView
          card={request.card}
          without={without}
          {...(request.scopes.includes('always') && !answered && { onSwitch: setWithout })}
        />
      )}
      <div class="buttons">
        {request.scopes.map((scope, index) => (
          <button
            key={scope}
            type="button"
            class={index === 0 ? 'primary' : 'secondary'}
            disabled={answered}
            onClick={() =>
              answer({ allow: true, scope, ...(scope === 'always' && without.length > 0 && { without }) })
            }
          >
            {scopeLabels[scope]}
          </button>
        ))}
        {/* Gets the focus, so that a key that was meant for something else never allows anything. */}
        <button ref={deny} type="button" class="secondary" disabled={answered} onClick={() => answer(denial)}>
          {t('Deny')}
        </button>
      </div>
    </div>
  );
}

/** Ignores a key that is still held down from sending the request. */
function ignoreHeldKeys(event: KeyboardEvent) {
  if (event.repeat && (event.key === 'Enter' || event.key === ' ')) event.preventDefault();
}

function isInAnotherApproval(): boolean {
  return document.activeElement?.closest('.approval') != null;
}

/** Longer lists are cut, and the number of items left out is shown. `telos trust` shows the whole list. */
const shownLines = 20;

interface Switches {
  /** The lines that are switched off. */
  without: readonly string[];
  /** Missing if nothing can be switched, because the card cannot be accepted here. */
  onSwitch?: (without: readonly string[]) => void;
}

function AgentCardView({ card, ...switches }: { card: AgentCard } & Switches) {
  const named = [
    { title: t('Hosts'), words: t('contacts {0}', '\n'), items: card.hosts },
    { title: t('Scripts'), words: t('runs {0}', '\n'), items: card.scripts },
    { title: t('Commands'), words: t('runs {0}', '\n'), items: card.commands ?? [] },
    { title: t('Variables'), words: t('sees {0}', '\n'), items: card.variables },
    { title: t('Files'), words: t('writes {0}', '\n'), items: card.writes ?? [] },
  ].filter(({ items }) => items.length > 0);
  const servers = card.servers.map(({ name, place }) => `${name}: ${place}`);
  return (
    <section class="agent-card" aria-label={t('Card of {0}', visible(card.agent))}>
      <strong>{headline(card)}</strong>
      <Lines title={t('Look at these')} lines={card.redFlags.map(flag => describeFlag(flag, t))} flagged />
      <Lines title={t('Not covered by this card')} lines={describeLeftOut(card, t)} />
      <Lines title={t('Changes')} lines={card.changes.map(describeChange)} />
      <div class="card-list-title">{t('Working folder')}</div>
      <p>
        <code>
          <UntrustedText text={card.workingDir} limit={300} />
        </code>
      </p>
      {card.workingDirNote !== undefined && <p>{visible(card.workingDirNote)}</p>}
      <Lines title={t('Folders that its files choose')} lines={card.folders.map(folderLine)} flagged />
      {named.map(line => (
        <SwitchableLines key={line.title} {...line} {...switches} />
      ))}
      <Lines title={t('MCP servers')} lines={servers} />
      {named.length + servers.length === 0 && (
        <p>{t('Its files do not name any hosts, scripts, variables or MCP servers.')}</p>
      )}
      {named.length > 0 && switches.onSwitch && (
        <p class="from">{t('“Always allow” leaves out what you switch off.')}</p>
      )}
      <p class="from">
        {t(
          'From {0}. “Always allow” accepts this card until a file of the agent changes.',
          visible(card.origin),
        )}
      </p>
    </section>
  );
}

function headline({ agent, state }: AgentCard): string {
  const name = visible(agent);
  return state === 'changed'
    ? t('{0} has changed since you accepted it', name)
    : t('{0} asks for the first time', name);
}

const folderLine = ({ path, access }: CardFolder): string =>
  access === 'write'
    ? t('reads and writes in {0} without asking again', path)
    : t('reads in {0} without asking again', path);

function Lines({
  title,
  lines,
  flagged = false,
}: {
  title: string;
  lines: readonly string[];
  flagged?: boolean;
}) {
  if (lines.length === 0) return null;
  const left = lines.length - shownLines;
  return (
    <>
      <div class={flagged ? 'card-list-title flagged' : 'card-list-title'}>{title}</div>
      <ul>
        {lines.slice(0, shownLines).map(line => (
          <li key={line}>
            <code>
              <UntrustedText text={line} limit={300} />
            </code>
          </li>
        ))}
        {left > 0 && <li>{t('and {0} more', left)}</li>}
      </ul>
    </>
  );
}

/** Shows items with a checkbox each, in a sentence: `words` has a line break where the item belongs. */
function SwitchableLines({
  title,
  words,
  items,
  without,
  onSwitch,
}: { title: string; words: string; items: readonly string[] } & Switches) {
  const [before, after] = words.split('\n');
  const left = items.length - shownLines;
  const turn = (item: string, isOn: boolean) =>
    onSwitch?.(isOn ? without.filter(each => each !== item) : [...without, item]);
  return (
    <>
      <div class="card-list-title">{title}</div>
      <ul class="switches" aria-label={title}>
        {items.slice(0, shownLines).map(item => (
          <li key={item}>
            <label>
              <input
                type="checkbox"
                checked={!without.includes(item)}
                disabled={onSwitch === undefined}
                onChange={({ currentTarget }) => turn(item, currentTarget.checked)}
              />
              <span class={without.includes(item) ? 'off' : undefined}>
                {before}
                <code>
                  <UntrustedText text={item} limit={300} />
                </code>
                {after}
              </span>
            </label>
          </li>
        ))}
        {left > 0 && <li>{t('and {0} more', left)}</li>}
      </ul>
    </>
  );
}
