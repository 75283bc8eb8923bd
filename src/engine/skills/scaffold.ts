/** Creates a SKILL.md to start from and the sample packs, and checks the names that folders of skills and agents may have. */
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { createWhole } from '../files/atomicWrite.ts';
import { temporaryPrefix } from '../files/globPattern.ts';
import { lockName } from '../files/lockText.ts';
import { isOccupied } from '../files/swapFolder.ts';
import { discover } from './discover.ts';
import { skillNameProblem } from './packSkills.ts';

const maxNameLength = 64;

/** Returns what is wrong with the name of an agent's folder, in a sentence. Returns undefined if nothing is. */
export function agentNameProblem(name: string): Sentence | undefined {
  if (name.length > maxNameLength) return sentence('At most {0} characters, please.', maxNameLength);
  return /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name)
    ? undefined
    : sentence('Letters, digits, hyphens and underscores, starting with a letter or digit.');
}

/** Writes `<skillsDir>/<name>/SKILL.md`. Returns its path, or undefined if that folder exists already. */
export async function writeNewSkill(skillsDir: string, name: string): Promise<string | undefined> {
  const folder = join(skillsDir, name);
  const placed = await placeFolder(folder, async staged => {
    const file = await open(join(staged, 'SKILL.md'), 'wx');
    try {
      await file.writeFile(skillText(name));
      await file.sync();
    } finally {
      await file.close();
    }
  });
  return placed ? join(folder, 'SKILL.md') : undefined;
}

function skillText(name: string): string {
  const title = name.replaceAll('-', ' ');
  return `---
name: ${name}
description: Use when the user wants ... (one sentence, in the words they would use)
---

# ${title.charAt(0).toUpperCase()}${title.slice(1)}

Say what to do, step by step, as you would tell a colleague:

1. Read ...
2. Ask for nothing that the request already says.
3. Write the result to \`${name}.md\` and say in two sentences what it contains.
`;
}

/** Copies each agent of `samplesDir` into `skillsDir`. An existing one stays as it is. Returns the names added. */
export async function addSamplePack(samplesDir: string, skillsDir: string): Promise<string[]> {
  const added: string[] = [];
  for (const entry of await readdir(samplesDir, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const source = join(samplesDir, entry.name);
    const copy = (staged: string): Promise<void> => cp(source, staged, { recursive: true });
    if (await placeFolder(join(skillsDir, entry.name), copy)) added.push(entry.name);
  }
  return added;
}

/** Copies the folder in which the sample is tried to a new temporary place, which belongs to the person alone. Returns that. */
export async function copySampleFolder(workspace: string): Promise<string> {
  const folder = join(await realpath(await mkdtemp(join(tmpdir(), 'telos-'))), 'sample');
  await cp(workspace, folder, { recursive: true });
  return folder;
}

const maxLength = 64;

/** Matches names that Windows opens as a device, with any ending and in any case. */
const deviceName = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$/i;

/** Names that Telos itself uses, or that are skipped when skills are searched. */
const reserved = new Set(['telos', 'skills', 'node_modules', lockName]);

/** Returns what is wrong with the name of an agent, as the rest of a sentence. Returns undefined if nothing is. */
export function packNameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'is empty';
  if (/[/\\]/.test(name)) return 'contains a slash or a backslash';
  if (name.includes('..') || name === '.') return 'leads to another folder';
  if (/^[A-Za-z]:/.test(name) || name.startsWith('~')) return 'is a path';
  if (name.startsWith('.') || name.startsWith('-')) return 'starts with a dot or a hyphen';
  if (name !== name.trim() || name.endsWith('.')) return 'begins or ends with a space, or ends with a dot';
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>:"|?*]/u.test(name)) return 'contains a character that no folder may have';
  if (name.length > maxLength) return `has more than ${maxLength} characters`;
  if (deviceName.test(name)) return 'is a device on Windows';
  if (reserved.has(name.toLowerCase())) return 'is reserved';
  return undefined;
}

/** Throws TelosError `pack` if a name may not be used. `from` says where the name is from. */
export function checkPackName(name: string, from: string): void {
  const problem = packNameProblem(name);
  if (!problem) return;
  throw new TelosError(
    'pack',
    `The agent name ${JSON.stringify(name)} (${from}) ${problem}. Use letters, digits, spaces, hyphens and underscores. Nothing was changed.`,
  );
}

/**
 * Adds a skill to an agent. Returns the path of the new SKILL.md. Throws TelosError `pack` if a name is unusable or the skill
 * exists.
 */
export async function addSkill(agentName: string, skillName: string, config: Config): Promise<string> {
  const problem = skillNameProblem(skillName);
  if (problem)
    throw new TelosError('pack', [
      sentence('{0} cannot be the name of a skill.', JSON.stringify(skillName)),
      problem,
    ]);
  const agent = discover(config).agents.find(({ name }) => name === agentName);
  if (agent?.source === 'builtin') {
    throw new TelosError('pack', [
      sentence("Agent '{0}' comes with Telos.", agentName),
      sentence('Give the skill to an agent of your own.'),
    ]);
  }
  if (agent?.skills.some(({ dir }) => dir === agent.packDir)) {
    throw new TelosError('pack', [
      sentence("Agent '{0}' is a single skill, {1}.", agentName, agent.packDir),
      sentence('Give the skill to another agent.'),
    ]);
  }
  if (!agent) {
    checkPackName(agentName, 'as given');
    const agentProblem = agentNameProblem(agentName);
    if (agentProblem) {
      throw new TelosError('pack', [
        sentence('{0} cannot be the name of an agent.', JSON.stringify(agentName)),
        agentProblem,
      ]);
    }
  }
  const skillsDir = agent?.skillsDir ?? join(config.skillsDir, agentName, 'skills');
  const file = await writeNewSkill(skillsDir, skillName);
  if (file) return file;
  throw new TelosError('pack', [
    sentence('The skill {0} exists already.', join(skillsDir, skillName)),
    sentence('Nothing was changed.'),
  ]);
}

export interface InitialFolders {
  configFile: string;
  skillsDir: string;
  /** False if agents.toml existed already. It is then unchanged. */
  configWritten: boolean;
}

/** Creates the config folder with a commented agents.toml, and the skills folder. Existing files are left alone. */
export async function initFolders({ configDir, skillsDir }: Config): Promise<InitialFolders> {
  await mkdir(configDir, { recursive: true, mode: 0o700 });
  await mkdir(skillsDir, { recursive: true });
  const configFile = join(configDir, 'agents.toml');
  return { configFile, skillsDir, configWritten: await createWhole(configFile, commentedAgentsToml) };
}

const commentedAgentsToml = `# What you want different about your agents. Everything here is optional.
# Agents are found by themselves: each folder in the skills folder with skills/<skill>/SKILL.md is one.
# Keys and tokens go into the file .env beside this one, as NAME=value.

# Lay a value over that of an agent:
# [agents.kairos]
# working_dir = "~/notes"          # where it reads and writes; "." is the folder you call telos in
# description = "My day"
# mcp_config = "~/mcp.json"

# Use skills where they lie, an Obsidian vault for one:
# [agents.vault]
# skills_dir = "~/vault/skills"
# working_dir = "~/vault"
`;

type Fill = (folder: string) => Promise<void>;

/**
 * Fills a folder beside `target` and moves it there. Returns false if `target` already contains something, which stays unchanged.
 * Throws the errors of `fill` and of the file system.
 */
export async function placeFolder(target: string, fill: Fill): Promise<boolean> {
  return withStaged(target, fill, async staged => {
    try {
      await rename(staged, target);
      return true;
    } catch (error) {
      if (isOccupied(error)) return false;
      throw error;
    }
  });
}

async function withStaged(
  target: string,
  fill: Fill,
  finish: (staged: string) => Promise<boolean>,
): Promise<boolean> {
  await mkdir(dirname(target), { recursive: true });
  const staged = join(dirname(target), `${temporaryPrefix}${randomUUID()}`);
  await mkdir(staged);
  try {
    await fill(staged);
    return await finish(staged);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}
