/** The reader's language for files that know no editor, so that they can be tested without one. */
import { english, type Say } from '../protocol/words.ts';

let say: Say = english;

/** To be called once, before anything is said. */
export function speak(language: Say): void {
  say = language;
}

/** As `vscode.l10n.t`; the first argument is the English text as it stands, so that a test can find it. */
export const t: Say = (text, ...values) => say(text, ...values);
