/**
 * Keeps what Git has stored out of reach of boxed commands. In the box, the folder of a repository's objects is read-only and stands
 * elsewhere; in its place is one for new objects, which leads to it as `git clone --shared` would. What Git puts there is taken into
 * the repository as soon as it is seen and found to be what its name says, as Git itself does with what it receives.
 */

import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  // biome-ignore lint/style/noRestrictedImports: the objects of git may be larger than memory, and are known as files here
  createReadStream,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createInflate, inflateSync } from 'node:zlib';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { openFolder } from '../files/openFile.ts';
import { describeFileError } from '../files/paths.ts';
import { readOpenFile, readRegularFile } from '../files/regularFile.ts';
import type { Place } from './view.ts';

/** Where the box has the objects of the repositories, each below it at its own path. */
const shownAt = '/run/telos/objects';
const inBox = (path: string): string => `${shownAt}${path}`;

/**
 * Returns what a file of alternates says outside of the box, if a command has made it there: a clone of a folder borrows from where
 * the box has the objects. Returns undefined if it says anything else.
 */
export function outsideAlternates(text: string): readonly string[] | undefined {
  const lines = text.split('\n').filter(Boolean);
  const paths = lines.map(line => (line.startsWith(`${shownAt}/`) ? line.slice(shownAt.length) : ''));
  return lines.length > 0 && paths.every(path => path !== '' && resolve(path) === path) ? paths : undefined;
}

const foldersOfLoose = /^[\da-f]{2}$/;
const looseName = /^(?:[\da-f]{38}|[\da-f]{62})$/;
const packName = /^pack-(?:[\da-f]{40}|[\da-f]{64})\.pack$/;

/** In bytes. A smaller file is read at once; what it unpacks to is limited by how it is packed. */
const smallObject = 64 * 1024;

export class RepositoryObjects {
  /** The repository's own folder of objects. Real and absolute. */
  readonly #objects: string;
  /** The folder for new ones. */
  readonly #own: string;
  readonly #git: string;
  readonly #failed = new Map<string, string>();
  #gathering: Promise<void> = Promise.resolve();

  /** `root` is the folder for the new objects of all repositories, and `git` the person's own program. */
  constructor(objects: string, root: string, git: string) {
    this.#objects = objects;
    this.#own = join(root, 'objects', createHash('sha256').update(objects).digest('hex').slice(0, 32));
    this.#git = git;
  }

  /** Makes the folder for new objects, and returns what of it is in the box. Throws the error of the file system. */
  async open(): Promise<readonly Place[]> {
    const shown = inBox(this.#objects);
    const text = [shown, ...this.#others()].map(path => `${path}\n`).join('');
    // What a command that was killed has left, and its links: the folder was writable for it.
    await this.gather();
    const isReady = ['pack', 'info'].every(name => isFolder(join(this.#own, name)));
    // Another command may be reading it.
    if (!isReady || fileText(join(this.#own, 'info/alternates')) !== text) await this.#prepare(text);
    return [
      { kind: 'write', path: this.#objects, from: this.#own },
      { kind: 'read', path: shown, from: this.#objects, isInWork: true },
    ];
  }

  async #prepare(alternates: string): Promise<void> {
    makeOwnFolders(dirname(dirname(this.#own)), dirname(this.#own), this.#own);
    for (const name of ['pack', 'info']) await makeIn(this.#own, name, true);
    const { anchor, close } = openFolder(join(this.#own, 'info'));
    try {
      const file = join(anchor, 'alternates');
      rmSync(file, { recursive: true, force: true });
      writeFileSync(file, alternates, { flag: 'wx' });
    } finally {
      close();
    }
  }

  /** Takes in what is whole by now. What cannot be taken in is said by `problems`. Never throws. */
  gather(): Promise<void> {
    this.#gathering = this.#gathering.then(async () => {
      const names = listed(this.#own);
      for (const name of names.filter(each => foldersOfLoose.test(each)))
        await this.#orProblem(name, () => this.#takeLoose(name));
      const packs = listed(join(this.#own, 'pack')).filter(name => packName.test(name));
      for (const name of packs) await this.#orProblem(name, () => this.#takePack(name));
    });
    return this.#gathering;
  }

  /** Returns a sentence if objects could not be taken in, each only once. */
  problems(): string[] {
    const [first] = this.#failed.values();
    this.#failed.clear();
    const repository = dirname(this.#objects);
    return first === undefined
      ? []
      : [
          `What the command stored in ${repository} is not all there yet: ${first}. The next command tries again`,
        ];
  }

  /** Returns the folders of objects that the repository itself borrows from. */
  #others(): string[] {
    const text = fileText(join(this.#objects, 'info/alternates'));
    const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'));
    return lines.map(line => resolve(this.#objects, line));
  }

  async #orProblem(name: string, act: () => Promise<void>): Promise<void> {
    try {
      if (!this.#failed.has(name)) await act();
    } catch (error) {
      this.#failed.set(name, describeFileError(error, name).replace(/\.$/, ''));
    }
  }

  async #takeLoose(folder: string): Promise<void> {
    const from = openFolder(join(this.#own, folder));
    try {
      const names = readdirSync(from.anchor).filter(name => looseName.test(name));
      if (names.length === 0) return;
      await makeIn(this.#objects, folder);
      const to = openFolder(join(this.#objects, folder));
      try {
        for (const name of names) {
          await takeObject(join(from.anchor, name), to.anchor, name, folder + name);
          await nextTurn();
        }
      } finally {
        to.close();
      }
    } finally {
      from.close();
    }
  }

  async #takePack(name: string): Promise<void> {
    const ending = (to: string): string => name.replace(/pack$/, to);
    const from = openFolder(join(this.#own, 'pack'));
    try {
      const at = (file: string): string => join(from.anchor, file);
      // Git writes the index last.
      if (!existsSync(at(ending('idx')))) return;
      if (!existsSync(join(this.#objects, 'pack', name))) {
        const isPromised = existsSync(at(ending('promisor')));
        await this.#indexPack(at(name), isPromised, name.length > 60);
      }
      for (const end of ['idx', 'rev', 'bitmap', 'promisor', 'keep', 'mtimes', 'pack'])
        rmSync(at(ending(end)), { force: true });
    } finally {
      from.close();
    }
  }

  /** Has Git read a pack as it reads one from a server: everything in it is checked, and nothing beside it is believed. */
  async #indexPack(path: string, isPromised: boolean, isLong: boolean): Promise<void> {
    const gitDir = makeRepository(dirname(dirname(this.#own)), isLong);
    const { fd, close } = openFolder(this.#objects);
    const pack = openPlain(path);
    try {
      const args = ['index-pack', '--stdin', ...(isPromised ? ['--promisor'] : [])];
      const child = spawn(this.#git, ['-c', 'core.hooksPath=/dev/null', ...args], {
        cwd: gitDir,
        env: {
          PATH: '/dev/null',
          HOME: gitDir,
          LC_ALL: 'C',
          GIT_DIR: gitDir,
          GIT_NO_LAZY_FETCH: '1',
          GIT_CONFIG_GLOBAL: '/dev/null',
          GIT_CONFIG_NOSYSTEM: '1',
          GIT_OBJECT_DIRECTORY: '/proc/self/fd/3',
        },
        stdio: [pack, 'ignore', 'pipe', fd],
      });
      let said = '';
      child.stderr?.on('data', chunk => {
        said = (said + chunk).slice(-1000);
      });
      await new Promise<void>((done, fail) => {
        child.once('error', fail);
        child.once('close', code =>
          code === 0 ? done() : fail(new Error(said.trim().split('\n').at(-1) || 'git failed')),
        );
      });
    } finally {
      closeSync(pack);
      close();
    }
  }
}

/** Makes a folder in another. With `isOwn`, in place of anything else of that name. Throws the error of the file system. */
async function makeIn(folder: string, name: string, isOwn = false): Promise<void> {
  const { anchor, close } = openFolder(folder);
  try {
    const place = join(anchor, name);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (found && isOwn && !found.isDirectory()) rmSync(place);
    if (!lstatSync(place, { throwIfNoEntry: false })) mkdirSync(place);
  } finally {
    close();
  }
}

/** Moves one object, unless it is not what its name says: then it is removed. */
async function takeObject(from: string, folder: string, name: string, hash: string): Promise<void> {
  const place = join(folder, name);
  const file = existsSync(place) ? undefined : plainFile(from);
  const temporary = join(folder, `tmp_obj_${randomUUID()}`);
  try {
    // By the open file: another command could put a link in its place.
    const opened = `/proc/self/fd/${file}`;
    if (file !== undefined && (await isObject(opened, hash))) {
      await copyFile(opened, temporary, constants.COPYFILE_EXCL);
      // What was copied is what counts: the first may have been changed meanwhile.
      if (await isObject(temporary, hash)) renameSync(temporary, place);
    }
  } finally {
    if (file !== undefined) closeSync(file);
    rmSync(temporary, { force: true });
  }
  rmSync(from, { recursive: true, force: true });
}

async function isObject(path: string, hash: string): Promise<boolean> {
  const sum = createHash(hash.length > 40 ? 'sha256' : 'sha1');
  try {
    if (statSync(path).size <= smallObject) sum.update(inflateSync(readRegularFile(path)));
    else await pipeline(createReadStream(path), createInflate(), sum);
    return sum.digest('hex') === hash;
  } catch {
    return false;
  }
}

/** Opens a file; returns undefined for anything else. */
function plainFile(path: string): number | undefined {
  try {
    return openPlain(path);
  } catch {
    return undefined;
  }
}

/** Opens a regular file and nothing else. Throws the error of the file system. */
function openPlain(path: string): number {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new Error('it is not a file');
}

/** Returns an empty repository, in which Git reads packs: it needs one, and no setting of the person's may count. */
function makeRepository(root: string, isLong: boolean): string {
  const folder = join(root, isLong ? 'git-sha256' : 'git');
  if (existsSync(join(folder, 'HEAD'))) return folder;
  makeOwnFolders(folder, join(folder, 'objects'), join(folder, 'refs'));
  const version = isLong ? '1\n[extensions]\n\tobjectFormat = sha256' : '0';
  writeFileSync(
    join(folder, 'config'),
    `[core]\n\tbare = true\n\tfsync = none\n\trepositoryFormatVersion = ${version}\n`,
  );
  writeFileSync(join(folder, 'HEAD'), 'ref: refs/heads/none\n');
  return folder;
}

const isFolder = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function fileText(path: string): string {
  try {
    const file = openPlain(path);
    try {
      return fstatSync(file).size < 10_000 ? readOpenFile(file).toString('utf8') : '';
    } finally {
      closeSync(file);
    }
  } catch {
    return '';
  }
}
