/** Finds the skills below a folder by names and a look for the file. Nothing is read, so thousands are found fast. */

import { type Dirent, opendirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { join, normalize, relative, sep } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Config, type SkillRootKind, skillRootKinds } from '../config.ts';
import { isSkippedFolder } from '../files/globPattern.ts';
import { isInside, realIfThere } from '../files/paths.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import type { Diagnostic } from '../files/settingsFile.ts';
import type { SkillSource } from './agent.ts';
import { type FileSkill, openSkill, skillFileIn } from './skillFile.ts';
import { type ProjectLimit, projectLimit } from './workFolders.ts';

/** Depth to which folders below a root are searched. A skill's own folder ends the search. */
const maxDepth = 4;

export interface SkillSearch {
  /** Same as in `Skill`. If missing, the entry of the root that contains the skill, since the user has put it there. */
  within?: string | undefined;
  /** Paths that it refuses are skipped. */
  limit?: ProjectLimit | undefined;
}

/**
 * Returns the skills below a root, sorted by id. The search stops at a folder with a skill file, follows links and guards against
 * cycles. If two folders share a name, each is named by its path below the root. A place that cannot be read is a skill with a
 * diagnostic, so that it is not missed silently. It may be a closed folder or a link in the root that leads nowhere. It may also
 * be the root, under its own path.
 */
export function findSkills(root: string, source: SkillSource): FileSkill[] {
  return runNow(findSkillSteps(root, source));
}

/** Does the same, with a pause after each folder. */
export function* findSkillSteps(
  root: string,
  source: SkillSource,
  { within, limit }: SkillSearch = {},
): Steps<FileSkill[]> {
  const found = yield* skillFolders(root, limit);
  const count = new Map<string, number>();
  for (const { name } of found) count.set(name, (count.get(name) ?? 0) + 1);
  const idOf = ({ dir, name }: SkillFolder): string =>
    count.get(name) === 1 ? name : relative(root, dir).split(sep).join('/');
  const entryOf = (dir: string): string => join(root, relative(root, dir).split(sep)[0] ?? '');
  return found
    .filter(({ file }) => limit?.refuses(file) !== true)
    .map(folder => openSkill(folder.file, source, idOf(folder), within ?? entryOf(folder.dir)))
    .sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** Folders between two steps. A pause costs as much as a look at a folder. */
const looksInStep = 16;

interface SkillFolder {
  dir: string;
  name: string;
  file: string;
}

function* skillFolders(root: string, limit: ProjectLimit | undefined): Steps<SkillFolder[]> {
  const found: SkillFolder[] = [];
  const visited = new Set<string>();
  /** Takes the folder if it is a skill's. Returns what is in it if it may hold others. */
  const look = (dir: string, name: string, realDir: string, depth: number): readonly Dirent[] | undefined => {
    if (visited.has(realDir)) return undefined;
    visited.add(realDir);
    // A folder is read once, for the skill file's odd spellings and for the folders below.
    let entries: readonly Dirent[] | undefined;
    const read = (): readonly Dirent[] => {
      entries ??= entriesIn(dir);
      return entries;
    };
    const file = depth > 0 ? skillFileIn(dir, () => read().map(entry => entry.name)) : undefined;
    if (file) {
      found.push({ dir, name, file });
      return undefined;
    }
    // A folder named like a skill file, or a broken link of that name, is a mistake to report.
    const wrong =
      depth > 0 ? read().find(entry => !entry.isFile() && /^skill\.md$/i.test(entry.name)) : undefined;
    if (wrong) {
      found.push({ dir, name, file: join(dir, wrong.name) });
      return undefined;
    }
    return depth < maxDepth ? read() : undefined;
  };
  let looks = 0;
  // Only a link can lead to a visited folder, so the real path is looked up for links only.
  function* visit(dir: string, realDir: string, depth: number, entries: readonly Dirent[]): Steps<void> {
    for (const entry of folderEntries(entries)) {
      if (++looks % looksInStep === 0) yield;
      // `join` takes apart and joins each path again, which is a tenth of the search.
      const path = dir.endsWith(sep) ? dir + entry.name : dir + sep + entry.name;
      const realPath = entry.isLink ? realIfThere(path) : realDir + sep + entry.name;
      if (entry.isLink && realPath !== undefined) {
        if (limit?.refuses(path)) continue;
        // Reading it as a skill file reports why nothing in it is read.
        if (isSensitive(realPath)) {
          found.push({ dir, name: entry.name, file: path });
          continue;
        }
      }
      if (realPath !== undefined) {
        const inside = look(path, entry.name, realPath, depth + 1);
        if (inside) yield* visit(path, realPath, depth + 1, inside);
      } else if (depth === 0 && !isLock(entry.name))
        found.push({ dir: path, name: entry.name, file: join(path, 'SKILL.md') });
    }
  }
  const realRoot = realIfThere(root);
  if (realRoot !== undefined && limit?.refuses(root)) return found;
  const inRoot = realRoot === undefined ? undefined : look(normalize(root), '', realRoot, 0);
  if (realRoot !== undefined && inRoot) yield* visit(normalize(root), realRoot, 0, inRoot);
  if (found.length === 0 && isClosed(root))
    found.push({ dir: root, name: root, file: join(root, 'SKILL.md') });
  return found;
}

/** Returns the names of the folders and links in a folder, sorted. Returns none if it cannot be read. */
export function foldersIn(dir: string): string[] {
  return folderEntries(entriesIn(dir)).map(({ name }) => name);
}

function folderEntries(entries: readonly Dirent[]): { name: string; isLink: boolean }[] {
  return entries
    .filter(entry => (entry.isDirectory() || entry.isSymbolicLink()) && !isSkippedFolder(entry.name))
    .map(entry => ({ name: entry.name, isLink: entry.isSymbolicLink() }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function entriesIn(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Whether a link that leads nowhere is a lock. Editors put such links beside a file that they have open. */
export const isLock = (name: string): boolean => name.startsWith('.');

/** Whether a folder may not be read, or is below one that may not be read. */
function isClosed(dir: string): boolean {
  try {
    opendirSync(dir).closeSync();
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM');
  }
}

/** Work in steps. At each `yield` other work may run. */
export type Steps<Result> = Generator<void, Result, void>;

/** Work between two turns of the event loop, in milliseconds, since the extension host must answer in between. */
const sliceMs = 10;

export function runNow<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  let sliceEnd = performance.now() + sliceMs;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() < sliceEnd) continue;
    await setImmediate();
    sliceEnd = performance.now() + sliceMs;
  }
}

export interface SkillRoot {
  kind: SkillRootKind;
  /** Absolute path, as set. */
  path: string;
}

/**
 * Returns the roots that are existing folders, strongest first. One folder with two names is listed once. A root in the folder of
 * the call must really be there, since a clone brings its own. `diagnostics` gets one for each that is not. Never throws.
 */
export function existingSkillRoots(
  { skillRoots, cwd }: Pick<Config, 'skillRoots' | 'cwd'>,
  diagnostics: Diagnostic[] = [],
): SkillRoot[] {
  const seen = new Set<string>();
  const limit = projectLimit(cwd, diagnostics);
  return skillRootKinds.flatMap(kind => {
    const path = skillRoots[kind];
    const real = path === undefined ? undefined : realFolder(path);
    if (path === undefined || real === undefined || seen.has(real)) return [];
    const isOfProject = kind === 'project' && isInside(cwd, path) && path !== skillRoots.user;
    if (isOfProject && limit.refuses(path)) return [];
    seen.add(real);
    return [{ kind, path }];
  });
}

function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync.native(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch {
    return undefined;
  }
}

interface SkillHolder {
  readonly name: string;
  readonly skills: readonly FileSkill[];
}

const rank: Readonly<Record<SkillSource, number>> = { project: 2, user: 1, linked: 1, builtin: 0 };

/**
 * Notes for each skill which skill of the same name shadows it. The project's wins over the user's, and that over the built-in
 * one. Skills of one rank do not shadow each other.
 */
export function markShadowed(agents: readonly SkillHolder[]): void {
  const strongest = new Map<string, { agent: SkillHolder; skill: FileSkill }>();
  for (const agent of agents) {
    for (const skill of agent.skills) {
      if (skill.isDisabled) continue;
      const other = strongest.get(skill.id);
      if (!other || rank[skill.source] > rank[other.skill.source]) strongest.set(skill.id, { agent, skill });
    }
  }
  for (const agent of agents) {
    for (const skill of agent.skills) {
      const winner = strongest.get(skill.id);
      if (winner && rank[winner.skill.source] > rank[skill.source])
        skill.shadowedBy = { agent: winner.agent.name, skill: winner.skill.id };
    }
  }
}
