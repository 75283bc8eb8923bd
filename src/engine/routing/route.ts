/** Finds the skill that a request means, and says why: a name, else the search index or one question to a model. */
import type { RouteReason, SkillRef } from '../../protocol/run.ts';
import type { RoutingMode } from '../config.ts';
import type { Provider } from '../providers/provider.ts';
import type { FileAgent } from '../skills/discover.ts';
import { askModel } from './routeModel.ts';
import { type Match, matchExplicit, matchName } from './routeName.ts';
import { decide, type Ranked, SearchIndex } from './searchIndex.ts';

export type { Match } from './routeName.ts';

/** No skill fits well enough to run unasked. */
export interface NoMatch {
  agent: undefined;
  skill: undefined;
  /** Every skill; up to three that could have been meant stand first. */
  suggestions: readonly SkillRef[];
}

/** `notice` tells that the model could not be asked, and why; the index has decided in its place. */
export type RouteResult = (Match | NoMatch) & { notice?: string };

export interface RouterOptions {
  mode: RoutingMode;
  /** The model to ask; undefined where there is none. May throw what making a provider throws. */
  provider: () => Promise<Provider | undefined>;
  /** An index that is there already, in place of one of the router's own. */
  index?: () => Promise<SearchIndex>;
}

/** With more skills than this a model is shown the index's best only. */
const wholeManifest = 40;
const shortlist = 10;
const suggested = 3;

/** Keeps the search index between requests; it is built at the first request that names no skill. */
export class Router {
  readonly #options: RouterOptions;
  #index: SearchIndex | undefined;
  #building: { agents: readonly FileAgent[]; index: Promise<SearchIndex> } | undefined;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /** `all` is one array until the skills change; `agentName` is the only agent that may be meant; `provider` counts for this request alone. Throws the signal's reason on abort. */
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

  /** The skills whose words fit a request best, whatever would be decided; see `SearchIndex.rank`. */
  async rank(
    text: string,
    all: readonly FileAgent[],
    agentName: string | undefined,
    limit = shortlist,
  ): Promise<readonly Ranked[]> {
    return (await this.#indexOf(all)).rank(text, limit, agentName);
  }

  /** The model's choice; undefined where there is no model; only a notice where it failed. */
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
      // Only now is it worth reading the skills: three of them are offered in place of the one that was not found.
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

/** What may be meant without being named, where it is few enough to be listed whole. */
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
