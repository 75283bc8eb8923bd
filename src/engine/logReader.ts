/** Reads today's log as it grows, for who follows it and for who adds it up. */
import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type LogRecord, logPath, parseRecord } from './logFile.ts';

/** Goes on where it stopped; a new day is a new file, which is read from its start. */
export class LogReader {
  readonly #dataDir: string;
  #file: string;
  #position: number;

  /** `from` what is there already: from its start, or from behind it. */
  constructor(dataDir: string, from: 'start' | 'end') {
    this.#dataDir = dataDir;
    this.#file = logPath(dataDir);
    this.#position = from === 'start' ? 0 : sizeOf(this.#file);
  }

  /** What has been added; `newDay` is true when the first of it stands in another file than before. Throws what the file system says. */
  async readOn(): Promise<{ records: LogRecord[]; newDay: boolean }> {
    const today = logPath(this.#dataDir);
    const newDay = today !== this.#file;
    if (newDay) {
      this.#file = today;
      this.#position = 0;
    }
    const size = sizeOf(this.#file);
    if (size <= this.#position) return { records: [], newDay };
    const bytes = Buffer.alloc(size - this.#position);
    const handle = await open(this.#file);
    try {
      await handle.read(bytes, 0, bytes.length, this.#position);
    } finally {
      await handle.close();
    }
    // A line that is not complete yet is read again with its rest.
    const end = bytes.lastIndexOf(0x0a) + 1;
    this.#position += end;
    const lines = bytes.subarray(0, end).toString('utf8').split('\n');
    return { records: lines.flatMap(line => parseRecord(line) ?? []), newDay };
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
