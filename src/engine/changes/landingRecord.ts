/** Keeps the old bytes of what lands from a layer, and writes down what is about to change. */
import { createHash } from 'node:crypto';
import { chmodSync, readlinkSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { grouped } from '@telos/protocol/text';
import { openRegularFile, readRegularFile, smallFile } from '../files/openFile.ts';
import { describeFileError } from '../files/paths.ts';
import { folded } from '../files/sensitiveNames.ts';
import type { CommandLayer } from '../tools/tool.ts';
import {
  type FolderLine,
  hashOf,
  type LeftFile,
  type LookedLine,
  maxKeptFile,
  mostHashed,
  mostRecorded,
  type OldFile,
  tooManyFiles,
  type WriteLine,
} from './changeFile.ts';
import type { LayerFile, LayerFolder } from './layerRead.ts';

/** What keeps the changes of a run's commands. */
export interface RunBytes {
  keepBytes(bytes: Buffer): string;
  addProblem(problem: string): void;
  write(lines: readonly (WriteLine | FolderLine)[], facts?: Omit<LookedLine, 'type'>): void;
}

/** One file on its way. */
export interface Step extends LayerFile {
  left: LeftFile | null;
  /** Whether only the time of the last change is another one. */
  isTouched: boolean;
}

/** Adds the step for a file. */
export async function prepare(file: LayerFile, steps: Step[], problems: string[]): Promise<void> {
  const { before, after } = file;
  try {
    if (!after) steps.push({ ...file, left: null, isTouched: false });
    else {
      const left = await leftAt(after.at, after.stats);
      const isTouched = before !== undefined && isSameContent(file, left);
      steps.push({ ...file, left, isTouched });
    }
  } catch (error) {
    problems.push(describeFileError(error, file.path));
  }
}

/**
 * Returns the steps without those in which nothing has changed. One that only looks so may have further attributes, and comes with them.
 * Throws an Error if they cannot be read.
 */
export async function withAttributes(steps: readonly Step[], marks: CommandLayer['marks']): Promise<Step[]> {
  const written = steps.flatMap(step => (step.after ? [{ step, at: step.after.at }] : []));
  const alike = written.flatMap(({ step }, index) => (step.isTouched ? [{ step, index }] : []));
  const paths = [...written.map(({ at }) => at), ...alike.map(({ step }) => step.path)];
  const found = await marks(paths, written.length);
  for (const [place, { step, index }] of alike.entries())
    step.isTouched = found[index]?.attributes === found[written.length + place]?.attributes;
  return steps.filter(
    ({ isTouched, before, after }) => !isTouched || before?.mtimeMs !== after?.stats.mtimeMs,
  );
}

/** Returns what a file or link of a layer leaves. Throws the error of the file system. */
export async function leftAt(at: string, stats: Stats): Promise<LeftFile> {
  const mode = stats.mode & 0o7777;
  if (stats.isFile() && stats.size > mostHashed) return { size: stats.size, mode };
  if (stats.isSymbolicLink()) return { size: 0, mode, link: readlinkSync(at) };
  if (stats.size <= smallFile) return { size: stats.size, mode, sha256: hashOf(openedBytes(at, stats)) };
  const hash = createHash('sha256');
  openUp(at, stats);
  const { handle } = await openRegularFile(at);
  for await (const chunk of handle.createReadStream()) hash.update(chunk);
  chmodSync(at, mode);
  return { size: stats.size, mode, sha256: hash.digest('hex') };
}

/** A command can close a file of its own to everybody. */
export function openUp(at: string, { mode }: Stats): void {
  if ((mode & 0o400) === 0) chmodSync(at, (mode & 0o7777) | 0o400);
}

function openedBytes(at: string, stats: Stats): Buffer {
  openUp(at, stats);
  const { bytes } = readRegularFile(at, stats.size + 1);
  if ((stats.mode & 0o400) === 0) chmodSync(at, stats.mode & 0o7777);
  return bytes;
}

function isSameContent({ path, before }: LayerFile, left: LeftFile): boolean {
  if (!before || (before.mode & 0o7777) !== left.mode) return false;
  if (before.isSymbolicLink()) return left.link !== undefined && readlinkSync(path) === left.link;
  if (left.sha256 === undefined || before.size !== left.size || before.size > maxKeptFile) return false;
  try {
    return hashOf(readRegularFile(path, before.size + 1).bytes) === left.sha256;
  } catch {
    return false;
  }
}

/** Keeps the old bytes, and writes down what is about to change. */
export async function record(
  steps: readonly Step[],
  folders: readonly LayerFolder[],
  run: RunBytes,
  turn: () => Promise<void> | void,
): Promise<void> {
  if (steps.length > mostRecorded) {
    run.addProblem(tooManyFiles);
    return;
  }
  const at = new Date().toISOString();
  const lines: (WriteLine | FolderLine)[] = [];
  const repositories = new Set<string>();
  const becomes = new Set(folders.flatMap(({ path, after }) => (after === null ? [] : [path])));
  const moved = new Set<string>();
  for (const { path, before, left: file, isTouched } of steps) {
    const left = file ?? (becomes.has(path) ? { size: 0, isFolder: true as const } : null);
    await turn();
    const git = gitFolder(path);
    if (git !== undefined && /\/(?:HEAD|packed-refs|refs\/.*)$/.test(path)) moved.add(git);
    if (git !== undefined && path === join(git, 'HEAD') && !before) repositories.add(git);
    if (isTouched || (git !== undefined && path.startsWith(`${join(git, 'objects')}/`))) continue;
    if (isUnknown(left)) {
      run.addProblem(
        `${path} (${grouped(left?.size ?? 0)} bytes) is too large to be known again; undoing the run leaves it.`,
      );
      if (!before) continue;
    }
    const old = before ? oldFile(path, before, run) : null;
    // What is not known again is not as the run left it, for undo: the old bytes are kept all the same.
    const after = isUnknown(left) ? null : left;
    lines.push({ type: 'write', at, path, before: old, after, ...(git !== undefined && { git }) });
  }
  const isMode = ({ before, after }: LayerFolder): boolean => before !== null && after !== null;
  const made = folders.filter(each => isMode(each) || gitFolder(each.path) === undefined);
  lines.push(...made.map(each => ({ type: 'folder', at, ...each }) as const));
  if (lines.length === 0) return;
  // A repository that is new has no branch that could have moved.
  const hasMoved = [...moved].some(git => !repositories.has(git));
  run.write(lines, {
    ...(hasMoved && { git: true as const }),
    ...(repositories.size > 0 && { repositories: [...repositories].slice(0, 20) }),
  });
}

/** Whether a file cannot be known again, so that undo leaves it. */
export const isUnknown = (left: LeftFile | null): boolean =>
  left !== null && left.sha256 === undefined && left.link === undefined && left.isFolder === undefined;

/** Returns the folder of the repository that a path is in; undefined for an ordinary one, and for that folder itself. */
function gitFolder(path: string): string | undefined {
  for (let folder = dirname(path); dirname(folder) !== folder; folder = dirname(folder))
    if (folded(basename(folder)) === '.git') return folder;
  return undefined;
}

function oldFile(path: string, before: Stats, run: RunBytes): OldFile {
  const { size, mode } = before;
  const facts = { size, mode: mode & 0o7777 };
  try {
    if (before.isSymbolicLink()) return { size: 0, mode: facts.mode, link: readlinkSync(path) };
    if (!before.isFile()) return facts;
    if (size <= maxKeptFile)
      return { ...facts, sha256: run.keepBytes(readRegularFile(path, size + 1).bytes) };
    run.addProblem(
      `${path} (${grouped(size)} bytes) is too large for its old content to be stored; undoing the run will not restore it.`,
    );
  } catch (error) {
    run.addProblem(`The old content of ${path} could not be stored: ${describeFileError(error, path)}`);
  }
  return facts;
}
