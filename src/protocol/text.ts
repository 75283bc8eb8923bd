/**
 * Lists the characters of a hostile text that a person would not see as they are.
 * One list for every place that shows such a text: the chat view, the editor's own dialogs, a terminal,
 * an exported page and the findings of an agent's card.
 */

/** Characters, as an expression that is made at its first use: reading properties of Unicode takes longer than loading most files. */
export class Characters {
  /** For a longer expression with the flag `u`. */
  readonly source: string;
  #one: RegExp | undefined;
  #every: RegExp | undefined;

  constructor(source: string) {
    this.source = source;
  }

  /** Whether one of them is in the text. */
  test(text: string): boolean {
    this.#one ??= new RegExp(this.source, 'u');
    return this.#one.test(text);
  }

  /** Returns the text with what `to` makes of each of them. */
  replacedIn(text: string, to: (character: string) => string): string {
    this.#every ??= new RegExp(this.source, 'gu');
    return text.replace(this.#every, character => to(character));
  }
}

/**
 * Control, format (bidirectional, zero width, tags), surrogate, private and unassigned characters.
 * Separators of lines and paragraphs, spaces other than U+0020, and blank letters.
 * Selectors that change the character before them. Also line feeds and tabs.
 */
export const unseen = new Characters('(?! )[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800]');

/**
 * Characters that move a cursor or change the direction of text. None that the prose of any language needs.
 * Line feeds and tabs are not included.
 */
export const steering = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** The characters of `unseen` that file systems and readers of names skip. A name is the same with and without them. */
export const ignored = new Characters('[\\p{Default_Ignorable_Code_Point}\\p{Cf}]');

/**
 * Those of `unseen` with which a text can hide another: tags, zero width characters, blank letters. Joiners, marks of direction and
 * selectors, which languages and emoji need, are not included.
 */
export const hiding = new Characters(
  '(?!\\u034f|\\u17b4|\\u17b5|[\\u180b-\\u180d\\u180f]|[\\ufe00-\\ufe0f]|[\\xad\\u061c\\u200c-\\u200f\\ufeff])[\\p{Default_Ignorable_Code_Point}\\ufff9-\\ufffb]',
);

/** Returns a character as an escape such as `<U+200B>`. */
export const codePointOf = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`;

/** Returns a text to decide about: every character that is not seen as it is becomes a code. Line feeds and tabs stay. */
export const exactText = (text: string): string =>
  unseen.replacedIn(text, character => (/[\n\t]/.test(character) ? character : codePointOf(character)));

/**
 * Returns the beginning of a text, with at most `most` units of UTF-16. What a reader sees as one character, such as an emoji with its
 * skin, is whole or not there.
 */
export const beginningOf = (text: string, most: number): string =>
  text.length <= most ? text : text.slice(0, characterAt(text, most).start);

/** Returns the end of a text, in the same way. */
export const endOf = (text: string, most: number): string =>
  text.length <= most ? text : text.slice(characterAt(text, text.length - most).end);

/** Returns a text of at most `most` units of UTF-16: the whole one, or its beginning and an ellipsis. No character is cut in two. */
export const shortened = (text: string, most: number): string =>
  text.length <= most ? text : `${beginningOf(text, most - 1)}…`;

/** Units of UTF-16 that a character has at most, for a cut. A stranger can pile up marks without end. */
const longestCharacter = 64;

let characters: Intl.Segmenter | undefined;

/** Returns where the character starts and ends that a cut at `at` would be in. Both are `at` if the cut is between two. */
function characterAt(text: string, at: number): { start: number; end: number } {
  const unit = text.charCodeAt(at);
  // Nothing below this joins the character before it, but a line feed.
  if (at <= 0 || at >= text.length || (unit < 0x300 && unit !== 0x0a)) return { start: at, end: at };
  const isHalved = (unit & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
  const from = Math.max(0, at - longestCharacter);
  characters ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  const found = characters.segment(text.slice(from, at + longestCharacter)).containing(at - from)!;
  const [start, end] = [from + found.index, from + found.index + found.segment.length];
  if (start === at) return { start, end: start };
  if (end - start <= longestCharacter && (found.index > 0 || from === 0)) return { start, end };
  return isHalved ? { start: at - 1, end: at + 1 } : { start: at, end: at };
}

/** Takes an English text with places `{0}`, `{1}` …. Returns it with these values, in the language of the frontend. */
export type Say = (text: string, ...values: (string | number)[]) => string;

export const english: Say = (text, ...values) => withValues(text, values);

export function withValues(text: string, values: readonly (string | number)[]): string {
  return text.replace(/\{(\d+)\}/g, (place, index: string) => String(values[Number(index)] ?? place));
}

/**
 * A sentence as data, so that a frontend can say it in the reader's language: an English text with places `{0}`, `{1}` …
 * and the text at that place. A test demands German for every text that the code gives to `sentence`.
 */
export interface Sentence {
  readonly text: string;
  readonly values: readonly (string | number | Sentence)[];
}

/** The first argument is the literal English text, so that a test can find it. */
export const sentence = (text: string, ...values: Sentence['values']): Sentence => ({ text, values });

/** Returns a text of a program, a library or a person as a sentence, which is the same in every language. */
export const asSaid = (text: string): Sentence => ({ text: '{0}', values: [text] });

/** Returns the sentences in the language of the frontend, one after the other. */
export function spoken(sentences: readonly Sentence[], translate: Say = english): string {
  return sentences
    .map(({ text, values }) => translate(text, ...values.map(value => inWords(value, translate))))
    .join(' ');
}

/** Returns what an event carries: the sentences, and the English text for a frontend that does not translate. */
export const asMessage = (...sentences: Sentence[]): { message: string; sentences: Sentence[] } => ({
  message: spoken(sentences),
  sentences,
});

/** Returns the sentences of a message, or its text as one. */
export const sentencesOf = ({
  message,
  sentences,
}: {
  message: string;
  sentences?: readonly Sentence[] | undefined;
}): readonly Sentence[] => sentences ?? [asSaid(message)];

/** Returns the sentences as one, for a place in another. */
export const asOne = (sentences: readonly Sentence[]): Sentence => ({
  text: sentences.map((_, index) => `{${index}}`).join(' '),
  values: sentences,
});

const inWords = (value: Sentence['values'][number], translate: Say): string | number =>
  typeof value === 'object' ? spoken([value], translate) : value;

/** Returns a whole number with separators: `1,048,576`. The system's own formatter takes longer to load than a tool call. */
export const grouped = (count: number): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');

/** Returns `1 skill`, `2 skills` and so on, for an English noun with a plural in s. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** East Asian letters and pictures, which take two columns. */
const wideCharacter = new Characters(
  String.raw`[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}`,
);

/** Combining marks and joiners. */
const columnlessCharacter = new Characters(String.raw`[\p{Mn}\p{Me}\p{Cf}]`);

/** Returns the number of columns that a line takes on a terminal. */
export function columnsOf(line: string): number {
  if (/^[ -~]*$/.test(line)) return line.length;
  let columns = 0;
  for (const character of line)
    columns += columnlessCharacter.test(character) ? 0 : wideCharacter.test(character) ? 2 : 1;
  return columns;
}
