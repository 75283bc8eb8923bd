/** Reads what ran while nobody looked, and what needs the user now. Starts nothing and writes nothing. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { RunHistory, type RunSummary, titleOf } from '@telos/engine/records';
import { needsPerson, type Schedule, Schedules } from '@telos/engine/schedule';
import type { Telos } from '@telos/engine/telos';
import { type ChangeStore, hasUndo } from '@telos/engine/undo';
import { MachineSeal, readRunner } from '@telos/plans/run';
import { answeredIds, lookAt, PlanFolder, type PlanState, readJournal } from '@telos/plans/state';
import type { FinishKind, ParkedQuestion, PlanPhase } from '@telos/protocol/plan';

/** The files of one run that can still be undone. */
export interface TodayChange {
  runId: string;
  /** Absolute paths. */
  files: readonly string[];
}

interface EntryFacts {
  /** ISO 8601, UTC: when it last did something. */
  at: string;
  /** In US dollars, of its runs since then; undefined where no run has one. */
  cost?: number;
  /** Number of its runs whose cost is unknown. */
  unknownCosts: number;
  changes: readonly TodayChange[];
}

/** A phase of a plan; `interrupted` if it was at work and its runner is gone. */
export type ShownPhase = PlanPhase | 'interrupted';

/** Something that ran. */
export type TodayEntry = EntryFacts &
  (
    | { kind: 'schedule'; schedule: Schedule }
    | {
        kind: 'plan';
        name: string;
        repo: string;
        phase: ShownPhase;
        why?: string;
        /** A process works on it. */
        isLive: boolean;
        finished?: FinishKind;
        passed: number;
        stories: number;
        /** The commands of the checks by which its stories passed. */
        checks: readonly string[];
      }
    | { kind: 'run'; run: RunSummary; title: string }
  );

/** Something that waits for the user. */
export type TodayDecision =
  | { kind: 'question'; plan: string; repo: string; question: ParkedQuestion }
  /** The plan stands still until the user goes on with it. */
  | { kind: 'plan'; plan: string; repo: string; phase: ShownPhase; why?: string }
  /** It asked while no one was there, did not begin, or paused itself. */
  | { kind: 'schedule'; schedule: Schedule };

export interface TodayPage {
  /** ISO 8601, UTC. */
  since: string;
  /** The latest first. */
  entries: readonly TodayEntry[];
  decisions: readonly TodayDecision[];
  /** Of all runs since then, those of the user's own conversations included. */
  spent: { known: number; unknownRuns: number };
  /** Runs that the user began: they are counted, and not listed. */
  ownRuns: number;
  /** What could not be read, in sentences. */
  problems: readonly string[];
}

export interface TodayOptions {
  since: Date;
  /** Folders whose plans count besides those in which runs were stored. Absolute. */
  folders: readonly string[];
}

/** Doors through which runs begin that the user does not watch. */
const unwatched: ReadonlySet<RunSummary['door']> = new Set([
  'schedule',
  'plan',
  'discord',
  'mcp',
  'acp',
  'other',
]);

/** In which a runner works on a plan. */
const atWork: readonly PlanPhase[] = ['running', 'waiting', 'finishing'];

/** In which a plan that no runner works on waits for its user. */
const standing: ReadonlySet<PlanPhase> = new Set([
  'plan_review',
  'stories_review',
  'needs_you',
  'failed',
  'paused',
  'stopped',
  'done',
  // Without a runner: it was interrupted.
  ...atWork,
]);

/** Returns the page. What cannot be read is named in it. Throws the error of the file system about the folder of stored runs. */
export async function readToday(telos: Telos, { since, folders }: TodayOptions): Promise<TodayPage> {
  const { config, changes } = telos;
  const from = since.toISOString();
  const history = new RunHistory(config.dataDir);
  const all = await history.list();
  const recent = all.filter(({ startedAt, isRecording }) => startedAt >= from && !isRecording);
  const { schedules, problems } = new Schedules(config.dataDir).list();
  const plans = await plansIn(
    [...folders, ...all.flatMap(({ folder, isRecording }) => (isRecording ? [] : (folder ?? [])))],
    config.dataDir,
  );
  const entries: TodayEntry[] = [];
  for (const schedule of schedules) {
    const { last } = schedule;
    if (!last || (last.endedAt ?? last.startedAt) < from) continue;
    const runs = recent.filter(({ runId }) => runId === last.runId);
    const at = last.endedAt ?? last.startedAt;
    entries.push({ kind: 'schedule', schedule, at, ...(await factsOf(runs, changes)) });
  }
  for (const { name, repo, state, at, isLive } of plans.found) {
    if (at < from) continue;
    const runs = recent.filter(({ door, plan }) => door === 'plan' && plan === name);
    entries.push({
      kind: 'plan',
      name,
      repo,
      at,
      isLive,
      ...planFacts(state, isLive),
      ...(await factsOf(runs, changes)),
    });
  }
  const shown = new Set(
    entries.flatMap(entry => (entry.kind === 'schedule' ? (entry.schedule.last?.runId ?? []) : [])),
  );
  for (const run of recent) {
    if (!unwatched.has(run.door) || run.door === 'plan' || shown.has(run.runId)) continue;
    const facts = await factsOf([run], changes);
    entries.push({ kind: 'run', run, title: titleOf(run), at: run.startedAt, ...facts });
  }
  return {
    since: from,
    entries: entries.sort((one, other) => (one.at < other.at ? 1 : -1)),
    decisions: [...plans.found.flatMap(decisionsOf), ...schedules.filter(needsPerson).map(scheduleDecision)],
    spent: spentBy(recent),
    ownRuns: recent.filter(({ door }) => !unwatched.has(door)).length,
    problems: [
      ...problems,
      ...plans.problems,
      ...history.unread.map(file => `${file} is not the file of a run.`),
    ],
  };
}

const scheduleDecision = (schedule: Schedule): TodayDecision => ({ kind: 'schedule', schedule });

interface FoundPlan {
  name: string;
  repo: string;
  state: PlanState;
  at: string;
  isLive: boolean;
  /** Ids of its questions whose answers wait for a runner. */
  answered: ReadonlySet<string>;
}

/** Returns the plans in these folders and the folders above them, each once, with those that cannot be read. */
async function plansIn(
  folders: readonly string[],
  dataDir: string,
): Promise<{ found: FoundPlan[]; problems: string[] }> {
  const seal = new MachineSeal(dataDir);
  const found: FoundPlan[] = [];
  const problems: string[] = [];
  for (const repo of new Set(folders.flatMap(folder => projectOf(folder) ?? []))) {
    for (const name of PlanFolder.list(repo)) {
      try {
        const folder = PlanFolder.open(repo, name, seal);
        const { state } = await lookAt(folder);
        // Lines that came with the repository do not count: without one of this machine, the plan is not the user's.
        const at = (await readJournal(folder.journal, seal)).at(-1)?.ts;
        if (at !== undefined)
          found.push({
            name,
            repo,
            state,
            at,
            isLive: readRunner(folder) !== undefined,
            answered: answeredIds(folder),
          });
      } catch (error) {
        if (!(error instanceof TelosError)) throw error;
        problems.push(`${name}: ${error.message}`);
      }
    }
  }
  return { found, problems };
}

/** Returns the nearest folder from here up that has plans; undefined if none has. */
function projectOf(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, '.telos', 'plans'))) return at;
    if (dirname(at) === at) return undefined;
  }
}

const shownPhase = (phase: PlanPhase, isLive: boolean): ShownPhase =>
  !isLive && atWork.includes(phase) ? 'interrupted' : phase;

function planFacts({ phase, phaseWhy, finished, stories }: PlanState, isLive: boolean) {
  const passed = stories.filter(({ status }) => status === 'passed');
  return {
    phase: shownPhase(phase, isLive),
    ...(phaseWhy !== undefined && { why: phaseWhy }),
    ...(finished && { finished: finished.how }),
    passed: passed.length,
    stories: stories.length,
    checks: [...new Set(passed.flatMap(({ story }) => story.checks.map(({ command }) => command)))],
  };
}

function decisionsOf({ name, repo, state, answered, isLive }: FoundPlan): TodayDecision[] {
  const { phase, phaseWhy, finished, questions } = state;
  if (finished) return [];
  const asked = questions
    .filter(({ id }) => !answered.has(id))
    .map((question): TodayDecision => ({ kind: 'question', plan: name, repo, question }));
  if (asked.length > 0 || isLive || !standing.has(phase)) return asked;
  return [
    {
      kind: 'plan',
      plan: name,
      repo,
      phase,
      ...(phaseWhy !== undefined && { why: phaseWhy }),
    },
  ];
}

/** Reads what the runs cost, and which of their files can still be undone. */
async function factsOf(
  runs: readonly RunSummary[],
  store: ChangeStore,
): Promise<Pick<EntryFacts, 'cost' | 'unknownCosts' | 'changes'>> {
  const changes: TodayChange[] = [];
  for (const { runId } of runs) {
    if ((await store.find(runId)).length === 0) continue;
    const kept = await store.of(runId);
    if (kept.undoneAt !== undefined || !hasUndo(kept)) continue;
    changes.push({ runId, files: kept.files.filter(({ isUndone }) => !isUndone).map(({ path }) => path) });
  }
  const { known, unknownRuns } = spentBy(runs);
  return { ...(runs.length > unknownRuns && { cost: known }), unknownCosts: unknownRuns, changes };
}

function spentBy(runs: readonly RunSummary[]): TodayPage['spent'] {
  const costs = runs.map(({ usage }) => usage?.cost ?? 'unknown');
  return {
    known: costs.reduce<number>((sum, cost) => sum + (typeof cost === 'number' ? cost : 0), 0),
    unknownRuns: costs.filter(cost => typeof cost !== 'number').length,
  };
}
