/**
 * Writes the files of a source into an empty folder. Every name passes here: one that leads elsewhere refuses the whole source, and one
 * that some systems cannot have is left out. A link to a file or folder of the source becomes what it leads to.
 */

import { lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { folded, readRegularFile } from '@telos/engine/files';
import { beginningOf, sentence } from '@telos/protocol/text';

/** An entry of an archive or a commit, named as it is there. */
export interface TreeEntry {
  path: string;
  kind: 'file' | 'folder' | 'link';
  executable?: boolean;
  /** Where a link leads. */
  target?: string;
}

interface TreeLink {
  path: string;
  target: string;
  state?: 'begun' | 'followed';
}

export const treeLimits = {
  entries: 20_000,
  files: 5000,
  bytes: 100 * 1024 * 1024,
  depth: 24,
  ratio: 200,
  name: 200,
  path: 1000,
} as const;

/** A repository may be larger than a pack, of which it holds several. */
export const repositoryLimits = { entries: 60_000, files: 30_000 } as const;
type Limits = Record<keyof typeof repositoryLimits, number>;

/** Packed data may unpack to any ratio up to this size: short texts that repeat themselves are honest. In bytes. */
const honestSize = 4 * 1024 * 1024;

/** Written in less time than a person notices. In bytes. */
const smallFile = 256 * 1024;

export class TreeWriter {
  /** Links that lead nowhere in it, submodules, `.git` folders, and names that other systems cannot have, as paths below the folder. */
  readonly leftOut: string[] = [];
  readonly #root: string;
  readonly #what: string;
  readonly #kinds = new Map<string, { kind: TreeEntry['kind']; path: string }>();
  readonly #drop: number;
  readonly #most: Limits;
  readonly #made = new Set<string>();
  #entries = 0;
  #files = 0;
  #bytes = 0;
  /** Links whose target is checked at the end. */
  readonly #links: TreeLink[] = [];

  /** `what` names the source in errors. The first `drop` folders of each path are cut off. */
  constructor(root: string, what: string, drop = 0, most: Limits = treeLimits) {
    this.#root = root;
    this.#what = what;
    this.#drop = drop;
    this.#most = most;
  }

  /**
   * Takes note of an entry. Returns the path to write it to, or undefined if there is nothing to write, as for a name that some system
   * takes for another. Throws TelosError `pack` for a name that leads elsewhere or is used twice, and at a limit.
   */
  admit(entry: TreeEntry, size: number): string | undefined {
    if (++this.#entries > this.#most.entries)
      throw this.refused(entry.path, `is one of more than ${this.#most.entries} entries`);
    const parts = this.#partsOf(entry);
    if (parts === undefined) return undefined;
    if (parts.length > treeLimits.depth)
      throw this.refused(entry.path, `is more than ${treeLimits.depth} folders deep`);
    const path = parts.join('/');
    for (let depth = 1; depth <= parts.length; depth++) {
      const name = parts[depth - 1] ?? '';
      const [place, kind] = [parts.slice(0, depth).join('/'), depth < parts.length ? 'folder' : entry.kind];
      const isDevice = deviceName.test(name);
      if (!isDevice && this.#isNew(place, kind, entry.path)) continue;
      // Which of two skills is meant, only their author knows.
      if (!isDevice && /(?:^|\/)skill\.md$/i.test(path)) throw this.refused(entry.path, 'is there twice');
      if (!this.leftOut.includes(place)) this.leftOut.push(place);
      return undefined;
    }
    if (entry.kind === 'link') {
      this.#links.push({ path, target: entry.target ?? '' });
      if (this.#links.length > this.#most.files)
        throw this.refused(entry.path, `is one of more than ${this.#most.files} links`);
      return undefined;
    }
    if (entry.kind === 'folder') return undefined;
    if (++this.#files > this.#most.files)
      throw this.refused(entry.path, `is one of more than ${this.#most.files} files`);
    this.count(size, entry.path);
    return path;
  }

  /** Counts bytes that will be written. Throws TelosError `pack` if they are too many. */
  count(size: number, path: string): void {
    this.#bytes += size;
    if (this.#bytes > treeLimits.bytes)
      throw this.refused(path, `makes it larger than ${treeLimits.bytes / 1024 / 1024} MiB`);
  }

  /** Throws TelosError `pack` if a file of this size cannot be written any more. Nothing of it needs to be unpacked then. */
  checkRoom(size: number, path: string): void {
    const before = this.#bytes;
    this.count(size, path);
    this.#bytes = before;
  }

  /** Throws TelosError `pack` if so little packed data unpacks to so much. */
  checkRatio(packed: number, unpacked: number, path: string): void {
    if (unpacked > honestSize && unpacked > packed * treeLimits.ratio)
      throw this.refused(path, `unpacks to more than ${treeLimits.ratio} times its size`);
  }

  /** Writes a file that was admitted. Scripts become executable, as a copy makes them. */
  async write(path: string, bytes: Uint8Array, executable: boolean): Promise<void> {
    const place = join(this.#root, path);
    const folder = dirname(place);
    if (!this.#made.has(folder)) mkdirSync(folder, { recursive: true });
    this.#made.add(folder);
    const isScript = bytes[0] === 0x23 && bytes[1] === 0x21;
    const options = { flag: 'wx', mode: executable || isScript ? 0o755 : 0o644 };
    // A pack is many small files, and waiting for each takes several times as long as writing it.
    if (bytes.length <= smallFile) writeFileSync(place, bytes, options);
    else await writeFile(place, bytes, options);
  }

  /** Puts what links lead to in their place, and leaves the others out. Throws TelosError `pack` if there was no file, and at a limit. */
  finish(): void {
    for (const link of this.#links) this.#follow(link);
    this.leftOut.push(...this.#links.filter(({ state }) => state !== 'followed').map(({ path }) => path));
    if (this.#files > 0) return;
    const others = this.leftOut.slice(0, 5).map(shown).join(', ');
    const why =
      others === ''
        ? sentence('{0} holds no files.', this.#what)
        : sentence('{0} holds no files, only what is left out: {1}.', this.#what, others);
    throw new TelosError('pack', [why, sentence('Nothing was installed.')]);
  }

  /** Copies what a link leads to, unless that is not a file or folder of the tree, or is around the link. */
  #follow(link: TreeLink): void {
    const { path, target } = link;
    if (link.state || leadsOut(path, target)) return;
    link.state = 'begun';
    const from = posix.normalize(posix.join(posix.dirname(path), target)).replace(/\/$/, '');
    // It may lead through another link, or to a folder with others.
    for (const other of this.#links)
      if (`${from}/`.startsWith(`${other.path}/`) || other.path.startsWith(`${from}/`)) this.#follow(other);
    if (
      from === '.' ||
      `${path}/`.startsWith(`${from}/`) ||
      !lstatSync(join(this.#root, from), { throwIfNoEntry: false })
    )
      return;
    this.#copy(from, path);
    link.state = 'followed';
  }

  #copy(from: string, to: string): void {
    const stats = lstatSync(join(this.#root, from));
    if (to.split('/').length > treeLimits.depth)
      throw this.refused(to, `is more than ${treeLimits.depth} folders deep`);
    if (stats.isDirectory()) {
      mkdirSync(join(this.#root, to), { recursive: true });
      for (const name of readdirSync(join(this.#root, from))) this.#copy(`${from}/${name}`, `${to}/${name}`);
      return;
    }
    if (++this.#files > this.#most.files)
      throw this.refused(to, `is one of more than ${this.#most.files} files`);
    this.count(stats.size, to);
    mkdirSync(dirname(join(this.#root, to)), { recursive: true });
    writeFileSync(join(this.#root, to), readRegularFile(join(this.#root, from)), {
      flag: 'wx',
      mode: stats.mode,
    });
  }

  refused(path: string, why: string): TelosError {
    return new TelosError('pack', `${this.#what} was refused: ${shown(path)} ${why}. Nothing was installed.`);
  }

  #partsOf({ path, kind }: TreeEntry): string[] | undefined {
    if (path.includes('\\')) throw this.refused(path, 'has a backslash in its name');
    if (/[\p{Cc}]/u.test(path)) throw this.refused(path, 'has a control character in its name');
    if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) throw this.refused(path, 'is an absolute path');
    if (path.length > treeLimits.path)
      throw this.refused(beginningOf(path, 80), 'has a path that is too long');
    const all = path.split('/').filter(part => part !== '' && part !== '.');
    if (all.includes('..')) throw this.refused(path, 'leads out of it');
    if (all.some(part => Buffer.byteLength(part) > treeLimits.name))
      throw this.refused(beginningOf(path, 80), 'has a name that is too long');
    const parts = all.slice(this.#drop);
    if (parts.length === 0) return undefined;
    const git = parts.findIndex(part => folded(part) === '.git' || folded(part) === 'git~1');
    if (git < 0) return parts;
    const place =
      parts.slice(0, git + 1).join('/') + (git === parts.length - 1 && kind !== 'folder' ? '' : '/');
    if (!this.leftOut.includes(place)) this.leftOut.push(place);
    return undefined;
  }

  /**
   * Returns false for a name that some file system takes for an earlier one: it would replace there what was looked at. Throws TelosError
   * `pack` for a name that is there twice.
   */
  #isNew(path: string, kind: TreeEntry['kind'], entry: string): boolean {
    const key = folded(path);
    const known = this.#kinds.get(key);
    if (known === undefined) this.#kinds.set(key, { kind, path });
    else if (known.path !== path) return false;
    else if (known.kind !== 'folder' || kind !== 'folder') throw this.refused(entry, 'is there twice');
    return true;
  }
}

/** Names that Windows opens as a device, with any ending and in any case. */
const deviceName = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?$/i;

function leadsOut(path: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || /[\\\0]|^[A-Za-z]:/.test(target)) return true;
  let depth = path.split('/').length - 1;
  for (const part of target.split('/')) {
    if (part === '..') depth--;
    else if (part !== '' && part !== '.') depth++;
    if (depth < 0) return true;
  }
  return false;
}

const shown = (path: string): string =>
  JSON.stringify(path.length > 200 ? `${beginningOf(path, 200)}…` : path);
