/** Collects the files of an agent that other people may have, and says what stays behind and why. */

import { lstatSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inPlugin, isInside, isSensitive, readRegularFile, realIfThere } from '@telos/engine/files';
import { literalSecrets, readMcpConfig } from '@telos/engine/mcp';
import { type Agent, exportedFolder, hasHooks, problemsElsewhere } from '@telos/engine/skills';
import { type Finding, flagWords } from '@telos/protocol/agentCard';
import { type ScanReport, scanFiles } from '../audit/scan.ts';
import { type PortableServers, portableServers } from './portableServers.ts';
import { mendedSkill, portableName } from './portableSkill.ts';

export interface FileToPack {
  /** With `/`. */
  path: string;
  bytes: Buffer;
  executable: boolean;
}

export interface ExportedSkill {
  /** Name of its folder. */
  id: string;
  description: string;
}

export interface AgentFiles {
  /** Below the folder of the export. The skills lie in `skills/`. Sorted by path. */
  files: readonly FileToPack[];
  skills: readonly ExportedSkill[];
  servers: PortableServers;
  /** Why it cannot be exported, a sentence each. */
  refused: readonly Refusal[];
  /** What others do not get, a sentence each. */
  notes: readonly string[];
  scan: ScanReport;
}

const skipped = /^(?:\.git|node_modules|__pycache__|\.DS_Store|\.clawhub|\.venv)$|^\.telos-/;
const recordings = /(?:^|\/)(?:evals|recordings?)\/|(?:^|\/)recording[\w-]*\.jsonl$/;
const ofPeople = /^(?:licen[cs]e|notice|readme|changelog)\b[^/]*$/i;
const homePath = /(?:\/(?:home|Users)\/[^\s/"'`)]+|[A-Z]:\\Users\\[^\s\\"'`)]+)/;

/** Why an agent is not exported, and the choice that would change that, if one would. */
export interface Refusal {
  text: string;
  unless?: keyof ExportChoice;
}

export interface ExportChoice {
  /** Makes a copy of each skill such that every host loads it. */
  mend: boolean;
  /** Takes also what the look before finds of level high. */
  allowHigh: boolean;
}

/** Returns the files of an agent. */
export function agentFiles(agent: Agent, { mend, allowHigh }: ExportChoice): AgentFiles {
  const collected = new Collected();
  const skills = agent.skills.filter(isSkill).map(skill => {
    const id = mend ? portableName(skill.id) || skill.id : skill.id;
    const from = join(skill.dir, basename(skill.file));
    collected.addFolder(
      skill.dir,
      `skills/${id}`,
      basename(skill.file),
      agent.skills.filter(isSkill).map(({ dir }) => dir),
    );
    addSkill(collected, { id, from }, mend);
    return { id, description: skill.description };
  });
  if (new Set(skills.map(({ id }) => id)).size < skills.length)
    collected.refuse('Two of its skills would have one name.');
  if (agent.skills.length === 0 && !hasHooks(agent.packDir)) collected.refuse('It has no skills.');
  for (const { kind, id, file } of agent.skills)
    if (kind && kind !== 'servers')
      collected.add(file, `${partFolders[kind]}/${id.replace(/^(?:commands|agents)\//, '')}.md`);
  addOwn(collected, agent);
  const servers = serversOf(agent, collected);
  const scan = scanFiles(collected.files.map(file => ({ ...file, size: file.bytes.length })));
  for (const finding of scan.findings)
    if (finding.kind === 'hard-coded-secret') collected.refuse(secretSentence(finding));
    else if (finding.level === 'high' && !allowHigh) collected.refuse(highSentence(finding), 'allowHigh');
  collected.notes.push(...homePaths(collected.files));
  const files = collected.files.sort((one, other) => (one.path < other.path ? -1 : 1));
  const { refused, notes } = collected;
  return { files, skills, servers, refused, notes: [...notes, ...servers.notes], scan };
}

const isSkill = ({ kind }: { kind?: unknown }): boolean => kind === undefined;
/** Where each host looks for commands and roles. */
const partFolders = { command: 'commands', role: 'agents' } as const;

const secretSentence = ({ file, line, text }: Finding): string =>
  `${file}:${line} contains a secret: ${text}. Withdraw it and read it from a variable.`;

const highSentence = ({ file, line, kind, text }: Finding): string =>
  `${file}:${line} ${flagWords(kind)}${text === '' ? '' : `: ${text}`}, which is of level high.`;

class Collected {
  readonly files: FileToPack[] = [];
  readonly refused: Refusal[] = [];
  readonly notes: string[] = [];

  refuse(text: string, unless?: keyof ExportChoice): void {
    this.refused.push({ text, ...(unless && { unless }) });
  }

  has = (path: string): boolean => this.files.some(file => file.path === path);

  add(from: string, path: string): void {
    try {
      const bytes = readRegularFile(from);
      this.files.push({ path, bytes, executable: (lstatSync(from).mode & 0o111) !== 0 });
    } catch {
      this.refuse(`${path} cannot be read.`);
    }
  }

  /** Adds what is below a folder, without `own`, which is its SKILL.md, and without the folders of other skills. */
  addFolder(folder: string, path: string, own: string, others: readonly string[] = []): void {
    for (const entry of sortedEntries(folder)) {
      const from = join(folder, entry.name);
      const to = `${path}/${entry.name}`;
      if (entry.name === own || others.includes(from)) continue;
      const why = leftOut(to, from, entry);
      if (why !== undefined) this.notes.push(`${to} is left out: ${why}.`);
      else if (entry.isDirectory()) this.addFolder(from, to, '', others);
      else this.add(from, to);
    }
  }
}

function sortedEntries(folder: string) {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter(({ name }) => !/^\.DS_Store$/.test(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function leftOut(
  path: string,
  from: string,
  entry: { name: string; isSymbolicLink(): boolean; isFile(): boolean; isDirectory(): boolean },
): string | undefined {
  if (entry.isSymbolicLink()) return 'it is a link';
  if (!entry.isFile() && !entry.isDirectory()) return 'it is neither a file nor a folder';
  if (skipped.test(entry.name)) return 'it belongs to a program';
  if (isSensitive(from) || /^\.env(?:\.(?!example|sample|template).*)?$/.test(entry.name))
    return 'it can hold secrets';
  return recordings.test(entry.isDirectory() ? `${path}/` : path)
    ? 'it is a recording or a test of yours'
    : undefined;
}

function addSkill(collected: Collected, { id, from }: { id: string; from: string }, mend: boolean): void {
  const path = `skills/${id}/SKILL.md`;
  collected.add(from, path);
  const file = collected.files.at(-1);
  if (file?.path !== path) return;
  if (mend && problemsElsewhere(file.bytes, id).length > 0) {
    file.bytes = mendedSkill(file.bytes, id);
    collected.notes.push(`${path} was fixed in the copy; the skill itself is unchanged.`);
  }
  for (const problem of problemsElsewhere(file.bytes, id))
    if (mend) collected.refuse(`The skill '${id}' ${problem}. A program cannot fix that.`);
    else collected.refuse(`The skill '${id}' ${problem}. Fix it, or export a fixed copy.`, 'mend');
}

/** Adds what a pack has beside its skills: all of it, or only what tells about it if the person works in its folder. */
function addOwn(collected: Collected, agent: Agent): void {
  const { packDir, skillsDir, workingDir, source } = agent;
  if (source === 'project') return;
  const isPack =
    !agent.isForeign || skillsDir === join(packDir, 'skills') || (hasHooks(packDir) && source === 'user');
  const worksInside = isInside(real(packDir), real(workingDir));
  for (const entry of sortedEntries(packDir)) {
    const from = join(packDir, entry.name);
    const { name } = entry;
    if (agent.skills.some(one => isSkill(one) && one.dir === packDir) || collected.has(name)) continue;
    const isSkills = agent.skills.some(({ dir }) => isInside(from, dir));
    const isMade = /^(?:mcp\.json|\.mcp\.json|plugin\.json|\.claude-plugin|\.plugin|marketplace\.json)$/.test(
      name,
    );
    if (isSkills || isMade || name === exportedFolder) continue;
    const tells = name === 'agent.toml' || ofPeople.test(name);
    const why = leftOut(name, from, entry);
    if (why !== undefined) collected.notes.push(`${name} is left out: ${why}.`);
    else if (tells && entry.isFile()) collected.add(from, name);
    else if (!isPack || worksInside || name.startsWith('.'))
      collected.notes.push(
        `${name} is left out: ${worksInside ? 'the agent works in this folder, so it may be yours' : 'it is not part of a skill'}.`,
      );
    else if (entry.isDirectory()) collected.addFolder(from, name, '');
    else collected.add(from, name);
  }
}

function serversOf({ mcpConfig, packDir }: Agent, collected: Collected): PortableServers {
  const none = { portable: {}, withVariables: {}, notes: [], refused: [] };
  if (mcpConfig === undefined) return none;
  const { servers, problems } = readMcpConfig(mcpConfig);
  const placed = new Map([...servers].map(([name, server]) => [name, inPlugin(server)]));
  const found = portableServers(placed, real(packDir), collected.has);
  const secrets = literalSecrets(Object.fromEntries(servers));
  for (const problem of [...problems, ...found.refused]) collected.refuse(problem);
  if (secrets.length > 0)
    collected.refuse(
      `${basename(mcpConfig)} contains a secret. Put it into a variable and write \${NAME} there.`,
    );
  // The portable file says all of a plugin's.
  if ([...servers.values()].some(server => !server.isOfPlugin && !('pluginRoot' in server)))
    collected.add(mcpConfig, `${exportedFolder}/mcp.json`);
  return found;
}

const real = (path: string): string => realIfThere(path) ?? path;

function homePaths(files: readonly FileToPack[]): string[] {
  return files.flatMap(({ path, bytes }) => {
    if (bytes.includes(0)) return [];
    const lines = bytes.toString('utf8').split('\n');
    const line = lines.findIndex(text => homePath.test(text.slice(0, 2000)));
    return line < 0
      ? []
      : [`${path}:${line + 1} names a folder of a person: ${homePath.exec(lines[line]!)?.[0]}.`];
  });
}
