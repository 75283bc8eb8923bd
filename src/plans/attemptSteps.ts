/** Asks models during an attempt: those who build and the one who reviews. */

import type { StepBox } from '@telos/engine/run';
import type { PlanCheck } from '@telos/protocol/plan';
import { spoken } from '@telos/protocol/text';
import { changedMeaning, diffText } from './attemptChanges.ts';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { endOf, raisesOf, runOne, storyOver } from './attemptStep.ts';
import {
  adviceWords,
  denialsOf,
  manyDenials,
  othersText,
  reviewWords,
  type WorkWords,
  workWords,
} from './attemptWords.ts';
import { runCheck, seenIn } from './checks.ts';
import { guidesAt } from './learnings.ts';
import { askOrPark } from './parkedQuestions.ts';
import { parsePrd } from './prdFile.ts';
import { placeText } from './roles.ts';
import { cardCommands, type StepCall, type StepEnd, stepOfRole, workerRoles } from './steps.ts';
import { notesIn, verdictIn, writtenVerdict } from './stepTools.ts';

/** Has the story built. Returns how the attempt ends, if it does. */
export async function buildStory(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const over = await askIfTooDear(scene);
  if (over) return over;
  const before = await wordsFor(scene);
  const advice = await advise(scene, before);
  if (advice && 'status' in advice) return advice;
  const isAfresh = scene.begun !== undefined && advice?.afresh === true;
  if (isAfresh) await scene.startAfresh();
  const words = isAfresh ? await wordsFor(scene) : before;
  const { name, skill } = stepOfRole(advice?.role ?? scene.story.role);
  const { instructions } = advice ?? {};
  const asked = workWords({ ...words, ...(instructions !== undefined && { instructions }) });
  return build(scene, { key: `${scene.key}.${name}`, name, words: asked, ...(skill && { skill }) });
}

interface Advice {
  role: string;
  instructions: string;
  /** Without what the attempts before came to. */
  afresh?: boolean;
}

/**
 * Has a model find out how a story that was denied again and again is tried next. Returns its advice, undefined if there is none to be
 * had, or how the attempt ends with it.
 */
async function advise(scene: AttemptScene, words: WorkWords): Promise<Advice | AttemptEnd | undefined> {
  const { parts, call, story } = scene;
  if (call.story.streak < manyDenials && parts.settings.orchestrator !== 'model') return undefined;
  const known = adviceSinceDenial(scene);
  if (known) return known;
  const roles = [...new Set([story.role, ...workerRoles])];
  let advice: Advice | undefined;
  const noteAdvice = async ({ answers }: StepEnd): Promise<void> => {
    const given = answers.findLast(({ tool }) => tool === 'delegate')?.input;
    if (!given) return;
    const { role, instructions, afresh } = given;
    advice = {
      role: String(role),
      instructions: String(instructions),
      ...(afresh === true && { afresh }),
    };
    await scene.note({ type: 'advised', ...scene.named, ...advice });
  };
  const end = await runOne(
    scene,
    {
      key: `${scene.key}.orchestrator`,
      name: 'orchestrator',
      ports: { roles },
      words: adviceWords({ ...words, denials: denialsOf(parts.journal.lines, story.id), roles }),
      contextTools: parts.contextTools?.() ?? [],
    },
    noteAdvice,
  );
  const ended = endOf(scene, end, 'orchestrator');
  return ended?.fatal || ended?.status === 'interrupted' ? ended : advice;
}

/** Returns the last advice that no denial has overtaken: what is paid for is not asked again after a crash. */
function adviceSinceDenial({ parts, story }: AttemptScene): Advice | undefined {
  const lines = parts.journal.lines.filter(line => 'story' in line && line.story === story.id);
  const last = lines.findLast(
    line => line.type === 'advised' || (line.type === 'attempt_ended' && line.status !== 'interrupted'),
  );
  return last?.type === 'advised' ? last : undefined;
}

/** Lets the person say whether a story may cost more than a story may. Returns how the attempt ends, if it waits for that. */
async function askIfTooDear(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const over = storyOver(scene, undefined);
  if (!over) return undefined;
  const { id } = scene.story;
  const text = `${spoken(over)} Allow ${id} the same amount again? Answer yes, or skip the story.`;
  const question = { id: `${id}-cost-${raisesOf(scene) + 1}`, story: id, text, choices: ['yes'] };
  await scene.note({ type: 'question_parked', question });
  return { status: 'interrupted', details: spoken(over) };
}

async function wordsFor(scene: AttemptScene): Promise<WorkWords> {
  const { parts, call, open, checks, begun, parent } = scene;
  const last = await scene.earlierWork();
  const shape = ['diff', '--stat=100', '--no-color', '--no-ext-diff', '--no-textconv', '--end-of-options'];
  return {
    goal: parts.state().goal,
    state: call.story,
    open,
    checks,
    body: bodyOf(scene),
    ...(await around(scene)),
    said: saidTo(scene),
    ...(last && { lastDiff: await diffText(parts.git, last.parent, last.commit) }),
    ...(begun && { begun: await parts.git.read([...shape, parent, begun.commit]) }),
  };
}

/** Returns what a story is built among: the rules of its project, the other stories, and its place. */
async function around({ parts, story, parent, place }: AttemptScene) {
  const { git, state, settings, runs } = parts;
  return {
    advice: await guidesAt(git, parent, story.touches),
    others: parts.others ?? othersText(state().stories, story.id),
    place: await placeText(place.dir, runs.config, settings.setup),
  };
}

function bodyOf({ parts, story: { prd } }: AttemptScene): string {
  return parsePrd(prd, parts.folder.read(...prd.split('/')) ?? '').body;
}

/** Returns what the person said to this story or to all, and answered. */
function saidTo({ parts, story: { id } }: AttemptScene): string[] {
  const { answers } = parts.state();
  return parts.journal.lines.flatMap(line => {
    if (line.type === 'steered') {
      const { command } = line;
      if (command.kind === 'tell')
        return command.story === undefined || command.story === id ? [command.text] : [];
      const isAgain = command.kind === 'redo' || command.kind === 'reopen';
      return isAgain && command.story === id && command.why && line.ignored === undefined
        ? [command.why]
        : [];
    }
    if (line.type !== 'question_parked' || line.question.story !== id) return [];
    const answer = answers.get(line.question.id);
    return answer === undefined ? [] : [`${line.question.text} ${answer}`];
  });
}

/** Returns what the commands of a step find in the box: what the checks of its work tree find there. */
function boxOf({ parts, place, checkPlace }: AttemptScene): StepBox {
  const { setup, slot } = parts.settings;
  const { outside } = checkPlace;
  return {
    ...seenIn(place.dir, { copied: slot.copy, linked: slot.link }),
    // The engine runs the setup outside too: it fetches what the work tree needs.
    outside: new Set(outside ? [...outside, ...setup] : []),
  };
}

/** Runs a step that changes files. Returns how the attempt ends if it did not come to its end, or waits for the person. */
export async function build(
  scene: AttemptScene,
  call: Pick<StepCall, 'key' | 'name' | 'words' | 'skill'>,
): Promise<AttemptEnd | undefined> {
  const { parts, place, parent, checks, parking } = scene;
  const own = {
    ...call,
    ports: {
      askPerson: (question: { text: string; choices: readonly string[] }, signal: AbortSignal) =>
        askOrPark(parts.human, question, parking, signal),
    },
    commands: cardCommands(parts.settings.setup, checks),
    commandsChanged: (command: string) => changedMeaning(parts.git, place.dir, parent, command),
    box: boxOf(scene),
  };
  const end = await runOne(scene, own, async ({ answers }) => {
    const notes = notesIn(answers);
    if (notes.length > 0) await scene.note({ type: 'learned', ...scene.named, notes });
  });
  const ended = endOf(scene, end, 'work');
  if (ended) return ended;
  const waits = parts.state().questions.some(({ story }) => story === scene.story.id);
  return waits ? { status: 'interrupted', details: 'It waits for your answer.' } : undefined;
}

/** Has the kept work reviewed. Returns how the attempt ends unless it is approved. */
export async function review(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const over = await askIfTooDear(scene);
  if (over) return over;
  const { parts, call, open, checks, parent, work, allowed, results } = scene;
  const { folder, git, state } = parts;
  await folder.remove('verdict.json');
  const words = reviewWords({
    goal: state().goal,
    state: call.story,
    open,
    body: bodyOf(scene),
    results,
    checks,
    allowed,
    diff: await diffText(git, parent, work.commit),
    ...(await around(scene)),
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
  const written = `${JSON.stringify(writtenVerdict(verdict), undefined, 2)}\n`;
  await folder.write('verdict.json', written, { again: true });
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
