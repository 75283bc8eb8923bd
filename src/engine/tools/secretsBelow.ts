/** Finds the secret files that lie in the way of a search, and words the flags with which the program passes them by. */
import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { isSensitive } from './secretNames.ts';

/** Different names beyond this are more than a command line holds. */
const mostNames = 2000;

/** Names of files, and of folders with all that lies in them. */
export interface SecretsBelow {
  files: readonly string[];
  folders: readonly string[];
}

/**
 * Looks at the names below real folders as `grep -r` does: links are not followed. Undefined when `isOver` says that it took too long, or
 * there are too many.
 */
export async function walkForSecrets(
  roots: readonly string[],
  isOver: () => boolean,
): Promise<SecretsBelow | undefined> {
  const files = new Set<string>();
  const folders = new Set<string>();
  const open = [...roots];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (!isSensitive(path)) {
        if (entry.isDirectory()) open.push(path);
      } else if (entry.isDirectory()) folders.add(entry.name);
      else files.add(entry.name);
    }
    if (isOver() || files.size + folders.size > mostNames) return undefined;
  }
  return { files: [...files], folders: [...folders] };
}

/** Of the files that a search would look at, as ripgrep lists them from `cwd`. Undefined when there are too many. */
export function secretsAmong(listed: readonly string[], cwd: string): SecretsBelow | undefined {
  const secret = listed.filter(path => isSensitive(resolve(cwd, path)));
  const files = [...new Set(secret.map(path => basename(path)))];
  return files.length > mostNames ? undefined : { files, folders: [] };
}

export const flagsForGrep = ({ files, folders }: SecretsBelow): string[] => [
  ...folders.map(name => `--exclude-dir=${literal(name)}`),
  ...files.map(name => `--exclude=${literal(name)}`),
];

export const flagsForRipgrep = ({ files }: SecretsBelow): string[] =>
  files.map(name => `--iglob=!${literal(name)}`);

/** A pattern for this name: a sign that has a meaning in one, or a space that is cut at its end, is any character. */
const literal = (name: string): string => name.replace(/[*?[\]{}\\ ]/g, '?');
