/** Folds what a plan's journal says of one story, and puts stories into their order. Reads no disk and knows no clock. */
import type {
  AttemptStatus,
  CheckResult,
  JournalLine,
  ParkedQuestion,
  Story,
  StoryItem,
  StoryStatus,
} from '@telos/protocol/plan';
import type { RunOutcome, Usage } from '@telos/protocol/run';
import { addedUsage } from '@telos/protocol/usage';

/** A commit outside the plan's branch that keeps the files of an attempt, and its tree. */
export interface KeptTree {
  commit: string;
  tree: string;
}

/** An attempt that has begun and not ended. A runner that takes over goes on with it from what is known. */
export interface OpenAttempt {
  attempt: number;
  item: number;
  slot: number;
  /** The tip of the plan's branch when it began. */
  parent: string;
  role: string;
  /** How the step that does the work ended. Undefined while it works. */
  worked?: RunOutcome;
  snapshot?: KeptTree;
  /** Checks that ran on the snapshot's tree, or on the tree that it was merged to. */
  checks: readonly (CheckResult & { tree: string })[];
  /** The guard found a change of what checks the work, and let it pass. */
  isJustified: boolean;
  verdict?: { tree: string; approved: boolean; text: string; items: readonly number[] };
  /** Its commit is on the branch; only its end is not in the journal yet. */
  commit?: string;
  /** It is worked on elsewhere. */
  job?: { key: string; worker: string };
}

/** Whether a step that ended so has left work behind. One that is out of rounds may have done enough. */
export const isWorkDone = (outcome: RunOutcome | undefined): boolean =>
  outcome === 'completed' || outcome === 'round_limit';

/** The end of an attempt whose files are those that it began with. */
export const noChange = { status: 'no-change', details: 'No file was changed.' } as const;

export interface StoryState {
  story: Story;
  status: StoryStatus;
  /** Number of the last attempt; 0 before the first. */
  attempts: number;
  /** Attempts that count against the limit. */
  charged: number;
  /** Denials since the last approval. Attempts that ran out of time change nothing. */
  streak: number;
  /** Attempts in a row that changed no file. */
  unchanged: number;
  lastDenial?: string;
  /** How the last attempt ended. */
  lastStatus?: AttemptStatus;
  /** Boxes that are done by an approval, and those that a person said are done. */
  passed: ReadonlySet<number>;
  accepted: ReadonlySet<number>;
  /** The commit on the plan's branch that closed the story. */
  commit?: string;
  /** All of its commits there, with the boxes that each closed. */
  commits: readonly { commit: string; items: readonly number[] }[];
  /** It met a conflict, so it runs while no other does. */
  isAlone: boolean;
  open?: OpenAttempt;
  /** Why it is skipped, failed or was reopened. */
  why?: string;
  /** What its steps have used, over all attempts. */
  usage?: Usage;
  /** A person wants it split, and that is not done yet. */
  isToSplit?: boolean;
  /** The stories that it was split into. They stand for it where others depend on it. */
  into?: readonly string[];
}

/** Statuses of attempts that count against the limit. What a crash or a provider did costs nothing. */
const charges: readonly AttemptStatus[] = ['denied', 'no-verdict', 'timeout', 'no-change'];

/** Empty diffs in a row after which only a person can say how to go on. */
const mostUnchanged = 2;

/** What a story is without its file. */
export interface Progress extends Omit<StoryState, 'story' | 'status'> {
  passed: Set<number>;
  accepted: Set<number>;
  end?: 'skipped' | 'failed' | 'accepted' | 'passed';
}

/** Whether nothing more is done for a story with this status, unless a person says so. */
export const isOver = (status: StoryStatus): boolean => ['passed', 'accepted', 'skipped'].includes(status);

export const noProgress = (): Progress => ({
  attempts: 0,
  charged: 0,
  streak: 0,
  unchanged: 0,
  passed: new Set(),
  accepted: new Set(),
  commits: [],
  isAlone: false,
});

export function foldStory(story: Progress, line: JournalLine): void {
  switch (line.type) {
    case 'attempt_started':
      story.attempts = Math.max(story.attempts, line.attempt);
      story.open = { ...picked(line), checks: [], isJustified: false };
      break;
    case 'story_passed':
      passStory(story, line);
      break;
    case 'attempt_ended':
      endAttempt(story, line);
      break;
    case 'story_reopened':
      reopen(story, line.items, line.why);
      break;
    case 'story_skipped':
    case 'story_failed':
      story.end = line.type === 'story_skipped' ? 'skipped' : 'failed';
      story.why = line.why;
      delete story.open;
      delete story.isToSplit;
      break;
    case 'story_accepted':
      for (const item of line.items ?? []) story.accepted.add(item);
      if (line.items === undefined) {
        story.end = 'accepted';
        delete story.open;
      }
      break;
    case 'story_split':
      story.end = 'skipped';
      story.why = `It was split into ${line.into.join(', ')}.`;
      story.into = line.into;
      delete story.open;
      delete story.isToSplit;
      break;
    case 'step_ended':
      if (line.usage) story.usage = addedUsage(story.usage, line.usage);
      if (story.open) foldOpen(story.open, line);
      break;
    default:
      if (story.open) foldOpen(story.open, line);
  }
}

function picked(line: Extract<JournalLine, { type: 'attempt_started' }>) {
  const { attempt, item, slot, parent, role } = line;
  return { attempt, item, slot, parent, role };
}

/** Folds what is known of the attempt that is open. */
function foldOpen(open: OpenAttempt, line: JournalLine): void {
  if ('attempt' in line && line.attempt !== open.attempt) return;
  switch (line.type) {
    case 'job_given':
      open.job = { key: line.job, worker: line.worker };
      break;
    case 'step_ended':
      if (line.step !== 'reviewer' && line.step !== 'orchestrator') open.worked = line.outcome;
      break;
    case 'snapshot':
      open.snapshot = { commit: line.commit, tree: line.tree };
      open.checks = [];
      delete open.verdict;
      break;
    case 'check_ended': {
      const { name, exitCode, ms, output, tree, suspicious, flaky } = line;
      const others = open.checks.filter(check => check.name !== name || check.tree !== tree);
      const check = {
        ...{ name, exitCode, ms, output, tree },
        ...(suspicious !== undefined && { suspicious }),
        ...(flaky !== undefined && { flaky }),
      };
      open.checks = [...others, check];
      break;
    }
    case 'tamper':
      open.isJustified = line.decision !== 'denied';
      break;
    case 'verdict': {
      const { tree, approved, text, items } = line;
      open.verdict = { tree, approved, text, items };
      break;
    }
  }
}

function passStory(story: Progress, line: Extract<JournalLine, { type: 'story_passed' }>): void {
  for (const item of line.items) story.passed.add(item);
  story.commits = [...story.commits, { commit: line.commit, items: line.items }];
  story.streak = 0;
  story.unchanged = 0;
  delete story.why;
  if (story.open && story.open.attempt === line.attempt) story.open.commit = line.commit;
  if (line.part) return;
  story.commit = line.commit;
  story.end = 'passed';
}

function endAttempt(story: Progress, line: Extract<JournalLine, { type: 'attempt_ended' }>): void {
  if (story.open && story.open.attempt !== line.attempt) return;
  delete story.open;
  story.lastStatus = line.status;
  if (charges.includes(line.status)) story.charged++;
  if (line.status === 'conflict') story.isAlone = true;
  if (line.status === 'no-change') story.unchanged++;
  else if (line.status !== 'interrupted' && line.status !== 'cancelled') story.unchanged = 0;
  if (line.status === 'denied') {
    story.streak++;
    story.lastDenial = line.details;
  }
  if (line.status === 'approved' || line.status === 'approved-partial') story.streak = 0;
}

/** A person, or the loss of its commit, brings a story back. What counted against it is forgotten. */
function reopen(story: Progress, items: readonly number[] | undefined, why: string): void {
  const lost = items ?? [...story.passed, ...story.accepted];
  for (const item of lost) {
    story.passed.delete(item);
    story.accepted.delete(item);
  }
  story.commits = items ? story.commits.filter(one => one.items.some(item => !lost.includes(item))) : [];
  story.charged = 0;
  story.streak = 0;
  story.unchanged = 0;
  story.isAlone = false;
  story.why = why;
  for (const key of ['end', 'commit', 'open', 'isToSplit', 'into'] as const) delete story[key];
}

export function statesOf(
  stories: readonly Story[],
  progress: ReadonlyMap<string, Progress>,
  questions: readonly ParkedQuestion[],
): StoryState[] {
  const ends = new Map<string, StoryStatus>();
  const parts = new Map<string, readonly string[]>();
  const states = stories.map(story => {
    const { end, ...known } = progress.get(story.id) ?? noProgress();
    const state = { ...known, story, status: endOf({ ...known, story }, end) };
    ends.set(story.id, state.status);
    if (known.into && known.into.length > 0) parts.set(story.id, known.into);
    return state;
  });
  // A part may have been split again. It never has the id of what it was split from.
  const isDone = (id: string): boolean =>
    parts.get(id)?.every(isDone) ?? ['passed', 'accepted'].includes(ends.get(id) ?? '');
  return states.map(state => {
    if (state.status !== 'ready') return state;
    const asks = questions.some(question => question.story === state.story.id);
    if (asks || state.unchanged >= mostUnchanged) return { ...state, status: 'needs_you' };
    if (state.open) return { ...state, status: stageOf(state.open) };
    return state.story.dependsOn.every(isDone) ? state : { ...state, status: 'blocked' };
  });
}

/** Returns the boxes of a story that neither an approval nor a person closed, in their order. */
export const openItems = ({ story, passed, accepted }: Omit<StoryState, 'status'>): StoryItem[] =>
  story.items.filter(({ number }) => !passed.has(number) && !accepted.has(number));

/** Returns `ready` for a story that is not over. */
function endOf(state: Omit<StoryState, 'status'>, end: Progress['end']): StoryStatus {
  if (end === 'skipped' || end === 'failed' || end === 'accepted') return end;
  const left = openItems(state).length;
  if (end === 'passed') return left === 0 ? 'passed' : 'ready';
  return state.story.items.length > 0 && left === 0 && state.accepted.size > 0 ? 'accepted' : 'ready';
}

function stageOf({ snapshot, checks, verdict, worked }: OpenAttempt): StoryStatus {
  if (verdict?.approved)
    return checks.some(({ tree }) => tree !== verdict.tree) ? 'integrating' : 'committing';
  if (snapshot)
    return checks.length > 0 && checks.every(({ exitCode }) => exitCode === 0) ? 'reviewing' : 'checking';
  return isWorkDone(worked) ? 'snapshot' : 'working';
}

/**
 * Returns the stories so that each stands behind those it depends on; otherwise in the order of `preferred`, then of their files.
 * Stories that wait for each other in a circle keep the order of their files at the end.
 */
export function inOrder(stories: readonly Story[], preferred: readonly string[] = []): Story[] {
  const files = [...stories].sort((one, other) => (one.prd < other.prd ? -1 : Number(one.prd > other.prd)));
  const left = preferredFirst(files, preferred);
  const ids = new Set(left.map(({ id }) => id));
  const ordered: Story[] = [];
  const placed = new Set<string>();
  while (left.length > 0) {
    const index = left.findIndex(({ dependsOn }) => dependsOn.every(id => placed.has(id) || !ids.has(id)));
    const [story] = left.splice(Math.max(0, index), 1);
    if (!story) break;
    ordered.push(story);
    placed.add(story.id);
  }
  return ordered;
}

/** Puts the stories that a person ordered into their order, at the places that these stories have. */
function preferredFirst(stories: readonly Story[], preferred: readonly string[]): Story[] {
  const wanted = preferred.flatMap(id => stories.find(story => story.id === id) ?? []);
  const next = wanted[Symbol.iterator]();
  return stories.map(story => (wanted.includes(story) ? (next.next().value ?? story) : story));
}
