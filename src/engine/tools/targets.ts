/** Finds the file that a path means, and checks it against the decision before a tool works on it. */

import { lstatSync, realpathSync, statSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, isAbsolute, join, relative, resolve } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import { expandPath } from '../config.ts';
import { errorCode, folderHolding, isInside, PathProblem, realPlace, resolvePath } from '../files/paths.ts';
import { type RunFolders, type ToolContext, toolError } from './tool.ts';

/** Bytes of one write. */
export const writeLimit = 16 * 1024 * 1024;

export const pathProperty = (what: string) => ({
  type: 'string',
  description: `${what} Relative to the working folder, absolute, or starting with ~.`,
});

export const readableFolders = (folders: RunFolders): string[] => [
  folders.workingDir,
  folders.packDir,
  folders.skillDir,
  ...(folders.personDir === undefined ? [] : [folders.personDir]),
  ...(folders.alsoReadable ?? []),
];

export const homeOf = (context: ToolContext): string =>
  context.env['HOME'] ?? context.env['USERPROFILE'] ?? homedir();

/**
 * Returns the real path that a call may touch. An approval binds the call to exactly what was shown. Without one the path
 * must be in `folders`. Throws PathProblem.
 */
export async function targetOf(
  given: unknown,
  context: ToolContext,
  folders: readonly string[],
): Promise<string> {
  const home = homeOf(context);
  const path = await resolvePath(String(given), context.workingDir, home);
  if (context.approvedSubject !== undefined) {
    if (path === context.approvedSubject) return path;
    throw new PathProblem(
      'unusable',
      `${String(given)} now means ${path}, but ${context.approvedSubject} was checked. Nothing was done.`,
    );
  }
  if ((await folderHolding(path, folders, home)) !== undefined) return path;
  throw new PathProblem(
    'unusable',
    `${path} is outside working_dir (${context.workingDir}) and has not been approved. Use a path inside it.`,
  );
}

export async function orProblem(
  context: ToolContext,
  action: () => Promise<ToolResult>,
): Promise<ToolResult> {
  context.signal.throwIfAborted();
  try {
    return await action();
  } catch (error) {
    if (error instanceof PathProblem) return toolError(error.message);
    throw error;
  }
}

export async function shownPath(path: string, context: ToolContext): Promise<string> {
  const root = await resolvePath(context.workingDir, context.workingDir, homeOf(context));
  const way = relative(root, path);
  return isInside(root, path) && !isAbsolute(way) ? way : path;
}

export async function isUnmadeWorkingDir(path: string, context: ToolContext): Promise<boolean> {
  const root = await resolvePath(context.workingDir, context.workingDir, homeOf(context));
  if (path !== root) return false;
  return lstat(root).then(
    () => false,
    error => errorCode(error) === 'ENOENT',
  );
}

/** The folders of a run, and the folder that `~` means. */
export type MeantFolders = Pick<RunFolders, 'workingDir' | 'packDir' | 'skillDir' | 'personDir'> & {
  home: string;
};

export interface MeantFile {
  /** The real path in place of the one that was given. Missing if that stays as it is. */
  path?: string;
  /** A file of the same name that was not meant: in the skill's folder, or another one of the run. */
  twin?: string;
}

/** Names that other runners give the skill's folder. A path that begins with one never means anything else. */
const placeholder =
  /^(?:\$?\{baseDir\}|\$(?:\{(?:CLAUDE_SKILL_DIR|TELOS_SKILL_DIR|SKILL_DIR|CLAUDE_PLUGIN_ROOT)\}|(?:baseDir|CLAUDE_SKILL_DIR|TELOS_SKILL_DIR|SKILL_DIR|CLAUDE_PLUGIN_ROOT)(?!\w))|<skill[_-]?(?:dir|root|path)>)(?:\/+|$)/;

/** What can stand before `skills/<slug>/`: a hidden folder, a home or an unknown workspace. */
const beforeSkills =
  /^(?:\.\/+)?(?:~\/+(?:[^/]+\/+)*|(?:\$?\{\w+\}|\$\w+|<[\w -]+>)\/+(?:\.[\w-]+\/+)?|\.[\w-]+\/+)?$/;

/**
 * Returns which file a path means that is relative to `base`. The path stays as it is if it leads to anything by itself.
 * Otherwise it is the first of the other folders that holds it: where the run works, where the person stands, the skill, its pack.
 */
export function meantFile(given: string, base: string, folders: MeantFolders): MeantFile {
  if (given === '' || given.includes('\0') || given.length > 4096) return {};
  const inSkill = placeholder.exec(given)?.[0];
  const literal = expandPath(given, folders.home, base);
  if (inSkill !== undefined && !isThere(resolve(base, given))) {
    const path =
      ownPath(given.slice(inSkill.length), folders) ?? join(folders.skillDir, given.slice(inSkill.length));
    return { path };
  }
  const others = isThere(literal) ? [] : elsewhere(given, base, folders);
  if (others[0] !== undefined) return { path: others[0] };
  if (!isThere(literal)) return {};
  const real = realPlace(literal);
  const twin = elsewhere(given, base, folders).find(path => path !== real);
  return twin === undefined ? {} : { twin };
}

/** Returns the real paths of the files and folders that a path could mean besides the obvious one, the first choice first. */
function elsewhere(given: string, base: string, folders: MeantFolders): string[] {
  const { workingDir, personDir, skillDir } = folders;
  const named = afterSkillName(given, folders);
  const paths = named === undefined ? [] : [ownPath(named, folders)];
  if (isAbsolute(given) || /^(~|\.\.([\\/]|$))/.test(given) || /^[./\\]*$/.test(given))
    return paths.filter(isText);
  const around = [workingDir, personDir].filter(isText).filter(folder => folder !== base);
  const before = around.map(folder => pathIn(folder, given));
  const own = base === skillDir ? [] : [pathIn(skillDir, given)];
  const ofPack = packHolds(folders) && base !== folders.packDir ? [pathIn(folders.packDir, given)] : [];
  return [...before, ...paths, ...own, ...ofPack].filter(isText);
}

const isText = (text: string | undefined): text is string => text !== undefined;

/** Returns the rest of a path after `skills/<slug>/`, if the slug is that of this very skill. */
function afterSkillName(given: string, { skillDir, home }: MeantFolders): string | undefined {
  const path = isAbsolute(given) && given.startsWith(`${home}/`) ? `~${given.slice(home.length)}` : given;
  const marker = `skills/${basename(skillDir)}`;
  const at = `${path}/`.lastIndexOf(`${marker}/`);
  if (at < 0 || !beforeSkills.test(path.slice(0, at))) return undefined;
  return path.slice(at + marker.length).replace(/^\/+/, '');
}

/** Returns the real path below the skill's folder, or below its pack. */
function ownPath(rest: string, folders: MeantFolders): string | undefined {
  const deeper = afterSkillName(rest, folders);
  const inSkill = pathIn(folders.skillDir, deeper ?? rest);
  return inSkill ?? (packHolds(folders) ? pathIn(folders.packDir, rest) : undefined);
}

/** Whether the pack is more than a folder in which skills of all kinds are collected. */
const packHolds = ({ packDir, skillDir }: MeantFolders): boolean =>
  isInside(join(packDir, 'skills'), skillDir);

/** Returns the real path of a file or folder that really lies in `folder`. A link that leads out of it does not count. */
function pathIn(folder: string, rest: string): string | undefined {
  try {
    const real = realpathSync.native(join(folder, rest));
    const stats = statSync(real);
    if (!stats.isFile() && !stats.isDirectory()) return undefined;
    return isInside(realpathSync.native(folder), real) ? real : undefined;
  } catch {
    return undefined;
  }
}

/** Whether anything is there, be it a link that leads nowhere. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // What may not be looked at is there.
    return !/^(ENOENT|ENOTDIR|ENAMETOOLONG)$/.test(errorCode(error) ?? '');
  }
}

export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;
