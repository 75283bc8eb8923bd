/** Says how sure a ranking is, by its evidence and by how the sentence is built. */
import { tellsPast } from './clauses.ts';
import { wordClass } from './language.ts';

/** Judges whether a score may be trusted. */
export interface Evidence {
  /** Information of the whole request, in nats. */
  mass: number;
  /** Information of the words that the skill's name has too, in nats. */
  inName: number;
  /** Share of the request that the skill's best line explains, 0 to 1. Less if the request says little. */
  line: number;
  /** Information of the words that belong to topics which the skill does not speak of, in nats. */
  foreign: number;
  /** Number of words of the request that say what it is about, and how many of them the skill has. */
  words: number;
  found: number;
  /** How much the request is like one for which the person chose the skill, 0 to 1. */
  chosen: number;
}

/** From this confidence on, a skill runs unasked. */
export const sure = 0.66;
/** From this confidence on, the first skills are offered as choices. Below it, no skill is likely. */
export const likely = 0.025;
/** From this likeness on, a request is taken for the same as one for which the person chose a skill. */
export const same = 0.9;

/** Weights of a logistic regression, fitted on requests as people type them. Each is the change of the log odds for one unit of its evidence. */
const weights = {
  base: -4,
  logScore: 1.03,
  /** Lead over the second skill, as a share of the first's score, and in scores. */
  lead: 2.59,
  margin: 10.9,
  /** Information of the words that the name has too, in units of nine nats, at most one. */
  inName: 3.48,
  line: 3.48,
  logMass: 1.52,
  isTold: -1.58,
  /** Information of the words of other topics, in units of six nats, at most two. */
  foreign: -1.43,
  /** Not fitted: a request that is half like one for which the skill was chosen is as sure as one with a clear lead. */
  chosen: 3,
} as const;
/** Score that the second has at least: to lead where few compete says less. */
const leastSecond = 0.05;
/** The most that a ranking is worth which decides nothing. */
const unsure = 0.6;
/** Two skills fit alike if the first leads by less than this share of its score. */
const clearLead = 0.1;
/** One word of so many that say what a request is about is too little to run anything by. */
const manyWords = 4;

/** Returns how likely it is that the first skill of a ranking is the one that is meant, 0 to 1. */
export function confidenceOf(
  text: string,
  ranking: readonly { score: number; evidence: Evidence }[],
): number {
  const [first, second] = ranking;
  if (!first) return 0;
  const { score, evidence } = first;
  const margin = Math.max(0, score - Math.max(second?.score ?? 0, leastSecond));
  const lead = margin / score;
  const said = text.trim();
  const odds =
    weights.base +
    weights.logScore * Math.log(score + 0.01) +
    weights.lead * lead +
    weights.margin * margin +
    weights.inName * Math.min(1, evidence.inName / 9) +
    weights.line * evidence.line +
    weights.chosen * evidence.chosen +
    weights.logMass * Math.log(evidence.mass + 1) +
    (isTold(said) ? weights.isTold : 0) +
    weights.foreign * Math.min(2, evidence.foreign / 6);
  const confidence = 1 / (1 + Math.exp(-odds));
  const isOver = isTold(said) && said.toLowerCase().split(/\s+/).some(tellsPast);
  const saysTooLittle = isOver || !/\s/.test(said) || evidence.found < (evidence.words < manyWords ? 1 : 2);
  return saysTooLittle || score - (second?.score ?? 0) < clearLead * score
    ? Math.min(confidence, unsure)
    : confidence;
}

/** Whether a sentence tells something ("the bus was late") and asks for nothing. */
export function isTold(text: string): boolean {
  return telling.test(text) && !asking.test(text);
}

const telling =
  /^(?:(?:oh|well|so|yes|no|ok|okay|sorry|haha|wow|and|but),? )*(?:i|we|you|he|she|they|it|the|my|our|his|her|your|their|that|this|there|these|those|it's|that's|he's|she's|we're|they're|you're|i'm|i've|i'd|im|ive|happy|ich|wir|das|der|die|es|mein|meine|je|j'ai|c'est|nous|il|elle|estoy|tengo|es|mi)\b/i;
const asking =
  /\?|\b(?:please|pls|want|wants|need|needs|like to|can you|could you|would you|help|let's|lets|should|must|what|which|how|when|where|who|why|bitte|möchte|will|brauche|kannst|veux|voudrais|besoin|peux|quiero|necesito|puedes)\b|[,;:] /i;
/**
 * Whether a message leans on the answer before it: it orders nothing, and a word that only that answer explains ("him", "the second
 * one") comes before `word`, for which another skill fits. What such a message mentions is mostly a detail of the same matter.
 */
export function leansBack(text: string, word = ''): boolean {
  const said = text.toLowerCase();
  const at = said.search(reference);
  return at >= 0 && at <= said.indexOf(word) && !beginsWithOrder(said);
}

/** Whether the first word that is not a courtesy may be a verb. Questions and remarks begin with small words, which orders do not. */
function beginsWithOrder(text: string): boolean {
  const [first = ''] = text.replace(courtesy, '').match(/\p{L}+/u) ?? [];
  return first !== '' && wordClass(first) !== 'function' && !remarking.test(first);
}

const reference = new RegExp(
  `(?<!\\p{L})(?:${[
    'he|she|they|him|her|them|his|hers|their|theirs',
    '(?:the|that|this|these|those|which)(?: \\p{L}+)? ones?',
    'er|ihm|ihn|(?:der|die|das|den|dem) (?:erste|zweite|dritte|letzte|andere)[nr]?',
    'elles?|lui|celui|celles?|ceux|(?:le|la) (?:premi(?:er|ère)|deuxième|seconde?|troisième|derni(?:er|ère))|l.autre',
    'él|ellas?|ellos|es[ea]|(?:el|la) (?:primer[oa]|segund[oa]|tercer[oa]|últim[oa]|otr[oa])',
  ].join('|')})(?!\\p{L})`,
  'u',
);
const courtesy =
  /^(?:(?:and|then|now|also|ok|okay|great|good|cool|well|so|please|just|can you|could you|would you|i want you to|und|dann|jetzt|bitte|kannst du|könntest du|et|puis|alors|peux-tu|tu peux|y|luego|ahora|puedes|por favor)\b[,.!]* *)+/;
const remarking =
  /^(?:thanks?|thx|sorry|haha|perfect|danke|merci|gracias|warum|wieso|welche[rns]?|wessen|pourquoi|quel(?:le)?s?|cuál(?:es)?|qué|quién|est)$/;
