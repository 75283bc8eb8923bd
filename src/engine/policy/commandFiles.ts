/**
 * Gives the words of a command that mean a file of the skill its absolute path. Only words that stand as a plain argument of a
 * program that reads its files are changed: another word can be data, or a file that is about to be written.
 */

import { isFile, type MeantFile, type MeantFolders, meantFile, ownScript } from '../tools/tool.ts';
import { signs } from './shellSigns.ts';
import { readLine, type ShellToken } from './shellWords.ts';

export interface MeantCommand {
  /** The line as it is to run. */
  line: string;
  /** Words that exist where the command runs, and in another folder of the run as well. */
  twins: readonly { word: string; twin: string }[];
}

/** Programs of which each plain word, or each after the first, is a file that they read. */
const readers: Readonly<Record<string, { data: number } | undefined>> = Object.fromEntries([
  ...'cat tac nl head tail less more wc sort cut diff cmp comm file stat ls tree du find sha256sum sha1sum md5sum shasum cksum base64 od hexdump strings bat column paste fold fmt realpath readlink source . test [ xmllint'
    .split(' ')
    .map(name => [name, { data: 0 }]),
  ...'grep egrep fgrep rg ag awk gawk jq yq sed'.split(' ').map(name => [name, { data: 1 }]),
]);

/** Words with which such a program changes or removes its files. */
const changesFiles: Readonly<Record<string, RegExp | undefined>> = {
  sed: /^(-\w*i|--in-place)/,
  awk: /^-i/,
  gawk: /^-i/,
  yq: /^(-\w*i|--inplace)/,
  find: /^-(delete|exec|execdir|ok|okdir|fprint\w*|fls)$/,
};

/** Programs that run the script they are given, with the options before it that take no word of their own. */
const interpreters: Readonly<Record<string, RegExp | undefined>> = Object.fromEntries([
  ...'sh bash dash zsh ksh'.split(' ').map(name => [name, /^[-+][abefhklmnptuvxBCEHP]+$/]),
  ...'python python2 python3'.split(' ').map(name => [name, /^-[bBdEiIOPqsSuvx]+$/]),
  ...'ruby perl php Rscript lua'.split(' ').map(name => [name, /^-[wWTU]+$/]),
  ...'node nodejs tsx ts-node'
    .split(' ')
    .map(name => [name, /^--(?!eval|print|check|require|import|loader)[\w-]+$/]),
]);

/** Programs in front of another one, and the words that they take before it. */
const wrappers: Readonly<Record<string, RegExp | undefined>> = {
  env: /^\w+=/,
  time: /^-p$/,
  nohup: /^$/,
  exec: /^$/,
  command: /^$/,
  timeout: /^\d+[smh]?$/,
};
/** Programs that run the first file among their words by an interpreter of their own. */
const runners = /^(uv|uvx|npx|bun|bunx|deno|pnpm|poetry|pipenv)$/;
const runnable = /\.(py|[cm]?[jt]s|sh|rb)$/;
/** A script without a folder, as a text names it that has said before where its scripts are. */
const scriptName = /^\w[\w.-]*\.(?:py|[cm]?[jt]s|sh|rb)$/;

/** Options of scripts whose word is a file to read. What follows any other option may be one to write. */
const readsWord =
  /^--?(i|in|input|infile|template|tmpl|config|conf|schema|spec|rules?|prompt|references?|style|stylesheet|css|theme|sample|example|checklist|source|src|patterns?)(?:[-_](?:file|path))?$/;
/** Options that take no word. */
const takesNothing = /^(-[vqhf]|--(verbose|quiet|force|strict|pretty|debug|dry-run|json|help|no-[\w-]+))$/;

/** Words that a shell reads before a command begins. */
const beforeCommand = /^(if|then|elif|else|do|while|until|!|time|\ue010)$/;
const mostWords = 500;

/** Returns the command as it is meant in the folder `base`. Its words are those of the shell, as the policy reads them. */
export function meantCommand(line: string, base: string, folders: MeantFolders, depth = 0): MeantCommand {
  // In cmd other signs quote and escape.
  if (process.platform === 'win32' && /[\\^%']/.test(line)) return { line, twins: [] };
  const { line: plain, offsetOf } = withoutMarks(line, base, folders);
  const { tokens, unread } = readLine(plain);
  if (unread !== undefined) return { line, twins: [] };
  const reader = new WordReader(plain, base, folders);
  let command: ShellToken[] = [];
  let isRedirected = false;
  for (const token of tokens) {
    if (token.kind === 'word') {
      if (!isRedirected) command.push(token);
      isRedirected = false;
    } else if (token.kind === 'operator') {
      isRedirected = /[<>]/.test(token.text);
      if (isRedirected) continue;
      reader.read(command);
      command = [];
    }
  }
  reader.read(command);
  if (!reader.moved && depth < 3)
    for (const { text, at, end } of tokens.flatMap(({ inner }) => inner ?? [])) {
      if (at === undefined || end === undefined) continue;
      const meant = meantCommand(text, base, folders, depth + 1);
      if (meant.line !== text) reader.changes.set({ at, end }, meant.line);
      reader.twins.push(...meant.twins);
    }
  const changed = [...reader.changes].sort(([a], [b]) => b.at - a.at);
  const whole = changed.reduce(
    (text, [{ at, end }, path]) => text.slice(0, at) + path + text.slice(end),
    plain,
  );
  return { line: changed.length > 0 || offsetOf ? whole : line, twins: reader.twins };
}

/** Replaces `<skill_dir>/path`, which a shell would take for redirections, if the path leads to a file of the skill. */
function withoutMarks(
  line: string,
  base: string,
  folders: MeantFolders,
): { line: string; offsetOf: boolean } {
  let offsetOf = false;
  const plain = line.replace(/(?<=^|[\s"'])<skill[_-]?(?:dir|root|path)>\/[\w./-]+/g, word => {
    const { path } = meantFile(word, base, folders);
    if (path === undefined || !isFile(path)) return word;
    offsetOf = true;
    return quoted(path);
  });
  return { line: plain, offsetOf };
}

class WordReader {
  readonly changes = new Map<Pick<ShellToken, 'at' | 'end'>, string>();
  readonly twins: { word: string; twin: string }[] = [];
  readonly #base: string;
  readonly #folders: MeantFolders;
  /** After a change of folder, words mean something else. */
  moved = false;
  #count = 0;
  /** True if the line itself gives a value to the name of a folder. */
  readonly #assigns: boolean;

  constructor(line: string, base: string, folders: MeantFolders) {
    this.#assigns = /(SKILL_(?:DIR|PATH|ROOT)|PLUGIN_ROOT|WORKSPACE|baseDir|HOME)\+?=/.test(line);
    this.#base = base;
    this.#folders = folders;
  }

  read(words: readonly ShellToken[]): void {
    if (this.moved) return;
    let at = 0;
    while (at < words.length && beforeCommand.test(words[at]!.text)) at++;
    while (at < words.length && /^\w+\+?=/.test(words[at]!.text)) at++;
    this.#command(words.slice(at));
  }

  #command(words: readonly ShellToken[]): void {
    const [first, ...rest] = words;
    if (first === undefined) return;
    const program = first.text;
    if (/^(cd|pushd|popd|chdir)$/.test(program)) {
      this.moved = true;
      if (rest.length === 1) this.#take(rest[0]!, true);
      return;
    }
    if (/[/\\]|^[\ue010\ue014]/.test(program) && !program.startsWith('/')) {
      this.#take(first);
      this.#argumentsOf(rest);
      return;
    }
    if (!program.startsWith('.') && this.#ownScript(first)) {
      this.#argumentsOf(rest);
      return;
    }
    this.#named(program.replace(/^.*\/|\.exe$/g, '').replace(/^(python[23])\.\d+$/, '$1'), rest);
  }

  /** Reads the words of a program that is found by its name. */
  #named(name: string, words: readonly ShellToken[]): void {
    const before = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined;
    const flags = Object.hasOwn(interpreters, name) ? interpreters[name] : undefined;
    if (flags !== undefined) this.#script(words, flags);
    else if (Object.hasOwn(readers, name)) this.#files(name, words);
    else if (name === 'cp') this.#copied(words);
    else if (runners.test(name)) {
      const at = words.findIndex(({ text }) => runnable.test(text));
      if (at >= 0) this.#script(words.slice(at), /^$/);
    } else if (before !== undefined) {
      const at = words.findIndex(({ text }) => !before.test(text));
      if (at >= 0) this.#command(words.slice(at));
    }
  }

  /** Reads the script after an interpreter, and what it is given. */
  #script(words: readonly ShellToken[], flags: RegExp): void {
    const at = words.findIndex(({ text }) => !flags.test(text));
    const script = words[at];
    if (script === undefined) return;
    if (script.text === '-m') {
      if (/^(json\.tool|py_compile)$/.test(words[at + 1]?.text ?? ''))
        this.#files('cat', words.slice(at + 2));
      return;
    }
    if (script.text.startsWith('-')) return;
    this.#take(script);
    if (!this.changes.has(script)) this.#ownScript(script);
    this.#argumentsOf(words.slice(at + 1));
  }

  /** Reads what a script is given: plain words, and those after options for a file to read. */
  #argumentsOf(words: readonly ShellToken[]): void {
    let option = '';
    for (const word of words) {
      const { text, quoted: isQuoted } = word;
      if (text.startsWith('-')) {
        option = takesNothing.test(text) || text.includes('=') ? '' : text;
        continue;
      }
      if (!isQuoted && (option === '' || readsWord.test(option))) this.#take(word);
      option = '';
    }
  }

  #files(program: string, words: readonly ShellToken[]): void {
    if (words.some(({ text }) => changesFiles[program]?.test(text))) return;
    let data = readers[program]?.data ?? 0;
    if (words.some(({ text }) => /^-[ef]$/.test(text))) data = 0;
    let isWritten = false;
    for (const word of words) {
      const { text, quoted: isQuoted } = word;
      if (text.startsWith('-') && text !== '-') isWritten = /^(-o|--output)$/.test(text);
      else if (isWritten) isWritten = false;
      else if (data > 0) data--;
      else if (!isQuoted) this.#take(word, true);
    }
  }

  /** Reads what is copied. The last word is the place that is written. */
  #copied(words: readonly ShellToken[]): void {
    const files = words.filter(({ text }) => !text.startsWith('-'));
    if (words.some(({ text }) => /^(-t|--target-directory)/.test(text))) return;
    for (const word of files.slice(0, -1)) if (!word.quoted) this.#take(word, true);
  }

  /** Replaces the mere name of a script of the skill. Returns false if it is none. */
  #ownScript(word: ShellToken): boolean {
    const name = word.text.replace(/^\.\//, '');
    const path = scriptName.test(name) ? ownScript(name, this.#base, this.#folders) : undefined;
    if (path !== undefined) this.changes.set(word, quoted(path));
    return path !== undefined;
  }

  /** Replaces a word that means a file of another folder of the run. */
  #take(word: ShellToken, mayBeFolder = false): void {
    if (++this.#count > mostWords) return;
    const text = writtenWord(word.text);
    if (text === undefined || text.startsWith('-')) return;
    if (this.#assigns && /[${]/.test(text)) return;
    const { path, twin }: MeantFile = meantFile(text, this.#base, this.#folders);
    if (twin !== undefined && isFile(twin)) this.twins.push({ word: text, twin });
    if (path !== undefined && (isFile(path) || (mayBeFolder && isFolderLike(path))))
      this.changes.set(word, quoted(path));
  }
}

const isFolderLike = (path: string): boolean => !isFile(path);

/** Returns the word as it was written, if all that a shell would expand in it is a home or a name for the skill's folder. */
function writtenWord(pattern: string): string | undefined {
  const text = pattern
    .replace(/^\ue014(\w+)\ue015/, (_, name: string) => `\${${name}}`)
    .replace(/^(\$?)\ue010(\w+)\ue012/, '$1{$2}')
    .replace(/^\$\{HOME\}(?=\/)/, '~')
    .replace(new RegExp(`^${signs.tilde}`), '~');
  return /[\ue000-\ue01f]/.test(text) ? undefined : text;
}

/** Returns the path as one word of a shell. */
const quoted = (path: string): string => {
  if (/^[\w@%+=:,./-]+$/.test(path)) return path;
  return process.platform === 'win32' ? `"${path}"` : `'${path.replaceAll("'", "'\\''")}'`;
};
