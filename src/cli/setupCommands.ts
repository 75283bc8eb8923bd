/** `telos init` and `telos skill add`: something to start from, never over what is there. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { ConfigOptions } from './openConfig.ts';
import { configFor } from './openConfig.ts';
import type { Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';

const agentsToml = `# What your agents do differently from what their own files say. Telos works without any of this.
#
# [agents.kairos]
# working_dir = "~/notes"          # where its files are read and written
# description = "Plans my day"
# mcp_config = "~/mcp/kairos.json"
#
# An agent whose skills stay where they are, for example in a vault of notes:
# [agents.vault]
# skills_dir = "~/vault/skills"
# working_dir = "~/vault"
`;

/** Returns the exit code. */
export async function initCommand(options: ConfigOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const file = join(config.configDir, 'agents.toml');
  mkdirSync(config.skillsDir, { recursive: true });
  if (createFile(file, agentsToml)) terminal.out(terminalText(`Created ${file}\n`));
  else terminal.out(terminalText(`${file} exists; not overwriting it.\n`));
  terminal.out(
    terminalText(
      `Skills go to ${config.skillsDir}; \`telos skill add <agent> <name>\` writes a first one.\n`,
    ),
  );
  return 0;
}

/** Returns the exit code: 2 for a name that is none, 1 when the skill is there already. */
export async function skillAddCommand(
  agent: string,
  skill: string,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  for (const name of [agent, skill]) {
    if (isFolderName(name)) continue;
    terminal.say(
      terminalText(
        `'${name}' cannot be a name: letters, digits, dots, dashes and underscores, beginning with a letter or digit.`,
      ),
    );
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const file = join(config.skillsDir, agent, 'skills', skill, 'SKILL.md');
  if (!createFile(file, starterSkill(skill))) {
    terminal.say(terminalText(`${file} exists; not overwriting it.`));
    return 1;
  }
  terminal.out(
    terminalText(
      `Created ${file}\nSay in it when it is to be used and what is to be done, then: telos ${skill}\n`,
    ),
  );
  return 0;
}

function isFolderName(name: string): boolean {
  return /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name) && !name.endsWith('.');
}

function starterSkill(name: string): string {
  const words = name.replace(/[._-]+/g, ' ').trim();
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  return `---
description: Use this when I ask for ${words}.
---
# ${title}

Say here, step by step, what is to be done:

1. Read notes.md, if it is there.
2. Write what matters from it to ${name}.md.
3. Tell me in one sentence what you did.
`;
}

/** Writes a file that is not there yet, whole or not at all; false when there is one. */
function createFile(path: string, text: string): boolean {
  if (existsSync(path)) return false;
  mkdirSync(dirname(path), { recursive: true });
  const staged = `${path}.${process.pid}.new`;
  try {
    const handle = openSync(staged, 'wx');
    try {
      writeSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(staged, path);
  } catch (error) {
    rmSync(staged, { force: true });
    throw error;
  }
  return true;
}
