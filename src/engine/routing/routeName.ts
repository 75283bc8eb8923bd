/** Finds the skill that a request names: by `/name`, `$name` or `agent:name`, or by its name among the words. */
import type { RouteReason, SkillRef } from '@telos/protocol/run';
import type { FileAgent } from '../skills/discover.ts';
import type { FileSkill } from '../skills/skillFile.ts';
import type { SkillRole } from '../skills/skillSettings.ts';
import { type Clause, clausesOf } from './clauses.ts';
import { isBrand, isEveryday, isKnown, isOneEditAway, type WordClass, wordClass } from './language.ts';
import { isAct, isOnlyOrdered, useOfName } from './nameUse.ts';

export interface Match {
  agent: FileAgent;
  skill: FileSkill;
  reason: RouteReason;
  /** As which the skill runs, if it names one. */
  role?: SkillRole | undefined;
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
 * around it and punctuation after it do not matter. A word of that form that names no skill is an ordinary word, and one that is forbidden
 * ("do not run $deploy") names none.
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
    const isForbidden = position > 0 && useOfName(wanted, clausesOf(text)) === 'forbid';
    if (found && !isForbidden) return { ...found, reason: { rule: 'explicit', matched: word } };
  }
  return undefined;
}

/** Returns the agents of a name in any case, or only those with the exact spelling if any. */
function agentsCalled(name: string, agents: readonly FileAgent[]): readonly FileAgent[] {
  const exact = agents.filter(agent => agent.name === name);
  return exact.length > 0 ? exact : agents.filter(agent => normalize(agent.name) === normalize(name));
}

/** The skills that a request's words name. */
export interface NameMatches {
  /**
   * The skill that is meant: the longest name, else the one said first. Among equal names, that of an agent whose name is in the request wins,
   * then one that is not shadowed, else the first agent's.
   */
  sure: Match | undefined;
  /**
   * How sure that is. `certain`: named beyond doubt. `ordered`: an everyday name that is the verb of the sentence, or what to make ("review
   * src/math.ts"). `likely`: an everyday name that is asked for in another way, which a model knows better.
   */
  sureness: 'certain' | 'ordered' | 'likely';
  /** Skills whose name is said in a sentence that may mean something else, such as `weather`. The longest name comes first. */
  unsure: readonly Match[];
  /** Skills that are only mentioned ("do not deploy", "the deploy failed"): they run by no likeness of words, and are offered. */
  mentioned: readonly Match[];
}

/**
 * Returns the skills of all agents whose names are whole words of the text. A hyphen, an underscore and a space are the same. A name that
 * no one says every day is sure unless the sentence only mentions it; any other only if the sentence orders it.
 */
export function matchName(text: string, agents: readonly FileAgent[]): NameMatches {
  const request = normalize(text);
  const clauses = clausesOf(text);
  const named = withoutParts(namedIn(request, agents, clauses), request).map(found => ({
    ...found,
    meaning: meaningOf(found.name, request, clauses, isOneWord(found.name, text)),
  }));
  const meant = named.filter(({ meaning }) => meaning !== 'word' && meaning !== 'mention');
  const best = meant.find(({ meaning }) => meaning === 'certain') ?? firstSaid(meant, request);
  const sure =
    best &&
    firstActive(
      meant.filter(({ name }) => name === best.name),
      request,
    );
  const ofMeaning = (wanted: Meaning): Match[] =>
    named
      .filter(({ name, meaning }) => meaning === wanted && name.length > (sure?.name.length ?? 0))
      .map(byName);
  const { meaning } = sure ?? {};
  return {
    sure: sure && byName(sure),
    sureness: meaning === 'ordered' || meaning === 'likely' ? meaning : 'certain',
    unsure: ofMeaning('word'),
    mentioned: named.filter(one => one.meaning === 'mention').map(byName),
  };
}

/** Returns the skill of whose name a word of the request is a misspelling of one letter. */
export function matchMisspelt(text: string, agents: readonly FileAgent[]): Match | undefined {
  const words = normalize(text)
    .split(' ')
    .filter(word => word.length >= 4 && !isKnown(word));
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

/** Returns the skills named in the request, longest names first, else in the order of the agents. Verbs count in any form ("deployed"). */
function namedIn(request: string, agents: readonly FileAgent[], clauses: readonly Clause[]): Named[] {
  const sentence = ` ${request} `;
  const found: Named[] = [];
  for (const agent of agents) {
    for (const skill of enabled(agent)) {
      for (const alias of skill.names) {
        const name = normalize(alias);
        if (!name) continue;
        if (sentence.includes(` ${name} `) || (isAct(name) && useOfName(name, clauses) !== undefined))
          found.push({ agent, skill, name });
      }
    }
  }
  return found.sort((a, b) => b.name.length - a.name.length);
}

type Meaning = NameMatches['sureness'] | 'mention' | 'word';

/** Returns the names without those that are said only as a part of a longer one: "weekly" in "weekly summary". */
function withoutParts(named: readonly Named[], request: string): Named[] {
  const isPart = ({ name }: Named): boolean =>
    named.some(
      ({ name: longer }) =>
        longer !== name &&
        ` ${longer} `.includes(` ${name} `) &&
        !` ${request} `.replaceAll(` ${longer} `, '  ').includes(` ${name} `),
    );
  return named.filter(one => !isPart(one));
}

/** Whether a name of several words is written as its skill is called: "release-notes" is no everyday word, "release notes" is. */
const isOneWord = (name: string, text: string): boolean =>
  name.includes(' ') && new RegExp(`${name.replaceAll(' ', '[-_]')}`, 'i').test(text);

/** What a name in a request means. `request` is its text, normalized like the name. */
function meaningOf(name: string, request: string, clauses: readonly Clause[], isOneWord: boolean): Meaning {
  const words = name.split(' ');
  const isFiller = words.every(word => isEmpty(wordClass(word)));
  const isShort = /^[a-z0-9]{1,2}$/.test(name);
  const isCommon =
    isFiller || words.every(word => isEveryday(word) || isAct(word) || isEmpty(wordClass(word)));
  const use = useOfName(name, clauses) ?? 'open';
  if (use === 'forbid' || use === 'mention') return 'mention';
  if (use === 'run' || (!isShort && !isCommon) || (isOneWord && use !== 'aside')) return 'certain';
  if (isShort) return 'word';
  const rest = ` ${request} `.replace(` ${name} `, ' ').trim().split(' ').filter(Boolean);
  const saysLittle = rest.every(word => isEmpty(wordClass(word)));
  // The name of a product is not a verb: "twitter oauth for my app" orders nothing of Twitter.
  const isOrdered = (use === 'order' || use === 'request') && !(isBrand(name) && request.startsWith(name));
  if (isOrdered && !(isFiller && saysLittle)) return use === 'order' ? 'ordered' : 'likely';
  return use === 'open' && !isFiller && !isOnlyOrdered(name) && saysLittle ? 'certain' : 'word';
}

const isEmpty = (kind: WordClass): boolean => kind === 'function' || kind === 'filler';

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
