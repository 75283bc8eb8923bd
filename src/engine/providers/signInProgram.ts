/** Asks the program with which a person has signed in to a cloud for what opens it. */
import { execFile } from 'node:child_process';
import { findProgram } from '../tools/programPath.ts';

/** How long it may take, in milliseconds: it may ask a server itself. */
const patienceMs = 30_000;

/** Returns what a program prints, or why it printed nothing. Rejects with the abort reason on abort. */
export function printedBy(
  name: string,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ text: string; problem?: string }> {
  const program = findProgram(name, { env });
  if (!program) return Promise.resolve({ text: '', problem: `${name} is not installed` });
  return new Promise((resolve, reject) => {
    execFile(program, words, { env, signal, timeout: patienceMs }, (error, text, said) => {
      if (signal.aborted) return reject(signal.reason);
      if (!error) return resolve({ text });
      const [last] = said.trim().split('\n').slice(-1);
      resolve({ text: '', problem: last || error.message });
    });
  });
}
