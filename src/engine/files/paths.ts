/** Resolves the real file of a path, and says what is wrong with one. */

import { accessSync, constants, lstatSync, readlinkSync, realpathSync, type Stats } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { asSaid, grouped, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { expandPath } from '../config.ts';
import { reasonOf } from '../core/errors.ts';

/**
 * A path that cannot be used. The message is for the model and for a person. `special` is a place that is not a stored file
 * (devices, pipes, the system's own views). `unusable` is anything else.
 */
export class PathProblem extends Error {
  readonly kind: 'special' | 'unusable';

  constructor(kind: 'special' | 'unusable', message: string) {
    super(message);
    this.name = 'PathProblem';
    this.kind = kind;
  }
}

const specialPlaces = ['/proc', '/sys', '/dev'];
const maximumLinks = 40;
/** In characters. The systems' own limits are 1024, 4096 and 32,767. */
const longestPath = process.platform === 'win32' ? 32_767 : 4096;

/**
 * Returns the absolute path that `given` means, without links. `given` is relative to `base`, with `~` for `home`. A part that
 * does not exist yet is appended to the real path of its deepest existing parent. A link to nothing is followed too. Throws
 * PathProblem.
 */
export async function resolvePath(given: string, base: string, home: string): Promise<string> {
  if (given === '')
    throw new PathProblem('unusable', 'The path is empty. Give the path of a file or folder.');
  if (given.includes('\0'))
    throw new PathProblem('unusable', 'The path contains a NUL character. Remove it.');
  // Going up part by part would take long, and no system accepts such a path.
  if (given.length > longestPath)
    throw new PathProblem(
      'unusable',
      `The path has ${grouped(given.length)} characters; the maximum is ${grouped(longestPath)}.`,
    );
  const path = expandPath(given, home, base);
  refuseSpecialPlace(path);
  if (process.platform === 'win32') refuseWindowsDevice(path);
  const real = followLinks(path, maximumLinks);
  refuseSpecialPlace(real);
  return real;
}

/**
 * Returns the real path that an absolute path leads to, even if nothing is there yet. Returns undefined if its links cannot be
 * followed.
 */
export function realPlace(path: string): string | undefined {
  try {
    return followLinks(path, maximumLinks);
  } catch {
    return undefined;
  }
}

/** Returns the real path of what is there. Returns undefined for anything that is missing or cannot be reached. */
export function realIfThere(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** Synchronous: a path takes microseconds on a disk, and each hop through the thread pool takes many times that. */
function followLinks(path: string, linksLeft: number): string {
  if (linksLeft === 0) throw new PathProblem('unusable', `${path} goes through too many links.`);
  const missing: string[] = [];
  for (let current = path; ; current = dirname(current)) {
    if (!isMissing(current)) {
      const real = realPathIfExists(current, path);
      if (real !== undefined) return join(real, ...missing);
      const link = linkTarget(current);
      if (link !== undefined) {
        const folder = realpathSync.native(dirname(current));
        return followLinks(resolve(folder, link, ...missing), linksLeft - 1);
      }
    }
    if (dirname(current) === current) return path;
    missing.unshift(basename(current));
  }
}

/** Whether nothing is there, not even a link. To ask where it leads would throw an error, which takes far longer. */
function isMissing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

function realPathIfExists(current: string, path: string): string | undefined {
  try {
    return realpathSync.native(current);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'ELOOP') throw new PathProblem('unusable', `${path} is a link that leads back to itself.`);
    throw new PathProblem('unusable', describeFileError(error, path));
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Whether a path is in the system's own views and devices. */
export const isSpecialPlace = (path: string): boolean =>
  sep === '/' && specialPlaces.some(folder => isInside(folder, path));

function refuseSpecialPlace(path: string): void {
  const place = specialPlaces.find(folder => isInside(folder, path));
  if (place !== undefined && isSpecialPlace(path))
    throw new PathProblem(
      'special',
      `${path} is in ${place}, which contains no regular files. It is never opened.`,
    );
}

/**
 * Exported for its test. The rule concerns only Windows: names such as `CON` or `\\.\pipe\x` are devices in every folder there.
 */
export function refuseWindowsDevice(path: string): void {
  const device = /(^|[\\/])(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)[ .]*([.:][^\\/]*)?$/i;
  if (device.test(path) || /^[\\/]{2}[.?][\\/]/.test(path) || path.slice(2).includes(':'))
    throw new PathProblem(
      'special',
      `${path} names a device or a hidden stream of Windows. It is never opened.`,
    );
}

/** Whether a path contains a `..` after a name. Above a link, the system finds another folder than the words say. */
export const goesDownAndUp = (path: string): boolean =>
  path
    .replace(/^(?:\.{1,2}(?:[\\/]+|$)|[\\/]+)*/, '')
    .split(/[\\/]/)
    .includes('..');

/** Whether a path is absolute and has no empty part and none of dots alone, so that its letters say where it leads. */
const isPlain = (path: string): boolean => /^(?:\/(?!\.{0,2}(?:\/|$))[^/]*)+$/.test(path);

/** Whether `path` is `folder` or is below it. Both are absolute and real. Compares names, not prefixes. */
export function isInside(folder: string, path: string): boolean {
  if (sep === '/' && isPlain(folder) && isPlain(path))
    return path === folder || path.startsWith(`${folder}/`);
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Returns the first of the folders that contains the real path `path`. The folders need not exist and may be links. */
export async function folderHolding(
  path: string,
  folders: readonly string[],
  home: string,
): Promise<string | undefined> {
  for (const folder of folders) if (isInside(await resolvePath(folder, folder, home), path)) return folder;
  return undefined;
}

/** Throws PathProblem `special` if something other than a regular file or a folder is there. A missing file is fine. */
export async function refuseSpecialFile(path: string): Promise<void> {
  const stats = factsOf(path);
  if (stats !== undefined && !stats.isFile() && !stats.isDirectory()) throw notRegular(path);
}

/** Returns what is at the path itself; undefined if nothing is, not even a link. Throws the error of the file system. */
export function statsAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Returns undefined for what cannot be examined. Its path was just resolved, so a call to another thread would only take longer. */
function factsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

export const notRegular = (path: string): PathProblem =>
  new PathProblem(
    'special',
    `${path} is not a regular file but a pipe, socket or device. It is never opened.`,
  );

/**
 * Returns the folder above the real path `folder` that holds the user's own repository it is in. Undefined if `folder` has one itself,
 * or is in none.
 */
export function repositoryAbove(folder: string): string | undefined {
  for (let place = folder; ; place = dirname(place)) {
    const git = statsAt(join(place, '.git'));
    if (git) {
      const isOwn = git.isDirectory() && git.uid === (process.getuid?.() ?? git.uid);
      return isOwn && place !== folder && statsAt(join(place, '.git/objects'))?.isDirectory()
        ? place
        : undefined;
    }
    if (dirname(place) === place) return undefined;
  }
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

const fileErrors: Readonly<Record<string, (path: string) => Sentence>> = {
  ENOENT: path => sentence('{0} does not exist.', path),
  ENOTDIR: path => sentence('{0} goes through something that is not a folder.', path),
  EISDIR: path => sentence('{0} is a folder.', path),
  EACCES: path => sentence('{0} cannot be accessed: permission denied.', path),
  EPERM: path => sentence('{0} cannot be accessed: operation not permitted.', path),
  ENAMETOOLONG: path => sentence('{0} has a name that is too long.', path),
  ENOSPC: path => sentence('{0} could not be written: the disk is full.', path),
  EDQUOT: path => sentence('{0} could not be written: the disk quota is exceeded.', path),
  EROFS: path => sentence('{0} could not be written: the disk is read-only.', path),
  EMFILE: path => sentence('{0} could not be opened: too many files are open.', path),
};

/** Returns a sentence for a failed file operation, instead of the system's call and code. */
export function fileProblem(error: unknown, path: string): Sentence {
  if (error instanceof PathProblem) return asSaid(error.message);
  const code = errorCode(error) ?? '';
  const { syscall, path: inTheWay = path } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST' && syscall === 'mkdir') return sentence('{0} is not a folder.', inTheWay);
  return fileErrors[code]?.(path) ?? sentence('{0} could not be used: {1}', path, reasonOf(error));
}

/** The same in English. */
export const describeFileError = (error: unknown, path: string): string => spoken([fileProblem(error, path)]);

/** Returns true if this process may read the file or the folder. */
export function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
