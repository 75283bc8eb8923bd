/** Starts a page about a plan: what it has come to, story by story, and how it is ended; one story in all detail; or the card that is accepted. */
import './parts.css';
import './planPage.css';
import type { FinishKind } from '@telos/protocol/plan';
import type { PlanPage, PlanPageVerb, PlanReport, ToPlanPage } from '@telos/protocol/planPage';
import { planWords } from '@telos/protocol/planWords';
import { formatCost, formatDuration } from '@telos/protocol/usage';
import { render } from 'preact';
import { keepPlace, post, t } from './host.ts';
import { CardPage } from './planCard.tsx';
import { StoryDetails, StorySummary } from './planStory.tsx';
import { SettledButton } from './questions.tsx';
import { visible, visibleLines } from './visibleText.ts';

const root = document.getElementById('root');

window.addEventListener('message', ({ data }: MessageEvent<ToPlanPage>) => {
  if (data?.type !== 'page' || !root) return;
  const before = document.activeElement;
  render(<Page page={data.page} />, root);
  // What was pressed may be gone, and with it where the keyboard was.
  const heading = root.querySelector('h1');
  if (before === null || before.isConnected || !heading) return;
  heading.tabIndex = -1;
  heading.focus();
});
keepPlace();
post({ type: 'ready' });

function Page({ page }: { page: PlanPage }) {
  const story = page.report.stories.find(({ id }) => id === page.story);
  if (page.story !== undefined && !story)
    return (
      <main>
        <p>{t('The plan {0} has no story {1} any more.', visible(page.name), visible(page.story))}</p>
      </main>
    );
  return (
    <main>
      {page.problem !== undefined && (
        <p class="problem" role="alert">
          {visibleLines(page.problem)}
        </p>
      )}
      {page.questions.map(({ id, text }) => (
        <section key={id} class="question" aria-label={t('Question')}>
          <p>{visibleLines(text)}</p>
          <SettledButton class="primary" act={() => post({ type: 'answer', id })}>
            {t('Answer...')}
          </SettledButton>
        </section>
      ))}
      {page.card && <CardPage name={page.name} card={page.card} isLive={page.isLive} />}
      {!page.card && story && <StoryDetails page={page} story={story} />}
      {!page.card && !story && <Report page={page} />}
    </main>
  );
}

function Report({ page }: { page: PlanPage }) {
  const { name, report, words } = page;
  const why = report.finished ? finishedWords(report, page.into) : planWords(report.why ?? '', t);
  return (
    <>
      <h1>{visible(name)}</h1>
      <p class="goal">{visibleLines(report.goal)}</p>
      <p class="facts">{[words.plan, ...figuresOf(report)].join(' · ')}</p>
      {why && <p>{visibleLines(why)}</p>}
      <Finish page={page} />
      {report.stories.map(story => (
        <StorySummary key={story.id} story={story} word={words.stories[story.id] ?? ''} />
      ))}
    </>
  );
}

function figuresOf({ stories, cost, workedMs, branch, base }: PlanReport): string[] {
  const wanted = stories.filter(({ status }) => status !== 'skipped');
  const done = wanted.filter(({ status }) => status === 'passed' || status === 'accepted');
  return [
    wanted.length === 1
      ? t('{0} of 1 story', done.length)
      : t('{0} of {1} stories', done.length, wanted.length),
    typeof cost === 'number' && cost > 0 ? formatCost(cost) : '',
    workedMs > 0 ? formatDuration(workedMs) : '',
    branch === undefined
      ? ''
      : base === undefined
        ? t('Branch {0}', visible(branch))
        : t('Branch {0} from {1}', visible(branch), base.slice(0, 8)),
  ].filter(Boolean);
}

function finishedWords({ finished, branch = '' }: PlanReport, into: string | undefined): string {
  const commit = finished?.commit?.slice(0, 8) ?? '';
  switch (finished?.how) {
    case 'merge':
    case 'squash':
      return into === undefined ? t('Merged: {0}', commit) : t('Merged into {0}: {1}', visible(into), commit);
    case 'pr':
      return t('Pushed for a pull request: {0}', commit);
    case 'keep':
      return t('Kept: branch {0}', visible(branch));
    default:
      return t('Discarded. The patches of the attempts are kept.');
  }
}

/** The ways to end the plan that are open now, what they do behind each. */
function Finish({ page: { finish, into = 'HEAD', report } }: { page: PlanPage }) {
  if (finish.length === 0) return null;
  const branch = visible(report.branch ?? '');
  const ways: Readonly<Record<FinishKind, readonly [label: string, about: string]>> = {
    merge: [t('Merge into {0}', visible(into)), t('Keeps each commit as it is.')],
    squash: [t('Squash into {0}', visible(into)), t('Combines all commits into one.')],
    pr: [t('Open Pull Request...'), t('Pushes {0} to your remote. Asks first.', branch)],
    keep: [t('Keep the Branch'), t('Removes only the worktrees; {0} is kept.', branch)],
    drop: [t('Discard...'), t('Deletes {0}. Asks first.', branch)],
  };
  return (
    <section class="finish" aria-labelledby="finish">
      <h2 id="finish">{t('Finish')}</h2>
      <ul>
        {finish.map(how => (
          <li key={how}>
            <Act verb={how} isPrimary={how === 'merge'} about={`about-${how}`}>
              {ways[how][0]}
            </Act>
            <span id={`about-${how}`}>{ways[how][1]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ActProps {
  verb: PlanPageVerb;
  isPrimary?: boolean;
  /** The id of what describes it. */
  about?: string;
  children: string;
}

function Act({ verb, isPrimary, about, children }: ActProps) {
  return (
    <SettledButton
      class={isPrimary ? 'primary' : 'secondary'}
      aria-describedby={about}
      act={() => post({ type: 'act', verb })}
    >
      {children}
    </SettledButton>
  );
}
