/** The chat view's texts in the reader's language: English where the host has handed over no other. */
import { type Say, withValues } from '../src/protocol/text.ts';

/** The page is made by the host, which knows the language; a test without a page reads English. */
const page = typeof document === 'undefined' ? undefined : document;
const table: Readonly<Record<string, string>> = JSON.parse(
  page?.getElementById('root')?.dataset['words'] ?? '{}',
);

/** For dates and lists. Numbers keep the English form, in which models and logs write them too. */
export const language = page?.documentElement.lang || 'en';

/** The first argument is the English text as it stands, so that a test can find it. */
export const t: Say = (text, ...values) => withValues(table[text] ?? text, values);
