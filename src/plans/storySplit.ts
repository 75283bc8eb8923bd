/** Splits a story while its plan runs: by a step like any other, within the plan's limits, and with accepted checks alone. */
import { rm } from 'node:fs/promises';
import type { AttemptParts } from './attemptScene.ts';
import { denialsOf } from './attemptWords.ts';
import { isPartOf, splitStory } from './planning.ts';
import { runStep } from './steps.ts';
import { openItems, type StoryState } from './storyState.ts';

/** Writes the files of its parts, then notes that they stand for the story. Throws TelosError if there are no parts. */
export async function splitInPlan(
  parts: AttemptParts,
  state: StoryState,
  signal: AbortSignal,
): Promise<void> {
  const { folder, journal, runs, human, settings, state: now } = parts;
  const { story } = state;
  const { id } = story;
  const checks = [...settings.checks, ...now().stories.flatMap(one => one.story.checks)];
  const whole = {
    story,
    open: openItems(state),
    text: folder.read(...story.prd.split('/')) ?? '',
    denials: denialsOf(journal.lines, id).slice(-3),
    commands: new Set(checks.map(({ command }) => command)),
  };
  const budget = parts.budget.step();
  const model = now().models.get('') ?? settings.model;
  const written = await splitStory(
    whole,
    async ({ name: step, key, words }, ofStep) => {
      const end = await runStep(
        runs,
        {
          key,
          name: step,
          words,
          plan: folder.name,
          workingDir: folder.repo,
          budget,
          model,
          contextTools: parts.contextTools?.() ?? [],
          roleText: parts.roles.find(({ role }) => role === step)?.text,
          recordTo: parts.recordTo,
          onStart: async started =>
            void (await journal.append({ type: 'step_started', key, step, story: id, ...started })),
        },
        human,
        ofStep,
      );
      const { runId, outcome, usage } = end;
      const ended = { type: 'step_ended' as const, key, step, story: id, runId, outcome };
      await journal.append({ ...ended, ...(usage && { usage }) });
      return end;
    },
    signal,
  ).finally(() => budget.close());
  signal.throwIfAborted();
  // Those of a split that was cut off: nothing of them was begun.
  for (const one of now().stories)
    if (isPartOf(one.story.id, id)) await rm(folder.path(...one.story.prd.split('/')), { force: true });
  for (const { path, text } of written) await folder.write(path, text);
  await journal.append({ type: 'story_split', story: id, into: written.map(part => part.id), by: 'engine' });
}
