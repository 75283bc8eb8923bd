/** Makes the folders and the file that Telos would otherwise do without, so that a person sees where things go. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { createWhole } from '../wholeFile.ts';

export interface InitialFolders {
  configFile: string;
  skillsDir: string;
  /** False when agents.toml was there already; it is as it was. */
  configWritten: boolean;
}

/** Makes the config folder with a commented agents.toml, and the skills folder. What is there already is left alone. */
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
