/** Provides the chat view's texts in the reader's language: English if the host has provided no other. */
import { type Say, withValues } from '../src/protocol/text.ts';

/** The host creates the page and knows the language. A test without a page reads English. */
const page = typeof document === 'undefined' ? undefined : document;
const table: Readonly<Record<string, string>> = JSON.parse(
  page?.getElementById('root')?.dataset['words'] ?? '{}',
);

/** Language of dates and lists. Numbers keep the English form, which models and logs also use. */
export const language = page?.documentElement.lang || 'en';

/** Translates a text. The first argument is the unchanged English text, so that a test can find it. */
export const t: Say = (text, ...values) => withValues(table[text] ?? text, values);
