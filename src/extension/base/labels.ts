/**
 * Disarms names and texts from skills, models and files. They are hostile if the editor reads links and icons out of
 * them.
 */
import { codePointOf, english, type Say, unseen } from '../../protocol/text.ts';

/** Matches invisible characters except the joiners and selectors that emoji and some scripts need. */
const invisible = new RegExp(`(?![\\u200c\\u200d\\ufe0e\\ufe0f])${unseen.source}`, 'gu');

/**
 * Returns one line that the editor shows literally: no `[text](command:...)` link, no `$(icon)` code, nothing
 * invisible. Longer texts are cut to `limit` characters, the last of them an ellipsis.
 */
export function plainLabel(text: string, limit = 200): string {
  const line = text
    .replace(/\s+/g, ' ')
    .replace(invisible, '')
    .replaceAll('](', '] (')
    .replaceAll('$(', '$ (')
    .trim();
  const characters = [...line];
  return characters.length <= limit ? line : `${characters.slice(0, limit - 1).join('')}…`;
}

const hidden = new RegExp(`(?!\\n)(?:${unseen.source})`, 'gu');

/** Replaces each hidden character with its code point, such as `<U+200B>`. Line breaks are kept. */
export const visibleText = (text: string): string => text.replace(hidden, codePointOf);

let say: Say = english;
let locale = 'en';

/**
 * Sets the language. Call it once, before any text is shown. `name` is the language's name, in the form of
 * `vscode.env.language`.
 */
export function speak(language: Say, name: string): void {
  say = language;
  locale = name;
}

/** Formats the date and time of day for the reader's language. */
export const describeTime = (time: Date): string => time.toLocaleString(locale);

/** Translates like `vscode.l10n.t`. The first argument is the literal English text, so that a test can find it. */
export const t: Say = (text, ...values) => say(text, ...values);
