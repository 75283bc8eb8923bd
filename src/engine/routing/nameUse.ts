/** Says whether a sentence orders what a name in it says, or only mentions it, by its grammar in English, German, French and Spanish. */
import {
  type Clause,
  clausesOf,
  type Form,
  folded,
  formOf,
  plays,
  tellsPast,
  withoutStart,
} from './clauses.ts';
import { isEveryday, wordClass } from './language.ts';

/**
 * How a request uses a name. `run`: it says the name alone, or asks to run it. `order`: the name is its verb, or a thing to make. `request`: it
 * may be either, or a thing to show. `forbid`: it says not to, or to stop it. `mention`: it tells of it, asks why, or means something that is
 * called after it. `aside`: it is in a question, or behind a preposition. `open`: its grammar does not say.
 */
export type NameUse = 'run' | 'order' | 'request' | 'forbid' | 'mention' | 'aside' | 'open';

/** The use that counts if a name is said several times. */
const strongest: readonly NameUse[] = ['run', 'order', 'request', 'forbid', 'mention', 'aside', 'open'];

/** Whether a name says what one does ("deploy"). Its other forms ("deployed") are the name, too. */
export const isAct = (name: string): boolean => plays('acts', name);

/**
 * Whether a skill of an everyday name is asked for by an order only, since the name is that of an act or of a thing that is made ("release notes"). One
 * asks for the weather by a question, too.
 */
export const isOnlyOrdered = (name: string): boolean => isAct(name) || name.includes(' ');

/** Returns how a request uses a name, which is lower-case words. Undefined if the name is not said, also not in another form of its verb. */
export function useOfName(name: string, clauses: readonly Clause[]): NameUse | undefined {
  const words = folded(name).split(' ');
  const spoken = clauses.filter(({ isQuoted }) => !isQuoted);
  const found = spoken.flatMap((clause, at) => {
    const places = placesOf(words, clause);
    if (places.length === 0) return [];
    const start = Math.max(0, at - around);
    const clauses = spoken.slice(start, at + around);
    return places.map(place => useAt({ ...place, name, clause, index: at - start, clauses }));
  });
  const isInQuote = found.length === 0 && clauses.some(clause => placesOf(words, clause).length > 0);
  return isInQuote ? 'mention' : strongest.find(use => found.includes(use));
}

/** How many clauses before and behind a name may say how it is meant. */
const around = 20;

/**
 * Whether every one of some words stands in a clause that forbids: "do not water the tomatoes". What forbids under a condition ("when it
 * rains") is a rule to set up.
 */
export function areForbidden(words: readonly string[], text: string): boolean {
  const said = words.map(folded);
  const clauses = clausesOf(text);
  const isForbidden = (clause: Clause, at: number): boolean =>
    forbids(clause.goesOn ? (clauses[at - 1] ?? clause) : clause) &&
    !clause.words.some(word => plays('conditions', word));
  const holding = clauses.flatMap((clause, at) =>
    clause.words.some(word => said.includes(word)) ? [isForbidden(clause, at)] : [],
  );
  return holding.length > 0 && holding.every(Boolean);
}

function forbids({ words, isQuestion }: Clause): boolean {
  const [first = '', second = '', third = ''] = withoutStart(words, 'greetings');
  if (isQuestion || plays('subjects', first) || plays('determiners', first)) return false;
  const verb = first === 'do' ? third : second;
  const isNegative = first === 'do' ? second === 'not' : plays('negations', first);
  if (isNegative) return !plays('reminders', verb) && !plays('statives', verb) && !plays('statives', third);
  return !plays('asks', first) && words.some(word => plays('negationsBehind', word));
}

interface Place {
  before: readonly string[];
  after: readonly string[];
  form: Form;
}

interface Said extends Place {
  name: string;
  clause: Clause;
  index: number;
  clauses: readonly Clause[];
}

function placesOf(name: readonly string[], { words }: Clause): Place[] {
  const [verb = ''] = name;
  const hasForms = name.length === 1 && isAct(verb);
  return words.flatMap((word, at): Place[] => {
    const isHere = name.every((part, offset) => words[at + offset] === part);
    const form = isHere ? 'order' : hasForms ? formOf(word, verb) : undefined;
    if (!form) return [];
    return [{ before: words.slice(0, at), after: words.slice(at + name.length), form }];
  });
}

function useAt(said: Said): NameUse {
  const { before, after, clause } = said;
  if (isNegated(said)) return 'forbid';
  const start = withoutStart(withoutReminder(before), 'greetings');
  const asked = withoutStart(start, 'courtesies');
  const isAsked = asked.length < start.length;
  const rest = withoutConjunct(withoutStart(asked, 'greetings'));
  const [first] = rest;
  const isSubordinate = rest.some(word => plays('subordinators', word) && !plays('determiners', word));
  if (isGermanWish(rest, after)) return 'run';
  if (isOwnWork(rest, said) || hasOwnClause(rest, said)) return 'mention';
  if ((!isAsked || isSubordinate) && isTold(said, first)) return 'mention';
  if (!isAsked && isQuestion(first, rest, said)) return useInQuestion(rest, said);
  const isStatement = plays('determiners', first) && rest.some(word => plays('states', word));
  if (isStatement || plays('subjects', first) || plays('remarks', first)) return 'mention';
  if (after[0] === 'ever' || (after[0] === 'permitting' && !isAct(said.name))) return 'mention';
  if (first === 'keep' && /^(?:out|away|off)$/.test(after[0] ?? '')) return 'forbid';
  if (plays('stops', first) || (clause.goesOn && !isVerbOfAction(first) && stopsBefore(said)))
    return 'forbid';
  if (after.some(word => plays('stopsBehind', word)) && rest.every(word => plays('determiners', word)))
    return 'forbid';
  if (isSubordinate) return 'open';
  if (plays('skill', after[0]) || plays('skill', rest.at(-1))) return 'run';
  if (plays('aspects', after[0])) return 'open';
  return useByVerb(rest, isAsked, said);
}

/** Returns the use in a clause that neither asks nor tells nor forbids. `rest` is what stands before the name, without courtesies. */
function useByVerb(rest: readonly string[], isAsked: boolean, said: Said): NameUse {
  const { name, after, form, clause } = said;
  const [first, ...between] = rest;
  const isBare = between.every(word => plays('determiners', word) || particle.test(word));
  if (form === 'tells')
    return plays('runs', first) && isBare ? 'run' : isAsked && first === undefined ? 'order' : 'mention';
  // In "compare weather and news" the second is no verb either.
  if (first === undefined) return clause.goesOn && !isAct(name) ? 'open' : useAtStart(said);
  if (plays('runs', first)) return isBare ? 'run' : between.some(isOutside) ? 'open' : 'request';
  if (indefinite.test(first) && between.some(isOutside)) return 'mention';
  const isNominal = rest.every(word => plays('determiners', word));
  // "Now the weekly summary, please" says the name alone.
  if (isNominal && after.length === 0 && !isAct(name)) return useAtStart(said);
  // "Tomorrow I have to deploy", as German says it.
  if (form === 'infinitive' && rest.some(word => plays('subjects', word))) return 'mention';
  // English knows no such infinitive: "the reviewer" is one who does it.
  const isInfinitive = form === 'infinitive' && !/^(?:the|an?|my|our|your)$/.test(rest.at(-1) ?? '');
  const isWhole = after.length === 0 || isAsked || /^(?:und|et|y|oder|ou|o)$/.test(after[0] ?? '');
  if (isInfinitive && !clause.isQuestion) return isWhole ? 'order' : 'open';
  if (isInfinitive && isAsked) return 'order';
  if (isNominal && isAsked) return 'order';
  const isPlain = between.length <= 4 && !between.some(isOutside);
  const isThing = isOnlyOrdered(name);
  // "Make the build faster" makes no build.
  const isMade = !isThing || after[0] === undefined || isObjectOrPlace(after[0]);
  if (plays('makes', first) && isPlain && isMade) return isBare ? 'order' : 'request';
  // "Read the docs before you answer" says how to do something else.
  if (plays('looks', first) && plays('subordinators', after[0]) && plays('subjects', after[1]))
    return 'aside';
  if (plays('makes', first) && isInside.test(between.join(' ')) && after.length === 0 && !isThing)
    return 'request';
  if (plays('looks', first) && isPlain) return isThing ? 'open' : 'request';
  return plays('prepositions', first) && !plays('determiners', first) ? 'aside' : 'open';
}

/** "Add an appointment to my" calendar. */
const isInside =
  / (?:to|in|into|on|zu|auf|a|au|dans|sur|en)(?: (?:the|my|our|der|die|dem|den|meine[rnm]?|unsere[rnm]?|le|la|mon|ma|notre|el|mi|nuestr[oa]))?$/;

/** Whether the verb of a German wish stands behind: "bitte einen Commit machen", "deploy ausführen". */
const isGermanWish = (rest: readonly string[], after: readonly string[]): boolean =>
  rest.every(word => plays('determiners', word)) &&
  plays('runsBehind', after.at(-1)) &&
  !after.slice(0, -1).some(word => plays('states', word) || plays('stopsBehind', word));

/** Whether the speaker does it: "let me deploy it myself", "lass mich das deployen". "Let me see the weather" asks for it. */
const isOwnWork = (rest: readonly string[], { name }: Said): boolean =>
  isAct(name) && /^(?:let|lass|lasst|laisse|laissez|deja) (?:me|mich|moi)(?: |$)/.test(rest.join(' '));

/** Whether the name is the subject of a sentence about it, with a clause of its own: "the notes I took yesterday are gone". */
const hasOwnClause = (rest: readonly string[], { after }: Said): boolean =>
  rest.length > 0 &&
  rest.every(word => plays('determiners', word)) &&
  plays('subjects', after[0]) &&
  after.slice(2).some(word => plays('states', word));

/** "A chair for the lawn" is one for a thing, and asks nothing of that. */
const indefinite = /^(?:an?|eine?|einen|une?|una)$/;
const particle = /^(?:off|up|me|us|mir|uns|moi|nous)$/;
/** Whether a word between a verb and a name makes the name a part of something else. */
const isOutside = (word: string): boolean =>
  plays('states', word) ||
  ((plays('relatives', word) || plays('prepositions', word)) && !plays('determiners', word));
const isObjectOrPlace = (word: string): boolean =>
  plays('determiners', word) || plays('prepositions', word) || /[/\\.@#\d]/.test(word);

/** Returns the use of a name that stands first: "deploy", "deploy the shop", "deploy main". "Deploy: what does it do?" asks. */
function useAtStart({ after, index, clauses, form }: Said): NameUse {
  const [next] = after;
  if (next !== undefined && (plays('determiners', next) || plays('prepositions', next))) return 'order';
  if (clauses.slice(index + 1).some(other => other.isQuestion || asksOrTells(other))) return 'open';
  if (next === undefined) return 'run';
  return form === 'infinitive' || isObjectOrPlace(next) ? 'order' : 'request';
}

/** "Do not push" is no question, which would end with its mark. */
const asksOrTells = ({ words }: Clause): boolean =>
  plays('whys', words[0]) ||
  (plays('asks', words[0]) && words[0] !== 'do') ||
  plays('subjects', words[0]) ||
  words.slice(1).some(word => plays('states', word));

/** Whether a negation holds for the name. "Don't forget to commit" orders it, and "not now, deploy later" does so in its second clause. */
function isNegated({ before, after, clause, clauses, index }: Said): boolean {
  if (withoutReminder(before).some(word => plays('negations', word))) return true;
  if (after.some(word => plays('negationsBehind', word))) return true;
  const next = clauses.slice(index + 1).find(({ goesOn }) => !goesOn);
  if (next && takesBack.test(next.words.join(' '))) return true;
  const earlier = clauses.slice(0, index);
  if (clause.goesOn && forbids(earlier.at(-1) ?? clause) && !isVerbOfAction(before[0])) return true;
  return earlier.some(({ words }) => {
    const said = withoutStart(words, 'greetings');
    const isOpen = said.every(word => plays('negations', word) || word === 'do');
    return isOpen && said.length > 0 && !/^(?:no|non|nein|nope|do)$/.test(said.join(' '));
  });
}

/** What is said behind an order takes it back: "deploy, but not yet", "deploy? no". "Commit, no push" does not. */
const takesBack =
  /^(?:(?:not|no|nope|nein|nicht|non|pas)(?: (?:yet|tonight|tomorrow|here|this time|noch|hier|diesmal|aujourd hui|ici|cette fois|hoy|aun|todavia|aqui|esta vez))?|(?:noch|todavia|aun) (?:nicht|no)|(?:command )?not found)$/;

/** "Skip the build and the deploy" stops both, "stop talking and deploy" does not. */
function stopsBefore({ clauses, index, form }: Said): boolean {
  const [first, second = ''] = clauses[index - 1]?.words ?? [];
  return plays('stops', first) && !(second.endsWith('ing') && form === 'order');
}

/** Returns the words behind "don't forget to". */
function withoutReminder(words: readonly string[]): readonly string[] {
  const at = words.findIndex((word, index) => plays('reminders', word) && isBesideNegation(words, index));
  if (at < 0) return words;
  const rest = words.slice(at + 1);
  while (/^(?:to|zu|de|d|nicht|pas|das|le|el|den|die)$/.test(rest[0] ?? '')) rest.shift();
  return rest;
}

const isBesideNegation = (words: readonly string[], at: number): boolean =>
  words.slice(Math.max(0, at - 2), at + 3).some(word => plays('negations', word));

/** Whether something is told of the name: "the deploy broke", "commit 3f2a broke login", "deploy logs say 502". */
function isTold({ name, before, after, form }: Said, first: string | undefined): boolean {
  const hasObject = plays('determiners', after[0]) && !(after[0] === 'a' && plays('states', after[1]));
  if (hasObject && before.length === 0) return false;
  if (place.test(before.at(-1) ?? '')) return false;
  const end = after.findIndex(
    (word, at) => plays('relatives', word) || (word === 'was' && plays('subjects', after[at + 1])),
  );
  const scope = after.slice(0, end < 0 ? 6 : Math.min(end, 6));
  const isSubject = !isAct(name) && before.every(word => plays('determiners', word));
  if (isSubject && agreesBehind(after)) return true;
  if (isSubject && scope.some((word, at) => tellsPast(word) && isVerbAt(after, at))) return true;
  if (!isAct(name) && affectsSomebody([...before, ...name.split(' '), ...after], before.length)) return true;
  return form !== 'tells' && !isVerbOfAction(first) && scope.some(word => plays('states', word));
}

/** Whether a plural and its verb follow, so that the name is a part of the subject: "camera lenses scratch easily", "price tags fall off". */
const agreesBehind = ([noun = '', verb = '', end = '']: readonly string[]): boolean =>
  /[^s]s$/.test(noun) &&
  !isVerbOfAction(verb) &&
  (plays('determiners', end) || /^(?:no|out|off|up|down|away|apart|over|on|[a-z]{3,}ly)$/.test(end)) &&
  !plays('prepositions', verb) &&
  !plays('determiners', verb) &&
  wordClass(verb) !== 'function';

/** Whether a word such as "raised" has the place of a verb: "raised the price", not "the raised price". */
function isVerbAt(words: readonly string[], at: number): boolean {
  const next = words[at + 1];
  const isBeforeObject =
    plays('determiners', next) || plays('prepositions', next) || /^(?:me|us|him|them)$/.test(next ?? '');
  return (next === undefined || isBeforeObject) && !plays('determiners', words[at - 1]);
}

/**
 * Whether a verb behind the first word of `from` agrees with its subject and has a person or what is theirs as its object: "music makes me happy",
 * "lights hurt my eyes". An order agrees with nothing: "birdsong identify my recording", "notes add my idea".
 */
function affectsSomebody(words: readonly string[], from: number): boolean {
  const isPlural = (word: string): boolean => word.endsWith('s') && !word.endsWith('ss');
  return words.some((verb, at) => {
    // In "messages from Bob annoy me" the subject stands before the preposition.
    const behind = words.slice(from, at).findIndex((word, index) => index > 0 && plays('prepositions', word));
    const subject = words[behind > 0 ? from + behind - 1 : at - 1];
    // "La musique me fatigue" has the object before the verb.
    if (at === from + 1 && from > 0 && /^(?:me|m|nous|nos)$/.test(verb)) return true;
    if (at <= from || subject === undefined || !theirs.test(words[at + 1] ?? '')) return false;
    const isVerb = !plays('prepositions', verb) && !plays('determiners', verb) && !plays('subjects', verb);
    return isVerb && !isVerbOfAction(verb) && !isAct(verb) && isPlural(subject) !== isPlural(verb);
  });
}

const theirs = /^(?:me|my|us|our|him|her|his|them|their|everyone|everybody|people)$/;

/** What is told of a thing "on Heroku" is not told of Heroku. */
const place = /^(?:on|in|at|auf|im|bei|sur|dans|en)$/;

const isVerbOfAction = (word: string | undefined): boolean =>
  plays('runs', word) || plays('makes', word) || plays('looks', word);

function isQuestion(first: string | undefined, rest: readonly string[], { clause, name }: Said): boolean {
  if (first === undefined) return false;
  if (first === 'do') return clause.isQuestion || plays('subjects', rest[1]);
  if (plays('whys', first) || plays('asks', first) || (first === 'por' && rest[1] === 'que')) return true;
  return clause.isQuestion && !isVerbOfAction(first) && !name.startsWith(first);
}

function useInQuestion(rest: readonly string[], { name, after }: Said): NameUse {
  const [first, ...more] = rest;
  if (plays('skill', after[0]) && /^(?:is|are|was|were|does|did)$/.test(first ?? '')) return 'mention';
  if (plays('whys', first) || first === 'por' || (first === 'who' && tellsPast(more[0] ?? '')))
    return 'mention';
  // "Is Wled open source?" asks about a product, "is my calendar free?" and "is rain coming?" ask the skill.
  if (more.length === 0 && be.test(first ?? '') && after.length > 0 && !isEveryday(name)) return 'mention';
  const between = more.filter(word => !/^(?:s|is|are)$/.test(word));
  const isAboutIt =
    /^(?:does|do|work|works|mean|means|for)$/.test(after[0] ?? '') ||
    /^do(?:es)?$/.test(more.findLast(word => !plays('determiners', word)) ?? '');
  if (isAboutIt) return 'mention';
  if ((first === 'hows' || (first === 'how' && /^(?:is|are)$/.test(more[0] ?? ''))) && !isAct(name))
    return more.length < 3 && (isWhen(after[0]) || plays('prepositions', after[0])) ? 'request' : 'aside';
  if (first !== 'what' && first !== 'whats') return 'aside';
  // "What a terrible summary" judges one, "what makes a good test" asks for its nature.
  if (first === 'what' && /^an?$/.test(more[0] ?? '')) return 'mention';
  if (/^\w+[^s]s$/.test(more[0] ?? '') && plays('determiners', more[1])) return 'mention';
  if (more.at(-1) === 'your') return 'aside';
  // "What is a context manager?" wants the words explained.
  if (between.length === 0 || /^an?$/.test(between.at(-1) ?? '')) return 'mention';
  const isPlain = between.every(word => !plays('states', word) && !plays('relatives', word));
  return isPlain && !isAct(name) && !after.includes('your') ? 'request' : 'aside';
}

/** Whether a sentence ends, or says when: "how is the weather tomorrow". */
const isWhen = (word: string | undefined): boolean => word === undefined || wordClass(word) === 'filler';
const be = /^(?:is|are|ist|sind|est|sont|es|esta|son)$/;

/** Returns what stands behind "test and" where a name is the second verb. */
function withoutConjunct(words: readonly string[]): readonly string[] {
  const isJoined =
    words.length === 2 &&
    /^(?:and|und|et|y)$/.test(words[1] ?? '') &&
    (isAct(words[0] ?? '') || isVerbOfAction(words[0]));
  return isJoined ? [] : words;
}
