/** Reads what a run changed from its index, or what several runs changed one after the other. */
import { join } from 'node:path';
import { appendLine } from '../files/jsonLines.ts';
import { isInside, statsAt } from '../files/paths.ts';
import {
  type ChangeLine,
  type FileHistory,
  type FolderHistory,
  type FolderLine,
  indexPath,
  type LeftFile,
  type OldFile,
  readIndex,
  type WriteLine,
} from './changeFile.ts';
import { type FileState, statesOf } from './undo.ts';

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
  /** Whether a command moved a branch, such as by a commit, and that is not undone. */
  movedBranch: boolean;
  /** Repositories whose branches, index and the like are undone with the files: they are as the run left them. Absolute. */
  repositories: readonly string[];
  /** Each `.git` that a command made and that is still there: undo leaves it. Absolute paths. */
  madeRepositories: readonly string[];
  /** Set once everything is undone. ISO 8601, UTC. */
  undoneAt?: string;
  /** The runs that it took back, if it is a restore and no run. */
  restores?: readonly string[];
}

/** The index of one run. */
export interface RunIndex {
  runId: string;
  /** The folder of the index, with the old bytes. */
  folder: string;
  lines: readonly ChangeLine[];
}

export interface ReadChanges {
  files: readonly FileHistory[];
  /** What says where repositories stand. */
  git: readonly FileHistory[];
  folders: readonly FolderHistory[];
  ranCommands: boolean;
  movedBranch: boolean;
  madeRepositories: readonly string[];
}

/**
 * Returns the index of a run without lines about `protectedDirs`. Undefined if the run changed nothing and is no restore, or if its
 * index cannot be read.
 */
export function indexOf(
  runId: string,
  folder: string,
  protectedDirs: readonly string[],
): (RunIndex & { at: string }) | undefined {
  try {
    const lines = readIndex(folder).filter(
      line =>
        (line.type !== 'write' && line.type !== 'folder') ||
        !protectedDirs.some(dir => isInside(dir, line.path)),
    );
    const first = lines.find(({ type }) => type === 'write' || type === 'folder' || type === 'restore');
    return first && 'at' in first ? { runId, folder, lines, at: first.at } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns what the runs changed, whose order is that of their time. Without `withUndone`, changes that are undone are left out. */
export function changesIn(runs: readonly RunIndex[], { withUndone }: { withUndone: boolean }): ReadChanges {
  const changed = runs.flatMap(({ folder, lines }) => {
    const undone = withUndone ? new Set<string>() : undonePaths(lines);
    return lines.flatMap(line =>
      (line.type === 'write' || line.type === 'folder') && !undone.has(line.path) ? [{ line, folder }] : [],
    );
  });
  // A command in the background may have changed something after a later run did.
  if (runs.length > 1)
    changed.sort((one, other) => (one.line.at < other.line.at ? -1 : one.line.at > other.line.at ? 1 : 0));
  const writes = changed.flatMap(({ line, folder }) => (line.type === 'write' ? [{ ...line, folder }] : []));
  const all = runs.flatMap(({ lines }) => lines);
  const looked = all.flatMap(line => (line.type === 'looked' ? [line] : []));
  return {
    files: historiesOf(writes.filter(({ git }) => git === undefined)),
    git: historiesOf(writes.filter(({ git }) => git !== undefined)),
    folders: foldersOf(changed.flatMap(({ line }) => (line.type === 'folder' ? [line] : []))),
    ranCommands: all.some(({ type }) => type === 'command'),
    movedBranch: looked.some(({ git }) => git),
    madeRepositories: [...new Set(looked.flatMap(line => line.repositories ?? []))].filter(
      path => statsAt(path) !== undefined,
    ),
  };
}

/** Returns the undone paths. A path that the run writes again later is not undone any more. */
export function undonePaths(lines: readonly ChangeLine[]): Set<string> {
  const undone = new Set<string>();
  for (const line of lines) {
    if (line.type === 'write' || line.type === 'folder') undone.delete(line.path);
    if (line.type === 'undone') for (const path of line.paths) undone.add(path);
    if (line.type === 'redone') for (const path of line.paths) undone.delete(path);
  }
  return undone;
}

/** Returns the first and the last write of each file by a run, as their times, and whether they are undone. */
function writesOf({ lines }: RunIndex): Map<string, { first: string; last: string; isUndone: boolean }> {
  const undone = undonePaths(lines);
  const found = new Map<string, { first: string; last: string; isUndone: boolean }>();
  for (const line of lines)
    if (line.type === 'write')
      found.set(line.path, {
        first: found.get(line.path)?.first ?? line.at,
        last: line.at,
        isUndone: undone.has(line.path),
      });
  return found;
}

/**
 * Returns the files that `run` and one of the others have written in turn, or one after the other while the earlier is undone already. What
 * they were before the run then has something that the other has written, or lacks it. Absolute paths.
 */
export function writtenInTurn(run: RunIndex, others: readonly RunIndex[]): string[] {
  const own = writesOf(run);
  const found = others.flatMap(other =>
    [...writesOf(other)].flatMap(([path, theirs]) => {
      const ours = own.get(path);
      if (!ours || ours.isUndone) return [];
      const isLater = theirs.first > ours.last;
      const isEarlier = theirs.last < ours.first;
      return (isLater && theirs.isUndone) || (isEarlier && !theirs.isUndone) ? [] : [path];
    }),
  );
  return [...new Set(found)];
}

/** Whether the run made the repository of a file, which then stays with what it has. */
const isNewHead = ({
  git,
  path,
  before,
}: {
  git?: string | undefined;
  path: string;
  before: unknown;
}): boolean => before === null && path === join(git ?? '', 'HEAD');

/** Files of Git that only tell what was. */
const tellsOnly = /\/(?:COMMIT_EDITMSG|[A-Z]+_HEAD|logs\/.*)$/;

/**
 * Returns the files of the repositories that stand where the run left them, or where they stood before. Others have been worked in
 * since, so nothing of them is put back.
 */
export async function restorableState(
  git: readonly FileHistory[],
): Promise<(FileHistory & { isReady: boolean })[]> {
  if (git.length === 0) return [];
  const states = await statesOf(git);
  const moved = new Set<string | undefined>();
  for (const [at, { git: repository, path, before }] of git.entries()) {
    const isAsLeft = states[at] === 'ready' || states[at] === 'as_before';
    const isLocked = statsAt(join(repository ?? '', 'index.lock')) !== undefined;
    if (isLocked || isNewHead({ git: repository, path, before }) || (!isAsLeft && !tellsOnly.test(path)))
      moved.add(repository);
  }
  return git.flatMap((file, at) =>
    moved.has(file.git) ? [] : [{ ...file, isReady: states[at] === 'ready' }],
  );
}

function historiesOf(writes: readonly (WriteLine & { folder: string })[]): FileHistory[] {
  const byPath = new Map<string, { -readonly [Key in keyof FileHistory]: FileHistory[Key] }>();
  for (const { path, folder, before, after, made, git } of writes) {
    const known = byPath.get(path);
    const added = made === undefined ? [] : [made];
    if (!known) {
      byPath.set(path, {
        path,
        folder,
        before,
        left: [after],
        isMixed: false,
        made: added,
        ...(git !== undefined && { git }),
      });
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
function foldersOf(lines: readonly FolderLine[]): FolderHistory[] {
  const byPath = new Map<string, FolderHistory>();
  for (const { path, before, after } of lines)
    byPath.set(path, { path, before: byPath.has(path) ? (byPath.get(path)?.before ?? null) : before, after });
  return [...byPath.values()].filter(({ before, after }) => before !== after);
}

export const isBlocked = ({ state, isUndone }: ChangedFile): boolean =>
  !isUndone && state !== 'ready' && state !== 'as_before';

/** Returns the changes as they compare with the files now. */
export async function lookedAt(
  { files, git, ...facts }: ReadChanges,
  undone: ReadonlySet<string>,
): Promise<Omit<RunChanges, 'runId' | 'at'>> {
  const states = await statesOf(files);
  const looked = files.map(({ path, before, left }, at) => ({
    path,
    before,
    isRemoved: left.at(-1) === null,
    isUndone: undone.has(path),
    state: states[at] ?? 'unreachable',
  }));
  const restorable = await restorableState(git);
  const repositories = [...new Set(restorable.flatMap(file => (file.isReady ? (file.git ?? []) : [])))];
  // One that the run made is named by itself, and had no branch that moved.
  const made = new Set(git.filter(isNewHead).map(file => file.git));
  const known = git.filter(file => !made.has(file.git));
  const isAll = known.length > 0 && restorable.length === known.length;
  return { ...facts, files: looked, repositories, movedBranch: facts.movedBranch && !isAll };
}

/** Returns true if undoing the run would change something, or is prevented. */
export const hasUndo = ({ undoneAt, restores, files, folders, repositories }: RunChanges): boolean =>
  undoneAt === undefined &&
  (restores !== undefined ||
    repositories.length > 0 ||
    files.some(({ isUndone, state }) => !isUndone && state !== 'as_before') ||
    folders.some(isAsLeft));

/** Returns true if the folder is still as the run left it. */
function isAsLeft({ path, after }: FolderHistory): boolean {
  const stats = statsAt(path);
  return after === null ? !stats : stats?.isDirectory() === true && (stats.mode & 0o7777) === after;
}

/** Adds a line to an index. The files themselves show what a line that cannot be written would say. */
export function noteLine(folder: string, line: ChangeLine): void {
  try {
    appendLine(indexPath(folder), JSON.stringify(line));
  } catch {
    // The disk may be full.
  }
}
