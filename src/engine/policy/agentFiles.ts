/** All files of an agent with their digests: what a review is bound to. */

import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { dirname, relative, sep } from 'node:path';
import type { AgentCard, CardFolder, RedFlag } from '../../protocol/agentCard.ts';
import { isInside, resolvePath } from '../files/paths.ts';
import { folded, isSensitive } from '../files/sensitiveNames.ts';
import type { Agent } from '../skills/agent.ts';
import { type AgentFile, type FileDigests, isBelow, isRepositoryName, Reader } from './agentReader.ts';
import { chosenFolders } from './chosenFolders.ts';

/** What the policy wants to know of an agent. */
export type ReviewedAgent = Pick<
  Agent,
  'name' | 'packDir' | 'workingDir' | 'unaskedWithin' | 'source' | 'mcpConfig'
> & {
  skills: readonly Pick<Agent['skills'][number], 'dir' | 'file' | 'within'>[];
  diagnostics?: Agent['diagnostics'];
};

/** A working folder inside the agent's own folder. */
export interface InnerWork {
  /** Real and absolute. */
  path: string;
  label: string;
  /** `empty`: it holds no content yet. `left out`: it was empty when the card was accepted, and what has come since is work. */
  state: 'empty' | 'used' | 'left out';
}

export interface AgentFiles {
  /** By path below the agent's folder with `/`, or absolute when they lie elsewhere. */
  files: ReadonlyMap<string, AgentFile>;
  /** SHA-256 over the sorted `path:sha256` lines, and those of `folders`, hexadecimal. */
  digest: string;
  /** What it is bound to as well: a link can lead elsewhere while no file changes. */
  folders: readonly CardFolder[];
  /** More files or bytes than a person could review; then nothing is ever granted for them. */
  tooLarge: boolean;
  /** What lies in the agent's folders and is not among `files`. */
  leftOut: NonNullable<AgentCard['leftOut']>;
  work?: InnerWork;
  /** Ways to bytes that are not among `files`, or that are easily overlooked: beside them no script is granted. */
  escapes: readonly RedFlag[];
}

/** What was accepted, as far as it says which files are work. */
export interface AcceptedFiles {
  workFolder?: string;
  files: Readonly<Record<string, string>>;
}

/**
 * Reads every file of the agent. Throws what the file system says, but for files that vanish meanwhile. With what was accepted, the work in a folder
 * that was empty then is left out.
 */
export async function readAgentFiles(
  agent: ReviewedAgent,
  digests: FileDigests,
  accepted?: AcceptedFiles,
): Promise<AgentFiles> {
  const base = await realpath(agent.packDir).catch(() => agent.packDir);
  const folders = await foldersOf(agent, base);
  const reader = new Reader(base, folders, await topsOf(agent, base, folders), digests);
  const inner = await innerWorkFolder(agent, base);
  const label = inner === undefined ? '' : reader.labelOf(inner);
  const isLeftOut = inner !== undefined && accepted?.workFolder === label;
  if (isLeftOut) reader.leaveOutWork(inner, Object.keys(accepted.files));
  for (const folder of folders) await reader.addFolder(folder);
  // What is read over a link is as much a part of the agent as what lies in its folder.
  if (agent.mcpConfig !== undefined) await reader.addRead(agent.mcpConfig);
  for (const { file } of agent.skills) if (await isReadAsSkill(file)) await reader.addRead(file);
  const { files, tooLarge, leftOut } = reader;
  const lines = [...files].map(([name, { sha256 }]) => `${escaped(name)}:${sha256}`).sort();
  const chosen = chosenFolders(agent);
  lines.push(...chosen.map(({ path, access }) => `folder:${JSON.stringify([access, path])}`));
  const digest = createHash('sha256').update(lines.join('\n')).digest('hex');
  const used = [...files].some(([name, { size, isLink }]) => isBelow(label, name) && (size > 0 || isLink));
  const state = isLeftOut ? 'left out' : used ? 'used' : 'empty';
  const work = inner === undefined ? {} : { work: { path: inner, label, state } as const };
  return { files, digest, folders: chosen, tooLarge, leftOut, escapes: await reader.escapes(), ...work };
}

/** False for a link to a file that holds secrets by its name: no such file is ever read as a skill. */
async function isReadAsSkill(file: string): Promise<boolean> {
  const real = await realpath(file).catch(() => undefined);
  return real === undefined || !isSensitive(real);
}

/** A line stays a line, whatever a file is called: otherwise other files of other names could make the same lines. */
const escaped = (label: string): string => label.replace(/[\\\n]/g, sign => (sign === '\n' ? '\\n' : '\\\\'));

const isPack = ({ source }: Pick<ReviewedAgent, 'source'>): boolean =>
  source === 'user' || source === 'builtin';

/** The real folders whose files are the agent's own. */
export async function ownFolders(agent: ReviewedAgent): Promise<string[]> {
  return foldersOf(agent, await realpath(agent.packDir).catch(() => agent.packDir));
}

/**
 * A pack is its folder. The skills of a workspace or of a linked folder are only their own folders: what lies around them is the user's work.
 * Skills that lie elsewhere, or behind a link, are added.
 */
async function foldersOf(agent: ReviewedAgent, base: string): Promise<string[]> {
  const folders = isPack(agent) ? [base] : [];
  for (const { dir } of agent.skills) {
    const real = await realpath(dir).catch(() => undefined);
    if (real !== undefined && !folders.some(folder => isInside(folder, real))) folders.push(real);
  }
  return folders;
}

/** Where a repository belongs to what was got as one: the folders that are read, and each skill of a folder that only collects skills. */
async function topsOf(agent: ReviewedAgent, base: string, folders: readonly string[]): Promise<string[]> {
  const collected = agent.skills.filter(({ dir }) => dirname(dir) === agent.packDir);
  const own = await Promise.all(collected.map(({ dir }) => realpath(dir).catch(() => base)));
  return [...folders, ...own];
}

/** The working folder where it lies inside the agent's own folder and is fit to be left out; undefined for any other. */
async function innerWorkFolder(agent: ReviewedAgent, base: string): Promise<string | undefined> {
  const { packDir, workingDir, skills } = agent;
  if (!isPack(agent)) return undefined;
  const work = await resolvePath(workingDir, packDir, packDir).catch(() => undefined);
  if (work === undefined || work === base || !isInside(base, work)) return undefined;
  // Programs look into these by themselves.
  const parts = relative(base, work).split(sep);
  if (parts.some(part => isRepositoryName(part) || folded(part) === 'node_modules')) return undefined;
  const dirs = await Promise.all(skills.map(({ dir }) => realpath(dir).catch(() => dirname(work))));
  return dirs.some(dir => isInside(work, dir)) ? undefined : work;
}
