/** `telos agents` and `telos list-skills`: what there is to run, as a table or as JSON. */
import type { Agent, Diagnostic } from '../engine/agents/agent.ts';
import type { Config } from '../engine/config.ts';
import { Telos } from '../engine/telos.ts';
import { type ConfigOptions, configFor } from './openConfig.ts';
import { table } from './table.ts';
import type { Terminal } from './terminal.ts';
import { terminalJson, terminalText } from './terminalText.ts';

export interface ListOptions extends ConfigOptions {
  agent?: string;
  json?: boolean;
}

/** Where an agent comes from, in the words of `mode` in agents.toml where it has one. */
const modes: Readonly<Record<Agent['source'], string>> = {
  user: 'installed',
  linked: 'linked',
  project: 'project',
  builtin: 'built-in',
};

/** Returns the exit code: 1 when there are no agents. */
export async function agentsCommand(options: ListOptions, terminal: Terminal): Promise<number> {
  const agents = await wantedAgents(options, terminal);
  if (!agents) return 1;
  if (options.json) {
    const list = agents.map(({ name, description, skills, packDir, workingDir, diagnostics }) => ({
      name,
      description,
      skills: skills.length,
      packDir,
      workingDir,
      diagnostics,
    }));
    terminal.out(`${terminalJson(list)}\n`);
    return 0;
  }
  const rows = agents.map(agent => [
    agent.name,
    modes[agent.source],
    String(agent.skills.length),
    agent.packDir,
    agent.workingDir,
  ]);
  terminal.out(`${table(['Agent', 'Mode', 'Skills', 'Pack Dir', 'Working Dir'], rows, terminal.outWidth)}\n`);
  sayDefects(
    agents.flatMap(agent => agent.diagnostics),
    terminal,
  );
  return 0;
}

/** Returns the exit code: 1 when there are no agents, or none of that name. */
export async function listSkillsCommand(options: ListOptions, terminal: Terminal): Promise<number> {
  const agents = await wantedAgents(options, terminal);
  if (!agents) return 1;
  const skills = agents
    .flatMap(agent => agent.skills.map(skill => ({ agent: agent.name, skill })))
    .sort((one, other) => compare(one.skill.id, other.skill.id) || compare(one.agent, other.agent));
  if (options.json) {
    const list = skills.map(({ agent, skill: { id, name, description, file, diagnostics } }) => ({
      agent,
      skill: id,
      name,
      description,
      file,
      diagnostics,
    }));
    terminal.out(`${terminalJson(list)}\n`);
    return 0;
  }
  const several = agents.length > 1;
  const rows = skills.map(({ agent, skill }) => [skill.id, ...(several ? [agent] : []), skill.description]);
  const headings = ['Skill', ...(several ? ['Agent'] : []), 'Description'];
  terminal.out(`${table(headings, rows, terminal.outWidth)}\n`);
  sayDefects(
    skills.flatMap(({ skill }) => skill.diagnostics),
    terminal,
  );
  return 0;
}

async function wantedAgents(options: ListOptions, terminal: Terminal): Promise<readonly Agent[] | undefined> {
  const config = configFor(options, terminal);
  if (!config) return undefined;
  const telos = Telos.open(config);
  const all = await telos.agents();
  sayDefects(await telos.diagnostics(), terminal);
  const agents = options.agent === undefined ? all : all.filter(agent => agent.name === options.agent);
  if (agents.length > 0) return agents;
  terminal.say(terminalText(missingText(options.agent, all, config)));
  return undefined;
}

function missingText(wanted: string | undefined, all: readonly Agent[], config: Config): string {
  if (wanted !== undefined && all.length > 0) {
    return `Agent '${wanted}' not found. Available agents: ${all.map(agent => agent.name).join(', ')}`;
  }
  return [
    'No agents found. A skill is a file of this name:',
    `  ${config.skillsDir}/<agent>/skills/<skill>/SKILL.md`,
    '`telos init` creates the folder and a configuration to start from.',
  ].join('\n');
}

function sayDefects(diagnostics: readonly Diagnostic[], terminal: Terminal): void {
  for (const { severity, message, file, line, fix } of diagnostics) {
    if (severity === 'info') continue;
    const colour = severity === 'error' ? terminal.style.red : terminal.style.yellow;
    terminal.say(colour(terminalText(`${file}:${line}: ${message}${fix ? ` ${fix}` : ''}`)));
  }
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
