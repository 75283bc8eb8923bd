/** The home folder of an agent's commands in the sandbox, and the files that they wrote there. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { realPlace } from './paths.ts';

/** Whose home it is. One of the agent is kept until the person removes it; without an agent it lasts as long as the conversation. */
export interface HomeOwner {
  /** Name of the agent, as the person knows it. */
  name: string;
  /** The agent's own folder. Another agent that takes the name has another home. */
  packDir: string;
}

/** Returns the folder that holds the homes of all agents. */
export const homesIn = (dataDir: string): string => join(dataDir, 'homes');

/** Returns the folder in which an agent's homes lie: `home`, and the one of commands that get secrets. It need not be there yet. */
export const agentHome = (dataDir: string, { packDir }: Pick<HomeOwner, 'packDir'>): string =>
  join(homesIn(dataDir), placeName(packDir));

/** Returns the folder in which a plugin keeps what is its own. It stays when the plugin is updated, and need not be there yet. */
export function pluginDataFolder(packDir: string, dataDir: string): string {
  const folder = join(dataDir, 'plugin-data', placeName(packDir));
  return realPlace(folder) ?? folder;
}

/** Returns a name for what belongs to a pack. Another one that is called the same has another. */
function placeName(packDir: string): string {
  const root = realPlace(packDir) ?? packDir;
  return `${basename(root)}-${createHash('sha256').update(root).digest('hex').slice(0, 12)}`;
}

/** Returns the folders of one conversation in which its commands write, beside the working folder. */
export function standInFolders(
  dataDir: string,
  conversation: string,
  owner: HomeOwner | undefined,
): { own: string; home: string; homeWithSecrets: string; temporary: string } {
  const own = join(dataDir, 'box', safeName(conversation));
  const homes = owner === undefined ? own : agentHome(dataDir, owner);
  return {
    own,
    home: join(homes, 'home'),
    homeWithSecrets: join(homes, 'home-with-secrets'),
    temporary: join(own, 'tmp'),
  };
}

/** Returns a name for a folder. A conversation may have been named by someone else. */
const safeName = (conversation: string): string =>
  /^[\w-]{1,64}$/.test(conversation)
    ? conversation
    : createHash('sha256').update(conversation).digest('hex').slice(0, 32);

/** Where programs keep what they can fetch or compile again, below a home. */
const cacheFolder = '.cache';

/** Maximum number of names of a home that are looked at. */
const mostNames = 5000;

/** What is in a home outside of its caches. */
export interface HomeContent {
  /** By the path below the home: what tells a file from another one in its place. */
  files: ReadonlyMap<string, string>;
  /** False if there is more than is looked at. */
  isWhole: boolean;
}

/** Returns what is in a home now. What cannot be listed counts as empty, and the content as not whole. */
export function contentOf(home: string): HomeContent {
  const files = new Map<string, string>();
  const open = [''];
  let isWhole = true;
  let count = 0;
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries = namesIn(join(home, folder));
    if (!entries) isWhole = false;
    for (const { name, isFolder } of entries ?? []) {
      if (++count > mostNames) return { files, isWhole: false };
      const path = join(folder, name);
      if (path === cacheFolder) continue;
      if (isFolder) open.push(path);
      if (isFolder && namesIn(join(home, path))?.length === 0) files.set(`${path}/`, '');
      if (isFolder) continue;
      const stats = lstatSync(join(home, path), { throwIfNoEntry: false });
      if (stats) files.set(path, [stats.ino, stats.ctimeMs, stats.size].join());
    }
  }
  return { files, isWhole };
}

function namesIn(folder: string): { name: string; isFolder: boolean }[] | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true }).map(entry => ({
      name: entry.name,
      isFolder: entry.isDirectory(),
    }));
  } catch {
    return undefined;
  }
}

/** Returns the files that are new or different, sorted. `except` are mount points of the sandbox, where empty files are left. */
export function writtenSince(
  before: HomeContent,
  after: HomeContent,
  except: readonly string[] = [],
): readonly string[] {
  const isPlace = (path: string): boolean =>
    except.some(place => path === place || path.startsWith(place + sep));
  return [...after.files]
    .filter(([path, stamp]) => before.files.get(path) !== stamp && !isPlace(path))
    .map(([path]) => path)
    .sort();
}
