/** Fetches what a source leads to into a folder of its own, and makes the folder of one pack from it. */

import { existsSync, lstatSync } from 'node:fs';
import { cp, lstat, mkdir, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isInside, realIfThere } from '@telos/engine/files';
import type { ServerParts } from '@telos/engine/run';
import { packNameProblem, type Resolved } from '@telos/engine/skills';
import { sentence } from '@telos/protocol/text';
import type { Fetched, Found } from './fetched.ts';
import { chosen, type FoundPacks, findPacks } from './findPacks.ts';
import type { Candidate } from './marketplace.ts';
import { type Reach, type Source, type SourceProgress, sourceText } from './sourceText.ts';

export interface FetchOptions {
  signal?: AbortSignal;
  progress?: (event: SourceProgress) => void;
  /** The source comes from a link or a file of someone else: nothing on this machine or its network is fetched for it. */
  isForeign?: boolean;
  /** Returns the agents with their MCP servers, and how to sign in there. Without it nobody is signed in. */
  servers?: () => Promise<ServerParts>;
}

/** Addresses that the person has set may be on this machine. */
const baseVariables = ['CLAWHUB_REGISTRY', 'TELOS_GITHUB_API_URL', 'TELOS_GITHUB_DOWNLOAD_URL'];

/** Returns what fetching `source` may reach. Reads the person's `.npmrc` only for a package of npm. */
export async function reachFor(
  source: Source | undefined,
  config: Config,
  { signal = new AbortController().signal, progress, isForeign, servers }: FetchOptions,
): Promise<Reach> {
  const { env, home } = config;
  const own = baseVariables.map(name => env[name] ?? '');
  if (!isForeign && (source?.kind === 'web' || source?.kind === 'git')) own.push(source.url);
  const npm = source?.kind === 'npm' ? (await import('./npm.ts')).npmOrigins({ env, home }) : [];
  const origins = own.filter(address => URL.canParse(address)).map(address => new URL(address).origin);
  // `git@host:path` has no origin, and names its host as exactly.
  if (!isForeign && source?.kind === 'git') origins.push(source.url);
  return {
    signal,
    origins: new Set([...origins.filter(origin => origin !== 'null'), ...npm]),
    env,
    home,
    progress,
    kept: new Map(),
    ...(!isForeign && { servers: servers ?? (() => serversOf(config)) }),
  };
}

const serversOf = async (config: Config): Promise<ServerParts> =>
  (await import('@telos/engine/telos')).Telos.open(config).serverParts();

/** Returns what the source leads to now. Throws TelosError `pack`, or UnclearSource if it has to be said more exactly. */
export async function resolveSource(source: Source, reach: Reach): Promise<Found> {
  reach.progress?.({ kind: 'resolving', source: sourceText(source) });
  switch (source.kind) {
    case 'github':
      return (await import('./github.ts')).github.resolve(source, reach);
    case 'git':
      return (await import('./gitSource.ts')).git.resolve(source, reach);
    case 'npm':
      return (await import('./npm.ts')).npm.resolve(source, reach);
    case 'clawhub':
      return (await import('./clawhub.ts')).clawhub.resolve(source, reach);
    case 'web':
      return (await import('./web.ts')).web.resolve(source, reach);
    case 'mcp':
      return (await import('./mcpServer.ts')).mcpServer.resolve(source, reach);
    case 'folder':
      return ofFolder(source.path);
  }
}

async function ofFolder(given: string): Promise<Found> {
  const path = await realpath(given).catch(() => undefined);
  if (path === undefined || !(await stat(path)).isDirectory()) {
    const [, repository] = /(?:^|\/)([\w-]+\/[\w.-]+)$/.exec(given) ?? [];
    const other =
      repository === undefined ? [] : [sentence('For a repository of GitHub: {0}', `github:${repository}`)];
    throw new TelosError('pack', [
      sentence('The folder {0} was not found.', given),
      sentence('Nothing was installed.'),
      ...other,
    ]);
  }
  return {
    resolved: { kind: 'folder', path },
    from: path,
    version: '',
    name: path.split(/[/\\]/).at(-1) || 'pack',
  };
}

/** Fetches exactly what was resolved, now or in a lock file, into an empty folder. Throws TelosError `pack`. */
export async function fetchResolved(
  resolved: Exclude<Resolved, { kind: 'folder' }>,
  root: string,
  reach: Reach,
): Promise<Fetched> {
  switch (resolved.kind) {
    case 'github':
      return (await import('./github.ts')).github.fetch(resolved, root, reach);
    case 'git':
      return (await import('./gitSource.ts')).git.fetch(resolved, root, reach);
    case 'npm':
      return (await import('./npm.ts')).npm.fetch(resolved, root, reach);
    case 'clawhub':
      return (await import('./clawhub.ts')).clawhub.fetch(resolved, root, reach);
    case 'mcp':
      return (await import('./mcpServer.ts')).mcpServer.fetch(resolved, root, reach);
    case 'well-known':
    case 'url':
      return (await import('./web.ts')).web.fetch(resolved, root, reach);
  }
}

/** A tree of files, and the one pack of it that is meant. */
export interface FetchedPack extends Fetched {
  found: Found;
  /** Folder of the tree. Absolute. */
  root: string;
  candidate: Candidate;
  /** What decided which pack it is, in words. */
  way: string;
}

/** A tree of files, and the packs that were found in it. */
export interface FetchedTree extends Fetched {
  found: Found;
  /** Folder of the tree. Absolute. */
  root: string;
  packs: FoundPacks;
}

/**
 * Fetches the source into `root`, an empty folder, and finds its packs. A folder of this machine is read where it stands. Throws
 * TelosError `pack`, or UnclearSource if the source has to be said more exactly.
 */
export async function fetchTree(source: Source, root: string, reach: Reach): Promise<FetchedTree> {
  const found = await resolveSource(source, reach);
  const { resolved } = found;
  const fetched = resolved.kind === 'folder' ? { leftOut: [] } : await fetchResolved(resolved, root, reach);
  const place = resolved.kind === 'folder' ? resolved.path : root;
  const path = await startOf(place, resolved);
  const isAlone = resolved.kind === 'url' && /marketplace\.json$/.test(new URL(resolved.url).pathname);
  return { ...fetched, found, root: place, packs: await findPacks(place, path, found.name, isAlone) };
}

/** Fetches the source as `fetchTree` does, and takes its pack. Also throws UnclearSource if it holds several packs. */
export async function fetchPack(
  source: Source,
  root: string,
  reach: Reach,
  isInner = false,
): Promise<FetchedPack> {
  const { packs, ...tree } = await fetchTree(source, root, reach);
  // A skill of an index has been chosen by its name already.
  const name = tree.found.resolved.kind === 'well-known' ? undefined : source.name;
  const candidate = chosen(packs, name, tree.root, other => sourceText({ ...source, name: other }));
  if (candidate.problem)
    throw new TelosError('pack', `'${candidate.name}' ${candidate.problem} Nothing was installed.`);
  if (candidate.elsewhere) return fromElsewhere(candidate, candidate.elsewhere.source, root, reach, isInner);
  return { ...tree, candidate, way: packs.way };
}

/** A catalogue may lead to one other place, and not from there to a third. */
async function fromElsewhere(
  candidate: Candidate,
  source: Source,
  root: string,
  reach: Reach,
  isInner: boolean,
): Promise<FetchedPack> {
  const text = sourceText(source);
  if (isInner)
    throw new TelosError('pack', [
      sentence("'{0}' leads on to {1}, which is one step too many.", candidate.name, text),
      sentence('Nothing was installed.'),
    ]);
  const inner = await fetchPack(
    source,
    join(root, '..', 'elsewhere'),
    { ...reach, origins: ownOrigins(reach) },
    true,
  );
  const commit = 'commit' in inner.found.resolved ? inner.found.resolved.commit : undefined;
  const { sha } = candidate.elsewhere ?? {};
  if (sha !== undefined && sha !== commit)
    throw new TelosError('pack', [
      sentence(
        "'{0}' is {1} at {2}, but its catalogue promises {3}.",
        candidate.name,
        String(commit),
        text,
        sha,
      ),
      sentence('Nothing was installed.'),
    ]);
  return {
    ...inner,
    candidate: {
      ...inner.candidate,
      name: candidate.name,
      ...(candidate.servers && { servers: candidate.servers }),
    },
    way: `its catalogue, which leads to ${text}`,
  };
}

/** The author of a catalogue names no addresses for the person. */
const ownOrigins = ({ env }: Reach): ReadonlySet<string> =>
  new Set(
    baseVariables
      .map(name => env[name] ?? '')
      .filter(one => URL.canParse(one))
      .map(address => new URL(address).origin),
  );

/** Returns the folder to start at. Archives often hold everything in one folder. */
async function startOf(root: string, resolved: Resolved): Promise<string> {
  if ('path' in resolved && resolved.kind !== 'folder' && resolved.path) return resolved.path;
  if (resolved.kind !== 'url' && resolved.kind !== 'well-known') return '';
  const entries = await readdir(root, { withFileTypes: true });
  return entries.length === 1 && entries[0]!.isDirectory() ? entries[0]!.name : '';
}

/** Returns where the pack of a tree is, to find it again without looking. */
export function placed(resolved: Resolved, { path }: Pick<Candidate, 'path'>): Resolved {
  return resolved.kind === 'folder'
    ? { ...resolved, path: join(resolved.path, path) }
    : { ...resolved, path };
}

/**
 * Makes the folder of a pack below `parent`, from a folder of the tree or from some of its skills, and returns its path. A folder
 * that is a pack as it is stays where it stands if it has that name already. Pipes and the like are left out, and named in `leftOut`.
 */
export async function packFolder(
  root: string,
  { path, skills }: Pick<Candidate, 'path' | 'skills'>,
  name: string,
  parent: string,
  leftOut: string[] = [],
): Promise<string> {
  const filter = (from: string): boolean => {
    if (!isCopied(from)) return false;
    const isSpecial = isSpecialFile(from);
    if (isSpecial) leftOut.push(relative(root, from).split(sep).join('/'));
    return !isSpecial;
  };
  const source = join(root, path);
  const target = join(parent, name);
  await mkdir(parent, { recursive: true });
  if (!skills) {
    await cp(source, target, { recursive: true, verbatimSymlinks: true, filter });
    await followLinks(root, source, target);
    return target;
  }
  for (const folder of skills) {
    const place = freePlace(join(target, 'skills'), folder);
    await refuseSkill(join(source, folder), folder);
    await mkdir(dirname(place), { recursive: true });
    await cp(join(source, folder), place, {
      recursive: true,
      verbatimSymlinks: true,
      errorOnExist: true,
      force: false,
      filter,
    });
    await followLinks(root, join(source, folder), place);
  }
  return target;
}

/** Whether a folder of a tree has links to what is beside it in that tree. */
export async function hasLinksAround(root: string, folder: string): Promise<boolean> {
  if (folder === root) return false;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const real = entry.isSymbolicLink() ? realIfThere(path) : undefined;
    if (real !== undefined && isInside(root, real) && !isInside(folder, real)) return true;
    if (entry.isDirectory() && isCopied(path) && (await hasLinksAround(root, path))) return true;
  }
  return false;
}

/** How deep links may lead to links. */
const deepestLink = 5;

/** Puts what the links of a folder lead to in their place in its copy, if that is in the same tree and not around them. */
async function followLinks(root: string, source: string, copy: string, depth = 0): Promise<void> {
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(copy, entry.name)];
    if (entry.isDirectory() && isCopied(from)) await followLinks(root, from, to, depth);
    if (!entry.isSymbolicLink()) continue;
    const real = realIfThere(from);
    const isInTree = real !== undefined && isInside(root, real) && !isInside(real, from);
    if (!isInTree || depth >= deepestLink || !existsSync(real)) continue;
    await rm(to);
    const filter = (path: string): boolean => isCopied(path) && !isSpecialFile(path);
    await cp(real, to, { recursive: true, verbatimSymlinks: true, filter });
    if ((await stat(real)).isDirectory()) await followLinks(root, real, to, depth + 1);
  }
}

/** Returns the folder for a skill: its name, with those of the folders around it where another has the name. */
function freePlace(parent: string, folder: string): string {
  const parts = folder.split('/').filter(part => part !== '' && !part.startsWith('.'));
  for (let count = 1; count < parts.length; count++) {
    const place = join(parent, parts.slice(-count).join('-'));
    if (!existsSync(place)) return place;
  }
  return join(parent, parts.join('-') || folder);
}

/** Throws TelosError `pack` for a folder that is not there. */
async function refuseSkill(path: string, folder: string): Promise<void> {
  const isFolder = await lstat(path).then(
    stats => stats.isDirectory(),
    () => false,
  );
  if (!isFolder)
    throw new TelosError('pack', [
      sentence('It names the skill {0}, which its source does not have.', JSON.stringify(folder)),
      sentence('Nothing was installed.'),
    ]);
}

const isCopied = (path: string): boolean => !/[/\\]\.git$/.test(path);

/** A pipe, a socket or a device, which no copy can have. */
function isSpecialFile(path: string): boolean {
  const stats = lstatSync(path);
  return !stats.isFile() && !stats.isDirectory() && !stats.isSymbolicLink();
}

/** Returns a name that a pack may have: the given one, or one with what is around it. */
export function usableName(name: string, { resolved }: Pick<Found, 'resolved'>): string {
  const owner =
    resolved.kind === 'github' || resolved.kind === 'git'
      ? /[:/]([\w.-]+)\/[\w.-]+?\/?$/.exec(resolved.url)?.[1]
      : undefined;
  const candidates = [name, ...(owner === undefined ? [] : [`${owner}-${name.replace(/^[.-]+/, '')}`])];
  return candidates.find(candidate => packNameProblem(candidate) === undefined) ?? name;
}

/** Calls `use` with a new folder that only this person can read, and removes it. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'telos-source-')));
  await mkdir(join(path, 'tree'));
  await mkdir(join(path, 'elsewhere'));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 2 }) };
}
