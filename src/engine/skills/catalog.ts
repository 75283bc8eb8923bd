/** Keeps what was found on disk, the agents and the programs of this machine, until it is looked for again. */

import { sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { recoverFolders } from '../files/swapFolder.ts';
import type { Agent, Skill } from './agent.ts';
import { type Discovery, discoverInSlices, type FileAgent } from './discover.ts';
import { type Machine, thisMachine } from './machine.ts';
import { type Readiness, readinessOf } from './readiness.ts';

/** Returns the agent of this name: as it is written, or else in any case. Empty if there is none, or if several are meant. */
export function agentsCalled<Named extends { readonly name: string }>(
  name: string,
  agents: readonly Named[],
): readonly Named[] {
  const exact = agents.filter(agent => agent.name === name);
  if (exact.length > 0) return exact;
  const near = agents.filter(agent => agent.name.toLowerCase() === name.toLowerCase());
  return near.length === 1 ? near : [];
}

/** Returns the skill called `agent:skill` or `skill`, with its agent; of several, one that no other shadows. */
export function skillCalled<
  OneSkill extends Skill,
  OneAgent extends { name: string; skills: readonly OneSkill[] },
>(
  name: string,
  agents: readonly OneAgent[],
): { agent: OneAgent; skill: OneAgent['skills'][number] } | undefined {
  const colon = name.indexOf(':');
  const id = name.slice(colon + 1);
  const found = agents
    .filter(agent => colon < 0 || agent.name === name.slice(0, colon))
    .flatMap(agent => agent.skills.map(skill => ({ agent, skill })))
    .filter(({ skill }) => skill.id === id || skill.name === id);
  return found.find(({ skill }) => !skill.shadowedBy) ?? found[0];
}

/** Reads nothing before the first call that needs it. */
export class Catalog {
  readonly #config: Config;
  #discovery: Promise<Discovery> | undefined;
  #machine: Machine | undefined;
  readonly #given: Discovery | undefined;

  /** `given` are agents in place of those that are found. */
  constructor(config: Config, given?: readonly FileAgent[]) {
    this.#config = config;
    this.#given = given && { agents: given, defaultAgent: undefined, diagnostics: [] };
  }

  /** Returns the agents and their defects, as of the first call since `refresh`. */
  async discovery(): Promise<Discovery> {
    if (this.#given) return this.#given;
    // First restores an agent that a killed install has moved aside.
    this.#discovery ??= recoverFolders(this.#config.dataDir).then(() => discoverInSlices(this.#config));
    return this.#discovery;
  }

  /** Returns all agents, sorted by name. The same array until `refresh`. */
  async agents(): Promise<readonly FileAgent[]> {
    return (await this.discovery()).agents;
  }

  /** Returns the agent. Throws TelosError `config` if there is none of this name. */
  async agentNamed(name: string): Promise<FileAgent> {
    const agents = await this.agents();
    const [agent] = agentsCalled(name, agents);
    if (!agent) throw noAgents(name, agents, this.#config);
    return agent;
  }

  /** Returns the agents that a request may mean: all of them, or the named one. Throws TelosError `config` if there is none. */
  async agentsFor(name: string | undefined): Promise<readonly FileAgent[]> {
    const all = await this.agents();
    const agents = name === undefined ? all : agentsCalled(name, all);
    if (agents.length === 0) throw noAgents(name, all, this.#config);
    return agents;
  }

  /** Returns what the skill needs and this machine does not have. Programs and variables are looked up once until `refresh`. */
  readiness(skill: Skill): Readiness {
    this.#machine ??= thisMachine(this.#config.env);
    return readinessOf(skill, this.#machine);
  }

  refresh(): void {
    this.#discovery = undefined;
    this.#machine = undefined;
  }
}

function noAgents(wanted: string | undefined, all: readonly Agent[], config: Config): TelosError {
  if (wanted !== undefined && all.length > 0) {
    return new TelosError('config', [
      sentence("Agent '{0}' not found.", wanted),
      sentence('Available agents: {0}', all.map(agent => agent.name).join(', ')),
    ]);
  }
  const place = `${config.skillsDir}/<agent>/skills/<skill>/SKILL.md`;
  return new TelosError('config', [sentence('No agents found. A skill goes to {0}.', place)], {
    remedy: { kind: 'add_skill', folder: config.skillsDir },
  });
}
