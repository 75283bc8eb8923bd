/** Words a plan for the terminal: its state, its stories, its facts as they happen, and what a person can do next. */
import { type PlanState, type StoryState, withChoices } from '@telos/plans/state';
import type { FinishKind, JournalLine, PlanPhase, StoryStatus } from '@telos/protocol/plan';
import { formatCost } from '@telos/protocol/usage';
import type { Style } from './terminal.ts';
import { table, terminalLine } from './terminalText.ts';

/** What each phase waits for, as the command that goes on. */
const nextCommands: Partial<Record<PlanPhase, (name: string) => string>> = {
  interviewing: name => `telos plan interview ${name}`,
  planning: name => `telos plan write ${name}`,
  plan_review: name => `telos plan approve ${name} --plan`,
  splitting: name => `telos plan split ${name}`,
  stories_review: name => `telos plan approve ${name} --card`,
  ready: name => `telos plan run ${name}`,
  paused: name => `telos plan run ${name}`,
  waiting: name => `telos plan run ${name}`,
  needs_you: name => `telos plan run ${name}`,
  failed: name => `telos plan run ${name} --retry`,
  stopped: name => `telos plan run ${name}`,
  done: name => `telos plan finish ${name} --merge`,
};

/** Returns the command that goes on with the plan, or undefined while it runs. */
export const nextCommand = (phase: PlanPhase, name: string): string | undefined =>
  nextCommands[phase]?.(name);

/** Returns the command that goes on with the plan as it is; undefined while it runs, or once it was brought to its end. */
export function nextStep(name: string, state: PlanState): string | undefined {
  const { phase, finished, stories } = state;
  if (finished?.how === 'drop' || (finished !== undefined && phase === 'done')) return undefined;
  const isFailed = phase === 'needs_you' && !stories.some(({ status }) => status === 'needs_you');
  return nextCommand(isFailed && state.questions.length === 0 ? 'failed' : phase, name);
}

/** What became of a plan that a person has brought to its end. */
const endWords: Readonly<Record<FinishKind, (into: string) => string>> = {
  merge: into => `merged${into}`,
  squash: into => `merged${into} as one commit`,
  pr: () => 'pushed for a pull request',
  keep: () => 'branch kept',
  drop: () => 'discarded',
};

function endOf({ finished }: PlanState): string[] {
  if (!finished) return [];
  const { how, into } = finished;
  return [endWords[how](into === undefined ? '' : ` into ${terminalLine(into, 100)}`)];
}

/** Returns how the person can say what becomes of stories that changed nothing twice, as commands. Empty if there are none. */
export function stuckLines({ stories, questions, finished }: PlanState): string[] {
  if (finished?.how === 'drop') return [];
  const asks = new Set(questions.map(({ story }) => story));
  return stories
    .filter(({ status, story }) => status === 'needs_you' && !asks.has(story.id))
    .flatMap(({ story: { id } }) => [
      `  ${id} changed nothing twice. One of:`,
      `    telos plan tell ${id} "what it should do"`,
      `    telos plan skip ${id}`,
      `    telos plan redo ${id}`,
    ]);
}

/** Returns how the worktrees of a plan are set up, one line for each thing that is done there. */
export function setupLines({ setup, keep, link, copy }: Setup): string[] {
  if (setup.length + keep.length + link.length + copy.length === 0)
    return ['Nothing sets up the worktrees: they have the files of the commit alone.'];
  return [
    ...setup.map(command => `Runs: ${command}`),
    ...keep.map(path => `Keeps: ${path}`),
    ...link.map(path => `Links: ${path}`),
    ...copy.map(path => `Copies: ${path}`),
  ];
}

type Setup = Readonly<Record<'setup' | 'keep' | 'link' | 'copy', readonly string[]>>;

export const phaseWords: Readonly<Record<PlanPhase, string>> = {
  interviewing: 'interview',
  planning: 'ready to be written',
  plan_review: 'plan.md waits for your approval',
  splitting: 'ready to be split into stories',
  stories_review: 'its permissions wait for your approval',
  ready: 'ready to run',
  running: 'running',
  paused: 'paused',
  waiting: 'waiting',
  needs_you: 'needs you',
  finishing: 'finishing',
  done: 'done',
  failed: 'failed',
  stopped: 'stopped',
};

const statusWords: Readonly<Record<StoryStatus, string>> = {
  blocked: 'blocked',
  ready: 'ready',
  working: 'working',
  snapshot: 'working',
  checking: 'checking',
  reviewing: 'reviewing',
  committing: 'committing',
  integrating: 'integrating',
  passed: 'passed',
  needs_you: 'needs you',
  skipped: 'skipped',
  accepted: 'accepted by you',
  failed: 'failed',
};

/** Returns one line about the plan and its end, such as `bakery: running, 2 of 4 stories passed, $0.12`. */
export function headline(name: string, state: PlanState): string {
  const { stories, usage, phase, phaseWhy, waitingUntil } = state;
  const passed = stories.filter(({ status }) => status === 'passed' || status === 'accepted').length;
  const cost = usage && typeof usage.cost === 'number' && usage.cost > 0 ? [formatCost(usage.cost)] : [];
  const count = stories.length > 0 ? [`${passed} of ${stories.length} stories passed`] : [];
  // Of what was thrown away nothing waits.
  if (state.finished?.how === 'drop') return `${name}: ${[...endOf(state), ...count, ...cost].join(', ')}`;
  const waits = state.questions.length > 0 ? [`${state.questions.length} waiting for you`] : [];
  const why = phaseWhy === undefined || phaseWhy === '' ? [] : [terminalLine(phaseWhy)];
  const now =
    phase === 'waiting' && waitingUntil !== undefined
      ? `${phaseWords.waiting} until ${new Date(waitingUntil).toLocaleTimeString()}`
      : phaseWords[phase];
  return `${name}: ${[now, ...endOf(state), ...count, ...cost, ...waits, ...why].join(', ')}`;
}

/** Returns the state of a plan with its stories, its open questions and the command that goes on. */
export function statusText(
  name: string,
  state: PlanState,
  problems: readonly string[],
  style: Style,
  width: number | undefined,
): string {
  const rows = state.stories.map(one => [
    one.story.id,
    statusWords[one.status],
    terminalLine(one.story.title, 60),
    noteOf(one),
  ]);
  const open = state.finished?.how === 'drop' ? [] : state.questions;
  const questions = open.map(
    ({ id, story, ...question }) =>
      `  ${id}${story === undefined ? '' : ` (${story})`}: ${terminalLine(withChoices(question))}\n    telos plan answer ${id} "…"`,
  );
  const next = nextStep(name, state);
  const stuck = stuckLines(state);
  return [
    style.bold(headline(name, state)),
    ...(state.goal ? [terminalLine(state.goal, 200)] : []),
    ...(rows.length > 0 ? ['', table(['Story', 'State', 'Title', ''], rows, width)] : []),
    ...(questions.length > 0 ? ['', 'Questions that wait for you:', ...questions] : []),
    ...(stuck.length > 0 ? ['', ...stuck] : []),
    ...(state.recovered.length > 0 ? ['', 'Recovered when it last began:', ...counted(state.recovered)] : []),
    ...problems.map(problem => style.yellow(terminalLine(problem))),
    ...(next === undefined ? [] : ['', `Next: ${next}`]),
  ].join('\n');
}

/** Returns each text once, with how often it is there. */
function counted(texts: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(
    ([text, count]) => `  ${terminalLine(text, 300)}${count === 1 ? '' : ` (${count} times)`}`,
  );
}

function noteOf(state: StoryState): string {
  const { status, attempts, commit, why, lastDenial, story, passed, open } = state;
  if (commit !== undefined && status === 'passed') return commit.slice(0, 8);
  const boxes =
    passed.size > 0 && passed.size < story.items.length ? `${passed.size}/${story.items.length} boxes` : '';
  const attempt = attempts > 1 ? `attempt ${attempts}` : '';
  const reason =
    why ?? (status === 'ready' || status === 'needs_you' || status === 'failed' ? lastDenial : undefined);
  const where = open?.job ? `on ${terminalLine(open.job.worker, 60)}` : '';
  const needs = status === 'blocked' ? `needs ${story.dependsOn.join(', ')}` : '';
  return [boxes, attempt, where, needs, reason === undefined ? '' : terminalLine(reason, 60)]
    .filter(Boolean)
    .join(', ');
}

/** Returns a line for a fact that a person watches for, or undefined for one that only a machine needs. */
export function factText(line: JournalLine): string | undefined {
  switch (line.type) {
    case 'runner_started':
      return `Branch ${line.branch}, from ${line.base.slice(0, 8)}`;
    case 'preflight':
      return line.problems.length > 0
        ? line.problems.map(problem => `Note: ${terminalLine(problem, 300)}`).join('\n  ')
        : undefined;
    case 'recovered':
      return `Recovered: ${line.what.map(what => terminalLine(what)).join('; ')}`;
    case 'attempt_started':
      return `${line.story} ${line.attempt > 1 ? `attempt ${line.attempt}` : 'begins'} (${terminalLine(line.role)})`;
    case 'job_given':
      return `${line.story} goes to the worker ${terminalLine(line.worker, 60)}`;
    case 'snapshot':
      return `${line.story} changed ${line.files} ${line.files === 1 ? 'file' : 'files'} (+${line.added} -${line.removed})`;
    case 'check_ended':
      return `${line.story} check ${terminalLine(line.name)}: ${line.exitCode !== 0 ? `failed (${line.exitCode ?? 'no exit code'})` : line.flaky === undefined ? 'passed' : 'flaky: passed at its second run on the same files'}`;
    case 'tamper':
      return `${line.story} ${line.decision === 'denied' ? 'denied' : 'allowed'}: ${line.findings.map(({ file, detail }) => `${terminalLine(file)}: ${terminalLine(detail)}`).join('; ')}`;
    case 'verdict':
      return `${line.story} ${line.approved ? 'approved' : 'denied'}: ${terminalLine(line.text, 200)}`;
    case 'story_passed':
      return line.part
        ? `${line.story} passed in part: ${line.commit.slice(0, 8)}`
        : `${line.story} passed: ${line.commit.slice(0, 8)}`;
    case 'advised':
      return `${line.story} is tried as ${terminalLine(line.role)}: ${terminalLine(line.instructions, 200)}`;
    case 'attempt_ended':
      return line.status.startsWith('approved') || line.status === 'denied'
        ? undefined
        : `${line.story} ${line.status}${line.details ? `: ${terminalLine(line.details, 200)}` : ''}`;
    case 'story_reopened':
    case 'story_skipped':
    case 'story_accepted':
    case 'story_failed':
      return `${line.story} ${line.type.slice('story_'.length)}: ${terminalLine(line.why, 200)}`;
    case 'story_split':
      return `${line.story} was split into ${line.into.join(', ')}`;
    case 'question_parked':
      return `Waits for you (${line.question.id}): ${terminalLine(withChoices(line.question), 300)}`;
    case 'question_answered':
      return `Answered (${line.id}): ${terminalLine(line.text, 200)}`;
    case 'waiting':
      return `Waiting until ${new Date(line.until).toLocaleTimeString()}: ${terminalLine(line.why, 200)}`;
    case 'steered':
      return line.ignored === undefined
        ? `Steered: ${line.command.kind}`
        : `Ignored: ${line.command.kind}. ${terminalLine(line.ignored, 200)}`;
    case 'finished':
      return `Ended: ${endWords[line.how](line.into === undefined ? '' : ` into ${terminalLine(line.into, 100)}`)}`;
    case 'phase':
      return line.why ? `${phaseWords[line.phase]}: ${terminalLine(line.why, 300)}` : undefined;
    default:
      return undefined;
  }
}

/** Returns a person's stories in waves: those of one wave can run at the same time as far as their dependencies go. */
export function waves(stories: readonly StoryState[]): string[][] {
  const left = new Map(stories.map(({ story }) => [story.id, story]));
  const found: string[][] = [];
  while (left.size > 0) {
    const free = [...left.values()].filter(({ dependsOn }) => dependsOn.every(id => !left.has(id)));
    const wave = (free.length > 0 ? free : [...left.values()]).map(({ id }) => id);
    for (const id of wave) left.delete(id);
    found.push(wave);
  }
  return found;
}
