/** The box of one conversation: encloses its commands, and keeps what they share. */
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { grouped } from '../../protocol/text.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { realPlace } from '../files/paths.ts';
import type { AskHost, CommandBox, CommandStart, EnclosedCommand, RunFolders } from '../tools/tool.ts';
import { readableFolders } from '../tools/tool.ts';
import { inBubblewrap, type Masks } from './bubblewrap.ts';
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
  masks: Masks;
  lasting: readonly Place[];
  /** The working folder, then the others that the command can read. */
  names: readonly FolderNames[];
}

function prepare({ config, folders, conversation }: BoxOptions, { env }: CommandStart): Prepared {
  const root = join(config.dataDir, 'box');
  const own = join(root, safeName(conversation));
  const [ownHome, temporary] = [join(own, 'home'), join(own, 'tmp')];
  makeOwnFolders(config.dataDir, root, own, ownHome, temporary);
  utimesSync(own, new Date(), new Date());
  void removeOld(root, own);
  const home = realPlace(config.home) ?? config.home;
  const [workingDir = folders.workingDir] = realFoldersOf([folders.workingDir]);
  const readable = realFoldersOf([...readableFolders(folders), folders.commandDir]).filter(
    folder => folder !== workingDir && folder !== home,
  );
  const places: BoxPlaces = {
    ...{ home, ownHome: realPlace(ownHome)!, temporary: realPlace(temporary)!, workingDir, readable },
    protectedDirs: [config.configDir, config.dataDir].map(folder => realPlace(folder) ?? folder),
    programFolders: (env['PATH'] ?? '').split(delimiter).filter(Boolean),
  };
  return {
    places,
    masks: masksIn(root),
    lasting: lastingPlaces(places),
    names: [workingDir, ...readable].map(folder => new FolderNames(folder)),
  };
}

async function enclose(
  { finding, network }: BoxOptions,
  { places, masks, lasting, names }: Prepared,
  start: CommandStart,
  ask: AskHost | undefined,
): Promise<EnclosedCommand> {
  if (!lstatSync(places.workingDir, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError('config', `The working folder ${places.workingDir} was removed. Nothing was run.`);
  const marked = await namesIn(names);
  for (const { path, kind } of marked) if (kind === 'repository') makeHooks(path);
  const enclosed = { ...start, env: environmentIn(start.env, ownFolders(finding, places)) };
  const opened = await network?.open(enclosed, ask);
  try {
    const view = viewOf([...lasting, ...(opened?.places ?? [])], places, marked);
    const made =
      finding.kind === 'bubblewrap'
        ? inBubblewrap(finding, view, masks, opened?.start ?? enclosed)
        : inSeatbelt(finding.program, view, opened?.start ?? enclosed);
    const { close, ...process } = made;
    const end = async () => {
      close();
      return { notes: (await opened?.end()) ?? [] };
    };
    return { ...process, end };
  } catch (error) {
    await opened?.end();
    throw error;
  }
}

/** Returns the marked names of all folders. Throws TelosError `config` if they are more than can be closed. */
async function namesIn(names: readonly FolderNames[]): Promise<readonly MarkedName[]> {
  const marked: MarkedName[] = [];
  for (const each of names) {
    const found = await each.look();
    if (!found)
      throw new TelosError(
        'config',
        `${each.root} has more than ${grouped(mostNames)} files, too many to look for secrets among them. Work in a folder below it.`,
      );
    marked.push(...found);
  }
  const secrets = marked.filter(({ kind }) => kind === 'secret').length;
  if (secrets <= mostSecrets) return marked;
  throw new TelosError(
    'config',
    `There are ${grouped(secrets)} files whose names say that they hold secrets; at most ${grouped(mostSecrets)} can be hidden. Work in a folder below.`,
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

/** Returns the file and the folder that stand for those that cannot be read. */
function masksIn(root: string): Masks {
  const [file, folder] = [join(root, 'hidden-file'), join(root, 'hidden-folder')];
  if (!lstatSync(file, { throwIfNoEntry: false })) writeFileSync(file, '', { mode: 0o000, flag: 'wx' });
  if (!lstatSync(folder, { throwIfNoEntry: false })) mkdirSync(folder, { mode: 0o000 });
  chmodSync(file, 0o000);
  chmodSync(folder, 0o000);
  return { file, folder };
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
    .filter(path => path !== own && basename(path) !== 'hidden-folder' && isOld(path));
  for (const path of old) await rm(path, { recursive: true, force: true }).catch(() => undefined);
}
