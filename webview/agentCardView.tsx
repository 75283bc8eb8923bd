/** An agent's card inside a question: what its files name, what to look at, and what changed since it was accepted. */
import {
  type AgentCard,
  type CardFolder,
  describeChange,
  describeFlag,
  describeLeftOut,
} from '../src/protocol/agentCard.ts';
import { HonestText } from './honestText.tsx';
import { visible } from './visibleText.ts';
import { t } from './words.ts';

/** Longer lists are cut, with how much is left out; the whole list is in `telos trust`. */
const shownLines = 20;

export function AgentCardView({ card }: { card: AgentCard }) {
  const named = [
    { title: t('Hosts'), items: card.hosts },
    { title: t('Scripts'), items: card.scripts },
    { title: t('Variables'), items: card.variables },
    { title: t('MCP servers'), items: card.servers.map(({ name, place }) => `${name}: ${place}`) },
  ].filter(({ items }) => items.length > 0);
  return (
    <section class="agent-card" aria-label={t('Card of {0}', visible(card.agent))}>
      <strong>{headline(card)}</strong>
      <Lines title={t('Look at these')} lines={card.redFlags.map(flag => describeFlag(flag, t))} flagged />
      <Lines title={t('Not covered by this card')} lines={describeLeftOut(card, t)} />
      <Lines title={t('What has changed')} lines={card.changes.map(describeChange)} />
      <div class="card-list-title">{t('Working folder')}</div>
      <p>
        <code>
          <HonestText text={card.workingDir} limit={300} />
        </code>
      </p>
      {card.workingDirNote !== undefined && <p>{visible(card.workingDirNote)}</p>}
      <Lines title={t('Folders that its files choose')} lines={card.folders.map(folderLine)} flagged />
      {named.map(({ title, items }) => (
        <Lines key={title} title={title} lines={items} />
      ))}
      {named.length === 0 && <p>{t('Its files name no hosts, scripts, variables or MCP servers.')}</p>}
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
              <HonestText text={line} limit={300} />
            </code>
          </li>
        ))}
        {left > 0 && <li>{t('and {0} more', left)}</li>}
      </ul>
    </>
  );
}
