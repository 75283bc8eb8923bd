/** Finds the word after an `@` at the cursor, and what it can mean. Pure. */
import type { ChatInfo, OfferedWord } from '@telos/protocol/webview';
import { t } from './host.ts';

/** The mention at the cursor: its place in the text, `@` included, and what is typed of it. */
export interface Mention {
  start: number;
  end: number;
  typed: string;
}

export interface OfferedMention {
  /** The word after the `@`. */
  word: string;
  /** Set for a resource of an MCP server, which the run reads. */
  isResource?: true;
  /** Empty for a file, since its path says everything. */
  description: string;
}

/** Files that the host has found, and the words it searched for. */
export interface FoundFiles {
  query: string;
  files: readonly string[];
}

const fixed: readonly OfferedMention[] = [
  { word: 'selection', description: t('Selection in the editor') },
  { word: 'problems', description: t('Errors and warnings of the open file') },
];

/** Returns the mention at the cursor, or undefined if there is none. An address such as `ada@example.com` is not a mention. */
export function mentionAt(text: string, cursor: number): Mention | undefined {
  const match = /(?<![\p{L}\p{N}_.@/-])@([^\s@]*)$/u.exec(text.slice(0, cursor));
  if (!match) return undefined;
  const typed = match[1] ?? '';
  return { start: cursor - typed.length - 1, end: cursor, typed };
}

/** Returns the mentions to offer. While the host is still searching, its matching results for fewer letters are shown. */
export function offeredMentions(
  typed: string,
  { query, files }: FoundFiles,
  resources: readonly OfferedWord[] = [],
): OfferedMention[] {
  const words = typed.toLowerCase();
  const known = words.startsWith(query.toLowerCase()) ? files : [];
  const fitting = known.filter(file => file.toLowerCase().includes(words));
  return [
    ...fixed.filter(({ word }) => word.startsWith(words)),
    ...fitting.map(word => ({ word, description: '' })),
    ...resources
      .filter(({ word, description }) => `${word} ${description}`.toLowerCase().includes(words))
      .slice(0, mostCompletions)
      .map(({ word, description }) => ({ word, description, isResource: true as const })),
  ];
}

type ListedSkill = ChatInfo['skills'][number];

export interface Completion {
  skill: ListedSkill;
  /** Beginning of the request when this is taken, slash included: `/kickoff`, or `/kairos:kickoff` if agents share the name. */
  text: string;
}

/** More than a person looks through. More typing narrows the list. */
const mostCompletions = 30;

/**
 * Returns skills for a request of a slash and a beginning or part of a name, best first. Returns undefined for any other request.
 */
export function completeSkill(request: string, skills: readonly ListedSkill[]): Completion[] | undefined {
  const typed = /^\/(\S*)$/.exec(request)?.[1]?.toLowerCase();
  if (typed === undefined) return undefined;
  const holders = new Map<string, number>();
  for (const { skill } of skills) holders.set(skill, (holders.get(skill) ?? 0) + 1);
  const ranked = skills.flatMap(skill => {
    const text = written(skill, holders.get(skill.skill)! > 1);
    const rank = rankOf(typed, skill.skill.toLowerCase(), text.slice(1).toLowerCase());
    return rank === undefined ? [] : [{ skill, text, rank }];
  });
  // A slash alone shows every skill, with those of an agent together.
  if (typed === '') return byAgent(ranked);
  // Among equals, the likeliest stay first.
  ranked.sort((a, b) => a.rank - b.rank);
  return ranked.slice(0, mostCompletions).map(({ skill, text }) => ({ skill, text }));
}

/** Returns those of an agent together, with the agent of the likeliest first. */
function byAgent(completions: readonly Completion[]): Completion[] {
  const agents = new Set(completions.map(({ skill }) => skill.agent));
  return [...agents].flatMap(agent => completions.filter(({ skill }) => skill.agent === agent));
}

/** Returns the prompts of MCP servers for a request of a slash and a part of a name. A skill of the same name is called instead. */
export function completePrompt(
  request: string,
  prompts: readonly OfferedWord[],
  skills: readonly ListedSkill[],
): readonly OfferedWord[] {
  const typed = /^\/(\S*)$/.exec(request)?.[1]?.toLowerCase();
  if (typed === undefined) return [];
  const called = new Set(skills.map(skill => written(skill, true).slice(1).toLowerCase()));
  return prompts
    .filter(({ word }) => word.toLowerCase().includes(typed) && !called.has(word.toLowerCase()))
    .slice(0, mostCompletions);
}

/** Returns a beginning of the request that means only this skill. Returns undefined if its name alone is unique. */
export function callOfShared(skill: ListedSkill, skills: readonly ListedSkill[]): string | undefined {
  return skills.some(other => other.skill === skill.skill && other.agent !== skill.agent)
    ? `${written(skill, true)} `
    : undefined;
}

/** Returns the skill at the beginning of a request, written as `completeSkill` writes it. */
export function namedSkill(request: string, skills: readonly ListedSkill[]): ListedSkill | undefined {
  const word = /^\s*(\/\S+)/.exec(request)?.[1]?.toLowerCase();
  if (word === undefined) return undefined;
  return completeSkill(word, skills)?.find(({ text }) => text.toLowerCase() === word)?.skill;
}

/** Writes a skill as one word after the slash. Hyphens may replace a skill's spaces, but not those of an agent. */
function written({ agent, skill }: ListedSkill, isShared: boolean): string {
  const name = skill.replace(/\s+/g, '-');
  return isShared && !/\s/.test(agent) ? `/${agent}:${name}` : `/${name}`;
}

function rankOf(typed: string, name: string, whole: string): number | undefined {
  if (name.startsWith(typed) || whole.startsWith(typed)) return 0;
  if (name.split(/[^\p{L}\p{N}]+/u).some(part => part.startsWith(typed))) return 1;
  return name.includes(typed) ? 2 : undefined;
}
