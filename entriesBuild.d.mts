import type { Plugin } from 'esbuild';

export interface Entry {
  /** Path of the file from the root. */
  file: string;
  /** False if its package does nothing when it loads. */
  sideEffects?: boolean;
  /** Where each name comes from. Missing if the file has its names itself. */
  names?: ReadonlyMap<string, { file: string; name: string }>;
  /** Files that load at the call of a name. Missing with `names`. */
  later?: ReadonlyMap<string, string>;
}

export function readEntries(root: string): Map<string, Entry>;
export function throughEntries(
  code: string,
  entries: ReadonlyMap<string, Entry>,
  pathOf: (file: string) => string,
): string;
export function entriesApart(root: string): Plugin;
