/** Measures whether the requests of a skill's trigger.json run it, among the skills that a person has. */

import type { RoutingMode } from '@telos/engine/config';
import type { Provider } from '@telos/engine/providers';
import { type Ranked, type RouteResult, Router, SearchIndex, type TaughtLines } from '@telos/engine/routing';
import type { FileAgent, FileSkill } from '@telos/engine/skills';
import type { RouteChoice, SkillRef } from '@telos/protocol/run';
import type { Trigger } from './triggerFile.ts';

/** A skill with the requests of its file. */
export interface MeasuredSkill {
  agent: FileAgent;
  skill: FileSkill;
  triggers: readonly Trigger[];
}

export interface TriggerResult extends Trigger {
  /** Of a request that should run the skill: it runs, or it is the first that the person is offered. Of any other: it does not run. */
  passed: boolean;
  /** The skill that would run. Undefined if none would. */
  ran?: SkillRef;
  /** What the person would be offered where none would run, best first. */
  offered: readonly SkillRef[];
  /** For a request that failed: the skill that came before, with both scores and the words that only it has. */
  lead?: { skill: SkillRef; score: number; own: number; words: readonly string[] };
}

/** A share with its Wilson 95 % interval, each from 0 to 1. Undefined without a request. */
export interface Share {
  passed: number;
  n: number;
  low: number;
  high: number;
}

export interface TriggerFigures {
  agent: string;
  skill: string;
  results: readonly TriggerResult[];
  /** Of the requests that should run the skill, those that do, and those that do or offer it first. */
  recall: Share | undefined;
  reached: Share | undefined;
  /** Of the requests that should not, those that do not. */
  quiet: Share | undefined;
  train: Share | undefined;
  validation: Share | undefined;
  /** Mean time of one decision after indexing, in milliseconds. */
  msPerRequest: number;
}

export interface TriggerOptions {
  mode: RoutingMode;
  /** Returns the model to ask in the modes `auto` and `model`. */
  provider: () => Promise<Provider | undefined>;
  taught: TaughtLines;
}

/**
 * Yields the figures of each skill. `among` returns the agents that compete with a skill, its own included. A skill's own trigger.json
 * is left out of the index, or each request would find itself. Throws the signal's reason on abort.
 */
export async function* runTriggers(
  measured: readonly MeasuredSkill[],
  among: (one: MeasuredSkill) => readonly FileAgent[],
  { mode, provider, taught }: TriggerOptions,
  signal: AbortSignal,
): AsyncGenerator<TriggerFigures> {
  let index: SearchIndex | undefined;
  for (const one of measured) {
    const all = among(one);
    index = await SearchIndex.build(all, index, taught, one.skill);
    const own = index;
    const router = new Router({ mode, provider, index: async () => own });
    const results: TriggerResult[] = [];
    let ms = 0;
    for (const trigger of one.triggers) {
      signal.throwIfAborted();
      const start = performance.now();
      const route = await router.route({ text: trigger.query, all, signal });
      ms += performance.now() - start;
      results.push(judge(trigger, one, route, own));
    }
    yield figuresOf(one, results, ms);
  }
}

function judge(trigger: Trigger, one: MeasuredSkill, route: RouteResult, index: SearchIndex): TriggerResult {
  const ran = route.skill && { agent: route.agent.name, skill: route.skill.id };
  const offered = route.skill ? [] : route.choices.map(({ agent, skill }: RouteChoice) => ({ agent, skill }));
  const { shouldTrigger, expect } = trigger;
  // Where none runs, nothing runs wrongly: the other skill's own file says what should run it.
  const isExpected =
    !ran || expect === undefined || [ran.skill, `${ran.agent}:${ran.skill}`].includes(expect);
  const passed = shouldTrigger ? isOf(one, ran ?? offered[0]) : !isOf(one, ran) && isExpected;
  const lead = passed || !shouldTrigger ? undefined : leadOf(index.rank(trigger.query, 10), one.skill, ran);
  return { ...trigger, passed, ...(ran && { ran }), offered, ...(lead && { lead }) };
}

const isOf = ({ agent, skill }: MeasuredSkill, ref: SkillRef | undefined): boolean =>
  ref?.agent === agent.name && ref.skill === skill.id;

/** Returns what came before the skill, and the words that decided. Undefined if no other skill did. */
function leadOf(
  ranking: readonly Ranked[],
  skill: FileSkill,
  ran: SkillRef | undefined,
): TriggerResult['lead'] {
  const own = ranking.find(ranked => ranked.skill.file === skill.file);
  const first =
    ranking.find(({ agent, skill: other }) => ran?.agent === agent.name && ran.skill === other.id) ??
    ranking[0];
  if (!first || first.skill.file === skill.file) return undefined;
  return {
    skill: { agent: first.agent.name, skill: first.skill.id },
    score: first.score,
    own: own?.score ?? 0,
    words: first.words.filter(word => !own?.words.includes(word)),
  };
}

function figuresOf(
  { agent, skill }: MeasuredSkill,
  results: readonly TriggerResult[],
  ms: number,
): TriggerFigures {
  const wanted = results.filter(({ shouldTrigger }) => shouldTrigger);
  const of = (some: readonly TriggerResult[]): Share | undefined => shareOf(some, ({ passed }) => passed);
  return {
    agent: agent.name,
    skill: skill.id,
    results,
    recall: shareOf(wanted, ({ passed, ran }) => passed && ran !== undefined),
    reached: of(wanted),
    quiet: of(results.filter(({ shouldTrigger }) => !shouldTrigger)),
    train: of(results.filter(({ split }) => split === 'train')),
    validation: of(results.filter(({ split }) => split === 'validation')),
    msPerRequest: results.length === 0 ? 0 : ms / results.length,
  };
}

/** Returns a share with its interval. Undefined for none. */
export function shareOf<One>(results: readonly One[], passes: (result: One) => boolean): Share | undefined {
  const n = results.length;
  if (n === 0) return undefined;
  const passed = results.filter(passes).length;
  return { passed, n, ...wilson(passed, n) };
}

/** Quantile of the normal distribution for 95 %. */
const z = 1.96;

/** Returns the 95 % interval of a share by Wilson's score, from 0 to 1. Unlike the plain one it holds for few cases and for all or none. */
export function wilson(passed: number, n: number): { low: number; high: number } {
  const share = passed / n;
  const middle = share + (z * z) / (2 * n);
  const spread = z * Math.sqrt((share * (1 - share) + (z * z) / (4 * n)) / n);
  const whole = 1 + (z * z) / n;
  return { low: Math.max(0, (middle - spread) / whole), high: Math.min(1, (middle + spread) / whole) };
}
