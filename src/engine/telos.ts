/** Opens the engine: lists the agents, routes requests, and runs them as a stream of events. */

import type { AgentCard } from '../protocol/agentCard.ts';
import type { AttachedName } from '../protocol/attachment.ts';
import type { DoctorReport } from '../protocol/doctorReport.ts';
import type { AgentOrigin, InstallPlan } from '../protocol/installPlan.ts';
import type { JsonObject, RunEvent } from '../protocol/run.ts';
import type { DaySpending } from '../protocol/usage.ts';
import { ChangeStore } from './changes/changeStore.ts';
import type { Config } from './config.ts';
import { TelosError } from './errors.ts';
import type { Diagnostic } from './files/diagnostic.ts';
import { ReplacedFolders, type UndoneFolder } from './files/replacedFolders.ts';
import { recoverFolders } from './files/swapFolder.ts';
import type { Human } from './human.ts';
import { hiddenIn } from './mcp/config.ts';
import type { SignInPort } from './mcp/signIn.ts';
import { explainCall } from './policy/decide.ts';
import { type Decision, openReviews } from './policy/decision.ts';
import { chooseProvider, type FrontendProviders, type ProviderChoice } from './providers/create.ts';
import type { Provider } from './providers/provider.ts';
import { recordRouting } from './records/logFile.ts';
import { kept, recorded } from './records/record.ts';
import { type Redactor, redactor, secretsIn } from './redact.ts';
import { type RouteResult, Router } from './routing/route.ts';
import { routingProvider } from './routing/routeModel.ts';
import { findSkill, namedSkill } from './routing/routeName.ts';
import type { Ranked } from './routing/searchIndex.ts';
import { type Budget, DayUse, openBudget } from './run/budget.ts';
import { meteredProvider } from './run/meter.ts';
import { foldersOf } from './run/prepare.ts';
import { newRunState, type RunRequest } from './run/request.ts';
import { framed, type Performing, performRequest } from './run/start.ts';
import type { Agent, Skill } from './skills/agent.ts';
import { addSkill, type InitialFolders, initFolders } from './skills/createSkill.ts';
import { type Discovery, discoverInSlices } from './skills/discover.ts';
import { type AgreedInstall, type InstalledPack, installPack } from './skills/install.ts';
import { type InstallOptions, planInstall } from './skills/planInstall.ts';
import { type Machine, type Readiness, readinessOf, thisMachine } from './skills/readiness.ts';
import { resourcesOf } from './skills/resources.ts';
import { describeInstalled, findInstalled, type UninstallTarget, uninstallPack } from './skills/uninstall.ts';

/** Parts that a frontend adds to the engine. */
export interface FrontendParts {
  /** Providers besides the engine's own, by name. Tried after them if Telos chooses by itself. */
  providers?: FrontendProviders;
  /** A ripgrep that comes with the frontend, for searches. Absolute path. If missing, the one on the PATH is used, if any. */
  ripgrep?: string;
  /** Lets a person sign in at MCP servers that require it. */
  signIn?: SignInPort;
}

export class Telos {
  readonly config: Config;
  /** The changes that runs have made, for undo. */
  readonly changes: ChangeStore;
  /** The agents that were installed, replaced or removed, for undo. */
  readonly replaced: ReplacedFolders;
  readonly #parts: FrontendParts;
  #discovery: Promise<Discovery> | undefined;
  #choice: Promise<ProviderChoice> | undefined;
  #machine: Machine | undefined;
  #today: DayUse | undefined;
  readonly #router: Router;

  private constructor(config: Config, parts: FrontendParts) {
    this.config = config;
    this.changes = new ChangeStore(config);
    this.replaced = new ReplacedFolders(config);
    this.#parts = parts;
    this.#router = new Router({
      mode: config.routingMode,
      provider: () => this.routingProvider(),
    });
  }

  /** Opens Telos. Reads nothing yet; skills are looked for at the first call that needs them. */
  static open(config: Config, parts: FrontendParts = {}): Telos {
    return new Telos(config, parts);
  }

  /** Returns all agents with at least one skill, sorted by name, as of the first call since `refresh`. */
  async agents(): Promise<readonly Agent[]> {
    return (await this.#discovered()).agents;
  }

  /** Returns the defects of agents.toml that belong to no single agent. */
  async diagnostics(): Promise<readonly Diagnostic[]> {
    return (await this.#discovered()).diagnostics;
  }

  /** Returns what the skill lacks on this machine. Programs and variables are looked up once until `refresh`. */
  async readiness(skill: Skill): Promise<Readiness> {
    this.#machine ??= thisMachine(this.config.env);
    return readinessOf(skill, this.#machine);
  }

  /**
   * Returns the model that the next run will use.
   * Throws TelosError `config` for an unknown provider, `auth` for one without its key.
   */
  async provider(): Promise<ProviderChoice> {
    this.#choice ??= chooseProvider(this.config, this.#parts.providers);
    return this.#choice;
  }

  /**
   * Returns the model that is asked which skill fits, outside of a run. Undefined if a recording answers.
   * Its usage counts against the budget and is logged. Throws the errors of `provider`.
   */
  async routingProvider(): Promise<Provider | undefined> {
    return this.#meteredProvider(openBudget(this.config), event => recordRouting(event, this.config.dataDir));
  }

  async #meteredProvider(
    budget: Budget | undefined,
    report: (event: RunEvent) => void,
  ): Promise<Provider | undefined> {
    const provider = await routingProvider(this.config, await this.provider());
    return provider && meteredProvider(provider, budget, report);
  }

  /** Returns the usage of all runs that ended today, including those of other processes. Throws errors of the file system. */
  async today(): Promise<DaySpending> {
    this.#today ??= new DayUse(this.config.dataDir);
    return this.#today.spending(this.config.budget);
  }

  /** Makes the next request read the files and choose the model again. */
  refresh(): void {
    this.#discovery = undefined;
    this.#choice = undefined;
    this.#machine = undefined;
  }

  /**
   * Returns the skill that a request means, and why.
   * Throws TelosError `config` if `request.agent` or `request.skill` is not known.
   */
  async route(request: RunRequest, signal: AbortSignal): Promise<RouteResult> {
    return this.#route(request, signal, () => this.routingProvider());
  }

  async #route(
    request: RunRequest,
    signal: AbortSignal,
    model: () => Promise<Provider | undefined>,
  ): Promise<RouteResult> {
    signal.throwIfAborted();
    const { agents: all } = await this.#discovered();
    const agents = request.agent === undefined ? all : all.filter(agent => agent.name === request.agent);
    if (agents.length === 0) throw noAgents(request.agent, all, this.config);
    if (request.skill) {
      const match = findSkill(all, request.skill);
      if (!match)
        throw new TelosError(
          'config',
          `There is no skill '${request.skill.skill}' of agent '${request.skill.agent}' any more.`,
        );
      return match;
    }
    const continued = request.conversation?.skill && findSkill(agents, request.conversation.skill);
    if (continued) {
      return namedSkill(request.text, agents) ?? { ...continued, reason: { rule: 'continued' } };
    }
    return this.#router.route(request.text, all, request.agent, signal, model);
  }

  /** Returns the skills that fit a request by their words, best first, whatever `route` decides. At most ten. */
  async ranking(request: Pick<RunRequest, 'text' | 'agent'>): Promise<readonly Ranked[]> {
    return this.#router.rank(request.text, (await this.#discovered()).agents, request.agent);
  }

  /**
   * Returns what `install` would do with a pack or a bare skill in a folder, to ask the person beforehand.
   * Throws TelosError `pack` if `install` would refuse.
   */
  async planInstall(path: string, options: InstallOptions = {}): Promise<InstallPlan> {
    return planInstall(path, this.config, options);
  }

  /** Installs the pack. Throws the same errors, and if an agent would be replaced without approval of this exact plan. */
  async install(path: string, options: AgreedInstall = {}): Promise<InstalledPack> {
    const installed = await installPack(path, this.config, options);
    this.refresh();
    return installed;
  }

  /**
   * Removes an installed agent without asking, and keeps it for undo.
   * Throws TelosError `pack` for an agent that was not installed.
   */
  async uninstall(name: string): Promise<UninstallTarget & { undoId: string }> {
    const removed = await uninstallPack(name, this.config);
    this.refresh();
    return removed;
  }

  /** Returns what `uninstall` would remove, and its origin. Throws the same errors. */
  async installed(
    name: string,
  ): Promise<UninstallTarget & { origin: AgentOrigin; edited: number | undefined }> {
    await recoverFolders(this.config.dataDir);
    const target = findInstalled(name, this.config);
    return { ...target, ...(await describeInstalled(target, this.config)) };
  }

  /** Undoes an install or uninstall. Throws the errors of `replaced.undo`. */
  async undoFolder(id: string, options: { force?: boolean } = {}): Promise<UndoneFolder> {
    const undone = await this.replaced.undo(id, options);
    this.refresh();
    return undone;
  }

  /** Makes the config folder with its agents.toml, and the skills folder, if they are missing. */
  async init(): Promise<InitialFolders> {
    return initFolders(this.config);
  }

  /** Writes a SKILL.md to start from, and its agent if that is new. Returns the path of the file. Throws TelosError `pack`. */
  async addSkill(agent: string, skill: string): Promise<string> {
    const file = await addSkill(agent, skill, this.config);
    this.refresh();
    return file;
  }

  /**
   * Returns the agent's card, for a person who decides whether to trust it.
   * Throws TelosError `config` for an unknown agent.
   */
  async agentCard(name: string): Promise<AgentCard> {
    return openReviews(this.config).cardOf(await this.#agentNamed(name));
  }

  /** Accepts the card that was shown. Throws TelosError `config` if the agent's files have changed since. */
  async acceptCard(card: Pick<AgentCard, 'agent' | 'digest'>): Promise<void> {
    await openReviews(this.config).accept(await this.#agentNamed(card.agent), card, new Date());
  }

  /**
   * Returns a report on the values in force and on what works. Starts the MCP servers of accepted agents only.
   * None of its calls costs anything. Throws the abort reason on abort.
   */
  async doctor(signal: AbortSignal): Promise<DoctorReport> {
    const { examine } = await import('./doctor.ts');
    this.refresh();
    return examine(this.config, await this.#discovered(), () => this.provider(), signal, this.#parts.signIn);
  }

  /**
   * Returns a redactor for the keys of this set-up and all values given to the MCP servers of its agents.
   * Also hides them in texts that were stored before the values were known.
   */
  async fullRedactor(): Promise<Redactor> {
    const redact = redactor(secretsIn(this.config.env));
    for (const { mcpConfig } of await this.agents())
      if (mcpConfig) redact.learn(hiddenIn(mcpConfig, this.config.env));
    return redact;
  }

  /**
   * Returns how a call would be decided on in a run of this agent's first skill, or of none.
   * Throws TelosError `config` for an unknown agent.
   */
  async explain(tool: string, input: JsonObject, agentName?: string): Promise<Decision> {
    if (agentName === undefined) return explainCall(tool, input, this.config, undefined);
    const agent = await this.#agentNamed(agentName);
    const skill = agent.skills[0];
    return explainCall(
      tool,
      input,
      this.config,
      agent,
      skill && foldersOf(agent, skill, resourcesOf(skill.dir, 1)),
    );
  }

  /**
   * Deletes the stored run and the stored state of the files before it.
   * Throws TelosError `config` for a run that is in progress or does not exist.
   */
  async deleteRun(runId: string): Promise<void> {
    const { RunHistory } = await import('./records/runHistory.ts');
    await new RunHistory(this.config.dataDir).delete(runId);
    await this.changes.forget(runId);
  }

  /**
   * Runs a request. Never throws: an error is reported in the last event.
   * To stop, abort the signal and read on to the end.
   * The run's log record is written even if the caller stops reading.
   */
  run(request: RunRequest, human: Human, signal: AbortSignal): AsyncIterable<RunEvent> {
    const redact = redactor(secretsIn(this.config.env));
    const state = newRunState();
    const body = () => performRequest(request, this.#performing(), { human, redact, state }, signal);
    const events = redact.events(framed(request.text, state, body, signal, namesOf(request)));
    const { dataDir } = this.config;
    const logged = recorded(events, { dataDir, redact: redact.text, messages: state.messages });
    const { conversationId: conversation, parentRunId: after, origin: door = 'other' } = request;
    const { attachments = [], selection } = request;
    const along = { attachments, ...(selection && { selection }) };
    return kept(logged, {
      dataDir,
      redact: redact.text,
      transcript: state,
      origin: door,
      conversation,
      parentRunId: after,
      attachments: along,
    });
  }

  #performing(): Performing {
    return {
      config: this.config,
      changes: this.changes,
      agents: async () => (await this.#discovered()).agents,
      route: (request, signal, budget, report) =>
        this.#route(request, signal, () => this.#meteredProvider(budget, report)),
      provider: () => this.provider(),
      ripgrep: this.#parts.ripgrep,
      signIn: this.#parts.signIn,
    };
  }

  async #agentNamed(name: string): Promise<Agent> {
    const agents = await this.agents();
    const agent = agents.find(candidate => candidate.name === name);
    if (!agent) throw noAgents(name, agents, this.config);
    return agent;
  }

  #discovered(): Promise<Discovery> {
    // First restores an agent that a killed install has moved aside.
    this.#discovery ??= recoverFolders(this.config.dataDir).then(() => discoverInSlices(this.config));
    return this.#discovery;
  }
}

const namesOf = ({ attachments = [] }: RunRequest): AttachedName[] =>
  attachments.map(({ kind, name }) => ({ kind, name }));

function noAgents(wanted: string | undefined, all: readonly Agent[], config: Config): TelosError {
  if (wanted !== undefined && all.length > 0) {
    return new TelosError(
      'config',
      `Agent '${wanted}' not found. Available agents: ${all.map(agent => agent.name).join(', ')}`,
    );
  }
  const place = `${config.skillsDir}/<agent>/skills/<skill>/SKILL.md`;
  return new TelosError(
    'config',
    `No agents found. A skill goes to ${place}; \`telos init\` makes the folder, \`telos skill add\` a first skill.`,
  );
}
