/** Keeps what files held before a run writes them, or before what its commands have written lands. */

import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { grouped } from '@telos/protocol/text';
import {
  type KeptWrite,
  makeOwnFolders,
  type PlannedWrite,
  type WriteKeeper,
  writeNew,
} from '../files/atomicWrite.ts';
import { appendLine } from '../files/jsonLines.ts';
import { readRegularFile, smallFile } from '../files/openFile.ts';
import { describeFileError } from '../files/paths.ts';
import { readOpenFile } from '../files/regularFile.ts';
import { decodeText, formOf } from '../files/textEncoding.ts';
import { bytesPath, type ChangeLine, hashOf, indexPath, maxKeptFile, type OldFile } from './changeFile.ts';
import type { RunBytes } from './landingRecord.ts';
import { countLines } from './lineDiff.ts';

/** Maximum kept for one run. In bytes. */
const maxKeptRun = 512 * 1024 * 1024;
/** Maximum size of a text whose lines are counted. In bytes. */
const maxCounted = 1024 * 1024;

/**
 * Keeps the writes of one run, which writes one file at a time. A failure is reported once and never stops the run from writing.
 */
export class KeptWrites implements WriteKeeper {
  readonly #folder: string;
  readonly #began: () => void;
  readonly #mostKept: number;
  /** Hash of the content that the run last wrote, by path. */
  readonly #left = new Map<string, string>();
  /** What the run has written since `watchNewest` was called. */
  readonly #newest = new Set<string>();
  readonly #problems: string[] = [];
  #keptBytes = 0;
  #hasUnknown = false;
  /** A line about commands that the index gets with its first write. A run that changes nothing needs no folder. */
  #held: ChangeLine[] = [];
  #isOpen = false;
  #hasFailed = false;
  #isFull = false;

  /** `began` is called at the first write. `mostKept` is the maximum kept, in bytes. */
  constructor(folder: string, began: () => void, mostKept = maxKeptRun) {
    this.#folder = folder;
    this.#began = began;
    this.#mostKept = mostKept;
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
        this.#newest.add(path);
        this.#append({ ...line, ...(made !== undefined && { made }) });
      },
    };
  }

  /** Notes that something ran whose changes are not known. */
  noteCommand(): void {
    if (this.#hasUnknown) return;
    this.#hasUnknown = true;
    if (this.#isOpen) this.#append({ type: 'command' });
    else this.#held.push({ type: 'command' });
  }

  /**
   * Watches the files that the run has written since the last time, while something works on them for it, such as a formatter of the user.
   * The returned function counts them as the run's own as they are then, and returns those that differ.
   */
  watchNewest(): () => string[] {
    const before = new Map([...this.#newest].map(path => [path, standingAt(path)]));
    this.#newest.clear();
    return () =>
      [...before].flatMap(([path, old]) => {
        const left = this.#left.get(path);
        const now = standingAt(path);
        if (!old || !now || old.sha256 !== left || now.sha256 === left) return [];
        this.#left.set(path, now.sha256);
        const after = { size: now.size, sha256: now.sha256 };
        this.#append({ type: 'write', at: new Date().toISOString(), path, before: old, after });
        return [path];
      });
  }

  /** Returns what keeps the changes of a command that writes into a layer. Whatever it changes is known. */
  layered(): RunBytes {
    return {
      keepBytes: bytes => this.#keepBytes(bytes),
      addProblem: problem => this.#problems.push(problem),
      write: (lines, facts = {}) => {
        for (const line of lines)
          if (line.type === 'write' && line.after?.sha256) this.#left.set(line.path, line.after.sha256);
        this.#append(
          ...lines,
          ...(Object.keys(facts).length > 0 ? [{ type: 'looked', ...facts } as const] : []),
        );
      },
    };
  }

  /** Keeps old bytes, unless the run has kept too many. Returns their hash. What is not kept is reported once. */
  #keepBytes(bytes: Buffer): string {
    const sha256 = hashOf(bytes);
    const path = bytesPath(this.#folder, sha256);
    if (existsSync(path)) return sha256;
    if (this.#keptBytes + bytes.length > this.#mostKept) {
      if (!this.#isFull) this.#problems.push(tooMuch(this.#mostKept));
      this.#isFull = true;
      return sha256;
    }
    const temporary = join(this.#folder, `${sha256}.${randomUUID()}.tmp`);
    try {
      makeOwnFolders(dirname(this.#folder), this.#folder);
      // Not waiting for the disk: a command can change thousands of files, and what is kept is checked by its hash.
      writeFileSync(temporary, bytes, { mode: 0o600, flag: 'wx' });
      renameSync(temporary, path);
      this.#keptBytes += bytes.length;
    } catch (error) {
      rmSync(temporary, { force: true });
      this.#fail('the old content of a file could not be stored', error);
    }
    return sha256;
  }

  /** Returns the hash of what the run last wrote into a file; undefined if it wrote none. */
  leftAt(path: string): string | undefined {
    return this.#left.get(path);
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
    const bytes = await readAnchored(place, before.size).catch(error => {
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
    if (this.#keptBytes + bytes.length > this.#mostKept) {
      this.#problems.push(tooLarge(path, bytes.length));
      return;
    }
    const temporary = join(this.#folder, `${sha256}.${randomUUID()}.tmp`);
    try {
      makeOwnFolders(dirname(this.#folder), this.#folder);
      await writeNew(temporary, bytes);
      renameSync(temporary, bytesPath(this.#folder, sha256));
      this.#keptBytes += bytes.length;
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      this.#fail(`the old content of ${basename(path)} could not be stored`, error);
    }
  }

  /** Synchronous, because the file is replaced right after it, and nothing may happen in between. */
  #append(...added: readonly ChangeLine[]): void {
    const text = [...this.#held, ...added].map(each => JSON.stringify(each)).join('\n');
    try {
      makeOwnFolders(dirname(this.#folder), this.#folder);
      appendLine(indexPath(this.#folder), text, constants.O_CREAT);
    } catch (error) {
      this.#fail('the changes of the run could not be recorded', error);
      return;
    }
    if (!this.#isOpen) this.#began();
    this.#isOpen = true;
    this.#held = [];
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

const tooMuch = (most: number): string =>
  `What the commands of this run changed is too much for all of its old content to be stored (${grouped(most)} bytes); undoing the run will not restore the rest.`;

/** Returns how a file stands. Undefined if it is none, too large to be stored, or cannot be read. */
function standingAt(path: string): Required<Omit<OldFile, 'link'>> | undefined {
  try {
    const { bytes, size } = readRegularFile(path, maxKeptFile);
    if (size > bytes.length) return undefined;
    return { size, mode: lstatSync(path).mode & 0o7777, sha256: hashOf(bytes) };
  } catch {
    return undefined;
  }
}

/** Reads the file at `place`, which is in the folder already open. The bytes read are then those that will be replaced. */
async function readAnchored(place: string, size: number): Promise<Buffer> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  if (size <= smallFile) {
    const fd = openSync(place, flags);
    try {
      return readOpenFile(fd);
    } finally {
      closeSync(fd);
    }
  }
  const handle = await open(place, flags);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function linesOf(before: Buffer | undefined, after: Buffer): Pick<KeptWrite, 'lines'> {
  const textOf = (bytes: Buffer | undefined): string | undefined => {
    const form = bytes === undefined || bytes.length > maxCounted ? undefined : formOf(bytes);
    return form && decodeText(bytes!, form);
  };
  const [old, fresh] = [textOf(before), textOf(after)];
  return old === undefined || fresh === undefined ? {} : { lines: countLines(old, fresh) };
}
