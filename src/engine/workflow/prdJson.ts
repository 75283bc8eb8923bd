/** Prints `prd.json` in the format of ralph, so that his loop and his tools read a plan of ours unchanged. */
import type { PlanState } from './planState.ts';
import type { StoryState } from './storyState.ts';

/** Returns the text of the file. Its stories have the order in which they are worked on as their priority. */
export function printPrdJson(project: string, branch: string, state: PlanState): string {
  // The parts of a story that was split stand for it.
  const whole = state.stories.filter(({ into }) => !into);
  const userStories = whole.map((story, index) => storyEntry(story, index + 1));
  const file = { project, branchName: branch, description: state.goal, userStories };
  return `${JSON.stringify(file, undefined, 2)}\n`;
}

function storyEntry(state: StoryState, priority: number) {
  const { story, status, attempts, commit } = state;
  return {
    id: story.id,
    title: story.title,
    description: story.description ?? '',
    acceptanceCriteria: story.items.map(({ text }) => text),
    priority,
    // Only what is on the branch. What a person accepted is theirs to answer for.
    passes: status === 'passed',
    notes: notesOf(state),
    telos: {
      prd: story.prd,
      role: story.role,
      dependsOn: story.dependsOn,
      touches: story.touches,
      checks: story.checks.map(({ name }) => name),
      // What is under way is the journal's to say: a file that changed with each step would never be still.
      status: settled.has(status) ? status : 'ready',
      attempts,
      commit: commit ?? null,
    },
  };
}

const settled: ReadonlySet<StoryState['status']> = new Set([
  'blocked',
  'passed',
  'accepted',
  'skipped',
  'failed',
  'needs_you',
]);

function notesOf({ streak, lastDenial, why }: StoryState): string {
  const denied = streak > 0 && lastDenial !== undefined ? [`denied ${streak}×: ${lastDenial}`] : [];
  return [...denied, ...(why === undefined ? [] : [why])].join(' ');
}
