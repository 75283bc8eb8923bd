/** Names and texts from skills, models and files are hostile where the editor reads links and icons out of them; this disarms them. */
import { codePointOf, english, type Say, unseen } from '../../protocol/text.ts';

/** Without the joiners and selectors that emoji and some scripts are written with. */
const invisible = new RegExp(`(?![\\u200c\\u200d\\ufe0e\\ufe0f])${unseen.source}`, 'gu');

/**
 * One line that the editor shows as it is: no `[text](command:...)` link, no `$(icon)` code, nothing invisible. Longer texts are cut
 * to `limit` characters, the last of them an ellipsis.
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

/** Each hidden character as its code point, `<U+200B>`; lines stay lines. */
export const visibleText = (text: string): string => text.replace(hidden, codePointOf);

let say: Say = english;
let locale = 'en';

/** To be called once, before anything is said; `name` is the language's, as `vscode.env.language`. */
export function speak(language: Say, name: string): void {
  say = language;
  locale = name;
}

/** Day and time of day as the reader writes them. */
export const describeTime = (time: Date): string => time.toLocaleString(locale);

/** As `vscode.l10n.t`; the first argument is the English text as it stands, so that a test can find it. */
export const t: Say = (text, ...values) => say(text, ...values);
