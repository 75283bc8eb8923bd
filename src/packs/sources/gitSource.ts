/**
 * Fetches a commit with the person's own git and reads its files from the objects. Nothing is ever checked out, so no hook, filter,
 * submodule or link of the repository comes to life.
 */

import { mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { projectFoldersAt, workFoldersOf } from '@telos/engine/skills';
import {
  addressKind,
  commandPrograms,
  findGit,
  gitSettings,
  hostKind,
  isNeverReached,
  type ProgramPlaces,
  resolveName,
  runGit,
  serverEnvironment,
} from '@telos/engine/tools';
import { beginningOf, sentence } from '@telos/protocol/text';
import type { Resolver } from './fetched.ts';
import { isCommit } from './github.ts';
import { parseSource, type Reach } from './sourceText.ts';
import { repositoryLimits, TreeWriter, treeLimits } from './treeWriter.ts';

const neutral = gitSettings(
  ...['core.symlinks=false', 'protocol.ext.allow=never', 'protocol.file.allow=never'],
  ...['http.followRedirects=false', 'fetch.writeCommitGraph=false', 'core.pager=cat'],
  'remote.origin.promisor=false',
);

/** Most packed bytes that a server may send; 100 MiB of files are taken. */
const packedLimit = 256 * 1024 * 1024;

export const git: Resolver<'git', 'git'> = {
  async resolve({ url, ref = '', path }, reach) {
    const commit = isCommit(ref) ? ref : await tipOf(url, ref, reach);
    const short = commit.slice(0, 7);
    const [, host = '', place = ''] =
      /^(?:\w+:\/\/)?(?:[\w-]+@)?([^/:]+(?::\d+)?)[/:](.+?)(?:\.git)?\/?$/.exec(url) ?? [];
    const name = place.split('/').at(-1) || host;
    const from = `${host}/${place} at ${short}${ref === '' || ref === commit ? '' : `, ${ref}`}`;
    return { resolved: { kind: 'git', url, ref, commit, path }, from, version: short, name };
  },

  async fetch({ url, commit }, root, reach) {
    checkAddress(url, commit);
    const repository = await realpath(await mkdtemp(join(tmpdir(), 'telos-git-')));
    try {
      await run(['init', '--bare', '--quiet', '--template=', repository], repository, reach);
      await fetchCommit(url, commit, repository, reach);
      return { leftOut: await writeTree(commit, url, repository, root, reach) };
    } finally {
      await rm(repository, { recursive: true, force: true });
    }
  },
};

/** Returns the commit of a branch or tag, or of what the server offers first. */
async function tipOf(url: string, ref: string, reach: Reach): Promise<string> {
  checkAddress(url, ref);
  const wanted = ref === '' ? ['HEAD'] : [`refs/tags/${ref}^{}`, `refs/tags/${ref}`, `refs/heads/${ref}`];
  const folder = tmpdir();
  const listed = await run(
    ['ls-remote', '--quiet', '--', ...(await reachable(url, reach)), ...wanted],
    folder,
    reach,
  );
  const found = new Map(
    listed
      .toString('utf8')
      .split('\n')
      .map(line => line.split('\t').reverse() as [string, string]),
  );
  const commit = wanted.map(name => found.get(name)).find(Boolean);
  if (commit && isCommit(commit)) return commit;
  const why =
    ref === ''
      ? sentence('{0} has no commit yet.', url)
      : sentence("{0} has no branch or tag '{1}'.", url, ref);
  throw new TelosError('pack', [why, sentence('Nothing was installed.')]);
}

/** Some servers hand out only the tips of branches. Then all of them are fetched. */
async function fetchCommit(url: string, commit: string, repository: string, reach: Reach): Promise<void> {
  const address = await reachable(url, reach);
  const call = ['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head'];
  try {
    await run([...call, '--depth', '1', '--', ...address, commit], repository, reach);
  } catch (error) {
    reach.signal.throwIfAborted();
    const all = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];
    await run([...call, '--', ...address, ...all], repository, reach).catch(() => Promise.reject(error));
    const kind = await run(['cat-file', '-t', commit], repository, reach).catch(() => Buffer.alloc(0));
    if (kind.toString().trim() !== 'commit')
      throw new TelosError('pack', [
        sentence('{0} has no commit {1} any more.', url, commit),
        sentence('Nothing was installed.'),
      ]);
  }
}

interface GitEntry {
  mode: string;
  hash: string;
  size: number;
  path: string;
}

async function writeTree(
  commit: string,
  url: string,
  repository: string,
  root: string,
  reach: Reach,
): Promise<string[]> {
  const writer = new TreeWriter(root, url, 0, repositoryLimits);
  const listed = await run(['ls-tree', '-r', '-z', '-l', '--full-tree', commit], repository, reach);
  const entries = listed
    .toString('utf8')
    .split('\0')
    .filter(Boolean)
    .map(line => entryOf(line, writer));
  const files: (GitEntry & { place: string })[] = [];
  const links: GitEntry[] = [];
  for (const entry of entries) {
    if (entry.mode === '120000') links.push(entry);
    else if (entry.mode === '160000') writer.leftOut.push(`${entry.path}/`);
    else {
      const place = writer.admit({ path: entry.path, kind: 'file' }, entry.size);
      if (place !== undefined) files.push({ ...entry, place });
    }
  }
  const contents = await blobs([...links, ...files], repository, reach);
  for (const [index, { path }] of links.entries())
    writer.admit({ path, kind: 'link', target: contents[index]!.toString('utf8') }, 0);
  for (const [index, { place, mode }] of files.entries())
    await writer.write(place, contents[links.length + index]!, mode === '100755');
  writer.finish();
  return writer.leftOut;
}

function entryOf(line: string, writer: TreeWriter): GitEntry {
  const [, mode = '', hash = '', size = '', path = ''] =
    /^(\d{6}) \w+ ([\da-f]{40}) +(\d+|-)\t([\s\S]+)$/.exec(line) ?? [];
  if (path === '') throw writer.refused(beginningOf(line, 80), 'cannot be read');
  if (mode === '120000' && Number(size) > treeLimits.path)
    throw writer.refused(path, 'is a link that is too long');
  return { mode, hash, size: Number(size) || 0, path };
}

/** Returns the contents in the same order, read by one process. */
async function blobs(entries: readonly GitEntry[], repository: string, reach: Reach): Promise<Buffer[]> {
  if (entries.length === 0) return [];
  const asked = `${entries.map(({ hash }) => hash).join('\n')}\n`;
  const output = await run(['cat-file', '--batch', '--buffer'], repository, reach, asked);
  const found: Buffer[] = [];
  let at = 0;
  for (const { hash, size } of entries) {
    const header = `${hash} blob ${size}\n`;
    if (output.toString('latin1', at, at + header.length) !== header)
      throw new TelosError('pack', [
        sentence('git cannot read {0}.', hash),
        sentence('Nothing was installed.'),
      ]);
    at += header.length;
    found.push(output.subarray(at, at + size));
    at += size + 1;
  }
  return found;
}

/** A lock file may have been written by anyone, so its addresses are read like typed ones. */
function checkAddress(url: string, ref: string): void {
  parseSource(`${/^[\w-]+@/.test(url) ? '' : 'git+'}${url}${ref === '' ? '' : `@${ref}`}`, {
    cwd: '/',
    home: '/',
  });
}

/**
 * Returns the address as arguments. Throws TelosError `pack` for an address that is never reached, one on this machine or its
 * network that no one named, and plain http but to this machine. git looks the name up again, which nothing here can prevent.
 */
async function reachable(url: string, { origins }: Reach): Promise<string[]> {
  const scheme = /^(\w+):\/\//.exec(url)?.[1];
  const host = /^(?:\w+:\/\/)?(?:[\w-]+@)?(\[[^\]]+\]|[^/:]+)/.exec(url)?.[1] ?? '';
  const isNamed = origins.has(url) || (URL.canParse(url) && origins.has(new URL(url).origin));
  const addresses = await resolveName(host.replace(/^\[|\]$/g, '')).catch(() => []);
  const kinds = [hostKind(host), ...addresses.map(({ address }) => addressKind(address))];
  const never = kinds.find(kind => isNeverReached(kind));
  const refused = never ?? (isNamed ? undefined : kinds.find(kind => kind !== 'public'));
  if (refused)
    throw new TelosError('pack', [
      sentence('{0} leads to a {1} address, which is not fetched.', url, refused),
      sentence('Nothing was installed.'),
    ]);
  if (scheme === 'http' && !kinds.every(kind => kind === 'loopback'))
    throw new TelosError('pack', [
      sentence('{0} is not https, so others could change what comes.', url),
      sentence('Nothing was installed.'),
    ]);
  return [url];
}

/**
 * Returns where the person's git and npm are found: in no folder in which agents work or have worked, and not in the project of the call.
 * A program there may be what a boxed command has written.
 */
export function programPlaces({ env, home }: Pick<Reach, 'env' | 'home'>): ProgramPlaces {
  const config = loadConfig({ env, home });
  const workFolders = [...workFoldersOf(config, []), ...projectFoldersAt(config)];
  return { env: commandPrograms({ env, workFolders }).env, workFolders };
}

const noGit = (cause?: unknown): TelosError =>
  new TelosError(
    'pack',
    [
      sentence('git is not installed or not on the PATH.'),
      sentence('Install git, or use a github: source, which needs none.'),
    ],
    { cause },
  );

/** Returns the standard output. Throws TelosError `pack` with git's own words if it fails, and the abort reason on abort. */
async function run(args: readonly string[], folder: string, reach: Reach, input = ''): Promise<Buffer> {
  const places = programPlaces(reach);
  const program = findGit(places);
  if (program === undefined) throw noGit();
  const full = new AbortController();
  const watch = setInterval(() => void sizeOf(folder).then(size => size > packedLimit && full.abort()), 500);
  try {
    const { code, stdout, stderr } = await runGit(program, [...neutral, ...args], {
      cwd: folder,
      env: serverEnvironment(places.env, { GIT_ALLOW_PROTOCOL: 'https:http:ssh:git' }),
      input,
      signal: AbortSignal.any([reach.signal, full.signal]),
      mostOutput: 2 * treeLimits.bytes,
    });
    reach.signal.throwIfAborted();
    if (code === 0) return stdout;
    throw failure(args, code, stderr);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw noGit(error);
  } finally {
    clearInterval(watch);
  }
}

function failure(args: readonly string[], code: number | null, words: string): TelosError {
  const address =
    args.find(arg => /:/.test(arg) && !arg.startsWith('+') && !arg.startsWith('-')) ?? String(args[0]);
  if (code === null)
    return new TelosError('pack', [
      sentence('git was ended while it read {0}: it took too long or sent too much.', address),
      sentence('Nothing was installed.'),
    ]);
  const said =
    words
      .trim()
      .split('\n')
      .filter(line => /^(fatal|error|remote|ERROR|ssh):?/.test(line))
      .at(-1) ?? words.trim().split('\n').at(-1);
  const isAway =
    /could(?:n't| not) (?:connect|resolve)|failed to connect|connection refused|timed out|unreachable/i.test(
      words,
    );
  return new TelosError('pack', [
    sentence(
      'git cannot read {0}: {1}.',
      address,
      (said || `it ended with ${code}`).replace(/^(fatal|error): /, ''),
    ),
    ...(isAway ? [sentence('Check the address and the network, then try again.')] : []),
    sentence('Nothing was installed.'),
  ]);
}

async function sizeOf(folder: string): Promise<number> {
  if (folder === tmpdir()) return 0;
  const names = await readdir(join(folder, 'objects', 'pack')).catch(() => []);
  const sizes = await Promise.all(
    names.map(name =>
      stat(join(folder, 'objects', 'pack', name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
