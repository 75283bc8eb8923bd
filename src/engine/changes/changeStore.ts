/** Stores the file changes of each run, shows them, and undoes them. Changes that are too old or too large are deleted. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TelosError } from '../errors.ts';
import { appendToOwn, isLink } from '../files/atomicWrite.ts';
import { isInside, PathProblem } from '../files/paths.ts';
import { runPath } from '../records/runFile.ts';
import { readSummary } from '../records/runSummary.ts';
import {
  type ChangeLine,
  changesFolder,
  type FileHistory,
  type FolderHistory,
  type FolderLine,
  indexPath,
  type LeftFile,
  type OldFile,
  readIndex,
  runChangesFolder,
  type WriteLine,
} from './changeFile.ts';
import { KeptWrites } from './keptWrites.ts';
import { bringBack, type FileState, oldBytes, statesOf, type Undone } from './undo.ts';
import type { WatchedFolders } from './watchedFolders.ts';

/** Time that changes are kept. In milliseconds. */
const maxAge = 30 * 24 * 60 * 60 * 1000;
/** Maximum kept for all runs together. The oldest are deleted first. In bytes. */
const maxKept = 1024 * 1024 * 1024;
/** Minimum time between two sweeps. In milliseconds. */
const sweepInterval = 60 * 60 * 1000;

/** A file that a run has created or changed. */
export interface ChangedFile {
  /** Absolute and real path. */
  path: string;
  /** The file as it was before the run. Null if the run created it. */
  before: OldFile | null;
  /** Whether a command of the run removed it. */
  isRemoved: boolean;
  /** Whether the run's change to this file was undone. */
  isUndone: boolean;
  state: FileState;
}

export interface RunChanges {
  runId: string;
  /** Time of the first write. ISO 8601, UTC. */
  at: string;
  /** In the order of their first write. */
  files: readonly ChangedFile[];
  /** Folders that commands made, removed or gave another mode, which are undone with the files. */
  folders: readonly FolderHistory[];
  /** Whether commands or tools of others ran too whose changes are unknown. They are not undone. */
  ranCommands: boolean;
  /** Whether commands ran with the person's own rights. What they changed in other folders is unknown and is not undone. */
  ranOutside: boolean;
  /** Whether a command moved a branch, such as by a commit. That is not undone. */
  movedBranch: boolean;
  /** Files and folders of the working folder in which changes of commands are not known or not undone. Absolute paths. */
  leftOut: readonly string[];
  /** Set once everything is undone. ISO 8601, UTC. */
  undoneAt?: string;
}

export type UndoResult =
  /** `problem` is set if something interfered. Then only the named files are undone. */
  | ({ outcome: 'undone'; changes: RunChanges } & Undone)
  | { outcome: 'already_undone'; changes: RunChanges }
  /** Nothing was changed. These files are not as the run left them, or cannot be restored. */
  | { outcome: 'refused'; changes: RunChanges; blocked: readonly ChangedFile[] };

interface ReadChanges extends Omit<RunChanges, 'files'> {
  folder: string;
  files: readonly FileHistory[];
  undone: ReadonlySet<string>;
}

export class ChangeStore {
  readonly #dataDir: string;
  /** No run writes below these folders, so an index line that names them is not from Telos. */
  readonly #protectedDirs: readonly string[];
  #watched: Promise<WatchedFolders> | undefined;
  #sweptAt = 0;

  /** Creates the store without reading anything. */
  constructor({ dataDir, configDir }: { dataDir: string; configDir: string }) {
    this.#dataDir = dataDir;
    this.#protectedDirs = [dataDir, configDir];
  }

  /**
   * Returns the keeper for the writes of a run that begins. Without `watches`, what its commands change is unknown: a plan has its own
   * history of its folder.
   */
  keeper(runId: string, { watches = true } = {}): KeptWrites | undefined {
    const folder = runChangesFolder(this.#dataDir, runId);
    if (folder === undefined) return undefined;
    return new KeptWrites(
      folder,
      () => void this.#sweep(runId),
      watches ? async place => (await this.#folders()).begin(place) : undefined,
    );
  }

  /** Resolves when what commands that have ended left is taken in. */
  async settled(): Promise<void> {
    await (await this.#watched)?.settled();
  }

  /** Loads what knows the working folders when the first command runs. */
  #folders(): Promise<WatchedFolders> {
    this.#watched ??= import('./watchedFolders.ts').then(
      ({ WatchedFolders }) => new WatchedFolders(this.#dataDir, this.#protectedDirs),
    );
    return this.#watched;
  }

  /** Returns the last run that changed a file, or undefined if no changes are kept. */
  async latest(): Promise<string | undefined> {
    const found = (await this.#runIds()).flatMap(runId => this.#read(runId) ?? []);
    return found.sort((one, other) => (one.at < other.at ? 1 : -1))[0]?.runId;
  }

  /** Returns the runs that changed a file and whose id begins with the prefix. */
  async find(idPrefix: string): Promise<string[]> {
    const ids = (await this.#runIds()).filter(runId => runId.startsWith(idPrefix));
    return ids.filter(runId => this.#read(runId) !== undefined);
  }

  /** Compares with the files as they are now. Throws TelosError `config` if nothing is kept of such a run. */
  async of(runId: string): Promise<RunChanges> {
    const { folder, files, undone, ...facts } = this.#existing(runId);
    const states = await statesOf(files, folder);
    const looked = files.map(({ path, before, left }, at) => ({
      ...{ path, before, isRemoved: left.at(-1) === null, isUndone: undone.has(path) },
      state: states[at] ?? 'unreachable',
    }));
    return { ...facts, files: looked };
  }

  /** Returns those of the runs whose changes are all undone. */
  undoneAmong(runIds: readonly string[]): string[] {
    return runIds.filter(runId => this.#read(runId)?.undoneAt !== undefined);
  }

  /**
   * Returns the bytes of a file before a run. Returns undefined if there was no file, or if its bytes were not kept. Throws
   * TelosError `config` for an unknown run.
   */
  async before(runId: string, path: string): Promise<Buffer | undefined> {
    const { folder, files } = this.#existing(runId);
    const before = files.find(file => file.path === path)?.before;
    if (before?.link !== undefined) return Buffer.from(before.link);
    return before ? oldBytes(before, folder) : undefined;
  }

  /**
   * Restores the files of a run to their state before it. If a file is not as the run left it, nothing is undone, unless `others`
   * requests the rest. Throws TelosError `config` if nothing is kept of such a run or if it is still running. The same error is
   * thrown if the old content cannot be written back. In all these cases nothing was changed.
   */
  async undo(runId: string, { others = false }: { others?: boolean } = {}): Promise<UndoResult> {
    const { folder, files, folders } = this.#existing(runId);
    if (isRunning(this.#dataDir, runId))
      throw new TelosError('config', 'This run is still active. Stop it first, then undo it.');
    const changes = await this.of(runId);
    if (changes.undoneAt !== undefined) return { outcome: 'already_undone', changes };
    const open = changes.files.filter(({ isUndone }) => !isUndone);
    const blocked = open.filter(({ state }) => state !== 'ready' && state !== 'as_before');
    const isReady = new Set(open.filter(({ state }) => state === 'ready').map(({ path }) => path));
    if (blocked.length > 0 && (!others || isReady.size === 0))
      return { outcome: 'refused', changes, blocked };
    const undone = await bringBack(
      files.filter(({ path }) => isReady.has(path)),
      folder,
      folders,
    ).catch(error => {
      const why = error instanceof PathProblem ? error.message : String(error);
      throw new TelosError('config', `Nothing was undone. ${why}`);
    });
    const asBefore = open.filter(({ state }) => state === 'as_before').map(({ path }) => path);
    const line: ChangeLine = {
      type: 'undone',
      at: new Date().toISOString(),
      paths: [...undone.restored, ...undone.removed, ...asBefore, ...folders.map(({ path }) => path)],
    };
    try {
      appendToOwn(indexPath(folder), `\n${JSON.stringify(line)}\n`);
    } catch {
      // The files themselves show that they are as before.
    }
    return { outcome: 'undone', changes, ...undone };
  }

  /** Deletes the kept changes of a run, which can then not be undone any more. Throws the error of the file system. */
  async forget(runId: string): Promise<void> {
    const folder = runChangesFolder(this.#dataDir, runId);
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }

  #existing(runId: string): ReadChanges {
    const found = this.#read(runId);
    if (found) return found;
    throw new TelosError(
      'config',
      `No changes are stored for the run '${runId}': it changed no files, or it is older than 30 days.`,
    );
  }

  #read(runId: string): ReadChanges | undefined {
    const folder = runChangesFolder(this.#dataDir, runId);
    if (folder === undefined) return undefined;
    try {
      const lines = readIndex(folder);
      const writes = lines.filter(
        line => line.type === 'write' && !this.#protectedDirs.some(dir => isInside(dir, line.path)),
      ) as WriteLine[];
      const folders = foldersOf(
        lines.filter(
          line => line.type === 'folder' && !this.#protectedDirs.some(dir => isInside(dir, line.path)),
        ),
      );
      const first = lines.find(line => line.type === 'write' || line.type === 'folder');
      if (!first || writes.length + folders.length === 0) return undefined;
      const files = historiesOf(writes);
      const undone = undonePaths(lines);
      const looked = lines.flatMap(line => (line.type === 'looked' ? [line] : []));
      const isKnown = new Set(looked.map(({ id }) => id));
      const last = lines.findLast(line => line.type === 'undone');
      return {
        runId,
        folder,
        at: first.at,
        files,
        folders,
        undone,
        ranCommands: lines.some(line => line.type === 'command' && !isKnown.has(line.id ?? '')),
        ranOutside: looked.some(({ outside }) => outside),
        movedBranch: looked.some(({ git }) => git),
        leftOut: [...new Set(looked.flatMap(line => line.leftOut ?? []))],
        ...(last && [...files, ...folders].every(({ path }) => undone.has(path)) && { undoneAt: last.at }),
      };
    } catch {
      return undefined;
    }
  }

  async #runIds(): Promise<string[]> {
    // A link leads to a folder that is not ours, and the oldest entries in it would be deleted.
    if (isLink(changesFolder(this.#dataDir))) return [];
    const names = await readdir(changesFolder(this.#dataDir)).catch(() => []);
    return names.filter(name => runChangesFolder(this.#dataDir, name) !== undefined);
  }

  /** Deletes changes that are too old or too large, but never those of the current run. */
  async #sweep(current: string): Promise<void> {
    const now = Date.now();
    if (now - this.#sweptAt < sweepInterval) return;
    this.#sweptAt = now;
    const runs = await Promise.all(
      (await this.#runIds()).map(async runId => {
        const folder = join(changesFolder(this.#dataDir), runId);
        return { runId, folder, ...(await extentOf(folder)) };
      }),
    );
    let kept = 0;
    for (const run of runs.sort((one, other) => other.changedAt - one.changedAt)) {
      kept += run.size;
      if (run.runId === current || (now - run.changedAt < maxAge && kept <= maxKept)) continue;
      await rm(run.folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

/** Whether the run's own file says that it is still running. A run without a stored file counts as over. */
function isRunning(dataDir: string, runId: string): boolean {
  const file = runPath(dataDir, runId);
  try {
    return file !== undefined && readSummary(file)?.outcome === 'running';
  } catch {
    return false;
  }
}

async function extentOf(folder: string): Promise<{ size: number; changedAt: number }> {
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(names.map(name => stat(join(folder, name)).catch(() => undefined)));
  const size = found.reduce((sum, stats) => sum + (stats?.size ?? 0), 0);
  const times = found.flatMap(stats => (stats ? [stats.mtimeMs] : []));
  // Another process may have just created the folder and be about to write into it.
  const own =
    times.length > 0
      ? 0
      : await stat(folder).then(
          ({ mtimeMs }) => mtimeMs,
          () => 0,
        );
  return { size, changedAt: times.reduce((latest, time) => Math.max(latest, time), own) };
}

/** Returns the undone paths. A path that the run writes again later is not undone any more. */
function undonePaths(lines: readonly ChangeLine[]): Set<string> {
  const undone = new Set<string>();
  for (const line of lines) {
    if (line.type === 'write' || line.type === 'folder') undone.delete(line.path);
    if (line.type === 'undone') for (const path of line.paths) undone.add(path);
  }
  return undone;
}

function historiesOf(writes: readonly WriteLine[]): FileHistory[] {
  const byPath = new Map<string, { -readonly [Key in keyof FileHistory]: FileHistory[Key] }>();
  for (const { path, before, after, made } of writes) {
    const known = byPath.get(path);
    const added = made === undefined ? [] : [made];
    if (!known) {
      byPath.set(path, { path, before, left: [after], isMixed: false, made: added });
      continue;
    }
    known.isMixed ||= !known.left.some(left => isSame(left, before)) && !isSame(known.before, before);
    known.left = [...known.left, after];
    known.made = [...known.made, ...added];
  }
  return [...byPath.values()];
}

/** A write that failed left the file unchanged. A folder is nothing for a file that comes after it. */
function isSame(one: LeftFile | null, other: OldFile | null): boolean {
  if (one === null || one.isFolder || other === null)
    return (one === null || one.isFolder === true) && other === null;
  if (one.link !== undefined) return one.link === other.link;
  return one.sha256 !== undefined && one.sha256 === other.sha256;
}

/** Returns what each folder was before the first command that changed it, and what the last one left. */
function foldersOf(lines: readonly ChangeLine[]): FolderHistory[] {
  const byPath = new Map<string, FolderHistory>();
  for (const line of lines as readonly FolderLine[]) {
    const { path, before, after } = line;
    byPath.set(path, { path, before: byPath.has(path) ? (byPath.get(path)?.before ?? null) : before, after });
  }
  return [...byPath.values()].filter(({ before, after }) => before !== after);
}
