/**
 * Walks the folders of an agent and records every file, everything left out, and every link that leads out. Synchronous, but for
 * large files: each decision on a command looks at all of them, and a call to another thread takes longer than such a look.
 */

import { createHash } from 'node:crypto';
import { type BigIntStats, lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { RedFlag } from '@telos/protocol/agentCard';
import { beginningOf } from '@telos/protocol/text';
import { takingTurns } from '../cancellation.ts';
import { readWholeFile } from '../files/openFile.ts';
import { goesDownAndUp, isInside, realIfThere, resolvePath, statsAt } from '../files/paths.ts';
import { isRepository, isRepositoryName, rewrittenByGit } from './text/repositoryFiles.ts';

/** Caches digests by a file's times, size and inode. One per run or window. */
export class FileDigests {
  readonly #known = new Map<string, { stamp: string; sha256: string }>();

  /** Returns the SHA-256 of a file, hexadecimal. `stats` is what was at `path` just now. Throws PathProblem. */
  async digestOf(path: string, stats: BigIntStats): Promise<string> {
    const stamp = [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ');
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return known.sha256;
    const fresh = Date.now() - Number(stats.ctimeMs) < 100;
    // A run can have put a link in place of a folder on the way. What is behind it differs then, and is no error.
    const sha256 = createHash('sha256')
      .update(await readWholeFile(realIfThere(path) ?? path))
      .digest('hex');
    // A second write within one tick of the file system's clock would look the same as this one.
    if (!fresh) this.#known.set(path, { stamp, sha256 });
    return sha256;
  }
}

export interface AgentFile {
  /** Real and absolute path. */
  path: string;
  sha256: string;
  size: number;
  executable: boolean;
  /**
   * True for a link, and for anything that is not a file or a folder. A link is recorded by its target path, and the target is
   * not a file of the agent. Anything else has no content here.
   */
  isLink: boolean;
  /** True if it is in the repository of the agent's own folder: Git's settings and hooks. */
  ofRepository: boolean;
}

const mostFiles = 5000;
const mostBytes = 256 * 1024 * 1024;
/** Number of escapes that every frontend shows in any case. */
const mostEscapes = 100;
/** Length of a link's target, in characters. */
const longestTarget = 200;

/** Returns true if `label` is a file below the folder with the label `folder`. */
export const isBelow = (folder: string, label: string): boolean => label.startsWith(`${folder}/`);

/** Reads the files of one agent once. */
export class Reader {
  readonly files = new Map<string, AgentFile>();
  readonly leftOut: { path: string; why: 'repository' | 'work' }[] = [];
  tooLarge = false;
  readonly #base: string;
  readonly #folders: readonly string[];
  /** Folders in which a repository is the agent's own. */
  readonly #tops: readonly string[];
  readonly #digests: FileDigests;
  readonly #flags: RedFlag[] = [];
  readonly #links: string[] = [];
  /** Real and absolute paths. */
  readonly #notRead: string[] = [];
  #work = '';
  #shippedInWork: readonly string[] = [];
  #bytes = 0;
  readonly #turn = takingTurns();

  constructor(base: string, folders: readonly string[], tops: readonly string[], digests: FileDigests) {
    this.#base = base;
    this.#folders = folders;
    this.#tops = tops;
    this.#digests = digests;
  }

  labelOf(path: string): string {
    return isInside(this.#base, path) ? relative(this.#base, path).split(sep).join('/') : path;
  }

  /** Leaves out the work in a folder. Files that were there when the agent was accepted stay a part of it. */
  leaveOutWork(folder: string, accepted: readonly string[]): void {
    const label = this.labelOf(folder);
    this.#work = folder;
    this.#shippedInWork = accepted.filter(name => isBelow(label, name));
    this.#notRead.push(folder);
    this.leftOut.push({ path: label, why: 'work' });
  }

  async addFolder(folder: string): Promise<void> {
    await this.#turn();
    if (this.tooLarge) return;
    if (folder === this.#work) {
      for (const label of this.#shippedInWork) await this.#addIfThere(join(this.#base, label));
      return;
    }
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (isRepositoryName(entry.name)) {
        if (entry.name === '.git' && this.#tops.includes(folder) && (await isRepository(path))) {
          await this.#addRepository(path);
          continue;
        }
        this.#flag('hidden-repository', path);
      }
      if (entry.isDirectory()) await this.addFolder(path);
      else if (entry.isFile()) await this.#addFile(path);
      else this.#addOther(path, entry.isSymbolicLink());
    }
  }

  /** Adds a file that is read wherever it is. */
  async addRead(path: string): Promise<void> {
    const real = realIfThere(path);
    // Anything that is not a file holds nothing to review, and reading it might never end.
    const isFile = real !== undefined && statSync(real, { throwIfNoEntry: false })?.isFile();
    if (isFile) await this.#addFile(real).catch(() => undefined);
  }

  async escapes(): Promise<RedFlag[]> {
    const read = new Set([...this.files.values()].map(({ path }) => path));
    const isRead = (path: string): boolean =>
      read.has(path) ||
      (this.#folders.some(folder => isInside(folder, path)) &&
        !this.#notRead.some(folder => isInside(folder, path)));
    for (const path of this.#links) {
      const target = targetOf(path) ?? '';
      // Each link on the way is checked as well, so that no step of it leads out.
      const step = resolve(dirname(path), target);
      const end = await resolvePath(step, step, step).catch(() => undefined);
      // By its text alone, such a path can stay inside while the system resolves it to a place outside.
      if (goesDownAndUp(target) || !isRead(step) || end === undefined || !isRead(end))
        this.#flag('link-out', path, target);
    }
    return this.#flags;
  }

  #flag(kind: RedFlag['kind'], path: string, text = ''): void {
    if (this.#flags.length < mostEscapes)
      this.#flags.push({ kind, file: this.labelOf(path), line: 1, text: beginningOf(text, longestTarget) });
  }

  async #addRepository(folder: string): Promise<void> {
    this.#notRead.push(folder);
    this.leftOut.push({ path: this.labelOf(folder), why: 'repository' });
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (rewrittenByGit.test(entry.name)) continue;
      if (entry.isDirectory()) await this.addFolder(path);
      else if (entry.isFile()) await this.#addFile(path);
      else this.#addOther(path, entry.isSymbolicLink());
    }
  }

  async #addIfThere(path: string): Promise<void> {
    const stats = statsAt(path);
    if (stats?.isFile()) await this.#addFile(path);
    else if (stats) this.#addOther(path, stats.isSymbolicLink());
  }

  async #addFile(path: string): Promise<void> {
    const label = this.labelOf(path);
    if (this.files.has(label) || this.tooLarge) return;
    const stats = lstatSync(path, { bigint: true });
    const size = Number(stats.size);
    this.#bytes += size;
    if (this.files.size >= mostFiles || this.#bytes > mostBytes) {
      this.tooLarge = true;
      return;
    }
    const sha256 = await this.#digests.digestOf(path, stats);
    const ofRepository = this.#notRead.some(folder => folder !== this.#work && isInside(folder, path));
    this.files.set(label, {
      path,
      sha256,
      size,
      executable: (Number(stats.mode) & 0o111) !== 0,
      isLink: false,
      ofRepository,
    });
  }

  #addOther(path: string, isLink: boolean): void {
    const label = this.labelOf(path);
    if (this.files.has(label) || this.tooLarge) return;
    const content = isLink ? `link\0${readlinkSync(path)}` : 'special\0';
    const sha256 = createHash('sha256').update(content).digest('hex');
    this.files.set(label, { path, sha256, size: 0, executable: false, isLink: true, ofRepository: false });
    if (isLink) this.#links.push(path);
    else this.#flag('special-file', path);
    if (this.files.size >= mostFiles) this.tooLarge = true;
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}
