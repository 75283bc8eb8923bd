/** Compares what is installed with the lock file, brings it back from there, and looks for newer versions. */

import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { lockName } from '@telos/engine/files';
import {
  addClawhubOrigin,
  clawhubChanges,
  copyPack,
  entryDigest,
  type FetchedFrom,
  filesOf,
  type InstalledPack,
  installPack,
  isKeptBeside,
  type LockedPack,
  lockChange,
  lockPath,
  planInstall,
  type Resolved,
  readAgentToml,
  readLock,
  readOrigin,
  textOfToml,
  type WholePlan,
} from '@telos/engine/skills';
import { contentsOf, listFolder, recoverFolders } from '@telos/engine/undo';
import type { InstallPlan } from '@telos/protocol/installPlan';
import { sentence } from '@telos/protocol/text';
import {
  type FetchOptions,
  fetchResolved,
  packFolder,
  reachFor,
  resolveSource,
  temporaryFolder,
} from './fetchSource.ts';
import { isFrom, type Looked, type LookOptions, lookAtSource, type Offer } from './install.ts';
import { lookAtPack } from './look.ts';
import { atVersion, parseSource, sourceText, withoutVersion } from './sourceText.ts';

/** Where packs are installed: in the skills folder, or with `project` in that project. */
export interface LockedPlace {
  config: Config;
  project?: string | undefined;
}

const lockFileOf = ({ config, project }: LockedPlace): string =>
  project === undefined ? lockPath(config) : join(project, lockName);

const folderOf = ({ config, project }: LockedPlace, name: string): string =>
  join(project === undefined ? config.skillsDir : join(project, '.agents', 'skills'), name);

export interface VerifiedPack {
  name: string;
  /** `same`: every file is as the lock file says. `unlocked`: it was not installed by Telos, so nothing is known of it. */
  state: 'same' | 'edited' | 'missing' | 'unlocked';
  source: string;
  version: string;
  pinned: boolean;
  /** Files that are not as they were, below the pack. */
  files: readonly { path: string; change: 'edited' | 'missing' | 'added' }[];
}

/**
 * Compares installed packs with the lock file, file by file, all of them if no names are given. Throws TelosError `pack` for a lock
 * file that is damaged and for a name that is neither installed nor locked.
 */
export async function verifyPacks(
  place: LockedPlace,
  names: readonly string[] = [],
): Promise<VerifiedPack[]> {
  await recoverFolders(place.config.dataDir);
  const lock = readLock(lockFileOf(place));
  const unlocked = names.filter(name => !lock.has(name));
  const wanted = [...lock].filter(([name]) => names.length === 0 || names.includes(name));
  const verified = await Promise.all(wanted.map(([name, entry]) => verifyPack(place, name, entry)));
  for (const name of unlocked) {
    if ((await listFolder(folderOf(place, name))).entries.size === 0)
      throw new TelosError('pack', [
        sentence("'{0}' is neither installed nor in {1}.", name, lockFileOf(place)),
      ]);
    verified.push({ name, state: 'unlocked', source: '', version: '', pinned: false, files: [] });
  }
  return verified.sort((one, other) => (one.name < other.name ? -1 : 1));
}

async function verifyPack(place: LockedPlace, name: string, entry: LockedPack): Promise<VerifiedPack> {
  const contents = await contentsOf(folderOf(place, name));
  const files = differences(entry.files, filesOf(contents ?? {}));
  const isGone = Object.keys(contents ?? {}).length === 0;
  const state = isGone ? 'missing' : files.length === 0 ? 'same' : 'edited';
  return {
    name,
    state,
    source: entry.source,
    version: versionOf(entry),
    pinned: entry.pinned,
    files: isGone ? [] : files,
  };
}

function differences(
  wanted: Readonly<Record<string, string>>,
  there: Readonly<Record<string, string>>,
): VerifiedPack['files'] {
  const paths = [...new Set([...Object.keys(wanted), ...Object.keys(there)])].sort();
  return paths.flatMap(path => {
    const [before, now] = [wanted[path], there[path]].map(comparable);
    if (before === now) return [];
    return [
      { path, change: now === undefined ? 'missing' : before === undefined ? 'added' : 'edited' } as const,
    ];
  });
}

/** Windows has no executable bit. */
const comparable = (text: string | undefined): string | undefined =>
  process.platform === 'win32' ? text?.replace(/\+x$/, '') : text;

/** Returns the version that a person reads: a version, or the beginning of a commit or digest. */
export function versionOf({ resolved, digest }: Pick<LockedPack, 'resolved' | 'digest'>): string {
  switch (resolved.kind) {
    case 'github':
    case 'git':
      return resolved.commit.slice(0, 7);
    case 'npm':
    case 'clawhub':
      return resolved.version;
    case 'well-known':
    case 'mcp':
      return resolved.digest.slice(7, 14);
    case 'url':
      return resolved.sha256.slice(0, 7);
    case 'folder':
      return digest.slice(0, 7);
  }
}

export interface RestoredPack {
  name: string;
  /**
   * `left`: something else is there, which the person keeps. For a trial: `missing` would be put back unasked, `different` replaced after
   * a yes.
   */
  state: 'same' | 'restored' | 'left' | 'missing' | 'different';
  installed?: InstalledPack;
  /** What would be done, for a trial. */
  plan?: InstallPlan;
}

export interface RestoreOptions extends FetchOptions {
  /** Asks whether an agent that is not as the lock file says is replaced. Without it, none is. */
  mayReplace?(plan: InstallPlan): Promise<boolean>;
  /** True if nothing is placed, and it is only said what would be. */
  isTrial?: boolean;
}

/**
 * Makes the installed folders equal to the lock file. Fetches what differs by its commit, version or digest, and compares every
 * file. Puts back what is missing, and replaces an agent only after a yes. Throws TelosError `pack` at the first difference of what
 * was fetched, before anything is placed.
 */
export async function restorePacks(
  place: LockedPlace,
  { mayReplace, isTrial = false, ...options }: RestoreOptions = {},
): Promise<RestoredPack[]> {
  const lockFile = lockFileOf(place);
  const lock = readLock(lockFile);
  if (lock.size === 0)
    throw new TelosError('pack', [
      sentence('{0} locks nothing.', lockFile),
      sentence('Install something from a source first.'),
    ]);
  const done: RestoredPack[] = [];
  const ready: { plan: WholePlan; place: () => Promise<InstalledPack> }[] = [];
  const verified = await verifyPacks(place);
  const temporary: { remove(): Promise<void> }[] = [];
  try {
    for (const { name, state } of verified) {
      const entry = lock.get(name)!;
      if (state === 'same' && isOwnRecord(place, name, entry)) {
        done.push({ name, state: 'same' });
        continue;
      }
      const folder = await temporaryFolder();
      temporary.push(folder);
      try {
        const prepared = await prepareLocked(place, name, entry, folder.path, options);
        if (state === 'same') done.push({ name, state: 'same' });
        else ready.push(prepared);
      } catch (error) {
        if (!(error instanceof TelosError)) throw error;
        const whole = done.map(one => one.name);
        const others = whole.length > 0 ? ` As the lock file says: ${whole.join(', ')}.` : '';
        throw error.followedBy(
          sentence("'{0}' was not restored, and no other pack either.{1}", name, others),
        );
      }
    }
    for (const { plan, place: put } of ready) {
      if (isTrial) done.push({ name: plan.name, state: takesNothing(plan) ? 'missing' : 'different', plan });
      else if (takesNothing(plan) || (await mayReplace?.(plan)))
        done.push({ name: plan.name, state: 'restored', installed: await put() });
      else done.push({ name: plan.name, state: 'left' });
    }
    return done.sort((one, other) => (one.name < other.name ? -1 : 1));
  } finally {
    for (const folder of temporary) await folder.remove();
  }
}

/** Whether everything that is there stays as it is, so that no one has to be asked. */
function takesNothing({ replaces }: InstallPlan): boolean {
  if (!replaces || replaces.isSame) return true;
  const { kind, changes, isCut } = replaces;
  return kind === 'folder' && !isCut && changes.every(({ change }) => change === 'added');
}

/** Whether the entry is still the one with which the folder was placed, so that its files and where they came from are known. */
const isOwnRecord = (place: LockedPlace, name: string, entry: LockedPack): boolean =>
  readOrigin(place.config.dataDir, folderOf(place, name))?.locked === entryDigest(entry);

const configFor = ({ config, project }: LockedPlace): Config =>
  project === undefined ? config : { ...config, skillsDir: join(project, '.agents', 'skills') };

async function prepareLocked(
  place: LockedPlace,
  name: string,
  entry: LockedPack,
  temporary: string,
  options: FetchOptions,
): Promise<{ plan: WholePlan; place: () => Promise<InstalledPack> }> {
  const { resolved, skills } = entry;
  const source = parseSource(entry.source, place.config);
  const own = withoutVersion(source);
  const root = resolved.kind === 'folder' ? resolved.path : join(temporary, 'tree');
  if (resolved.kind !== 'folder') {
    const isForeign = place.project !== undefined;
    await fetchResolved(resolved, root, await reachFor(source, place.config, { ...options, isForeign }));
  } else if (place.project !== undefined)
    throw new TelosError('pack', [
      sentence("The lock file says that '{0}' is a folder of another machine, {1}.", name, root),
    ]);
  const path = resolved.kind === 'folder' ? '' : (resolved.path ?? '');
  const isOwnFolder = resolved.kind === 'folder' && !skills;
  const folder = isOwnFolder
    ? root
    : await packFolder(root, { path, ...(skills && { skills }) }, name, join(temporary, 'packs'));
  const config = configFor(place);
  if (place.project === undefined && !isOwnFolder)
    await addClawhubOrigin(folder, resolved, config.skillsDir, name);
  const as = readAgentToml(folder).name === name ? undefined : name;
  const fetched: FetchedFrom = {
    text: entry.source,
    isSame: from => isFrom(from, own),
    isOfProject: place.project !== undefined,
    along: () => [
      lockChange(lockFileOf(place), name, entry),
      ...(place.project === undefined ? clawhubChanges(name, resolved, config.skillsDir) : []),
    ],
  };
  const plan = await planInstall(folder, config, { as, fetched });
  const { contents } = await copyPack(folder, undefined);
  const files = filesOf(
    plan.agentToml === undefined ? contents : { ...contents, 'agent.toml': textOfToml(plan.agentToml) },
  );
  const [first] = differences(entry.files, files);
  if (first) throw differs(name, first, entry, files);
  return { plan, place: () => installPack(folder, config, { as, fetched, agreed: plan.token }) };
}

function differs(
  name: string,
  { path }: VerifiedPack['files'][number],
  { files, source }: LockedPack,
  there: Readonly<Record<string, string>>,
): TelosError {
  const [wanted, got] = [files[path] ?? 'no such file', there[path] ?? 'no such file'];
  return new TelosError('pack', [
    sentence("{0} of '{1}' is {2} at {3}, but the lock file says {4}.", path, name, got, source, wanted),
    sentence('Nothing was changed.'),
  ]);
}

/** What is new for an installed pack. */
export interface PackUpdate {
  name: string;
  /**
   * `changed`: there is a newer version, `offer`. `edited`: there is one, but the person has edited the files in `files`. `moved`: there
   * is one, but someone else serves it. `failed`: nobody can say, see `problem`.
   */
  state: 'current' | 'changed' | 'edited' | 'moved' | 'pinned' | 'failed';
  from: string;
  to: string;
  /** The caller of `updatesFor` disposes of it. */
  offer?: Offer;
  files: VerifiedPack['files'];
  /** Lines of the card that come or go: `+ evil.example`. */
  card: readonly string[];
  problem?: string;
}

/** Asks the sources of installed packs for newer versions, one after the other, and changes nothing. `to` is a version. */
export async function* updatesFor(
  place: LockedPlace,
  names: readonly string[] = [],
  { to, ...options }: FetchOptions & { to?: string | undefined } = {},
): AsyncGenerator<PackUpdate> {
  const lock = readLock(lockFileOf(place));
  for (const verified of await verifyPacks(place, names)) {
    const { name, pinned, version, state, files } = verified;
    const entry = lock.get(name);
    const nothing = { name, from: version, to: version, files: [], card: [] };
    if (!entry)
      yield {
        ...nothing,
        state: 'failed',
        problem: 'it is in no lock file, so its origin is unknown',
      };
    else if (pinned && to === undefined) yield { ...nothing, state: 'pinned' };
    else
      yield {
        ...nothing,
        ...(await updateOf(place, entry, name, { to, ...options })),
        ...(state === 'edited' && { files }),
      };
  }
}

type UpdateFacts = Pick<PackUpdate, 'state'> & Partial<PackUpdate>;

async function updateOf(
  place: LockedPlace,
  entry: LockedPack,
  name: string,
  { to, ...options }: FetchOptions & { to?: string | undefined },
): Promise<UpdateFacts> {
  const { config, project } = place;
  let looked: Looked;
  try {
    const source = parseSource(entry.source, config);
    const text = sourceText(to === undefined ? source : atVersion(source, to));
    const look: LookOptions = {
      ...options,
      as: name,
      skills: entry.only,
      project,
      isForeign: project !== undefined,
    };
    looked = await lookAtSource(text, config, look);
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    return { state: 'failed', problem: error.message };
  }
  if (looked.kind === 'choices')
    return { state: 'failed', problem: `${looked.message} ${looked.choices.join(' ')}`.trim() };
  const offer = looked;
  const found = { offer, to: versionOf(offer) };
  const moved = serverOf(entry.resolved) === serverOf(offer.resolved) ? undefined : offer.from;
  if (moved !== undefined)
    return {
      ...found,
      state: 'moved',
      problem: `it came from ${serverOf(entry.resolved)} and would now come from ${serverOf(offer.resolved)}`,
    };
  if (offer.plan.replaces?.isSame) return { ...found, state: 'current' };
  const there = await verifyPack(place, name, entry);
  const isSame =
    differences(
      entry.files,
      Object.fromEntries(
        offer.files.map(({ path, digest }) => [path, digest]).filter(([path]) => !isKeptBeside(path!)),
      ),
    ).length === 0;
  if (isSame && there.state !== 'missing') return { ...found, state: 'current' };
  // Of a folder that is gone there is nothing to compare with: all of the card is shown before it is brought back.
  const card = there.state === 'missing' ? [] : await cardChanges(folderOf(place, name), name, offer, config);
  return { ...found, state: there.state === 'edited' ? 'edited' : 'changed', card };
}

/** Who serves a pack, without its version. */
function serverOf(resolved: Resolved): string {
  switch (resolved.kind) {
    case 'folder':
      return resolved.path;
    case 'npm':
      return `${resolved.registry} ${resolved.name}`;
    case 'clawhub':
      return `${resolved.registry} @${resolved.ownerHandle}/${resolved.slug}`;
    case 'mcp':
      return `${resolved.agent}:${resolved.server} ${resolved.name ?? ''}`;
    case 'well-known':
      return `${new URL(resolved.indexUrl).origin} ${resolved.name}`;
    default:
      return resolved.url.toLowerCase();
  }
}

async function cardChanges(folder: string, name: string, offer: Offer, config: Config): Promise<string[]> {
  const contents = await contentsOf(folder);
  if (!contents) return [];
  const before = linesOf(await lookAtPack(folder, name, contents, config));
  const after = linesOf(offer);
  return [
    ...after.filter(line => !before.includes(line)).map(line => `+ ${line}`),
    ...before.filter(line => !after.includes(line)).map(line => `- ${line}`),
  ];
}

const linesOf = ({ card }: Pick<Offer, 'card'>): string[] => [
  ...card.hosts.map(one => `host ${one}`),
  ...card.scripts.map(one => `script ${one}`),
  ...(card.commands ?? []).map(one => `command ${one}`),
  ...card.variables.map(one => `variable ${one}`),
  ...(card.writes ?? []).map(one => `writes ${one}`),
  ...(card.hooks ?? []).map(one => `hook ${one}`),
  ...card.servers.map(({ name, place }) => `server ${name}: ${place}`),
];

/**
 * Returns what has become of a locked pack at its source, as the rest of a sentence: gone, revoked, or other bytes. Undefined if the
 * very same files can still be fetched there. Throws the abort reason on abort.
 */
export async function checkOnline(
  place: LockedPlace,
  name: string,
  options: FetchOptions = {},
): Promise<string | undefined> {
  const entry = readLock(lockFileOf(place)).get(name);
  if (!entry) return 'it is in no lock file';
  const temporary = await temporaryFolder();
  try {
    const source = parseSource(entry.source, place.config);
    if (source.kind === 'clawhub' && entry.resolved.kind === 'clawhub') {
      const reach = await reachFor(source, place.config, options);
      const { verdict } = await resolveSource(
        { ...source, owner: entry.resolved.ownerHandle, version: entry.resolved.version },
        reach,
      );
      if (verdict) return `${verdict.by} now says: ${verdict.text}`;
    }
    await prepareLocked(place, name, entry, temporary.path, options);
    return undefined;
  } catch (error) {
    if (error instanceof TelosError) return error.message;
    throw error;
  } finally {
    await temporary.remove();
  }
}
