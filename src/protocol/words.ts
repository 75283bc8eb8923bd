/** How sentences are put together that are said in the reader's language by some frontends, and in English by others. */

/** Takes an English text with places `{0}`, `{1}` … and says it with these values, in whatever language the frontend has. */
export type Say = (text: string, ...values: (string | number)[]) => string;

export const english: Say = (text, ...values) => withValues(text, values);

export function withValues(text: string, values: readonly (string | number)[]): string {
  return text.replace(/\{(\d+)\}/g, (place, index: string) => String(values[Number(index)] ?? place));
}

/** `1 skill`, `2 skills`: an English noun that takes an s. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
