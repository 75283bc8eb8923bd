/** Resolves the path that a file tool works on, checks it against the decision, and shows it to the model. */

import { lstat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, relative } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import { errorCode, folderHolding, isInside, PathProblem, resolvePath } from '../files/paths.ts';
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
