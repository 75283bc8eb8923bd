/**
 * Writes the lines of a run in the background. Keeps their order, joins many lines into few writes, and retries failed writes.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { makeOwnFolders } from '../files/ownFolder.ts';

/** Most that may wait for a disk that accepts no writes. Anything beyond it is dropped. In bytes. */
const maxWaiting = 16 * 1024 * 1024;

/** Appends to a file. Lines that cannot be written now are tried again with the next ones. */
export class RunWriter {
  readonly #path: string;
  readonly #folder: string;
  #lines: string[] = [];
  /** Bytes that the last write did not write. */
  #rest: Buffer = Buffer.alloc(0);
  #handle: FileHandle | undefined;
  #writing: Promise<void> | undefined;
  #said = false;
  problem: string | undefined;
  isClosed = false;

  constructor(path: string, folder: string) {
    this.#path = path;
    this.#folder = folder;
  }

  add(line: string): void {
    this.#lines.push(line);
  }

  flush(): void {
    // Lines added during a write are written with the next one.
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    await this.#writing;
    await this.#write();
    await this.#handle?.close().catch(() => undefined);
    this.#handle = undefined;
  }

  takeProblem(): string | undefined {
    if (this.#said || this.problem === undefined) return undefined;
    this.#said = true;
    return this.problem;
  }

  async #write(): Promise<void> {
    try {
      this.#handle ??= await this.#create();
      for (;;) {
        if (this.#rest.length === 0) this.#rest = this.#taken();
        if (this.#rest.length === 0) break;
        const { bytesWritten } = await this.#handle.write(this.#rest);
        this.#rest = this.#rest.subarray(bytesWritten);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.problem ??= `This run cannot be kept in ${this.#path} (${why}). It goes on, but will be missing or incomplete under Runs; check the folder and the space on its disk.`;
      this.#giveUp();
    }
  }

  async #create(): Promise<FileHandle> {
    makeOwnFolders(this.#folder);
    const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
    return open(this.#path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600);
  }

  #taken(): Buffer {
    const lines = this.#lines;
    this.#lines = [];
    return Buffer.from(lines.join(''));
  }

  #giveUp(): void {
    const waiting = this.#lines.reduce((sum, line) => sum + line.length, this.#rest.length);
    if (waiting <= maxWaiting) return;
    this.#rest = Buffer.from('\n');
    this.#lines = [];
  }
}
