/**
 * Defines the index of the files that a run writes, and keeps their content before each write. Parses index lines that
 * may contain anything.
 */

import { createHash, randomUUID } from 'node:crypto';
import { constants, existsSync, readFileSync, type Stats, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { grouped } from '../../protocol/text.ts';
import {
  appendToOwn,
  type KeptWrite,
  makeOwnFolders,
  type PlannedWrite,
  type WriteKeeper,
  writeNew,
} from '../files/atomicWrite.ts';
import { jsonLine, readLines } from '../files/jsonLines.ts';
import { describeFileError, isInside } from '../files/paths.ts';
import { looksBinary } from '../files/plainText.ts';
import { isRunId } from '../records/runFile.ts';
import { countLines } from './lineDiff.ts';

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
  return readLines(readFileSync(index, 'utf8'), line => jsonLine(line, changeOf)).values;
}

function changeOf(value: unknown): ChangeLine | undefined {
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

/** Maximum size of a file that is kept. In bytes. */
const maxKeptFile = 64 * 1024 * 1024;
/** Maximum kept for one run. In bytes. */
const maxKeptRun = 256 * 1024 * 1024;
/** Maximum size of a text whose lines are counted. In bytes. */
const maxCounted = 1024 * 1024;

/**
 * Keeps the writes of one run, which writes one file at a time. A failure is reported once and never stops the run from writing.
 */
export class KeptWrites implements WriteKeeper {
  readonly #folder: string;
  readonly #began: () => void;
  /** Hash of the content that the run last wrote, by path. */
  readonly #left = new Map<string, string>();
  readonly #problems: string[] = [];
  #keptBytes = 0;
  #ranCommand = false;
  /** Whether the index contains the line about the command. */
  #isNoted = false;
  #isOpen = false;
  #isCut = false;
  #hasFailed = false;

  /** `began` is called at the first write. */
  constructor(folder: string, began: () => void) {
    this.#folder = folder;
    this.#began = began;
  }

  async keep({ path, place, before, bytes, made }: PlannedWrite): Promise<KeptWrite> {
    const old = before && (await this.#oldFile(path, place, before));
    const after = { size: bytes.length, sha256: hashOf(bytes) };
    return {
      ...linesOf(before ? old?.bytes : Buffer.alloc(0), bytes),
      record: () => {
        const at = new Date().toISOString();
        const line = { type: 'write', at, path, before: old?.file ?? null, after } as const;
        this.#left.set(path, after.sha256);
        this.#append({ ...line, ...(made !== undefined && { made }) });
      },
    };
  }

  noteCommand(): void {
    if (this.#ranCommand) return;
    this.#ranCommand = true;
    // A run that writes nothing has nothing to undo, and needs no folder.
    if (this.#isOpen) this.#append({ type: 'command' });
  }

  takeProblem(): string | undefined {
    return this.#problems.shift();
  }

  async #oldFile(
    path: string,
    place: string,
    before: Stats,
  ): Promise<{ file: OldFile; bytes?: Buffer } | undefined> {
    const file: OldFile = { size: before.size, mode: before.mode & 0o7777 };
    if (before.size > maxKeptFile) {
      this.#problems.push(tooLarge(path, before.size));
      return { file };
    }
    const bytes = await readAnchored(place).catch(error => {
      this.#fail(`${basename(path)} could not be read before it was replaced`, error);
      return undefined;
    });
    if (!bytes) return { file };
    const sha256 = hashOf(bytes);
    await this.#store(path, bytes, sha256);
    return { file: { ...file, size: bytes.length, sha256 }, bytes };
  }

  async #store(path: string, bytes: Buffer, sha256: string): Promise<void> {
    if (this.#left.get(path) === sha256 || existsSync(bytesPath(this.#folder, sha256))) return;
    if (this.#keptBytes + bytes.length > maxKeptRun) {
      this.#problems.push(tooLarge(path, bytes.length));
      return;
    }
    const temporary = join(this.#folder, `${sha256}.${randomUUID()}.tmp`);
    try {
      makeOwnFolders(dirname(this.#folder), this.#folder);
      await writeNew(temporary, bytes);
      await rename(temporary, bytesPath(this.#folder, sha256));
      this.#keptBytes += bytes.length;
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      this.#fail(`the old content of ${basename(path)} could not be stored`, error);
    }
  }

  /** Synchronous, because the file is replaced right after it, and nothing may happen in between. */
  #append(line: ChangeLine): void {
    const isSaid = this.#isNoted || !this.#ranCommand || line.type === 'command';
    const lines: ChangeLine[] = isSaid ? [line] : [{ type: 'command' }, line];
    const text = lines.map(each => `${JSON.stringify(each)}\n`).join('');
    try {
      makeOwnFolders(dirname(this.#folder), this.#folder);
      // A line that was cut by a full disk stays a line of its own.
      const index = indexPath(this.#folder);
      appendToOwn(index, this.#isCut ? `\n${text}` : text, constants.O_CREAT);
    } catch (error) {
      this.#isCut = true;
      this.#fail('the changes of the run could not be recorded', error);
      return;
    }
    if (!this.#isOpen) this.#began();
    this.#isOpen = true;
    this.#isCut = false;
    this.#isNoted ||= this.#ranCommand;
  }

  /** Reports the first failure only: a full disk also fails all later writes. */
  #fail(what: string, error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const why = describeFileError(error, this.#folder);
    this.#problems.push(
      `This run cannot be undone completely: ${what}. ${why} The run continues. Check the folder and its disk.`,
    );
  }
}

const tooLarge = (path: string, size: number): string =>
  `${path} (${grouped(size)} bytes) is too large for its old content to be stored; undoing the run will not restore it.`;

/** Reads the file at `place`, which is in the folder already open. The bytes read are then those that will be replaced. */
async function readAnchored(place: string): Promise<Buffer> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const handle = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function linesOf(before: Buffer | undefined, after: Buffer): Pick<KeptWrite, 'lines'> {
  const isText = (bytes: Buffer | undefined): bytes is Buffer =>
    bytes !== undefined && bytes.length <= maxCounted && !looksBinary(bytes);
  if (!isText(before) || !isText(after)) return {};
  return { lines: countLines(before.toString('utf8'), after.toString('utf8')) };
}
