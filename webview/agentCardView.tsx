/** Shows an agent's card inside an approval: what to look at first, and what its files name, each line with a switch. */

import {
  type AgentCard,
  describeChange,
  describeFlag,
  describeFolder,
  describeLeftOut,
} from '@telos/protocol/agentCard';
import { t } from './host.ts';
import { UntrustedText } from './untrustedText.tsx';
import { visible } from './visibleText.ts';

/** Longer lists are cut, and the number of items left out is shown. `telos trust` shows the whole list. */
const shownLines = 20;

interface Switches {
  /** The lines that are switched off. */
  without: readonly string[];
  /** Missing if nothing can be switched, because the card cannot be accepted here. */
  onSwitch?: (without: readonly string[]) => void;
}

/** Shows what an agent's files name. What can be switched off has a checkbox; the first thing to look at is never folded away. */
export function AgentCardView({ card, ...switches }: { card: AgentCard } & Switches) {
  const named = [
    { title: t('Hosts'), words: t('contacts {0}', '\n'), items: card.hosts },
    { title: t('Scripts'), words: t('runs {0}', '\n'), items: card.scripts },
    { title: t('Commands'), words: t('runs {0}', '\n'), items: card.commands ?? [] },
    { title: t('Variables'), words: t('sees {0}', '\n'), items: card.variables },
    { title: t('Files'), words: t('writes {0}', '\n'), items: card.writes ?? [] },
    { title: t('Hooks'), words: t('runs {0}', '\n'), items: card.hooks ?? [] },
  ].filter(({ items }) => items.length > 0);
  const first = [
    ...card.redFlags.map(flag => describeFlag(flag, t)),
    ...card.folders.map(folder => describeFolder(folder, t)),
  ];
  const servers = card.servers.map(({ name, place }) => `${name}: ${place}`);
  return (
    <section class="agent-card" aria-label={t('Before {0} starts', visible(card.agent))}>
      <strong>{headline(card)}</strong>
      {first.length > 0 && (
        <details class="about flagged">
          <summary>
            {t('Look at these first: {0}', first.length)}
            <span class="first-flag">{visible(first[0]!)}</span>
          </summary>
          <Lines lines={first} />
        </details>
      )}
      <details class="about">
        <summary>{t('See what {0} can do', visible(card.agent))}</summary>
        <Lines title={t('Not covered by these permissions')} lines={describeLeftOut(card, t)} />
        <Lines title={t('Changes')} lines={card.changes.map(change => describeChange(change, t))} />
        <div class="card-list-title">{t('Working folder')}</div>
        <p>
          <code>
            <UntrustedText text={card.workingDir} limit={300} />
          </code>
        </p>
        {card.workingDirNote !== undefined && <p>{visible(card.workingDirNote)}</p>}
        {named.map(line => (
          <SwitchableLines key={line.title} {...line} {...switches} />
        ))}
        <Lines title={t('Hooks that do not run')} lines={card.hooksNotRun ?? []} />
        <Lines title={t('MCP servers')} lines={servers} />
        {named.length + servers.length === 0 && (
          <p>{t('Its files do not name any hosts, scripts, variables or MCP servers.')}</p>
        )}
        {named.length > 0 && switches.onSwitch && (
          <p class="from">{t('Switch off what you do not want to allow.')}</p>
        )}
        <p class="from">
          {t(
            'From {0}. Its permissions are approved until a file of the agent changes.',
            visible(card.origin),
          )}
        </p>
      </details>
    </section>
  );
}

function headline({ agent, state }: AgentCard): string {
  const name = visible(agent);
  return state === 'changed'
    ? t('{0} has changed since you approved it', name)
    : t('First time {0} asks', name);
}

function Lines({ title, lines }: { title?: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  const left = lines.length - shownLines;
  return (
    <>
      {title !== undefined && <div class="card-list-title">{title}</div>}
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
