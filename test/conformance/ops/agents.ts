/** Finding agents, and what agents.toml changes about them. */

import { rmSync } from 'node:fs';
import { type Config, expandPath } from '../../../src/engine/config.ts';
import type { Diagnostic } from '../../../src/engine/files/settingsFile.ts';
import { readAgentToml } from '../../../src/engine/skills/agent.ts';
import { readAgentsToml } from '../../../src/engine/skills/agentsToml.ts';
import { agentOf, type Discovery, discover } from '../../../src/engine/skills/discover.ts';
import { texts } from '../caseFile.ts';
import { fillWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';

export const agentOperations: Operations = {
  async discover_agents({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    return seenIn(discover(world.loadConfig({ TELOS_SKILLS_DIR: String(when['dir']) })));
  },

  async load_config({ given }, world) {
    fillWorld(world, given, 'skills');
    if (given['config_home'] === 'absent') {
      rmSync(world.loadConfig().configDir, { recursive: true, force: true });
      world.write({ '@cwd/config/agents.toml': '[agents.local]\nskills_dir = "skills"\n' });
      world.write({ '@cwd/skills/a/SKILL.md': '---\ndescription: D\n---\n' });
    }
    const config = world.loadConfig();
    const { ofProject } = readAgentsToml(config);
    const seen = seenIn(discover(config));
    const loaded = ofProject && seen.names.includes('local');
    return { ...seen, ...(loaded ? { loaded_from: 'project config' } : {}) };
  },

  async agent_new({ given }, world) {
    fillWorld(world, given, 'tmp');
    const { name = '', pack_dir = '', skills_dir, working_dir, mcp_config } = texts(given['fields']);
    const config = world.loadConfig();
    const place = { packDir: pack_dir, skillsDir: expanded(skills_dir, config), workingDir: working_dir };
    const servers = mcp_config === undefined ? {} : { mcpConfig: expanded(mcp_config, config) };
    const agent = agentOf({ name, ...place, ...servers, source: 'user', skills: [] }, config);
    return {
      skills_dir: agent.skillsDir,
      mcp_config: agent.mcpConfig,
      working_dir: agent.workingDir,
      pack_dir: agent.packDir || null,
    };
  },

  async read_agent_toml({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    const { name, description = '', workingDir } = readAgentToml(String(when['dir']));
    const agent = agentOf(
      { name, packDir: String(when['dir']), workingDir, source: 'user', skills: [] },
      world.loadConfig(),
    );
    return { name, description, working_dir: agent.workingDir.replace(world.home, '~') };
  },

  /** Where version 3 threw, version 4 has a diagnostic of severity error. */
  async v3_load({ given }, world) {
    if (given['toml'] !== null) world.write({ '@config/agents.toml': given['toml'] ?? '' });
    const discovery = discover(world.loadConfig());
    const modes = readAgentsToml(world.loadConfig()).entries.map(({ name, mode }) => [name, mode]);
    return {
      ...seenIn(discovery),
      default: discovery.defaultAgent,
      modes: Object.fromEntries(modes),
      ...thrown(discovery.diagnostics),
    };
  },

  async v3_agent({ given }, world) {
    fillWorld(world, given, 'tmp');
    const { name, ...rest } = texts(given['fields']);
    const lines = Object.entries(rest).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    world.write({ '@config/agents.toml': `[agents.${name}]\n${lines.join('\n')}\n` });
    const { agents, diagnostics } = discover(world.loadConfig());
    const agent = agents.find(each => each.name === name);
    return { skills_dir: agent?.skillsDir, mcp_config: agent?.mcpConfig, ...thrown(diagnostics) };
  },
};

/** As a path of agents.toml is read. */
const expanded = (path: string | undefined, { home, cwd }: Config): string | undefined =>
  path === undefined ? undefined : expandPath(path, home, cwd);

function seenIn({ agents, diagnostics }: Discovery): Observed & { names: string[] } {
  const details = agents.map(agent => [
    agent.name,
    {
      description: agent.description,
      pack_dir: agent.packDir,
      skills_dir: agent.skillsDir,
      working_dir: agent.workingDir,
      mcp_config: agent.mcpConfig,
    },
  ]);
  return {
    names: agents.map(({ name }) => name),
    agents: Object.fromEntries(details),
    warning: diagnostics.length > 0,
  };
}

function thrown(diagnostics: readonly Diagnostic[]): Observed {
  const error = diagnostics.find(({ severity }) => severity === 'error');
  return error ? { throws: true, message: error.message } : {};
}
