/** All files of an agent with their digests: what a review is bound to. */
import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import type { CardFolder } from '../../protocol/agentCard.ts';
import type { Agent } from '../agents/agent.ts';
import { isInside } from '../tools/paths.ts';
import { isSensitive } from '../tools/secretNames.ts';
import { chosenFolders } from './chosenFolders.ts';

/** What the policy wants to know of an agent. */
export type ReviewedAgent = Pick<
  Agent,
  'name' | 'packDir' | 'workingDir' | 'unaskedWithin' | 'source' | 'mcpConfig'
> & {
  skills: readonly Pick<Agent['skills'][number], 'dir' | 'file' | 'within'>[];
  diagnostics?: Agent['diagnostics'];
};

export interface AgentFile {
  /** Real and absolute. */
  path: string;
  sha256: string;
  size: number;
  executable: boolean;
  /** A link is bound to what it says, and its target is no file of the agent. */
  isLink: boolean;
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
}

const mostFiles = 5000;
const mostBytes = 256 * 1024 * 1024;

/** Remembers digests while a file's times, size and inode stay; one per run or window. */
export class FileDigests {
  readonly #known = new Map<string, { stamp: string; sha256: string }>();

  async digestOf(path: string): Promise<{ sha256: string; size: number; mode: number }> {
    const stats = await lstat(path, { bigint: true });
    const size = Number(stats.size);
    const mode = Number(stats.mode);
    const stamp = [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ');
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return { sha256: known.sha256, size, mode };
    const fresh = Date.now() - Number(stats.ctimeMs) < 100;
    const sha256 = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    // A second write within one tick of the file system's clock would look like this one.
    if (!fresh) this.#known.set(path, { stamp, sha256 });
    return { sha256, size, mode };
  }
}

/** Reads every file of the agent. Throws what the file system says, but for files that vanish meanwhile. */
export async function readAgentFiles(agent: ReviewedAgent, digests: FileDigests): Promise<AgentFiles> {
  const files = new Map<string, AgentFile>();
  const base = await realpath(agent.packDir).catch(() => agent.packDir);
  const leaveOut = await ownWorkFolder(agent, base);
  let bytes = 0;
  let tooLarge = false;
  const addFile = async (path: string, isLink: boolean): Promise<void> => {
    const label = isInside(base, path) ? relative(base, path).split(sep).join('/') : path;
    if (files.has(label) || tooLarge) return;
    if (isLink) {
      const sha256 = createHash('sha256')
        .update(`link\0${await readlink(path)}`)
        .digest('hex');
      files.set(label, { path, sha256, size: 0, executable: false, isLink });
      return;
    }
    const { size } = await lstat(path);
    bytes += size;
    if (files.size >= mostFiles || bytes > mostBytes) {
      tooLarge = true;
      return;
    }
    const { sha256, mode } = await digests.digestOf(path);
    files.set(label, { path, sha256, size, executable: (mode & 0o111) !== 0, isLink });
  };
  const addFolder = async (folder: string): Promise<void> => {
    if (tooLarge || folder === leaveOut) return;
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && entry.name !== '.git') await addFolder(path);
      else if (entry.isFile() || entry.isSymbolicLink()) await addFile(path, entry.isSymbolicLink());
    }
  };
  const addRead = async (path: string, isSkill: boolean): Promise<void> => {
    const real = await realpath(path).catch(() => undefined);
    // Nor does anybody else read such a skill.
    if (isSkill && real !== undefined && isSensitive(real)) return;
    // What is no file holds nothing that could be reviewed, and reading it might never end.
    const isFile = real !== undefined && (await stat(real).catch(() => undefined))?.isFile();
    if (isFile) await addFile(real, false).catch(() => undefined);
  };
  for (const folder of await foldersOf(agent, base)) await addFolder(folder);
  // What is read over a link is as much a part of the agent as what lies in its folder.
  if (agent.mcpConfig !== undefined) await addRead(agent.mcpConfig, false);
  for (const { file } of agent.skills) await addRead(file, true);
  const lines = [...files].map(([label, { sha256 }]) => `${escaped(label)}:${sha256}`).sort();
  const folders = chosenFolders(agent);
  lines.push(...folders.map(({ path, access }) => `folder:${JSON.stringify([access, path])}`));
  const digest = createHash('sha256').update(lines.join('\n')).digest('hex');
  return { files, digest, folders, tooLarge };
}

/** A line stays a line, whatever a file is called: otherwise other files of other names could make the same lines. */
const escaped = (label: string): string => label.replace(/[\\\n]/g, sign => (sign === '\n' ? '\\n' : '\\\\'));

/**
 * A pack is its folder. The skills of a workspace or of a linked folder are only their own folders: what lies around them is the user's work.
 * Skills that lie elsewhere, or behind a link, are added.
 */
async function foldersOf(agent: ReviewedAgent, base: string): Promise<string[]> {
  const isPack = agent.source === 'user' || agent.source === 'builtin';
  const folders = isPack ? [base] : [];
  for (const { dir } of agent.skills) {
    const real = await realpath(dir).catch(() => undefined);
    if (real !== undefined && !folders.some(folder => isInside(folder, real))) folders.push(real);
  }
  return folders;
}

/** Where the agent works inside its own folder, that part changes with every run; unless its skills lie there too. */
async function ownWorkFolder(agent: ReviewedAgent, base: string): Promise<string | undefined> {
  const work = await realpath(agent.workingDir).catch(() => undefined);
  if (work === undefined || work === base || !isInside(base, work)) return undefined;
  const holdsSkills = await Promise.all(
    agent.skills.map(async ({ dir }) => isInside(work, await realpath(dir).catch(() => dirname(work)))),
  );
  return holdsSkills.includes(true) ? undefined : work;
}
