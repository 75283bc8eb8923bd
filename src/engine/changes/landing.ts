/**
 * Brings what a command has written in its layer into the folders themselves. Old bytes are kept and the changes recorded first. Then each
 * path changes in one step, unless somebody else has changed it since the command began: that stays.
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  utimesSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { takingTurns } from '../cancellation.ts';
import { FolderModes } from '../files/closedFolder.ts';
import { temporaryPrefix } from '../files/globPattern.ts';
import { type OpenFolder, openFolder } from '../files/openFile.ts';
import { describeFileError, errorCode, statsAt } from '../files/paths.ts';
import type { CommandLayer } from '../tools/tool.ts';
import {
  isUnknown,
  leftAt,
  openUp,
  prepare,
  type RunBytes,
  record,
  type Step,
  withAttributes,
} from './landingRecord.ts';
import type { LayerFile, LayerFolder } from './layerRead.ts';

/** What is to land. Folders come before what is in them. */
export interface Landing {
  files: readonly LayerFile[];
  folders: readonly LayerFolder[];
}

export interface Landed {
  /** Files that are now as the command left them. Absolute paths. */
  changed: string[];
  /** Files that somebody else has changed meanwhile. `kept` is where the command's own bytes are, if it left some. Absolute. */
  conflicts: { path: string; isGone: boolean; kept?: string }[];
  /** Sentences about what could not be put in its place. */
  problems: string[];
}

/** Lands the changes. `run` keeps the old bytes and the record. Throws an Error if the layer cannot be read, before anything has landed. */
export async function landChanges(
  { files, folders }: Landing,
  { begun, marks }: Pick<CommandLayer, 'begun' | 'marks'>,
  run: RunBytes,
): Promise<Landed> {
  const landed: Landed = { changed: [], conflicts: [], problems: [] };
  const [all, contested] = [[] as Step[], [] as LayerFile[]];
  const turn = takingTurns();
  for (const file of files) {
    await turn();
    if (isChangedSince(file, begun)) contested.push(file);
    else await prepare(file, all, landed.problems);
  }
  const steps = await withAttributes(all, marks);
  await record(steps, folders, run, turn);
  const [way, modes] = [new InWay(steps, folders), new FolderModes()];
  for (const step of steps) if (way.holds(step.path) && !step.after) remove(step, modes, landed, contested);
  removeFolders(
    folders.filter(({ path }) => way.holds(path)),
    modes,
    landed,
  );
  makeFolders(folders, modes, landed);
  await placeAll(steps, modes, landed, contested, turn);
  for (const step of steps) if (!way.holds(step.path) && !step.after) remove(step, modes, landed, contested);
  removeFolders(
    folders.filter(({ path }) => !way.holds(path)),
    modes,
    landed,
  );
  for (const file of contested) landed.conflicts.push(await keepBeside(file, modes, run, landed));
  landed.problems.push(...modes.close());
  return landed;
}

/** Whether somebody else has changed the file since. Of one with several names, the other names change its facts too. */
function isChangedSince({ path, before, isGone = false }: LayerFile, begun: number): boolean {
  if (isGone) return true;
  if (!isAsSeen(statsAt(path), before) && !(before === undefined && statsAt(path)?.isDirectory()))
    return true;
  if (!before) return false;
  return (before.nlink > 1 ? before.mtimeMs : before.ctimeMs) > begun;
}

/** Tells what has to go before something else can be put in its place. */
class InWay {
  readonly #files: ReadonlySet<string>;
  readonly #all: ReadonlySet<string>;

  constructor(steps: readonly Step[], folders: readonly LayerFolder[]) {
    this.#files = new Set(steps.flatMap(({ path, after }) => (after ? [path] : [])));
    const made = folders.flatMap(({ path, after }) => (after === null ? [] : [path]));
    this.#all = new Set([...this.#files, ...made]);
  }

  /** Whether another kind of thing comes to the path, or a file to one above it. */
  holds(path: string): boolean {
    if (this.#all.has(path)) return true;
    for (let above = dirname(path); dirname(above) !== above; above = dirname(above))
      if (this.#files.has(above)) return true;
    return false;
  }
}

/** Calls `act` with the path of a name in its folder, which is open meanwhile. Throws the error of the file system and PathProblem. */
function inFolder<Result>(path: string, modes: FolderModes, act: (target: string) => Result): Result {
  modes.open(dirname(path));
  const { anchor, close } = openFolder(dirname(path));
  try {
    return act(join(anchor, basename(path)));
  } finally {
    close();
  }
}

/** Whether what is there is what the changes were compared with. */
const isAsSeen = (now: Stats | undefined, seen: Stats | undefined): boolean =>
  seen === undefined
    ? now === undefined
    : now?.ino === seen.ino &&
      now.size === seen.size &&
      now.mtimeMs === seen.mtimeMs &&
      (seen.nlink > 1 || now.ctimeMs === seen.ctimeMs);

function remove(step: Step, modes: FolderModes, landed: Landed, contested: LayerFile[]): void {
  try {
    const isRemoved = inFolder(step.path, modes, target => {
      if (!isAsSeen(lstatSync(target, { throwIfNoEntry: false }), step.before)) return false;
      unlinkSync(target);
      return true;
    });
    if (isRemoved) landed.changed.push(step.path);
    else contested.push(step);
  } catch (error) {
    landed.problems.push(describeFileError(error, step.path));
  }
}

/** Removes the folders that the command removed, the deepest first. One in which somebody else has something stays. */
function removeFolders(folders: readonly LayerFolder[], modes: FolderModes, landed: Landed): void {
  for (const { path, after } of [...folders].reverse()) {
    if (after !== null || !statsAt(path)?.isDirectory()) continue;
    try {
      inFolder(path, modes, target => rmdirSync(target));
    } catch (error) {
      const code = errorCode(error);
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') landed.problems.push(describeFileError(error, path));
    }
  }
}

/** Makes the new folders, and gives those that are there their new modes at the end. */
function makeFolders(folders: readonly LayerFolder[], modes: FolderModes, landed: Landed): void {
  for (const { path, before, after } of folders) {
    if (after === null) continue;
    try {
      const now = statsAt(path);
      if (!now) inFolder(path, modes, target => mkdirSync(target, { mode: 0o700 }));
      if (!now || (now.isDirectory() && (now.mode & 0o7777) === before)) modes.give(path, after);
    } catch (error) {
      landed.problems.push(describeFileError(error, path));
    }
  }
}

async function placeAll(
  steps: readonly Step[],
  modes: FolderModes,
  landed: Landed,
  contested: LayerFile[],
  turn: () => Promise<void> | void,
): Promise<void> {
  let open: (OpenFolder & { path: string }) | undefined;
  try {
    for (const step of steps) {
      if (!step.after) continue;
      await turn();
      try {
        if (open?.path !== dirname(step.path)) {
          open?.close();
          open = undefined;
          modes.open(dirname(step.path));
          open = { ...openFolder(dirname(step.path)), path: dirname(step.path) };
        }
        if (placeOne(step, join(open.anchor, basename(step.path)))) {
          if (!step.isTouched) landed.changed.push(step.path);
        } else contested.push(step);
      } catch (error) {
        landed.problems.push(describeFileError(error, step.path));
      }
    }
  } finally {
    open?.close();
  }
}

/** Puts the file in its place, in one step. Returns false if there is not what was seen. */
function placeOne({ before, after, isTouched }: Step, target: string): boolean {
  const now = lstatSync(target, { throwIfNoEntry: false });
  if (!after || !isAsSeen(now, before)) return false;
  const isShared = (now?.nlink ?? 1) > 1;
  if (isTouched && after.stats.isFile() && !isShared)
    utimesSync(target, after.stats.atime, after.stats.mtime);
  else moveOver(after.at, after.stats, target);
  return true;
}

/** Moves a file or link over what is there. On another disk it is copied beside its place first. */
function moveOver(at: string, stats: Stats, target: string): void {
  try {
    renameSync(at, target);
    return;
  } catch (error) {
    if (errorCode(error) !== 'EXDEV') throw error;
  }
  const temporary = join(dirname(target), `${temporaryPrefix}${randomUUID()}.tmp`);
  try {
    if (stats.isSymbolicLink()) symlinkSync(readlinkSync(at), temporary);
    else {
      openUp(at, stats);
      copyFileSync(at, temporary);
      chmodSync(temporary, stats.mode & 0o7777);
      utimesSync(temporary, stats.atime, stats.mtime);
    }
    renameSync(temporary, target);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Keeps what the command wrote beside the file that somebody else has changed meanwhile. */
async function keepBeside(
  file: LayerFile,
  modes: FolderModes,
  run: RunBytes,
  landed: Landed,
): Promise<Landed['conflicts'][number]> {
  const { path, after, isGone = false } = file;
  if (!after?.stats.isFile()) return { path, isGone };
  try {
    const left = await leftAt(after.at, after.stats);
    const kept = inFolder(path, modes, target => {
      const name = freeName(target);
      moveOver(after.at, after.stats, join(dirname(target), name));
      return join(dirname(path), name);
    });
    const line = {
      type: 'write',
      at: new Date().toISOString(),
      path: kept,
      before: null,
      after: left,
    } as const;
    if (!isUnknown(left)) run.write([line]);
    landed.changed.push(kept);
    return { path, isGone, kept };
  } catch (error) {
    landed.problems.push(describeFileError(error, path));
    return { path, isGone };
  }
}

function freeName(target: string): string {
  for (let count = 1; ; count++) {
    const name = `${basename(target)}.conflict${count === 1 ? '' : `-${count}`}`;
    if (!lstatSync(join(dirname(target), name), { throwIfNoEntry: false })) return name;
  }
}

/**
 * Returns those of the folders that land with `files`: a new one does if it holds one of them, or nothing that lands only later. A removed
 * one always does, since it stays while something is in it.
 */
export function foldersFor(
  files: readonly LayerFile[],
  later: readonly LayerFile[],
  folders: readonly LayerFolder[],
): LayerFolder[] {
  const waiting = foldersAround(later);
  const empty = folders.filter(
    ({ path, before, after }) => before === null && after !== null && !waiting.has(path),
  );
  // A new folder brings those around it.
  const holding = foldersAround([...files, ...empty]);
  return folders.filter(
    ({ path, before, after }) => before !== null || after === null || holding.has(path) || !waiting.has(path),
  );
}

function foldersAround(files: readonly { path: string }[]): Set<string> {
  const found = new Set<string>();
  for (const { path } of files)
    for (let folder = dirname(path); !found.has(folder); folder = dirname(folder)) found.add(folder);
  return found;
}
