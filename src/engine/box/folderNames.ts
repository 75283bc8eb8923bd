/** Finds the names below a folder that hold secrets or are obeyed by programs. Looks again only into folders that have changed. */
import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { folded, isSensitive, meansNothing, obeyedAt } from '../files/sensitiveNames.ts';

/**
 * A name that a boxed command may not read, or not change. A `repository` is the folder of Git itself. A socket counts as a secret: a
 * program that listens there is outside of the box.
 */
export interface MarkedName {
  path: string;
  kind: 'secret' | 'obeyed' | 'repository';
  isFolder: boolean;
}

/** More files than these are not looked at. No box is made then, as their secrets would show. */
export const mostNames = 400_000;

/** Folders that are examined before other work gets its turn. */
const foldersAtOnce = 100;
/** In nanoseconds. A file system counts time in steps: within one, a folder may change once more and keep its stamp. */
const unsteady = 50_000_000n;

/** What package managers write has one folder for all; no one keeps secrets of their own in it. */
const installed = new Set(['node_modules', 'site-packages', 'dist-packages']);

/**
 * What installing, building and switching a branch writes every day. It is not read-only: that such a file was changed is known
 * afterwards, and it only runs when someone builds.
 */
const writtenByTools = new Set(['package managers', 'builds, tests and linters']);

/** Names that stand for a file without its values, and that are kept with the code. */
const template = /\.(?:example|sample|template|dist|tmpl|defaults?)$/;

/** Whether a boxed command must not read `path`: what file tools ask about, but for templates of it. */
export const isHidden = (path: string): boolean => isSensitive(path) && !template.test(folded(path));

interface KnownFolder {
  stamp: string;
  folders: readonly string[];
  marked: readonly MarkedName[];
  size: number;
}

type Kind = MarkedName['kind'] | undefined;

/** What names mean by themselves. */
const meanings = new Map<string, Kind>();
const mostMeanings = 100_000;

function kindOf(path: string, inWork: string): Kind {
  if (isHidden(path)) return 'secret';
  const obeyed = obeyedAt(path, inWork);
  return obeyed && !writtenByTools.has(obeyed.by) ? 'obeyed' : undefined;
}

function meaningOf(name: string): Kind {
  if (meanings.size > mostMeanings) meanings.clear();
  if (!meanings.has(name)) meanings.set(name, kindOf(`/${name}`, `/${name}`));
  return meanings.get(name);
}

export class FolderNames {
  readonly root: string;
  /** Whether all that is in the folder means more than its names, because of where it is. */
  readonly #isSpecial: boolean;
  #known = new Map<string, KnownFolder>();

  /** `root` is real and absolute. */
  constructor(root: string) {
    this.root = root;
    this.#isSpecial = isSensitive(root) || obeyedAt(root, '') !== undefined;
  }

  /**
   * Returns the marked names, those of a folder before those below it. Nothing below a secret folder is named. Returns undefined if
   * there are more than `mostNames` files.
   */
  async look(): Promise<readonly MarkedName[] | undefined> {
    const known = new Map<string, KnownFolder>();
    const marked: MarkedName[] = [];
    const folders = installed.has(basename(this.root)) ? [] : [this.root];
    let size = 0;
    for (let at = 0; at < folders.length; at++) {
      if (at % foldersAtOnce === foldersAtOnce - 1) await nextTurn();
      const path = folders[at]!;
      const found = this.#folderAt(path);
      if (!found) continue;
      known.set(path, found);
      folders.push(...found.folders);
      marked.push(...found.marked);
      size += found.size;
      if (size > mostNames) return undefined;
    }
    this.#known = known;
    return marked;
  }

  #folderAt(path: string): KnownFolder | undefined {
    try {
      const { ino, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
      const stamp = `${ino} ${mtimeNs} ${ctimeNs}`;
      const known = this.#known.get(path);
      if (known?.stamp === stamp) return known;
      const isSteady = BigInt(Date.now()) * 1_000_000n - mtimeNs > unsteady;
      const entries = readdirSync(path, { withFileTypes: true });
      return { stamp: isSteady ? stamp : '', ...this.#read(path, entries), size: entries.length };
    } catch {
      // It is gone, or closed to the person: then it is closed to the command as well.
      return undefined;
    }
  }

  #read(folder: string, entries: readonly Dirent[]): Pick<KnownFolder, 'folders' | 'marked'> {
    const folders: string[] = [];
    const marked: MarkedName[] = [];
    const isPlain = !this.#isSpecial && meansNothing(folder);
    for (const entry of entries) {
      const path = join(folder, entry.name);
      // Where a link leads is marked there, if it is in the box at all.
      if (entry.isSymbolicLink()) continue;
      const kind = isRepository(entry)
        ? 'repository'
        : entry.isSocket()
          ? 'secret'
          : isPlain
            ? meaningOf(entry.name)
            : kindOf(path, path.slice(this.root.length));
      if (kind !== undefined) marked.push({ path, kind, isFolder: entry.isDirectory() });
      const isOpen = kind !== 'secret' && kind !== 'repository' && !installed.has(entry.name);
      if (entry.isDirectory() && isOpen) folders.push(path);
    }
    return { folders, marked };
  }
}

const isRepository = (entry: Dirent): boolean => entry.isDirectory() && folded(entry.name) === '.git';
