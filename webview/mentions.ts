/** Which word behind an `@` the cursor stands in, and what it can mean. Pure. */
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
