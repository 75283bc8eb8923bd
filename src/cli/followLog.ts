/** Hands on each record of the log as it is written. */
import { watch } from 'node:fs';
import { join } from 'node:path';
import type { LogRecord } from '../engine/logFile.ts';
import { LogReader } from '../engine/logReader.ts';
import { makeOwnFolders } from '../engine/ownFolder.ts';

/** Ends when the signal aborts. Throws what the file system says. */
export async function followLog(
  dataDir: string,
  signal: AbortSignal,
  onRecord: (record: LogRecord) => void,
): Promise<void> {
  const folder = join(dataDir, 'logs');
  makeOwnFolders(folder);
  const reader = new LogReader(dataDir, 'end');
  const watcher = watch(folder);
  const readOn = async (): Promise<void> => {
    for (const record of (await reader.readOn()).records) onRecord(record);
  };
  let reading = Promise.resolve();
  try {
    await new Promise<void>((resolve, reject) => {
      watcher.on('error', reject);
      watcher.on('change', () => {
        reading = reading.then(readOn).catch(reject);
      });
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  } finally {
    watcher.close();
  }
}
