/** Every writer of user files on a full disk, on one that became read-only, and in folders that are another's: what stays, and what is said. */
import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tempFolder } from '../fakes/tempFolder.ts';
import type { Figure } from './figure.ts';
import { mountingWrapper } from './mountingWrapper.ts';
import type { DiskFault, WriterReport } from './writersProcess.ts';

const limit = 'old file whole, told once';
const names: Readonly<Record<DiskFault, string>> = {
  full: 'a full disk',
  readonly: 'a read-only disk',
  permission: 'a folder without the right to write',
};

export async function writerFigures(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const fault of ['full', 'readonly', 'permission'] as const) figures.push(...(await figuresOf(fault)));
  return figures;
}

async function figuresOf(fault: DiskFault): Promise<Figure[]> {
  const where = names[fault];
  const wrapper = fault === 'permission' ? [] : mountingWrapper();
  if (!wrapper)
    return [
      { name: `each writer on ${where}`, value: 'no small disk can be mounted here', limit, met: undefined },
    ];
  const folder = tempFolder();
  chmodSync(folder.path, 0o777);
  try {
    const reports = await reportsOf([...wrapper, process.execPath, program, fault, folder.path]);
    return reports.map(({ writer, told, isOldWhole, leftovers }) => ({
      name: `${writer} on ${where}`,
      value: `old file ${isOldWhole ? 'whole' : 'CHANGED'}, told ${told.length === 1 ? 'once' : `${told.length} times: ${JSON.stringify(told)}`}${leftovers.length > 0 ? `, left over: ${leftovers.join(', ')}` : ''}`,
      limit,
      met: isOldWhole && told.length === 1 && leftovers.length === 0,
    }));
  } finally {
    folder.remove();
  }
}

const program = fileURLToPath(new URL('writersProcess.ts', import.meta.url));

async function reportsOf([command = '', ...args]: string[]): Promise<WriterReport[]> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], timeout: 60_000 });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const code = await new Promise(resolve => child.once('close', resolve));
  if (code !== 0) throw new Error(`The process with the writers ended with ${code}.`);
  return JSON.parse(text) as WriterReport[];
}
