/** Writes the lines of a run behind its back: in the order in which they came, a few writes for many lines, and again where the disk took none. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { makeOwnFolders } from '../files/ownFolder.ts';

/** So much waits for a disk that takes nothing, in bytes; what is more is given up. */
const maxWaiting = 16 * 1024 * 1024;

/** A file that only grows. What cannot be written now is tried again with what comes next. */
export class RunWriter {
  readonly #path: string;
  readonly #folder: string;
  #lines: string[] = [];
  /** What a write has left over. */
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
    // What comes while a write is under way goes with the next one.
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
