/**
 * Decides where each agent works. A pack of Telos works in its own folder below the working root, a foreign skill where the
 * person stands, unless user, pack or project choose another folder.
 */

import { createHash } from 'node:crypto';
import { constants, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { type Config, expandPath } from '../config.ts';
import { appendLine, jsonLine, readLines } from '../files/jsonLines.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { folded } from '../files/sensitiveNames.ts';
import { type Diagnostic, worded } from '../files/settingsFile.ts';
import type { Agent } from './agent.ts';

/** Facts that decide where an agent works. */
export interface WantedWork {
  name: string;
  packDir: string;
  /** Name of the pack's folder, which no other pack has. Missing for an agent that the user or Telos has named. */
  packFolder?: string;
  /** True if a project's own file has named the agent. */
  ofProject?: boolean;
  /** Text as written. `.` is the folder of the call. If undefined, the agent works in its own folder. */
  workingDir?: string | undefined;
  /** Who chose `workingDir`. The pack if missing. */
  chosenBy?: 'pack' | 'project' | 'user';
  /** See `Agent`. */
  isForeign?: boolean;
  /** True for a foreign pack that earlier versions took for one of Telos, so that it worked in its own folder. */
  movedOut?: boolean;
}

/** `personDir` is the result of `personFolder`, which is looked up once for all agents. */
type Places = Pick<Config, 'home' | 'cwd' | 'workingRoot' | 'skillsDir'> & { personDir?: string | undefined };

/**
 * Returns the current folder: the workspace folder in the editor, the working directory on the command line.
 * Returns undefined for the home folder and every folder that contains it, since these show more than a person wants.
 */
export function personFolder({ cwd, home }: Pick<Config, 'cwd' | 'home'>): string | undefined {
  const real = realPlace(cwd);
  const isTooWide =
    real === undefined || dirname(real) === real || isInside(real, realPlace(home) ?? resolve(home));
  return isTooWide ? undefined : cwd;
}

/** Whether a working_dir is `.`, the current folder. */
export const meansHere = (written: string): boolean =>
  written !== '' && /^\.[\\/]*$/.test(normalize(written));

/** Returns where an agent works. `folder` is the name of its own folder, if `ownFolderNames` has given one. */
export function workFolderOf(
  wanted: WantedWork,
  places: Places,
  folder = plainName(wanted),
): Pick<Agent, 'workingDir' | 'unaskedWithin' | 'worksHere'> {
  const { home, cwd, workingRoot } = places;
  const own = join(workingRoot, folder);
  const { workingDir: written, chosenBy = 'pack' } = wanted;
  if (written === undefined) {
    const here = wanted.isForeign ? standsApart(wanted, places) : undefined;
    return here === undefined
      ? { workingDir: own, unaskedWithin: own }
      : { workingDir: here, worksHere: true };
  }
  const workingDir = expandPath(written, home, cwd);
  if (meansHere(written))
    return personFolder(places) === undefined
      ? { workingDir: own, unaskedWithin: own }
      : { workingDir, worksHere: true };
  if (chosenBy === 'user') return { workingDir };
  const project = chosenBy === 'project' ? realPlace(cwd) : undefined;
  return { workingDir, unaskedWithin: project ?? own };
}

/** Returns the current folder, unless that is in the pack or among the packs. No run works among the files of agents. */
function standsApart({ packDir }: WantedWork, { personDir, skillsDir }: Places): string | undefined {
  if (personDir === undefined) return undefined;
  const here = realPlace(personDir) ?? personDir;
  return [packDir, skillsDir].some(folder => isInside(realPlace(folder) ?? folder, here))
    ? undefined
    : personDir;
}

/**
 * Returns the names of the agents' own folders, by agent. No two are the same, even if case or the form of letters does not
 * count. An existing folder stays with the agent that has its exact name. Otherwise, if several want one name, an agent that the
 * user or Telos has named gets it. Among packs, the one that was found first gets it. The others get a longer name.
 */
export function ownFolderNames<Each extends WantedWork>(
  agents: readonly Each[],
  workingRoot: string,
): Map<Each, string> {
  const there = new Set(namesIn(workingRoot));
  const ranked = [...agents].sort(byRank);
  const names = new Map<Each, string>();
  const exact = new Set<string>();
  const give = (agent: Each, name: string): void => {
    if (names.has(agent)) return;
    exact.add(name);
    names.set(agent, name);
  };
  if ([...there].some(name => /-[\da-f]{8}$/.test(name)))
    for (const agent of ranked) if (there.has(longerName(agent))) give(agent, longerName(agent));
  for (const agent of ranked) {
    const name = plainName(agent);
    if (there.has(name) && !exact.has(name)) give(agent, name);
  }
  const taken = new Set([...exact].map(folded));
  for (const agent of ranked) {
    if (names.has(agent)) continue;
    let name = plainName(agent);
    for (let length = 8; taken.has(folded(name)); length *= 2) name = longerName(agent, length);
    give(agent, name);
    taken.add(folded(name));
  }
  return names;
}

/** Returns where an agent works, in words. */
export const worksIn = (workingDir: string, cwd: string): Sentence =>
  workingDir === cwd ? sentence('Works in: this folder') : sentence('Works in: {0}', workingDir);

/** Code of a diagnostic that says where an agent worked before. */
export const movedCode = 'agent-working-dir-moved';

/**
 * Returns a diagnostic for a pack that works elsewhere than in earlier versions: its name differs from its folder's, or it was taken
 * for one of Telos. It says where, since its work may be there. Returns undefined if that folder is missing or another agent's.
 * `own` is the name of its own folder.
 */
export function formerWork(
  wanted: WantedWork,
  { workingDir: now, worksHere }: Pick<Agent, 'workingDir' | 'worksHere'>,
  folders: Iterable<string>,
  workingRoot: string,
  own = plainName(wanted),
): Diagnostic | undefined {
  const { name, packDir, packFolder, workingDir, movedOut } = wanted;
  if (movedOut && worksHere && namesIn(join(workingRoot, own)).length > 0)
    return {
      severity: 'info',
      code: movedCode,
      ...worded(
        sentence(
          "Earlier versions of Telos let agent '{0}' work in {1}; now it works in {2}.",
          name,
          join(workingRoot, own),
          now,
        ),
        sentence('What it wrote stays there; move it if you need it.'),
      ),
      file: packDir,
      line: 1,
    };
  if (packFolder === undefined || packFolder === name || workingDir !== undefined) return undefined;
  const former = plainName({ name, packDir });
  const isTaken = [...folders].some(folder => folded(folder) === folded(former));
  if (isTaken || !namesIn(workingRoot).includes(former)) return undefined;
  return {
    severity: 'info',
    code: movedCode,
    ...worded(
      sentence(
        "Earlier versions of Telos let agent '{0}' work in {1}; now its folder for work is called like its pack, {2}.",
        name,
        join(workingRoot, former),
        packFolder,
      ),
      sentence(
        'If that is its work, move it, or write `working_dir` under {0} into your own agents.toml.',
        `[agents.${JSON.stringify(name)}]`,
      ),
    ),
    file: join(packDir, 'agent.toml'),
    line: 1,
  };
}

/** Returns a folder name. The agent's name is a stranger's text, and one such as `../..` would be a path. */
function plainName(agent: WantedWork): string {
  const { name, packFolder = name, ofProject } = agent;
  const plain = packFolder.replace(/[\\/:\p{Cc}\p{Cf}]/gu, '-').replace(/^\.+$/, '-');
  return ofProject ? `${plain}-${hashOf(agent)}` : plain;
}

const longerName = (agent: WantedWork, length?: number): string =>
  `${plainName({ ...agent, ofProject: false })}-${hashOf(agent, length)}`;

const hashOf = ({ name, packDir }: WantedWork, length = 8): string =>
  createHash('sha256').update(`${packDir}\0${name}`).digest('hex').slice(0, length);

/** Sorts agents that the user or Telos has named first. Packs stay in the order in which they were found. */
const byRank = (one: WantedWork, other: WantedWork): number =>
  Number(one.packFolder !== undefined) - Number(other.packFolder !== undefined);

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

type CallPlaces = Pick<Config, 'cwd' | 'dataDir' | 'home' | 'workingRoot' | 'workspaceFolders'>;

/** Maximum size of the file, in bytes, and number of latest folders that are remembered. */
const mostBytes = 1024 * 1024;
const mostFolders = 1000;

/** Returns the path of the file of remembered folders. It has one JSON value per line. */
const fileIn = (dataDir: string): string => join(dataDir, 'work-folders.jsonl');

/**
 * Returns all known working folders: where agents work and have worked, the folder of the call and those of the workspace. A
 * folder of the call that contains the home folder is left out. Agents do not work there unasked, and everything that people
 * install for themselves is below it.
 */
export function workFoldersOf(
  config: CallPlaces,
  agents: readonly Pick<Agent, 'workingDir' | 'source'>[],
): string[] {
  const { cwd, home, dataDir, workingRoot, workspaceFolders } = config;
  const ofProjects = agents.filter(({ source }) => source === 'project').map(({ workingDir }) => workingDir);
  const chosen = agents.filter(({ source }) => source !== 'project').map(({ workingDir }) => workingDir);
  const ofCall = [cwd, ...workspaceFolders.map(({ path }) => path), ...ofProjects];
  const all = [
    workingRoot,
    ...chosen,
    ...remembered(dataDir),
    ...ofCall.filter(each => !isInside(each, home)),
  ];
  return [...new Set(all)];
}

/**
 * Stores where an agent works, for later runs of any agent. Returns true if it has not worked there before. Never throws: a full
 * disk does not end a run.
 */
export function rememberWorkFolder({ dataDir, home }: CallPlaces, folder: string, agent: string): boolean {
  const known = linesIn(dataDir).filter(line => line.folder === folder);
  const isFirst = !known.some(line => line.agent === agent);
  if (isInside(folder, home) || !isFirst) return isFirst;
  const file = fileIn(dataDir);
  try {
    // The data folder itself may be a link.
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    appendLine(file, JSON.stringify({ folder, agent }), constants.O_CREAT);
  } catch {
    // Without it, the folders of the current agents are still known.
  }
  return isFirst;
}

/** Whether an agent has worked in a folder that is not below the working root. */
export const hasWorkedOutside = (
  { dataDir, workingRoot }: Pick<Config, 'dataDir' | 'workingRoot'>,
  agent: string,
): boolean => linesIn(dataDir).some(line => line.agent === agent && !isInside(workingRoot, line.folder));

const remembered = (dataDir: string): string[] =>
  [...new Set(linesIn(dataDir).map(({ folder }) => folder))].slice(-mostFolders);

/** A folder, with the agent that worked there. Earlier versions stored the folder alone. */
interface WorkLine {
  folder: string;
  agent?: string;
}

function linesIn(dataDir: string): WorkLine[] {
  try {
    const text = readRegularFile(fileIn(dataDir), mostBytes).toString('utf8');
    return readLines(text, line => jsonLine(line, workLineOf)).values;
  } catch {
    return [];
  }
}

function workLineOf(value: unknown): WorkLine | undefined {
  if (typeof value === 'string') return { folder: value };
  const { folder, agent } = value as Partial<Record<keyof WorkLine, unknown>>;
  return typeof folder === 'string' && typeof agent === 'string' ? { folder, agent } : undefined;
}

export interface ProjectLimit {
  /** The project's folder. Absolute. */
  readonly folder: string;
  /**
   * Returns true if a path's links lead out of the project, or nowhere that is known. The project's diagnostics then report it.
   */
  refuses(path: string): boolean;
}

/** Returns the limit of a project. `diagnostics` gets one for each path that is refused. */
export function projectLimit(folder: string, diagnostics: Diagnostic[]): ProjectLimit {
  return {
    folder,
    refuses(path) {
      if (liesWithin(folder, path)) return false;
      const real = realPlace(path);
      const why =
        real === undefined
          ? sentence('It leads out of the project {0}, so it is not used.', folder)
          : sentence('It leads out of the project {0}, to {1}, so it is not used.', folder, real);
      const next = sentence("What a project's files name must be inside the project.");
      diagnostics.push({
        severity: 'warning',
        code: 'project-outside',
        ...worded([why, next], sentence('Put the files themselves where the link is.')),
        file: path,
        line: 1,
      });
      return true;
    },
  };
}

/** Whether `path`, wherever its links lead, is really in the project's folder, or will be once it is created. */
export function liesWithin(folder: string, path: string): boolean {
  const real = realPlace(path);
  return real !== undefined && isInside(realPlace(folder) ?? folder, real);
}

/**
 * Returns the folders of the project around the current folder, the nearest first: up to the root of its repository, or the
 * current folder alone. Never contains the home folder, a folder that contains it, or a folder above that belongs to another
 * user, who could have put a repository there.
 */
export function projectFoldersAt({ cwd, home }: Pick<Config, 'cwd' | 'home'>): string[] {
  const realHome = realPlace(home) ?? home;
  const start = realPlace(cwd);
  const folders: string[] = [];
  const isTooWide = (folder: string): boolean => dirname(folder) === folder || isInside(folder, realHome);
  for (let folder = start; folder !== undefined && !isTooWide(folder); folder = dirname(folder)) {
    if (folder !== start && !isOwn(folder)) break;
    folders.push(folder);
    if (existsSync(join(folder, '.git'))) return folders;
  }
  return folders.slice(0, 1);
}

/** Whether a folder belongs to the user. Windows has no such number, and there only an administrator can write above. */
function isOwn(folder: string): boolean {
  try {
    const user = process.getuid?.();
    return user === undefined || statSync(folder).uid === user;
  } catch {
    return false;
  }
}
