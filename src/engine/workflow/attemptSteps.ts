/** Asks models during an attempt: those who build and the one who reviews. */
import type { PlanCheck } from '../../protocol/plan.ts';
import { TelosError } from '../errors.ts';
import { changedMeaning, diffText } from './attemptChanges.ts';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { reviewWords, type WorkWords, workWords } from './attemptWords.ts';
import { runCheck } from './checks.ts';
import { adviceAt } from './learnings.ts';
import { askOrPark, parkingHuman } from './parkedQuestions.ts';
import { parsePrd } from './prdFile.ts';
import { cardCommands, runStep, type StepCall, type StepEnd, stepOfRole } from './steps.ts';
import { notesIn, verdictIn } from './stepTools.ts';
import { isWorkDone } from './storyState.ts';

/** Errors of a provider in a row, after which the plan ends instead of trying once more. */
const mostErrors = 3;

/** Has the story built. Returns how the attempt ends, if it does. */
export async function buildStory(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { name, skill } = stepOfRole(scene.story.role);
  const words = workWords(await wordsFor(scene));
  return build(scene, { key: `${scene.key}.${name}`, name, words, ...(skill && { skill }) });
}

async function wordsFor(scene: AttemptScene): Promise<WorkWords> {
  const { parts, call, parent, open, checks } = scene;
  const before = scene.refOf(call.attempt - 1);
  const [last, base] = [await parts.git.tip(before), await parts.git.tip(`${before}^`)];
  return {
    ...{ goal: parts.state().goal, state: call.story, open, checks, body: bodyOf(scene) },
    advice: await adviceAt(parts.git, parent),
    said: saidTo(scene),
    ...(last !== undefined && base !== undefined && { lastDiff: await diffText(parts.git, base, last) }),
  };
}

function bodyOf({ parts, story: { prd } }: AttemptScene): string {
  return parsePrd(prd, parts.folder.read(...prd.split('/')) ?? '').body;
}

/** Returns what the person said to this story or to all, and answered. */
function saidTo({ parts, story: { id } }: AttemptScene): string[] {
  const { answers } = parts.state();
  return parts.journal.lines.flatMap(line => {
    if (line.type === 'steered' && line.command.kind === 'tell')
      return line.command.story === undefined || line.command.story === id ? [line.command.text] : [];
    if (line.type !== 'question_parked' || line.question.story !== id) return [];
    const answer = answers.get(line.question.id);
    return answer === undefined ? [] : [`${line.question.text} ${answer}`];
  });
}

/** Runs a step that changes files. Returns how the attempt ends if it did not come to its end, or waits for the person. */
export async function build(
  scene: AttemptScene,
  call: Pick<StepCall, 'key' | 'name' | 'words' | 'skill'>,
): Promise<AttemptEnd | undefined> {
  const { parts, place, parent, checks, parking } = scene;
  const end = await runOne(scene, {
    ...call,
    ports: { askPerson: (question, signal) => askOrPark(parts.human, question, parking, signal) },
    commands: cardCommands(parts.settings.setup, checks),
    commandsChanged: command => changedMeaning(parts.git, place.dir, parent, command),
  });
  scene.notes.push(...notesIn(end.answers));
  const ended = endOf(scene, end, 'work');
  if (ended) return ended;
  const waits = parts.state().questions.some(({ story }) => story === scene.story.id);
  return waits ? { status: 'interrupted', details: 'It waits for an answer of the person.' } : undefined;
}

/** Has the kept work reviewed. Returns how the attempt ends unless it is approved. */
export async function review(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { parts, call, open, checks, parent, work, allowed, results } = scene;
  const { folder, git, state } = parts;
  await folder.remove('verdict.json');
  const words = reviewWords({
    ...{ goal: state().goal, state: call.story, open, body: bodyOf(scene), results, checks, allowed },
    diff: await diffText(git, parent, work.commit),
    advice: await adviceAt(git, parent),
  });
  const runAgain = (check: PlanCheck, signal: AbortSignal) =>
    runCheck(check, scene.checkPlace, parts.runs.config, signal);
  const key = `${scene.key}.reviewer`;
  const ports = { checks, runCheck: runAgain };
  // Before the end of the step is noted: from then on, the reviewer is not asked again.
  const noteVerdict = async (end: StepEnd): Promise<void> => {
    const verdict = endOf(scene, end, 'review') ? undefined : verdictIn(end.answers);
    if (!verdict) return;
    const { approved, text } = verdict;
    const items = approved ? approvedOf(scene, verdict.items) : [];
    const { runId } = end;
    await scene.note({ type: 'verdict', ...scene.named, tree: work.tree, approved, text, items, runId });
  };
  const end = await runOne(scene, { key, name: 'reviewer', words, ports }, noteVerdict);
  const ended = endOf(scene, end, 'review');
  if (ended) return ended;
  const verdict = verdictIn(end.answers);
  if (!verdict)
    return { status: 'no-verdict', details: 'The reviewer neither approved nor denied the work.' };
  const { approved, text } = verdict;
  const items = approved ? approvedOf(scene, verdict.items) : [];
  await writeVerdict(scene, approved, text);
  if (!approved) return { status: 'denied', details: text };
  if (items.length === 0 && open.length > 0)
    return { status: 'no-verdict', details: 'The reviewer approved no criterion that is open.' };
  scene.approval = { approved, text, items };
  return undefined;
}

/** An approval without numbers is for everything that was asked for. */
function approvedOf({ open }: AttemptScene, named: readonly number[]): number[] {
  const numbers = open.map(({ number }) => number);
  return named.length === 0 ? numbers : numbers.filter(number => named.includes(number));
}

function writeVerdict({ parts }: AttemptScene, approved: boolean, text: string): Promise<void> {
  const said = approved ? { summary: text } : { reason: text };
  const verdict = { approved, ...said, timestamp: new Date().toISOString() };
  return parts.folder.write('verdict.json', `${JSON.stringify(verdict, undefined, 2)}\n`);
}

/** Runs a step in the slot, and notes its start, what came of it, and its end. */
async function runOne(
  scene: AttemptScene,
  call: Pick<StepCall, 'key' | 'name' | 'words'> & Partial<StepCall>,
  noteResult: (end: StepEnd) => Promise<void> = async () => undefined,
): Promise<StepEnd> {
  const { parts, place, environment, parking, signal } = scene;
  const { runs, folder, roles, recordTo, onEvent, human } = parts;
  const { key, name: step } = call;
  const story = scene.story.id;
  const budget = parts.budget.step();
  const whole: StepCall = {
    ...{ plan: folder.name, workingDir: place.dir, closed: [folder.repo, folder.dir], env: environment },
    ...{ mail: scene.call.mail, model: modelOf(scene, step), budget, recordTo },
    roleText: roles.find(({ role }) => role === step)?.text,
    onStart: async ({ runId, model }) => {
      await scene.note({
        type: 'step_started',
        key,
        step,
        story,
        runId,
        ...(model !== undefined && { model }),
      });
    },
    onEvent: event => onEvent?.(key, story, event),
    ...call,
  };
  try {
    const end = await runStep(runs, whole, parkingHuman(human, parking), signal);
    const { runId, outcome, usage } = end;
    await noteResult(end);
    await scene.note({ type: 'step_ended', key, step, story, runId, outcome, ...(usage && { usage }) });
    return end;
  } finally {
    budget.close();
  }
}

function modelOf({ parts: { state, settings } }: AttemptScene, step: string): string | undefined {
  const { models } = state();
  const usual = models.get('') ?? settings.model;
  if (step === 'reviewer') return models.get('reviewer') ?? settings.reviewModel ?? usual;
  return models.get(step) ?? usual;
}

/** Returns how the attempt ends with a step that did not come to its end by itself. */
function endOf(scene: AttemptScene, end: StepEnd, what: string): AttemptEnd | undefined {
  if (end.timedOut) return { status: 'timeout', details: `The ${what} took too long.` };
  if (isWorkDone(end.outcome)) return undefined;
  if (scene.signal.aborted || end.outcome === 'cancelled')
    return { status: 'interrupted', details: `The ${what} was stopped.` };
  const {
    code = 'internal',
    message = 'It did not end as it should.',
    remedy,
    retryAfterMs,
  } = end.error ?? {};
  const fatal = new TelosError(code, message, { remedy, retryAfterMs });
  // The limit, the key, the settings, the model, the account: none gets better by trying once more.
  const isForAll = ['rate_limit', 'budget', 'auth', 'config'].includes(code) || /\(40[24]\)/.test(message);
  if (isForAll) return { status: 'interrupted', details: message, fatal };
  return { status: 'error', details: message, ...(hasFailedBefore(scene) && { fatal }) };
}

function hasFailedBefore({ parts, story }: AttemptScene): boolean {
  const ends = parts.journal.lines.flatMap(line =>
    line.type === 'attempt_ended' && line.story === story.id ? [line.status] : [],
  );
  const last = ends.slice(1 - mostErrors);
  return last.length === mostErrors - 1 && last.every(status => status === 'error');
}
