/**
 * Finds the folder that an agent is installed to, refuses if an agent of that name is somewhere else, and copies the
 * pack there.
 */

import { createHash } from 'node:crypto';
import { constants, type Dirent, readdirSync } from 'node:fs';
import { mkdir, open, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { type AlongFile, type FolderContents, fileText } from '../files/folderRecord.ts';
import { isInside, realIfThere } from '../files/paths.ts';
import { readText } from '../files/regularFile.ts';
import { folded } from '../files/sensitiveNames.ts';
import { parseToml, tomlString } from '../files/settingsFile.ts';
import { exists } from '../files/swapFolder.ts';
import { readAgentToml } from './agent.ts';
import { type AgentEntry, readAgentsToml } from './agentsToml.ts';
import { foldersIn } from './findSkills.ts';

interface InstallPlace {
  /** Absolute path. It may exist already. */
  target: string;
  /** The entry of version 3 that holds the pack's description, and its file. */
  older: (AgentEntry & { file: string }) | undefined;
}

/**
 * Returns the place for an agent. Throws TelosError `pack` if an agent of that name is elsewhere. A name that many file systems
 * take for the same counts too.
 */
export function installPlace(name: string, config: Config): InstallPlace {
  const { entries, file, ofProject } = readAgentsToml(config);
  const entry = entries.find(candidate => candidate.name === name);
  if (entry?.skillsDir !== undefined)
    throw taken(
      sentence("Agent '{0}' is linked in {1}: it uses the skills in {2}.", ...[name, file, entry.skillsDir]),
      name,
    );
  const older = entry?.mode === 'installed' && !ofProject ? { ...entry, file } : undefined;
  const ofVersion3 = join(config.dataDir, 'agents');
  refuseTwins(name, [config.skillsDir, ofVersion3]);
  const here = join(config.skillsDir, name);
  const there = join(ofVersion3, name);
  // A pack of version 3 is replaced in place, since its entry in agents.toml points there.
  const target = !exists(here) && (older || exists(there)) ? there : here;
  return { target, older: target === there ? older : undefined };
}

function refuseTwins(name: string, parents: readonly string[]): void {
  for (const parent of parents) {
    for (const entry of namesIn(parent)) {
      if (entry !== name && folded(entry) === folded(name))
        throw taken(
          sentence(
            "{0} already exists, and many file systems take '{1}' for the same name.",
            ...[join(parent, entry), name],
          ),
          name,
        );
    }
    for (const folder of foldersIn(parent)) {
      const path = join(parent, folder);
      const other = readAgentToml(path).name;
      if (folder === name && other !== name)
        throw taken(sentence("{0} holds another agent, '{1}'.", path, other), name);
      if (folder !== name && folded(other) === folded(name))
        throw taken(sentence("There is an agent '{0}' already, in {1}.", other, path), name);
    }
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function taken(what: Sentence, name: string): TelosError {
  return new TelosError(
    'pack',
    [what, sentence("Agent '{0}' was not installed; nothing was changed.", name)],
    {
      remedy: { kind: 'choose_name' },
    },
  );
}

/** Throws TelosError `pack` if a folder would be copied into itself, over itself, or over a folder that contains it. */
export async function checkApart(source: string, target: string): Promise<void> {
  const folder = dirname(target);
  const place = join(await realpath(folder).catch(() => folder), basename(target));
  if (source === place)
    throw new TelosError('pack', [
      sentence('{0} is in your skills folder already; there is nothing to install.', source),
    ]);
  if (isInside(source, place))
    throw new TelosError('pack', [
      sentence('{0} contains the skills folder itself.', source),
      sentence('Give the folder of one pack.'),
    ]);
  if (isInside(place, source))
    throw new TelosError(
      'pack',
      [
        sentence('{0} is inside the agent that it would replace, {1}.', source, place),
        sentence('Copy it to another folder first.'),
        sentence('Nothing was changed.'),
      ],
      { remedy: { kind: 'choose_name' } },
    );
}

export interface InstallOrigin {
  format: 'telos-install';
  version: 1;
  agent: string;
  /** The installed folder. Absolute. */
  path: string;
  /** The folder, or the source as it was asked for. */
  source: { kind: 'folder'; path: string } | { kind: 'fetched'; text: string };
  /** ISO 8601, UTC. */
  installedAt: string;
  /** Distinguishes the installed folder from another one in its place. */
  identity: string;
  files: FolderContents;
  leftOut: readonly string[];
  /** Digest of the entry in the lock file. Missing in installs of older versions. */
  locked?: string;
}

/**
 * Returns the stored origin of the folder `target`, or undefined if there is none. The caller checks whether that folder is still
 * the same.
 */
export function readOrigin(dataDir: string, target: string): InstallOrigin | undefined {
  try {
    const value = JSON.parse(readText(originPath(dataDir, target))) as Partial<InstallOrigin>;
    const { format, version, path, source, installedAt, files } = value;
    const isOrigin =
      format === 'telos-install' &&
      version === 1 &&
      path === target &&
      (source?.kind === 'folder' ? typeof source.path : source?.kind === 'fetched' && typeof source.text) ===
        'string' &&
      typeof installedAt === 'string' &&
      typeof files === 'object' &&
      files !== null;
    return isOrigin ? (value as InstallOrigin) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the change of the origin's file by an install, or without `origin` by an uninstall. */
export function originFile(dataDir: string, target: string, origin?: InstallOrigin): AlongFile {
  const file = originPath(dataDir, target);
  return { file, before: textOf(file), after: origin ? `${JSON.stringify(origin)}\n` : null };
}

function textOf(file: string): string | null {
  try {
    return readText(file);
  } catch {
    return null;
  }
}

/** Returns the path of the origin's file. Each folder has one, so that two windows never overwrite each other's. */
function originPath(dataDir: string, target: string): string {
  const key = createHash('sha256').update(target).digest('hex').slice(0, 24);
  return join(dataDir, 'installs', `${key}.json`);
}

/**
 * Returns the text of an agent.toml with this name, every other byte unchanged. Returns undefined if it gives no name, so that
 * the folder's counts. Throws TelosError `pack` if it cannot be changed safely.
 */
export function withAgentName(text: string, name: string): string | undefined {
  const table = parseToml(text);
  if (!Object.hasOwn(table, 'name')) return undefined;
  const lines = text.split('\n');
  const at = lines.findIndex(line => /^\s*(?:name|"name"|'name')\s*=/.test(line));
  const changed = lines.with(Math.max(at, 0), `name = ${tomlString(name)}`).join('\n');
  if (at >= 0 && isSameBut(changed, table, name)) return changed;
  throw new TelosError('pack', [
    sentence('The name in its agent.toml is written in a way that Telos cannot change safely.'),
    sentence('Change it in a copy of the folder by hand.'),
    sentence('Nothing was changed.'),
  ]);
}

function isSameBut(text: string, table: ReturnType<typeof parseToml>, name: string): boolean {
  try {
    return isDeepStrictEqual({ ...parseToml(text) }, { ...table, name });
  } catch {
    return false;
  }
}

/** Upper limits for a pack. */
const packLimits = { files: 5000, bytes: 100 * 1024 * 1024, depth: 24 } as const;

interface PackCopy {
  files: number;
  bytes: number;
  /** Links and special files that were not copied, as paths below the source. */
  leftOut: string[];
  /** Contents of the copy. */
  contents: FolderContents;
}

/**
 * Copies into `target`, an empty folder. Without `target` it only reads, and returns what a copy would be. Throws TelosError
 * `pack` at a limit, and the errors of the file system.
 */
export async function copyPack(
  source: string,
  target: string | undefined,
  limits = packLimits,
): Promise<PackCopy> {
  const copy = { files: 0, bytes: 0, leftOut: [] as string[] };
  const contents = new Map<string, string>();
  await copyFolder(source, target, '', []);
  return { ...copy, contents: Object.fromEntries(contents) };

  async function copyFolder(
    from: string,
    to: string | undefined,
    path: string,
    around: readonly string[],
  ): Promise<void> {
    if (around.length > limits.depth)
      throw new PackTooLarge(source, sentence('folders more than {0} deep', limits.depth));
    for (const entry of await sortedEntries(from)) {
      if (entry.name === '.git') continue;
      const below = path ? `${path}/${entry.name}` : entry.name;
      const own = join(from, entry.name);
      const linked = entry.isSymbolicLink() ? await ownPlace(source, own, around) : undefined;
      const [here, there] = [linked?.path ?? own, to && join(to, entry.name)];
      if (entry.isDirectory() || linked?.isFolder === true) {
        if (there) await mkdir(there);
        contents.set(below, 'folder');
        await copyFolder(here, there, below, [...around, linked?.path ?? '']);
      } else if (entry.isFile() || linked) {
        copy.files++;
        if (copy.files > limits.files)
          throw new PackTooLarge(source, sentence('more than {0} files', limits.files));
        const { size, text } = await copyFile(here, there, limits.bytes - copy.bytes);
        copy.bytes += size;
        if (copy.bytes > limits.bytes)
          throw new PackTooLarge(source, sentence('more than {0} bytes', limits.bytes));
        contents.set(below, text);
      } else {
        copy.leftOut.push(below);
      }
    }
  }
}

/** Returns what a link leads to, if that is in the same folder and not around the link. `around` is what other links led to. */
async function ownPlace(
  source: string,
  link: string,
  around: readonly string[],
): Promise<{ path: string; isFolder: boolean } | undefined> {
  const path = realIfThere(link);
  const root = realIfThere(source) ?? source;
  if (path === undefined || !isInside(root, path) || isInside(path, link) || around.includes(path))
    return undefined;
  if (relative(root, path).split(sep).includes('.git')) return undefined;
  const stats = await stat(path);
  return stats.isDirectory() || stats.isFile() ? { path, isFolder: stats.isDirectory() } : undefined;
}

async function sortedEntries(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Copies a file. Returns its size in bytes and its text for `FolderContents`. A file larger than `room` is not copied. Scripts
 * become executable, since archives lose that bit.
 */
async function copyFile(
  from: string,
  to: string | undefined,
  room: number,
): Promise<{ size: number; text: string }> {
  // The file may have become a link or a pipe since the folder was listed. Windows does not know the flags.
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const source = await open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = await source.stat();
    if (!stats.isFile())
      throw new TelosError('pack', [
        sentence('{0} is not a file any more.', from),
        sentence('Nothing was changed.'),
      ]);
    const { size, mode } = stats;
    if (size > room) return { size, text: '' };
    const bytes = await source.readFile();
    const executable = (mode & 0o111) !== 0 || (bytes[0] === 0x23 && bytes[1] === 0x21);
    const copied = executable ? 0o755 : 0o644;
    if (to !== undefined) await writeCopy(to, bytes, copied);
    return { size: bytes.length, text: fileText(createHash('sha256').update(bytes).digest('hex'), copied) };
  } finally {
    await source.close();
  }
}

async function writeCopy(to: string, bytes: Buffer, mode: number): Promise<void> {
  const copy = await open(to, 'wx');
  try {
    await copy.writeFile(bytes);
    await copy.chmod(mode);
    await copy.sync();
  } finally {
    await copy.close();
  }
}

/** A folder is more than a pack may have. */
export class PackTooLarge extends TelosError {
  /** What is too much of it, as in `more than 5,000 files`. */
  readonly what: string;

  constructor(source: string, what: Sentence) {
    super('pack', [
      sentence('{0} holds {1}, which is more than a pack may have.', source, what),
      sentence('Install a folder of it, or one of its skills by the name after #.'),
      sentence('Nothing was changed.'),
    ]);
    this.what = spoken([what]);
  }
}
