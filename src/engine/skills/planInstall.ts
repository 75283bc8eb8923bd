/** Plans what installing a folder would do, so that a person can be asked beforehand, and changes nothing. */

import { createHash } from 'node:crypto';
import { lstatSync, readlinkSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { AgentOrigin, InstallPlan, PlannedChange, Replacement } from '@telos/protocol/installPlan';
import { sentence } from '@telos/protocol/text';
import { type Config, expandPath } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import {
  type AlongFile,
  differencesTo,
  type FolderContents,
  type FolderDifference,
  fileText,
  type Listing,
  listFolder,
} from '../files/folderRecord.ts';
import { parseToml, readSettings } from '../files/settingsFile.ts';
import { exists, identityOf, recoverFolders } from '../files/swapFolder.ts';
import { readAgentToml } from './agent.ts';
import { type AgentEntry, readAgentsToml } from './agentsToml.ts';
import { isTelosPack } from './discover.ts';
import {
  checkApart,
  copyPack,
  type InstallOrigin,
  installPlace,
  readOrigin,
  withAgentName,
} from './installPlace.ts';
import { packSkills } from './packSkills.ts';
import { hasHooks } from './readHooks.ts';
import { checkPackName } from './scaffold.ts';

/** A plan with the fields that only the install itself needs. */
export interface WholePlan extends InstallPlan {
  /** The folder that is copied. Real and absolute path. */
  folder: string;
  fetched: FetchedFrom | undefined;
  description: string | undefined;
  older: (AgentEntry & { file: string }) | undefined;
  /** Text of the agent.toml that is written in place of the pack's. */
  agentToml: string | undefined;
  /** The working_dir that is written into the user's agents.toml. Undefined if none is. */
  workingDir: string | undefined;
}

/** Says where the folder of a plan was fetched from. */
export interface FetchedFrom {
  /** The source as it was asked for. Stands for the folder in every sentence. */
  text: string;
  /** Whether that source is the same as this one, in whatever version. */
  isSame(source: string): boolean;
  /** Returns the lock files' changes, which are made together with the folder. */
  along(name: string, files: FolderContents): readonly AlongFile[];
  /** True for a skill that is put into a project, which works where the person stands. */
  isOfProject: boolean;
}

export interface InstallOptions {
  /** Name that the agent gets, in place of the one of the pack or its folder. */
  as?: string | undefined;
  /** The folder of a foreign skill, or of any pack that the person wants elsewhere: the current folder, or its own one. */
  works?: 'here' | 'vault' | undefined;
  /** Missing for a folder that the person named. */
  fetched?: FetchedFrom | undefined;
}

/**
 * Returns what `installPack` would do with a pack or a bare skill. A pack is a folder with `skills/` or an agent.toml, a bare
 * skill one with a SKILL.md. Throws TelosError `pack` if the folder or name is unusable.
 */
export async function planInstall(
  path: string,
  config: Config,
  { as, works, fetched }: InstallOptions = {},
): Promise<WholePlan> {
  await recoverFolders(config.dataDir);
  const folder = await sourceFolder(path, config);
  const source = fetched?.text ?? folder;
  const { name: ownName, description, diagnostics } = readAgentToml(folder, []);
  const broken = diagnostics[0];
  if (broken) {
    const what = broken.message.replace(/, so it is .*/, '.').trimEnd();
    throw new TelosError(
      'pack',
      `${broken.file}:${broken.line}: ${what} Nothing was installed. ${broken.fix ?? ''}`.trimEnd(),
    );
  }
  if (!(await isPack(folder))) throw noPack(folder, source);
  const name = as ?? (isNameEmpty(folder) ? '' : ownName);
  const ofFolder = name === basename(folder) ? 'of the folder' : 'in its agent.toml';
  checkPackName(name, as === undefined ? ofFolder : 'as given');
  const { target, older } = installPlace(name, config);
  await checkApart(folder, target);
  const { contents: copied, leftOut } = await copyPack(folder, undefined);
  const agentToml = as === undefined ? undefined : renamed(folder, as, copied);
  const contents = agentToml === undefined ? copied : { ...copied, 'agent.toml': textOfToml(agentToml) };
  const replaces = await replacementOf(fetched ?? source, target, contents, config);
  const facts = { name, source, target, leftOut, ...(replaces && { replaces }) };
  return {
    ...facts,
    folder,
    fetched,
    description,
    older,
    agentToml,
    workingDir: fetched?.isOfProject ? undefined : await workingDirFor(folder, name, works, config),
    skillCount: skillCountOf(folder),
    token: tokenOf(facts, contents),
  };
}

/** Discovery passes an empty name over; an install must not choose another one than the author wrote. */
function isNameEmpty(folder: string): boolean {
  const file = join(folder, 'agent.toml');
  return exists(file) && parseToml(readSettings(file))['name'] === '';
}

/** A foreign skill works in the current folder, unless the person has already chosen a folder for it. */
async function workingDirFor(
  source: string,
  name: string,
  works: InstallOptions['works'],
  config: Config,
): Promise<string | undefined> {
  if (works === 'vault') return join(config.workingRoot, name);
  if (works === 'here') return '.';
  const { entries, ofProject } = readAgentsToml(config);
  const isChosen = !ofProject && entries.some(entry => entry.name === name && entry.workingDir !== undefined);
  return isChosen || isTelosPack(source) ? undefined : '.';
}

export const skillCountOf = (folder: string): number => packSkills(folder).skills.length;

/** Whether the pack that was copied, and what it replaces, are still as planned. */
export async function isAsPlanned(
  { name, source, target, leftOut, token, fetched }: WholePlan,
  contents: FolderContents,
  config: Config,
): Promise<boolean> {
  const replaces = await replacementOf(fetched ?? source, target, contents, config);
  return tokenOf({ name, source, target, leftOut, ...(replaces && { replaces }) }, contents) === token;
}

const tokenOf = (facts: Omit<InstallPlan, 'token' | 'skillCount'>, contents: FolderContents): string =>
  createHash('sha256')
    .update(JSON.stringify([facts, identityOf(facts.target), contents]))
    .digest('hex');

function renamed(source: string, name: string, copied: FolderContents): string | undefined {
  return Object.hasOwn(copied, 'agent.toml')
    ? withAgentName(readSettings(join(source, 'agent.toml')), name)
    : undefined;
}

export const textOfToml = (text: string): string =>
  fileText(createHash('sha256').update(text).digest('hex'), 0o644);

async function replacementOf(
  source: string | FetchedFrom,
  target: string,
  contents: FolderContents,
  { dataDir }: Config,
): Promise<Replacement | undefined> {
  if (!exists(target)) return undefined;
  const listing = await listFolder(target);
  const differences = await differencesTo(contents, target, listing);
  const { origin, edits } = await originOf(dataDir, target, listing);
  return {
    ...kindAt(target),
    origin,
    isSameSource: origin.kind === 'installed' && isSameSource(source, origin.source),
    isSame: differences.length === 0 && listing.unreadable.length === 0,
    changes: collapsed(differences, edits, listing, contents),
    isCut: listing.isCut || listing.unreadable.length > 0,
  };
}

const isSameSource = (source: string | FetchedFrom, installed: string): boolean =>
  typeof source === 'string' ? source === installed : source.isSame(installed);

function kindAt(target: string): Pick<Replacement, 'kind' | 'linkTo'> {
  const stats = lstatSync(target);
  if (stats.isDirectory()) return { kind: 'folder' };
  return stats.isSymbolicLink() ? { kind: 'link', linkTo: readlinkSync(target) } : { kind: 'file' };
}

/**
 * Returns where the folder at `target` came from, and what was edited since. A folder that is not the installed one was made by
 * hand.
 */
export async function originOf(
  dataDir: string,
  target: string,
  listing: Listing,
): Promise<{ origin: AgentOrigin; edits: ReadonlySet<string> | undefined }> {
  const noted = readOrigin(dataDir, target);
  const edits = noted && (await editsSince(noted, target, listing));
  if (!noted || !edits || (edits.size > 0 && noted.identity !== identityOf(target)))
    return { origin: { kind: 'by hand' }, edits: undefined };
  const source = noted.source.kind === 'folder' ? noted.source.path : noted.source.text;
  return { origin: { kind: 'installed', source, at: noted.installedAt }, edits };
}

async function editsSince(
  { files }: InstallOrigin,
  target: string,
  listing: Listing,
): Promise<ReadonlySet<string>> {
  return new Set((await differencesTo(files, target, listing)).map(({ path }) => path));
}

/** Returns the changes. A folder that is added or removed as a whole is one line. */
function collapsed(
  differences: readonly FolderDifference[],
  edits: ReadonlySet<string> | undefined,
  { entries }: Listing,
  contents: FolderContents,
): PlannedChange[] {
  const found: PlannedChange[] = [];
  const folders = new Map<string, PlannedChange & { files: number }>();
  for (const { path, change } of differences) {
    const isYours = change !== 'added' && (edits?.has(path) ?? false);
    const top = [...folders].find(([folder, one]) => one.change === change && path.startsWith(`${folder}/`));
    const isFolder = change === 'added' ? contents[path] === 'folder' : entries.get(path)?.kind === 'folder';
    if (top) {
      if (!isFolder) top[1].files++;
      top[1].isYours ||= isYours;
    } else if (isFolder && change !== 'changed') {
      const one = { path: `${path}/`, change, isYours, files: 0 };
      folders.set(path, one);
      // The content of a repository was not examined.
      found.push(basename(path) === '.git' ? { path: one.path, change, isYours } : one);
    } else {
      found.push({ path, change, isYours });
    }
  }
  return found;
}

async function sourceFolder(path: string, { home, cwd }: Config): Promise<string> {
  const folder = expandPath(path.trim() || '.', home, cwd);
  try {
    const source = await realpath(folder);
    if ((await stat(source)).isDirectory()) return source;
  } catch {
    throw new TelosError('pack', [
      sentence('{0} does not exist.', folder),
      sentence('Give the path of a pack, or of a folder with a SKILL.md.'),
    ]);
  }
  throw new TelosError('pack', [
    sentence('{0} is a file.', folder),
    sentence('Give the folder of a pack, or a folder with a SKILL.md.'),
  ]);
}

async function isPack(source: string): Promise<boolean> {
  const there = (name: string): Promise<boolean> =>
    stat(join(source, name)).then(
      () => true,
      () => false,
    );
  return (
    (await there('agent.toml')) || (await there('skills')) || skillCountOf(source) > 0 || hasHooks(source)
  );
}

function noPack(folder: string, source: string): TelosError {
  const others = partsNotRun(folder);
  return new TelosError(
    'pack',
    others.length > 0
      ? [
          sentence(
            '{0} has no skills, commands, agents, MCP servers or hooks that could run, only {1}.',
            source,
            others.join(', '),
          ),
          sentence('Nothing was installed.'),
        ]
      : [
          sentence(
            '{0} is not a pack: it has no SKILL.md, no agent.toml, and no commands, agents or hooks of a plugin.',
            source,
          ),
          sentence('Give the folder that has one of them.'),
        ],
  );
}

/** Returns the files of a plugin that only its own host uses: hooks, servers of languages, styles of answers. */
export const partsNotRun = (folder: string): string[] =>
  ['hooks/hooks.json', '.lsp.json', 'output-styles', '.mcp.json'].filter(name => exists(join(folder, name)));
