/**
 * Installs packs from anywhere, in two steps with a person in between: `lookAtSource` fetches and looks and writes nothing of the
 * person's, `placeOffer` places exactly the files that were shown, with their entry in the lock file. Both doors use these two.
 */

import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { loadRegularFile, lockName } from '@telos/engine/files';
import { byWeight } from '@telos/engine/policy';
import { isOneEditAway } from '@telos/engine/routing';
import {
  addClawhubOrigin,
  clawhubChanges,
  copyPack,
  digestOf,
  type FetchedFrom,
  filesOf,
  type InstalledPack,
  type InstallOptions,
  installPack,
  type LockedPack,
  lockChange,
  lockPath,
  PackTooLarge,
  packNameProblem,
  planInstall,
  type Resolved,
  readAgentToml,
  readLock,
  type WholePlan,
} from '@telos/engine/skills';
import { type FolderContents, putAlong } from '@telos/engine/undo';
import type { PackLook, PackOffer, SourceFinding } from '@telos/protocol/packOffer';
import { sentence } from '@telos/protocol/text';
import {
  type FetchedPack,
  type FetchOptions,
  fetchPack,
  hasLinksAround,
  packFolder,
  placed,
  reachFor,
  temporaryFolder,
  usableName,
} from './fetchSource.ts';
import { skillsOf } from './findPacks.ts';
import { lookAtPack } from './look.ts';
import type { Candidate } from './marketplace.ts';
import { parseSource, type Source, sourceText, UnclearSource, withoutVersion } from './sourceText.ts';

export interface LookOptions extends FetchOptions, Pick<InstallOptions, 'as' | 'works'> {
  /** Only these of its skills, by their ids. */
  skills?: readonly string[] | undefined;
  /** Root of a project: its skills go to `.agents/skills` there, and its lock file lies at its root. */
  project?: string | undefined;
}

/** The source has to be said more exactly: it holds several packs, or several publishers have one of that name. */
export interface Choices {
  kind: 'choices';
  message: string;
  /** Complete sources. */
  choices: readonly string[];
}

/** A pack that was fetched and looked at, and can be placed. Its files lie in a temporary folder until `dispose`. */
export interface Offer extends PackOffer {
  kind: 'offer';
  /** The source as text in its shortest form. */
  source: string;
  version: string;
  /** The commit in full, for sources that have one. */
  commit?: string;
  resolved: Resolved;
  /** The source in the lock file, if the lock file would name another one or another version of it. */
  lockedSource?: string;
  /** What decided which folder is the pack: `plugin.json`, `skills/`, … */
  way: string;
  description: string;
  /** Digest of the pack's files, as in the lock file. */
  digest: string;
  /** True if there are high-severity findings, for which a yes is not enough. */
  isRisky: boolean;
  /** Returns the bytes of one of `files`. */
  read(path: string): Promise<Buffer>;
  /** Removes the temporary folder. Call it in any case. */
  dispose(): Promise<void>;
}

export type Looked = Offer | Choices;

interface Inner {
  fetched: FetchedPack;
  source: Source;
  lockFile: string;
  counts: PackLook['counts'];
  findings: readonly SourceFinding[];
  isOfProject: boolean;
  only: readonly string[] | undefined;
}

type Temporary = Awaited<ReturnType<typeof temporaryFolder>>;

interface Staged extends Inner {
  /** With all of its skills. */
  whole: FetchedPack;
  temporary: Temporary;
  folder: string;
  plan: WholePlan;
  look: LookOptions;
  config: Config;
  /** With the skills folder that it goes to. */
  place: Config;
  from: FetchedFrom | undefined;
}

const staged = new WeakMap<Offer, Staged>();

/**
 * Fetches what the text leads to and looks at it. Throws TelosError `pack` with a sentence for what was refused or cannot be reached,
 * UnclearSource for a text that is no source, and the abort reason on abort.
 */
export async function lookAtSource(text: string, config: Config, options: LookOptions = {}): Promise<Looked> {
  const source = parseSource(text, config);
  const isForeign = options.isForeign || (source.kind === 'mcp' && options.project !== undefined);
  if (options.isForeign && source.kind === 'folder')
    throw new UnclearSource(
      `${text} is a folder of this machine, which a link cannot name. Nothing was installed.`,
    );
  const temporary = await temporaryFolder();
  try {
    const reach = await reachFor(source, config, { ...options, isForeign });
    const fetched = await fetchPack(source, join(temporary.path, 'tree'), reach);
    return await offerOf(source, fetched, config, options, temporary);
  } catch (error) {
    await temporary.remove();
    if (error instanceof UnclearSource && error.choices.length > 0)
      return { kind: 'choices', message: error.message, choices: error.choices };
    throw error;
  }
}

/**
 * Returns the offer for some of its skills, or under another name. It is made from what was fetched already, so it is of the same bytes.
 * Disposing of either disposes of both.
 */
export async function offerAgain(offer: Offer, wish: Pick<LookOptions, 'as' | 'skills'>): Promise<Offer> {
  const { source, whole, config, look, temporary } = stagedOf(offer);
  return offerOf(source, whole, config, { ...look, ...wish }, temporary);
}

/** Copies the files of an offer into a new folder below `parent`, as installing would place them, and returns it. */
export async function copyOffered(offer: Offer, parent: string): Promise<string> {
  const target = join(parent, safeName(offer.name));
  await mkdir(target);
  await copyPack(stagedOf(offer).folder, target);
  return target;
}

function stagedOf(offer: Offer): Staged {
  const inner = staged.get(offer);
  if (!inner) throw new Error('The offer is not one of lookAtSource.');
  return inner;
}

async function offerOf(
  source: Source,
  fetched: FetchedPack,
  config: Config,
  look: LookOptions,
  temporary: Temporary,
): Promise<Offer> {
  const { found, way } = fetched;
  const candidate = selected({ ...fetched, source }, look.skills);
  const name = look.as ?? usableName(candidate.name, found);
  look.progress?.({ kind: 'looking', pack: name });
  const base = join(fetched.root, candidate.path);
  const isFolder = found.resolved.kind === 'folder' && !candidate.skills;
  const isWholeFolder = isFolder && !(await hasLinksAround(fetched.root, base));
  const special: string[] = [];
  const folder = isWholeFolder
    ? base
    : await packFolder(
        fetched.root,
        candidate,
        safeName(name),
        await mkdtemp(join(temporary.path, 'pack-')),
        special,
      );
  const chosen = { ...fetched, candidate };
  const place = placeFor(config, look.project);
  const lockFile = look.project === undefined ? lockPath(config) : join(look.project, lockName);
  readLock(lockFile);
  if (look.project === undefined && !isWholeFolder)
    await addClawhubOrigin(folder, found.resolved, config.skillsDir, name);
  const { contents, leftOut } = await copyPack(folder, undefined).catch(error =>
    refuseWhole(error, source, fetched),
  );
  const seen = await lookAtPack(folder, name, contents, config);
  const findings = [
    ...registryFindings(fetched),
    ...nearNames(name, source, lockFile),
    ...seen.findings,
  ].sort(byWeight);
  const inner = {
    fetched: chosen,
    source,
    lockFile,
    counts: seen.counts,
    findings,
    isOfProject: look.project !== undefined,
    only: look.skills,
  };
  const options = isWholeFolder && look.project === undefined ? undefined : fetchedFrom(inner, config);
  // A name that it has anyway leaves its agent.toml as it is.
  const as = look.as === readAgentToml(folder).name ? undefined : look.as;
  const plan = await planInstall(folder, place, { as, works: look.works, fetched: options });
  if (look.project !== undefined) refuseInProject(plan, contents);
  const commit = 'commit' in found.resolved ? found.resolved.commit : undefined;
  const locked = options && readLock(lockFile).get(plan.name)?.source;
  const lockedSource = locked === sourceText(source) ? undefined : locked;
  const isMoved = lockedSource !== undefined && !isFrom(lockedSource, withoutVersion(source));
  const offer: Offer = {
    kind: 'offer',
    ...seen,
    card: withCatalogueServers(seen.card, candidate),
    findings,
    source: sourceText(source),
    from: found.from,
    version: found.version,
    resolved: placed(found.resolved, candidate),
    ...(commit !== undefined && { commit }),
    ...(lockedSource !== undefined && { lockedSource }),
    ...(isMoved && { moves: { from: lockedSource, to: sourceText(source) } }),
    way,
    name: plan.name,
    description: plan.description ?? candidate.description ?? '',
    leftOut: [...new Set([...fetched.leftOut, ...special, ...leftOut])],
    plan,
    digest: digestOf(filesOf(contents)),
    isRisky: findings.some(({ level }) => level === 'high'),
    read: path => {
      if (!Object.hasOwn(contents, path))
        throw new TelosError('pack', [sentence('The pack has no file {0}.', JSON.stringify(path))]);
      return loadRegularFile(join(folder, path));
    },
    dispose: () => temporary.remove(),
  };
  const made = { ...inner, folder, plan, look: { ...look, as }, config, place, from: options };
  staged.set(offer, { ...made, whole: fetched, temporary });
  return offer;
}

/** Names the skills of a pack that is too large to be taken as a whole. */
function refuseWhole(error: unknown, source: Source, { root, candidate }: FetchedPack): never {
  const skills = error instanceof PackTooLarge ? skillsOf(root, candidate) : [];
  if (!(error instanceof PackTooLarge) || skills.length < 2) throw error;
  throw new UnclearSource(
    `It holds ${error.what}, which is more than a pack may have.`,
    skills.map(({ id }) => sourceText({ ...source, name: id })),
  );
}

/** Returns the card that names, as not started, the servers of the catalogue that no file of the pack has. */
function withCatalogueServers(card: Offer['card'], { servers = [] }: Candidate): Offer['card'] {
  const started = new Set(card.servers.map(({ name }) => name));
  const left = servers
    .filter(name => !started.has(name) && !/^(?:\.\/)?\.mcp\.json$/.test(name))
    .map(name => `${name}: only the catalogue names it, and no file of the pack`);
  return left.length === 0 ? card : { ...card, notStarted: [...(card.notStarted ?? []), ...left] };
}

/** Throws UnclearSource if a project would get more than single skills. */
function refuseInProject(plan: WholePlan, contents: FolderContents): void {
  if (!contents['agent.toml'] && !contents['mcp.json'] && plan.skillCount === 1 && !contents['skills'])
    return;
  throw new TelosError(
    'pack',
    `'${plan.name}' is a pack, and a project takes single skills. Install it without --project, or name one skill after #. Nothing was installed.`,
  );
}

/** Returns the pack with only these skills. Throws UnclearSource for a skill that it does not have. */
function selected(
  { candidate, root, source }: Pick<FetchedPack, 'candidate' | 'root'> & { source: Source },
  ids: readonly string[] | undefined,
): Candidate {
  if (ids === undefined) return candidate;
  const all = skillsOf(root, candidate);
  const wanted = ids.map(id => {
    const skill = all.find(one => one.id === id || one.name === id);
    if (skill) return skill;
    throw new UnclearSource(
      `It has no skill '${id}'.`,
      all.map(one => sourceText({ ...source, name: one.id })),
    );
  });
  if (wanted.length === all.length) return candidate;
  const [only] = wanted;
  if (wanted.length === 1 && only) return { name: only.id, description: only.description, path: only.path };
  const base = candidate.path === '' ? '' : `${candidate.path}/`;
  return { ...candidate, skills: wanted.map(({ path }) => path.slice(base.length)) };
}

/** Skills of a project lie beside each other in a folder that every runner knows. */
const placeFor = (config: Config, project: string | undefined): Config =>
  project === undefined ? config : { ...config, skillsDir: join(project, '.agents', 'skills') };

/** A name that no folder may have is refused by the plan, in its own words. */
const safeName = (name: string): string => (packNameProblem(name) === undefined ? name : 'pack');

function registryFindings({ found: { verdict } }: FetchedPack): SourceFinding[] {
  if (!verdict) return [];
  return [
    { level: verdict.level, kind: 'registry', file: '', line: 0, text: `${verdict.by}: ${verdict.text}` },
  ];
}

/** A name that differs in one letter from one that is installed may be meant to be taken for it. */
function nearNames(name: string, source: Source, lockFile: string): SourceFinding[] {
  const own = withoutVersion(source);
  return [...readLock(lockFile)].flatMap(([other, { source: from }]) => {
    if (other === name || other.length < 4 || !isOneEditAway(name, other) || isFrom(from, own)) return [];
    const text = `its name is one letter away from '${other}', which came from ${from}`;
    return [{ level: 'medium', kind: 'near-name', file: '', line: 0, text }];
  });
}

/** Whether a source as text is `wanted`, which is one without its version. */
export function isFrom(text: string, wanted: string): boolean {
  try {
    return withoutVersion(parseSource(text, { cwd: '/', home: '/' })) === wanted;
  } catch {
    return false;
  }
}

/** What the plan and the lock file say of a fetched pack. */
function fetchedFrom(
  { fetched, source, lockFile, counts, findings, isOfProject, only }: Inner,
  config: Config,
  pinned?: boolean,
): FetchedFrom {
  const { found, candidate, archive, leftOut } = fetched;
  const text = sourceText(source);
  const own = withoutVersion(source);
  const levels = findings.map(({ level }) => level);
  const count = (level: string): number => levels.filter(one => one === level).length;
  return {
    text,
    isOfProject,
    isSame: other => isFrom(other, own),
    along(name, contents) {
      const files = filesOf(contents);
      const known = readLock(lockFile).get(name);
      const entry: LockedPack = {
        source: text,
        resolved: placed(found.resolved, candidate),
        ...(archive && { archive }),
        digest: digestOf(files),
        files,
        leftOut,
        pinned: pinned ?? (known?.pinned === true && isFrom(known.source, own)),
        ...(candidate.skills && { skills: candidate.skills }),
        ...(only && { only }),
        scan: {
          ...counts,
          high: count('high'),
          medium: count('medium'),
          low: count('low'),
        },
        installedAt: new Date().toISOString(),
      };
      return [
        lockChange(lockFile, name, entry),
        ...(isOfProject ? [] : clawhubChanges(name, found.resolved, config.skillsDir)),
      ];
    },
  };
}

export interface PlaceChoice {
  /** Updates pass it over. */
  pinned?: boolean;
  /** `plan.token` of the offer, if the person agreed to replace the agent that is there. */
  agreed?: string | undefined;
  /** The person has seen the high-severity findings, and wants it all the same. */
  allowHigh?: boolean;
}

/**
 * Places what was offered, and returns it as installed. Grants nothing. Throws TelosError `pack` if there are high-severity findings
 * that are not allowed, if an agent would be replaced without a yes to this very plan, or if something has changed meanwhile.
 */
export async function placeOffer(
  offer: Offer,
  { pinned, agreed, allowHigh = false }: PlaceChoice = {},
): Promise<InstalledPack> {
  const inner = stagedOf(offer);
  if (offer.isRisky && !allowHigh && inner.source.kind !== 'folder')
    throw new TelosError('pack', [
      sentence("'{0}' was not installed: it has high-severity findings.", offer.name),
    ]);
  const { folder, plan, look, config, place, from } = inner;
  const fetched = from && fetchedFrom(inner, config, pinned);
  const { as } = look;
  const installed = await installPack(folder, place, { as, works: look.works, fetched, agreed });
  if (installed.name !== plan.name)
    throw new Error(`${installed.name} was installed in place of ${plan.name}.`);
  if (pinned !== undefined && !from) await setPinned(inner.lockFile, plan.name, pinned);
  return installed;
}

/** Writes whether updates pass a pack over. Returns false if it has no entry in the lock file. */
export async function setPinned(lockFile: string, name: string, pinned: boolean): Promise<boolean> {
  const entry = readLock(lockFile).get(name);
  if (!entry) return false;
  await putAlong([lockChange(lockFile, name, { ...entry, pinned })]);
  return true;
}
