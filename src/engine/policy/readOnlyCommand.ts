/** Accepts a command line that can only look at files in given folders. Refuses every other line, and names the word at fault. */

import { resolve } from 'node:path';
import { shortened } from '@telos/protocol/text';
import {
  folderHolding,
  goesDownAndUp,
  isInside,
  PathProblem,
  refuseSpecialFile,
  resolvePath,
} from '../files/paths.ts';
import { isInsideFolded, isSensitive, secretFolderNames, secretPlaceGlobs } from '../files/sensitiveNames.ts';
import type { ReadOnlyCommand, ReadOnlyProgram } from '../tools/readOnlyShell.ts';
import { forms, Refusal, shown, type WrittenCommand } from './readOnlyFlags.ts';
import { readWords } from './shellCommands.ts';

/** Scope of a command. All paths absolute; folders can be missing and can be links. */
export interface ReadOnlyScope {
  /** Every path must be in one of these. If there are none, only `pwd` is allowed. */
  roots: readonly string[];
  /** The folder in which the command runs. */
  cwd: string;
  home: string;
  /** Telos's own folders, which are never read. A root inside one of them does not count as Telos's own. */
  protectedDirs?: readonly string[];
}

/**
 * Result of the check. `reason` is a sentence that names what was refused; shorter than 1 KiB. `named` contains the paths that
 * the line names, as they are written and as far as it could be read.
 */
export type ReadOnlyVerdict =
  | { allowed: true; command: ReadOnlyCommand; named: readonly string[] }
  | { allowed: false; reason: string; named: readonly string[] };

/** In characters of a line. */
const longestCommand = 8192;

const programs = Object.keys(forms).join(', ');

/**
 * Reads a line as plain words. Checks every flag against the list of its program, and every path, with its links followed,
 * against the scope. The allowed result is not the line but `command`, which is run without a shell by `runReadOnly` in
 * tools/readOnlyShell.ts. Runs nothing. Throws for nothing that a line can say.
 */
export async function parseReadOnlyCommand(line: string, scope: ReadOnlyScope): Promise<ReadOnlyVerdict> {
  const named: string[] = [];
  try {
    const command = await readCommand(line, scope, named);
    return { allowed: true, command, named };
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof PathProblem)) throw error;
    const reason = shortened(error.message, 600);
    return { allowed: false, reason, named };
  }
}

async function readCommand(line: string, scope: ReadOnlyScope, named: string[]): Promise<ReadOnlyCommand> {
  if (line.length > longestCommand)
    throw new Refusal(`The command has ${line.length} characters; at most ${longestCommand} are read.`);
  const { words, refused } = readWords(line);
  const [program, ...rest] = words;
  if (refused !== undefined) {
    named.push(...(program === undefined ? [] : pathsNamed(program, rest)));
    throw new Refusal(
      `${shown(refused)} is not taken here: there is no shell, and one program runs at a time. Put a pattern that holds it in single quotes.`,
    );
  }
  if (program === undefined) throw new Refusal('The command is empty. Give a command line.');
  if (!isKnown(program)) {
    named.push(...pathsNamed(program, rest));
    throw new Refusal(`${shown(program)} is not run here. Only these are, by these names: ${programs}.`);
  }
  const written = { ...nothing, ...forms[program](rest) };
  named.push(...written.paths);
  const cwd = await resolvePath(scope.cwd, scope.cwd, scope.home);
  const paths: string[] = [];
  for (const path of written.goesThroughFolder ? ['.'] : written.paths)
    paths.push(await checkedPath(path, cwd, written.readsBelow, scope));
  const shownPaths = written.paths.map((path, index) =>
    meansItself(path, paths[index]!, cwd) ? path : paths[index]!,
  );
  const argv = argvOf(program, written, shownPaths);
  const searched = written.readsBelow ? { searched: shownPaths } : {};
  return { program, argv, paths, lines: written.lines, cwd, ...searched };
}

const nothing: WrittenCommand = {
  flags: [],
  patterns: [],
  paths: [],
  tests: [],
  lines: { first: 1, last: Number.POSITIVE_INFINITY },
  readsBelow: false,
};

const isKnown = (program: string): program is ReadOnlyProgram => Object.hasOwn(forms, program);

/** Returns the paths that a refused line seems to name. */
function pathsNamed(program: string, words: readonly string[]): readonly string[] {
  if (!isKnown(program)) return words.filter(word => !word.startsWith('-'));
  try {
    return forms[program](words).paths ?? [];
  } catch (error) {
    if (error instanceof Refusal) return [];
    throw error;
  }
}

/** Returns the real path. Throws Refusal or PathProblem. */
async function checkedPath(
  path: string,
  cwd: string,
  readsBelow: boolean,
  { roots, home, protectedDirs = [] }: ReadOnlyScope,
): Promise<string> {
  if (path === '-') throw new Refusal('"-" would read what is typed in, and nothing is. Name a file.');
  // Programs take a quoted tilde for a name; Telos takes it for the home folder.
  if (path.startsWith('~')) throw new Refusal(`${shown(path)}: write the path without a tilde.`);
  const real = await resolvePath(path, cwd, home);
  if ((await folderHolding(real, roots, home)) === undefined)
    throw new Refusal(`${shown(path)} leads out of the folders that may be read (${roots.join(', ')}).`);
  await refuseSpecialFile(real);
  if (isSensitive(real) || isSensitive(resolve(cwd, path)))
    throw new Refusal(`${shown(path)} looks like it holds keys, passwords or other secrets.`);
  for (const folder of protectedDirs) {
    const own = await resolvePath(folder, folder, home);
    if (isInsideFolded(own, real) && !(await hasRootInside(own, real, roots, home)))
      throw new Refusal(`${shown(path)} belongs to Telos itself.`);
    if (readsBelow && isInsideFolded(real, own))
      throw new Refusal(`Files of Telos itself lie below ${shown(path)}. Name a folder further down.`);
  }
  return real;
}

/**
 * Returns true if a root inside Telos's own folder contains the path. For its own runs, an agent in the data folder is not among
 * Telos's own files.
 */
async function hasRootInside(
  own: string,
  real: string,
  roots: readonly string[],
  home: string,
): Promise<boolean> {
  for (const root of roots) {
    const realRoot = await resolvePath(root, root, home);
    if (realRoot !== own && isInside(own, realRoot) && isInside(realRoot, real)) return true;
  }
  return false;
}

/**
 * Returns the arguments of the program. Some keep it from running other programs, or from reading files of secrets below its
 * paths. Such files count as far as they are known before a look at the folders. Paths come after `--`. They stay as written if
 * that is what they mean, so that the output shows them as written too.
 */
function argvOf(
  program: ReadOnlyProgram,
  { flags, patterns, tests, readsBelow }: WrittenCommand,
  shownPaths: readonly string[],
): string[] {
  switch (program) {
    case 'find':
      return [...flags, ...shownPaths, ...tests];
    case 'rg': {
      const places = secretPlaceGlobs.map(place => (place.includes('/') ? `**/${place}` : place));
      const secret = [...secretFolderNames, ...places].map(name => `--iglob=!${name}`);
      return ['--no-config', ...flags, ...secret, '--', ...patterns, ...shownPaths];
    }
    case 'grep': {
      const names = secretPlaceGlobs.filter(place => !place.includes('/')).map(inAnyCase);
      const folders = [...secretFolderNames.map(inAnyCase), ...names];
      const secret = [
        ...folders.map(name => `--exclude-dir=${name}`),
        ...names.map(name => `--exclude=${name}`),
      ];
      return [...flags, ...(readsBelow ? secret : []), '--', ...patterns, ...shownPaths];
    }
    default:
      return [...flags, '--', ...shownPaths];
  }
}

/** grep has no globs that ignore case. A choice in brackets already has both cases. */
const inAnyCase = (glob: string): string =>
  glob.replace(/\[[^\]]*\]|[a-z]/gi, sign =>
    sign.length > 1 ? sign : `[${sign.toLowerCase()}${sign.toUpperCase()}]`,
  );

/** Returns false for a path over a link. The program then gets the target that the link had when it was checked. */
const meansItself = (written: string, real: string, cwd: string): boolean =>
  resolve(cwd, written) === real && !goesDownAndUp(written);
