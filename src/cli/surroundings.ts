/** What a call of the command line finds around it. `process` is one; a program that calls it within itself hands in another. */
import { isAbsolute, resolve } from 'node:path';

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program that runs and the script that it was started with, then what was typed. */
  readonly argv: readonly string[];
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  /** Set when output could not be written. */
  exitCode?: number | string | null | undefined;
  /** Returns the folder of the call. Throws if it no longer exists. */
  cwd(): string;
  /** Hears a signal until `off`. */
  on(signal: EndingSignal, hear: () => void): unknown;
  off(signal: EndingSignal, hear: () => void): unknown;
  /** Ends the call at once. */
  exit(code: number): never;
}

export type EndingSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

export type Output = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  /** Missing if it is no file of the system. */
  readonly fd?: number;
};

/** Returns the absolute path of one that was typed. Throws if it is relative to a folder that no longer exists. */
export const typedPath = (path: string, { cwd }: Pick<Surroundings, 'cwd'>): string =>
  isAbsolute(path) ? resolve(path) : resolve(cwd(), path);
