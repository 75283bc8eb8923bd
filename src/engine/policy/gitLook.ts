/** Reads a command of Git that looks, and writes it so that no setting of a repository starts a program. */

import { lstat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { loadText } from '../files/regularFile.ts';
import { secretFileGlobs, secretFolderNames, secretPlaceGlobs } from '../files/sensitiveNames.ts';
import { type Computation, type Flags, type IsThere, Refusal, readFlags } from './readOnlyFlags.ts';
import { isRepository, repositoryFlags } from './text/repositoryFiles.ts';

const refused = (): never => {
  throw new Refusal('It does more than look.');
};

const ofLists = [
  ...[
    'oneline',
    'graph',
    'all',
    'decorate',
    'no-decorate',
    'reverse',
    'merges',
    'no-merges',
    'first-parent',
    'follow',
  ],
  ...['abbrev-commit', 'no-abbrev-commit', 'branches', 'tags', 'date-order', 'topo-order'],
];
const ofDiffs = [
  ...[
    'stat',
    'shortstat',
    'numstat',
    'summary',
    'name-only',
    'name-status',
    'color',
    'no-color',
    'word-diff',
  ],
  ...[
    'ignore-all-space',
    'ignore-space-change',
    'ignore-blank-lines',
    'no-renames',
    'minimal',
    'patch',
    'no-patch',
  ],
];
const gitFlags: Readonly<Record<string, Flags>> = {
  status: {
    letters: 'sbzv',
    names: ['short', 'branch', 'porcelain', 'long', 'show-stash', 'ignored', 'no-renames', 'ahead-behind'],
    valueNames: ['untracked-files'],
  },
  log: {
    letters: 'pisuw',
    valueLetters: 'nU',
    names: [...ofLists, ...ofDiffs],
    valueNames: [
      ...['max-count', 'skip', 'since', 'until', 'after', 'before', 'author', 'committer', 'grep', 'format'],
      ...['pretty', 'date', 'diff-filter', 'unified'],
    ],
  },
  diff: {
    letters: 'pswbuz',
    valueLetters: 'U',
    names: [...ofDiffs, 'cached', 'staged', 'merge-base'],
    valueNames: ['diff-filter', 'unified'],
  },
  show: {
    letters: 'pswu',
    valueLetters: 'U',
    names: [...ofDiffs, 'oneline', 'decorate', 'no-decorate', 'abbrev-commit'],
    valueNames: ['format', 'pretty', 'date', 'diff-filter', 'unified'],
  },
};

/** Settings of a repository can name programs. These switch off the ones that have a value for that. */
const quietly = [
  '--no-pager',
  ...['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'log.showSignature=false', 'diff.submodule=short'],
].flatMap(word => (word.startsWith('-') ? [word] : ['-c', word]));

/** Variables that keep Git from settings outside the repository, from writing to it and from reaching another machine. */
export const gitVariables: readonly (readonly [string, string])[] = [
  ['GIT_CONFIG_NOSYSTEM', '1'],
  ['GIT_CONFIG_GLOBAL', '/dev/null'],
  ['GIT_OPTIONAL_LOCKS', '0'],
  ['GIT_NO_LAZY_FETCH', '1'],
  ['GIT_ALLOW_PROTOCOL', 'none'],
  ['GIT_TERMINAL_PROMPT', '0'],
  ['GIT_GLOB_PATHSPECS', '1'],
  ['GIT_ICASE_PATHSPECS', '1'],
];

let hidden: readonly string[] | undefined;

/** Returns the parts of a path list that leave out files of secrets. */
function withoutSecrets(): readonly string[] {
  const folders = [...secretFolderNames, ...secretPlaceGlobs].flatMap(name => [name, `${name}/**`]);
  hidden ??= [...folders, ...secretFileGlobs()].map(name => `:!/**/${name}`);
  return hidden;
}

/** Returns how Git looks into a repository and shows no file of secrets. Throws Refusal for everything else. */
export function git(words: readonly string[], isThere: IsThere): Computation {
  const [subcommand = '', ...rest] = words[0] === '--no-pager' ? words.slice(1) : words;
  const known = Object.hasOwn(gitFlags, subcommand) ? gitFlags[subcommand]! : refused();
  const split = rest.includes('--') ? rest.indexOf('--') : rest.length;
  const { flags, operands } = readFlags('git', rest.slice(0, split).map(fewCommits), known);
  // A signature is checked by another program.
  if (flags.some(flag => /%G/.test(flag))) refused();
  const isPath = (word: string): boolean => subcommand === 'status' || isThere(word);
  const revisions = operands.filter(word => !isPath(word));
  const paths = [...operands.filter(isPath), ...rest.slice(split + 1)];
  if (!revisions.every(isRevision) || !paths.every(isBelow)) refused();
  const showsContent =
    /^(diff|show)$/.test(subcommand) || flags.some(flag => /^(-[pu]$|-U|--patch|--unified)/.test(flag));
  const places = [
    ...(paths.length === 0 && showsContent ? [':/'] : paths),
    ...(showsContent ? withoutSecrets() : []),
  ];
  const own =
    subcommand === 'status'
      ? ['--ignore-submodules=all']
      : ['--no-ext-diff', '--no-textconv', '--ignore-submodules=all'];
  const looked = [...quietly, subcommand, ...own, ...flags, ...revisions.map(commitOf)];
  return { words: [...looked, '--', ...places], ofRepository: true };
}

const fewCommits = (word: string): string => (/^-\d{1,9}$/.test(word) ? `-n${word.slice(1)}` : word);

/** Git compares any two files of the disk if one is outside the repository. */
const isBelow = (path: string): boolean => !/^[/:~-]|(^|\/)\.\.(\/|$)/.test(path);

const isRevision = (word: string): boolean =>
  /^[\w@^~{}./-]+$/.test(word) && word.split(/\.{2,3}/).every(part => isBelow(part) && !part.endsWith('/'));

/** A number can also be that of a file's content, which no path would leave out. */
const commitOf = (word: string): string =>
  word.replace(/(?<![\w@^~{}/-])[0-9a-f]{4,64}(?![\w@{}/-])/gi, '$&^{commit}');

const longestSettings = 256 * 1024;

export interface QuietRepository {
  /** The folder of its files. */
  top: string;
  /** Its own folder, or that of a further work tree. */
  gitDir: string;
}

/**
 * Returns the repository around a folder; undefined if there is none, if its settings could start a program or lead to files
 * elsewhere, or if it is only a link to one. With `isWorkTree`, a further work tree that its repository knows counts as well.
 */
export async function quietRepository(
  folder: string,
  isWorkTree: boolean,
): Promise<QuietRepository | undefined> {
  for (let top = folder; ; top = dirname(top)) {
    const place = join(top, '.git');
    const stats = await lstat(place).catch(() => undefined);
    if (stats?.isFile() && isWorkTree) return quietWorkTree(top, place);
    if (stats) return stats.isDirectory() && (await isQuiet(place)) ? { top, gitDir: place } : undefined;
    if (dirname(top) === top) return undefined;
  }
}

/** A work tree beside the first one has a file in place of the folder. The repository must name the work tree, too. */
async function quietWorkTree(top: string, place: string): Promise<QuietRepository | undefined> {
  const [, gitDir] = /^gitdir: (\/[^\n]+)\n?$/.exec(await shortText(place)) ?? [];
  if (gitDir === undefined || (await shortText(join(gitDir, 'gitdir'))).trim() !== place) return undefined;
  const common = resolve(gitDir, (await shortText(join(gitDir, 'commondir'))).trim() || '.');
  if (common === resolve(gitDir) || !(await lstat(common).catch(() => undefined))?.isDirectory())
    return undefined;
  if (await lstat(join(gitDir, 'config.worktree')).catch(() => undefined)) return undefined;
  return (await isQuiet(common)) ? { top, gitDir } : undefined;
}

/** Returns the text of a small file; empty for anything else. */
async function shortText(path: string): Promise<string> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isFile() && stats.size < 10_000 ? loadText(path) : '';
}

async function isQuiet(place: string): Promise<boolean> {
  if (!(await isRepository(place))) return false;
  for (const elsewhere of ['commondir', 'objects/info/alternates', 'config.worktree'])
    if (await lstat(join(place, elsewhere)).catch(() => undefined)) return false;
  const config = join(place, 'config');
  const settings = await lstat(config).catch(() => undefined);
  if (!settings) return true;
  if (!settings.isFile() || settings.size > longestSettings) return false;
  return repositoryFlags('.git/config', await loadText(config)).length === 0;
}
