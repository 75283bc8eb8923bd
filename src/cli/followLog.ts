/** Hands on each record of the log as it is written. */
import { mkdirSync, statSync, watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { type LogRecord, logPath, parseRecord } from '../engine/logFile.ts';

/** Ends when the signal aborts. Throws what the file system says. */
export async function followLog(
  dataDir: string,
  signal: AbortSignal,
  onRecord: (record: LogRecord) => void,
): Promise<void> {
  const folder = join(dataDir, 'logs');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const reader = new DayReader(dataDir);
  const watcher = watch(folder);
  let reading = Promise.resolve();
  try {
    await new Promise<void>((resolve, reject) => {
      watcher.on('error', reject);
      watcher.on('change', () => {
        reading = reading.then(() => reader.readOn(onRecord)).catch(reject);
      });
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  } finally {
    watcher.close();
  }
}

/** Reads on where it stopped, at first behind what is there already; a new day is a new file. */
class DayReader {
  private readonly dataDir: string;
  private file: string;
  private position: number;

  constructor(dataDir: string) {
    this.dataDir = dataDir;
    this.file = logPath(dataDir);
    this.position = statSync(this.file, { throwIfNoEntry: false })?.size ?? 0;
  }

  async readOn(onRecord: (record: LogRecord) => void): Promise<void> {
    const today = logPath(this.dataDir);
    if (today !== this.file) {
      this.file = today;
      this.position = 0;
    }
    const size = statSync(this.file, { throwIfNoEntry: false })?.size ?? 0;
    if (size <= this.position) return;
    const bytes = Buffer.alloc(size - this.position);
    const handle = await open(this.file);
    try {
      await handle.read(bytes, 0, bytes.length, this.position);
    } finally {
      await handle.close();
    }
    // A line that is not complete yet is read again with its rest.
    const end = bytes.lastIndexOf('\n') + 1;
    this.position += end;
    for (const line of bytes.subarray(0, end).toString('utf8').split('\n')) {
      const record = parseRecord(line);
      if (record) onRecord(record);
    }
  }
}
