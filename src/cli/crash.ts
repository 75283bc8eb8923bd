/** Words the message for a defect of the command line itself: everything that helps to find it, and no keys. */
import { loadConfig } from '../engine/config.ts';
import { redactor, secretsIn } from '../engine/redact.ts';
import { terminalText } from './terminalText.ts';

/** Returns message and stack, without the values of keys. Never throws. */
export function lastWords(error: unknown): string {
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
  try {
    const { text } = redactor(secretsIn(loadConfig().env));
    return terminalText(`telos: This is a defect of Telos.\n${text(said)}`);
  } catch {
    return 'telos: This is a defect of Telos, and its message could not be shown safely.';
  }
}
