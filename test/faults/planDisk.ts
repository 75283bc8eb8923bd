/** A plan on a disk that fills while it runs, and has room again: what it says, and what is lost. */
import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { tempFolder } from '../fakes/tempFolder.ts';
import type { Figure } from './figure.ts';
import { mountingWrapper } from './mountingWrapper.ts';
import type { DiskReport } from './planDiskProcess.ts';

const program = fileURLToPath(new URL('planDiskProcess.ts', import.meta.url));

export async function fullDisk(): Promise<Figure> {
  const name = 'F12, F9: a disk that fills while a plan runs';
  const limit = 'no violation, each time it says that the disk is full';
  const [command, ...wrapper] = mountingWrapper() ?? [];
  if (command === undefined)
    return { name, limit, value: 'no small disk can be mounted here', met: undefined };
  const folder = tempFolder();
  chmodSync(folder.path, 0o777);
  try {
    const { stdout } = await promisify(execFile)(command, [
      ...wrapper,
      ...[process.execPath, program, folder.path],
    ]);
    const { times, silent, problems }: DiskReport = JSON.parse(stdout);
    return {
      name,
      limit,
      value: `${problems.length} violations after it was full ${times} times, ${silent.length} times without a word${problems.length + silent.length > 0 ? ` (${[...problems, ...silent].slice(0, 3).join('; ')})` : ''}`,
      met: times > 0 && problems.length + silent.length === 0,
    };
  } finally {
    folder.remove();
  }
}
