/**
 * Decides which files are skills, which skills lists offer, and which changes on disk can affect them, so that the
 * tree does not follow every saved file.
 */

import { statSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { isSkippedFolder, realIfThere } from '@telos/engine/files';
import type { Agent, Skill } from '@telos/engine/skills';

export type PathChange = 'created' | 'changed' | 'deleted';

const watchedNames = new Set(['skill.md', 'skills.md', 'agent.toml', 'agents.toml', 'mcp.json']);

/**
 * Returns true for a change to a file that Telos reads, or to a whole folder. The editor reports a folder as one
 * change, without its contents. A folder that was removed and created again at once is reported as changed. A removed
 * path counts if it held a skill, which `heldSkills` says. `root` is the watched folder. Both paths are absolute.
 */
export async function changesSkills(
  root: string,
  path: string,
  change: PathChange,
  heldSkills: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  if (relative(root, path).split(/[\\/]/).some(isSkippedFolder)) return false;
  if (watchedNames.has(basename(path).toLowerCase())) return true;
  return change === 'deleted' ? heldSkills(path) : isFolder(path);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

interface LinkTarget {
  folder: string;
  /** True for a skill's own folder, in which only direct files count. */
  isSkill: boolean;
}

/**
 * Returns the targets of links to skills found below the watched folders. Each target is listed once. All paths are
 * absolute. Never throws.
 */
export function linkTargets(watched: readonly string[], skillDirs: readonly string[]): LinkTarget[] {
  const roots = watched.flatMap(root => {
    const real = realIfThere(root);
    return real === undefined ? [] : [{ root, real }];
  });
  const targets = new Map<string, boolean>();
  for (const dir of skillDirs) {
    const root = roots.find(each => isWithin(each.root, dir));
    if (!root || realIfThere(dir) === join(root.real, relative(root.root, dir))) continue;
    // The first folder on the way that is somewhere else is the link.
    let [path, expected] = [root.root, root.real];
    for (const name of relative(root.root, dir).split(sep)) {
      [path, expected] = [join(path, name), join(expected, name)];
      const real = realIfThere(path);
      if (real === expected) continue;
      if (real !== undefined && !roots.some(each => isWithin(each.real, real)))
        targets.set(real, (targets.get(real) ?? true) && path === dir);
      break;
    }
  }
  return [...targets].map(([folder, isSkill]) => ({ folder, isSkill }));
}

/** Returns true if the path is the folder or is below it. Both paths are absolute, and links are not resolved. */
export const isWithin = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder + sep);

export interface PickableSkill {
  agent: Agent;
  skill: Skill;
}

/**
 * Returns all skills except those that their authors keep out of lists, those that the person has disabled, and those whose text cannot be read. The text of
 * the returned skills has been read already.
 */
export async function pickableSkills(agents: readonly Agent[]): Promise<PickableSkill[]> {
  const found: PickableSkill[] = [];
  for await (const pair of inSlices(agents.flatMap(agent => agent.skills.map(skill => ({ agent, skill }))))) {
    const { userInvocable, isDisabled, diagnostics } = pair.skill;
    if (userInvocable && !isDisabled && !diagnostics.some(({ severity }) => severity === 'error'))
      found.push(pair);
  }
  return found;
}

/** Returns the author's description, or the beginning of the text. */
export const descriptionOf = ({ description, synopsis }: Skill): string => synopsis ?? description;

/** Returns the description with what belongs behind the skill's name before it. */
export const hintedDescription = (skill: Skill): string =>
  [skill.argumentHint, descriptionOf(skill)].filter(Boolean).join(' · ');

/** The time of work between two pauses. Several readers may take turns. In milliseconds. */
const sliceMs = 4;

/** Yields the values one by one. Pauses after each slice of work so that other code can run. */
export async function* inSlices<Value>(values: Iterable<Value>): AsyncGenerator<Value> {
  await othersTurn(); // the caller has often just done something long
  let start = performance.now();
  for (const value of values) {
    yield value;
    if (performance.now() - start < sliceMs) continue;
    await othersTurn();
    start = performance.now();
  }
}

const othersTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Returns true if a file of this name is read as a skill. */
export function isSkillFile(path: string): boolean {
  return /(^|[\\/])skills?\.md$/i.test(path);
}
