/** Defines the index of the files that a run writes, with its paths. Parses index lines that may contain anything. */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isInside } from '../files/paths.ts';
import { isRunId } from '../records/runFile.ts';

/** A file before a write. */
export interface OldFile {
  size: number;
  /** The twelve bits that `chmod` takes. */
  mode: number;
  /** Missing for a file that was too large to be read. */
  sha256?: string;
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
  /** Content that the run wrote. */
  after: { size: number; sha256: string };
  /** The topmost of the folders that the write had to create. */
  made?: string;
}

export type ChangeLine =
  | WriteLine
  /** The run did something else that may have changed files in unknown ways. */
  | { type: 'command' }
  /** These files are as before again. */
  | { type: 'undone'; at: string; paths: readonly string[] };

/** Maximum size of an index. A real one stays far below it. In bytes. */
const maxIndexBytes = 16 * 1024 * 1024;

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
  return readFileSync(index, 'utf8')
    .split('\n')
    .flatMap(line => parseChange(line) ?? []);
}

function parseChange(text: string): ChangeLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isFields(value)) return undefined;
    switch (value['type']) {
      case 'write':
        return isWrite(value) ? (value as unknown as WriteLine) : undefined;
      case 'command':
        return { type: 'command' };
      case 'undone':
        return isUndone(value) ? (value as unknown as ChangeLine) : undefined;
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function isWrite({ at, path, before, after, made }: Fields): boolean {
  if (typeof at !== 'string' || !isPlainPath(path) || !isFields(after)) return false;
  if (!isCount(after['size']) || !isHash(after['sha256'])) return false;
  if (made !== undefined && !(isPlainPath(made) && isInside(made, dirname(path)))) return false;
  return before === null || (isFields(before) && isOldFile(before));
}

const isOldFile = ({ size, mode, sha256 }: Fields): boolean =>
  isCount(size) && isCount(mode) && (sha256 === undefined || isHash(sha256));

const isUndone = ({ at, paths }: Fields): boolean =>
  typeof at === 'string' && Array.isArray(paths) && paths.every(isPlainPath);

const isPlainPath = (path: unknown): path is string =>
  typeof path === 'string' && !path.includes('\0') && isAbsolute(path) && resolve(path) === path;

const isHash = (value: unknown): boolean => typeof value === 'string' && /^[\da-f]{64}$/.test(value);

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const isFields = (value: unknown): value is Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value);
