/** Asks one model during an attempt, and says what its end means for the attempt. */

import { TelosError } from '@telos/engine/errors';
import { hasPrice, type NamedModel, unpriced } from '@telos/engine/providers';
import type { Usage } from '@telos/protocol/run';
import { asMessage, type Sentence, sentence, sentencesOf } from '@telos/protocol/text';
import { addedUsage } from '@telos/protocol/usage';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { manyDenials, planText } from './attemptWords.ts';
import { parkingHuman, yes } from './parkedQuestions.ts';
import { runStep, type StepCall, type StepEnd } from './steps.ts';
import { isWorkDone } from './storyState.ts';

/** Errors of a provider in a row, after which the plan ends instead of trying once more. */
const mostErrors = 3;
/** A wait for a provider that a person would notice. In milliseconds. */
const noticedWait = 3_000;

/** Runs a step in the slot, and notes its start, what came of it, and its end. */
export async function runOne(
  scene: AttemptScene,
  call: Pick<StepCall, 'key' | 'name' | 'words'> & Partial<StepCall>,
  noteResult: (end: StepEnd) => Promise<void> = async () => undefined,
): Promise<StepEnd> {
  const { parts, place, environment, parking, signal } = scene;
  const { runs, folder, roles, recordTo, onEvent, human } = parts;
  const { key, name: step } = call;
  const story = scene.story.id;
  const budget = parts.budget.step((used, next) => storyOver(scene, used, next));
  const whole: StepCall = {
    plan: folder.name,
    workingDir: place.dir,
    closed: [folder.repo, folder.dir],
    env: environment,
    mail: scene.call.mail,
    model: modelOf(scene, step),
    budget,
    recordTo,
    roleText: roles.find(({ role }) => role === step)?.text,
    planText: planText(folder.read('plan.md') ?? '', folder.read('interview.md') ?? ''),
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
    onEvent: event => {
      if (event.type === 'retry' && event.waitMs >= noticedWait) scene.call.onWait?.(event.waitMs, event.why);
      onEvent?.(key, story, event);
    },
    ...call,
  };
  try {
    const end = await runStep(runs, whole, parts.isGuest ? human : parkingHuman(human, parking), signal);
    const { runId, outcome, usage } = end;
    // First what has come of it, but in one write: no one builds on the one without the other.
    const ended = { type: 'step_ended' as const, key, step, story, runId, outcome, ...(usage && { usage }) };
    await Promise.all([noteResult(end), scene.note(ended)]);
    return end;
  } finally {
    budget.close();
  }
}

function modelOf({ call, parts: { state, settings } }: AttemptScene, step: string): string | undefined {
  const { models } = state();
  const usual = models.get('') ?? settings.model;
  if (step === 'reviewer') return models.get('reviewer') ?? settings.reviewModel ?? usual;
  const isStuck = call.story.streak >= manyDenials;
  return models.get(step) ?? (isStuck ? settings.escalateModel : undefined) ?? usual;
}

/** Returns how the attempt ends with a step that did not come to its end by itself. */
export function endOf(scene: AttemptScene, end: StepEnd, what: string): AttemptEnd | undefined {
  if (end.timedOut) return { status: 'timeout', details: `The ${what} took too long.` };
  if (isWorkDone(end.outcome)) return undefined;
  if (scene.signal.aborted || end.outcome === 'cancelled')
    return { status: 'interrupted', details: `The ${what} was stopped.` };
  const said = end.error ?? asMessage(sentence('It did not end as it should.'));
  const { message } = said;
  const { code = 'internal', remedy, retryAfterMs } = end.error ?? {};
  // A story that has cost too much waits for the person; the others go on.
  if (code === 'budget' && !scene.parts.budget.over() && storyOver(scene, end.usage))
    return { status: 'interrupted', details: message };
  const fatal = new TelosError(code, sentencesOf(said), { remedy, retryAfterMs });
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

/** Returns how often the person has let a story cost as much again. */
export const raisesOf = ({ parts, story }: AttemptScene): number =>
  [...parts.state().answers].filter(([id, text]) => id.startsWith(`${story.id}-cost-`) && yes.test(text))
    .length;

/** Returns why the story may not cost more, given what the step that runs has used; undefined while it may. */
export function storyOver(
  scene: AttemptScene,
  running: Usage | undefined,
  next?: NamedModel,
): Sentence[] | undefined {
  const { parts, story } = scene;
  const { storyMaxCost } = parts.settings;
  if (storyMaxCost === undefined) return undefined;
  if (next && !hasPrice(next)) return unpriced(next, sentence('{0} in the plan', 'storyMaxCost'));
  const before = parts.state().story(story.id)?.usage;
  const used = running ? addedUsage(before, running) : before;
  const cost = used === undefined || used.cost === 'unknown' ? 0 : used.cost;
  const most = storyMaxCost * (1 + raisesOf(scene));
  if (cost < most) return undefined;
  return [
    sentence(
      '{0} has cost {1} of the {2} that a story may cost.',
      story.id,
      `$${cost.toFixed(4)}`,
      `$${most}`,
    ),
  ];
}
