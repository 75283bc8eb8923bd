/** Links exported skills into the folders of a workspace that other hosts read, and takes exactly these links back. */

import { createHash } from 'node:crypto';
import { cp, lstat, mkdir, readdir, readlink, rm, rmdir, symlink } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { loadText, writeWhole } from '@telos/engine/files';
import { contentsOf } from '@telos/engine/undo';
import { sentence } from '@telos/protocol/text';

/** Folders of a workspace in which other hosts look for skills. */
const places = ['.agents/skills', '.claude/skills'];
/** Lists what was linked, so that nothing else is ever removed. */
const listName = '.telos-links.json';

export interface LinkedSkill {
  /** Absolute. */
  path: string;
  /** `copy` where the system makes no links. */
  as: 'link' | 'copy';
}

interface Listed extends LinkedSkill {
  target: string;
  /** Digest of a copy, which is removed only while it is unchanged. */
  digest?: string;
}

/** Links each skill below `skills/` of an exported folder. Throws TelosError `pack` if another one has its place; nothing is linked then. */
export async function linkSkills(exported: string, workspace: string): Promise<LinkedSkill[]> {
  const names = (await readdir(exported, { withFileTypes: true })).filter(entry => entry.isDirectory());
  const wanted = places.flatMap(place =>
    names.map(({ name }) => ({ target: join(exported, name), path: join(workspace, place, name) })),
  );
  const before = await readList(workspace);
  for (const { path } of wanted)
    if ((await isThere(path)) && !before.some(one => one.path === path))
      throw new TelosError('pack', [
        sentence('{0} already exists and was not linked by Telos.', path),
        sentence('Nothing was linked.'),
      ]);
  const linked: Listed[] = [];
  for (const { path, target } of wanted) {
    await mkdir(join(path, '..'), { recursive: true });
    await rm(path, { recursive: true, force: true });
    linked.push(await linkOrCopy(target, path));
  }
  const others = before.filter(one => !linked.some(({ path }) => path === one.path));
  await writeWhole(
    join(workspace, '.agents', listName),
    `${JSON.stringify([...others, ...linked], undefined, 2)}\n`,
  );
  return linked.map(({ path, as }) => ({ path, as }));
}

/** Removes what was linked and is as it was, and returns what was removed and what was changed since and stays. */
export async function unlinkSkills(workspace: string): Promise<{ removed: string[]; kept: string[] }> {
  const removed: string[] = [];
  const kept: string[] = [];
  for (const one of await readList(workspace)) {
    if (!(await isThere(one.path))) continue;
    if (await isAsLinked(one)) {
      await rm(one.path, { recursive: true, force: true });
      removed.push(one.path);
    } else kept.push(one.path);
  }
  await rm(join(workspace, '.agents', listName), { force: true });
  // Folders that are empty now were made for the links.
  for (const folder of [...places, '.agents', '.claude'])
    await rmdir(join(workspace, folder)).catch(() => undefined);
  return { removed, kept };
}

async function linkOrCopy(target: string, path: string): Promise<Listed> {
  try {
    await symlink(relative(join(path, '..'), target), path, 'dir');
    return { path, target, as: 'link' };
  } catch {
    await cp(target, path, { recursive: true });
    return { path, target, as: 'copy', digest: await digestOf(path) };
  }
}

async function isAsLinked({ path, target, as, digest }: Listed): Promise<boolean> {
  if (as === 'copy') return (await digestOf(path)) === digest;
  const to = await readlink(path).catch(() => undefined);
  return to !== undefined && resolve(join(path, '..'), to) === target;
}

const digestOf = async (folder: string): Promise<string> =>
  createHash('sha256')
    .update(JSON.stringify(await contentsOf(folder)))
    .digest('hex');

const isThere = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(() => undefined)) !== undefined;

/** Returns what the list of a workspace names within its own places. Anyone could have written it. */
async function readList(workspace: string): Promise<Listed[]> {
  try {
    const list: unknown = JSON.parse(await loadText(join(workspace, '.agents', listName)));
    const tops = places.map(place => join(workspace, place));
    return (Array.isArray(list) ? (list as Listed[]) : []).filter(
      ({ path, target, as }) =>
        typeof path === 'string' &&
        typeof target === 'string' &&
        (as === 'link' || as === 'copy') &&
        tops.includes(resolve(path, '..')),
    );
  } catch {
    return [];
  }
}
