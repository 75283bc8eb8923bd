/** Finds the skill that a request means, and says why: a name, the search index or the answer of a model. */
import type { SkillRef } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import type { RoutingMode } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { Provider } from '../core/ports.ts';
import { agentsCalled, type Catalog } from '../skills/catalog.ts';
import type { FileAgent } from '../skills/discover.ts';
import { clausesOf } from './clauses.ts';
import { confidenceOf, isTold, leansBack, same, sure } from './confidence.ts';
import { isBrand, isEveryday } from './language.ts';
import type { LearnedChoices } from './learnedChoices.ts';
import { areForbidden, isOnlyOrdered, useOfName } from './nameUse.ts';
import { askModel, type Candidate } from './routeModel.ts';
import { findSkill, type Match, matchExplicit, matchName, type NameMatches } from './routeName.ts';
import {
  byIndex,
  byModel,
  goOn,
  indexMatch,
  isSame,
  type NextResult,
  noMatch,
  type RouteResult,
  type Running,
  refOf,
  switched,
  withMentioned,
  withRunnerUp,
} from './routeResult.ts';
import { type Ranked, SearchIndex } from './searchIndex.ts';
import { TaughtLines } from './teaching.ts';

/** The parts of a request that decide which skill runs. */
export interface RouteRequest {
  /** The person's words. May be empty if `skill` is set. */
  text: string;
  /** If set, only this agent's skills are considered. */
  agent?: string;
  /** If set, this skill runs without routing. */
  skill?: SkillRef;
  /** The conversation that the request continues, with its skill unless another one is named or fits clearly better. */
  conversation?: {
    skill?: SkillRef;
    /**
     * The latest run with the skill failed or was refused. The request is then routed like a first one, and goes on with the skill
     * only if no other is likely.
     */
    skillFailed?: boolean;
  };
  /** Where no skill is sure, the request is answered without one: see `Routing`. */
  answersAnyway?: boolean;
}

export interface RouterOptions {
  mode: RoutingMode;
  /** Returns the model to ask, or undefined if there is none. May throw what creating a provider throws. */
  provider: () => Promise<Provider | undefined>;
  /** Folder of the lines that skills were taught. Without it none are read. */
  dataDir?: string;
  /** Earlier choices of the person. Without them nothing is learned. */
  choices?: LearnedChoices;
  /** Returns an existing index, which replaces the router's own. */
  index?: () => Promise<SearchIndex>;
}

/** One request to route. */
export interface Routing {
  text: string;
  /** Every agent. The same array until the skills change. */
  all: readonly FileAgent[];
  /** The only agent that may be meant. */
  agentName?: string | undefined;
  signal: AbortSignal;
  /** Replaces the router's model for this request. */
  provider?: RouterOptions['provider'];
  /** Without a skill the request is answered too, by a model that knows the skills: none is asked before it where no skill is likely. */
  answersAnyway?: boolean | undefined;
}

/** If there are more skills than this, a model is shown only the index's best. A list of this length is cached. */
const wholeManifest = 200;
const shortlist = 60;
/** A running skill is left from this score and confidence on, with this lead over it as a share of the score. */
const leaving = { score: 0.15, confidence: 0.5, lead: 0.5 };
/** From here on another skill is offered beside the one that goes on. */
const offering = { score: 0.1, confidence: 0.15, lead: 0.2 };
/** A conversation's model is asked only if another skill has this score. */
const leastAsked = 0.1;

/** Routes requests and keeps the search index between them. The index is built at the first request that names no skill. */
export class Router {
  readonly #options: RouterOptions;
  #index: SearchIndex | undefined;
  #building: { agents: readonly FileAgent[]; index: Promise<SearchIndex> } | undefined;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /** Returns the skill that a first request means, or choices if none is sure. Throws the signal's reason on abort. */
  async route(routing: Routing): Promise<RouteResult> {
    const { text, all, agentName, signal, answersAnyway } = routing;
    const agents = asked(all, agentName);
    const names = matchName(text, agents);
    const { sure: named, sureness, unsure, mentioned } = names;
    const certain = matchExplicit(text, agents) ?? (sureness === 'certain' ? named : undefined);
    if (certain) return certain;
    const { mode } = this.#options;
    const said = [...unsure, ...mentioned];
    if (mode === 'name') return named ?? withMentioned(noMatch(text, agents, []), said);
    const ranking = await this.#rank(routing);
    const confidence = confidenceOf(text, ranking);
    const before = mode === 'model' ? undefined : chosenBefore(ranking);
    if (before) return before;
    const isMeant = named !== undefined && !contradicts(named, ranking, confidence);
    if (isMeant && sureness === 'ordered') return named;
    signal.throwIfAborted();
    const meant = isMeant ? named : unsure.find(match => isLikely(match, ranking, confidence));
    const isBarred = isOnlyMentioned(text, ranking[0], names);
    const local = meant ?? (isBarred ? noMatch : byIndex)(text, agents, ranking, confidence);
    const result = local.skill ? local : withMentioned(local, said);
    const isAnswered = mode === 'auto' && answersAnyway && !result.skill && result.choices.length === 0;
    // An everyday name that no grammar makes an order is the model's to understand.
    const answer = mode === 'local' || isAnswered ? undefined : await this.#ask(routing, agents, ranking);
    if (answer?.result) return answer.result.skill ? answer.result : withMentioned(answer.result, said);
    return answer ? { ...result, notice: answer.notice } : result;
  }

  /**
   * Returns the skill of the next message of a conversation: another one only if it is named or fits clearly better, else the
   * running one, with a skill that fits about as well in `alsoFits`. Throws the signal's reason on abort.
   */
  async next(running: Running, routing: Routing): Promise<NextResult> {
    const { text, all, agentName, signal } = routing;
    const agents = asked(all, agentName);
    const names = matchName(text, agents);
    const { sure: named, sureness } = names;
    const certain = matchExplicit(text, agents) ?? (sureness === 'certain' ? named : undefined);
    if (certain) return switched(running, certain);
    if (this.#options.mode === 'name') return goOn(running);
    const ranking = await this.#rank(routing, running);
    const before = chosenBefore(ranking);
    if (before) return isSame(running, before) ? goOn(running) : switched(running, before);
    const other = ranking.find(ranked => !isSame(running, ranked));
    const now = ranking.find(ranked => isSame(running, ranked))?.score ?? 0;
    const confidence = isSame(running, ranking[0]) ? 0 : confidenceOf(text, ranking);
    if (named && !isSame(running, named) && isSame(named, other)) return switched(running, named);
    if (!other) return goOn(running);
    const passes = (bar: typeof leaving): boolean =>
      other.score >= bar.score && confidence >= bar.confidence && other.score - now >= bar.lead * other.score;
    const isBarred = isOnlyMentioned(text, other, names);
    if (passes(leaving) && other.skill.modelInvocable && !isBarred && !leansBack(text, other.words[0]))
      return switched(running, indexMatch(other, ranking));
    signal.throwIfAborted();
    const isWorthAsking = this.#options.mode !== 'local' && other.score >= leastAsked;
    const answer = isWorthAsking ? await this.#ask(routing, agents, ranking, running) : undefined;
    if (answer?.result?.skill) return switched(running, answer.result);
    if (answer && !answer.notice) return goOn(running);
    const fits = passes(offering) ? refOf(other) : undefined;
    const result = goOn(running, fits);
    return answer?.notice ? { ...result, notice: answer.notice } : result;
  }

  /** Returns the skills whose words fit a request best, whatever would be decided. See `SearchIndex.rank`. */
  async rank(
    text: string,
    all: readonly FileAgent[],
    agentName: string | undefined,
    limit = 10,
    running?: Running,
  ): Promise<readonly Ranked[]> {
    const now = running && running !== 'none' ? refOf(running) : undefined;
    const liked = await this.#options.choices?.likeness(text, now);
    const wanted = agentName === undefined ? undefined : agentsCalled(agentName, all)[0]?.name;
    return (await this.#indexOf(all)).rank(text, limit, wanted ?? agentName, liked);
  }

  #rank({ text, all, agentName }: Routing, running?: Running): Promise<readonly Ranked[]> {
    return this.rank(text, all, agentName, shortlist, running);
  }

  /** Returns the model's choice, undefined if there is no model, or only a notice if the model failed. */
  async #ask(
    { text, signal, provider = this.#options.provider }: Routing,
    agents: readonly FileAgent[],
    ranking: readonly Ranked[],
    running?: Running,
  ): Promise<{ result: RouteResult; notice?: never } | { notice: string; result?: never } | undefined> {
    try {
      const model = await provider();
      if (!model) return undefined;
      const candidates = candidatesOf(agents, ranking, running);
      if (candidates.length === 0) return { result: noMatch(text, agents, []) };
      const now = running === undefined || running === 'none' ? undefined : running;
      const [choice, second] = await askModel(model, { text, running: now }, candidates, signal);
      // Three are offered in place of the one that was not found.
      if (!choice) return { result: noMatch(text, agents, ranking, confidenceOf(text, ranking)) };
      if (second)
        return { result: { ...noMatch(text, agents, ranking), choices: [choice, second].map(byModel) } };
      const reason = withRunnerUp(
        { rule: 'model' },
        ranking.find(other => other.skill !== choice.skill),
      );
      return { result: { agent: choice.agent, skill: choice.skill, reason } };
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      return {
        notice: `The model could not choose the skill (${message.replace(/\.$/, '')}). It was chosen by your words instead.`,
      };
    }
  }

  async #indexOf(agents: readonly FileAgent[]): Promise<SearchIndex> {
    if (this.#options.index) return this.#options.index();
    if (this.#building?.agents !== agents) {
      const { dataDir } = this.#options;
      const taught = dataDir === undefined ? undefined : new TaughtLines(dataDir);
      this.#building = { agents, index: SearchIndex.build(agents, this.#index, taught) };
    }
    this.#index = await this.#building.index;
    return this.#index;
  }
}

interface RoutingEngine {
  catalog: Catalog;
  router: Router;
}

/**
 * Returns the skill that a first request means, and why. `model` replaces the router's own for this request. Throws TelosError
 * `config` if `agent` or `skill` is not known, and the signal's reason on abort.
 */
export async function routeFirst(
  { text, agent, skill, answersAnyway }: RouteRequest,
  { catalog, router }: RoutingEngine,
  signal: AbortSignal,
  model?: RouterOptions['provider'],
): Promise<RouteResult> {
  signal.throwIfAborted();
  await catalog.agentsFor(agent);
  const all = await catalog.agents();
  if (!skill)
    return router.route({
      text,
      all,
      agentName: agent,
      signal,
      answersAnyway,
      ...(model && { provider: model }),
    });
  const match = findSkill(all, skill);
  if (match) return match;
  throw new TelosError('config', [
    sentence("There is no skill '{0}' of agent '{1}' any more.", skill.skill, skill.agent),
  ]);
}

/** Returns the skill that a request means, or how its conversation goes on. Throws the same errors. */
export async function routeRequest(
  request: RouteRequest,
  engine: RoutingEngine,
  signal: AbortSignal,
  model?: RouterOptions['provider'],
): Promise<NextResult> {
  const { skill: ref, skillFailed } = request.conversation ?? {};
  const first = (): Promise<RouteResult> => routeFirst(request, engine, signal, model);
  if (request.skill || !ref) return first();
  const { text, agent } = request;
  const running = ref.skill === '' ? 'none' : findSkill(await engine.catalog.agentsFor(agent), ref);
  if (!running) return first();
  if (skillFailed) {
    const anew = await first();
    return anew.skill || anew.choices.length > 0 ? anew : goOn(running);
  }
  const all = await engine.catalog.agents();
  return engine.router.next(running, {
    text,
    all,
    agentName: agent,
    signal,
    ...(model && { provider: model }),
  });
}

const asked = (all: readonly FileAgent[], agentName: string | undefined): readonly FileAgent[] =>
  agentName === undefined ? all : agentsCalled(agentName, all);

/** Returns true if the index is sure of a skill other than the one whose everyday name is in the request. */
function contradicts(named: Match, ranking: readonly Ranked[], confidence: number): boolean {
  const [first] = ranking;
  if (!first?.skill.modelInvocable || isSame(named, first) || confidence < sure) return false;
  const own = ranking.find(ranked => isSame(named, ranked))?.score ?? 0;
  return first.score > 2 * own;
}

/** Whether the index is sure of a skill with an everyday name, by more words than that name: "Twitter is down again" asks nothing of it. */
function isLikely(match: Match, [first]: readonly Ranked[], confidence: number): boolean {
  return (
    confidence >= sure && match.skill.modelInvocable && isSame(match, first) && !isNotEnough(match, first)
  );
}

function isNotEnough({ reason: { matched = '' } }: Match, first: Ranked | undefined): boolean {
  const name = matched.split(' ');
  return isOnlyOrdered(matched) || !first?.telling.some(word => !name.includes(word) && !isBrand(word));
}

/**
 * Whether all that a skill has of a request is one word: one beside the matter ("a chair for the lawn"), or one of its name which is only mentioned, or is an
 * everyday one and not ordered. "How was the test" asks nothing of `tests`.
 */
function isOnlySaid({ telling, evidence, skill }: Ranked, text: string): boolean {
  const [word, ...others] = telling;
  if (word === undefined || others.length > 0) return false;
  const use = useOfName(word, clausesOf(text));
  // "The suite fails now and then" may want that mended.
  if (evidence.inName === 0) return use === 'mention' && !isTold(text) && !text.includes('?');
  // "Wie entsteht Wetter?" asks nothing of `weather`.
  if (use === 'aside' && skill.names.some(isEveryday)) return true;
  return use === 'mention' || (isEveryday(word) && use !== 'run' && use !== 'order' && use !== 'request');
}

/**
 * Whether the skill that fits a request best is only mentioned in it, or the words that fit are forbidden.
 */
function isOnlyMentioned(
  text: string,
  first: Ranked | undefined,
  { unsure, mentioned }: Pick<NameMatches, 'unsure' | 'mentioned'>,
): boolean {
  if (!first) return false;
  return (
    mentioned.some(match => isSame(match, first)) ||
    unsure.some(match => isSame(match, first) && isNotEnough(match, first)) ||
    isOnlySaid(first, text) ||
    areForbidden(first.words, text)
  );
}

/** Returns the skill that the person chose for the same words, if any. */
function chosenBefore(ranking: readonly Ranked[]): Match | undefined {
  const [found] = ranking
    .filter(({ skill, evidence }) => evidence.chosen >= same && skill.modelInvocable)
    .sort((a, b) => b.evidence.chosen - a.evidence.chosen);
  return found && { agent: found.agent, skill: found.skill, reason: { rule: 'learned' } };
}

/**
 * Returns the skills that a model may choose from, in an order that is the same for every request. Those that run only by name are
 * left out.
 */
function candidatesOf(
  agents: readonly FileAgent[],
  ranking: readonly Ranked[],
  running?: Running,
): Candidate[] {
  const skills = agents.flatMap(agent => agent.skills.map(skill => ({ agent, skill })));
  const names = new Set(agents.map(agent => agent.name));
  const visible = skills.filter(({ skill }) => !skill.shadowedBy || !names.has(skill.shadowedBy.agent));
  const choosable = visible.filter(({ skill }) => skill.modelInvocable && !skill.isDisabled);
  if (choosable.length <= wholeManifest) return choosable;
  const best = new Set<Candidate['skill']>(ranking.map(({ skill }) => skill));
  if (running && running !== 'none') best.add(running.skill);
  return choosable.filter(({ skill }) => best.has(skill));
}
