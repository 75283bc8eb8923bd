/** The folders that an agent's own files chose, outside of what is its own: named on its card, and asked about until that is accepted. */
import { basename, dirname, join } from 'node:path';
import type { CardFolder } from '../../protocol/agentCard.ts';
import { isInside, realPlace } from '../files/paths.ts';
import type { Agent, Skill } from '../skills/agent.ts';

/** What says of an agent where it works, and on whose word. */
export type WithFolders = Pick<Agent, 'workingDir' | 'unaskedWithin' | 'packDir'> & {
  skills: readonly Pick<Skill, 'dir' | 'within'>[];
};

/** By their real paths as they are now, sorted; empty for an agent that keeps to its own folders and to those that the user chose. */
export function chosenFolders({ workingDir, unaskedWithin, packDir, skills }: WithFolders): CardFolder[] {
  const folders = new Map<string, CardFolder>();
  for (const { dir, within } of skills) {
    if (within === undefined || within === dir) continue;
    const path = real(dir);
    if (!isInside(real(within), path)) folders.set(path, { path, access: 'read' });
  }
  if (unaskedWithin !== undefined) {
    const path = real(workingDir);
    // What it may write in its own folder goes by the files of its card.
    const isOwn = isInside(placeOf(unaskedWithin), path) || isInside(real(packDir), path);
    if (!isOwn) folders.set(path, { path, access: 'write' });
  }
  return [...folders.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The folders around may be links of the user; the folder itself is as good as any other where it is one. */
const placeOf = (folder: string): string => join(real(dirname(folder)), basename(folder));

const real = (path: string): string => realPlace(path) ?? path;
