/** Reads commands of Git: those that only look, those that write, lead to another repository or start a program, and what would be lost for good. */
import type { Danger } from '@telos/protocol/run';
import type { ReadWord } from './commandReach.ts';
import { wordsOf } from './readOnlyFlags.ts';
import { signs } from './shellSigns.ts';

/** Returns true for Git and for programs that do its work. `name` is that of a program, in small letters. */
export const writesRepositories = (name: string): boolean =>
  /^(?:git|git-[\w-]+|gh|glab|hub|tea|jj|hg|svn|scalar|lazygit|tig|gitk)$/.test(name);

/** Returns true for a text that names Git as a program. */
export const mentionsGit = (text: string): boolean =>
  /(?<![\w.-])(?:git|gh|glab|hub|jj)(?:-\w+|\.exe)?(?![\w.-])/i.test(text.replace(/["'\\]/g, ''));

/** Returns true for a text that sets or names a variable which leads Git to another repository or to other settings. */
export const steersGit = (text: string): boolean =>
  /\bGIT_(?!PAGER=cat\b|TERMINAL_PROMPT=0\b|OPTIONAL_LOCKS=0\b)[A-Z_]+/.test(text.replace(/["'\\]/g, ''));

/** Commands that only look, whatever settings there are: no alias replaces them. */
const looks = wordsOf([
  'status log diff show blame annotate grep ls-files ls-tree cat-file rev-parse rev-list describe shortlog merge-base name-rev diff-tree diff-files',
  'diff-index check-ignore check-attr count-objects for-each-ref show-ref show-branch whatchanged range-diff cherry version',
]);

/** Commands that only look with one of these words first, or with none if the empty one is among them. */
const looksWith: Readonly<Record<string, RegExp>> = {
  branch: /^(?:|-a|-r|-v|-vv|-l|--list|--all|--remotes|--show-current|--contains|--merged|--no-merged)$/,
  tag: /^(?:|-l|--list|-n\d*|--contains|--points-at)$/,
  remote: /^(?:|-v|--verbose|get-url)$/,
  stash: /^(?:list|show)$/,
  worktree: /^list$/,
  config: /^(?:-l|--list|--get|--get-all|--get-regexp|get|list)$/,
  reflog: /^(?:|show)$/,
};

const harmlessBefore = /^(?:--no-pager|-P|--no-optional-locks|--no-replace-objects|--literal-pathspecs)$/;
/** Flags with which a command that looks writes a file or starts a program. */
const actsAfter = /^(?:--output(?:=.*)?|-O.*|--open-files-in-pager.*|--ext-diff|--textconv|--filters)$/;

const advice =
  'The engine commits what has passed, and a step only looks at its own repository, with commands such as `git status` or `git diff`.';

/** Returns why a worker does not run it; undefined for a command that only looks at the repository it runs in. */
export function gitProblem(program: string, operands: readonly ReadWord[]): string | undefined {
  if (program !== 'git') return `${program} is not run in a plan. ${advice}`;
  const words = operands.map(({ values: [first = ''] }) => first);
  if (operands.some(({ values }) => values.length !== 1) || words.some(word => word.includes(signs.any)))
    return `Not all words of this Git command can be read. ${advice}`;
  let at = 0;
  while (harmlessBefore.test(words[at] ?? '')) at++;
  const [verb = '', ...rest] = words.slice(at);
  if (/^(?:|--version|-v|--help|-h)$/.test(verb)) return undefined;
  if (verb.startsWith('-'))
    return `\`git ${verb}\` can lead to another repository or to other settings. ${advice}`;
  if (!isLook(verb, rest)) return `\`git ${verb}\` is not run in a plan. ${advice}`;
  const acting = rest.find(word => actsAfter.test(word));
  return acting === undefined ? undefined : `\`git ${verb} ${acting}\` does more than look. ${advice}`;
}

function isLook(verb: string, rest: readonly string[]): boolean {
  if (looks.has(verb)) return true;
  const first = Object.hasOwn(looksWith, verb) ? looksWith[verb] : undefined;
  return first?.test(rest[0] ?? '') === true;
}

/** The words behind a command of Git. */
interface GitWords {
  flags: readonly string[];
  others: readonly string[];
  /** Takes an option that is cut short as well, as Git does. */
  has(...wanted: string[]): boolean;
  hasLetter(letter: string): boolean;
}

/**
 * Returns what the words of a Git command would lose for good, here or on a server. Calm stays what is typed all day and keeps every
 * commit: `commit --amend` puts one commit in the place of the last, which the reflog keeps, and `pull --rebase` puts one's own commits
 * on those of the server. So does what only moves the index, such as `reset FILE`.
 */
export function gitDangers(texts: readonly string[]): Danger[] {
  const [verb = '', ...rest] = texts.slice(commandAt(texts));
  const flags = rest.filter(word => word.startsWith('-'));
  const read = Object.hasOwn(losing, verb) ? losing[verb] : undefined;
  const found = read?.({
    flags,
    others: rest.filter(word => !word.startsWith('-')),
    has: (...wanted) => flags.some(flag => wanted.some(one => isOption(flag.replace(/=.*/s, ''), one))),
    hasLetter: letter => flags.some(flag => /^-[a-zA-Z]+$/.test(flag) && flag.includes(letter)),
  });
  return found ?? [];
}

const isOption = (flag: string, wanted: string): boolean =>
  flag === wanted || (flag.length > 3 && flag !== '--force' && wanted.startsWith(flag));

const danger = (kind: Danger['kind'], ...values: string[]): Danger => ({ kind, values });
const rewrites = (...values: string[]): Danger[] => [danger('rewrites-history', ...values)];
const discards = (...values: string[]): Danger[] => [danger('discards', ...values)];
const isForced = ({ has, hasLetter }: GitWords): boolean => has('--force') || hasLetter('f');
const onlyTries = ({ flags, hasLetter }: GitWords): boolean => flags.includes('--dry-run') || hasLetter('n');

/** By command of Git: what it would lose. */
const losing: Readonly<Record<string, (words: GitWords) => Danger[]>> = {
  push: lostByPush,
  'send-pack': lostByPush,
  fetch: lostByFetch,
  pull: lostByFetch,
  reset: lostByReset,
  checkout: lostByCheckout,
  switch: lostByCheckout,
  branch: lostByBranch,
  rebase: ({ flags, others }) =>
    flags.some(flag => /^--(?:abort|quit|show-current-patch|edit-todo)$/.test(flag))
      ? []
      : rewrites(...others.slice(1, 2)),
  'filter-branch': () => rewrites(),
  'filter-repo': () => rewrites(),
  replace: () => rewrites(),
  'fast-import': words => (isForced(words) ? rewrites() : []),
  'update-ref': () => rewrites(),
  reflog: words =>
    !onlyTries(words) && /^(?:expire|delete|drop)$/.test(words.others[0] ?? '') ? rewrites() : [],
  gc: ({ flags, has }) => (has('--prune') && !flags.includes('--prune=auto') ? rewrites() : []),
  prune: words => (onlyTries(words) ? [] : rewrites()),
  repack: ({ hasLetter }) => (hasLetter('a') && hasLetter('d') ? rewrites() : []),
  lfs: ({ others }) => (others[0] === 'migrate' && others[1] !== 'info' ? rewrites() : []),
  tag: words =>
    words.has('--delete') || words.hasLetter('d') || isForced(words)
      ? rewrites(...words.others.slice(0, 1))
      : [],
  clean: words => (onlyTries(words) ? [] : [danger('deletes-untracked')]),
  restore: ({ flags, has, hasLetter }) =>
    !flags.some(flag => /^(?:--staged|-S)$/.test(flag)) || has('--worktree') || hasLetter('W')
      ? discards()
      : [],
  'checkout-index': words => (isForced(words) ? discards() : []),
  'read-tree': ({ has }) => (has('--reset') ? discards() : []),
  rm: words => (isForced(words) && !words.flags.includes('--cached') ? discards() : []),
  worktree: words => (words.others[0] === 'remove' && isForced(words) ? discards() : []),
  submodule: words =>
    /^(?:deinit|update)$/.test(words.others[0] ?? '') && isForced(words) ? discards() : [],
  stash: ({ others }) => (/^(?:drop|clear)$/.test(others[0] ?? '') ? discards(stashRef) : []),
};

function lostByPush(words: GitWords): Danger[] {
  if (onlyTries(words)) return [];
  const { has, hasLetter } = words;
  const refs = words.others.slice(1);
  const forced = refs.find(ref => ref.startsWith('+'));
  const branch = forced ?? refs.find(ref => !ref.startsWith(':'));
  const name = branch?.replace(/^\+/, '').replace(/^.*:(?=.)/, '');
  const isOverwriting =
    forced ?? (isForced(words) || has('--force-with-lease', '--force-if-includes', '--mirror'));
  const gone = refs.filter(ref => /^\+?:./.test(ref) || has('--delete') || hasLetter('d'));
  const all = has('--mirror', '--prune') ? [...gone, '*'] : gone;
  return [
    ...(isOverwriting ? [danger('force-push', ...(name === undefined ? [] : [name]))] : []),
    ...all.map(ref => danger('deletes-remote', ref.replace(/^\+?:/, ''))),
  ];
}

/** A branch of this repository that is fetched into can lose commits. What is known of the server's cannot. */
function lostByFetch(words: GitWords): Danger[] {
  const refs = words.others.slice(1).filter(ref => /^\+?[^:]+:(?!refs\/remotes\/)./.test(ref));
  const forced = refs.find(ref => ref.startsWith('+') || isForced(words));
  return forced === undefined ? [] : rewrites(forced.replace(/^.*:/, ''));
}

/** A commit: `HEAD~3`, `@{1}`, `origin/main` or its number. The newest one of the branch moves nothing. */
const otherCommit = /^[\w./-]*@\{|[~^]\d*$|^[\da-f]{7,40}$|^(?:origin|upstream|refs)\//;

function lostByReset({ flags, others, has }: GitWords): Danger[] {
  const [target = 'HEAD'] = others;
  const isHard = has('--hard', '--merge', '--keep');
  const isWhole = isHard || has('--soft', '--mixed');
  const isMoved = isWhole
    ? !/^(?:HEAD|@)$/.test(target)
    : others.length === 1 && !flags.includes('--') && otherCommit.test(target);
  return [...(isMoved ? rewrites() : []), ...(isHard ? discards() : [])];
}

function lostByCheckout(words: GitWords): Danger[] {
  const { flags, others, has, hasLetter } = words;
  // An existing branch would lose its commits.
  if (hasLetter('B') || hasLetter('C') || flags.includes('--force-create'))
    return rewrites(...others.slice(0, 1));
  const isNew =
    hasLetter('b') || hasLetter('c') || hasLetter('t') || has('--orphan', '--track', '--create', '--detach');
  const namesFile =
    others.some(word => /^\.{1,2}(?:\/|$)|^:|[*\ue001]/.test(word)) || (!isNew && others.length > 1);
  const isOverwriting =
    isForced(words) || has('--discard-changes', '--pathspec-from-file') || flags.includes('--');
  return isOverwriting || namesFile ? discards() : [];
}

function lostByBranch(words: GitWords): Danger[] {
  const { others, has, hasLetter } = words;
  const isDeleted = hasLetter('D') || ((has('--delete') || hasLetter('d')) && isForced(words));
  if (isDeleted) return (others.length > 0 ? others : ['']).map(name => danger('deletes-branch', name));
  if (hasLetter('M') || hasLetter('C')) return rewrites(...others.slice(-1));
  return isForced(words) ? rewrites(...others.slice(0, 1)) : [];
}

/** Where Git keeps a stash. */
export const stashRef = 'refs/stash';

const withValue = /^(?:-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--config-env|--attr-source)$/;

/** Returns where Git's own command is, behind its flags and their values. */
function commandAt(texts: readonly string[]): number {
  let at = 0;
  while (at < texts.length && texts[at]!.startsWith('-')) at += withValue.test(texts[at]!) ? 2 : 1;
  return at;
}
