/**
 * Runs git's plumbing on a repository of Telos's own whose work tree is a working folder. No setting, hook, filter or attribute of
 * that folder, of the person or of the machine has an effect, and nothing is written into the folder.
 */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { copyFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';
import { endOf } from '@telos/protocol/text';
import { takingTurns } from '../cancellation.ts';
import { makeOwnFolders, refuseLinks, writeOwn } from '../files/atomicWrite.ts';
import { statsAt } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { gitEnvironment, gitSettings, readsAlone, startGit } from '../tools/gitStart.ts';

/** A file or link that is not as the index has it. */
export interface Differing {
  /** Below the working folder, with `/`. */
  path: string;
  /** Name of its old bytes. */
  blob: string;
  /** True if the file or link was deleted. */
  isGone: boolean;
}

/** Time after which a call that takes in nothing more is stuck. In milliseconds. */
const stuckAfter = 120_000;
/** From this number on, new bytes go into one pack: one file a blob would take several times as long. */
const mostLoose = 200;
/** Maximum size of all old bytes of one folder, before its store begins again. In bytes. */
const maxStore = 3 * 1024 ** 3;
/** Time after which what another process has left is removed. In milliseconds. */
const leftAfter = 24 * 60 * 60 * 1000;

/** An attribute of this file has precedence over each in the folder itself. */
const noAttributes = '* -text -eol -crlf -filter -ident -working-tree-encoding -diff -merge -export-subst\n';

const settings = gitSettings(
  ...['core.untrackedCache=false', 'core.splitIndex=false', 'core.quotePath=false'],
  ...[
    'core.attributesFile=/dev/null',
    'core.excludesFile=/dev/null',
    'core.autocrlf=false',
    'core.safecrlf=false',
  ],
  ...['core.symlinks=true', 'core.fileMode=true', 'core.ignoreCase=false', 'core.precomposeUnicode=false'],
  ...['core.protectNTFS=false', 'core.protectHFS=false', 'core.trustctime=true', 'core.checkStat=default'],
  ...['core.sparseCheckout=false', 'core.compression=0', 'core.fsync=none', 'index.version=4'],
);

/** What keeps the old bytes of a working folder. */
export type Shadow = Pick<ShadowGit, 'differing' | 'blobsOf' | 'take' | 'contents' | 'publish'>;

/** Stands in where there is no git: names are seen, and no bytes are kept. */
export const noShadow: Shadow = {
  differing: async () => [],
  blobsOf: async () => new Map(),
  take: async () => undefined,
  async contents(blobs, use) {
    for (const blob of blobs) await use(blob, undefined);
  },
  publish: async () => undefined,
};

export class ShadowGit {
  readonly #program: string;
  readonly #folder: string;
  readonly #store: string;
  /** The index of this process: another one may look at the same folder. */
  readonly #index: string;

  #isEmpty = true;

  /** Whether there was nothing that an earlier process knew of the folder. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  private constructor(program: string, folder: string, store: string) {
    this.#program = program;
    this.#folder = folder;
    this.#store = store;
    this.#index = join(store, `index-${process.pid}-${crypto.randomUUID()}`);
  }

  /** Makes or opens the repository in `store`, with what an earlier process knew. Throws the error of the file system. */
  static async open(program: string, folder: string, store: string): Promise<ShadowGit> {
    const git = new ShadowGit(program, folder, store);
    makeOwnFolders(store);
    if (existsSync(join(store, 'objects')) && (await tidied(store)) > maxStore)
      await rm(store, { recursive: true, force: true });
    makeOwnFolders(store, ...['objects', 'refs', 'info'].map(name => join(store, name)));
    refuseLinks(...readdirSync(join(store, 'objects')).map(name => join(store, 'objects', name)));
    const config = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n';
    const files = [
      ['config', config],
      [join('info', 'attributes'), noAttributes],
      ['HEAD', 'ref: refs/heads/none\n'],
    ] as const;
    for (const [name, text] of files) await writeOwn(join(store, name), text, undefined, false);
    const known = join(store, 'index');
    git.#isEmpty = !existsSync(known);
    if (!git.isEmpty) await copyFile(known, git.#index, constants.COPYFILE_FICLONE);
    return git;
  }

  /** Keeps these bytes without starting git. Returns the name that git gives them. Throws the error of the file system. */
  keep(bytes: Buffer): string {
    const blob = blobName(bytes);
    const file = this.#looseFile(blob);
    if (existsSync(file)) return blob;
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const temporary = `${file}-${crypto.randomUUID()}.tmp`;
    writeFileSync(temporary, deflateSync(Buffer.concat([headOf(bytes), bytes]), { level: 0 }), {
      flag: 'wx',
      mode: 0o400,
    });
    renameSync(temporary, file);
    return blob;
  }

  /** Goes on from what is kept of files and links by now. All of them look different until they are taken in. Throws as `take` does. */
  async adopt(kept: readonly { path: string; blob: string; isLink: boolean }[]): Promise<void> {
    const lines = kept.map(({ path, blob, isLink }) => `${isLink ? '120000' : '100644'} ${blob}\t${path}\0`);
    if (lines.length > 0) await this.#feed(['update-index', '-z', '--index-info'], lines);
  }

  /**
   * Returns the files and links that are not as they were taken in. Reads none of them, so some may only look different. Throws when
   * `stop` aborts.
   */
  async differing(stop?: AbortSignal): Promise<Differing[]> {
    const found: Differing[] = [];
    const fields = (await this.#output(['diff-files', '--raw', '-z'], stop)).split('\0');
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const [, , blob = '', , letter] = (fields[at] ?? '').slice(1).split(' ');
      found.push({ path: fields[at + 1] ?? '', blob, isGone: letter === 'D' });
    }
    return found;
  }

  /** Returns the names of the bytes that were taken in, by path. */
  async blobsOf(paths: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (let at = 0; at < paths.length; at += 200) {
      const args = ['ls-files', '-s', '-z', '--', ...paths.slice(at, at + 200)];
      for (const line of (await this.#output(args)).split('\0')) {
        const tab = line.indexOf('\t');
        if (tab > 0) found.set(line.slice(tab + 1), line.split(' ')[1] ?? '');
      }
    }
    return found;
  }

  /**
   * Takes in the files and links that are at `present`, and forgets those that were at `gone`. `onProgress` gets the number of paths
   * that are done. Throws the abort reason, or an Error with what git said.
   */
  async take(
    present: readonly string[],
    gone: readonly string[],
    { signal, onProgress }: { signal?: AbortSignal; onProgress?: (done: number) => void } = {},
  ): Promise<void> {
    const forget = gone.map(path => `0 ${'0'.repeat(40)}\t${path}\0`);
    if (forget.length > 0) await this.#feed(['update-index', '-z', '--index-info'], forget, signal);
    if (present.length === 0) return;
    const inPack = present.length > mostLoose ? ['-c', 'core.bigFileThreshold=1'] : [];
    const add = [...inPack, 'update-index', '-z', '--add', '--remove', '--replace', '--stdin'];
    const paths = present.map(path => `${path}\0`);
    await this.#feed(add, paths, signal, onProgress);
  }

  /** Calls `use` with the bytes of each of the blobs, in their order; with undefined for one that is missing. */
  async contents(
    blobs: readonly string[],
    use: (blob: string, bytes: Buffer | undefined) => Promise<void>,
  ): Promise<void> {
    // Reading a blob that has a file of its own takes less time than starting a process.
    if (blobs.length <= mostLoose && blobs.every(blob => existsSync(this.#looseFile(blob)))) {
      for (const blob of blobs) await use(blob, looseBytes(this.#looseFile(blob)));
      return;
    }
    const child = this.#spawn(['cat-file', '--batch']);
    const ended = goodEnd(child);
    child.stdin.on('error', () => undefined);
    child.stdin.end(blobs.map(blob => `${blob}\n`).join(''));
    let waiting: Buffer[] = [];
    let size = 0;
    let wanted: number | undefined;
    let at = 0;
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      waiting.push(chunk);
      size += chunk.length;
      if (wanted !== undefined && size < wanted) continue;
      let all = Buffer.concat(waiting);
      for (;;) {
        const end = all.indexOf(10);
        if (end < 0) break;
        const [, kind, length = '0'] = all.subarray(0, end).toString('latin1').split(' ');
        const blob = blobs[at] ?? '';
        wanted = kind === 'blob' ? end + 1 + Number(length) + 1 : end + 1;
        if (all.length < wanted) break;
        // Copied: the rest of the chunk is not kept alive by it.
        await use(blob, kind === 'blob' ? Buffer.from(all.subarray(end + 1, wanted - 1)) : undefined);
        all = all.subarray(wanted);
        wanted = undefined;
        at++;
      }
      waiting = [all];
      size = all.length;
    }
    await ended;
  }

  #looseFile(blob: string): string {
    return join(this.#store, 'objects', blob.slice(0, 2), blob.slice(2));
  }

  /** Leaves what is known for the next process. Never throws: without it, that one takes longer. */
  async publish(): Promise<void> {
    const temporary = `${this.#index}.tmp`;
    try {
      await copyFile(this.#index, temporary, constants.COPYFILE_FICLONE);
      await rename(temporary, join(this.#store, 'index'));
    } catch {
      await rm(temporary, { force: true }).catch(() => undefined);
    }
  }

  async #output(args: readonly string[], stop?: AbortSignal): Promise<string> {
    const child = this.#spawn(args);
    const end = (): void => void child.kill('SIGKILL');
    stop?.addEventListener('abort', end, { once: true });
    child.stdin.end();
    const chunks: Buffer[] = [];
    child.stdout.on('data', chunk => chunks.push(chunk));
    await goodEnd(child);
    return Buffer.concat(chunks).toString();
  }

  async #feed(
    args: readonly string[],
    lines: readonly string[],
    signal?: AbortSignal,
    onProgress?: (done: number) => void,
  ): Promise<void> {
    signal?.throwIfAborted();
    await rm(`${this.#index}.lock`, { force: true });
    const child = this.#spawn(args);
    const stop = (): void => void child.kill('SIGKILL');
    signal?.addEventListener('abort', stop);
    child.stdout.resume();
    // The exit code says it.
    child.stdin.on('error', () => undefined);
    const ended = goodEnd(child);
    let isOver = false;
    const over = ended.then(
      () => undefined,
      () => undefined,
    );
    void over.then(() => {
      isOver = true;
    });
    try {
      for (let at = 0; at < lines.length && !isOver; at += 500) {
        const isTaken = child.stdin.write(lines.slice(at, at + 500).join(''));
        if (!isTaken) await Promise.race([new Promise(resolve => child.stdin.once('drain', resolve)), over]);
        onProgress?.(Math.min(at + 500, lines.length));
      }
      child.stdin.end();
      await ended;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  #spawn(args: readonly string[]): ChildProcessWithoutNullStreams {
    const env = {
      ...(process.platform === 'win32' && { SYSTEMROOT: process.env['SYSTEMROOT'] }),
      PATH: '/dev/null',
      HOME: this.#store,
    };
    const child = startGit(this.#program, [...settings, ...args], {
      cwd: this.#folder,
      env: gitEnvironment(env, {
        ...readsAlone,
        GIT_DIR: this.#store,
        GIT_WORK_TREE: this.#folder,
        GIT_INDEX_FILE: this.#index,
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_ATTR_NOSYSTEM: '1',
      }),
    });
    // A pipe in place of a file that git reads would make it wait forever.
    const timer = setTimeout(() => child.kill('SIGKILL'), stuckAfter);
    child.stdin.on('drain', () => timer.refresh());
    child.once('close', () => clearTimeout(timer));
    return child;
  }
}

const headOf = (bytes: Buffer): Buffer => Buffer.from(`blob ${bytes.length}\0`);

/** Returns the name that git gives these bytes. */
export const blobName = (bytes: Buffer): string =>
  createHash('sha1').update(headOf(bytes)).update(bytes).digest('hex');

function looseBytes(file: string): Buffer | undefined {
  try {
    const bytes = inflateSync(readRegularFile(file));
    return bytes.subarray(bytes.indexOf(0) + 1);
  } catch {
    return undefined;
  }
}

/** Resolves when the process has ended well. Throws an Error with what it said, or with why it did not start. */
function goodEnd(child: ChildProcessWithoutNullStreams): Promise<void> {
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said = endOf(said + chunk, 2000);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => {
      if (code === 0) resolve();
      else reject(new Error(said.trim().split('\n').at(-1) || `git ended with ${code ?? 'a signal'}`));
    });
  });
}

/** Removes what processes have left that ended long ago. Returns the size of the bytes in the store. */
async function tidied(store: string): Promise<number> {
  for (const name of await readdir(store)) {
    if (!name.startsWith('index-')) continue;
    const path = join(store, name);
    const age =
      Date.now() -
      (await stat(path)
        .then(({ mtimeMs }) => mtimeMs)
        .catch(() => Date.now()));
    if (age > leftAfter) await rm(path, { force: true });
  }
  const turn = takingTurns();
  let size = 0;
  for (const entry of readdirSync(join(store, 'objects'), { withFileTypes: true })) {
    await turn();
    const folder = join(store, 'objects', entry.name);
    for (const name of entry.isDirectory() ? readdirSync(folder) : [])
      size += statsAt(join(folder, name))?.size ?? 0;
  }
  return size;
}
