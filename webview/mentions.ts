/** Which word behind an `@` the cursor stands in, and what it can mean. Pure. */
import type { ChatInfo } from '../src/protocol/webview.ts';
import { t } from './words.ts';

/** The mention at the cursor: where it stands in the text, its `@` included, and what is typed of it. */
export interface Mention {
  start: number;
  end: number;
  typed: string;
}

export interface OfferedMention {
  /** What stands behind the `@`. */
  word: string;
  /** Empty for a file, whose path says all. */
  description: string;
}

/** What the host has found, and for which words. */
export interface FoundFiles {
  query: string;
  files: readonly string[];
}

const fixed: readonly OfferedMention[] = [
  { word: 'selection', description: t('What is selected in the editor') },
  { word: 'problems', description: t('Errors and warnings of the open file') },
];

/** Undefined where the cursor stands in no mention; an address such as `ada@example.com` is none. */
export function mentionAt(text: string, cursor: number): Mention | undefined {
  const match = /(?<![\p{L}\p{N}_.@/-])@([^\s@]*)$/u.exec(text.slice(0, cursor));
  if (!match) return undefined;
  const typed = match[1] ?? '';
  return { start: cursor - typed.length - 1, end: cursor, typed };
}

/** While the host searches on, what it found for fewer letters is still shown where it fits. */
export function offeredMentions(typed: string, { query, files }: FoundFiles): OfferedMention[] {
  const words = typed.toLowerCase();
  const known = words.startsWith(query.toLowerCase()) ? files : [];
  const fitting = known.filter(file => file.toLowerCase().includes(words));
  return [
    ...fixed.filter(({ word }) => word.startsWith(words)),
    ...fitting.map(word => ({ word, description: '' })),
  ];
}

type ListedSkill = ChatInfo['skills'][number];

export interface Completion {
  skill: ListedSkill;
  /** What the request begins with when it is taken, the slash included: `/kickoff` or, where agents share the name, `/kairos:kickoff`. */
  text: string;
}

/** More than a person looks through; typing on narrows the list. */
const mostCompletions = 30;

/** Skills for a request of a slash and the beginning or a part of a name, the best first; undefined for any other request. */
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
  ranked.sort((a, b) => a.rank - b.rank || a.skill.skill.localeCompare(b.skill.skill));
  return ranked.slice(0, mostCompletions).map(({ skill, text }) => ({ skill, text }));
}

/** How a request begins that means this skill and no other of its name; undefined where its name alone says so. */
export function callOfShared(skill: ListedSkill, skills: readonly ListedSkill[]): string | undefined {
  return skills.some(other => other.skill === skill.skill && other.agent !== skill.agent)
    ? `${written(skill, true)} `
    : undefined;
}

/** The skill that a request begins with, written as `completeSkill` writes it. */
export function namedSkill(request: string, skills: readonly ListedSkill[]): ListedSkill | undefined {
  const word = /^\s*(\/\S+)/.exec(request)?.[1]?.toLowerCase();
  if (word === undefined) return undefined;
  return completeSkill(word, skills)?.find(({ text }) => text.toLowerCase() === word)?.skill;
}

/** A name is one word behind the slash; its spaces mean the same as hyphens. An agent's must stand as it is. */
function written({ agent, skill }: ListedSkill, isShared: boolean): string {
  const name = skill.replace(/\s+/g, '-');
  return isShared && !/\s/.test(agent) ? `/${agent}:${name}` : `/${name}`;
}

function rankOf(typed: string, name: string, whole: string): number | undefined {
  if (name.startsWith(typed) || whole.startsWith(typed)) return 0;
  if (name.split(/[^\p{L}\p{N}]+/u).some(part => part.startsWith(typed))) return 1;
  return name.includes(typed) ? 2 : undefined;
}
