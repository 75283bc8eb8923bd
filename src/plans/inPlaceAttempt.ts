/** Has one box of a story built, checked and reviewed in the folder itself, where nothing can be put aside. */

import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { reasonOf, TelosError } from '@telos/engine/errors';
import type { AttemptStatus, CheckResult, PlanCheck, Story, StoryItem } from '@telos/protocol/plan';
import type { ErrorCode, RunError } from '@telos/protocol/run';
import { failureText, reviewWords, type WorkWords, workWords } from './attemptWords.ts';
import { LookedCheckBox } from './checkLook.ts';
import { runCheck, runChecks } from './checks.ts';
import { keepLearned } from './learnings.ts';
import type { PlanFolder } from './planFolder.ts';
import { parsePrd, tick } from './prdFile.ts';
import { placeText } from './roles.ts';
import { type StepCall, type StepEnd, stepOfRole } from './steps.ts';
import { verdictIn, type WrittenVerdict, writtenVerdict } from './stepTools.ts';
import { isWorkDone } from './storyState.ts';
import { WorkDifference } from './workDifference.ts';

export interface InPlaceParts {
  folder: PlanFolder;
  /** The folder that is worked in. */
  project: PlanFolder;
  config: Config;
  /** Commands of checks that the user accepted. */
  accepted: ReadonlySet<string>;
  /** Runs a step in the project. */
  step: (call: Omit<StepCall, 'plan' | 'workingDir'>, signal: AbortSignal) => Promise<StepEnd>;
  onCheck: (check: CheckResult) => void;
}

/** What an attempt comes to. `fatal` is an error that the next one would only meet again. */
export interface InPlaceEnd {
  status: AttemptStatus;
  details: string;
  verdict?: WrittenVerdict;
  fatal?: TelosError;
}

/** What an attempt is about: the story as it stands, its text, the box if there is one, and a line for each of the others. */
export interface InPlacePiece extends Pick<WorkWords, 'state' | 'body' | 'others'> {
  item: StoryItem | undefined;
}

/** Says that a plan without boxes is done. An approval has to come with it. */
const promise = '<promise>COMPLETE</promise>';
const onlyThis = 'Do this one criterion and what it needs, and nothing else. The others of the story follow.';
const untilDone = `The stories have no boxes, so choose what comes next from what is there. When everything is built, end your answer with ${promise}.`;

/** Files of a plan and of its notes. No step and no check changes them. */
const planFiles = ['plan.md', 'prds', 'progress.txt', 'verdict.json', 'prd.json', 'AGENTS.md', '.telos'];

export class InPlaceAttempts {
  readonly #parts: InPlaceParts;
  readonly #box: LookedCheckBox;
  readonly #difference: WorkDifference;
  readonly #common: Pick<StepCall, 'closed' | 'alsoReadable'>;
  /** Files of the stories whose checks have passed since the last work. */
  readonly #green = new Set<string>();

  constructor(parts: InPlaceParts) {
    const { folder, project, config } = parts;
    const closed = [project.dir, folder.dir].flatMap(dir => planFiles.map(name => join(dir, name)));
    this.#parts = parts;
    // They run what models have written, and nothing was tried here before the work: none of them leaves the box.
    this.#box = new LookedCheckBox(config, project.dir, closed);
    this.#difference = new WorkDifference(config, project.dir, closed);
    this.#common = { closed, ...(folder.dir !== project.dir && { alsoReadable: [folder.dir] }) };
  }

  /** Throws TelosError for what no attempt can mend, such as a sandbox that is required and does not work. */
  async run(key: string, piece: InPlacePiece, signal: AbortSignal): Promise<InPlaceEnd> {
    const { project, config } = this.#parts;
    const { item, ...about } = piece;
    const { story } = about.state;
    const words = {
      ...about,
      goal: '',
      open: item ? [item] : [],
      checks: story.checks,
      advice: '',
      place: await placeText(project.dir, config),
    };
    const checks = this.#allowed(story);
    this.#green.clear();
    if (checks.length > 0) await this.#box.works();
    this.#difference.begin(`${story.id}.${item?.number}`);
    const asked = workWords({ ...words, said: [], instructions: item ? onlyThis : untilDone });
    const work = await this.#build(`${key}.coder`, story, asked, signal);
    const diff = (await this.#difference.after(work.runId)) || 'No file was changed.';
    if (!isWorkDone(work.outcome)) return failed(work.error);
    const { results, red } = await this.check(story, signal);
    if (red) return { status: 'denied', details: failureText(red) };
    const toReview = reviewWords({ ...words, results, diff, allowed: [] });
    const review = await this.#review(`${key}.reviewer`, checks, toReview, signal);
    if (!isWorkDone(review.outcome)) return failed(review.error);
    return this.#judge(story, item, work.text.includes(promise), review);
  }

  #build(key: string, { role, checks }: Story, words: string, signal: AbortSignal): Promise<StepEnd> {
    const { project, step } = this.#parts;
    const learn = (note: string): Promise<string> =>
      keepLearned(note, project).catch(error => `Not noted: ${reasonOf(error)}`);
    const commands = this.#allowed({ checks }).map(({ command }) => command);
    const call = { ...this.#common, ...stepOfRole(role), key, words, commands, ports: { learn } };
    return step({ ...call, onEvent: event => this.#difference.note(event) }, signal);
  }

  #review(key: string, checks: PlanCheck[], words: string, signal: AbortSignal): Promise<StepEnd> {
    const { config, step } = this.#parts;
    const runAgain = (check: PlanCheck, ofCall: AbortSignal): Promise<CheckResult> =>
      runCheck(check, this.#place, config, ofCall);
    return step(
      { ...this.#common, name: 'reviewer', key, words, ports: { checks, runCheck: runAgain } },
      signal,
    );
  }

  /** Does what the verdict of a review says. */
  async #judge(
    story: Story,
    item: StoryItem | undefined,
    isPromised: boolean,
    { answers }: StepEnd,
  ): Promise<InPlaceEnd> {
    const { folder, project } = this.#parts;
    const said = verdictIn(answers);
    if (!said) return { status: 'no-verdict', details: 'The reviewer did not give a verdict.' };
    const verdict = writtenVerdict(said);
    await folder.write('verdict.json', `${JSON.stringify(verdict, undefined, 2)}\n`);
    if (!said.approved) {
      await keepLearned(said.text, project);
      return { status: 'denied', details: verdict.reason ?? '', verdict };
    }
    if (item) await this.setTicks(story, [item.number, ...said.items], true);
    const isDone = item ? !nextItem(storiesIn(folder)) : isPromised;
    return { status: isDone ? 'approved' : 'approved-partial', details: said.text || 'Approved.', verdict };
  }

  get #place() {
    return { dir: this.#parts.project.dir, box: this.#box };
  }

  #allowed({ checks }: Pick<Story, 'checks'>): PlanCheck[] {
    return checks.filter(({ command }) => this.#parts.accepted.has(command));
  }

  /** Returns the results of the checks that may run, up to the first that fails. None run anew that have passed since the last work. */
  async check(
    story: Story,
    signal: AbortSignal,
  ): Promise<{ results: readonly CheckResult[]; red?: CheckResult }> {
    if (this.#green.has(story.prd)) return { results: [] };
    const { config, onCheck } = this.#parts;
    const results = await runChecks(this.#allowed(story), this.#place, config, signal, async one =>
      onCheck(one),
    );
    const red = results.find(({ exitCode }) => exitCode !== 0);
    if (red) return { results, red };
    this.#green.add(story.prd);
    return { results };
  }

  /** A person may have edited the file meanwhile, so it is read again. */
  async setTicks({ prd }: Story, items: readonly number[], ticked: boolean): Promise<void> {
    const { folder } = this.#parts;
    const text = folder.read(...prd.split('/'));
    if (text === undefined) return;
    const next = items.reduce((sofar, number) => tick(sofar, number, ticked), text);
    if (next !== text) await folder.write(prd, next);
  }
}

/** Returns the stories of a plan in the order of their files. */
export const storiesIn = (folder: PlanFolder): Story[] =>
  folder.readPrds().map(({ path, text }) => parsePrd(path, text).story);

/** Returns the first box that is not ticked, in the order of files and boxes. */
export function nextItem(stories: readonly Story[]): { story: Story; item: StoryItem } | undefined {
  for (const story of stories) {
    const item = story.items.find(({ ticked }) => !ticked);
    if (item) return { story, item };
  }
  return undefined;
}

/** Errors that the next attempt would only meet again. */
const lasting: readonly ErrorCode[] = ['auth', 'rate_limit', 'budget', 'config', 'no_match'];

/** Returns how an attempt ends with an error; with a missing one, as the step did not come to its end. */
export function failed(error: RunError | undefined): InPlaceEnd {
  const details = error?.message ?? 'The step did not end by itself.';
  const isLasting = error && (lasting.includes(error.code) || /refused the request \(40[24]\)/.test(details));
  return { status: 'error', details, ...(isLasting && { fatal: new TelosError(error.code, details) }) };
}
