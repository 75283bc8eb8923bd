/** Says what routing came to: a skill with its reason, how a conversation goes on, or choices for the person. */
import type { RouteChoice, RouteReason, SkillRef } from '@telos/protocol/run';
import type { FileAgent } from '../skills/discover.ts';
import { likely, sure } from './confidence.ts';
import type { Candidate } from './routeModel.ts';
import { type Match, matchMisspelt } from './routeName.ts';
import type { Ranked } from './searchIndex.ts';

/** The result if no skill fits well enough to run unasked. */
export interface NoMatch {
  agent: undefined;
  skill: undefined;
  /** Up to three skills that are likely, best first. Empty if none is. */
  choices: readonly RouteChoice[];
  /** The name of the first choice if the request has a misspelling of it. */
  didYouMean?: string;
  /** Every skill. Up to three that could have been meant come first. */
  suggestions: readonly SkillRef[];
}

/** The result if a request runs without a skill. */
export interface WithoutSkill {
  agent: undefined;
  skill: undefined;
  /** A skill that a person may choose instead. */
  alsoFits: SkillRef | undefined;
  /** Skills that the request may have meant, best first. */
  likely?: readonly SkillRef[];
}

/** `notice` says why the model could not be asked. The search index has then decided instead. */
export type RouteResult = (Match | NoMatch) & { notice?: string };
/** How the next message of a conversation runs. */
export type NextResult = (Match | NoMatch | WithoutSkill) & { notice?: string };

/** The skill of the conversation, or `none` if it continues without one. */
export type Running = Match | 'none';

/** Choices that a person is offered. */
const offered = 3;

export function isSame(one: Running | Candidate | undefined, other: Candidate | undefined): boolean {
  return one !== undefined && one !== 'none' && one.agent === other?.agent && one.skill === other.skill;
}

export const refOf = ({ agent, skill }: Candidate): SkillRef => ({ agent: agent.name, skill: skill.id });

export function switched(running: Running, match: Match): Match {
  if (isSame(running, match)) return match;
  const from = running === 'none' ? { agent: '', skill: '' } : refOf(running);
  return { ...match, reason: { ...match.reason, switchedFrom: from } };
}

/** Returns a conversation's next step with what it runs with, and with another skill that fits about as well. */
export function goOn(running: Running, alsoFits?: SkillRef): Match | WithoutSkill {
  if (running === 'none') return { agent: undefined, skill: undefined, alsoFits };
  return { ...running, reason: { rule: 'continued', ...(alsoFits && { alsoFits }) } };
}

export function byIndex(
  text: string,
  agents: readonly FileAgent[],
  ranking: readonly Ranked[],
  confidence: number,
): RouteResult {
  const [best] = ranking;
  // One that runs only by its name is offered, however well it fits, and the next is not meant instead.
  if (best?.skill.modelInvocable && confidence >= sure) return indexMatch(best, ranking);
  return noMatch(text, agents, ranking, confidence);
}

export function indexMatch(ranked: Ranked, ranking: readonly Ranked[]): Match {
  const { agent, skill } = ranked;
  const runnerUp = ranking.find(other => other !== ranked);
  return { agent, skill, reason: withRunnerUp(indexReason(ranked), runnerUp) };
}

const indexReason = ({ skill, score, words }: Ranked): RouteReason => ({
  rule: 'index',
  score: rounded(score),
  matched: words.slice(0, 5).join(', '),
  ...(!skill.modelInvocable && { runsAs: `/${skill.id}` }),
});

export function withRunnerUp(reason: RouteReason, other: Ranked | undefined): RouteReason {
  if (!other) return reason;
  const { agent, skill, score } = other;
  return { ...reason, runnerUp: { agent: agent.name, skill: skill.id, score: rounded(score) } };
}

const rounded = (score: number): number => Math.round(score * 1000) / 1000;

export const byModel = (candidate: Candidate): RouteChoice => choiceOf(candidate, { rule: 'model' });

const choiceOf = ({ agent, skill }: Candidate, reason: RouteReason): RouteChoice => ({
  agent: agent.name,
  skill: skill.id,
  description: skill.synopsis ?? skill.description,
  reason,
});

export function noMatch(
  text: string,
  agents: readonly FileAgent[],
  ranking: readonly Ranked[],
  confidence = 0,
): NoMatch {
  const misspelt = matchMisspelt(text, agents);
  const best = ranking.slice(0, offered);
  // A skill that shares only function words with the request is not likely.
  const likeliest = best.filter(({ words, evidence }) => words.length > 0 || evidence.chosen > 0);
  const ranked = confidence >= likely ? likeliest.map(one => choiceOf(one, indexReason(one))) : [];
  const first = misspelt ? [choiceOf(misspelt, misspelt.reason)] : [];
  const choices = [
    ...first,
    ...ranked.filter(({ agent, skill }) => !first.some(one => one.agent === agent && one.skill === skill)),
  ];
  const leading = [...(misspelt ? [misspelt] : []), ...best];
  const rest = agents.flatMap(agent =>
    agent.skills
      .filter(skill => !skill.isDisabled && !leading.some(other => other.skill === skill))
      .map(skill => ({ agent, skill })),
  );
  const suggestions = [...new Set([...leading.map(({ skill }) => skill)])].flatMap(
    skill => leading.find(one => one.skill === skill) ?? [],
  );
  return {
    agent: undefined,
    skill: undefined,
    choices: choices.slice(0, offered),
    ...(misspelt && { didYouMean: misspelt.skill.id }),
    suggestions: [...suggestions, ...rest].map(refOf),
  };
}

/** Returns a result without a skill that also offers the skills which the request mentions without ordering them. */
export function withMentioned(result: NoMatch, mentioned: readonly Match[]): NoMatch {
  const isOffered = ({ agent, skill }: Match): boolean =>
    result.choices.some(choice => choice.agent === agent.name && choice.skill === skill.id);
  const more = mentioned
    .filter(match => !match.skill.isDisabled && !isOffered(match))
    .filter(({ skill }, at, all) => all.findIndex(other => other.skill === skill) === at)
    .slice(0, offered)
    .map(match => choiceOf(match, match.reason));
  return { ...result, choices: [...result.choices.slice(0, offered - more.length), ...more] };
}
