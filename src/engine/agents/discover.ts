/** Finds every agent and skill on disk: packs in the skills folder and the skills of trusted workspaces. */
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { type Config, expandPath } from '../config.ts';
import type { Agent, SkillSource } from './agent.ts';
import { readAgentToml } from './agentToml.ts';
import { type FileSkill, openSkill, skillFileIn } from './skillFile.ts';

/** An Agent whose skills know their names without being parsed; what the engine's own rooms work on. */
export interface FileAgent extends Agent {
  readonly skills: readonly FileSkill[];
}

const skippedFolders = new Set(['.git', 'node_modules']);
/** Folders below a root are searched to this depth; a skill's own folder ends the search. */
const maxDepth = 4;

/** All agents with at least one skill, sorted by name. Of two packs with one name the later folder wins, as the original did. */
export function discoverAgents(config: Config): FileAgent[] {
  const agents = new Map<string, FileAgent>();
  for (const entry of foldersIn(config.skillsDir)) {
    const agent = openPack(join(config.skillsDir, entry), config);
    if (agent) agents.set(agent.name, agent);
  }
  for (const folder of config.workspaceFolders) {
    const skills = findSkills(join(folder.path, '.claude', 'skills'), 'project');
    if (skills.length === 0) continue;
    const name = agents.has(folder.name) ? `${folder.name} (workspace)` : folder.name;
    agents.set(name, {
      name,
      description: `Skills of the workspace folder ${folder.name}`,
      skills,
      packDir: folder.path,
      workingDir: folder.path,
      source: 'project',
      diagnostics: [],
    });
  }
  return [...agents.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** A folder with a `skills` folder, or with a SKILL.md of its own; undefined for any other folder. */
function openPack(packDir: string, config: Config): FileAgent | undefined {
  let skills = findSkills(join(packDir, 'skills'), 'user');
  const own = skills.length === 0 ? skillFileIn(packDir) : undefined;
  if (own) skills = [openSkill(own, 'user')];
  if (skills.length === 0) return undefined;
  const { fields, diagnostics } = readAgentToml(packDir);
  const name = fields.name ?? basename(packDir);
  const mcpConfig = join(packDir, 'mcp.json');
  return {
    name,
    get description() {
      return fields.description ?? skills[0]?.description ?? '';
    },
    skills,
    packDir,
    workingDir: expandPath(fields.working_dir ?? `~/obsidian/telos/${name}`, config.home, config.cwd),
    source: 'user',
    ...(existsSync(mcpConfig) ? { mcpConfig } : {}),
    diagnostics,
  };
}

/**
 * The skills below a root, sorted by id. The search stops at a folder with a skill file, follows links and guards against cycles.
 * Where two folders share a name, each is called by its path below the root.
 */
export function findSkills(root: string, source: SkillSource): FileSkill[] {
  const files: { dir: string; file: string }[] = [];
  const visited = new Set<string>();
  const visit = (dir: string, depth: number): void => {
    const realDir = realPath(dir);
    if (realDir === undefined || visited.has(realDir)) return;
    visited.add(realDir);
    const file = depth > 0 ? skillFileIn(dir) : undefined;
    if (file) files.push({ dir, file });
    else if (depth < maxDepth) for (const name of foldersIn(dir)) visit(join(dir, name), depth + 1);
  };
  visit(root, 0);
  const count = new Map<string, number>();
  for (const { dir } of files) count.set(basename(dir), (count.get(basename(dir)) ?? 0) + 1);
  return files
    .map(({ dir, file }) => {
      const path = relative(root, dir).split(sep).join('/');
      return openSkill(file, source, count.get(basename(dir)) === 1 ? basename(dir) : path);
    })
    .sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** Names of the folders, and of links, in a folder; none where it cannot be read. */
function foldersIn(dir: string): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter(entry => (entry.isDirectory() || entry.isSymbolicLink()) && !skippedFolders.has(entry.name))
      .map(entry => entry.name)
      .sort();
  } catch {
    return [];
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
