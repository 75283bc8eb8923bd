/** The reader's language for files that know no editor, so that they can be tested without one. */
import { english, type Say } from '../protocol/words.ts';

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
