/**
 * Which characters of a hostile text a person would not see as they are. One list for every place that shows such a text: the chat view,
 * the editor's own dialogs, a terminal, an exported page and the findings of an agent's card.
 */

/**
 * Control, format (bidirectional, zero width, tags), surrogate, private and unassigned characters, separators of lines and paragraphs,
 * spaces other than U+0020, blank letters, and selectors that change the character before them. Also line feeds and tabs.
 */
export const unseen = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** What moves a cursor or turns the direction of text, and nothing that prose of some language needs. Line feeds and tabs stay out. */
export const steering = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** `<U+200B>` for a character. */
export const codePointOf = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`;

/** Takes an English text with places `{0}`, `{1}` … and says it with these values, in whatever language the frontend has. */
export type Say = (text: string, ...values: (string | number)[]) => string;

export const english: Say = (text, ...values) => withValues(text, values);

export function withValues(text: string, values: readonly (string | number)[]): string {
  return text.replace(/\{(\d+)\}/g, (place, index: string) => String(values[Number(index)] ?? place));
}

/** `1 skill`, `2 skills`: an English noun that takes an s. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
