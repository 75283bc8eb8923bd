/** Asks the person whether what a command did to files that others run or obey is kept. */
import { dirname, relative } from 'node:path';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import { escapeInvisible } from '../files/plainText.ts';
import { folded } from '../files/sensitiveNames.ts';
import type { Ask } from '../policy/decision.ts';
import { onYourPath, type ProgramFolders } from '../policy/fileDefaults.ts';

/** A change that others run or obey. */
export interface ObeyedChange {
  /** Absolute. */
  path: string;
  /** Null if the command made it. */
  before: object | null;
  /** Who runs or obeys it, in a few words. */
  by: string;
  /** The folder of the PATH in which it is a program, or which it leads elsewhere. */
  onPath?: string;
}

/** Maximum number of files that a question or a sentence names. */
const mostNamed = 5;

/** Returns the paths below the working folder, of which a few are named. */
export function namesOf(changes: readonly { path: string }[], root: string): string {
  const names = changes.map(({ path }) => escapeInvisible(relative(root, path) || '.'));
  if (names.length <= mostNamed) return names.join(', ');
  return `${names.slice(0, mostNamed).join(', ')} (+${names.length - mostNamed})`;
}

/** Returns who runs or obeys the files, each once. */
export const byOf = (obeyed: readonly ObeyedChange[]): string =>
  [...new Set(obeyed.map(({ by }) => by))].join(', ');

/**
 * Returns the folder of the PATH in which a file of that mode is a program, or which a link there leads elsewhere; undefined for any other
 * file. An executable file elsewhere is what every build makes.
 */
export function programFolder(
  path: string,
  { isLink, mode }: { isLink: boolean; mode: number },
  { folders, ways }: ProgramFolders,
): string | undefined {
  if (isLink && ways.has(folded(path))) return path;
  if (!folders.has(folded(dirname(path)))) return undefined;
  return isLink || (mode & 0o111) !== 0 ? dirname(path) : undefined;
}

/** Returns the question about them. `names` are those that it shows. */
export function questionAbout(obeyed: readonly ObeyedChange[], names: string): Ask {
  const [only] = obeyed;
  const by = byOf(obeyed);
  const said: Sentence =
    obeyed.length > 1 || !only
      ? sentence('The command changed files that {0} run or obey: {1}. Keep the changes?', by, names)
      : only.before === null
        ? sentence('The command made {0}, which {1} run or obey. Keep it?', names, by)
        : sentence('The command changed {0}, which {1} run or obey. Keep the change?', names, by);
  const folders = new Set(obeyed.flatMap(({ onPath }) => onPath ?? []));
  const sentences = [
    said,
    ...[...folders].slice(0, mostNamed).map(folder => onYourPath(escapeInvisible(folder))),
  ];
  return {
    action: 'ask',
    rule: 'box.obeyed',
    reason: spoken(sentences),
    sentences,
    subject: names,
    scopes: ['once'],
  };
}
