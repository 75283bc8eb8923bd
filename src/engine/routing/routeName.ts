/** Finds the skill that a request names: by `/name`, `$name` or `agent:name`, or by its name among the words. */
import type { RouteReason, SkillRef } from '../../protocol/run.ts';
import type { FileAgent } from '../skills/discover.ts';
import type { FileSkill } from '../skills/skillFile.ts';
import { type WordClass, wordClass } from './language.ts';

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
    const wanted = normalise(colon < 1 ? name : name.slice(colon + 1));
    if (!wanted) continue;
    const named = (colon < 1 ? agents : agentsCalled(name.slice(0, colon), agents)).flatMap(agent =>
      agent.skills
        .filter(skill => skill.names.some(alias => normalise(alias) === wanted))
        .map(skill => ({ agent, skill })),
    );
    const found = firstActive(named);
    if (found) return { ...found, reason: { rule: 'explicit', matched: word } };
  }
  return undefined;
}

/** Returns the agents of a name in any case, or only those with the exact spelling if any. */
function agentsCalled(name: string, agents: readonly FileAgent[]): readonly FileAgent[] {
  const exact = agents.filter(agent => agent.name === name);
  return exact.length > 0 ? exact : agents.filter(agent => normalise(agent.name) === normalise(name));
}

/** Returns the skill that a request names beyond doubt, explicitly or by its words. */
export function namedSkill(text: string, agents: readonly FileAgent[]): Match | undefined {
  return matchExplicit(text, agents) ?? matchName(text, agents).sure;
}

/**
 * Skills that a request's words name, longest name first. Among equal names, one that is not shadowed wins, else the first
 * agent's.
 */
export interface NameMatches {
  /** Named beyond doubt. */
  sure: Match | undefined;
  /** Skills whose name is an ordinary word of the request, such as `weather`. The sentence may mean something else. */
  unsure: readonly Match[];
}

/**
 * Returns the skills of all agents whose names are whole words of the text. A hyphen, an underscore and a space are the same. A
 * name that is an everyday word or shorter than three letters is sure only in two cases. Either the request says little else, or
 * it reads like "run X".
 */
export function matchName(text: string, agents: readonly FileAgent[]): NameMatches {
  const request = normalise(text);
  const named = namedIn(request, agents);
  const meant = named.filter(({ name }) => isMeant(name, request));
  const sure = firstActive(meant.filter(({ name }) => name === meant[0]?.name));
  const unsure = named.filter(
    ({ name }) => !isMeant(name, request) && name.length > (sure?.name.length ?? 0),
  );
  return { sure: sure && byName(sure), unsure: unsure.map(byName) };
}

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
const firstActive = <T extends { skill: FileSkill }>(found: readonly T[]): T | undefined =>
  found.find(({ skill }) => !skill.shadowedBy) ?? found[0];

/** Returns the skills named in the request, longest names first, else in the order of the agents. */
function namedIn(request: string, agents: readonly FileAgent[]): Named[] {
  const sentence = ` ${request} `;
  const found: Named[] = [];
  for (const agent of agents) {
    for (const skill of agent.skills) {
      for (const alias of skill.names) {
        const name = normalise(alias);
        if (name && sentence.includes(` ${name} `)) found.push({ agent, skill, name });
      }
    }
  }
  return found.sort((a, b) => b.name.length - a.name.length);
}

/** Whether a name in the request means the skill and not the word. Both are normalised. */
function isMeant(name: string, request: string): boolean {
  const words = name.split(' ');
  const classes = words.map(wordClass);
  const isShort = /^[a-z0-9]{1,2}$/.test(name);
  const isCommon = classes.every(isEmpty) || (words.length === 1 && classes[0] === 'ordinary');
  if (!isShort && !isCommon) return true;
  const rest = ` ${request} `.replace(` ${name} `, ' ').trim().split(' ').filter(Boolean);
  if (rest.every(word => politeWords.has(word)) || isImperative(name, request)) return true;
  if (isShort || !classes.includes('ordinary') || isTalk(name, request)) return false;
  return rest.every(word => isEmpty(wordClass(word)));
}

/**
 * Whether the name is only a word here: "This is a test", "I love art", "what is art". By contrast, "I want art" and "what is the
 * weather" ask for something.
 */
function isTalk(name: string, request: string): boolean {
  return (
    talk.test(request) ||
    /^what (?:is|are|s) $/.test(`${request} `.slice(0, `${request} `.indexOf(`${name} `)))
  );
}

const talk =
  /^(?:this|that|these|those|it|its|thats|he|she|they|we|you|is|are|was|were|(?:do|did|have) (?:i|you|we|they)|does|i(?! (?:want|need|d|would|like|must))|(?:what|who|which|how|why|where|when) (?:do|does|did|has|have|can|could|should|would))(?: |$)/;

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
function normalise(text: string): string {
  // Fast path: nearly every skill name has this form, and there may be thousands.
  if (/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text)) return text.replaceAll('-', ' ');
  return text
    .normalize('NFKC')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(' ');
}
