/** Tells two looks at a working folder apart: which files, folders and branches differ, how they were before, and what has moved there. */

import { readlinkSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { factsOf } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { childPath, type Entry, entryIn, type FolderView, isGitName, wasAbsent } from './folderView.ts';
import type { RepositoryView, StateFile } from './repositoryView.ts';
import { blobName } from './shadowGit.ts';

/** A file or link as it was before a command. */
export interface OldEntry {
  kind: 'file' | 'link';
  mode: number;
  size: number;
  /** Name of its bytes in the shadow repository. Missing if they are not kept. */
  blob?: string;
}

export interface CommandChange {
  /** Absolute and real path. */
  path: string;
  /** Null if there was neither a file nor a link. */
  before: OldEntry | null;
  after: Entry | null;
  /** Set for a file that is older than the look that did not see it: it was moved from where nothing is kept, and no other copy is left. */
  isMoved?: true;
}

/** A file that says where a repository stands, as it was and as it is. */
export interface StateChange {
  /** Absolute and real path. */
  path: string;
  before: StateFile | undefined;
  after: StateFile | undefined;
}

/** What has changed while a command ran. */
export interface CommandChanges {
  files: readonly CommandChange[];
  /** Modes of folders that were made, removed or changed, by their absolute paths. Null stands for no folder. */
  folders: ReadonlyMap<string, { before: number | null; after: number | null }>;
  /** What says where a repository stands, such as a branch or the index. */
  state: readonly StateChange[];
  /** Whether a branch or HEAD of a repository is not where it was. */
  movedHead: boolean;
  /** Absolute paths of each `.git` that was made. */
  madeRepositories: readonly string[];
  /** Absolute paths of what was not kept and is not there any more. It may have been moved, so that no other copy of it is left. */
  vanished: readonly string[];
  /** Absolute paths of what was not looked at. */
  leftOut: ReadonlyMap<string, string>;
}

/** Returns the mode of a folder, also of one that cannot be looked into; null if there is none. */
export function modeIn(view: FolderView, path: string): number | null {
  const entry = entryIn(view, path);
  return view.folders.get(path)?.mode ?? (entry?.kind === 'folder' ? entry.mode : null);
}

/** What nobody has looked at may have been there: it is a file of which nothing is kept. */
const unknownFile: OldEntry = { kind: 'file', mode: 0o644, size: 0 };

export function oldEntry(view: FolderView, path: string, blob: string | undefined): OldEntry | null {
  const was = entryIn(view, path);
  if (was ? was.kind === 'unseen' : !wasAbsent(view, path)) return unknownFile;
  if (was?.kind !== 'file' && was?.kind !== 'link') return null;
  return { kind: was.kind, mode: was.mode, size: was.size, ...(blob !== undefined && { blob }) };
}

/** Returns the files and links whose entries differ, in the folders whose names were read again. */
export function differentNames(before: FolderView, view: FolderView): string[] {
  const found: string[] = [];
  for (const path of new Set([...before.folders.keys(), ...view.folders.keys()])) {
    const [old, now] = [before.folders.get(path)?.entries, view.folders.get(path)?.entries];
    if (old === now) continue;
    for (const name of new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])) {
      const [was, is] = [old?.get(name), now?.get(name)];
      const isOther = was?.kind !== is?.kind || was?.ino !== is?.ino || was?.changedAt !== is?.changedAt;
      const isFolder = [was, is].every(one => !one || one.kind === 'folder');
      if (isOther && !isFolder && !isGitName(name)) found.push(childPath(path, name));
    }
  }
  return found;
}

/** Returns the old modes of the folders that were made, removed or changed. */
export function foldersChanged(before: FolderView, view: FolderView): Map<string, number | null> {
  const found = new Map<string, number | null>();
  for (const [path, { mode }] of before.folders) if (modeIn(view, path) !== mode) found.set(path, mode);
  for (const path of view.folders.keys()) {
    if (before.folders.has(path)) continue;
    const was = modeIn(before, path);
    if (was === null ? wasAbsent(before, path) || entryIn(before, path) : was !== modeIn(view, path))
      found.set(path, was);
  }
  return found;
}

/** Whether nothing has changed but times. */
export function isSame(place: string, before: OldEntry | null, now: Entry | null): boolean {
  if (!before || !now) return before === null && (now === null || now.kind === 'folder');
  if (before.kind !== now.kind || before.mode !== now.mode || before.size !== now.size) return false;
  if (before.blob === undefined) return false;
  try {
    return (
      before.blob ===
      blobName(now.kind === 'link' ? Buffer.from(readlinkSync(place)) : readRegularFile(place))
    );
  } catch {
    return false;
  }
}

/**
 * Returns the new files that are older than the look that did not see them. One that was kept where it came from is brought back there,
 * and is not among them.
 */
export function movedAmong(
  root: string,
  before: { at: number; view: FolderView },
  old: ReadonlyMap<string, OldEntry | null>,
): string[] {
  const kept = new Set<number>();
  for (const [path, was] of old) if (was?.blob !== undefined) kept.add(entryIn(before.view, path)?.ino ?? 0);
  const moved: string[] = [];
  for (const [path, was] of old) {
    const stats = was === null ? factsOf(join(root, path)) : undefined;
    if (!stats?.isFile() || stats.nlink > 1 || kept.has(stats.ino)) continue;
    if (isBornBefore(stats, before.at)) moved.push(path);
  }
  return moved;
}

/** In milliseconds. The clock of a file system can be behind by a step. */
const clockStep = 50;

/** Not every file system knows the time of birth. */
const isBornBefore = ({ birthtimeMs, ctimeMs }: Stats, time: number): boolean =>
  birthtimeMs > 0 && birthtimeMs <= ctimeMs && birthtimeMs < time - clockStep;

/** Returns the files that differ of those that say where repositories stand. */
export function stateChanges(root: string, before: RepositoryView, now: RepositoryView): StateChange[] {
  // Where a repository stands is brought back as a whole.
  if (before.isCut || now.isCut) return [];
  const paths = new Set([...before.state.keys(), ...now.state.keys()]);
  return [...paths].flatMap(path => {
    const [was, is] = [before.state.get(path), now.state.get(path)];
    if (isSameState(was, is) || (!is && isUnseenIn(now, path))) return [];
    const old = !was && is && isUnseenIn(before, path) ? { mode: is.mode, stamp: '' } : was;
    return [{ path: join(root, path), before: old, after: is }];
  });
}

/** Whether the path is in a folder of a repository that was not looked at. */
const isUnseenIn = ({ unseen }: RepositoryView, path: string): boolean =>
  [...unseen].some(folder => path.startsWith(`${folder}/`));

function isSameState(one: StateFile | undefined, other: StateFile | undefined): boolean {
  if (!one || !other) return one === other;
  if (one.bytes && other.bytes) return one.bytes.equals(other.bytes) && one.mode === other.mode;
  return one.stamp === other.stamp;
}
