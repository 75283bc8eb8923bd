/** Says what a bug in Telos was, without the values of keys. Loaded when there is one. */
import { importRedact } from '@telos/engine/policy';

/** Returns message and stack, without the values of keys. Never throws. */
export async function lastWords(error: unknown): Promise<string> {
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
  try {
    const [{ loadConfig }, { redactor, secretsIn }, { terminalText }] = await Promise.all([
      import('@telos/engine/config'),
      importRedact(),
      import('./terminalText.ts'),
    ]);
    const { text } = redactor(secretsIn(loadConfig().env));
    return terminalText(
      `telos: This is a bug in Telos. Please report it with the text below.\n${text(said)}`,
    );
  } catch {
    return 'telos: This is a bug in Telos, and its message could not be shown safely.';
  }
}
