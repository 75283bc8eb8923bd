/** Reads a folder for the look before: its files, and what in it is neither a file nor a folder. Follows no link. */

import { closeSync, type Dirent, lstatSync, openSync, readSync } from 'node:fs';
import { lstat, readdir, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { isInside, readRegularFile } from '@telos/engine/files';
import {
  isRepository,
  isRepositoryName,
  longestRead,
  repositoryFlags,
  rewrittenByGit,
  rules,
} from '@telos/engine/policy';
import type { Finding, RedFlag } from '@telos/protocol/agentCard';
import { beginningOf } from '@telos/protocol/text';
import { PackageLooks } from './packageLooks.ts';
import { type FileToScan, reportOf, type ScanReport, scanFile } from './scan.ts';

/** A folder with more files is not looked into as a whole. */
const mostFiles = 5000;

/**
 * Returns what is found below the folders, with paths from `base`, which is one of them or around them. A file is taken as well.
 * Throws errors of the file system if one of them cannot be read. A file below that cannot be read is a finding.
 */
export async function scanFolders(base: string, folders: readonly string[]): Promise<ScanReport> {
  const real = await Promise.all(folders.map(folder => realpath(folder)));
  const walk = new Walk(await realpath(base), real);
  for (const folder of real)
    await ((await lstat(folder)).isFile() ? walk.addFile(folder) : walk.addFolder(folder));
  return reportOf(walk.looks.weighed([...walk.findings, ...walk.looks.findings()]), walk.read, walk.of);
}

/** Returns what is found below a folder, or in a file. */
export const scanFolder = (folder: string): Promise<ScanReport> => scanFolders(folder, [folder]);

class Walk {
  readonly findings: Finding[] = [];
  readonly looks = new PackageLooks();
  of = 0;
  read = 0;
  readonly #base: string;
  readonly #folders: readonly string[];

  constructor(base: string, folders: readonly string[]) {
    this.#base = base;
    this.#folders = folders;
  }

  async addFolder(folder: string): Promise<void> {
    for (const entry of await entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (this.of >= mostFiles) return this.#unread(this.#base, 'more than 5,000 files');
      if (isRepositoryName(entry.name) && (await this.#addRepository(path, folder))) continue;
      if (entry.isDirectory()) await this.addFolder(path).catch(() => this.#unread(path));
      else if (entry.isFile()) this.addFile(path);
      else await this.#addOther(path, entry);
    }
  }

  addFile(path: string): void {
    const file = this.#fileAt(path);
    const { findings, isRead } = scanFile(file, this.looks);
    this.of++;
    if (isRead) this.read++;
    this.findings.push(...findings);
  }

  /** Reads at once: for thousands of small files, waiting for each takes longer than reading it. */
  #fileAt(path: string): FileToScan {
    const file = { path: this.#label(path), size: 0, executable: false, bytes: undefined };
    try {
      const { size, mode } = lstatSync(path);
      const executable = (mode & 0o111) !== 0;
      if (size > longestRead) return { ...file, size, executable, head: headOf(path) };
      return { ...file, size, executable, bytes: readRegularFile(path) };
    } catch {
      return file;
    }
  }

  /** Looks into the settings and hooks of a folder's own repository. Returns false for what only has the name of one. */
  async #addRepository(path: string, folder: string): Promise<boolean> {
    const isOwn = this.#folders.includes(folder) && (await isRepository(path));
    if (!isOwn) {
      this.#flag('hidden-repository', path);
      return false;
    }
    const names = (await readdir(path)).filter(name => !rewrittenByGit.test(name));
    for (const name of names) await this.#addGitFile(join(path, name));
    return true;
  }

  async #addGitFile(path: string): Promise<void> {
    if ((await lstat(path)).isDirectory()) {
      for (const name of await readdir(path)) await this.#addGitFile(join(path, name));
      return;
    }
    const text = this.#fileAt(path).bytes?.toString('utf8');
    if (text === undefined) this.#unread(path);
    else
      for (const flag of repositoryFlags(this.#label(path), text))
        this.findings.push({ ...flag, level: rules[flag.kind].level });
  }

  async #addOther(path: string, entry: Dirent): Promise<void> {
    if (!entry.isSymbolicLink()) {
      this.of++;
      this.#flag('special-file', path);
      return;
    }
    const target = await realpath(path).catch(() => undefined);
    if (target !== undefined && this.#folders.some(folder => isInside(folder, target))) return;
    this.of++;
    const written = await readlink(path).catch(() => '');
    // One to a place of the package where nothing is reads nothing, and no install takes it along.
    const leadsNowhere =
      target === undefined &&
      written !== '' &&
      this.#folders.some(folder => isInside(folder, resolve(dirname(path), written)));
    this.#flag('link-out', path, written, leadsNowhere ? 'low' : rules['link-out'].level);
  }

  #unread(path: string, text = ''): void {
    this.of++;
    this.#flag('not-looked-into', path, text);
  }

  #flag(kind: RedFlag['kind'], path: string, text = '', level = rules[kind].level): void {
    this.findings.push({ kind, level, file: this.#label(path), line: 1, text: beginningOf(text, 200) });
  }

  #label(path: string): string {
    return path === this.#base ? basename(path) : relative(this.#base, path).split(sep).join('/');
  }
}

/** Returns the first bytes, which tell the form of a file. */
function headOf(path: string): Buffer {
  const descriptor = openSync(path, 'r');
  try {
    const head = Buffer.alloc(4096);
    return head.subarray(0, readSync(descriptor, head, 0, head.length, 0));
  } finally {
    closeSync(descriptor);
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}
