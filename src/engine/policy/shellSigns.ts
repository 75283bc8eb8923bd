/** Names the characters that replace, in a word of shell text, the parts that a shell expands. Turns words into them and back. */

/** Characters in the text of a word for the parts that a shell expands. No other text can be taken for them. */
export const signs = {
  /** Anything at all, including `/`: the result of a command, or an unknown variable. */
  any: '\ue000',
  /** `*`: anything within a name. */
  star: '\ue001',
  /** `?`, or a choice in brackets: one character. */
  one: '\ue002',
  /** Unquoted `{`, `,` and `}`. */
  open: '\ue010',
  comma: '\ue011',
  close: '\ue012',
  /** An unquoted `~` where a path can begin. */
  tilde: '\ue013',
  /** Around the name of a variable. */
  variable: '\ue014',
  end: '\ue015',
} as const;

/** Returns a pattern of file names, as search tools take it, with `signs`. */
export const fileWildcards = (pattern: string): string =>
  pattern
    .replace(reservedSigns, signs.one)
    .replaceAll('\\', '/')
    .replace(/\*{2,}/g, signs.any)
    .replaceAll('*', signs.star)
    .replace(/\[[!^]?\]?[^\]]*\]|\?/g, signs.one)
    .replaceAll('{', signs.open)
    .replaceAll(',', signs.comma)
    .replaceAll('}', signs.close);

/** Returns a word as a shell would be given it, without its quotes. A part that only the shell will know becomes `$_`. */
export const shellText = (text: string): string =>
  text.replace(reservedSigns, sign => textOfSigns[sign] ?? '');

/** Signs in a text from outside, where each counts as one unknown character. */
export const reservedSigns = /[\ue000-\ue01f]/g;

const textOfSigns: Readonly<Record<string, string>> = {
  [signs.any]: '$_',
  [signs.star]: '*',
  [signs.one]: '?',
  [signs.open]: '{',
  [signs.comma]: ',',
  [signs.close]: '}',
  [signs.tilde]: '~',
  [signs.variable]: '$',
};

const lettersOf: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  e: '\x1b',
  a: '\x07',
  b: '\b',
};

/** Returns the text between the quotes of `$'…'`, in which characters can be written by their numbers. */
export const withoutEscapes = (text: string): string =>
  text.replace(
    /\\(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,6})|([0-7]{1,3})|(.))/gs,
    (_, hex, short, long, octal, letter) => {
      const digits = hex ?? short ?? long;
      const code = digits === undefined ? Number.parseInt(octal ?? '', 8) : Number.parseInt(digits, 16);
      if (Number.isNaN(code)) return lettersOf[letter] ?? letter;
      return code > 0x10ffff ? signs.one : String.fromCodePoint(code).replace(reservedSigns, signs.one);
    },
  );
