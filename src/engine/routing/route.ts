/** Finds the skill that a request means, and says why: a name, the search index or the answer of a model. */
import type { RouteReason, SkillRef } from '../../protocol/run.ts';
import type { RoutingMode } from '../config.ts';
import { TelosError } from '../errors.ts';
import type { Provider } from '../providers/provider.ts';
import type { Catalog } from '../skills/catalog.ts';
import type { FileAgent } from '../skills/discover.ts';
import { askModel } from './routeModel.ts';
import { findSkill, type Match, matchExplicit, matchName, namedSkill } from './routeName.ts';
import { decide, type Ranked, SearchIndex } from './searchIndex.ts';

export type { Match } from './routeName.ts';

/** The result if no skill fits well enough to run unasked. */
export interface NoMatch {
  agent: undefined;
  skill: undefined;
  /** Every skill. Up to three that could have been meant come first. */
  suggestions: readonly SkillRef[];
}

/** `notice` says why the model could not be asked. The search index has then decided instead. */
export type RouteResult = (Match | NoMatch) & { notice?: string };

/** The parts of a request that decide which skill runs. */
export interface RouteRequest {
  /** The person's words. May be empty if `skill` is set. */
  text: string;
  /** If set, only this agent's skills are considered. */
  agent?: string;
  /** If set, this skill runs without routing. */
  skill?: SkillRef;
  /** The conversation that the request continues, with its skill unless the words name another one. */
  conversation?: { skill?: SkillRef };
}

export interface RouterOptions {
  mode: RoutingMode;
  /** Returns the model to ask, or undefined if there is none. May throw what creating a provider throws. */
  provider: () => Promise<Provider | undefined>;
  /** Returns an existing index, which replaces the router's own. */
  index?: () => Promise<SearchIndex>;
}

/** If there are more skills than this, a model is shown only the index's best. */
const wholeManifest = 40;
const shortlist = 10;
const suggested = 3;

/** Routes requests and keeps the search index between them. The index is built at the first request that names no skill. */
export class Router {
  readonly #options: RouterOptions;
  #index: SearchIndex | undefined;
  #building: { agents: readonly FileAgent[]; index: Promise<SearchIndex> } | undefined;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /**
   * Returns the skill that a request means, or suggestions if none fits. `all` is the same array until the skills change.
   * `agentName` is the only agent that may be meant. `provider` applies to this request only. Throws the signal's reason on
   * abort.
   */
  async route(
    text: string,
    all: readonly FileAgent[],
    agentName: string | undefined,
    signal: AbortSignal,
    provider: RouterOptions['provider'] = this.#options.provider,
  ): Promise<RouteResult> {
    const agents = agentName === undefined ? all : all.filter(agent => agent.name === agentName);
    const { sure, unsure } = matchName(text, agents);
    const named = matchExplicit(text, agents) ?? sure;
    if (named) return named;
    const { mode } = this.#options;
    if (mode === 'name') return noMatch(agents, []);
    const rank = (): Promise<readonly Ranked[]> => this.rank(text, all, agentName);
    if (unsure.length > 0) {
      const best = decide(await rank());
      const meant = unsure.find(({ agent, skill }) => agent === best?.agent && skill === best.skill);
      if (meant) return meant;
    }
    signal.throwIfAborted();
    const asked = mode === 'local' ? undefined : await this.#ask(text, agents, rank, provider, signal);
    if (asked?.result) return asked.result;
    const local = byIndex(agents, await rank());
    return asked ? { ...local, notice: asked.notice } : local;
  }

  /** Returns the skills whose words fit a request best, whatever would be decided. See `SearchIndex.rank`. */
  async rank(
    text: string,
    all: readonly FileAgent[],
    agentName: string | undefined,
    limit = shortlist,
  ): Promise<readonly Ranked[]> {
    return (await this.#indexOf(all)).rank(text, limit, agentName);
  }

  /** Returns the model's choice, undefined if there is no model, or only a notice if the model failed. */
  async #ask(
    text: string,
    agents: readonly FileAgent[],
    rank: () => Promise<readonly Ranked[]>,
    makeProvider: RouterOptions['provider'],
    signal: AbortSignal,
  ): Promise<{ result: RouteResult; notice?: never } | { notice: string; result?: never } | undefined> {
    try {
      const provider = await makeProvider();
      if (!provider) return undefined;
      const few = fewSkills(agents);
      const ranking = few ? [] : await rank();
      const candidates = few ?? ranking;
      if (candidates.length === 0) return { result: noMatch(agents, []) };
      const choice = await askModel(provider, text, candidates, signal);
      // Reading the skills is worth it only now: three are offered in place of the one that was not found.
      if (choice === 'none') return { result: noMatch(agents, await rank()) };
      const { agent, skill } = choice;
      const reason = withRunnerUp(
        { rule: 'model' },
        ranking.find(other => other.skill !== skill),
      );
      return { result: { agent, skill, reason } };
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      return { notice: `The model could not choose the skill (${message}), so the search index did.` };
    }
  }

  async #indexOf(agents: readonly FileAgent[]): Promise<SearchIndex> {
    if (this.#options.index) return this.#options.index();
    if (this.#building?.agents !== agents) {
      this.#building = { agents, index: SearchIndex.build(agents, this.#index) };
    }
    this.#index = await this.#building.index;
    return this.#index;
  }
}

/**
 * Returns the skill that a request means, and why. `model` replaces the router's own. Throws TelosError `config` if
 * `request.agent` or `request.skill` is not known. Throws the signal's reason on abort.
 */
export async function routeRequest(
  { text, agent, skill, conversation }: RouteRequest,
  { catalog, router }: { catalog: Catalog; router: Router },
  signal: AbortSignal,
  model?: RouterOptions['provider'],
): Promise<RouteResult> {
  signal.throwIfAborted();
  const agents = await catalog.agentsFor(agent);
  const all = await catalog.agents();
  if (skill) {
    const match = findSkill(all, skill);
    if (match) return match;
    throw new TelosError('config', `There is no skill '${skill.skill}' of agent '${skill.agent}' any more.`);
  }
  const continued = conversation?.skill && findSkill(agents, conversation.skill);
  if (continued) return namedSkill(text, agents) ?? { ...continued, reason: { rule: 'continued' } };
  return router.route(text, all, agent, signal, model);
}

/** Returns the skills that may be meant without being named, or undefined if they are too many to list. */
function fewSkills(agents: readonly FileAgent[]): { agent: FileAgent; skill: Ranked['skill'] }[] | undefined {
  const skills = agents.flatMap(agent => agent.skills.map(skill => ({ agent, skill })));
  const names = new Set(agents.map(agent => agent.name));
  const visible = skills.filter(({ skill }) => !skill.shadowedBy || !names.has(skill.shadowedBy.agent));
  if (visible.length > wholeManifest) return undefined;
  return visible.filter(({ skill }) => skill.modelInvocable);
}

function byIndex(agents: readonly FileAgent[], ranking: readonly Ranked[]): RouteResult {
  const best = decide(ranking);
  if (!best) return noMatch(agents, ranking);
  const { agent, skill, score, words } = best;
  const reason: RouteReason = { rule: 'index', score: rounded(score), matched: words.slice(0, 5).join(', ') };
  return { agent, skill, reason: withRunnerUp(reason, ranking[1]) };
}

function withRunnerUp(reason: RouteReason, other: Ranked | undefined): RouteReason {
  if (!other) return reason;
  const { agent, skill, score } = other;
  return { ...reason, runnerUp: { agent: agent.name, skill: skill.id, score: rounded(score) } };
}

const rounded = (score: number): number => Math.round(score * 1000) / 1000;

function noMatch(agents: readonly FileAgent[], ranking: readonly Ranked[]): NoMatch {
  const best = ranking.slice(0, suggested);
  const rest = agents.flatMap(agent =>
    agent.skills.filter(skill => !best.some(other => other.skill === skill)).map(skill => ({ agent, skill })),
  );
  const suggestions = [...best, ...rest].map(({ agent, skill }) => ({ agent: agent.name, skill: skill.id }));
  return { agent: undefined, skill: undefined, suggestions };
}
