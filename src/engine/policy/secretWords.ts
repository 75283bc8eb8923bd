/** Finds the places of secrets that a command names. */
import { lstatSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { globMatcher, longestGlob } from '../files/globPattern.ts';
import { folded, isSensitive, secretFolderNames } from '../files/sensitiveNames.ts';
import { commandReach } from './commandReach.ts';
import { piecesOf } from './shellCommands.ts';

/**
 * Returns the places of secrets that a command names, as it names them. Includes those that its quotes, patterns, variables and
 * links lead to.
 */
export function sensitiveWords(command: string, folder: string, home: string): string[] {
  const isMeant = (word: string): boolean =>
    !isMereWord(word) || isThere(join(folder, word)) || leaves.test(command);
  const words = piecesOf(command).filter(word => holdsSecrets(word) && isMeant(word));
  if (words.length > 0) return words;
  // Alternatives in braces have commas between them.
  const plain = command.replace(/["'\\]/g, '');
  const alternatives = plain.split(/[\s;&|<>()`]+/).filter(word => word.includes('{') && holdsSecrets(word));
  if (alternatives.length > 0) return alternatives;
  // If a folder is secret by its own name, that says nothing about each name in it.
  const first = isSensitive(folder) ? 1 : 0;
  const meant = commandReach(command, folder, home).paths.flatMap(({ meanings }) => meanings.slice(first));
  const isOwnWord = (path: string): boolean => dirname(path) === folded(folder) && !isMeant(basename(path));
  return [...new Set(meant.map(path => path.slice(0, -1)))].filter(
    path => isSensitive(path) && !isOwnWord(path),
  );
}

/** A word of letters, as a program or a test may have it too. As a place, it is one in the folder of the command. */
const isMereWord = (word: string): boolean => /^[\p{L}_-]+$/u.test(word);

/** Commands in which such a word may be a place elsewhere: those that go to another folder or make a name at their run. */
const leaves =
  /(?:^|[\s;&|(])(?:cd|pushd|chdir|ln|mount|find|fd|xargs)\b|\s(?:-C|--(?:directory|cwd|chdir|prefix)\b)/;

/** A place that cannot be looked at may be there. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

function holdsSecrets(word: string): boolean {
  if (isSensitive(word)) return true;
  if (!/[*?[{]/.test(word)) return false;
  const folders = word.split('/');
  const name = folders.pop() ?? '';
  return (
    isPatternFor(name, ['.env', '.npmrc', '.netrc', '.git-credentials', 'id_rsa', 'id_ed25519']) ||
    // A pattern for all hidden folders more often excludes them from a search than looks for them.
    folders.some(folder => !/^\.[*?]+$/.test(folder) && isPatternFor(folder, hiddenSecretFolders))
  );
}

const hiddenSecretFolders = secretFolderNames.filter(name => name.startsWith('.'));

/**
 * Returns true if the pattern fits one of the names. A pattern that matches everything does not count. One that is too long to be
 * read may match anything.
 */
function isPatternFor(pattern: string, names: readonly string[]): boolean {
  if (!/[*?[{]/.test(pattern) || /^[*?]+$/.test(pattern)) return false;
  return pattern.length > longestGlob || names.some(globMatcher(pattern));
}
