/** Knows programs by their names: which read below a folder, which read no folder, and which are given code to run. */

import programs from './programs.json' with { type: 'json' };
import { wordsOf } from './readOnlyFlags.ts';
import { signs } from './shellSigns.ts';

/** Programs that show or change only names. A folder passed to them does not expose its content. */
const namesOnly = wordsOf(programs.showNames);
/** Programs that read files, but no folder. */
const filesOnly =
  /^(cat|head|tail|cut|tr|sed|[gmn]?awk|sort|uniq|wc|paste|column|nl|tac|rev|fold|tee|comm|join|\w+sum|xxd|od|hexdump|jq|file|strings|less|more)$/;
const shells = /^(ba|z|da|k|mk|a|fi)?sh$/;
const interpreters =
  /^(python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|luajit|tclsh|osascript|pwsh|powershell|Rscript|R|julia|groovy|ghci|runghc|irb|guile|racket|elixir|erl|swift|jshell)$/;
/** Programs whose actions are written in a language of their own, or come from elsewhere. */
const unreadable = wordsOf(programs.unreadable);
/** Programs that run the program named after them. */
const carriers = wordsOf(programs.carry);

const isRecursive = (words: readonly string[]): boolean =>
  words.some(word => /^(-\w*[rRad]|--(dereference-)?recursive|--archive|--directories)/.test(word));

/** Returns true if the program shows no file's content, whatever it is given. */
export const showsNames = (program: string): boolean => namesOnly.has(program);

/** Returns for which operands the program reads nothing below them: each, only the last, or none. */
export function staysAbove(program: string, words: readonly string[]): 'each' | 'last' | 'none' {
  if (namesOnly.has(program) || filesOnly.test(program)) return 'each';
  if (program === 'ls') return words.some(word => /^(-\w*R|--recursive)/.test(word)) ? 'none' : 'each';
  if (program === 'cp' || /^[efz]?grep$/.test(program)) return isRecursive(words) ? 'none' : 'each';
  const hasTarget = words.some(word => /^(-\w*t|--target)/.test(word));
  return program === 'mv' && words.length > 1 && !hasTarget ? 'last' : 'none';
}

/** Returns true if the program goes through the folder that it runs in. */
export function goesThroughFolder(program: string, words: readonly string[]): boolean {
  const named = words.filter(word => !word.startsWith('-'));
  if (/^(find|tree|du|ncdu|tokei|cloc)$/.test(program))
    return named.length === 0 || /^-/.test(words[0] ?? '');
  if (/^(rg|ag|ack|fd|fdfind)$/.test(program)) return named.length <= 1;
  if (/^[efz]?grep$/.test(program)) return isRecursive(words) && named.length <= 1;
  if (program === 'ls') return staysAbove(program, words) === 'none' && named.length === 0;
  return program === 'git' && words.some(word => /^(grep|stash|archive|-A|--all|-a|-am)$/.test(word));
}

/** Returns folders in which a command is to run, as given by flags that many programs share. */
export function foldersTold(words: readonly string[]): string[] {
  return words.flatMap((word, at) => {
    if (/^(-C|-D|--(directory|chdir|cwd|work-tree|git-dir))$/.test(word)) return [words[at + 1] ?? ''];
    return /^(?:-C|--(?:directory|chdir|cwd|work-tree)=)(.+)$/.exec(word)?.slice(1) ?? [];
  });
}

/**
 * Code that a command is given. `shell` contains lines to be read like this one. `unread` describes code that is run and cannot
 * be read; `code` is its known text.
 */
export interface GivenCode {
  shell: readonly string[];
  unread: readonly string[];
  code: readonly string[];
}

/** Limit. No person names more programs in one command. */
const mostPrograms = 20;

const nameOf = (word = ''): string => word.slice(word.lastIndexOf('/') + 1);

/** Returns the code that the command is given to run, by its words or from elsewhere. */
export function givenCode(words: readonly string[], isPiped: boolean): GivenCode {
  const given = { shell: [] as string[], unread: [] as string[], code: [] as string[] };
  let programs = 0;
  for (const [at, word] of words.entries()) {
    const program = nameOf(word);
    if (!takesCode(program)) continue;
    if (++programs > mostPrograms) {
      given.unread.push('many programs in one command');
      break;
    }
    const behind = words.slice(at + 1);
    if (behind.length > 0 && behind.every(one => /^(-[vVh]|--(version|help))$/.test(one))) continue;
    const isFirst = at === 0 || carriers.has(nameOf(words[0]));
    if (!isOpaque(program, behind, isFirst, isPiped, given.shell)) continue;
    given.unread.push(`what ${program} is given to run`);
    given.code.push(behind.join(' '));
  }
  const takesNames = words.some(word => /^--?(files-from|files0-from|from-file)\b/.test(word));
  if (takesNames || (nameOf(words[0]) === 'tar' && words.some(word => /^-\w*T/.test(word))))
    given.unread.push('names that come from elsewhere');
  return given;
}

const awk = /^[gmn]?awk$/;
const sourcing = /^(\.|source)$/;

/** Returns true for a program that is given code to run, or a file that contains it. */
const takesCode = (program: string): boolean =>
  unreadable.has(program) || [shells, interpreters, awk, sourcing].some(kind => kind.test(program));

/** Returns true if the code cannot be read. Adds lines that a shell is given to `shell`. */
function isOpaque(
  program: string,
  behind: readonly string[],
  isFirst: boolean,
  isPiped: boolean,
  shell: string[],
): boolean {
  const operands = behind.filter(one => !one.startsWith('-'));
  if (shells.test(program)) {
    if (operands.some(one => /^\/dev\/(stdin|fd)/.test(one))) return true;
    const hasCode = behind.some(one => /^-\w*c$/.test(one));
    if (!hasCode) return operands.length === 0 || behind.some(one => /^-\w*s$/.test(one));
    shell.push(...operands);
    return operands.some(isOpen);
  }
  if (interpreters.test(program))
    return (
      /^(-|eval|data:.*|\/dev\/.*|)$/.test(operands[0] ?? '') ||
      behind.some(one => codeFlag(program).test(one) || /^(-|(--import=)?data:.*)$/.test(one))
    );
  if (awk.test(program)) return /getline|system|ARG[VC]|ENVIRON|[|]/.test(behind.join(' '));
  if (sourcing.test(program))
    return isFirst && (isPiped || behind.some(one => isOpen(one) || /^(-|\/dev\/)/.test(one)));
  if (program === 'eval') shell.push(behind.join(' '));
  return isFirst;
}

const isOpen = (word: string): boolean => word.includes(signs.any);

function codeFlag(program: string): RegExp {
  if (/^py/.test(program)) return /^-\w*c/;
  if (/^php/.test(program)) return /^-\w*[rRBE]/;
  return /^(-\w*[eEcpn]|--(eval|print|execute)|-command|-encodedcommand)/i;
}

/** Programs that can do so whatever words follow. */
const always = wordsOf(programs.open.always);

/** Programs that can do so unless a fixed word after them says which program they run. */
const unlessFixed = wordsOf(programs.open.unlessFixed);

/** By program: its own commands whose arguments still say what is run or written. */
const commandsOf = new Map(
  Object.entries(programs.open.commands).map(([program, lines]) => [program, wordsOf(lines)]),
);

/** Flags that no value follows, or whose value is what is run. */
const bareFlag = /^(?:--|@.*|-[AiqtuyS]+|-jar|-m|--(?:yes|quiet|rm|(?:no|allow|prefer)-[\w-]+)|.*=.*)$/;

/** Words of a launcher before what it runs: `/c` of Windows, a variable, a duration. */
const aside = /^(?:\/\w|\w+=.*|[\d.]+[smhd]?)$/;

/** A folder that a container sees is for its program to read. */
const mountFlag = /^(?:-v|--volume|--mount)(?:=|$)/;

/**
 * Returns for each argument of a program whether it can say what is run or loaded: those of a launcher (an interpreter, a package
 * runner, a build tool) up to what it runs, and none of what follows. `isProgram` says whether a word names a file of code.
 */
export function wordsThatLaunch(
  command: string,
  args: readonly string[],
  isProgram: (word: string) => boolean,
): boolean[] {
  const known = (word: string): string => nameOf(word.replaceAll('\\', '/')).replace(/\.(?:exe|cmd)$/i, '');
  const launches = (word: string): boolean =>
    always.has(known(word)) || unlessFixed.has(known(word)) || takesCode(known(word));
  let launcher = launches(command) ? known(command) : undefined;
  let flag = '';
  return args.map(word => {
    const before = flag;
    flag = '';
    if (/^-|^@(?![\w.-]+\/\w)/.test(word)) {
      if (!bareFlag.test(word)) flag = word;
      return launcher !== undefined && !mountFlag.test(word);
    }
    if (launcher === undefined) {
      if (takesCode(known(word))) launcher = known(word);
      return false;
    }
    if (mountFlag.test(before)) return false;
    if (launches(word)) launcher = known(word);
    else if (
      !(aside.test(word) || commandsOf.get(launcher)?.has(word) || (before !== '' && !isProgram(word)))
    )
      launcher = undefined;
    return true;
  });
}

/** Returns a sentence about an allow rule that ends in `*` after such a program; undefined for any other rule. */
export function openRuleWarning(
  { argv, line }: { argv?: readonly string[]; line: number },
  file: string,
): string | undefined {
  if (argv?.at(-1) !== '*') return undefined;
  const [written = '', ...fixed] = argv.slice(0, -1);
  const program = /[^/\\]*$/.exec(written)![0].replace(/\.exe$/i, '');
  const [first] = fixed;
  // Options can say anything, so the words after them are not fixed either.
  const isOpen = first === undefined || first.startsWith('-') || commandsOf.get(program)?.has(first) === true;
  if (!always.has(program) && !(unlessFixed.has(program) && isOpen)) return undefined;
  const meant = [program, ...fixed].join(' ');
  return `${file}, line ${line}: this [[allow]] rule is wider than it looks: with other arguments ${meant} can write files or start programs. Name the exact words in argv instead of "*".`;
}

/** Programs that destroy, end what others run, or raise privileges. A skill does not get them unasked, whatever it names. */
const drasticPrograms =
  /^(?:rm|rmdir|shred|dd|mkfs\S*|fdisk|parted|truncate|sudo|su|doas|pkexec|kill|killall|pkill|shutdown|reboot|halt|crontab|at|chmod|chown)$/;

/** Returns true for a program that a skill can get unasked by naming it. */
export const isOffered = (program: string): boolean =>
  /^[\w./+-]+$/.test(program) && !drasticPrograms.test(program.slice(program.lastIndexOf('/') + 1));
