/** Reads commands of Git: those that only look, those that write, lead to another repository or start a program, and what would be lost for good. */
import type { Danger } from '../../protocol/run.ts';
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

/** Returns what the words of a Git command would lose for good, here or on a server. */
export function gitDangers(texts: readonly string[]): Danger[] {
  const found: Danger[] = [];
  const add = (kind: Danger['kind'], ...values: string[]): void => void found.push({ kind, values });
  const at = commandAt(texts);
  const [verb = '', ...rest] = texts.slice(at);
  const flags = rest.filter(word => word.startsWith('-'));
  const others = rest.filter(word => !word.startsWith('-'));
  const has = (...wanted: string[]): boolean => flags.some(flag => wanted.includes(flag.replace(/=.*/, '')));
  const hasLetter = (letter: string): boolean =>
    flags.some(flag => /^-[a-zA-Z]+$/.test(flag) && flag.includes(letter));
  if (verb === 'push' && !has('--dry-run') && !hasLetter('n')) {
    const refs = others.slice(1);
    const forced = refs.find(ref => ref.startsWith('+'));
    const isForced =
      has('--force', '--force-with-lease', '--force-if-includes', '--mirror') || hasLetter('f');
    const branch = forced ?? refs.find(ref => !ref.startsWith(':'));
    if (isForced || forced)
      add(
        'force-push',
        ...(branch === undefined ? [] : [branch.replace(/^\+/, '').replace(/^.*:(?=.)/, '')]),
      );
    const gone = refs.filter(ref => /^:./.test(ref) || has('--delete') || hasLetter('d'));
    for (const ref of has('--mirror', '--prune') ? [...gone, '*'] : gone)
      add('deletes-remote', ref.replace(/^:/, ''));
  } else if (
    (verb === 'rebase' && !has('--abort', '--quit', '--show-current-patch', '--edit-todo')) ||
    /^(?:filter-branch|filter-repo|replace)$/.test(verb) ||
    (verb === 'reflog' && /^(?:expire|delete)$/.test(others[0] ?? '')) ||
    (verb === 'gc' && has('--prune') && !flags.includes('--prune=auto')) ||
    (verb === 'update-ref' && flags.length > 0)
  )
    add('rewrites-history', ...(verb === 'rebase' && others[1] ? [others[1]] : []));
  else if (verb === 'clean' && !has('--dry-run') && !hasLetter('n')) add('deletes-untracked');
  else if (verb === 'reset' && has('--hard', '--merge', '--keep')) {
    add('discards');
    if (/[~^@]|^[\da-f]{7,40}$/.test(others[0] ?? '')) add('rewrites-history');
  } else if (
    (verb === 'checkout' && (has('--', '--force') || hasLetter('f') || others.includes('.'))) ||
    (verb === 'restore' && (!has('--staged', '-S') || has('--worktree', '-W')))
  )
    add('discards');
  else if (verb === 'stash' && /^(?:drop|clear)$/.test(others[0] ?? '')) add('discards', stashRef);
  else if (verb === 'branch' && (hasLetter('D') || (has('--delete') && has('--force'))))
    add('deletes-branch', others[0] ?? '');
  return found;
}

/** Where Git keeps a stash. */
export const stashRef = 'refs/stash';

const withValue = /^(?:-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--config-env)$/;

/** Returns where Git's own command is, behind its flags and their values. */
function commandAt(texts: readonly string[]): number {
  let at = 0;
  while (at < texts.length && texts[at]!.startsWith('-')) at += withValue.test(texts[at]!) ? 2 : 1;
  return at;
}
