/** Lists all files of an agent with their digests, which a review is bound to. */

import { createHash } from 'node:crypto';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { AgentCard, CardFolder, RedFlag } from '@telos/protocol/agentCard';
import { serverFilesOf } from '../files/hostPlugin.ts';
import { isInside, realIfThere, realPlace, resolvePath } from '../files/paths.ts';
import { folded, isSensitive } from '../files/sensitiveNames.ts';
import { jsonIn } from '../mcp/config.ts';
import type { Agent, Skill } from '../skills/agent.ts';
import { hookLine, packHooks } from '../skills/readHooks.ts';
import { type AgentFile, type FileDigests, isBelow, Reader } from './agentReader.ts';
import { isRepositoryName } from './text/repositoryFiles.ts';

/** The parts of an agent that the policy needs. */
export type ReviewedAgent = Pick<
  Agent,
  'name' | 'packDir' | 'workingDir' | 'unaskedWithin' | 'projectDir' | 'source' | 'mcpConfig'
> & {
  skills: readonly Pick<Agent['skills'][number], 'dir' | 'file' | 'within' | 'kind'>[];
  diagnostics?: Agent['diagnostics'];
};

/** A working folder inside the agent's own folder. */
export interface InnerWork {
  /** Real and absolute path. */
  path: string;
  label: string;
  /** `empty`: it has no content yet. `left out`: it was empty when the card was accepted, and everything added since is work. */
  state: 'empty' | 'used' | 'left out';
}

export interface AgentFiles {
  /** By path below the agent's folder, with `/`; by absolute path if the file is elsewhere. */
  files: ReadonlyMap<string, AgentFile>;
  /** SHA-256 of the sorted `path:sha256` lines and the lines of `folders`, hexadecimal. */
  digest: string;
  /** Folders that the digest covers as well. A link can point elsewhere while no file changes. */
  folders: readonly CardFolder[];
  /** True if there are more files or bytes than a person could review. Then nothing is ever granted for them. */
  tooLarge: boolean;
  /** Content of the agent's folders that is not among `files`. */
  leftOut: NonNullable<AgentCard['leftOut']>;
  work?: InnerWork;
  /** Ways to bytes that are not among `files`, or that are easily overlooked. If there are any, no script is granted. */
  escapes: readonly RedFlag[];
}

/** The accepted review, as far as it says which files are work. */
export interface AcceptedFiles {
  workFolder?: string;
  files: Readonly<Record<string, string>>;
}

/**
 * Reads every file of the agent. Throws errors of the file system, except for files that vanish meanwhile. If `accepted` is
 * given, the work in a folder that was empty when it was accepted is left out.
 */
export async function readAgentFiles(
  agent: ReviewedAgent,
  digests: FileDigests,
  accepted?: AcceptedFiles,
): Promise<AgentFiles> {
  const base = realIfThere(agent.packDir) ?? agent.packDir;
  const folders = foldersOf(agent, base);
  const reader = new Reader(base, folders, topsOf(agent, base, folders), digests);
  const inner = await innerWorkFolder(agent, base);
  const label = inner === undefined ? '' : reader.labelOf(inner);
  const isLeftOut = inner !== undefined && accepted?.workFolder === label;
  if (isLeftOut) reader.leaveOutWork(inner, Object.keys(accepted.files));
  for (const folder of folders) await reader.addFolder(folder);
  // A file that is read over a link is a part of the agent, like a file in its folder.
  if (agent.mcpConfig !== undefined)
    for (const file of serverFilesOf(agent.mcpConfig, jsonIn)) await reader.addRead(file);
  for (const { file } of agent.skills) if (isReadAsSkill(file)) await reader.addRead(file);
  const { files, tooLarge, leftOut } = reader;
  const lines = [...files].map(([name, { sha256 }]) => `${escaped(name)}:${sha256}`).sort();
  const chosen = chosenFolders(agent);
  // The settings of a project change often, and what else is in them says nothing about this agent.
  if (agent.source === 'project')
    lines.push(...packHooks(agent).hooks.map(hook => `hook:${escaped(hookLine(hook))}`));
  lines.push(...chosen.map(({ path, access }) => `folder:${JSON.stringify([access, path])}`));
  const digest = createHash('sha256').update(lines.join('\n')).digest('hex');
  const used = [...files].some(([name, { size, isLink }]) => isBelow(label, name) && (size > 0 || isLink));
  const state = isLeftOut ? 'left out' : used ? 'used' : 'empty';
  const work = inner === undefined ? {} : { work: { path: inner, label, state } as const };
  return { files, digest, folders: chosen, tooLarge, leftOut, escapes: await reader.escapes(), ...work };
}

/** Returns false for a link to a file that holds secrets by its name. Such a file is never read as a skill. */
function isReadAsSkill(file: string): boolean {
  const real = realIfThere(file);
  return real === undefined || !isSensitive(real);
}

/** Escapes line breaks, so that each file stays one line. Otherwise files with other names could produce the same lines. */
const escaped = (label: string): string => label.replace(/[\\\n]/g, sign => (sign === '\n' ? '\\n' : '\\\\'));

const isPack = ({ source }: Pick<ReviewedAgent, 'source'>): boolean =>
  source === 'user' || source === 'builtin';

/** Returns the real folders whose files are the agent's own. */
export function ownFolders(agent: ReviewedAgent): string[] {
  return foldersOf(agent, realIfThere(agent.packDir) ?? agent.packDir);
}

/**
 * Returns the folders of the agent. A pack is its folder. Skills of a workspace or a linked folder are only their own folders.
 * Everything around them is the user's work. Skills that are elsewhere, or behind a link, are added.
 */
function foldersOf(agent: ReviewedAgent, base: string): string[] {
  const folders = isPack(agent) ? [base] : [];
  for (const { dir } of agent.skills) {
    const real = realIfThere(dir);
    if (real !== undefined && !folders.some(folder => isInside(folder, real))) folders.push(real);
  }
  return folders;
}

/**
 * Returns the folders in which a `.git` folder is the agent's own, because the folder was fetched as a repository. These are the
 * folders that are read, and each skill of a folder that only collects skills.
 */
function topsOf(agent: ReviewedAgent, base: string, folders: readonly string[]): string[] {
  const collected = agent.skills.filter(({ dir }) => dirname(dir) === agent.packDir);
  return [...folders, ...collected.map(({ dir }) => realIfThere(dir) ?? base)];
}

/** Returns the working folder if it is inside the agent's own folder and can be left out; otherwise undefined. */
async function innerWorkFolder(agent: ReviewedAgent, base: string): Promise<string | undefined> {
  const { packDir, workingDir, skills } = agent;
  if (!isPack(agent)) return undefined;
  const work = await resolvePath(workingDir, packDir, packDir).catch(() => undefined);
  if (work === undefined || work === base || !isInside(base, work)) return undefined;
  // Programs look into these folders by themselves.
  const parts = relative(base, work).split(sep);
  if (parts.some(part => isRepositoryName(part) || folded(part) === 'node_modules')) return undefined;
  const holdsSkill = skills.some(({ dir }) => isInside(work, realIfThere(dir) ?? dirname(work)));
  return holdsSkill ? undefined : work;
}

/** The parts of an agent that say where it works, and who chose that. */
export type WithFolders = Pick<Agent, 'workingDir' | 'unaskedWithin' | 'packDir' | 'projectDir'> & {
  skills: readonly Pick<Skill, 'dir' | 'within'>[];
};

/**
 * Returns the folders by their real paths as they are now, sorted. Empty if the agent stays in its own folders and in those that
 * the user chose.
 */
export function chosenFolders(agent: WithFolders): CardFolder[] {
  const { workingDir, unaskedWithin, packDir, projectDir, skills } = agent;
  const folders = new Map<string, CardFolder>();
  // The skills of an agent mostly lie within one folder.
  const roots = new Map<string, string>();
  for (const { dir, within } of skills) {
    if (within === undefined || within === dir) continue;
    const path = real(dir);
    const root = roots.get(within) ?? real(within);
    roots.set(within, root);
    if (!isInside(root, path)) folders.set(path, { path, access: 'read' });
  }
  if (unaskedWithin !== undefined) {
    const path = real(workingDir);
    // The files of the agent's card decide what it may write in its own folder.
    const isOwn = isInside(placeOf(unaskedWithin), path) || isInside(real(packDir), path);
    if (!isOwn) folders.set(path, { path, access: 'write' });
  }
  if (projectDir !== undefined) folders.set(real(projectDir), { path: real(projectDir), access: 'write' });
  return [...folders.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Resolves the folders around, which may be links of the user. The last name is not followed: if it is a link, it is treated like
 * any other folder.
 */
const placeOf = (folder: string): string => join(real(dirname(folder)), basename(folder));

const real = (path: string): string => realPlace(path) ?? path;
