/** Finds the skill that a request names: by `/name`, `$name` or `agent:name`, or by its name among the words. */
import type { RouteReason, SkillRef } from '../../protocol/run.ts';
import type { FileAgent } from '../skills/discover.ts';
import type { FileSkill } from '../skills/skillFile.ts';
import { isBrand, isEveryday, isOneEditAway, type WordClass, wordClass } from './language.ts';

export interface Match {
  agent: FileAgent;
  skill: FileSkill;
  reason: RouteReason;
}

/** Returns the skill of a tree item or a list, or undefined if there is none. The reason is that the person chose it. */
export function findSkill(agents: readonly FileAgent[], ref: SkillRef): Match | undefined {
  const agent = agents.find(candidate => candidate.name === ref.agent);
  const skill = agent?.skills.find(
    candidate => candidate.id === ref.skill || candidate.names.includes(ref.skill),
  );
  return agent && skill ? { agent, skill, reason: { rule: 'chosen' } } : undefined;
}

/**
 * Returns the skill named by `/name` at the start, or by `$name` or `agent:name` anywhere, in any case. Quotes and brackets
 * around it and punctuation after it do not matter. A word of that form that names no skill is an ordinary word.
 */
export function matchExplicit(text: string, agents: readonly FileAgent[]): Match | undefined {
  for (const [position, word] of text.trim().split(/\s+/).entries()) {
    const bare = word.replace(/^["'`“”„‘’«([{]+/, '').replace(/[^\p{L}\p{N}]+$/u, '');
    const isMarked = bare.startsWith('$') || (position === 0 && bare.startsWith('/'));
    const name = isMarked ? bare.slice(1) : bare;
    const colon = name.indexOf(':');
    if (!isMarked && colon < 1) continue;
    const wanted = normalize(colon < 1 ? name : name.slice(colon + 1));
    if (!wanted) continue;
    const named = (colon < 1 ? agents : agentsCalled(name.slice(0, colon), agents)).flatMap(agent =>
      agent.skills
        .filter(skill => skill.names.some(alias => normalize(alias) === wanted))
        .map(skill => ({ agent, skill })),
    );
    // An agent's name before it addresses one that is disabled too.
    const found = firstActive(colon < 1 ? named.filter(({ skill }) => !skill.isDisabled) : named);
    if (found) return { ...found, reason: { rule: 'explicit', matched: word } };
  }
  return undefined;
}

/** Returns the agents of a name in any case, or only those with the exact spelling if any. */
function agentsCalled(name: string, agents: readonly FileAgent[]): readonly FileAgent[] {
  const exact = agents.filter(agent => agent.name === name);
  return exact.length > 0 ? exact : agents.filter(agent => normalize(agent.name) === normalize(name));
}

/**
 * Skills that a request's words name, longest name first. Among equal names, that of an agent whose name is in the request wins,
 * then one that is not shadowed, else the first agent's.
 */
export interface NameMatches {
  /** Named beyond doubt, or ordered. */
  sure: Match | undefined;
  /** Whether `sure` is an everyday name that is ordered by its place in the sentence ("review src/math.ts"). */
  isOrdered: boolean;
  /** Skills whose name is an ordinary word of the request, such as `weather`. The sentence may mean something else. */
  unsure: readonly Match[];
}

/**
 * Returns the skills of all agents whose names are whole words of the text. A hyphen, an underscore and a space are the same. A
 * name that is an everyday word, the name of a product or shorter than three letters is sure only if the request says little
 * else, reads like "run X", or orders it with an object.
 */
export function matchName(text: string, agents: readonly FileAgent[]): NameMatches {
  const request = normalize(text);
  const named = namedIn(request, agents).map(found => ({
    ...found,
    meaning: meaningOf(found.name, request),
  }));
  const meant = named.filter(({ meaning }) => meaning !== 'word');
  const best = meant.find(({ meaning }) => meaning === 'skill') ?? firstSaid(meant, request);
  const sure =
    best &&
    firstActive(
      meant.filter(({ name }) => name === best.name),
      request,
    );
  const unsure = named.filter(
    ({ name, meaning }) => meaning === 'word' && name.length > (sure?.name.length ?? 0),
  );
  return {
    sure: sure && byName(sure),
    isOrdered: sure?.meaning === 'order',
    unsure: unsure.map(byName),
  };
}

/** Returns the skill of whose name a word of the request is a misspelling of one letter. */
export function matchMisspelt(text: string, agents: readonly FileAgent[]): Match | undefined {
  const words = normalize(text)
    .split(' ')
    .filter(word => word.length >= 4 && wordClass(word) === 'rare');
  for (const agent of agents)
    for (const skill of enabled(agent))
      for (const alias of skill.names)
        for (const word of words)
          if (isOneEditAway(word, normalize(alias).replaceAll(' ', '')))
            return { agent, skill, reason: { rule: 'misspelt', matched: word } };
  return undefined;
}

const enabled = ({ skills }: FileAgent): readonly FileSkill[] =>
  skills.some(skill => skill.isDisabled) ? skills.filter(skill => !skill.isDisabled) : skills;

/** Returns the earliest in the request: "review the docs" means `review`. */
const firstSaid = <T extends { name: string }>(found: readonly T[], request: string): T | undefined =>
  [...found].sort((a, b) => ` ${request} `.indexOf(` ${a.name} `) - ` ${request} `.indexOf(` ${b.name} `))[0];

interface Named {
  agent: FileAgent;
  skill: FileSkill;
  name: string;
}

const byName = ({ agent, skill, name }: Named): Match => ({
  agent,
  skill,
  reason: { rule: 'name', matched: name },
});

/** Returns the skill that is meant. A shadowed one is meant only if the one that shadows it is not among them. */
function firstActive<T extends { agent: FileAgent; skill: FileSkill }>(
  found: readonly T[],
  request = '',
): T | undefined {
  const active = found.filter(({ skill }) => !skill.shadowedBy);
  const said = ` ${request} `;
  return active.find(({ agent }) => said.includes(` ${normalize(agent.name)} `)) ?? active[0] ?? found[0];
}

/** Returns the skills named in the request, longest names first, else in the order of the agents. */
function namedIn(request: string, agents: readonly FileAgent[]): Named[] {
  const sentence = ` ${request} `;
  const found: Named[] = [];
  for (const agent of agents) {
    for (const skill of enabled(agent)) {
      for (const alias of skill.names) {
        const name = normalize(alias);
        if (name && sentence.includes(` ${name} `)) found.push({ agent, skill, name });
      }
    }
  }
  return found.sort((a, b) => b.name.length - a.name.length);
}

/**
 * What a name in the request means: the skill beyond doubt, an order by its place in the sentence, or only the word. Both are
 * normalized.
 */
function meaningOf(name: string, request: string): 'skill' | 'order' | 'word' {
  const words = name.split(' ');
  const isFiller = words.every(word => isEmpty(wordClass(word)));
  const isShort = /^[a-z0-9]{1,2}$/.test(name);
  const isCommon = isFiller || (words.length === 1 && isEveryday(name));
  if (!isShort && !isCommon) return 'skill';
  const rest = ` ${request} `.replace(` ${name} `, ' ').trim().split(' ').filter(Boolean);
  if (rest.every(word => politeWords.has(word)) || isImperative(name, request)) return 'skill';
  if (isShort || isTalk(name, request)) return 'word';
  const saysLittle = rest.every(word => isEmpty(wordClass(word)));
  if ((!isFiller || !saysLittle) && isOrder(name, request)) return 'order';
  return !isFiller && saysLittle ? 'skill' : 'word';
}

/**
 * Whether the sentence orders what the name says: "review src/math.ts", "please write docs for the parser", "fix the failing
 * tests". A verb or a thanks before it ("thanks for the notes"), or a verb after it ("the plan sounds good"), makes it a word. The
 * name of a product is not a verb itself: "twitter oauth for my app" orders nothing of Twitter.
 */
function isOrder(name: string, request: string): boolean {
  const at = ` ${request} `.indexOf(` ${name} `);
  const before = withoutCourtesy(request.slice(0, Math.max(0, at - 1)));
  const after = request.slice(at + name.length).trim();
  const next = after.split(' ')[0] ?? '';
  if (before === '') return after !== '' && !politeWords.has(next) && !isBrand(name);
  const [verb = '', ...between] = before.split(' ');
  if (!makingWords.has(verb) || between.length > 4) return false;
  const isAsked = verb === 'what';
  // "What's the weather like on your side" is a word to the assistant.
  if (isAsked && ` ${after} `.includes(' your ')) return false;
  return between.every(
    word => (isAsked && isWords.has(word)) || (!stateWords.has(word) && !clauseWords.has(word)),
  );
}

/** Returns the words before a name without "could you please", "now" and the like. */
function withoutCourtesy(words: string): string {
  return words.replace(courtesy, '').trim();
}

/**
 * Whether the name is only a word here: "This is a test", "I love art", "what is art", "the plan sounds good". By contrast, "I want
 * art" and "what is the weather" ask for something.
 */
function isTalk(name: string, request: string): boolean {
  const at = `${request} `.indexOf(`${name} `);
  const next =
    request
      .slice(at + name.length)
      .trim()
      .split(' ')[0] ?? '';
  return talk.test(request) || stateWords.has(next) || /^what (?:is|are|s) $/.test(request.slice(0, at));
}

const talk =
  /^(?:thanks|thank|thx|cheers|nice|great|good|cool|sorry|haha|no|your|her|his|their|this|that|these|those|it|its|thats|he|she|they|we|you|is|are|was|were|(?:do|did|have) (?:i|you|we|they)|does|did|has|had|is|are|was|were|how (?:is|are|was|were|s)|the (?:\w+ )*(?:is|are|was|were)|who|i(?! (?:want|need|d|would|must))|(?:what|who|which|how|why|where|when) (?:do|does|did|has|have|can|could|should|would))(?: |$)/;

const courtesy =
  /^(?:(?:ok|okay|so|now|then|next|and|also|first|please|pls|hey|hi|hello|telos|just|quickly|bitte|can you|could you|would you|will you|i want you to|i want to|i want|i need you to|i need to|i need|i d like you to|i d like to|i d like|i would like to|help me|help me to|let s|lets|go ahead and|try to|you should|we should|we need to|it is time to)(?: |$))+/;
/** Verbs that ask for what follows them. */
const makingWords = new Set(
  'write make create do give draft prepare take add update run generate build produce show check open get fix improve send draw start finish schedule compose plan set find list read look what whats schreib schreibe mach mache erstelle gib zeig écris fais crée donne montre escribe haz crea dame muestra'.split(
    ' ',
  ),
);
/** Words after which a name is what the sentence is about. */
const stateWords = new Set(
  'is are was were be been am s has have had sounds looks look seems sucks feels went go goes did does do will would should could can might yours'.split(
    ' ',
  ),
);
const isWords = new Set(['s', 'is', 'are']);
/** Words that begin another thought. */
const clauseWords = new Set(
  'i you we they he she it that which who because when if think of about like'.split(' '),
);

const isEmpty = (kind: WordClass): boolean => kind === 'function' || kind === 'filler';
const politeWords = new Set(['please', 'now', 'today', 'again', 'thanks', 'bitte']);
const runWords = new Set(['run', 'use', 'start', 'launch', 'execute', 'invoke', 'trigger']);
const articles = new Set(['the', 'my', 'our', 'a']);

/** Whether the request asks for the skill by name: "run X", "please use the X", "the X skill". */
function isImperative(name: string, request: string): boolean {
  if (` ${request} `.includes(` ${name} skill `)) return true;
  const words = request.split(' ');
  if (politeWords.has(words[0] ?? '')) words.shift();
  if (!runWords.has(words.shift() ?? '')) return false;
  if (articles.has(words[0] ?? '')) words.shift();
  return `${words.join(' ')} `.startsWith(`${name} `);
}

/** Returns the text as lower-case words with one space between them. Everything that is not a letter or digit separates. */
function normalize(text: string): string {
  // Fast path: nearly every skill name has this form, and there may be thousands.
  if (/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text)) return text.replaceAll('-', ' ');
  return text
    .normalize('NFKC')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(' ');
}
