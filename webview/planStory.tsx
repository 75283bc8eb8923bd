/** Draws one story of a plan: in a few lines among the others, or with every attempt, what its checks printed and what can be done with it. */

import type { AttemptStatus, StepName, StoryStatus } from '@telos/protocol/plan';
import type {
  AttemptReport,
  CheckReport,
  PlanPage,
  PlanPageVerb,
  StoryReport,
} from '@telos/protocol/planPage';
import { planWords } from '@telos/protocol/planWords';
import { formatCost, formatDuration } from '@telos/protocol/usage';
import type { ComponentChildren } from 'preact';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { SettledButton } from './questions.tsx';
import { visible, visibleLines } from './visibleText.ts';

/** A story among those of its plan: how it ended, and what showed it. */
export function StorySummary({ story, word }: { story: StoryReport; word: string }) {
  const last = story.attempts.findLast(({ verdict, checks }) => verdict || checks.length > 0);
  return (
    <section class="story" aria-labelledby={`story-${story.id}`}>
      <h2 id={`story-${story.id}`}>
        <StatusMark status={story.status} /> {visible(`${story.id} ${story.title}`)}
      </h2>
      <p class="facts">{[word, ...figuresOf(story)].join(' · ')}</p>
      {story.why && <p>{visibleLines(planWords(story.why, t))}</p>}
      {last && <Checks checks={last.checks} />}
      {last?.verdict && <Verdict {...last.verdict} />}
      <div class="buttons">
        <StoryButton verb="story" story={story}>
          {t('Show Attempts and Output')}
        </StoryButton>
        {(story.commits.length > 0 || story.attempts.length > 0) && (
          <StoryButton verb="changes" story={story}>
            {t('Show Changes')}
          </StoryButton>
        )}
      </div>
    </section>
  );
}

/** A story alone, as it goes on. */
export function StoryDetails({ page, story }: { page: PlanPage; story: StoryReport }) {
  const { status } = story;
  const isOver = status === 'passed' || status === 'accepted' || status === 'skipped';
  return (
    <>
      <h1>{visible(`${story.id} ${story.title}`)}</h1>
      <p class="facts" role="status">
        {[visible(page.name), page.words.stories[story.id] ?? '', ...figuresOf(story)].join(' · ')}
      </p>
      {story.why && <p>{visibleLines(planWords(story.why, t))}</p>}
      <div class="buttons">
        <StoryButton verb="open" story={story}>
          {t('Open File')}
        </StoryButton>
        {story.attempts.length > 0 && (
          <StoryButton verb="changes" story={story}>
            {t('Show Changes')}
          </StoryButton>
        )}
        {!isOver && (
          <StoryButton verb="tell" story={story}>
            {t('Send Message...')}
          </StoryButton>
        )}
        {story.attempts.length > 0 && (
          <StoryButton verb="redo" story={story}>
            {t('Redo...')}
          </StoryButton>
        )}
        {!isOver && (
          <StoryButton verb="skip" story={story}>
            {t('Skip...')}
          </StoryButton>
        )}
        {!isOver && (
          <StoryButton verb="accept" story={story}>
            {t('Accept...')}
          </StoryButton>
        )}
        {!isOver && (
          <StoryButton verb="split" story={story}>
            {t('Split...')}
          </StoryButton>
        )}
        <StoryButton verb="budget" story={story}>
          {t('Raise Budget...')}
        </StoryButton>
      </div>
      <ul class="boxes">
        {story.items.map(({ number, text, closed }) => (
          <li key={number}>
            <Icon name={closed ? 'ticked' : 'open'} />
            <span>
              {visibleLines(text)}
              {closed === 'accepted' && ` (${t('accepted by you')})`}
              <span class="unseen">{closed ? t('done') : t('open')}</span>
            </span>
          </li>
        ))}
      </ul>
      {[...story.attempts].reverse().map(attempt => (
        <Attempt key={attempt.attempt} attempt={attempt} />
      ))}
    </>
  );
}

function figuresOf({ attempts, cost, commits }: StoryReport): string[] {
  const count = attempts.length;
  const commit = commits.at(-1);
  return [
    count === 0 ? '' : count === 1 ? t('1 attempt') : t('{0} attempts', count),
    typeof cost === 'number' && cost > 0 ? formatCost(cost) : cost === 'unknown' ? t('cost unknown') : '',
    commit === undefined ? '' : t('Commit {0}', commit.slice(0, 8)),
  ].filter(Boolean);
}

function Attempt({ attempt }: { attempt: AttemptReport }) {
  const { status, details, worker, change, checks, tamper, verdict, cost, steps } = attempt;
  const facts = [
    status ? attemptWords[status] : t('running'),
    worker === undefined ? '' : t('on {0}', visible(worker)),
    change
      ? change.files === 1
        ? t('1 file, +{0} -{1}', change.added, change.removed)
        : t('{0} files, +{1} -{2}', change.files, change.added, change.removed)
      : '',
    typeof cost === 'number' && cost > 0 ? formatCost(cost) : '',
  ];
  return (
    <section class="story" aria-labelledby={`attempt-${attempt.attempt}`}>
      <h2 id={`attempt-${attempt.attempt}`}>{t('Attempt {0}', attempt.attempt)}</h2>
      <p class="facts">{facts.filter(Boolean).join(' · ')}</p>
      <Checks checks={checks} />
      {tamper && (
        <ul>
          {tamper.findings.map(({ file, detail }) => (
            <li key={`${file} ${detail}`}>
              {visible(file)}: {visible(detail)}
            </li>
          ))}
        </ul>
      )}
      {verdict && <Verdict {...verdict} />}
      {details && details !== verdict?.text && <p>{visibleLines(planWords(details, t))}</p>}
      {steps.length > 0 && (
        <div class="buttons">
          {steps.map(({ step, runId }) => (
            <button
              key={runId}
              type="button"
              class="secondary"
              onClick={() => post({ type: 'show_run', runId })}
            >
              {t('Show Run: {0}', stepWords[step])}
            </button>
          ))}
        </div>
      )}
    </section>
  );
}

function Checks({ checks }: { checks: readonly CheckReport[] }) {
  if (checks.length === 0) return null;
  return (
    <ul class="checks" aria-label={t('Checks')}>
      {checks.map(check => (
        <li key={check.name}>
          <Mark isGood={check.exitCode === 0} /> <strong>{visible(check.name)}</strong>{' '}
          {check.command !== undefined && <code>{visible(check.command)}</code>}{' '}
          <span class="facts">
            {check.exitCode === null
              ? t('ran out of time or did not start')
              : t('exit code {0}', check.exitCode)}
            {' · '}
            <span class="whole">{formatDuration(check.ms)}</span>
          </span>
          {check.flaky !== undefined && <p>{t('Flaky: it passed at its second run on the same files.')}</p>}
          {check.suspicious !== undefined && <p>{visibleLines(check.suspicious)}</p>}
          {check.output !== '' && (
            <details open={check.exitCode !== 0}>
              <summary>{t('Output')}</summary>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long line is scrolled with the keyboard */}
              <pre tabIndex={0}>{visibleLines(check.output)}</pre>
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}

function Verdict({ approved, text }: { approved: boolean; text: string }) {
  return (
    <figure class="verdict">
      <figcaption>
        <Mark isGood={approved} /> {approved ? t('The reviewer approved') : t('The reviewer denied')}
      </figcaption>
      <blockquote>{visibleLines(text)}</blockquote>
    </figure>
  );
}

const Mark = ({ isGood }: { isGood: boolean }) => (
  <span class={isGood ? 'good' : 'bad'}>
    <Icon name={isGood ? 'done' : 'failed'} />
  </span>
);

function StatusMark({ status }: { status: StoryStatus }) {
  if (status === 'passed' || status === 'accepted') return <Mark isGood />;
  // It has not failed: it waits.
  if (status === 'needs_you') return <Icon name="waiting" />;
  return status === 'failed' ? <Mark isGood={false} /> : null;
}

interface StoryButtonProps {
  verb: PlanPageVerb;
  story: StoryReport;
  children: ComponentChildren;
}

function StoryButton({ verb, story: { id }, children }: StoryButtonProps) {
  return (
    <SettledButton key={`${verb} ${id}`} class="secondary" act={() => post({ type: 'act', verb, story: id })}>
      {children}
    </SettledButton>
  );
}

const attemptWords: Readonly<Record<AttemptStatus, string>> = {
  approved: t('approved'),
  'approved-partial': t('approved in part'),
  denied: t('denied'),
  'no-verdict': t('no verdict'),
  error: t('failed'),
  timeout: t('out of time'),
  'no-change': t('no change'),
  conflict: t('conflict'),
  cancelled: t('cancelled'),
  interrupted: t('interrupted'),
};

const stepWords: Readonly<Record<StepName, string>> = {
  interview: t('interview'),
  plan: t('planner'),
  split: t('story writer'),
  orchestrator: t('adviser'),
  coder: t('coder'),
  crm: t('customer relations'),
  marketing: t('marketing'),
  'image-generator': t('images'),
  reviewer: t('reviewer'),
};
