/** A step of a newcomer, as it was measured, and the table of all. */
import type { Page } from '../docs/pages.ts';
import { readPage, shellBlocks } from '../docs/pages.ts';

export interface Step {
  /** Where it was done. */
  on: 'terminal' | 'editor';
  name: string;
  seconds: number;
  /** Clicks, and answers to questions. Commands are copied from the page. */
  clicks: number;
  /** The file of the picture. */
  picture: string;
}

/** The most that a step may take; a step without a row is only shown. */
const limits: Readonly<Record<string, { seconds: number; clicks?: number }>> = {
  'First answer without a key': { seconds: 60, clicks: 3 },
  'First answer with a key': { seconds: 90 },
  'First skill of one’s own': { seconds: 180 },
};

/** Returns a line for each step that took longer, or more clicks, than it may. */
export const overdue = (steps: readonly Step[]): string[] =>
  steps.flatMap(({ on, name, seconds, clicks }) => {
    const { seconds: most = Number.POSITIVE_INFINITY, clicks: mostClicks = Number.POSITIVE_INFINITY } =
      limits[name] ?? {};
    return [
      ...(seconds > most ? [`${name}, ${on}: ${seconds.toFixed(1)} s; ${most} at most.`] : []),
      ...(clicks > mostClicks ? [`${name}, ${on}: ${clicks} clicks; ${mostClicks} at most.`] : []),
    ];
  });

export const tableOf = (steps: readonly Step[]): string =>
  [
    '| Step | Where | Seconds | Clicks and answers |',
    '|---|---|---|---|',
    ...steps.map(
      ({ name, on, seconds, clicks }) =>
        `| ${name} | ${on} | ${Math.max(1, Math.round(seconds))} | ${clicks} |`,
    ),
  ].join('\n');

/** Returns the lines of a page's shell block that begin so, as a reader copies them. Throws if the page does not have one. */
export function copied(path: string, ...beginnings: readonly string[]): string[] {
  const page: Page = readPage(path);
  const lines = shellBlocks(page).flatMap(block => block.split('\n'));
  return beginnings.map(beginning => {
    const line = lines.find(one => one.startsWith(beginning));
    if (line === undefined) throw new Error(`${path} has no command that begins with "${beginning}".`);
    return line.replace(/\s+#.*$/, '');
  });
}

/** Returns the block of a page that has these words, whole. */
export function copiedBlock(path: string, words: string): string {
  const block = shellBlocks(readPage(path)).find(one => one.includes(words));
  if (block === undefined) throw new Error(`${path} has no block with "${words}".`);
  return block.trimEnd();
}
