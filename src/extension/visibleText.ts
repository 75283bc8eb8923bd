/** Text from outside as it is, with nothing hidden: whoever reads it before a run sees every character that a model would read. */

/** Control, format, unassigned and private characters, blanks that are no common one, and marks that draw nothing. */
const hidden = /(?![ \n])(?:\p{C}|\p{Z}|\p{Default_Ignorable_Code_Point})/gu;

/** Each hidden character as its code point in `⟨U+…⟩`. */
export const visibleText = (text: string): string =>
  text.replace(
    hidden,
    character => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );
