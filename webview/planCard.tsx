/** Draws the card of a plan: its commands word for word with their dangers, where they run, what it may cost, and what it leaves alone. */
import { describeFlag } from '@telos/protocol/agentCard';
import { describeDanger } from '@telos/protocol/describe';
import type { CardCommand, PlanCard } from '@telos/protocol/planCard';
import { formatCost } from '@telos/protocol/usage';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { SettledButton } from './questions.tsx';
import { UntrustedText } from './untrustedText.tsx';
import { visible } from './visibleText.ts';

const mostFiles = 10;

export function CardPage({ name, card, isLive }: { name: string; card: PlanCard; isLive: boolean }) {
  const { setup, checks, dirtyFiles, changes } = card;
  return (
    <>
      <h1>{t('Before {0} starts', visible(name))}</h1>
      <p class="facts" role="status">
        {stateOf(card)}
      </p>
      <div class="buttons">
        {card.isAccepted ? (
          !isLive && (
            <SettledButton key="run" class="primary" act={() => post({ type: 'act', verb: 'run' })}>
              {t('Run')}
            </SettledButton>
          )
        ) : (
          <SettledButton
            key={card.digest}
            class="primary"
            act={() => post({ type: 'accept_card', digest: card.digest })}
          >
            {t('Approve and Start')}
          </SettledButton>
        )}
        <button type="button" class="secondary" onClick={() => post({ type: 'act', verb: 'open' })}>
          {t('Show the Plan')}
        </button>
      </div>
      <Lines title={t('Changed since you approved it')} lines={changes} />
      <Commands title={t('Setup commands')} commands={setup} />
      <Commands title={t('Checks each story must pass')} commands={checks} />
      <Lines title={t('Hosts that the commands name')} lines={card.hosts} />
      <Facts card={card} />
      <Lines
        title={
          dirtyFiles.length === 1
            ? t('Not included: 1 uncommitted file of yours stays where it is, and the plan does not see it')
            : t(
                'Not included: {0} uncommitted files of yours stay where they are, and the plan does not see them',
                dirtyFiles.length,
              )
        }
        lines={dirtyFiles}
      />
      <Lines title={t('Copied into each worktree')} lines={card.copy} />
      <Lines
        title={t('Linked into each worktree, so that a change there changes the original')}
        lines={card.link}
      />
      <Lines title={t('Kept in each worktree from story to story')} lines={card.keep} />
      <Lines title={t('Files that no story may change')} lines={card.protect} />
      <Lines title={t('Folders that planning may read')} lines={card.context ?? []} />
      <Lines title={t('Skills that do the work')} lines={card.skills} />
      {card.roles.map(({ file, text }) => (
        <section key={file} class="story">
          <h2>{t("The project's own text for a role: {0}", visible(file))}</h2>
          <pre>
            <UntrustedText text={text} />
          </pre>
        </section>
      ))}
    </>
  );
}

function stateOf({ isAccepted, changes }: PlanCard): string {
  if (isAccepted) return t('Approved. This applies until a command changes.');
  return changes.length > 0
    ? t('Changed since you approved it')
    : t('Nothing runs before you approve it. Your approval covers only these commands.');
}

function Facts({ card }: { card: PlanCard }) {
  const { base, branch, slots, models, limits, estimate } = card;
  const { maxCost, maxTokens, maxMinutes } = limits;
  const budget = [
    maxCost === undefined ? '' : formatCost(maxCost),
    maxTokens === undefined ? '' : t('{0} tokens', maxTokens),
    maxMinutes === undefined ? '' : t('{0} minutes', maxMinutes),
  ].filter(Boolean);
  const roleWords: Readonly<Record<string, string>> = {
    all: t('all'),
    reviewer: t('reviewer'),
    'after three denials': t('after three denials'),
  };
  const facts: readonly (readonly [name: string, value: string])[] = [
    [t('Starts from'), base.slice(0, 12)],
    [t('Branch'), visible(branch)],
    [t('Stories at a time'), String(slots)],
    ...models.map(({ role, model }) => [t('Model: {0}', roleWords[role] ?? role), visible(model)] as const),
    [t('Budget'), budget.join(', ') || t('no limit')],
    ...(estimate
      ? [
          [
            t('Estimate'),
            t(
              '{0} to {1}, most likely {2}',
              formatCost(estimate.low),
              formatCost(estimate.high),
              formatCost(estimate.typical),
            ),
          ] as const,
        ]
      : []),
  ];
  return (
    <section class="story">
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Commands({ title, commands }: { title: string; commands: readonly CardCommand[] }) {
  return (
    <section class="story">
      <h2>{title}</h2>
      {commands.length === 0 && <p>{t('none')}</p>}
      <ul class="commands">
        {commands.map(({ command, name, stories, timeoutS, outside, dangers, flags }) => (
          <li key={`${name} ${command} ${timeoutS}`}>
            {name !== undefined && <strong>{visible(name)}</strong>}
            <pre>
              <UntrustedText text={command} />
            </pre>
            {stories && (
              <p class="facts">
                {[
                  stories.length === 0 ? t('the whole plan') : stories.map(visible).join(', '),
                  timeoutS === undefined ? '' : t('at most {0} s', timeoutS),
                  outside ? t('may run outside the sandbox') : '',
                ]
                  .filter(Boolean)
                  .join(' · ')}
              </p>
            )}
            {[...dangers.map(one => describeDanger(one, t)), ...flags.map(one => describeFlag(one, t))].map(
              warning => (
                <p key={warning} class="bad">
                  <Icon name="warning" /> {visible(warning)}
                </p>
              ),
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Lines({ title, lines }: { title: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  const left = lines.length - mostFiles;
  return (
    <section class="story">
      <h2>{title}</h2>
      <ul>
        {lines.slice(0, mostFiles).map(line => (
          <li key={line}>
            <code>
              <UntrustedText text={line} />
            </code>
          </li>
        ))}
        {left > 0 && <li>{t('and {0} more', left)}</li>}
      </ul>
    </section>
  );
}
