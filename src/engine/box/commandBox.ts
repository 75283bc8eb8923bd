/** The box of one conversation: encloses its commands, and keeps what they share. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  type FSWatcher,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { grouped } from '../../protocol/text.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { isInside, realPlace } from '../files/paths.ts';
import type { AskHost, CommandBox, CommandStart, EnclosedCommand, RunFolders } from '../tools/tool.ts';
import { readableFolders } from '../tools/tool.ts';
import { inBubblewrap } from './bubblewrap.ts';
import type { BoxFinding } from './findBox.ts';
import { FolderNames, type MarkedName, mostNames } from './folderNames.ts';
import { inSeatbelt } from './seatbelt.ts';
import { type BoxPlaces, lastingPlaces, type Place, realFoldersOf, viewOf } from './view.ts';

/** Leads a command to the network, as far as it may go there. */
export interface BoxNetwork {
  /** Returns what to start in place of `start`, and the places that it needs in the box. `end` returns what was refused. */
  open(
    start: CommandStart,
    ask: AskHost | undefined,
  ): Promise<{ start: CommandStart; places: readonly Place[]; end(): Promise<readonly string[]> }>;
}

export interface BoxOptions {
  finding: Extract<BoxFinding, { works: true }>;
  config: Pick<Config, 'home' | 'dataDir' | 'configDir'>;
  folders: RunFolders;
  /** Names the conversation. Its commands share a home folder, a folder of temporary files, and caches. */
  conversation: string;
  /** Files that are not hidden although their names say that they hold secrets: the person has put them there for the commands. */
  shown?: readonly string[];
  /** See `BoxPlaces`. */
  keepsRepository?: boolean;
  /** Without it, a command reaches nothing. */
  network?: BoxNetwork;
}

/** In milliseconds. What a conversation has left is removed when it was not used for so long. */
const kept = 7 * 24 * 60 * 60 * 1000;
/** Secrets that each need a place of their own. Making a box with more of them takes seconds. */
const mostSecrets = 1000;

/** Returns the box. Nothing is made before its first command. */
export function commandBox(options: BoxOptions): CommandBox {
  let prepared: Prepared | undefined;
  return {
    async enclose(start, ask) {
      prepared ??= prepare(options, start);
      return enclose(options, prepared, start, ask);
    },
  };
}

interface Prepared {
  places: BoxPlaces;
  mask: string;
  lasting: readonly Place[];
  /** The working folder, then the others that the command can read. */
  names: readonly FolderNames[];
}

function prepare(
  { config, folders, conversation, keepsRepository = false }: BoxOptions,
  { env }: CommandStart,
): Prepared {
  const root = join(config.dataDir, 'box');
  const own = join(root, safeName(conversation));
  const [ownHome, temporary] = [join(own, 'home'), join(own, 'tmp')];
  makeOwnFolders(config.dataDir, root, own, ownHome, temporary);
  utimesSync(own, new Date(), new Date());
  void removeOld(root, own).catch(() => undefined);
  const home = realPlace(config.home) ?? config.home;
  const [workingDir = folders.workingDir] = realFoldersOf([folders.workingDir]);
  const readable = realFoldersOf([...readableFolders(folders), folders.commandDir]).filter(
    folder => folder !== workingDir && folder !== home,
  );
  const places: BoxPlaces = {
    ...{ home, ownHome: realPlace(ownHome)!, temporary: realPlace(temporary)!, workingDir, readable },
    protectedDirs: [config.configDir, config.dataDir].map(folder => realPlace(folder) ?? folder),
    keepsRepository,
    programFolders: (env['PATH'] ?? '').split(delimiter).filter(Boolean),
  };
  return {
    places,
    mask: maskIn(root),
    lasting: lastingPlaces(places),
    names: [workingDir, ...readable].map(folder => new FolderNames(folder)),
  };
}

async function enclose(
  { finding, network, shown = [] }: BoxOptions,
  { places, mask, lasting, names }: Prepared,
  start: CommandStart,
  ask: AskHost | undefined,
): Promise<EnclosedCommand> {
  if (!lstatSync(places.workingDir, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError('config', `The working folder ${places.workingDir} was removed. Nothing was run.`);
  makeOwnFolders(dirname(places.ownHome), places.ownHome, places.temporary);
  const { marked, left } = await namesIn(names);
  const repositories = marked.filter(({ kind }) => kind === 'repository').map(({ path }) => path);
  repositories.forEach(makeHooks);
  const enclosed = { ...start, env: environmentIn(start.env, ownFolders(finding, places)) };
  const opened = await network?.open(enclosed, ask);
  try {
    const seen = lasting.filter(({ path }) => !left.has(path));
    const closed = marked.filter(({ path }) => !shown.includes(path));
    const view = viewOf([...seen, ...(opened?.places ?? [])], places, closed);
    const made =
      finding.kind === 'bubblewrap'
        ? inBubblewrap(finding, view, mask, opened?.start ?? enclosed)
        : inSeatbelt(finding.program, view, opened?.start ?? enclosed);
    const { close, ...process } = made;
    const guards = repositories.filter(path => isInside(places.workingDir, path)).map(guardRepository);
    const end = async () => {
      close();
      const removed = guards.flatMap(guard => guard());
      return { notes: [...removed, ...((await opened?.end()) ?? [])] };
    };
    return { ...process, end };
  } catch (error) {
    await opened?.end();
    throw error;
  }
}

/**
 * Returns the marked names of all folders, and the folders that are too large to be looked through. Throws TelosError `config` if the
 * working folder is one of them, or if more is marked than can be closed.
 */
async function namesIn([work, ...others]: readonly FolderNames[]): Promise<{
  marked: readonly MarkedName[];
  left: ReadonlySet<string>;
}> {
  const marked = [...((await work?.look()) ?? tooLarge(work?.root ?? ''))];
  const left = new Set<string>();
  for (const each of others) {
    const found = await each.look();
    if (found) marked.push(...found);
    else left.add(each.root);
  }
  const secrets = marked.filter(({ kind }) => kind === 'secret').length;
  if (secrets <= mostSecrets) return { marked, left };
  throw new TelosError(
    'config',
    `There are ${grouped(secrets)} files whose names say that they hold secrets; at most ${grouped(mostSecrets)} can be hidden. Work in a folder below.`,
  );
}

function tooLarge(folder: string): never {
  throw new TelosError(
    'config',
    `${folder} has more than ${grouped(mostNames)} files, too many to look for secrets among them. Work in a folder below it.`,
  );
}

/** Makes the folder of hooks in a repository that has none, so that it can be read-only. Git makes it too. */
function makeHooks(repository: string): void {
  try {
    mkdirSync(join(repository, 'hooks'));
  } catch {
    // It is there, or nothing can be made there.
  }
}

/**
 * Watches for the one file with which a command could give a repository other settings without changing one. A program of the person
 * that looks at the repository would obey it while the command still runs, so it is removed at once. Returns what ends the watch, and
 * says what was removed.
 */
function guardRepository(repository: string): () => string[] {
  const file = join(repository, 'commondir');
  if (lstatSync(file, { throwIfNoEntry: false })) return () => [];
  let count = 0;
  const remove = (): void => {
    if (!lstatSync(file, { throwIfNoEntry: false })) return;
    count++;
    rmSync(file, { recursive: true, force: true });
  };
  const watcher = watched(repository, name => name === 'commondir' && remove());
  return () => {
    watcher?.close();
    remove();
    return count === 0 ? [] : [`${file} was removed: with it, Git would take its settings from elsewhere`];
  };
}

function watched(folder: string, onChange: (name: string | null) => void): FSWatcher | undefined {
  try {
    // A folder that goes away has nothing left to guard.
    return watch(folder, (_event, name) => onChange(name)).on('error', () => undefined);
  } catch {
    return undefined;
  }
}

/** Where programs keep what they have fetched and compiled, below the home folder of the box. */
const caches: Readonly<Record<string, string>> = {
  XDG_CACHE_HOME: '.cache',
  npm_config_cache: '.cache/npm',
  YARN_CACHE_FOLDER: '.cache/yarn',
  PIP_CACHE_DIR: '.cache/pip',
  UV_CACHE_DIR: '.cache/uv',
  PYTHONPYCACHEPREFIX: '.cache/python',
  GOCACHE: '.cache/go-build',
  GOMODCACHE: '.cache/go-mod',
  CARGO_HOME: '.cache/cargo',
  GRADLE_USER_HOME: '.cache/gradle',
  DENO_DIR: '.cache/deno',
  BUN_INSTALL_CACHE_DIR: '.cache/bun',
};

/** They lead out of the box, to where nothing is. */
const leadingOut = /^(?:(?:https?|all|no|ftp)_proxy|XDG_RUNTIME_DIR|XDG_STATE_HOME)$/i;

type OwnFolders = Pick<BoxPlaces, 'home' | 'temporary'>;

/** Returns where a command finds the folders that stand in. On macOS nothing is at another path than outside. */
const ownFolders = ({ kind }: BoxOptions['finding'], { home, ownHome, temporary }: BoxPlaces): OwnFolders =>
  kind === 'seatbelt' ? { home: ownHome, temporary } : { home, temporary: '/tmp' };

function environmentIn(
  env: Readonly<Record<string, string>>,
  { home, temporary }: OwnFolders,
): Record<string, string> {
  const others = Object.entries(env).filter(([name]) => !leadingOut.test(name));
  return {
    ...Object.fromEntries(others),
    ...Object.fromEntries(Object.entries(caches).map(([name, path]) => [name, join(home, path)])),
    TMPDIR: temporary,
  };
}

/** Returns a file that nobody may read. */
function maskIn(root: string): string {
  const file = join(root, 'hidden');
  if (!lstatSync(file, { throwIfNoEntry: false })) writeFileSync(file, '', { mode: 0o000, flag: 'wx' });
  chmodSync(file, 0o000);
  return file;
}

/** Returns a name for a folder. A conversation may have been named by somebody else. */
const safeName = (conversation: string): string =>
  /^[\w-]{1,64}$/.test(conversation)
    ? conversation
    : createHash('sha256').update(conversation).digest('hex').slice(0, 32);

async function removeOld(root: string, own: string): Promise<void> {
  const isOld = (path: string): boolean => {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() === true && Date.now() - stats.mtimeMs > kept;
  };
  const old = readdirSync(root)
    .map(name => join(root, name))
    .filter(path => path !== own && isOld(path));
  for (const path of old) await rm(path, { recursive: true, force: true }).catch(() => undefined);
}
