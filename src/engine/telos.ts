/** Opens the engine: lists the agents, routes requests, and runs them as a stream of events. */

import { existsSync } from 'node:fs';
import type { AgentCard } from '@telos/protocol/agentCard';
import type { DoctorBox, DoctorReport } from '@telos/protocol/doctorReport';
import type { AgentOrigin, InstallPlan } from '@telos/protocol/installPlan';
import type { JsonObject, RunEvent, SkillRef } from '@telos/protocol/run';
import type { DaySpending } from '@telos/protocol/usage';
import type { Reachable } from './away/awayHuman.ts';
import { hasMessengers } from './away/settings.ts';
import { endedByReader } from './cancellation.ts';
import { ChangeStore } from './changes/changeStore.ts';
import type { Config } from './config.ts';
import type { Human, Provider, TokenCount } from './core/ports.ts';
import { writeOwn, writeWhole } from './files/atomicWrite.ts';
import { appendOwnLine } from './files/jsonLines.ts';
import { ReplacedFolders, type UndoneFolder } from './files/replacedFolders.ts';
import type { Diagnostic } from './files/settingsFile.ts';
import { recoverFolders } from './files/swapFolder.ts';
import type { SignInPort } from './human.ts';
import { hiddenIn } from './mcp/config.ts';
import { ServerBook } from './mcp/serverBook.ts';
import { boxFacts, type Decision, openReviews } from './policy/decision.ts';
import {
  createProvider,
  type FrontendProviders,
  Models,
  type Pace,
  type ProviderChoice,
} from './providers/create.ts';
import { recordRouting } from './records/logFile.ts';
import { record } from './records/record.ts';
import type { SkillUses } from './records/skillUse.ts';
import { type Redactor, redactor, secretsIn } from './redact.ts';
import { LearnedChoices } from './routing/learnedChoices.ts';
import { Router, routeFirst } from './routing/route.ts';
import type { RouteResult } from './routing/routeResult.ts';
import type { Ranked } from './routing/searchIndex.ts';
import { Teaching } from './routing/teaching.ts';
import { DayUse, openBudget } from './run/budget.ts';
import {
  type BackgroundCommands,
  closeCommands,
  commandsOf,
  endCommands,
} from './run/conversationCommands.ts';
import { meteredProvider, routingModel } from './run/meter.ts';
import { type Engine, newRun, type RunRequest } from './run/request.ts';
import { foldersOf } from './run/runFolders.ts';
import type { ServerParts } from './run/serverCheck.ts';
import { aimedAtServer } from './run/serverMentions.ts';
import { startRun } from './run/start.ts';
import type { Agent, Skill } from './skills/agent.ts';
import { Catalog } from './skills/catalog.ts';
import { setDisabled } from './skills/disabledSkills.ts';
import type { FileAgent } from './skills/discover.ts';
import type { AgreedInstall, InstalledPack, UninstallTarget } from './skills/install.ts';
import type { InstallOptions } from './skills/planInstall.ts';
import type { Readiness } from './skills/readiness.ts';
import type { InitialFolders } from './skills/scaffold.ts';
import { workFoldersOf } from './skills/workFolders.ts';
import { hasTraces } from './traces/traceSettings.ts';

export type * from '@telos/protocol/run';
// For programs that use Telos as a library.
export { type Config, type ConfigOverrides, loadConfig } from './config.ts';
export { TelosError } from './core/errors.ts';
export type { Human } from './core/ports.ts';
export { allowAll, denyAll, type SignInPort } from './human.ts';
export type { RunRequest } from './run/request.ts';

/** Parts that a frontend adds to the engine. */
export interface FrontendParts {
  /** Providers besides the engine's own, by name. Tried after them if Telos chooses by itself. */
  providers?: FrontendProviders;
  /** Has the calls of models wait for their turn. */
  pace?: Pace;
  /** A ripgrep that comes with the frontend, for searches. Absolute path. If missing, the one on the PATH is used, if any. */
  ripgrep?: string;
  /** Lets a person sign in at MCP servers that require it. */
  signIn?: SignInPort;
  /** Opens an address in the person's browser, after a yes to exactly this address. Resolves to false if no browser was opened. */
  openUrl?: (url: string) => Promise<boolean>;
  /** Agents in place of those that are found, for a run that nothing else may take part in. */
  agents?: readonly FileAgent[];
  /** Keeps what is known of MCP servers when the engine is opened again. */
  book?: ServerBook;
}

/** A model for questions beside runs, and what such a question costs in US dollars. */
export interface AsideModel {
  provider: Provider;
  priceOf(tokens: TokenCount): number | 'unknown';
}

export class Telos {
  /** The agents that were installed, replaced or removed, for undo. */
  readonly replaced: ReplacedFolders;
  /** The requests that skills were taught, which count like their own triggers. */
  readonly teaching: Teaching;
  readonly #engine: Engine;
  readonly #choices: LearnedChoices;
  readonly #today: DayUse;
  /** Its agents are given. */
  readonly #isAlone: boolean;

  private constructor(engine: Engine, choices: LearnedChoices, isAlone: boolean) {
    this.#engine = engine;
    this.#choices = choices;
    this.#isAlone = isAlone;
    this.replaced = new ReplacedFolders(engine.config);
    this.teaching = new Teaching({
      ...engine,
      model: choice => meteredModel(engine, choice),
      write: writeWhole,
      refresh: () => this.refresh(),
    });
    this.#today = new DayUse(engine.config.dataDir);
  }

  /** Opens Telos. Reads nothing yet; skills are looked for at the first call that needs them. */
  static open(
    config: Config,
    { providers, pace, ripgrep, signIn, openUrl, agents, book = new ServerBook() }: FrontendParts = {},
  ): Telos {
    const models = new Models(config, providers, pace);
    const choices = new LearnedChoices(config.dataDir, writeOwn, appendOwnLine);
    const router = new Router({
      mode: config.routingMode,
      dataDir: config.dataDir,
      provider: () => unattended({ config, models }),
      ...(config.routingLearns && { choices }),
    });
    const catalog = new Catalog(config, agents);
    const changes = new ChangeStore(config);
    const engine = { config, catalog, models, router, changes, ripgrep, signIn, openUrl, book };
    return new Telos(engine, choices, agents !== undefined);
  }

  get config(): Config {
    return this.#engine.config;
  }

  /** What is known of the MCP servers. */
  get book(): ServerBook {
    return this.#engine.book;
  }

  /** The changes that runs have made, for undo. */
  get changes(): ChangeStore {
    return this.#engine.changes;
  }

  /** Returns all agents with at least one skill, sorted by name, as of the first call since `refresh`. */
  async agents(): Promise<readonly Agent[]> {
    return this.#engine.catalog.agents();
  }

  /** Returns the folders in which agents work or have worked. A program there is never the user's. */
  async workFolders(): Promise<readonly string[]> {
    return workFoldersOf(this.config, await this.agents());
  }

  /** Returns the defects of agents.toml that belong to no single agent. */
  async diagnostics(): Promise<readonly Diagnostic[]> {
    return (await this.#engine.catalog.discovery()).diagnostics;
  }

  /** Returns the agent that `default_agent` of agents.toml names, or undefined if it names none. */
  async defaultAgent(): Promise<string | undefined> {
    return (await this.#engine.catalog.discovery()).defaultAgent;
  }

  /** Returns what the skill needs and this machine does not have. Programs and variables are looked up once until `refresh`. */
  async readiness(skill: Skill): Promise<Readiness> {
    return this.#engine.catalog.readiness(skill);
  }

  /**
   * Returns the model that the next run will use.
   * Throws TelosError `config` for an unknown provider, `auth` for one without its key.
   */
  async provider(): Promise<ProviderChoice> {
    return this.#engine.models.choice();
  }

  /**
   * Returns the model that is asked which skill fits, outside of a run. Undefined if a recording answers.
   * Its usage counts against the budget and is logged. Throws the errors of `provider`.
   */
  async routingProvider(): Promise<Provider | undefined> {
    return unattended(this.#engine);
  }

  /** Returns the usage of all runs that ended today, including those of other processes. Throws errors of the file system. */
  async today(): Promise<DaySpending> {
    return this.#today.spending(this.config.budget);
  }

  /** Disables a skill for this person, in every folder, or enables it again. Throws TelosError `config` if that cannot be kept. */
  async setSkillDisabled(ref: SkillRef, isDisabled: boolean): Promise<void> {
    await setDisabled(ref, isDisabled, this.config);
    this.refresh();
  }

  /** Makes the next request read the files and choose the model again. */
  refresh(): void {
    this.#engine.catalog.refresh();
    this.#engine.models.refresh();
  }

  /**
   * Returns the skill that a first request means, and why.
   * Throws TelosError `config` if `request.agent` or `request.skill` is not known.
   */
  async route(request: Omit<RunRequest, 'conversation'>, signal: AbortSignal): Promise<RouteResult> {
    const aimed = aimedAtServer(request, await this.#engine.catalog.agents());
    return 'reason' in aimed ? aimed : routeFirst(aimed, this.#engine, signal);
  }

  /**
   * Keeps that the person chose `request.skill` for the words of the request, unless the setting is off. Throws errors of the file
   * system.
   */
  async learnChoice({ text, skill, conversation }: RunRequest): Promise<void> {
    if (!skill || !this.config.routingLearns) return;
    const safe = (await this.fullRedactor()).text(text);
    const { agent, skill: id } = conversation?.skill ?? {};
    const stayed = agent === skill.agent && id === skill.skill;
    await this.#choices.learn(safe, skill, stayed);
  }

  /** Deletes what was learned from the person's choices, and returns how many there were. Throws errors of the file system. */
  async forgetChoices(): Promise<number> {
    return this.#choices.forget();
  }

  /** Returns the skills that fit a request by their words, best first, whatever `route` decides. At most ten. */
  async ranking(request: Pick<RunRequest, 'text' | 'agent'>): Promise<readonly Ranked[]> {
    const { catalog, router } = this.#engine;
    return router.rank(request.text, await catalog.agents(), request.agent);
  }

  /**
   * Returns what `install` would do with a pack or a bare skill in a folder, to ask the person beforehand.
   * Throws TelosError `pack` if `install` would refuse.
   */
  async planInstall(path: string, options: InstallOptions = {}): Promise<InstallPlan> {
    const { planInstall } = await import('./skills/planInstall.ts');
    return planInstall(path, this.config, options);
  }

  /** Installs the pack. Throws the same errors, and if an agent would be replaced without approval of this exact plan. */
  async install(path: string, options: AgreedInstall = {}): Promise<InstalledPack> {
    const { installPack } = await import('./skills/install.ts');
    const installed = await installPack(path, this.config, options);
    this.refresh();
    return installed;
  }

  /**
   * Removes an installed agent without asking, and keeps it for undo.
   * Throws TelosError `pack` for an agent that was not installed.
   */
  async uninstall(name: string): Promise<UninstallTarget & { undoId: string }> {
    const { uninstallPack } = await import('./skills/install.ts');
    const removed = await uninstallPack(name, this.config);
    this.refresh();
    return removed;
  }

  /**
   * Returns what `uninstall` would remove, its origin, and the folders in which its servers and its commands in the sandbox have stored
   * something, which stay. Throws the same errors.
   */
  async installed(
    name: string,
  ): Promise<
    UninstallTarget & { origin: AgentOrigin; edited: number | undefined; stored?: string; home?: string }
  > {
    const { describeInstalled, findInstalled } = await import('./skills/install.ts');
    await recoverFolders(this.config.dataDir);
    const target = findInstalled(name, this.config);
    const [{ pluginFolders }, { agentHome }] = await Promise.all([
      import('./mcp/pluginServers.ts'),
      import('./files/agentHome.ts'),
    ]);
    const { data } = pluginFolders(target.path, this.config.dataDir);
    const home = agentHome(this.config.dataDir, { packDir: target.path });
    const described = await describeInstalled(target, this.config);
    return {
      ...target,
      ...described,
      ...(existsSync(data) && { stored: data }),
      ...(existsSync(home) && { home }),
    };
  }

  /**
   * Returns the person's model for questions beside runs, or the one that is named, counted against the budget and logged. Undefined if a
   * recording answers. Throws the errors of the model's choice.
   */
  async asideModel(wanted?: string): Promise<AsideModel | undefined> {
    const choice = await this.#engine.models.choice(wanted);
    const provider = await meteredModel(this.#engine, choice);
    if (!provider) return undefined;
    const { costOf } = await import('./providers/models.ts');
    return { provider, priceOf: tokens => costOf(provider, tokens) };
  }

  /** Undoes an install or uninstall. Throws the errors of `replaced.undo`. */
  async undoFolder(id: string, options: { force?: boolean } = {}): Promise<UndoneFolder> {
    const undone = await this.replaced.undo(id, options);
    this.refresh();
    return undone;
  }

  /** Makes the config folder with its agents.toml, and the skills folder, if they are missing. */
  async init(): Promise<InitialFolders> {
    const { initFolders } = await import('./skills/scaffold.ts');
    return initFolders(this.config);
  }

  /** Writes a SKILL.md to start from, and its agent if that is new. Returns the path of the file. Throws TelosError `pack`. */
  async addSkill(agent: string, skill: string): Promise<string> {
    const { addSkill } = await import('./skills/scaffold.ts');
    const file = await addSkill(agent, skill, this.config);
    this.refresh();
    return file;
  }

  /**
   * Returns the agent's card, for a person who decides whether to trust it.
   * Throws TelosError `config` for an unknown agent.
   */
  async agentCard(name: string): Promise<AgentCard> {
    return openReviews(this.config).cardOf(await this.#engine.catalog.agentNamed(name));
  }

  /** Accepts the card that was shown, but for the lines in `without`, such as a variable's name. Throws TelosError `config` if the agent's files have changed since. */
  async acceptCard(
    card: Pick<AgentCard, 'agent' | 'digest'>,
    without: readonly string[] = [],
  ): Promise<void> {
    const agent = await this.#engine.catalog.agentNamed(card.agent);
    await openReviews(this.config).accept(agent, card, new Date(), without);
  }

  /**
   * Returns a report on the values in force and on what works. Starts the MCP servers of accepted agents only.
   * None of its calls costs anything. Throws the abort reason on abort.
   */
  async doctor(signal: AbortSignal): Promise<DoctorReport> {
    const { examine } = await import('./doctor.ts');
    this.refresh();
    const { config, catalog, models, signIn } = this.#engine;
    const [found, box] = await Promise.all([catalog.discovery(), this.box()]);
    return examine(config, found, () => models.choice(), box, signal, signIn);
  }

  /** Returns what listing, starting and signing in to single MCP servers needs, for `run/serverCheck.ts`. */
  async serverParts(): Promise<ServerParts> {
    const { config, signIn, book } = this.#engine;
    return { config, signIn, book, agents: await this.agents() };
  }

  /** Returns what is wanted of the box for commands, and whether one works here. Never throws. */
  async box(): Promise<DoctorBox> {
    const { boxState } = await import('./run/openBox.ts');
    return boxState(this.config);
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
    const { explainCall } = await import('./policy/decide.ts');
    const { wanted, state } = await this.box();
    const box = boxFacts(wanted, state);
    if (agentName === undefined) return explainCall(tool, input, this.config, undefined, box);
    const agent = await this.#engine.catalog.agentNamed(agentName);
    const skill = agent.skills[0];
    return explainCall(tool, input, this.config, agent, box, skill && foldersOf(agent, skill, this.config));
  }

  /** Returns how skills have done in the last `days` days. Throws the error of the file system. */
  async skillUse(days: number): Promise<SkillUses> {
    const { readSkillUse } = await import('./records/skillUse.ts');
    return readSkillUse(this.config.dataDir, days);
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

  /** Returns the commands of a conversation that go on in the background. */
  commandsOf(conversationId: string): BackgroundCommands {
    return commandsOf(conversationId, this.config);
  }

  /** Ends the background commands of a conversation that is over. Returns their lines. */
  async endCommands(conversationId: string): Promise<readonly string[]> {
    return endCommands(conversationId);
  }

  /** Ends all background commands because this program closes. The next start says so. */
  async closeCommands(): Promise<void> {
    await closeCommands();
  }

  /**
   * Runs a request. Never throws: an error is reported in the last event.
   * To stop, abort the signal and read on to the end. A reader that leaves stops the run, too, also in the middle of a command.
   * The run's log record is written even then.
   */
  run(request: RunRequest, human: Human, signal: AbortSignal): AsyncIterable<RunEvent> {
    // A choice that cannot be kept is lost, and nothing else.
    if (request.isChoice) void this.learnChoice(request).catch(() => {});
    // Nothing else takes part in a run whose agents are given, and no user waits for it.
    const isReachable = !this.#isAlone && hasMessengers(this.config);
    return endedByReader(stop => {
      const events = isReachable ? this.#runReachably(request, human, stop) : this.#run(request, human, stop);
      return hasTraces(this.config.env) ? this.#traced(events, request) : events;
    }, signal);
  }

  /**
   * Does the work within a span of its own if runs are traced. `work` gets that span, for the `traceParent` of the runs below it. `outcomeOf`
   * says how it ended, where its result says so.
   */
  async inWorkflow<Result>(
    name: string,
    work: (traceParent: string | undefined) => Promise<Result>,
    outcomeOf?: (result: Result) => string | undefined,
  ): Promise<Result> {
    if (!hasTraces(this.config.env)) return work(undefined);
    const { inWorkflow } = await import('./traces/traced.ts');
    return inWorkflow(this.config.env, name, work, outcomeOf);
  }

  #run(
    request: RunRequest,
    human: Human,
    signal: AbortSignal,
    elsewhere?: Reachable,
  ): AsyncGenerator<RunEvent, void> {
    const { config } = this;
    const run = newRun(request, human, config);
    const events = startRun(run, this.#engine, signal);
    return record(elsewhere?.events(events) ?? events, run, config.dataDir);
  }

  /** What is exported has no secrets: the events have been recorded. */
  async *#traced(events: AsyncIterable<RunEvent>, request: RunRequest): AsyncGenerator<RunEvent, void> {
    const { traced } = await import('./traces/traced.ts');
    const { origin = 'other', step, conversationId, traceParent: parent } = request;
    const attributes = {
      'telos.origin': origin,
      'telos.step': step?.key,
      'gen_ai.conversation.id': conversationId,
    };
    yield* traced(events, { env: this.config.env, parent, attributes });
  }

  async *#runReachably(
    request: RunRequest,
    human: Human,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, void> {
    const { reachable } = await import('./away/awayHuman.ts');
    const elsewhere = reachable(human, this.config);
    yield* this.#run(request, elsewhere.human, signal, elsewhere);
  }
}

/** Returns the model that chooses a skill outside of a run. Its usage is logged by itself. */
const unattended = (engine: Pick<Engine, 'config' | 'models'>): Promise<Provider | undefined> =>
  routingModel(engine, openBudget(engine.config), event => recordRouting(event, engine.config.dataDir));

/** Returns the model for questions beside runs, or undefined if a recording answers. Its usage is logged by itself. */
async function meteredModel(
  { config }: Pick<Engine, 'config'>,
  choice: ProviderChoice,
): Promise<Provider | undefined> {
  if (choice.recording) return undefined;
  const report = (event: RunEvent): void => recordRouting(event, config.dataDir);
  return meteredProvider(await createProvider(config, choice), openBudget(config), report);
}
