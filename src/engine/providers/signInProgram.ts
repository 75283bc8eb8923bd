/** Asks the program with which a person has signed in to a cloud for what opens it. */
import { execFile } from 'node:child_process';
import type { Config } from '../config.ts';
import { findProgram, programEndings, trustedPath, withPath } from '../tools/programPath.ts';

/** Where the user's programs are: in none of the folders in which runs write. */
export type SignInPlace = Pick<Config, 'env' | 'cwd' | 'workspaceFolders'>;

/** How long it may take, in milliseconds: it may ask a server itself. */
const patienceMs = 30_000;

/** Returns what a program prints, or why it printed nothing. Rejects with the abort reason on abort. */
export function printedBy(
  name: string,
  words: readonly string[],
  { env: given, cwd, workspaceFolders }: SignInPlace,
  signal: AbortSignal,
): Promise<{ text: string; problem?: string }> {
  const places = { env: given, workFolders: [cwd, ...workspaceFolders.map(({ path }) => path)] };
  const program = findProgram(name, places, programEndings(given));
  if (!program) return Promise.resolve({ text: '', problem: `${name} is not installed` });
  // It starts programs itself.
  const env = withPath(given, trustedPath(places).folders);
  return new Promise((resolve, reject) => {
    execFile(program, words, { env, signal, timeout: patienceMs }, (error, text, said) => {
      if (signal.aborted) return reject(signal.reason);
      if (!error) return resolve({ text });
      const [last] = said.trim().split('\n').slice(-1);
      resolve({ text: '', problem: last || error.message });
    });
  });
}
