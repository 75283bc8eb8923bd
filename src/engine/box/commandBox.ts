/** The box of one conversation: encloses its commands, and keeps what they share. */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  type FSWatcher,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  statSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { delimiter, dirname, join, relative } from 'node:path';
import { asSaid, grouped, sentence } from '@telos/protocol/text';
import { type Config, telosFolders } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { type HomeOwner, homesIn, standInFolders } from '../files/agentHome.ts';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { isOpenFolder, removeAll } from '../files/closedFolder.ts';
import { layersIn } from '../files/leftLayers.ts';
import {
  describeFileError,
  errorCode,
  fileProblem,
  isInside,
  realPlace,
  repositoryAbove,
} from '../files/paths.ts';
import { secretsIn } from '../redact.ts';
import type {
  AskHost,
  CommandBox,
  CommandLayer,
  CommandStart,
  EnclosedCommand,
  FileMarks,
  RunFolders,
} from '../tools/tool.ts';
import { readableFolders } from '../tools/tool.ts';
import { inBubblewrap } from './bubblewrap.ts';
import type { BoxFinding } from './findBox.ts';
import { FolderNames, type MarkedName, mostNames } from './folderNames.ts';
import { closeIdleSpaces, type Entry, enterSpaces, type KeptSpaces } from './keptSpaces.ts';
import { marksByItself } from './kernelCalls.ts';
import { carriesLayer } from './layer.ts';
import { type MountedLayer, ReadyLayers } from './readyLayer.ts';
import type { RootBase } from './rootBase.ts';
import { inSeatbelt } from './seatbelt.ts';
import { StandInLook } from './standInLook.ts';
import {
  type BoxPlaces,
  basePlaces,
  lastingPlaces,
  layeredViewOf,
  layerRoots,
  type Place,
  realFoldersOf,
  repositoriesOf,
  treeRepository,
  viewOf,
} from './view.ts';

/** Leads a command to the network, as far as it may go there. */
export interface BoxNetwork {
  /**
   * Returns what to start in place of `start` so that its programs find the way, and the places or the port of this machine that they
   * need for it. `spaces` hold the network that it shares with others. `end` returns what was refused. Throws TelosError `config` if there is no way.
   */
  open(
    start: CommandStart,
    ask: AskHost | undefined,
    kind: BoxOptions['finding']['kind'],
    spaces?: Promise<Pick<KeptSpaces, 'listen'> | undefined>,
  ): Promise<{
    start: CommandStart;
    places: readonly Place[];
    port?: number;
    end(): Promise<readonly string[]>;
  }>;
}

export interface BoxOptions {
  finding: Extract<BoxFinding, { works: true }>;
  config: Pick<Config, 'home' | 'env' | 'dataDir' | 'configDir' | 'hiddenDirs'>;
  folders: RunFolders;
  /** Names the conversation. Its commands share a folder of temporary files. */
  conversation: string;
  /** Whose home folder its commands have, with the caches. Without it, they have one of the conversation. */
  owner?: HomeOwner;
  /** Files that are not hidden although their names say that they hold secrets: the person has put them there for the commands. */
  shown?: readonly string[];
  /** See `BoxPlaces`. */
  keepsRepository?: boolean;
  /** See `BoxPlaces`. Absolute. */
  unchanged?: readonly string[];
  /** Without it, a command reaches nothing. */
  network?: BoxNetwork;
  /** Its commands reach the servers of those that run at the same time. */
  sharesNetwork?: boolean;
}

/** In milliseconds. What a conversation has left is removed when it was not used for so long. */
const kept = 7 * 24 * 60 * 60 * 1000;
/** Secrets that each need a place of their own. Making a box with more of them takes seconds. */
const mostSecrets = 1000;

/** Returns the box. Nothing is made before its first command. */
export function commandBox(options: BoxOptions): CommandBox {
  let shared: Prepared | undefined;
  let apart: Prepared | undefined;
  const { finding } = options;
  const layers = new ReadyLayers();
  const carries =
    finding.kind === 'bubblewrap' &&
    finding.features.layers &&
    carriesLayer(options.folders.workingDir, options.config.dataDir);
  return {
    hasLayers: carries,
    rest() {
      layers.close();
      closeIdleSpaces(spacesOf(options));
    },
    async enclose(start, ask, layered = false) {
      shared ??= prepare(options, start);
      const holdsSecrets = secretsIn(start.env).length > 0;
      if (holdsSecrets) apart ??= withOwnHome(options, shared);
      const prepared = holdsSecrets && apart ? apart : shared;
      const isLayered = layered && carries;
      const entering = enter(options, shared, isLayered);
      const leave = (): void => void entering.then(spaces => spaces?.leave()).catch(() => undefined);
      try {
        const { end, ...enclosed } = await enclose(
          options,
          prepared,
          start,
          ask,
          entering,
          isLayered ? layers : undefined,
        );
        return { ...enclosed, end: () => end().finally(leave) };
      } catch (error) {
        leave();
        throw asConfigError(error, options.folders.workingDir);
      }
    },
  };
}

/** What the disk refuses while the box is made is for the person to mend. */
function asConfigError(error: unknown, folder: string): unknown {
  if (error instanceof TelosError || errorCode(error) === undefined) return error;
  const { path = folder } = error as NodeJS.ErrnoException;
  return new TelosError('config', [fileProblem(error, path), sentence('Nothing was run.')]);
}

/** Names the namespaces of a conversation. */
const spacesOf = ({ config, conversation }: BoxOptions): string => `${config.dataDir}\0${conversation}`;

/** Returns the namespaces that a command shares with others, if it does. Made while its folders are looked through. */
async function enter(
  options: BoxOptions,
  { base, mask }: Prepared,
  isLayered: boolean,
): Promise<KeptSpaces | undefined> {
  const { finding, sharesNetwork = false, config } = options;
  if (finding.kind !== 'bubblewrap' || (!sharesNetwork && !isLayered)) return undefined;
  const { perl } = finding.features;
  if (perl === null) return undefined;
  const root = join(config.dataDir, 'box', 'root');
  makeOwnFolders(root);
  const ready = { root: realPlace(root) ?? root, places: base, mask };
  return enterSpaces(spacesOf(options), { bubblewrap: finding.program, perl, base: ready });
}

interface Prepared {
  places: BoxPlaces;
  mask: string;
  lasting: readonly Place[];
  /** Those of them that every command of the conversation sees in the same way. */
  base: readonly Place[];
  /** What was named before of the home and of the temporary files. See `StandInLook`. */
  told: { home: Set<string>; temporary: Set<string> };
  /** The working folder, then the others that the command can read. */
  names: readonly FolderNames[];
}

/** Returns those that are there. Those in the working folder are made, since the command could make what is missing. */
function closedFolders(config: BoxOptions['config'], workingDir: string): string[] {
  const folders = [...(config.hiddenDirs ?? []), ...telosFolders(config)].map(
    folder => realPlace(folder) ?? folder,
  );
  for (const folder of folders)
    if (isInside(workingDir, folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folders.filter(existsSync);
}

function prepare(
  { config, folders, conversation, owner, keepsRepository = false, unchanged = [] }: BoxOptions,
  { env }: CommandStart,
): Prepared {
  const root = join(config.dataDir, 'box');
  const { own, home: ownHome, temporary } = standInFolders(config.dataDir, conversation, owner);
  makeOwnFolders(root, own, ...homeFolders(config.dataDir, ownHome), temporary);
  utimesSync(own, new Date(), new Date());
  void removeOld(root, own).catch(() => undefined);
  const home = realPlace(config.home) ?? config.home;
  const [workingDir = folders.workingDir] = realFoldersOf([folders.workingDir]);
  const around = repositoryAround(workingDir, folders, [home, config.dataDir, config.configDir]);
  const wanted = [...readableFolders(folders), folders.commandDir, ...(around === undefined ? [] : [around])];
  const readable = realFoldersOf(wanted).filter(folder => folder !== workingDir && folder !== home);
  const places: BoxPlaces = {
    home,
    ownHome: realPlace(ownHome)!,
    temporary: realPlace(temporary)!,
    workingDir,
    readable,
    protectedDirs: closedFolders(config, workingDir),
    keepsRepository,
    unchanged: unchanged.map(path => realPlace(path) ?? path),
    ...(around !== undefined && { around }),
    ...(folders.pluginData !== undefined && {
      pluginData: realPlace(folders.pluginData) ?? folders.pluginData,
    }),
    programFolders: (env['PATH'] ?? '').split(delimiter).filter(Boolean),
  };
  const lasting = lastingPlaces(places);
  return {
    places,
    mask: maskIn(root),
    lasting,
    base: basePlaces(lasting, places),
    told: { home: new Set(), temporary: new Set() },
    names: [workingDir, ...readable].map(folder => new FolderNames(folder)),
  };
}

/**
 * Returns the same with a home folder, temporary files and caches of their own, for the commands that get secret variables of a card. What
 * other commands leave in theirs is on no card, and programs load it by themselves.
 */
function withOwnHome({ config, conversation, owner }: BoxOptions, shared: Prepared): Prepared {
  const { own, homeWithSecrets: ownHome } = standInFolders(config.dataDir, conversation, owner);
  const temporary = join(own, 'tmp-with-secrets');
  makeOwnFolders(own, ...homeFolders(config.dataDir, ownHome), temporary);
  const places = { ...shared.places, ownHome: realPlace(ownHome)!, temporary: realPlace(temporary)! };
  const told = { home: new Set<string>(), temporary: new Set<string>() };
  return { ...shared, places, lasting: lastingPlaces(places), told };
}

/**
 * Returns the repository that contains the working folder, if the person's current folder is in it too. Without the rest of it,
 * Git would take every other file for deleted.
 */
function repositoryAround(
  workingDir: string,
  { personDir }: RunFolders,
  closed: readonly string[],
): string | undefined {
  const around = repositoryAbove(workingDir);
  if (around === undefined || personDir === undefined || !isInside(around, realPlace(personDir) ?? personDir))
    return undefined;
  return closed.some(folder => isInside(around, realPlace(folder) ?? folder)) ? undefined : around;
}

/** Returns a home with the folders around it that are Telos's own. */
const homeFolders = (dataDir: string, home: string): string[] => {
  const around = dirname(home);
  return isInside(homesIn(dataDir), around) ? [homesIn(dataDir), around, home] : [around, home];
};

async function enclose(
  { finding, network, owner, config, sharesNetwork = false, shown = [] }: BoxOptions,
  { places: known, mask, lasting, told, names }: Prepared,
  start: CommandStart,
  ask: AskHost | undefined,
  entering: Promise<KeptSpaces | undefined>,
  layers: ReadyLayers | undefined,
): Promise<EnclosedCommand> {
  const { around, ...own } = known;
  if (!lstatSync(known.workingDir, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError('config', [
      sentence('The working folder {0} was removed.', known.workingDir),
      sentence('Nothing was run.'),
    ]);
  makeOwnFolders(dirname(known.ownHome), known.ownHome, known.temporary);
  const atHome = new StandInLook(known.ownHome, told.home);
  const atTemporary = new StandInLook(known.temporary, told.temporary);
  const { marked, left } = await namesIn(names);
  const hadBefore = names[0]?.seen() ?? (() => false);
  const isAround = around !== undefined && !left.has(around) && isOpenRepository(join(around, '.git'));
  const places: BoxPlaces = isAround ? known : own;
  const roots = layerRoots(places);
  const spaces = layers && (await entering);
  const { layer, mounted } = layers && spaces ? takenLayer(layers, config.dataDir, roots, spaces) : noLayer;
  const repositories = layer
    ? []
    : marked.filter(({ kind }) => kind === 'repository').map(({ path }) => path);
  const guarded = [places.workingDir, ...(isAround ? [join(around, '.git')] : [])];
  const ofWorkHere = repositories.filter(path => guarded.some(each => isInside(each, path)));
  const ours = layer ? [] : [...ofWorkHere, ...treeRepository(places)];
  ours.forEach(makeHooks);
  const inside = { ...environmentIn(start.env, ownFolders(finding, places)), ...(layer && acrossMounts) };
  const enclosed = { ...start, env: inside };
  const opened = await network?.open(enclosed, ask, finding.kind, sharesNetwork ? entering : undefined);
  try {
    const seen = lasting.filter(({ path }) => !left.has(path));
    const closed = marked.filter(({ path }) => !shown.includes(path));
    const outside = [...seen, ...(opened?.places ?? [])];
    const view = layer
      ? layeredViewOf(outside, places, closed, layer.mergedAt)
      : viewOf(outside, places, closed);
    await mounted;
    const entered = await enteredBy(entering, sharesNetwork, layer !== undefined);
    const made =
      finding.kind === 'bubblewrap'
        ? inBubblewrap(finding, view, mask, opened?.start ?? enclosed, entered)
        : inSeatbelt(finding.program, view, opened?.start ?? enclosed, opened?.port);
    const { close, ...process } = made;
    const guards = ours.map(guardRepository);
    let wasOver = false;
    const end = async () => {
      wasOver = process.isOver?.() === true;
      close();
      const removed = guards.flatMap(guard => guard());
      const notes = [...removed, ...((await opened?.end()) ?? [])];
      const home = atHome.written(placesBelow(places.home, view));
      const temporary = atTemporary.written(placesBelow('/tmp', view));
      return {
        notes,
        ...(home && { home: { ...home, ...(owner && { agent: owner.name }) } }),
        ...(temporary && { temporary }),
      };
    };
    return {
      ...process,
      end,
      ...(layer && {
        layer: {
          ...layer,
          hadBefore,
          marks: marksFrom(spaces, finding),
          landing() {
            if (!wasOver) layer.unmount();
            layer.landing();
          },
          async drop() {
            layers?.leave(layer);
            if (spaces) layers?.prepare(config.dataDir, roots, spaces);
          },
          ...ofWork(marked, places.workingDir, roots),
        },
      }),
    };
  } catch (error) {
    await opened?.end();
    layer?.removeNow();
    throw error;
  }
}

const noLayer: Partial<MountedLayer> = {};

async function enteredBy(
  entering: Promise<KeptSpaces | undefined>,
  network: boolean,
  mounts: boolean,
): Promise<(Entry & { network: boolean; base: RootBase | undefined }) | undefined> {
  const spaces = await entering;
  return (
    spaces && {
      ...spaces.entry({ network, mounts }),
      network,
      base: mounts ? spaces.base : undefined,
    }
  );
}

/** Returns the paths, relative to the home folder, of places that the box mounts there. */
const placesBelow = (home: string, view: readonly Place[]): string[] =>
  view.flatMap(({ path }) => (path !== home && isInside(home, path) ? [relative(home, path)] : []));

/**
 * Returns the marked names of all folders, and the folders that are too large to be looked through, or closed. Throws TelosError
 * `config` if the working folder is one of them, or if more is marked than can be hidden.
 */
async function namesIn([work, ...others]: readonly FolderNames[]): Promise<{
  marked: readonly MarkedName[];
  left: ReadonlySet<string>;
}> {
  const marked = [...((await work?.look()) ?? tooLarge(work?.root ?? ''))];
  const left = new Set<string>();
  for (const each of others) {
    const found = await each.look().catch(unknownIfClosed);
    if (found) marked.push(...found);
    else left.add(each.root);
  }
  const secrets = marked.filter(({ kind }) => kind === 'secret' || kind === 'closed').length;
  if (secrets <= mostSecrets) return { marked, left };
  throw new TelosError('config', [
    sentence(
      'There are {0} files whose names say that they hold secrets; at most {1} can be hidden.',
      grouped(secrets),
      grouped(mostSecrets),
    ),
    sentence('Work in a folder below.'),
  ]);
}

/** What is in another folder that cannot be listed is not shown to the command. */
function unknownIfClosed(error: unknown): undefined {
  if (!(error instanceof TelosError)) throw error;
}

/** Returns what leads into the working folder: its links with names that others obey, and the repositories whose settings count there. */
function ofWork(
  marked: readonly MarkedName[],
  work: string,
  roots: readonly string[],
): Pick<CommandLayer, 'links' | 'repositories'> {
  const of = (wanted: MarkedName['kind']): string[] =>
    marked.flatMap(({ path, kind }) => (kind === wanted && isInside(work, path) ? [path] : []));
  return { links: of('link'), repositories: repositoriesOf([...of('repository'), ...roots.slice(1)], work) };
}

/** Throws TelosError `config` if no layer can be made over one of the folders. */
function takenLayer(
  layers: ReadyLayers,
  dataDir: string,
  roots: readonly string[],
  spaces: KeptSpaces,
): MountedLayer {
  try {
    return layers.take(dataDir, roots, spaces);
  } catch (error) {
    if (errorCode(error) !== undefined) throw error;
    throw new TelosError('config', [asSaid((error as Error).message), sentence('Nothing was run.')]);
  }
}

/** The namespaces may be gone by the time that a command in the background has ended. */
const marksFrom =
  (spaces: KeptSpaces | undefined, finding: BoxOptions['finding']): CommandLayer['marks'] =>
  async (paths, ofLayer) => {
    const own = (): Promise<FileMarks[]> => marksByItself(perlOf(finding), paths, ofLayer);
    return spaces ? spaces.marks(paths, ofLayer).catch(own) : own();
  };

const perlOf = (finding: BoxOptions['finding']): string =>
  (finding.kind === 'bubblewrap' && finding.features.perl) || 'perl';

const isOpenRepository = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true && isOpenFolder(path);

function tooLarge(folder: string): never {
  throw new TelosError('config', [
    sentence(
      '{0} has more than {1} files, too many to look for secrets among them.',
      folder,
      grouped(mostNames),
    ),
    sentence('Work in a folder below it.'),
  ]);
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
  if (isThereNow(file)) return () => [];
  // The command can close each folder that leads there, but not this one for whoever has it open.
  const { anchor, close } = heldFolder(repository);
  let [count, problem] = [0, ''];
  const remove = (): void => {
    try {
      problem = '';
      if (removeEntry(anchor, 'commondir')) count++;
    } catch (error) {
      problem = `${describeFileError(error, file)} It could not be removed: with it, Git takes its settings from elsewhere. Remove it.`;
    }
  };
  const watcher = watched(repository, name => name === 'commondir' && remove());
  return () => {
    watcher?.close();
    remove();
    close();
    if (problem !== '') return [problem];
    return count === 0 ? [] : [`${file} was removed: with it, Git would take its settings from elsewhere`];
  };
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Returns false as well for what cannot be looked at. */
function isThereNow(path: string): boolean {
  try {
    return isThere(path);
  } catch {
    return false;
  }
}

/** Removes what has the name, whatever its modes: it is moved out of the way first. Returns whether there was anything. */
function removeEntry(folder: string, name: string): boolean {
  if (!isOpenFolder(folder, true) && process.platform === 'linux')
    chmodSync(folder, (statSync(folder).mode & 0o7777) | 0o700);
  if (!isThere(join(folder, name))) return false;
  const aside = join(folder, `telos-removed-${randomUUID()}`);
  renameSync(join(folder, name), aside);
  removeAll(aside);
  return true;
}

/** Keeps hold of a folder. Returns a path that leads to it wherever it is, where the system has such paths. */
function heldFolder(folder: string): { anchor: string; close(): void } {
  try {
    if (process.platform !== 'linux') return { anchor: folder, close: () => undefined };
    const file = openSync(folder, asHeld);
    return { anchor: `/proc/self/fd/${file}`, close: () => closeSync(file) };
  } catch {
    return { anchor: folder, close: () => undefined };
  }
}

/** Needs no right to the folder itself, and fails at a link. */
const asHeld = 0o10000000 | constants.O_NOFOLLOW | constants.O_DIRECTORY;

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

/** A layer is a file system of its own: Git finds the repository around it all the same. */
const acrossMounts = { GIT_DISCOVERY_ACROSS_FILESYSTEM: '1' };

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

/** Returns a file that no one may read. */
function maskIn(root: string): string {
  const file = join(root, 'hidden');
  if (!lstatSync(file, { throwIfNoEntry: false })) writeFileSync(file, '', { mode: 0o000, flag: 'wx' });
  chmodSync(file, 0o000);
  return file;
}

async function removeOld(root: string, own: string): Promise<void> {
  const isOld = (path: string): boolean => {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() === true && Date.now() - stats.mtimeMs > kept;
  };
  const old = readdirSync(root)
    .map(name => join(root, name))
    .filter(path => path !== own && path !== layersIn(dirname(root)) && isOld(path));
  for (const path of old) await rm(path, { recursive: true, force: true }).catch(() => undefined);
}
