/**
 * Finds the folders that an agent's own files chose outside its own folders. Its card names them, and calls in them are asked
 * about until it is accepted.
 */
import { basename, dirname, join } from 'node:path';
import type { CardFolder } from '../../protocol/agentCard.ts';
import { isInside, realPlace } from '../files/paths.ts';
import type { Agent, Skill } from '../skills/agent.ts';

/** The parts of an agent that say where it works, and who chose that. */
export type WithFolders = Pick<Agent, 'workingDir' | 'unaskedWithin' | 'packDir'> & {
  skills: readonly Pick<Skill, 'dir' | 'within'>[];
};

/**
 * Returns the folders by their real paths as they are now, sorted. Empty if the agent stays in its own folders and in those that
 * the user chose.
 */
export function chosenFolders({ workingDir, unaskedWithin, packDir, skills }: WithFolders): CardFolder[] {
  const folders = new Map<string, CardFolder>();
  for (const { dir, within } of skills) {
    if (within === undefined || within === dir) continue;
    const path = real(dir);
    if (!isInside(real(within), path)) folders.set(path, { path, access: 'read' });
  }
  if (unaskedWithin !== undefined) {
    const path = real(workingDir);
    // The files of the agent's card decide what it may write in its own folder.
    const isOwn = isInside(placeOf(unaskedWithin), path) || isInside(real(packDir), path);
    if (!isOwn) folders.set(path, { path, access: 'write' });
  }
  return [...folders.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Resolves the folders around, which may be links of the user. The last name is not followed: if it is a link, it is treated like
 * any other folder.
 */
const placeOf = (folder: string): string => join(real(dirname(folder)), basename(folder));

const real = (path: string): string => realPlace(path) ?? path;
