/** Tells commands of Git that only look from those that write, lead to another repository, or start a program. */
import type { ReadWord } from './commandReach.ts';
import { wordsOf } from './readOnlyFlags.ts';
import { signs } from './shellWords.ts';

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
