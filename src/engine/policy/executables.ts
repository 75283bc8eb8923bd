/** Detects writes that make or change a program. A person who agreed to file writes has not agreed to that. */
import { lstatSync, realpathSync, statfsSync } from 'node:fs';
import { delimiter, dirname, extname, isAbsolute } from 'node:path';
import { folded } from '../files/sensitiveNames.ts';
import { pathIn, programEndings } from '../tools/programPath.ts';
import type { PolicyContext } from './decision.ts';

interface Write {
  tool: string;
  /** The real path. */
  subject: string;
  /** The whole new content; undefined if the call does not contain it. */
  content?: string;
}

/** Returns a sentence on why the write is one of a program; undefined for a write of an ordinary file. */
export function programProblem(
  { subject, content, tool }: Write,
  { env = {} }: PolicyContext,
): string | undefined {
  const endsAsProgram =
    process.platform === 'win32' && programEndings(env).includes(extname(subject).toLowerCase());
  if (isExecutable(subject, endsAsProgram))
    return `${subject} is a program that can be executed: what is written there runs in its place.`;
  if (!isOnPath(dirname(subject), env)) return undefined;
  // The result of an edit is known only after it is done.
  const begins = tool === 'edit_file' || content === undefined || /^\uFEFF?#!/.test(content);
  if (begins || endsAsProgram)
    return `${dirname(subject)} is on your PATH: a script that is written there can be run by its name.`;
  return undefined;
}

/** File systems of other systems, by the kernel's number for them. They store no execute bit, and show one for every file. */
const withoutModes = new Set([
  0x4d44, 0x2011bab0, 0x5346544e, 0x65735546, 0x01021997, 0xff534d42, 0xfe534d42, 0x517b, 0x53464846,
]);

function isExecutable(path: string, endsAsProgram: boolean): boolean {
  try {
    const stats = lstatSync(path);
    if (!stats.isFile() || process.platform === 'win32') return stats.isFile() && endsAsProgram;
    const mode = stats.mode & 0o111;
    const isOfAll = mode === 0o111 && process.platform === 'linux' && withoutModes.has(statfsSync(path).type);
    return mode !== 0 && !isOfAll;
  } catch {
    // The file is missing, or cannot be written.
    return false;
  }
}

function isOnPath(folder: string, env: Readonly<Record<string, string>>): boolean {
  const wanted = folded(folder);
  const folders = (pathIn(env) ?? '').split(delimiter).filter(isAbsolute);
  return folders.some(
    each => folded(each.replace(/(?<=.)[\\/]$/, '')) === wanted || folded(realOf(each)) === wanted,
  );
}

function realOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
