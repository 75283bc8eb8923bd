/** Reads what a plan is now, for those who only look. Loads nothing that works on a plan, so that a window shows its plans at once. */

import { findKey } from '@telos/engine/skills';
import type { Story } from '@telos/protocol/plan';
import { foreignLines, lookIntoJournal } from './journal.ts';
import type { PlanFolder } from './planFolder.ts';
import { foldPlan, type PlanState } from './planState.ts';
import { parsePrd } from './prdFile.ts';
import { storyProblems } from './scheduler.ts';

/** A plan as it is now. */
export interface PlanLook {
  state: PlanState;
  /** Number of the journal's last line. */
  lines: number;
  stories: readonly Story[];
  /** What its files say in a way that cannot be used, in sentences. */
  problems: readonly string[];
}

/** Returns the state of the plan in a folder. Throws TelosError `config` if its files cannot be read. */
export async function lookAt(folder: PlanFolder): Promise<PlanLook> {
  const parsed = folder.readPrds().map(({ path, text }) => ({ text, ...parsePrd(path, text) }));
  const stories = parsed.map(({ story }) => story);
  const placed = (problem: string): string => {
    const one = parsed.find(({ story }) => problem.startsWith(`${story.id} `));
    const line = one && findKey(one.text, 'depends_on');
    return line === undefined ? problem : `${one?.story.prd}, line ${line}: ${problem}`;
  };
  const { lines, foreign } = await lookIntoJournal(folder.journal, folder.seal);
  const problems = [
    ...foreignLines(foreign),
    ...parsed.flatMap(one => one.problems),
    ...storyProblems(stories).map(placed),
  ];
  return { state: foldPlan(lines, stories), stories, problems, lines: lines.at(-1)?.seq ?? 0 };
}
