/** Implements `telos agents`, `telos list-skills` and `telos hooks`, which print a table or JSON. */

import { basename, dirname, join } from 'node:path';
import type { Config } from '@telos/engine/config';
import type { Diagnostic } from '@telos/engine/files';
import {
  type Agent,
  agentsCalled,
  hooksOfAgent,
  type LockedPack,
  lockedPack,
  lockPath,
  type Missing,
  ownHookFile,
  ownHooks,
  type Skill,
  worksIn,
} from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import { importLocked } from '@telos/packs/lock';
import { spoken } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';
import { table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

export interface ListOptions extends ConfigOptions {
  agent?: string;
  json?: boolean;
}

/** Names where an agent comes from, in the words of `mode` in agents.toml if it has one. */
const modes: Readonly<Record<Agent['source'], string>> = {
  user: 'installed',
  linked: 'linked',
  project: 'project',
  builtin: 'built-in',
};

/** Returns the exit code: 1 if there are no agents. */
export async function agentsCommand(options: ListOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const agents = await wantedAgents(Telos.open(config), options, terminal);
  if (!agents) return 1;
  const fetched = await fetchedPacks(config, agents);
  if (options.json) {
    const list = agents.map(({ name, description, skills, packDir, workingDir, diagnostics }) => ({
      name,
      description,
      skills: skills.length,
      packDir,
      workingDir,
      ...fetched.get(packDir),
      diagnostics,
    }));
    terminal.out(`${terminalJson(list)}\n`);
    return 0;
  }
  const rows = agents.map(agent => [
    agent.name,
    modes[agent.source],
    String(agent.skills.length),
    ...(fetched.size > 0 ? originColumns(fetched.get(agent.packDir)) : []),
    agent.packDir,
    spoken([worksIn(agent.workingDir, config.cwd)]),
  ]);
  const origins = fetched.size > 0 ? ['Source', 'Version', 'State'] : [];
  const headings = ['Agent', 'Mode', 'Skills', ...origins, 'Pack Dir', 'Working Dir'];
  terminal.out(`${table(headings, rows, terminal.outWidth)}\n`);
  sayDefects(
    agents.flatMap(agent => agent.diagnostics),
    terminal,
  );
  return 0;
}

function whoseText(
  agent: string | undefined,
  skill: string | undefined,
  everywhere: readonly string[],
): string {
  if (agent === undefined) return 'you';
  if (skill !== undefined) return `${agent}:${skill}`;
  return everywhere.includes(agent) ? `${agent}, everywhere` : agent;
}

/** Lists the person's own hooks, then those of the agents. Returns the exit code: 1 if a hook is written that cannot run. */
export async function hooksCommand(options: ListOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const all = await Telos.open(config).agents();
  const agents = options.agent === undefined ? all : agentsCalled(options.agent, all);
  if (options.agent !== undefined && agents.length === 0) {
    terminal.say(terminalText(missingText(options.agent, all, config)));
    return 1;
  }
  const own = ownHooks(config.configDir);
  const found = [...(options.agent === undefined ? [own] : []), ...agents.map(agent => hooksOfAgent(agent))];
  const hooks = found.flatMap(each => each.hooks);
  const missing = own.everywhere.filter(name => !all.some(agent => agent.name === name));
  const problems = [
    ...found.flatMap(each => each.problems),
    ...missing.map(name => `hooks.toml: everywhere names '${name}', and there is no agent of that name.`),
  ];
  if (options.json) terminal.out(`${terminalJson({ hooks, problems })}\n`);
  else if (hooks.length > 0) {
    const rows = hooks.map(({ agent, skill, event, matcher = '*', command }) => [
      whoseText(agent, skill, own.everywhere),
      ...[event, matcher, command],
    ]);
    terminal.out(`${table(['Whose', 'Event', 'Matcher', 'Command'], rows, terminal.outWidth)}\n`);
  } else if (problems.length === 0)
    terminal.say(terminalText(`There are no hooks. Your own go to ${ownHookFile(config.configDir)}.`));
  for (const problem of problems) terminal.say(terminal.style.yellow(terminalText(problem)));
  return problems.length > 0 ? 1 : 0;
}

/** Returns the exit code: 1 if there are no agents, or none of that name. */
export async function listSkillsCommand(options: ListOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const agents = await wantedAgents(telos, options, terminal);
  if (!agents) return 1;
  const skills = [];
  const fetched = await fetchedPacks(config, agents);
  for (const agent of agents)
    for (const skill of agent.skills)
      skills.push({
        agent: agent.name,
        skill,
        origin: fetched.get(agent.packDir),
        ...(await telos.readiness(skill)),
      });
  skills.sort((one, other) => compare(one.skill.id, other.skill.id) || compare(one.agent, other.agent));
  if (options.json) {
    const list = skills.map(({ agent, skill, origin, ready, missing }) => ({
      agent,
      skill: skill.id,
      name: skill.name,
      description: skill.description,
      ...(skill.synopsis === undefined ? {} : { synopsis: skill.synopsis }),
      ...(skill.argumentHint !== undefined && { argumentHint: skill.argumentHint }),
      file: skill.file,
      ready,
      missing: missing.map(({ sentences: _, ...rest }) => rest),
      ...(skill.isDisabled && { disabled: true }),
      ...origin,
      diagnostics: skill.diagnostics,
    }));
    terminal.out(`${terminalJson(list)}\n`);
    return 0;
  }
  const several = agents.length > 1;
  // If nothing is missing, the column would only take room.
  const someLack = skills.some(({ ready }) => !ready);
  const rows = skills.map(({ agent, skill, origin, missing }) => [
    skill.id,
    ...(several ? [agent] : []),
    ...(someLack ? [readyText(missing)] : []),
    ...(fetched.size > 0 ? originColumns(origin) : []),
    describedAs(skill),
  ]);
  const headings = [
    'Skill',
    ...(several ? ['Agent'] : []),
    ...(someLack ? ['Ready'] : []),
    ...(fetched.size > 0 ? ['Source', 'Version', 'State'] : []),
    'Description',
  ];
  terminal.out(`${table(headings, rows, terminal.outWidth)}\n`);
  sayDefects(
    skills.flatMap(({ skill }) => skill.diagnostics),
    terminal,
  );
  return 0;
}

interface PackOrigin {
  source: string;
  version: string;
  state: string;
}

/** Returns where fetched packs came from, by their folder, and whether their files are as they were. Empty if there are none. */
async function fetchedPacks(
  config: Config,
  agents: readonly Agent[],
): Promise<ReadonlyMap<string, PackOrigin>> {
  const found = new Map<string, PackOrigin>();
  const names = agents
    .filter(({ packDir }) => dirname(packDir) === config.skillsDir)
    .map(({ packDir }) => basename(packDir));
  const fetched = names.filter(name => isFetched(lockedPack(lockPath(config), name)));
  if (fetched.length === 0) return found;
  const { verifyPacks } = await importLocked();
  for (const { name, source, version, state, pinned } of await verifyPacks({ config }, fetched))
    found.set(join(config.skillsDir, name), { source, version, state: pinned ? `${state}, pinned` : state });
  return found;
}

const isFetched = (entry: LockedPack | undefined): boolean =>
  entry !== undefined && entry.resolved.kind !== 'folder';

const originColumns = (origin: PackOrigin | undefined): string[] =>
  origin ? [origin.source, origin.version, origin.state] : ['', '', ''];

/** Returns the agents. Returns undefined if there are none, or none of the name in `options`; that was then reported. */
export async function wantedAgents(
  telos: Telos,
  options: Pick<ListOptions, 'agent'>,
  terminal: Terminal,
): Promise<readonly Agent[] | undefined> {
  const all = await telos.agents();
  sayDefects(await telos.diagnostics(), terminal);
  const agents = options.agent === undefined ? all : agentsCalled(options.agent, all);
  if (agents.length > 0) return agents;
  terminal.say(terminalText(missingText(options.agent, all, telos.config)));
  return undefined;
}

function readyText(missing: readonly Missing[]): string {
  if (missing.length === 0) return 'yes';
  const [first = '', ...others] = missing.map(({ what }) => what);
  return `no: ${terminalLine(first, 24)}${others.length > 0 ? ` +${others.length}` : ''}`;
}

/** Returns the description. If the skill has none, adds the synopsis from its text. */
function describedAs({ description, synopsis, argumentHint, isDisabled }: Skill): string {
  const said = synopsis === undefined ? description : `${description} [from its text] ${synopsis}`.trim();
  return [isDisabled && '[disabled]', argumentHint, said].filter(Boolean).join(' ');
}

function missingText(wanted: string | undefined, all: readonly Agent[], config: Config): string {
  if (wanted !== undefined && all.length > 0) {
    return `Agent '${wanted}' not found. Available agents: ${all.map(agent => agent.name).join(', ')}`;
  }
  return [
    'No agents found. A skill is a file of this name:',
    `  ${config.skillsDir}/<agent>/skills/<skill>/SKILL.md`,
    '`telos demo` plays a sample, and `telos init --sample` adds it to your skills.',
  ].join('\n');
}

/** More of them would push the requested list off the screen. */
const shownDefects = 5;

/** Reports defects, errors first. If there are many, it refers to `telos lint`. */
function sayDefects(diagnostics: readonly Diagnostic[], terminal: Terminal): void {
  const defects = ['error', 'warning'].flatMap(wanted =>
    diagnostics.filter(({ severity }) => severity === wanted),
  );
  const more = defects.length - shownDefects;
  for (const { severity, message, file, line, fix } of more > 1 ? defects.slice(0, shownDefects) : defects) {
    const color = severity === 'error' ? terminal.style.red : terminal.style.yellow;
    terminal.say(color(terminalText(`${file}:${line}: ${message}${fix ? ` ${fix}` : ''}`)));
  }
  if (more > 1)
    terminal.say(terminal.style.yellow(`... and ${more} more problems; telos lint shows them all.`));
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
