/** Finds the paths that a command could reach by its words, and reports what its words do not say. */
import { basename } from 'node:path';
import { foldersTold, givenCode, goesThroughFolder, showsNames, staysAbove } from './programHabits.ts';
import {
  type Consequence,
  foldedPath,
  LinkFollower,
  type NamedPath,
  type Reach,
  throughProcess,
  withoutPercents,
  writtenSegments,
} from './reach.ts';
import {
  mostAlternatives,
  piecesOf,
  type SimpleCommand,
  simpleCommands,
  withoutBraces,
} from './shellCommands.ts';
import { shellText, signs } from './shellSigns.ts';
import { readLine } from './shellWords.ts';

/** Limits in characters, commands and words. No person writes or reads such a line. */
const longestRead = 100_000;
const mostCommands = 2000;
const mostWords = 30_000;
const mostFolders = 16;
const deepest = 8;

const tooMany = 'more commands than are looked at';

/** Words that change the value of variables in ways that are not followed here. */
const changesVariables =
  /\b(for|while|until|select|read|mapfile|readarray|getopts|let|printf|declare|typeset|local|export|readonly|eval|source|unset|set|trap)\b|\b(CDPATH|IFS|HOME|OLDPWD|PWD)=|\+=/;
/** Words that change the meaning of a program's name. */
const renamesPrograms = /\b(function|alias|enable|hash)\b|\(\s*\)|\bPATH=/;

/** Names that decide where `~` and a `cd` lead. */
const movesHome = /(?<![\w${])HOME\b/;
const movesFolders = /\bCDPATH\b/;

/** A word of a command as it is written, and everything that it can become. */
export interface ReadWord {
  written: string;
  values: readonly string[];
}

/** A command of a line, with its words behind assignments. */
export interface ReadCommand {
  words: readonly ReadWord[];
  redirections: readonly { values: readonly string[]; isWritten: boolean }[];
  isPiped: boolean;
  /** Folders that its words can be relative to. */
  folders: readonly string[];
}

/** A line that is run: the whole one, a text that a shell in it is given, or a substitution. */
export interface ReadLine {
  commands: readonly ReadCommand[];
  /** Its substitutions, and its texts after `<<`. */
  inner: readonly string[];
  heredocs: readonly string[];
}

/** Returns the lines that run for one line. Undefined if it is longer than is read. `folder` and `home` are real and absolute. */
export function linesThatRun(line: string, folder: string, home: string): readonly ReadLine[] | undefined {
  if (line.length > longestRead) return undefined;
  const reader = new CommandReader(line, folder, home);
  reader.read(line, 0);
  reader.lines.length = 0;
  reader.read(line, 0);
  return reader.unread.has(tooMany) ? undefined : reader.lines;
}

/** Returns what a command could reach. `folder` is where it runs; `folder` and `home` are real and absolute. Never throws. */
export function commandReach(line: string, folder: string, home: string): Reach {
  if (line.length > longestRead)
    return { paths: [], unread: [`${line.length} characters, more than are looked at`], code: [] };
  const reader = new CommandReader(line, folder, home);
  reader.read(line, 0);
  // Reads it again, because a folder that a later part changes to counts for all parts.
  reader.read(line, 0);
  reader.readLoosely(line);
  const dots = /dotglob|globdots|GLOBIGNORE|\bzsh\b|\bfish\b/.test(line);
  return { paths: reader.paths, unread: [...reader.unread], code: reader.code, dots };
}

class CommandReader {
  readonly paths: NamedPath[] = [];
  readonly unread = new Set<string>();
  readonly code: string[] = [];
  readonly lines: ReadLine[] = [];
  readonly #home: string;
  /** All folders that a word could be relative to, with `signs`. */
  readonly #folders: Set<string>;
  /** The folder that a command certainly runs in, as long as each one before it has to succeed. */
  #here: readonly string[];
  readonly #variables = new Map<string, string[]>();
  readonly #isUnsteady: boolean;
  readonly #renames: boolean;
  readonly #movesHome: boolean;
  readonly #follower = new LinkFollower();
  readonly #seen = new Set<string>();
  #commands = 0;

  constructor(line: string, folder: string, home: string) {
    this.#home = home;
    this.#folders = new Set([folder]);
    this.#here = [folder];
    this.#isUnsteady = changesVariables.test(line);
    const plain = line.replace(/["'\\]/g, '');
    this.#movesHome = movesHome.test(plain);
    if (movesFolders.test(plain)) this.#folders.add(signs.any);
    this.#renames = renamesPrograms.test(line);
  }

  read(line: string, depth: number): void {
    if (depth > deepest || this.#commands > mostCommands) {
      this.unread.add(tooMany);
      return;
    }
    const read = readLine(line);
    if (read.unread !== undefined) this.unread.add(read.unread);
    const heredocs = read.tokens.filter(({ kind }) => kind === 'heredoc').map(({ text }) => text);
    const commands: ReadCommand[] = [];
    this.lines.push({ commands, inner: read.inner, heredocs });
    const isOneByOne = read.tokens.every(({ kind, text }) => kind !== 'operator' || /^&&$|[<>]/.test(text));
    const before = this.#here;
    for (const command of simpleCommands(read)) {
      if (++this.#commands > mostCommands) continue;
      const isCertain = isOneByOne && !this.#isUnsteady;
      const folders = isCertain ? this.#here : [...this.#folders];
      this.#command(command, depth, words => commands.push({ ...words, isPiped: command.isPiped, folders }));
    }
    // It is not known between which of them a substitution runs.
    if (this.#here !== before) this.#here = [...this.#folders];
    if (this.#commands > mostCommands) this.unread.add(tooMany);
    for (const inner of read.inner) this.read(inner, depth + 1);
    for (const token of read.tokens) {
      if (token.kind !== 'heredoc') continue;
      this.code.push(token.text);
      // Its content is expanded as within double quotes.
      for (const inner of readLine(`"${token.text.replaceAll('"', '')}"`).inner) this.read(inner, depth + 1);
    }
    this.#here = before;
  }

  /** Names every piece that looks like a path, also within quotes, such as in the text of a program. */
  readLoosely(line: string): void {
    for (const piece of piecesOf(line.replace(/[\ue000-\ue01f]/g, signs.one)))
      this.#name(
        piece.replace(/^(~|\$HOME|\$\{HOME\})(?=\/|$)/, () => this.#home),
        'nothing',
      );
  }

  #command(
    { words, redirections, isPiped }: SimpleCommand,
    depth: number,
    note: (read: Pick<ReadCommand, 'words' | 'redirections'>) => void,
  ): void {
    const places = redirections.map(({ pattern, isWritten }) => ({
      values: this.#expanded(pattern),
      isWritten,
    }));
    for (const { values, isWritten } of places)
      for (const path of values) this.#name(path, 'nothing', isWritten);
    const rest = [...words];
    while (rest[0] !== undefined && /^[A-Za-z_]\w*\+?=/.test(rest[0])) this.#assign(rest.shift()!);
    const expanded = rest.map(word => this.#expanded(word));
    const read = rest.map((word, at) => ({ written: shellText(word), values: expanded[at] ?? [] }));
    note({ words: read, redirections: places });
    const [first = '', ...operands] = expanded.map(([one = '']) => one);
    const program = basename(first);
    const all = expanded.slice(1).flat();
    const { shell, unread, code } = givenCode([first, ...all], isPiped);
    for (const line of shell) this.read(shellText(line), depth + 1);
    for (const what of unread) this.unread.add(what);
    this.code.push(...code);
    if (/^(cd|pushd|chdir)$/.test(program)) {
      const named = operands.filter(word => !/^-[A-Za-z@]/.test(word));
      this.#goTo(named.length > 0 ? all : [this.#movesHome ? signs.any : this.#home]);
    }
    const here = this.#here;
    for (const folder of foldersTold(all)) this.#goTo([folder]);
    this.#here = here;
    const stays = this.#renames ? 'none' : staysAbove(program, operands);
    const passesOver = !this.#renames && showsNames(program);
    for (const [at, alternatives] of expanded.entries()) {
      const isAlone = at === 0 || stays === 'each' || (stays === 'last' && at === operands.length);
      for (const word of alternatives)
        if (!(passesOver && word.includes(signs.any))) this.#word(word, isAlone ? 'nothing' : 'forbidden');
    }
    if (goesThroughFolder(program, operands)) this.#name('.', 'forbidden');
  }

  /** Names a word, and its parts after `=`, `:`, `,` and `@`, or after the letter of a flag. */
  #word(word: string, ifAbove: Consequence): void {
    const flag = /^-[A-Za-z](.+)$/.exec(word)?.[1];
    for (const part of new Set([word, ...word.split(/[=:,@]/), ...(flag === undefined ? [] : [flag])])) {
      // A field separator can be written just like the root.
      const isSign = part === '/' && part !== word;
      if (part !== '') this.#name(part, isSign ? 'nothing' : ifAbove);
      if (/%[\da-f]{2}/i.test(part)) this.#name(withoutPercents(part), ifAbove);
      // In the address of a file, the host comes before the path.
      if (part.startsWith('//')) this.#name(withoutPercents(part.replace(/^\/+[^/]*/, '')), 'nothing');
      // A path through a process's view of the disk.
      const seen = throughProcess(part);
      if (seen !== undefined) this.#name(seen, ifAbove);
    }
  }

  #name(path: string, ifAbove: Consequence, isWritten = false): void {
    for (const folder of /^[/\ue000]/.test(path) ? ['/'] : this.#folders) {
      const place = `${isWritten}\0${folder}\0${path}`;
      const key = `${ifAbove} ${place}`;
      if (this.#seen.has(key) || this.#seen.has(`forbidden ${place}`)) continue;
      this.#seen.add(key);
      if (this.#seen.size > mostWords) {
        this.unread.add('more words than are looked at');
        return;
      }
      const meanings = this.#follower.meaningsOf(writtenSegments(path, writtenSegments(folder)));
      this.paths.push({ meanings: meanings.map(foldedPath), ifAbove, ifBelow: 'forbidden', isWritten });
      if (this.#follower.gaveUp) this.unread.add('more links than are followed');
    }
  }

  #assign(word: string): void {
    const at = word.indexOf('=');
    const name = word.slice(0, at).replace(/\+$/, '');
    const values = this.#expanded(word.slice(at + 1));
    const all = new Set([...(this.#variables.get(name) ?? []), ...values]);
    this.#variables.set(name, all.size > mostAlternatives ? [signs.any] : [...all]);
    for (const value of values) if (!value.includes(signs.any)) this.#name(value, 'nothing');
  }

  #goTo(targets: readonly string[]): void {
    this.#here = targets.flatMap(target =>
      target === '-'
        ? signs.any
        : /^[/\ue000]/.test(target)
          ? target
          : this.#here.map(at => `${at}/${target}`),
    );
    for (const target of targets)
      for (const folder of this.#folders.size > mostFolders ? [] : [...this.#folders]) {
        const path = /^[/\ue000]/.test(target) ? target : `${folder}/${target}`;
        const isFull = this.#folders.size >= mostFolders && !this.#folders.has(path);
        this.#folders.add(target === '-' || isFull ? signs.any : path);
      }
  }

  /** Returns everything that a word can become. */
  #expanded(pattern: string): string[] {
    const all = withoutBraces(pattern).flatMap(one => this.#withVariables(one));
    if (all.length > mostAlternatives) return [signs.any];
    return all.map(one => this.#withHome(one).replaceAll(signs.star + signs.star, signs.any));
  }

  #withVariables(pattern: string): string[] {
    let results = [''];
    for (const [index, part] of pattern.split(signs.variable).entries()) {
      const end = index === 0 ? -1 : part.indexOf(signs.end);
      const values = index === 0 ? [''] : this.#valuesOf(part.slice(0, end));
      results = results.flatMap(result => values.map(value => result + value + part.slice(end + 1)));
      if (results.length > mostAlternatives || results.some(one => one.length > longestRead))
        return [signs.any];
    }
    return results;
  }

  #valuesOf(name: string): readonly string[] {
    const assigned = this.#variables.get(name);
    if (name === 'HOME') return assigned || this.#isUnsteady ? [this.#home, signs.any] : [this.#home];
    if (this.#isUnsteady) return [signs.any];
    return assigned ?? (name === 'PWD' ? [...this.#folders] : [signs.any]);
  }

  #withHome(pattern: string): string {
    const begin = pattern.indexOf(signs.tilde);
    if (begin < 0) return pattern;
    const [, user = '', rest = ''] = /^([^/:]*)(.*)$/s.exec(pattern.slice(begin + 1))!;
    const isOwn = (user === '' && !this.#movesHome) || user === basename(this.#home);
    // The home folder of another user is not known here.
    const home = isOwn ? this.#home : signs.any;
    return pattern.slice(0, begin) + home + rest.replaceAll(signs.tilde, home);
  }
}
