/**
 * Works through the stories in place, one item at a time: a coder, the story's checks, a reviewer. For a folder without Git, where
 * nothing can be put aside; the files of a plan are all that is kept between two iterations.
 */
import type { AttemptStatus, CheckResult, Story, StoryItem } from '@telos/protocol/plan';
import type { ErrorCode, RunError } from '@telos/protocol/run';
import { shortened } from '@telos/protocol/text';
import type { PlanFolder } from './planFolder.ts';
import { oneLine, parsePrd, tick } from './prdFile.ts';
import { printProgress, progressStart } from './progress.ts';
import type { StepEnd } from './steps.ts';
import { type Verdict, verdictIn } from './stepTools.ts';

/** What a reviewer decided, as verdict.json has it. */
export interface WrittenVerdict {
  approved: boolean;
  /** Of an approval. */
  summary?: string;
  /** Of a denial. */
  reason?: string;
  /** ISO 8601. */
  timestamp: string;
}

export interface IterationResult {
  /** From 1. */
  iteration: number;
  status: AttemptStatus;
  /** What the reviewer said, or what went wrong. */
  details: string;
  timestamp: string;
  verdict?: WrittenVerdict;
}

export interface RalphResult {
  /**
   * True if every box of every story is ticked and every check passed on the work as it is at the end. Without any box, a reviewer must
   * have approved work that was called complete.
   */
  success: boolean;
  iterations: number;
  finalVerdict: WrittenVerdict | null;
  error: string | null;
  iterationResults: readonly IterationResult[];
  /** Denials in a row at the end. */
  denialStreak: number;
  /** Checks that no one allowed to run, as `US-001: unit`, where all else is done. If there are any, `success` is false. */
  checksNotRun: readonly string[];
}

/** The steps of one iteration. */
export interface RalphSteps {
  /** `piece` names what is worked on; the difference is that of all attempts at it. */
  work(
    step: { key: string; piece: string; role: string; words: string; checks: Story['checks'] },
    signal: AbortSignal,
  ): Promise<StepEnd & { difference: string }>;
  /** Returns the results of the checks that may run, up to the first that fails. */
  check(story: Story, signal: AbortSignal): Promise<readonly CheckResult[]>;
  /** Returns the checks of a story that no one allowed to run. */
  notAllowed(story: Story): Story['checks'];
  review(
    step: { key: string; words: string; checks: Story['checks'] },
    signal: AbortSignal,
  ): Promise<StepEnd>;
}

export type RalphEvent =
  | { type: 'iteration_start'; iteration: number; maxIterations: number; story?: string; item?: number }
  | { type: 'check_ended'; iteration: number; check: CheckResult }
  | { type: 'iteration_end'; iteration: number; status: AttemptStatus; details: string };

export interface RalphRequest {
  folder: PlanFolder;
  /** The folder that is worked in. */
  project: PlanFolder;
  steps: RalphSteps;
  maxIterations: number;
  timeoutMs: number;
  onEvent: (event: RalphEvent) => void;
  signal: AbortSignal;
}

/** Says that a plan without boxes is done. An approval has to come with it. */
export const promise = '<promise>COMPLETE</promise>';

/** Denials in a row after which the coder is asked to try another way. */
const escalatesAfter = 3;

/** Runs until everything is done, the iterations are used, or nothing can go on. Throws the abort reason on abort. */
export async function ralphLoop(request: RalphRequest): Promise<RalphResult> {
  const { maxIterations, signal } = request;
  const results: IterationResult[] = [];
  const run: RalphRun = { ...request, streak: 0, denial: undefined, green: new Set() };
  const end = (error: string | null): RalphResult => {
    const checksNotRun = error === null ? notRun(run) : [];
    return {
      success: error === null && checksNotRun.length === 0,
      iterations: results.length,
      finalVerdict: results.findLast(({ verdict }) => verdict)?.verdict ?? null,
      error: error ?? (checksNotRun.length === 0 ? null : notRunText(checksNotRun)),
      iterationResults: results,
      denialStreak: run.streak,
      checksNotRun,
    };
  };
  if (storiesIn(request.folder).length === 0)
    return end(`There are no stories in ${request.folder.path('prds')}. Split the plan first.`);
  await prepare(request);
  for (let iteration = 1; ; iteration++) {
    signal.throwIfAborted();
    const stories = storiesIn(request.folder);
    const isApproved = results.at(-1)?.status === 'approved' || (hasBoxes(stories) && !nextItem(stories));
    const red = isApproved ? await redAtEnd(iteration, stories, run) : undefined;
    if (isApproved && red === undefined) return end(null);
    if (iteration > maxIterations)
      return end(red ?? `Max iterations (${maxIterations}) reached; not everything is done.`);
    const open = storiesIn(request.folder);
    const { fatal, ...result } = await iterate(iteration, nextItem(open), open, run);
    results.push(result);
    await note(result, run);
    if (fatal !== undefined) return end(fatal);
  }
}

/** Returns the checks of all stories that no one allowed to run. */
const notRun = ({ folder, steps }: RalphRun): string[] =>
  storiesIn(folder).flatMap(story => steps.notAllowed(story).map(({ name }) => `${story.id}: ${name}`));

const notRunText = (names: readonly string[]): string =>
  `Not run, as no one allowed their commands: the checks ${names.join(', ')}. Allow commands, and run it again.`;

/**
 * Runs the checks that have not passed since the last work, as a later story may have broken an earlier one. Returns what is wrong, and
 * takes the last tick of that story back, so that it is worked on again.
 */
async function redAtEnd(
  iteration: number,
  stories: readonly Story[],
  run: RalphRun,
): Promise<string | undefined> {
  for (const story of stories) {
    if (run.green.has(story.id)) continue;
    const red = await redOf(story, iteration, run).then(({ red: one }) => one);
    if (!red) continue;
    run.denial = failureOf(red);
    const last = story.items.at(-1)?.number;
    if (last !== undefined) await setTicks(story, [last], false, run.folder);
    return `${story.id} is not done. ${run.denial}`;
  }
  return undefined;
}

/** Runs the checks of a story, and notes if none of them failed. */
async function redOf(
  story: Story,
  iteration: number,
  { steps, onEvent, green, signal }: RalphRun,
  ofStep = signal,
): Promise<{ done: readonly CheckResult[]; red: CheckResult | undefined }> {
  const done = await steps.check(story, ofStep);
  for (const check of done) onEvent({ type: 'check_ended', iteration, check });
  const red = done.find(({ exitCode }) => exitCode !== 0);
  if (!red) green.add(story.id);
  return { done, red };
}

const failureOf = (red: CheckResult): string =>
  `The check ${red.name} failed (${codeOf(red)}):\n${red.output}`;

interface RalphRun extends RalphRequest {
  streak: number;
  /** The last denial's reason. */
  denial: string | undefined;
  /** Stories whose checks have passed since the last work. */
  green: Set<string>;
}

/** Returns the stories of a plan in the order of their files. */
export const storiesIn = (folder: PlanFolder): Story[] =>
  folder.readPrds().map(({ path, text }) => parsePrd(path, text).story);

const hasBoxes = (stories: readonly Story[]): boolean => stories.some(({ items }) => items.length > 0);

/** Returns the first box that is not ticked, in the order of files and boxes. */
export function nextItem(stories: readonly Story[]): { story: Story; item: StoryItem } | undefined {
  for (const story of stories) {
    const item = story.items.find(({ ticked }) => !ticked);
    if (item) return { story, item };
  }
  return undefined;
}

/** Returns how far a story is: its boxes, those that are ticked, and the percentage with one decimal. */
export function storyProgress(items: readonly StoryItem[]): { total: number; done: number; percent: number } {
  const [total, done] = [items.length, items.filter(({ ticked }) => ticked).length];
  return { total, done, percent: total === 0 ? 0 : Math.round((done / total) * 1000) / 10 };
}

type Ended = Omit<IterationResult, 'iteration' | 'timestamp'> & { fatal?: string };

async function iterate(
  iteration: number,
  next: ReturnType<typeof nextItem>,
  stories: readonly Story[],
  run: RalphRun,
): Promise<IterationResult & { fatal?: string }> {
  const { folder, maxIterations, timeoutMs, onEvent, signal } = run;
  const about = next && { story: next.story.id, item: next.item.number };
  onEvent({ type: 'iteration_start', iteration, maxIterations, ...about });
  await folder.remove('verdict.json');
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error('The iteration took too long.')), timeoutMs);
  let ended: Ended;
  try {
    ended = await attempt(iteration, next, stories, run, AbortSignal.any([signal, limit.signal]));
  } catch (error) {
    signal.throwIfAborted();
    if (!limit.signal.aborted) throw error;
    ended = timedOut(timeoutMs);
  } finally {
    clearTimeout(timer);
  }
  signal.throwIfAborted();
  if (limit.signal.aborted && ended.verdict === undefined) ended = timedOut(timeoutMs);
  const timestamp = ended.verdict?.timestamp ?? new Date().toISOString();
  return { iteration, timestamp, ...ended };
}

const timedOut = (ms: number): Ended => ({
  status: 'timeout',
  details: `The iteration took longer than ${ms / 1000} seconds.`,
});

async function attempt(
  iteration: number,
  next: ReturnType<typeof nextItem>,
  stories: readonly Story[],
  run: RalphRun,
  signal: AbortSignal,
): Promise<Ended> {
  const { folder, steps } = run;
  const key = `${next?.story.id ?? 'plan'}.a${iteration}`;
  const checks = next?.story.checks ?? [];
  const piece = next ? `${next.story.id}.${next.item.number}` : 'plan';
  const role = next?.story.role ?? 'coder';
  run.green.clear();
  const work = await steps.work(
    { key: `${key}.coder`, piece, role, words: workWords(next, folder, run), checks },
    signal,
  );
  if (stopped(work)) return failed(work.error);
  const { done, red } = next ? await redOf(next.story, iteration, run, signal) : { done: [], red: undefined };
  if (red) return denied(failureOf(red), run);
  const words = reviewWords(next, run, done, work.difference);
  const review = await steps.review({ key: `${key}.reviewer`, words, checks }, signal);
  if (stopped(review)) return failed(review.error);
  const said = verdictIn(review.answers);
  if (!said) return { status: 'no-verdict', details: 'The reviewer did not give a verdict.' };
  const verdict = writtenVerdict(said);
  await folder.write('verdict.json', `${JSON.stringify(verdict, undefined, 2)}\n`);
  if (!said.approved) {
    await keepLearned(said.text, run.project);
    return { ...denied(said.text, run), verdict };
  }
  run.streak = 0;
  run.denial = undefined;
  if (next) await setTicks(next.story, [next.item.number, ...said.items], true, folder);
  const isDone = hasBoxes(stories) ? !nextItem(storiesIn(folder)) : work.text.includes(promise);
  return { status: isDone ? 'approved' : 'approved-partial', details: said.text || 'Approved.', verdict };
}

const codeOf = ({ exitCode }: CheckResult): string =>
  exitCode === null ? 'it ran out of time' : `exit code ${exitCode}`;

/** Whether a step has nothing that could be looked at. One that used all of its rounds has: checks and the reviewer decide on it. */
const stopped = ({ outcome }: StepEnd): boolean => outcome !== 'completed' && outcome !== 'round_limit';

function denied(reason: string, run: RalphRun): Ended {
  run.streak++;
  run.denial = reason || noReason;
  return { status: 'denied', details: run.denial };
}

/** Errors that the next iteration would only meet again. */
const lasting: readonly ErrorCode[] = ['auth', 'rate_limit', 'budget', 'config', 'no_match'];

function failed(error: RunError | undefined): Ended {
  const details = error?.message ?? 'The step did not end by itself.';
  const isLasting = error && (lasting.includes(error.code) || /refused the request \(40[24]\)/.test(details));
  return { status: 'error', details, ...(isLasting && { fatal: details }) };
}

/** Returns a verdict as verdict.json has it. */
export const writtenVerdict = ({ approved, text }: Verdict, now = new Date()): WrittenVerdict => ({
  approved,
  ...(approved ? { summary: text } : { reason: text || noReason }),
  timestamp: now.toISOString(),
});

const noReason = 'No reason provided';

/** A person may have edited the file meanwhile, so it is read again. */
async function setTicks(
  { prd }: Story,
  items: readonly number[],
  ticked: boolean,
  folder: PlanFolder,
): Promise<void> {
  const text = folder.read(...prd.split('/'));
  if (text === undefined) return;
  const next = items.reduce((sofar, number) => tick(sofar, number, ticked), text);
  if (next !== text) await folder.write(prd, next);
}

/** Returns the coder's prompt: the box, its story, and what the last attempts came to. */
function workWords(
  next: ReturnType<typeof nextItem>,
  folder: PlanFolder,
  { streak, denial }: RalphRun,
): string {
  const parts = next
    ? [
        `Work on criterion ${next.item.number} of the story ${next.story.id}: ${next.item.text}`,
        storyText(next.story, folder),
        'Do this criterion and what it needs, and nothing else. Others follow.',
      ]
    : [
        'Work on the stories of this plan. They have no boxes, so choose what comes next from what is there.',
        ...folder.readPrds().map(({ path, text }) => `<story file="${path}">\n${text}\n</story>`),
        `When everything is built, end your answer with ${promise}.`,
      ];
  if (denial !== undefined)
    parts.push(`The reviewer denied the last attempt:\n<denial>\n${denial}\n</denial>`);
  if (streak >= escalatesAfter)
    parts.push(
      `These are ${streak} consecutive denials, so what you did does not work. Take the denial word for word. Do less: only what it asks for, in the simplest way. Do not repeat an approach that was denied.`,
    );
  return parts.join('\n\n');
}

const storyText = (story: Story, folder: PlanFolder): string =>
  `<story id="${story.id}">\n${folder.read(...story.prd.split('/')) ?? story.title}\n</story>`;

/** Returns the reviewer's prompt. What the coder says of its work is not in it. */
function reviewWords(
  next: ReturnType<typeof nextItem>,
  { folder, steps }: RalphRun,
  checks: readonly CheckResult[],
  difference: string,
): string {
  const about = next
    ? [
        `Review criterion ${next.item.number} of the story ${next.story.id}: ${next.item.text}`,
        storyText(next.story, folder),
      ]
    : folder.readPrds().map(({ path, text }) => `<story file="${path}">\n${text}\n</story>`);
  const results = checks.map(
    check =>
      `<check name="${check.name}" result="${codeOf(check)}">\n${check.output}${check.suspicious ? `\n(${check.suspicious})` : ''}\n</check>`,
  );
  const skipped = next
    ? steps
        .notAllowed(next.story)
        .map(({ name }) => `<check name="${name}" result="not run: no one allowed it" />`)
    : [];
  return [
    ...about,
    `<difference>\n${difference || 'No file was changed.'}\n</difference>`,
    ...results,
    ...skipped,
    'Read what was built. Call approve if the criterion is met, with the numbers of further criteria in items if you verified those too. Call deny with what is wrong otherwise.',
  ].join('\n\n');
}

const progressFile = 'progress.txt';
const learningsFile = 'AGENTS.md';
const learningsHeading = '## Learned while building';
/** Characters of the file up to which something is added, and of one learning. */
const mostLearned = 8 * 1024;
const longestLearning = 400;

/** Puts the files in place that a loop keeps its memory in. Those that are there stay as they are. */
async function prepare({ folder, project }: RalphRequest): Promise<void> {
  if (folder.read(progressFile) === undefined) await folder.write(progressFile, progressStart);
  if (project.read(learningsFile) === undefined)
    await project.write(learningsFile, `# Notes for agents\n\n${learningsHeading}\n`);
}

async function note(
  { iteration, status, details, timestamp }: IterationResult,
  run: RalphRun,
): Promise<void> {
  const { folder, onEvent } = run;
  const section = printProgress({ iteration, status, details, at: timestamp });
  await folder.write(progressFile, `${folder.read(progressFile) ?? progressStart}${section}`);
  onEvent({ type: 'iteration_end', iteration, status, details });
}

/**
 * Adds what was learned to the file that a loop has made itself; one that a person wrote is theirs. Returns what became of it, in a
 * sentence.
 */
export async function keepLearned(line: string, project: PlanFolder): Promise<string> {
  const text = project.read(learningsFile) ?? '';
  if (!text.includes(learningsHeading))
    return `Not noted: ${learningsFile} is the person's, and has no section "${learningsHeading.slice(3)}". Say it at the end of your answer.`;
  const entry = `- ${shortened(oneLine(line), longestLearning)}`;
  if (text.split('\n').includes(entry)) return `${learningsFile} says that already.`;
  if (text.length > mostLearned)
    return `Not noted: ${learningsFile} has its ${mostLearned} characters. Say it at the end of your answer.`;
  await project.write(learningsFile, `${text.trimEnd()}\n${entry}\n`);
  return `Noted in ${learningsFile}.`;
}
