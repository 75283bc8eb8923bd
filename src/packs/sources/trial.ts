/**
 * Tries a pack once without installing it: it works in a copy of the folder, which sees nothing of the folder itself and whose records
 * are gone with it. Nothing changes in the folder unless the user keeps it.
 */

import { lstatSync, readlinkSync } from 'node:fs';
import { cp, mkdir, readdir, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isInside, loadRegularFile, PathProblem, realPlace, replaceFile } from '@telos/engine/files';
import { contentDigest, discoverAgents, type FileAgent } from '@telos/engine/skills';
import type { ChangeStore } from '@telos/engine/undo';
import { sentence } from '@telos/protocol/text';
import { temporaryFolder } from './fetchSource.ts';
import { copyOffered, type Offer } from './install.ts';

/** A file that the trial left otherwise than it was. */
export interface TrialChange {
  /** From the folder, with `/`. */
  path: string;
  kind: 'added' | 'changed' | 'deleted';
  /** Its bytes now, in the copy. Absolute path. */
  copy: string;
}

export interface Trial {
  /** For an engine of this trial alone. */
  config: Config;
  agent: FileAgent;
  /** Returns what is different in the copy, by path. */
  changed(): Promise<TrialChange[]>;
  /**
   * Writes added and changed files into the folder, so that `undoId` undoes them. Returns the paths that were not written, with why.
   * Deleted files stay.
   */
  keep(changes: readonly TrialChange[], store: Pick<ChangeStore, 'keeper'>): Promise<KeptTrial>;
  dispose(): Promise<void>;
}

export interface KeptTrial {
  undoId: string;
  kept: readonly string[];
  left: readonly string[];
}

/** A folder with more is not copied: nobody would wait for it. */
const most = { files: 20_000, bytes: 500_000_000 };

/**
 * Copies the pack of the offer and the folder of the call. `spent` is the cost of the day so far, in US dollars: its limit holds here too.
 * Throws TelosError `config` if the folder is too large, and errors of the file system.
 */
export async function openTrial(offer: Offer, config: Config, spent: number): Promise<Trial> {
  const folder = await realpath(config.cwd);
  const temporary = await temporaryFolder();
  try {
    if (isInside(folder, temporary.path)) throw tooLarge(folder);
    const [work, skillsDir, dataDir] = ['work', 'skills', 'data'].map(name => join(temporary.path, name)) as [
      string,
      string,
      string,
    ];
    const before = await copyOf(folder, work);
    await mkdir(skillsDir);
    const packDir = await copyOffered(offer, skillsDir);
    const agent = discoverAgents({ ...config, skillsDir }).find(one => one.packDir === packDir);
    if (!agent || agent.skills.length === 0)
      throw new TelosError('pack', [sentence('{0} has no skill that can be tried.', offer.name)]);
    const { unaskedWithin: _within, projectDir: _project, ...own } = agent;
    return {
      config: trialConfig(config, { work, dataDir, folder, spent }),
      agent: { ...own, workingDir: work },
      changed: () => changesOf(work, before),
      keep: (changes, store) => keepIn(folder, before, changes, store),
      dispose: () => temporary.remove(),
    };
  } catch (error) {
    await temporary.remove();
    throw error;
  }
}

function trialConfig(
  config: Config,
  { work, dataDir, folder, spent }: { work: string; dataDir: string; folder: string; spent: number },
): Config {
  const { maxCost, maxCostPerDay } = config.budget;
  const left = maxCostPerDay === undefined ? undefined : Math.max(0, maxCostPerDay - spent);
  const limit = [maxCost, left].filter(one => one !== undefined);
  return {
    ...config,
    cwd: work,
    dataDir,
    workingRoot: work,
    workspaceFolders: [],
    projectFolders: [],
    // A command without a box could write anywhere.
    sandbox: 'required',
    // What leads back to the folder by its full path finds nothing.
    hiddenDirs: [...(config.hiddenDirs ?? []), folder],
    routingLearns: false,
    suggestsSkills: false,
    budget: { ...config.budget, ...(limit.length > 0 && { maxCost: Math.min(...limit) }) },
  };
}

const tooLarge = (folder: string): TelosError =>
  new TelosError('config', [
    sentence('{0} is too large to try a skill in a copy of it.', folder),
    sentence('Open a smaller folder.'),
  ]);

/** Copies a folder and returns the digests of its files. A link of Git to a repository elsewhere is left out. */
async function copyOf(folder: string, target: string): Promise<Map<string, string>> {
  let [files, bytes] = [0, 0];
  await cp(folder, target, {
    recursive: true,
    verbatimSymlinks: true,
    filter: source => {
      const stats = lstatSync(source);
      if (stats.isSymbolicLink()) return !isInside(folder, readlinkSync(source));
      if (source === join(folder, '.git') && stats.isFile()) return false;
      files++;
      bytes += stats.size;
      if (files > most.files || bytes > most.bytes) throw tooLarge(folder);
      return stats.isFile() || stats.isDirectory();
    },
  });
  return digestsBelow(target);
}

async function digestsBelow(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path).replaceAll('\\', '/');
    // Git's own files change by looking.
    if (name.startsWith('.git/')) continue;
    found.set(name, contentDigest(await loadRegularFile(path)));
  }
  return found;
}

async function changesOf(work: string, before: ReadonlyMap<string, string>): Promise<TrialChange[]> {
  const now = await digestsBelow(work);
  return [...new Set([...before.keys(), ...now.keys()])].sort().flatMap((path): TrialChange[] => {
    if (before.get(path) === now.get(path)) return [];
    const kind = !before.has(path) ? 'added' : now.has(path) ? 'changed' : 'deleted';
    return [{ path, kind, copy: join(work, path) }];
  });
}

async function keepIn(
  folder: string,
  before: ReadonlyMap<string, string>,
  changes: readonly TrialChange[],
  store: Pick<ChangeStore, 'keeper'>,
): Promise<KeptTrial> {
  const undoId = `try-${crypto.randomUUID()}`;
  const keeper = store.keeper(undoId);
  if (!keeper)
    throw new TelosError('config', [
      sentence('Nothing was kept: the old text could not be stored for undo.'),
    ]);
  const [kept, left]: [string[], string[]] = [[], []];
  for (const { path, kind, copy } of changes) {
    const place = join(folder, path);
    const isSame = kind !== 'deleted' && (await isAsCopied(folder, place, before.get(path)));
    try {
      if (isSame) await replaceFile(place, await loadRegularFile(copy), keeper);
      (isSame ? kept : left).push(path);
    } catch (error) {
      if (!(error instanceof PathProblem)) throw error;
      left.push(path);
    }
  }
  return { undoId, kept, left };
}

/** Whether a file of the folder is still as it was copied, and lies in the folder without a link in its way. */
async function isAsCopied(folder: string, place: string, digest: string | undefined): Promise<boolean> {
  const there = realPlace(place);
  if (there !== undefined && there !== place) return false;
  const parent = realPlace(dirname(place));
  if (parent !== undefined && !isInside(folder, parent)) return false;
  const bytes = await loadRegularFile(place).catch(() => undefined);
  return (bytes && contentDigest(bytes)) === digest;
}
