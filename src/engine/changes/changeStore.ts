/** Stores the file changes of each run, shows them, and undoes them. Changes that are too old or too large are deleted. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asSaid, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { isLink } from '../files/atomicWrite.ts';
import { PathProblem } from '../files/paths.ts';
import { runPath } from '../records/runFile.ts';
import { readSummary } from '../records/runSummary.ts';
import { changesFolder, runChangesFolder } from './changeFile.ts';
import {
  type ChangedFile,
  changesIn,
  hasUndo,
  indexOf,
  isBlocked,
  lookedAt,
  noteLine,
  type ReadChanges,
  type RunChanges,
  type RunIndex,
  restorableState,
  undonePaths,
  writtenInTurn,
} from './changeHistory.ts';
import { KeptWrites } from './keptWrites.ts';
import type { RestorePlan, RestoreResult } from './restore.ts';
import { bringBack, oldBytes, type Undone } from './undo.ts';

/** Time that changes are kept. In milliseconds. */
const maxAge = 30 * 24 * 60 * 60 * 1000;
/** Maximum kept for all runs together. The oldest are deleted first. In bytes. */
const maxKept = 1024 * 1024 * 1024;
/** Minimum time between two sweeps. In milliseconds. */
const sweepInterval = 60 * 60 * 1000;

export type UndoResult =
  /** `problem` is set if something interfered. Then only the named files are undone. */
  | ({ outcome: 'undone'; changes: RunChanges } & Undone)
  | { outcome: 'already_undone'; changes: RunChanges }
  /** Nothing was changed. These files are not as the run left them, or cannot be restored. */
  | { outcome: 'refused'; changes: RunChanges; blocked: readonly ChangedFile[] };

type ReadRun = RunIndex & { at: string };

export class ChangeStore {
  readonly #dataDir: string;
  /** No run writes below these folders, so an index line that names them is not from Telos. */
  readonly #protectedDirs: readonly string[];
  #sweptAt = 0;

  /** Creates the store without reading anything. */
  constructor({ dataDir, configDir }: { dataDir: string; configDir: string }) {
    this.#dataDir = dataDir;
    this.#protectedDirs = [dataDir, configDir];
  }

  /** Returns the keeper for the writes of a run that begins. */
  keeper(runId: string): KeptWrites | undefined {
    const folder = runChangesFolder(this.#dataDir, runId);
    return folder === undefined ? undefined : new KeptWrites(folder, () => void this.#sweep(runId));
  }

  /**
   * Returns the last run that has something to undo. If none has, returns the last that wrote a file, or undefined if no changes are
   * kept.
   */
  async latest(): Promise<string | undefined> {
    const found = (await this.#runIds()).flatMap(runId => this.#read(runId) ?? []);
    found.sort((one, other) => (one.at < other.at ? 1 : -1));
    for (const { runId } of found) if (hasUndo(await this.of(runId))) return runId;
    return found[0]?.runId;
  }

  /** Returns the runs that first changed something at this time or later, the latest first. ISO 8601, UTC. */
  async since(at: string): Promise<string[]> {
    const found = (await this.#runIds()).flatMap(runId => this.#read(runId) ?? []);
    return found
      .filter(run => run.at >= at)
      .sort((one, other) => (one.at < other.at ? 1 : -1))
      .map(({ runId }) => runId);
  }

  /** Returns the runs that changed a file and whose id begins with the prefix. */
  async find(idPrefix: string): Promise<string[]> {
    const ids = (await this.#runIds()).filter(runId => runId.startsWith(idPrefix));
    return ids.filter(runId => this.#read(runId) !== undefined);
  }

  /** Compares with the files as they are now. Throws TelosError `config` if nothing is kept of such a run. */
  async of(runId: string): Promise<RunChanges> {
    const run = this.#existing(runId);
    const changes = changesIn([run], { withUndone: true });
    const restore = run.lines.find(line => line.type === 'restore');
    const undoneAt = undoneAtOf(run, changes);
    return {
      runId,
      at: run.at,
      ...(await lookedAt(changes, undonePaths(run.lines))),
      ...(undoneAt !== undefined && { undoneAt }),
      ...(restore && { restores: restore.runs }),
    };
  }

  /**
   * Returns the files of a run that another run has written too, so that the two cannot be undone in the reverse order of their writes.
   * Undoing the one then brings back, or takes away, what the other has written. Absolute paths. Throws TelosError `config` for an
   * unknown run.
   */
  async writtenInTurn(runId: string): Promise<string[]> {
    const run = this.#existing(runId);
    const others = (await this.#runIds()).filter(id => id !== runId);
    return writtenInTurn(run, this.#readAll(others));
  }

  /** Returns those of the runs whose changes are all undone. */
  undoneAmong(runIds: readonly string[]): string[] {
    return runIds.filter(runId => {
      const run = this.#read(runId);
      return run && undoneAtOf(run, changesIn([run], { withUndone: true })) !== undefined;
    });
  }

  /**
   * Returns the bytes of a file before a run. Returns undefined if there was no file, or if its bytes were not kept. Throws
   * TelosError `config` for an unknown run.
   */
  async before(runId: string, path: string): Promise<Buffer | undefined> {
    const run = this.#existing(runId);
    const { folder } = run;
    const before = changesIn([run], { withUndone: true }).files.find(file => file.path === path)?.before;
    if (before?.link !== undefined) return Buffer.from(before.link);
    return before ? oldBytes(before, folder) : undefined;
  }

  /**
   * Restores the files of a run to their state before it. If a file is not as the run left it, nothing is undone, unless `others`
   * requests the rest. Throws TelosError `config` if nothing is kept of such a run or if it is still running. The same error is
   * thrown if the old content cannot be written back. In all these cases nothing was changed.
   */
  async undo(runId: string, { others = false }: { others?: boolean } = {}): Promise<UndoResult> {
    const run = this.#existing(runId);
    const { files, folders, git } = changesIn([run], { withUndone: true });
    if (isRunning(this.#dataDir, runId))
      throw new TelosError('config', [
        sentence('This run is still active.'),
        sentence('Stop it first, then undo it.'),
      ]);
    const changes = await this.of(runId);
    if (changes.undoneAt !== undefined) return { outcome: 'already_undone', changes };
    const open = changes.files.filter(({ isUndone }) => !isUndone);
    const blocked = open.filter(isBlocked);
    const isReady = new Set(open.filter(({ state }) => state === 'ready').map(({ path }) => path));
    if (blocked.length > 0 && (!others || isReady.size === 0))
      return { outcome: 'refused', changes, blocked };
    // Of a part of the files it would be the state of another time.
    const state = blocked.length > 0 ? [] : (await restorableState(git)).filter(one => one.isReady);
    const ofGit = new Set(state.map(({ path }) => path));
    const undone = await bringBack(
      [...files.filter(({ path }) => isReady.has(path)), ...state],
      folders,
    ).catch(error => {
      const why = error instanceof PathProblem ? error.message : String(error);
      throw new TelosError('config', [sentence('Nothing was undone.'), asSaid(why)]);
    });
    const asBefore = open.filter(({ state }) => state === 'as_before').map(({ path }) => path);
    const paths = [...undone.restored, ...undone.removed, ...asBefore, ...folders.map(({ path }) => path)];
    noteLine(run.folder, { type: 'undone', at: new Date().toISOString(), paths });
    if (changes.restores) await this.#takeUpAgain(changes.restores, paths);
    const [restored, removed] = [undone.restored, undone.removed].map(paths =>
      paths.filter(path => !ofGit.has(path)),
    );
    return { outcome: 'undone', changes, ...undone, restored: restored ?? [], removed: removed ?? [] };
  }

  /** Notes that the runs count again, after their restore was undone. */
  async #takeUpAgain(runIds: readonly string[], paths: readonly string[]): Promise<void> {
    const { takeUpAgain } = await import('./restore.ts');
    await takeUpAgain(this.#readAll(runIds), runIds, paths, this.#dataDir);
  }

  /**
   * Returns what taking back these runs of a conversation would do, with those that were replaced since the first of them: how their
   * files are now and were before, and what is not restored. Changes nothing.
   */
  async restorable(shown: readonly string[]): Promise<RestorePlan> {
    const { actionsOutside, tooLarge, withReplaced } = await import('./restore.ts');
    const runIds = await withReplaced(shown, this.#dataDir);
    const looked = await lookedAt(changesIn(this.#readAll(runIds), { withUndone: false }), new Set());
    const outside = await actionsOutside(runIds, this.#dataDir);
    return { runIds, ...looked, outside, tooLarge: tooLarge(looked.files) };
  }

  /**
   * Takes back what `restorable` names: restores the files to their state before the first of the runs, and leaves the runs out of
   * their conversation from now on. `undo` with the returned id undoes that. If a file is not as the runs left
   * it, nothing is changed, unless `others` requests the rest. Throws TelosError `config` if one of the runs is still running, and
   * if nothing could be kept or written; nothing was changed then.
   */
  async restore(shown: readonly string[], { others = false } = {}): Promise<RestoreResult> {
    const plan = await this.restorable(shown);
    if (plan.runIds.some(runId => isRunning(this.#dataDir, runId)))
      throw new TelosError('config', [
        sentence('A run of this conversation is still active.'),
        sentence('Stop it first.'),
      ]);
    const blocked = plan.files.filter(isBlocked);
    if (blocked.length > 0 && !others) return { outcome: 'refused', plan, blocked };
    const { restoreRuns } = await import('./restore.ts');
    const restored = await restoreRuns(this.#readAll(plan.runIds), plan, this.#dataDir);
    void this.#sweep(restored.id);
    return restored;
  }

  #readAll(runIds: readonly string[]): RunIndex[] {
    return runIds.flatMap(runId => this.#read(runId) ?? []);
  }

  /** Deletes the kept changes of a run, which can then not be undone any more. Throws the error of the file system. */
  async forget(runId: string): Promise<void> {
    const folder = runChangesFolder(this.#dataDir, runId);
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }

  #existing(runId: string): ReadRun {
    const found = this.#read(runId);
    if (found) return found;
    throw new TelosError('config', [
      sentence(
        "No changes are stored for the run '{0}': it changed no files, or only by commands that worked in the folder directly, or it is older than 30 days.",
        runId,
      ),
    ]);
  }

  #read(runId: string): ReadRun | undefined {
    const folder = runChangesFolder(this.#dataDir, runId);
    return folder === undefined ? undefined : indexOf(runId, folder, this.#protectedDirs);
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

/** Returns when everything was undone; undefined if something is not. */
function undoneAtOf({ lines }: RunIndex, { files, folders }: ReadChanges): string | undefined {
  const undone = undonePaths(lines);
  const last = lines.findLast(line => line.type === 'undone' || line.type === 'redone');
  const isAll = [...files, ...folders].every(({ path }) => undone.has(path));
  return last?.type === 'undone' && isAll ? last.at : undefined;
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
