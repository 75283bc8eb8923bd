/** Finds the version of a skill before this one: in its git repository, or among the packs that an install has replaced. */

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isInside, realPlace } from '@telos/engine/files';
import {
  copyPack,
  hasFilesAround,
  openSkill,
  projectFoldersAt,
  skillDigest,
  skillsBelow,
  workFoldersOf,
} from '@telos/engine/skills';
import {
  commandPrograms,
  findGit,
  type GitRun,
  gitEnvironment,
  gitSettings,
  readsAlone,
  runGit,
} from '@telos/engine/tools';
import { ReplacedFolders } from '@telos/engine/undo';
import { asInstalled, type EvaluatedSkill } from './evalWorld.ts';

/** A version of a skill that the present one is compared with. */
export interface EarlierVersion {
  one: EvaluatedSkill;
  /** Where it is from, in words: "commit 1a2b3c4d of 2026-11-02". */
  from: string;
  /** Removes what was made for it. Call it in any case. */
  dispose(): Promise<void>;
}

/** Limits of a version that is taken out of git. They are those of a pack that is installed. */
const most = { files: 5000, bytes: 100 * 1024 * 1024, commits: 500 };

/**
 * Returns the last version of the skill whose files, apart from its evals, are not those of now. Undefined if there is none. Throws
 * TelosError `config` if it cannot be read.
 */
export async function previousVersion(
  one: EvaluatedSkill,
  config: Config,
  signal: AbortSignal,
): Promise<EarlierVersion | undefined> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'telos-earlier-')));
  const dispose = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const found =
      (await fromGit(one, folder, config, signal)) ?? (await fromInstall(one, folder, config.dataDir));
    if (found) return { ...found, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
  await dispose();
  return undefined;
}

/**
 * Returns the version in a folder: the skill of the same name, or with `isAlone` also the only one there. Undefined if there is none.
 * Throws TelosError `config` if it is the skill itself.
 */
export function versionIn(
  folder: string,
  { agent, skill }: EvaluatedSkill,
  isAlone: boolean,
): EarlierVersion | undefined {
  const found = skillsBelow(folder);
  const only = isAlone && found.length === 1 ? found[0] : undefined;
  const other = found.find(({ id }) => id === skill.id) ?? only;
  if (!other) return undefined;
  if (realPlace(other.dir) === realPlace(skill.dir))
    throw new TelosError('config', `${other.dir} is the skill itself, and no other version of it.`);
  return { one: versionOf(agent, other.file, other.id), from: other.dir, dispose: async () => {} };
}

/** Returns the skill of a file as a version of an agent's. Of the agent's own servers it has none but those beside it. */
function versionOf(agent: EvaluatedSkill['agent'], file: string, id: string): EvaluatedSkill {
  const skill = openSkill(file, 'user', id);
  const { mcpConfig: _now, ...own } = agent;
  return asInstalled({ agent: { ...own, skills: [skill] }, skill });
}

/** What is compared and taken along: the pack around a skill if that has files which the skill may need, or else the skill alone. */
function packOf({ agent, skill }: EvaluatedSkill): string {
  const [pack, dir] = [realPlace(agent.packDir) ?? agent.packDir, realPlace(skill.dir) ?? skill.dir];
  return isInside(pack, dir) && hasFilesAround(pack) ? pack : dir;
}

type Found = Omit<EarlierVersion, 'dispose'>;

/** Returns the version in a copy of its pack, unless it is the one of now or the skill is not there. */
async function differing(
  one: EvaluatedSkill,
  pack: string,
  copy: string,
  from: string,
): Promise<Found | undefined> {
  const { skill, agent } = one;
  const dir = realPlace(skill.dir) ?? skill.dir;
  const file = join(copy, relative(pack, dir), basename(skill.file));
  if (!existsSync(file) || (await skillDigest(dirname(file))) === (await skillDigest(dir))) return undefined;
  return { one: versionOf(agent, file, skill.id), from };
}

/** Returns the version that the last install of the pack has replaced. */
async function fromInstall(one: EvaluatedSkill, folder: string, dataDir: string): Promise<Found | undefined> {
  const { packDir } = one.agent;
  for (const record of await new ReplacedFolders({ dataDir }).list()) {
    const { target, kept, undoneAt, at } = record;
    if (target !== packDir || kept === null || undoneAt !== undefined || !existsSync(kept)) continue;
    const copy = join(folder, record.id, basename(packDir));
    await mkdir(copy, { recursive: true });
    await copyPack(kept, copy);
    const pack = realPlace(packDir) ?? packDir;
    const found = await differing(one, pack, copy, `what was installed until ${at.slice(0, 10)}`);
    if (found) return found;
  }
  return undefined;
}

/** Returns the version of the last commit in which the skill was another one. Undefined if it is in no repository. */
async function fromGit(
  one: EvaluatedSkill,
  folder: string,
  config: Config,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const { packDir } = one.agent;
  // A git where an agent has worked, or in the project of the call, may be what a boxed command has written.
  const workFolders = [
    ...workFoldersOf(config, []),
    ...projectFoldersAt(config),
    ...[packDir, one.skill.dir],
  ];
  const { env } = commandPrograms({ env: config.env, workFolders });
  const program = findGit({ env, workFolders });
  if (program === undefined) return undefined;
  const pack = packOf(one);
  const dir = realPlace(one.skill.dir) ?? one.skill.dir;
  const git = (args: readonly string[], cwd: string, input = ''): Promise<Buffer> =>
    gitOutput(program, args, { cwd, env: gitEnvironment(env, readsAlone), input, signal });
  const top = await git(['rev-parse', '--show-toplevel'], dir).then(textOf, () => {
    signal.throwIfAborted();
    return undefined;
  });
  const root = top === undefined ? undefined : realPlace(top.trimEnd());
  if (root === undefined || !isInside(root, dir)) return undefined;
  const below = (path: string): string => relative(root, path).split(sep).join('/') || '.';
  const args = ['rev-list', `--max-count=${most.commits}`, '--format=%cs', 'HEAD', '--', below(dir)];
  // A repository without a commit has no HEAD.
  const listed = await git(args, root).then(textOf, () => {
    signal.throwIfAborted();
    return '';
  });
  let last: string | undefined;
  for (const [, commit = '', day = ''] of listed.matchAll(/^commit ([\da-f]+)\n(\S+)$/gm)) {
    const own = entriesOf(await git(['ls-tree', '-r', '-z', '-l', commit, '--', below(dir)], root));
    const key = own
      .filter(({ path }) => !path.startsWith(`${dir === root ? '' : `${below(dir)}/`}evals/`))
      .map(({ id, path }) => `${id} ${path}`)
      .join('\n');
    // Only its evals are others.
    if (key === last) continue;
    last = key;
    const entries =
      pack === dir
        ? own
        : entriesOf(await git(['ls-tree', '-r', '-z', '-l', commit, '--', below(pack)], root));
    const copy = join(folder, commit, basename(pack));
    const contents = await git(['cat-file', '--batch'], root, entries.map(({ id }) => `${id}\n`).join(''));
    await writeEntries(entries, contents, below(pack), copy);
    const found = await differing(one, pack, copy, `commit ${commit.slice(0, 8)} of ${day}`);
    if (found) return found;
  }
  return undefined;
}

const textOf = (bytes: Buffer): string => bytes.toString('utf8');

interface TreeEntry {
  mode: string;
  id: string;
  size: number;
  path: string;
}

/** Returns the files of a tree. Throws TelosError `config` for one that is too large, or that cannot be written as it is. */
function entriesOf(listed: Buffer): TreeEntry[] {
  const entries = textOf(listed)
    .split('\0')
    .flatMap(line => {
      const [, mode, kind, id, size, path] = /^(\d+) (\w+) ([\da-f]+) +(\d+|-)\t(.*)$/s.exec(line) ?? [];
      if (mode === undefined || id === undefined || path === undefined || kind !== 'blob') return [];
      return [{ mode, id, size: Number(size), path }];
    });
  if (entries.length > most.files || entries.reduce((sum, { size }) => sum + size, 0) > most.bytes)
    throw new TelosError(
      'config',
      'The earlier version is larger than a pack may be. Name a folder instead.',
    );
  return entries;
}

/** Writes files with the contents that git has given for them, then links, so that nothing is written through one. */
async function writeEntries(
  entries: readonly TreeEntry[],
  contents: Buffer,
  above: string,
  copy: string,
): Promise<void> {
  let at = 0;
  const links: [target: string, path: string][] = [];
  for (const { mode, id, size, path } of entries) {
    const start = contents.indexOf(10, at) + 1;
    if (contents.toString('latin1', at, start) !== `${id} blob ${size}\n`)
      throw new TelosError(
        'config',
        'The repository has not all files of the earlier version. Name a folder instead.',
      );
    at = start + size + 1;
    const inside = above === '.' ? path : path.slice(above.length + 1);
    // Git makes no such names, but someone else's repository may have them.
    const isPlain = inside.split('/').every(part => !['', '.', '..', '.git'].includes(part.toLowerCase()));
    if (!isPlain || /[\\:]/.test(process.platform === 'win32' ? inside : ''))
      throw new TelosError(
        'config',
        'The earlier version has a file name that leads out of it. Name a folder instead.',
      );
    const file = join(copy, inside);
    const bytes = contents.subarray(start, start + size);
    await mkdir(dirname(file), { recursive: true });
    if (mode === '120000') links.push([bytes.toString(), file]);
    else await writeFile(file, bytes, { mode: mode === '100755' ? 0o700 : 0o600 });
  }
  for (const [target, file] of links) await symlink(target, file);
}

/** Returns what git says. Throws TelosError `config` if it fails, and the abort reason on abort. */
async function gitOutput(program: string, args: readonly string[], how: GitRun): Promise<Buffer> {
  const called = runGit(program, [...gitSettings('safe.bareRepository=explicit'), ...args], how);
  const { code, stdout } = await called.catch(() => ({ code: null, stdout: Buffer.alloc(0) }));
  how.signal?.throwIfAborted();
  if (code === 0) return stdout;
  throw new TelosError(
    'config',
    `git ${args[0]} failed in ${how.cwd}, so no earlier version was found. Name a folder instead.`,
  );
}
