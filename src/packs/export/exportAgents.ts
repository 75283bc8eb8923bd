/** Writes agents as folders that other hosts install: the portable plugin, a VS Code extension, bare skills. */

import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { isInside, readText, temporaryPrefix, writeNew } from '@telos/engine/files';
import { type Agent, hasHooks } from '@telos/engine/skills';
import { contentsOf, fileText, swapFolder } from '@telos/engine/undo';
import { sentence } from '@telos/protocol/text';
import {
  type AgentFiles,
  agentFiles,
  type ExportChoice,
  type FileToPack,
  type Refusal,
} from './agentFiles.ts';
import { marketplaceText, packageOf, pluginFiles, pluginNameProblem } from './manifests.ts';

export type ExportForm = 'plugin' | 'vscode' | 'skills';

export interface ExportOptions {
  /** Absolute. */
  to: string;
  as: ExportForm;
  /** Mends copies of skills that other hosts would refuse. */
  mend?: boolean;
  /** Name of a catalog that is written beside the agents. Only for plugins. */
  marketplace?: string | undefined;
  /** Exports also what the look before finds of level high, but never a secret. */
  allowHigh?: boolean;
  /**
   * Folders that are replaced are kept for undo. Anybody's skill can be in the place of a bare one, so the person is asked before.
   * Without it, no skill is replaced, and of an export nothing is kept.
   */
  replacing?: { dataDir: string; agrees(folders: readonly string[]): Promise<boolean> };
}

export interface ExportedAgent {
  agent: string;
  /** Absolute. */
  folder: string;
  skills: readonly string[];
  servers: readonly string[];
  /** What others do not get, a sentence each. */
  notes: readonly string[];
  scan: Pick<AgentFiles['scan'], 'read' | 'of' | 'high' | 'medium' | 'low'>;
  /** Ids for undo, of the folders that were replaced by it. */
  undoIds: readonly string[];
}

/** Thrown if an agent cannot be exported as it is. Nothing was written. */
export class ExportRefused extends TelosError {
  /** The choices that change a part of it. */
  readonly unless: ReadonlySet<keyof ExportChoice>;
  /** True if no choice is enough: something else has to change before. */
  readonly isFinal: boolean;

  constructor(refused: readonly Refusal[]) {
    super('pack', [...refused.map(({ text }) => text), 'Nothing was written.'].join('\n'));
    this.unless = new Set(refused.flatMap(({ unless }) => unless ?? []));
    this.isFinal = refused.some(({ unless }) => unless === undefined);
  }
}

/**
 * Writes the agents and returns what was written. An export of before is replaced, as one step for each agent. Throws ExportRefused
 * with every reason if one of them cannot be exported, and TelosError `pack` if what is in the way is not replaced.
 */
export async function exportAgents(
  agents: readonly Agent[],
  { to, as, mend = false, allowHigh = false, marketplace, replacing }: ExportOptions,
): Promise<ExportedAgent[]> {
  const parts = agents.map(agent => ({ agent, content: agentFiles(agent, { mend, allowHigh }) }));
  const refused: Refusal[] = parts.flatMap(({ agent, content }) => [
    ...[pluginNameProblem(agent.name)].filter(problem => problem !== undefined).map(text => ({ text })),
    ...content.refused.map(reason => ({ ...reason, text: `${agent.name}: ${reason.text}` })),
  ]);
  const catalog = marketplace === undefined ? undefined : marketplaceText(marketplace, agents);
  const together = as === 'skills' ? sameSkills(parts) : [];
  for (const text of [...together, ...parts.flatMap(part => overSource(part, to, as))])
    refused.push({ text });
  if (refused.length > 0) throw new ExportRefused(refused);
  const others = as === 'skills' ? await otherSkills(parts, join(to, 'skills')) : [];
  if (others.length > 0 && !(await replacing?.agrees(others)))
    throw new TelosError('pack', [
      others.length === 1
        ? sentence('{0} is there already.', others.join())
        : sentence('{0} are there already.', others.join(', ')),
      sentence('Nothing was written.'),
    ]);
  const written: ExportedAgent[] = [];
  for (const { agent, content } of parts) {
    const keeping = { agent: agent.name, dataDir: replacing?.dataDir };
    const whole = join(to, agent.name);
    const undoIds: string[] = [];
    if (as === 'plugin') undoIds.push(...(await putFolder(whole, pluginFiles(agent, content), keeping)));
    else if (as === 'vscode') undoIds.push(...(await putFolder(whole, packageOf(agent, content), keeping)));
    else undoIds.push(...(await writeSkills(join(to, 'skills'), content, keeping)));
    const folder = as === 'skills' ? to : whole;
    const report = reportOf(agent, content, folder);
    const parts = agent.skills
      .filter(({ kind }) => kind !== undefined && kind !== 'servers')
      .map(({ id }) => id);
    if (as === 'skills' && hasHooks(agent.packDir))
      report.notes = [...report.notes, 'Hooks are left out, as only a plugin has them.'];
    if (as === 'skills' && parts.length > 0)
      report.notes = [
        ...report.notes,
        `Commands and agents are left out, as only a plugin has them: ${parts.join(', ')}.`,
      ];
    written.push({ ...report, undoIds });
  }
  if (catalog !== undefined) {
    await mkdir(join(to, '.claude-plugin'), { recursive: true });
    await putFile(join(to, '.claude-plugin', 'marketplace.json'), catalog);
  }
  return written;
}

function reportOf(
  { name }: Agent,
  { skills, servers, notes, scan }: AgentFiles,
  folder: string,
): Omit<ExportedAgent, 'undoIds'> {
  const { read, of, high, medium, low } = scan;
  return {
    agent: name,
    folder,
    skills: skills.map(({ id }) => id),
    servers: Object.keys(servers.withVariables),
    notes,
    scan: { read, of, high, medium, low },
  };
}

function sameSkills(parts: readonly { agent: Agent; content: AgentFiles }[]): string[] {
  const owners = new Map<string, string>();
  return parts.flatMap(({ agent, content }) =>
    content.skills.flatMap(({ id }) => {
      const other = owners.get(id);
      owners.set(id, agent.name);
      return other === undefined
        ? []
        : [`${agent.name} and ${other} both have a skill '${id}'. Export them into two folders.`];
    }),
  );
}

/** Returns the folders that the export of an agent replaces. */
export function exportTargets(
  { name }: Pick<Agent, 'name'>,
  skills: readonly Pick<AgentFiles['skills'][number], 'id'>[],
  { to, as }: Pick<ExportOptions, 'to' | 'as'>,
): string[] {
  return as === 'skills' ? skills.map(({ id }) => join(to, 'skills', id)) : [join(to, name)];
}

/** A folder that is replaced must not be, or hold, what is exported. */
function overSource(
  { agent, content }: { agent: Agent; content: AgentFiles },
  to: string,
  as: ExportForm,
): string[] {
  const sources = [agent.packDir, ...agent.skills.map(({ dir }) => dir)].map(realFolder);
  return exportTargets(agent, content.skills, { to, as })
    .filter(target => sources.some(source => isInside(realFolder(target), source)))
    .map(target => `${target} contains the files of ${agent.name} itself. Choose another folder.`);
}

const realFolder = (path: string): string => (existsSync(path) ? realpathSync.native(path) : path);

interface Keeping {
  agent: string;
  /** Undefined if no one wants the old folder back. */
  dataDir: string | undefined;
}

/**
 * Puts a folder with these files in the place of one that was exported before, and keeps that one if it is another. Returns the id for
 * undo if it did. Throws TelosError `pack` for any other folder.
 */
async function putFolder(
  target: string,
  files: readonly FileToPack[],
  { agent, dataDir }: Keeping,
): Promise<string[]> {
  refuseOther(target);
  if (existsSync(target) && (await holds(target, files))) return [];
  if (dataDir === undefined || !existsSync(target)) {
    await replaceFolder(target, files);
    return [];
  }
  const { record } = await swapFolder(dataDir, {
    kind: 'install',
    agent: basename(target),
    target,
    source: `the export of ${agent}`,
    replaces: true,
    async prepare(staged) {
      await writeFiles(staged, files);
      return { left: (await contentsOf(staged)) ?? null, along: [] };
    },
  });
  return [record.id];
}

async function replaceFolder(target: string, files: readonly FileToPack[]): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const staged = join(dirname(target), `${temporaryPrefix}${randomUUID()}`);
  const old = `${staged}-old`;
  try {
    await writeFiles(staged, files);
    if (existsSync(target)) await rename(target, old);
    await rename(staged, target);
  } catch (error) {
    if (existsSync(old) && !existsSync(target)) await rename(old, target);
    throw error;
  } finally {
    await rm(staged, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
  }
}

function refuseOther(target: string): void {
  if (existsSync(target) && !isExport(target))
    throw new TelosError('pack', [
      sentence('{0} already exists and was not exported by Telos.', target),
      sentence('Choose another folder.'),
      sentence('It was not changed.'),
    ]);
}

/** An export has a manifest, or for bare skills nothing but a SKILL.md and what it needs. An empty folder may be replaced too. */
function isExport(folder: string): boolean {
  const names = readdirSync(folder);
  if (names.includes('.git')) return false;
  if (names.length === 0 || names.includes('plugin.json')) return true;
  if (!names.includes('package.json')) return names.includes('SKILL.md');
  return /"chatSkills"|"chatPlugins"/.test(readText(join(folder, 'package.json')));
}

async function writeFiles(folder: string, files: readonly FileToPack[]): Promise<void> {
  for (const { path, bytes, executable } of files) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, bytes);
    await chmod(file, executable ? 0o755 : 0o644);
  }
}

/** Writes a file that everybody may read, as one step. */
async function putFile(path: string, bytes: Buffer | string): Promise<void> {
  const temporary = join(dirname(path), `${temporaryPrefix}${randomUUID()}.tmp`);
  await writeNew(temporary, bytes, { mode: 0o644 });
  await rename(temporary, path);
}

/** Returns the files of each skill, by its name, with paths below its folder. */
const bySkill = ({
  files,
  skills,
}: AgentFiles): [skill: AgentFiles['skills'][number], files: FileToPack[]][] =>
  skills.map(skill => {
    const top = `skills/${skill.id}/`;
    const own = files.filter(({ path }) => path.startsWith(top));
    return [skill, own.map(file => ({ ...file, path: file.path.slice(top.length) }))];
  });

/** Returns the folders of skills that are there and hold anything else than what would be written. */
async function otherSkills(parts: readonly { content: AgentFiles }[], folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const [{ id }, files] of parts.flatMap(({ content }) => bySkill(content))) {
    const target = join(folder, id);
    refuseOther(target);
    if (existsSync(target) && !(await holds(target, files))) found.push(target);
  }
  return found;
}

async function holds(folder: string, files: readonly FileToPack[]): Promise<boolean> {
  const wanted = files.map(({ path, bytes, executable }) => [
    path,
    fileText(createHash('sha256').update(bytes).digest('hex'), executable ? 0o755 : 0o644),
  ]);
  const there = Object.entries((await contentsOf(folder)) ?? { '': '' });
  const text = (entries: readonly (readonly string[])[]): string => JSON.stringify(entries.toSorted());
  return text(there.filter(([, kind]) => kind !== 'folder')) === text(wanted as string[][]);
}

async function writeSkills(folder: string, content: AgentFiles, keeping: Keeping): Promise<string[]> {
  const undoIds: string[] = [];
  for (const [{ id }, files] of bySkill(content))
    undoIds.push(...(await putFolder(join(folder, id), files, keeping)));
  return undoIds;
}
