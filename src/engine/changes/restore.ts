/** Takes back several runs of a conversation at once, in a way that can be undone like a run. */

import { randomUUID } from 'node:crypto';
import { constants, readlinkSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RunEvent } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { makeOwnFolders, writeNew } from '../files/atomicWrite.ts';
import { appendLine } from '../files/jsonLines.ts';
import { openRegularFile } from '../files/openFile.ts';
import { fileProblem, PathProblem, statsAt } from '../files/paths.ts';
import { loadRegularFile } from '../files/regularFile.ts';
import { runPath } from '../records/runFile.ts';
import { RunHistory, setAside } from '../records/runHistory.ts';
import { runOf } from '../records/runSummary.ts';
import {
  bytesPath,
  type ChangeLine,
  changesFolder,
  type FileHistory,
  type FolderHistory,
  hashOf,
  indexPath,
  maxKeptFile,
  type OldFile,
} from './changeFile.ts';
import {
  type ChangedFile,
  changesIn,
  isBlocked,
  noteLine,
  type RunChanges,
  type RunIndex,
  restorableState,
  undonePaths,
} from './changeHistory.ts';
import { bringBack, type Undone } from './undo.ts';

/** What taking back runs would do. The files and what else there is to know are those of all runs together. */
export interface RestorePlan extends Omit<RunChanges, 'runId' | 'at' | 'undoneAt' | 'restores'> {
  /** The runs that are taken back, in no order. */
  runIds: readonly string[];
  /** Commands and tools of others that ran outside the box, as they were called. What they did elsewhere is not restored. */
  outside: readonly string[];
  /** Files that are too large to be kept as they are now, so that undoing the restore does not bring them back. Absolute paths. */
  tooLarge: readonly string[];
}

export type RestoreResult =
  /** `id` is that of the restore, for `undo`. `problem` is set if something interfered. Then only the named files are restored. */
  | ({ outcome: 'restored'; id: string; plan: RestorePlan } & Undone)
  /** Nothing was changed. These files are not as the runs left them, or cannot be restored. */
  | { outcome: 'refused'; plan: RestorePlan; blocked: readonly ChangedFile[] };

/** Returns the runs with those of their conversation that others replaced since the first of them: their changes are there too. */
export async function withReplaced(runIds: readonly string[], dataDir: string): Promise<string[]> {
  const all = await new RunHistory(dataDir).list();
  const first = all.findLast(({ runId }) => runIds.includes(runId));
  const since = all.filter(
    ({ conversation, startedAt, isAside }) =>
      first && conversation === first.conversation && startedAt >= first.startedAt && !isAside,
  );
  return [...new Set([...runIds, ...since.map(({ runId }) => runId)])];
}

export const tooLarge = (files: readonly ChangedFile[]): string[] =>
  files.flatMap(({ path, state }) =>
    state === 'ready' && (statsAt(path)?.size ?? 0) > maxKeptFile ? [path] : [],
  );

/** Maximum number of actions outside the box that are named. */
const mostNamed = 20;

/** Returns the calls of the runs that did something outside the box, each once. A run that is not stored has none. */
export async function actionsOutside(runIds: readonly string[], dataDir: string): Promise<string[]> {
  const found = new Set<string>();
  for (const runId of runIds) {
    const file = runPath(dataDir, runId);
    const bytes = file === undefined ? undefined : await loadRegularFile(file).catch(() => undefined);
    const events = (file !== undefined && bytes && runOf(file, bytes)?.events) || [];
    for (const action of outsideIn(events)) found.add(action);
  }
  return [...found].slice(0, mostNamed);
}

function outsideIn(events: readonly RunEvent[]): string[] {
  const calls = new Map<string, string>();
  // A step has names of its own for its calls.
  const steps = new Map<string, RunEvent[]>();
  for (const event of events) {
    if (event.type !== 'skill_event') continue;
    const known = steps.get(event.callId);
    if (known) known.push(event.event);
    else steps.set(event.callId, [event.event]);
  }
  const found = [...steps.values()].flatMap(outsideIn);
  for (const event of events) {
    if (event.type === 'tool_start') {
      const { id, name, input } = event.call;
      calls.set(id, name === 'run_command' ? String(input['command'] ?? '') : name);
    }
    if (event.type === 'approval_response' && !event.decision.allow) calls.delete(event.callId);
    if (event.type !== 'tool_end' || !event.policy) continue;
    const { action, rule, boxed } = event.policy;
    const leavesBox = event.name === 'run_command' || event.name.startsWith('mcp__');
    const name = calls.get(event.callId);
    if (leavesBox && !boxed && action !== 'deny' && rule !== 'run.read-only' && name) found.push(name);
  }
  return found;
}

/**
 * Restores what the plan names as ready, and leaves the runs out of their conversation. First keeps what is there now. Throws
 * TelosError `config` if that or the old content cannot be written; nothing was changed then.
 */
export async function restoreRuns(
  runs: readonly RunIndex[],
  plan: RestorePlan,
  dataDir: string,
): Promise<RestoreResult & { outcome: 'restored' }> {
  const { files, folders, git } = changesIn(runs, { withUndone: false });
  const isReady = new Set(plan.files.filter(({ state }) => state === 'ready').map(({ path }) => path));
  // Of a part of the files it would be the state of another time.
  const state = plan.files.some(isBlocked) ? [] : (await restorableState(git)).filter(one => one.isReady);
  const wanted = [...files.filter(({ path }) => isReady.has(path)), ...state];
  const id = randomUUID();
  const folder = join(changesFolder(dataDir), id);
  const undone = await (async () => {
    try {
      await keepPresent(wanted, folders, plan.runIds, folder);
      return await bringBack(wanted, folders);
    } catch (error) {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      const why = fileProblem(error, folder);
      throw new TelosError('config', [sentence('Nothing was restored.'), why]);
    }
  })();
  const asBefore = plan.files.filter(one => one.state === 'as_before').map(({ path }) => path);
  const done = new Set([
    ...undone.restored,
    ...undone.removed,
    ...asBefore,
    ...folders.map(({ path }) => path),
  ]);
  const at = new Date().toISOString();
  for (const { lines, folder: own } of runs) {
    const paths = changedPaths(lines).filter(path => done.has(path));
    if (paths.length > 0) noteLine(own, { type: 'undone', at, paths });
  }
  setAside(dataDir, plan.runIds, true);
  const ofGit = new Set(state.map(({ path }) => path));
  const isFile = (path: string): boolean => !ofGit.has(path);
  const [restored, removed] = [undone.restored.filter(isFile), undone.removed.filter(isFile)];
  return { outcome: 'restored', id, plan, ...undone, restored, removed };
}

/** Returns the paths that the run changed and that are not undone, each once. */
const changedPaths = (lines: readonly ChangeLine[]): string[] => {
  const undone = undonePaths(lines);
  const all = lines.flatMap(line => (line.type === 'write' || line.type === 'folder' ? [line.path] : []));
  return [...new Set(all)].filter(path => !undone.has(path));
};

/** Notes that the runs belong to their conversation again, and their changes at these paths are there again. */
export async function takeUpAgain(
  runs: readonly RunIndex[],
  runIds: readonly string[],
  paths: readonly string[],
  dataDir: string,
): Promise<void> {
  for (const { lines, folder } of runs) {
    const undone = undonePaths(lines);
    const again = paths.filter(path => undone.has(path));
    if (again.length > 0) noteLine(folder, { type: 'redone', paths: again });
  }
  setAside(dataDir, runIds, false);
}

/** Keeps what is there now, as if a run were to write the old content. Throws PathProblem and the errors of the file system. */
async function keepPresent(
  files: readonly FileHistory[],
  folders: readonly FolderHistory[],
  runs: readonly string[],
  folder: string,
): Promise<void> {
  const at = new Date().toISOString();
  const lines: ChangeLine[] = [{ type: 'restore', at, runs }];
  makeOwnFolders(dirname(folder), folder);
  for (const { path, before: after, git, left } of files) {
    const before = await presentFile(path, folder);
    const isExpected = left.some(one => (one?.sha256 ?? '') === (before?.sha256 ?? ''));
    if (before?.sha256 !== undefined && !isExpected)
      throw new PathProblem('unusable', `${path} was changed in the meantime.`);
    const made = after ? missingAbove(path) : undefined;
    lines.push({
      type: 'write',
      at,
      path,
      before,
      after,
      ...(made !== undefined && { made }),
      ...(git !== undefined && { git }),
    });
  }
  for (const { path, before: after } of folders) {
    const stats = statsAt(path);
    const before = stats?.isDirectory() ? stats.mode & 0o7777 : null;
    if (before !== after) lines.push({ type: 'folder', at, path, before, after });
  }
  const text = lines.map(line => JSON.stringify(line)).join('\n');
  appendLine(indexPath(folder), text, constants.O_CREAT);
}

/** Returns what is at the path, and keeps its bytes in `folder`. Returns null if neither a file nor a link is there. */
async function presentFile(path: string, folder: string): Promise<OldFile | null> {
  const stats = statsAt(path);
  if (!stats || stats.isDirectory()) return null;
  const mode = stats.mode & 0o7777;
  if (stats.isSymbolicLink()) return { size: 0, mode, link: readlinkSync(path) };
  if (stats.size > maxKeptFile) return { size: stats.size, mode };
  const { handle } = await openRegularFile(path);
  const bytes = await handle.readFile().finally(() => handle.close());
  const sha256 = hashOf(bytes);
  const kept = bytesPath(folder, sha256);
  if (!statsAt(kept)) {
    const temporary = join(folder, `${sha256}.${randomUUID()}.tmp`);
    await writeNew(temporary, bytes);
    await rename(temporary, kept);
  }
  return { size: bytes.length, mode, sha256 };
}

/** Returns the topmost of the folders above the path that are missing. */
function missingAbove(path: string): string | undefined {
  let missing: string | undefined;
  for (let above = dirname(path); !statsAt(above) && dirname(above) !== above; above = dirname(above))
    missing = above;
  return missing;
}
