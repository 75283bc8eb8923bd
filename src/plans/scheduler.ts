/** Says which stories can be worked on now. Pure: the same state gives the same answer. */
import type { Story } from '@telos/protocol/plan';
import type { PlanState } from './planState.ts';
import type { StoryState } from './storyState.ts';

/**
 * Returns the stories that can begin beside those that run, best first. All of them can run at the same time; there are no more than
 * free slots. An attempt that was cut off comes first. A story that met a conflict, or whose files are not known, runs alone.
 */
export function nextStories(
  state: Pick<PlanState, 'stories' | 'story'>,
  running: ReadonlySet<string>,
  slots: number,
): StoryState[] {
  const beside = [...running].flatMap(id => state.story(id) ?? []);
  const waiting = state.stories.filter(({ story, status, open }) => {
    if (running.has(story.id)) return false;
    return status === 'ready' || (open !== undefined && isOpen.has(status));
  });
  const found: StoryState[] = [];
  for (const story of [...waiting.filter(({ open }) => open), ...waiting.filter(({ open }) => !open)]) {
    if (running.size + found.length >= slots) break;
    if ([...beside, ...found].every(other => fitsBeside(story, other))) found.push(story);
  }
  return found;
}

const isOpen: ReadonlySet<StoryState['status']> = new Set([
  ...(['working', 'snapshot', 'checking', 'reviewing', 'committing', 'integrating'] as const),
]);

function fitsBeside(one: StoryState, other: StoryState): boolean {
  if (one.isAlone || other.isAlone) return false;
  return areApart(one.story, other.story);
}

/** Returns true if the files that two stories may touch are known to be different ones. */
export function areApart(one: Pick<Story, 'touches'>, other: Pick<Story, 'touches'>): boolean {
  if (one.touches.length === 0 || other.touches.length === 0) return false;
  return one.touches.every(glob => other.touches.every(another => !mayMeet(glob, another)));
}

/** Returns false only if no path can fit both globs. Small and capital letters are the same, as they are on some disks. */
function mayMeet(one: string, other: string): boolean {
  const [first, second] = [one, other].map(fixedParts) as [FixedParts, FixedParts];
  const [shorter, longer] = first.start.length <= second.start.length ? [first, second] : [second, first];
  if (!longer.start.startsWith(shorter.start)) return false;
  // A path without any pattern also means what lies below it.
  if (shorter.isPlain && longer.start !== shorter.start && !isBelow(longer.start, shorter.start))
    return false;
  if (first.isPlain || second.isPlain) return true;
  return first.end.endsWith(second.end) || second.end.endsWith(first.end);
}

const isBelow = (path: string, folder: string): boolean => path.startsWith(`${folder.replace(/\/$/, '')}/`);

interface FixedParts {
  /** What every path that fits begins and ends with. */
  start: string;
  end: string;
  isPlain: boolean;
}

function fixedParts(glob: string): FixedParts {
  const plain = glob
    .toLowerCase()
    .replaceAll('\\', '/')
    .replace(/^(?:\.?\/)+/, '');
  const first = plain.search(/[*?[{(!+@]/);
  if (first < 0) return { start: plain, end: plain, isPlain: true };
  const last = Math.max(...['*', '?', ']', '}', ')'].map(sign => plain.lastIndexOf(sign)));
  return { start: plain.slice(0, first), end: last < first ? '' : plain.slice(last + 1), isPlain: false };
}

/** Returns what of the stories keeps some of them from ever being built or from being judged well, in sentences. */
export function storyProblems(stories: readonly Story[]): string[] {
  const ids = new Set(stories.map(({ id }) => id));
  const lost = stories.flatMap(({ id, dependsOn }) =>
    dependsOn
      .filter(other => !ids.has(other))
      .map(
        other => `${id} depends on ${other}, which is not there, so it cannot begin. Correct its depends_on.`,
      ),
  );
  const circle = inCircles(stories).map(({ id }) => id);
  return [
    ...stories
      .filter(({ items }) => items.length === 0)
      .map(({ id }) => `${id} has no criteria. Add boxes such as "- [ ] 1. …" to its file.`),
    ...lost,
    ...(circle.length > 0
      ? [`${circle.join(', ')} wait for each other, so none of them can begin. Take one out of depends_on.`]
      : []),
  ];
}

/** Returns the stories that depend on themselves through others. */
function inCircles(stories: readonly Story[]): Story[] {
  const byId = new Map(stories.map(story => [story.id, story]));
  const leadsBack = ({ id, dependsOn }: Story): boolean => {
    const seen = new Set<string>();
    const left = [...dependsOn];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (next === id) return true;
      if (!seen.has(next)) left.push(...(byId.get(next)?.dependsOn ?? []));
      seen.add(next);
    }
    return false;
  };
  return stories.filter(leadsBack);
}
