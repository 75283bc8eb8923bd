/** Defines the index of what a run changes. Parses index lines that may contain anything. */

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { grouped } from '@telos/protocol/text';
import { jsonLine, readLines } from '../files/jsonLines.ts';
import { isInside } from '../files/paths.ts';
import { readText } from '../files/regularFile.ts';
import { isRunId } from '../records/runFile.ts';

/** A file or a link before a write. */
export interface OldFile {
  size: number;
  /** The twelve bits that `chmod` takes. */
  mode: number;
  /** Missing for a link, and for a file whose bytes could not be kept. */
  sha256?: string;
  /** Where it leads. Set for a link. */
  link?: string;
}

/** What a run left at a path. A command can also leave a link, a folder or something else there. */
export interface LeftFile {
  size: number;
  /** Set for a file. */
  sha256?: string;
  /** Set if a command left it. */
  mode?: number;
  link?: string;
  isFolder?: true;
}

/** Appended right before the file is replaced. A crash in between leaves a line for a write that did not happen. */
export interface WriteLine {
  type: 'write';
  /** ISO 8601, UTC. */
  at: string;
  /** Absolute and real path. */
  path: string;
  /** Null if there was no file. */
  before: OldFile | null;
  /** What the run left there. Null if a command removed it. */
  after: LeftFile | null;
  /** The topmost of the folders that the write had to create. */
  made?: string;
  /** Set for what says where a repository stands: the folder of that repository. Absolute. */
  git?: string;
}

/** A folder that a command made, removed or gave another mode. */
export interface FolderLine {
  type: 'folder';
  /** ISO 8601, UTC. */
  at: string;
  /** Absolute and real path. */
  path: string;
  /** Its mode. Null if there was no folder. */
  before: number | null;
  after: number | null;
}

/** What else there is to know about a command whose changes have landed. */
export interface LookedLine {
  type: 'looked';
  /** It changed what a repository points to, such as by a commit. */
  git?: true;
  /** Each `.git` that it made. Undo leaves them. Absolute. */
  repositories?: readonly string[];
}

export type ChangeLine =
  | WriteLine
  | FolderLine
  /** The run did something else that may have changed files, in unknown ways. */
  | { type: 'command' }
  | LookedLine
  /** These files are as before again. */
  | { type: 'undone'; at: string; paths: readonly string[] }
  /** A restore that had undone these files was undone itself. */
  | { type: 'redone'; paths: readonly string[] }
  /** The first line of a restore: the runs that it takes back. */
  | { type: 'restore'; at: string; runs: readonly string[] };

/** All writes of a run to one file. */
export interface FileHistory {
  /** Absolute and real path. */
  path: string;
  /** The folder in which its old bytes are kept. */
  folder: string;
  /** The file or link before the first write. Null if there was none. */
  before: OldFile | null;
  /** What the run left there, one entry per write. Null stands for nothing. */
  left: readonly (LeftFile | null)[];
  /** Whether something else changed the file between two writes of the run. */
  isMixed: boolean;
  /** The topmost folders that were created for it. */
  made: readonly string[];
  /** See `WriteLine`. */
  git?: string;
}

/** The mode of a folder before and after a run. Null stands for no folder. */
export type FolderHistory = Pick<FolderLine, 'path' | 'before' | 'after'>;

/** Maximum size of a file whose old content is kept. In bytes. */
export const maxKeptFile = 64 * 1024 * 1024;
/** A larger file, which may be nothing but holes, would take minutes: it is not known again. In bytes. */
export const mostHashed = 1024 ** 3;
/** Maximum number of files of one command that are recorded. */
export const mostRecorded = 100_000;
export const tooManyFiles = `The command changed more than ${grouped(mostRecorded)} files. That cannot be undone.`;

/** Maximum size of an index. A real one stays far below it. In bytes. */
const maxIndexBytes = 64 * 1024 * 1024;

export const changesFolder = (dataDir: string): string => join(dataDir, 'changes');

/** Returns undefined if `runId` is not the id of a run. Only such an id may become part of a path. */
export const runChangesFolder = (dataDir: string, runId: string): string | undefined =>
  isRunId(runId) ? join(changesFolder(dataDir), runId) : undefined;

export const indexPath = (folder: string): string => join(folder, 'index.jsonl');

/** Returns the path of old bytes. They are named by their hash, so that equal content is stored once. */
export const bytesPath = (folder: string, sha256: string): string => join(folder, sha256);

export const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/**
 * Returns the valid lines of the index in `folder`. Lines cut by a crash or edited by hand are left out. Throws the error of the
 * file system.
 */
export function readIndex(folder: string): ChangeLine[] {
  const index = indexPath(folder);
  const stats = statSync(index);
  // Only an edited index is that long or is not a regular file.
  if (!stats.isFile() || stats.size > maxIndexBytes) return [];
  return readLines(readText(index), line => jsonLine(line, changeOf)).values;
}

function changeOf(value: unknown): ChangeLine | undefined {
  if (!isFields(value)) return undefined;
  switch (value['type']) {
    case 'write':
      return isWrite(value) ? (value as unknown as WriteLine) : undefined;
    case 'folder':
      return isFolderLine(value) ? (value as unknown as FolderLine) : undefined;
    case 'command':
      return { type: 'command' };
    case 'looked':
      return isLooked(value) ? (value as unknown as LookedLine) : undefined;
    case 'undone':
      return isUndone(value) ? (value as unknown as ChangeLine) : undefined;
    case 'redone':
      return arePaths(value['paths']) ? (value as unknown as ChangeLine) : undefined;
    case 'restore':
      return isRestore(value) ? (value as unknown as ChangeLine) : undefined;
    default:
      return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function isWrite({ at, path, before, after, made, git }: Fields): boolean {
  if (typeof at !== 'string' || !isPlainPath(path)) return false;
  if (after !== null && !(isFields(after) && isLeftFile(after))) return false;
  if (git !== undefined && !(isPlainPath(git) && isPlainPath(path) && isInside(git, path))) return false;
  if (made !== undefined && !(isPlainPath(made) && isInside(made, dirname(path)))) return false;
  return before === null || (isFields(before) && isOldFile(before));
}

const isOldFile = ({ size, mode, sha256, link }: Fields): boolean =>
  isCount(size) && isCount(mode) && (sha256 === undefined || isHash(sha256)) && isTarget(link);

const isLeftFile = ({ size, mode, sha256, link, isFolder }: Fields): boolean =>
  isCount(size) &&
  (mode === undefined || isCount(mode)) &&
  (isHash(sha256) || (sha256 === undefined && (link !== undefined || isFolder === true))) &&
  isTarget(link);

const isTarget = (link: unknown): boolean =>
  link === undefined || (typeof link === 'string' && link !== '' && !link.includes('\0'));

const isFolderLine = ({ at, path, before, after }: Fields): boolean =>
  typeof at === 'string' &&
  isPlainPath(path) &&
  [before, after].every(mode => mode === null || isCount(mode)) &&
  !(before === null && after === null);

const isLooked = ({ repositories }: Fields): boolean => repositories === undefined || arePaths(repositories);

const isUndone = ({ at, paths }: Fields): boolean => typeof at === 'string' && arePaths(paths);

const arePaths = (paths: unknown): boolean => Array.isArray(paths) && paths.every(isPlainPath);

const isRestore = ({ at, runs }: Fields): boolean =>
  typeof at === 'string' &&
  Array.isArray(runs) &&
  runs.length > 0 &&
  runs.every(run => typeof run === 'string' && isRunId(run));

const isPlainPath = (path: unknown): path is string =>
  typeof path === 'string' && !path.includes('\0') && isAbsolute(path) && resolve(path) === path;

const isHash = (value: unknown): boolean => typeof value === 'string' && /^[\da-f]{64}$/.test(value);

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const isFields = (value: unknown): value is Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value);
