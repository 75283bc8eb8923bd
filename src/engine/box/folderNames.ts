/** Finds the names below a folder that hold secrets or are obeyed by programs. Looks again only into folders that have changed. */
import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { asSaid, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { isOpenFolder } from '../files/closedFolder.ts';
import { errorCode } from '../files/paths.ts';
import { folded, isSensitive, mayMean, meansNothing, obeyedAt } from '../files/sensitiveNames.ts';

/**
 * A name that a boxed command may not read, or not change. A `repository` is the folder of Git itself. A socket counts as a secret: a
 * program that listens there is outside of the box. A folder is `closed` if what is in it is not known. A `link` has an obeyed name.
 */
export interface MarkedName {
  path: string;
  kind: 'secret' | 'obeyed' | 'repository' | 'closed' | 'link';
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
export const writtenByTools: ReadonlySet<string> = new Set(['package managers', 'builds, tests and linters']);

/** Names that stand for a file without its values, and that are kept with the code. */
const template = /\.(?:example|sample|template|dist|tmpl|defaults?)$/;

/** Whether a boxed command must not read `path`: what file tools ask about, but for templates of it. */
export const isHidden = (path: string): boolean => isSensitive(path) && !template.test(folded(path));

/** The folder that has to be hidden as a whole, and a sentence about why. */
interface Closed {
  hidden: string;
  why: string;
}

interface KnownFolder {
  stamp: string;
  folders: readonly string[];
  marked: readonly MarkedName[];
  size: number;
  /** All of its names, each between two slashes: no name has one, and one text takes less memory than many. */
  names: string;
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
  if (!meanings.has(name)) meanings.set(name, mayMean(name) ? kindOf(`/${name}`, `/${name}`) : undefined);
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
   * Returns the marked names, those of a folder before those below it, and the closed folders last. Nothing below a secret folder is
   * named. Returns undefined if there are more than `mostNames` files. Throws TelosError `config` if the root is a closed folder.
   */
  async look(): Promise<readonly MarkedName[] | undefined> {
    const known = new Map<string, KnownFolder>();
    const marked: MarkedName[] = [];
    const closed = new Set<string>();
    const folders = installed.has(basename(this.root)) ? [] : [this.root];
    let size = 0;
    for (let at = 0; at < folders.length; at++) {
      if (at % foldersAtOnce === foldersAtOnce - 1) await nextTurn();
      const path = folders[at]!;
      const found = this.#folderAt(path);
      if (!found) continue;
      if ('hidden' in found) {
        if (found.hidden === this.root)
          throw new TelosError('config', [asSaid(found.why), sentence('Nothing was run.')]);
        closed.add(found.hidden);
        continue;
      }
      known.set(path, found);
      folders.push(...found.folders);
      marked.push(...found.marked.map(asItIs));
      size += found.size;
      if (size > mostNames) return undefined;
    }
    this.#known = known;
    for (const path of closed) marked.push({ path, kind: 'closed', isFolder: true });
    return marked;
  }

  /** Returns what tells whether a path in the folder was there at the last look, as far as that looked. */
  seen(): (path: string) => boolean {
    const known = this.#known;
    return path => known.get(dirname(path))?.names.includes(`/${basename(path)}/`) === true;
  }

  /** Returns undefined for a folder that is gone. */
  #folderAt(path: string): KnownFolder | Closed | undefined {
    try {
      const { ino, mode, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
      const stamp = `${ino} ${mtimeNs} ${ctimeNs}`;
      const known = this.#known.get(path);
      if (known?.stamp === stamp) return known;
      const isSteady = BigInt(Date.now()) * 1_000_000n - mtimeNs > unsteady;
      // The command could open its own folder again, and then read what was never looked at.
      if ((mode & forAll) !== forAll && !isOpenFolder(path)) return cannotBeListed(path);
      const entries = readdirSync(path, { withFileTypes: true });
      const read = this.#read(path, entries);
      return 'hidden' in read
        ? read
        : { stamp: isSteady ? stamp : '', ...read, size: entries.length, names: listOf(entries) };
    } catch (error) {
      const code = errorCode(error);
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      return cannotBeListed(code === 'ENAMETOOLONG' ? dirname(path) : path);
    }
  }

  /** Hides the folder if something in it that is a folder, or has to be hidden, cannot be named. */
  #read(folder: string, entries: readonly Dirent[]): Pick<KnownFolder, 'folders' | 'marked'> | Closed {
    const folders: string[] = [];
    const marked: MarkedName[] = [];
    const isPlain = !this.#isSpecial && meansNothing(folder);
    for (const entry of entries) {
      const path = join(folder, entry.name);
      // Where a link leads is marked there, if it is in the box at all.
      if (entry.isSymbolicLink()) {
        if (obeyedAt(path, path.slice(this.root.length)))
          marked.push({ path, kind: 'link', isFolder: false });
        continue;
      }
      const kind = isRepository(entry)
        ? 'repository'
        : entry.isSocket()
          ? 'secret'
          : isPlain
            ? meaningOf(entry.name)
            : kindOf(path, path.slice(this.root.length));
      if ((kind !== undefined || entry.isDirectory()) && !isNamed(folder, entry.name))
        return { hidden: folder, why: strangeName(folder, entry) };
      if (kind !== undefined) marked.push({ path, kind, isFolder: entry.isDirectory() });
      const isOpen = kind !== 'secret' && kind !== 'repository' && !installed.has(entry.name);
      if (entry.isDirectory() && isOpen) folders.push(path);
    }
    return { folders, marked };
  }
}

const listOf = (entries: readonly Dirent[]): string => `/${entries.map(({ name }) => name).join('/')}/`;

/** What everybody may do with an open folder. */
const forAll = 0o555n;

const cannotBeListed = (folder: string): Closed => ({
  hidden: folder,
  why: `The folder ${folder} cannot be listed, so its secrets cannot be hidden. Make it readable: chmod u+rx ${folder}.`,
});

const strangeName = (folder: string, { name }: Dirent): string =>
  `${folder} contains ${name}, whose name is not UTF-8, so that what is in it cannot be hidden. Rename it.`;

/** Whether the name leads to what was listed: one that is not UTF-8 does not. */
function isNamed(folder: string, name: string): boolean {
  if (!name.includes('\ufffd')) return true;
  return readdirSync(folder, { encoding: 'buffer' }).every(
    bytes => bytes.toString() !== name || Buffer.from(name).equals(bytes),
  );
}

/** A repository can be closed without a change to the folder that holds it. */
const asItIs = (found: MarkedName): MarkedName =>
  found.kind === 'repository' && !isOpenFolder(found.path) ? { ...found, kind: 'closed' } : found;

const isRepository = (entry: Dirent): boolean => entry.isDirectory() && folded(entry.name) === '.git';
