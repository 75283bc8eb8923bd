/** Splits a command line into tokens as a POSIX shell does. Every other reader of shell text is a filter over them. */
import { reservedSigns, signs, withoutEscapes } from './shellSigns.ts';

/** A line whose output becomes a part of a word. */
export interface InnerLine {
  text: string;
  /** Where its sign is in the word's text. */
  sign: number;
  /** Where it begins and ends in the line around it. Missing between backquotes, where escapes mean something else. */
  at?: number;
  end?: number;
}

export interface ShellToken {
  /** `heredoc` is the text after `<<`. It counts as quoted if it stays as it is, because its end mark is quoted. */
  kind: 'word' | 'operator' | 'comment' | 'heredoc';
  /** For a word: without quotes and escapes, with `signs` for what a shell expands. */
  text: string;
  /** True if some of it was quoted. */
  quoted: boolean;
  /** Where it begins and ends in the line. */
  at: number;
  end: number;
  /** For a redirection: the number before it. */
  stream?: string;
  /** For a word: its substitutions, in their order. */
  inner?: readonly InnerLine[];
  /** True for a text after `<<` whose end mark is missing. */
  isOpen?: true;
}

export interface ShellLine {
  tokens: readonly ShellToken[];
  /** The lines inside substitutions, which run as well. */
  inner: readonly string[];
  /** The first character in a word that means more than itself: of an expansion, a pattern, an escape, or a control character. */
  open?: { sign: string; at: number };
  /** Why not all of it could be read: an unclosed quote or parenthesis. What follows its first character is read all the same. */
  unread?: string;
}

const operator = /;;&|;;|;&|&&|\|\||\|&|&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||[;&|()<>\n]/y;
const name = /[A-Za-z_]\w*/y;
/** Characters that mean more than themselves outside quotes. `%` does only in cmd. */
const special = process.platform === 'win32' ? /[*?[\]{}!^%]/ : /[*?[\]{}!^]/;
const control = /[\0-\x1f\x7f-\x9f]/;
/** Levels of substitutions within substitutions. */
const deepest = 30;

/** Reads the line once, from beginning to end. Never throws. */
export function readLine(line: string): ShellLine {
  const reader = new Reader(line.replace(reservedSigns, signs.one));
  const reserved = line.search(reservedSigns);
  if (reserved >= 0) reader.open = { sign: line.charAt(reserved), at: reserved };
  reader.read();
  const { tokens, inner, open, unread } = reader;
  return { tokens, inner, ...(open && { open }), ...(unread === undefined ? {} : { unread }) };
}

class Reader {
  readonly tokens: ShellToken[] = [];
  readonly inner: string[] = [];
  open: ShellLine['open'];
  unread: string | undefined;
  #at = 0;
  readonly #line: string;
  #word: string | undefined;
  #begin = 0;
  /** The last character of the word so far. Searching the word itself would take ever longer. */
  #last = '';
  #quoted = false;
  #inner: InnerLine[] = [];
  /** End marks of the texts that begin on the next line. */
  #heredocs: { mark: string; quoted: boolean }[] = [];

  constructor(line: string) {
    this.#line = line;
  }

  read(): void {
    while (this.#at < this.#line.length) this.#step();
    this.#endWord();
  }

  #step(): void {
    const character = this.#line[this.#at]!;
    if (character === ' ') {
      this.#endWord();
      this.#at++;
    } else if (character === '\t') {
      this.#opens(character);
      this.#endWord();
      this.#at++;
    } else if (character === '#' && this.#word === undefined) {
      const end = this.#line.indexOf('\n', this.#at);
      const stop = end < 0 ? this.#line.length : end;
      this.#push('comment', this.#line.slice(this.#at, stop), this.#at, stop);
      this.#at = stop;
    } else if (/[;&|()<>\n]/.test(character)) this.#operator();
    else {
      if (this.#word === undefined) this.#begin = this.#at;
      this.#piece(character);
    }
  }

  #push(kind: 'comment', text: string, at: number, end: number): void {
    this.tokens.push({ kind, text, quoted: false, at, end });
  }

  #opens(sign: string, at = this.#at): void {
    this.open ??= { sign, at };
  }

  /** Takes the opening characters for themselves if their construct has no end, so that the rest of the line is read. */
  #gaveUp(why: string): void {
    this.unread ??= why;
  }

  #operator(): void {
    if (/[<>]/.test(this.#line[this.#at]!) && this.#line[this.#at + 1] === '(') {
      this.#opens(this.#line[this.#at]!);
      if (this.#word === undefined) this.#begin = this.#at;
      this.#at += 2;
      this.#substitution(')');
      return;
    }
    if (this.#line[this.#at] === '(' && /[/+@!\ue001\ue002]$/.test(this.#last) && this.#word !== undefined) {
      this.#choiceOfNames();
      return;
    }
    operator.lastIndex = this.#at;
    const text = operator.exec(this.#line)![0];
    // The number of a stream belongs to the redirection after it.
    const isStream = /^[<>]/.test(text) && !this.#quoted && /^\d+$/.test(this.#word ?? '');
    const stream = isStream ? this.#word : undefined;
    if (isStream) this.#word = undefined;
    this.#endWord();
    const at = this.#at - (stream?.length ?? 0);
    this.#at += text.length;
    this.tokens.push({ kind: 'operator', text, quoted: false, at, end: this.#at, ...(stream && { stream }) });
    if (text === '<<' || text === '<<-') this.#heredocStart();
    if (text === '\n') this.#heredocBodies();
  }

  /** Reads `@(a|b)`, and `(a|b)` within a path, which some shells support. */
  #choiceOfNames(): void {
    this.#opens('(');
    if (this.#last !== '/') this.#word = this.#word?.slice(0, -1);
    this.#at++;
    this.#substitution(')');
  }

  #heredocStart(): void {
    const [whole, end = ''] = /^[ \t]*([^\s;&|<>()]*)/.exec(this.#line.slice(this.#at, this.#at + 500))!;
    this.#at += whole.length;
    const mark = end.replace(/["'\\]/g, '');
    this.#heredocs.push({ mark, quoted: mark !== end });
  }

  #heredocBodies(): void {
    for (const { mark, quoted } of this.#heredocs.splice(0)) {
      const from = this.#at;
      let text = '';
      let isOpen = true;
      for (;;) {
        if (this.#at >= this.#line.length) break;
        const newline = this.#line.indexOf('\n', this.#at);
        const stop = newline < 0 ? this.#line.length : newline;
        const one = this.#line.slice(this.#at, stop);
        text = this.#line.slice(from, this.#at);
        this.#at = stop + 1;
        if (one.replace(/^\t+/, '') === mark) {
          isOpen = false;
          break;
        }
        text = this.#line.slice(from, stop);
      }
      const end = Math.min(this.#at, this.#line.length);
      this.tokens.push({ kind: 'heredoc', text, quoted, at: from, end, ...(isOpen && { isOpen }) });
    }
  }

  /** Reads one more piece of a word. */
  #piece(character: string): void {
    switch (character) {
      case '\\': {
        this.#opens(character);
        const next = this.#line[this.#at + 1];
        this.#at += 2;
        if (next !== '\n') this.#add(next ?? '\\', true);
        break;
      }
      case "'":
        this.#quote(this.#at + 1, this.#line.indexOf("'", this.#at + 1));
        break;
      case '"':
        this.#at++;
        this.#doubleQuotes();
        break;
      case '`':
        this.#at++;
        this.#backquotes();
        break;
      case '$':
        this.#dollar(false);
        break;
      default:
        this.#plain(character);
    }
  }

  #plain(character: string): void {
    if (special.test(character) || control.test(character)) this.#opens(character);
    this.#at++;
    if (character === '~' && (this.#word === undefined || /[=:]/.test(this.#last))) {
      this.#opens(character, this.#at - 1);
      this.#add(signs.tilde);
    } else if (character === '*') this.#add(signs.star);
    else if (character === '?') this.#add(signs.one);
    else if (character === '{') this.#add(signs.open);
    else if (character === ',') this.#add(signs.comma);
    else if (character === '}') this.#add(signs.close);
    else if (character === '[') this.#brackets();
    else this.#add(character);
  }

  /** Reads a choice of characters. A bracket without its end is a character itself. */
  #brackets(): void {
    const choice = /^[!^]?\]?(?:\[([:.=])[a-z]{1,20}\1\]|[^\]\s/]){0,200}\]/.exec(
      this.#line.slice(this.#at, this.#at + 204),
    )?.[0];
    this.#at += choice?.length ?? 0;
    // It matters less which characters are meant than that it is one of them.
    this.#add(choice === undefined ? '[' : signs.one);
  }

  #quote(from: number, end: number): void {
    if (end < 0) {
      this.#opens("'");
      this.#at = from;
      this.#gaveUp('a quote without its end');
      return;
    }
    const text = this.#line.slice(from, end);
    const found = control.exec(text);
    if (found) this.#opens(found[0], from + found.index);
    this.#add(text, true);
    this.#at = end + 1;
  }

  #doubleQuotes(): void {
    const before = [this.#at, this.#word, this.#last] as const;
    this.#add('', true);
    for (;;) {
      const character = this.#line[this.#at];
      if (character === undefined) {
        [this.#at, this.#word, this.#last] = before;
        this.#inner = this.#inner.filter(({ sign }) => sign < (this.#word ?? '').length);
        this.#opens('"', this.#at - 1);
        this.#gaveUp('a quote without its end');
        return;
      }
      if (character === '"') {
        this.#at++;
        return;
      }
      if (character === '\\' || character === '!' || control.test(character)) this.#opens(character);
      if (character === '\\') {
        const next = this.#line[this.#at + 1] ?? '';
        if (/[$`"\\]/.test(next)) this.#add(next, true);
        else if (next !== '\n') this.#add(`\\${next}`, true);
        this.#at += 2;
      } else if (character === '$') this.#dollar(true);
      else if (character === '`') {
        this.#at++;
        this.#backquotes();
      } else {
        this.#add(character, true);
        this.#at++;
      }
    }
  }

  #backquotes(): void {
    this.#opens('`', this.#at - 1);
    let end = this.#at;
    while (end < this.#line.length && this.#line[end] !== '`') end += this.#line[end] === '\\' ? 2 : 1;
    if (end >= this.#line.length) {
      this.#gaveUp('a substitution without its end');
      return;
    }
    this.#innerLine(this.#line.slice(this.#at, end).replace(/\\([\\`$])/g, '$1'), {});
    this.#add(signs.any);
    this.#at = end + 1;
  }

  #dollar(isQuoted: boolean): void {
    this.#opens('$');
    const next = this.#line[this.#at + 1] ?? '';
    this.#at += 2;
    if (next === '(') this.#substitution(')', this.#line[this.#at] !== '(');
    else if (next === '{') this.#braced();
    else if (!isQuoted && next === "'") this.#ansi();
    else if (!isQuoted && next === '"') this.#doubleQuotes();
    else this.#parameter(next, isQuoted);
  }

  #parameter(next: string, isQuoted: boolean): void {
    name.lastIndex = this.#at - 1;
    const found = name.exec(this.#line)?.[0];
    if (found !== undefined) {
      this.#at = name.lastIndex;
      this.#add(signs.variable + found + signs.end);
    } else if (/[\d@*#?$!-]/.test(next)) this.#add(signs.any);
    else {
      this.#at--;
      this.#add('$', isQuoted);
    }
  }

  #braced(): void {
    const end = this.#closing('}');
    if (end === undefined) return;
    const inside = this.#line.slice(this.#at, end);
    this.#at = end + 1;
    if (/^[A-Za-z_]\w*$/.test(inside)) {
      this.#add(signs.variable + inside + signs.end);
      return;
    }
    // The replacement for a missing value can be a path, or a command.
    this.inner.push(inside.replace(/^[!#]?\w*(?:\[[^\]]*\])?[:#%/^,@=+?-]*/, ''));
    this.#add(signs.any);
  }

  #substitution(close: string, isCommand = false): void {
    const end = this.#closing(close);
    if (end === undefined) return;
    const text = this.#line.slice(this.#at, end);
    if (isCommand) this.#innerLine(text, { at: this.#at, end });
    else this.inner.push(text.replace(/^\((.*)\)$/s, '$1'));
    this.#add(signs.any);
    this.#at = end + 1;
  }

  #innerLine(text: string, place: Pick<InnerLine, 'at' | 'end'>): void {
    this.inner.push(text);
    this.#inner.push({ text, sign: (this.#word ?? '').length, ...place });
  }

  /** Returns the end of the open construct. Takes quotes and nested constructs into account. */
  #closing(close: string): number | undefined {
    const open = [close];
    for (let at = this.#at; at < this.#line.length; at++) {
      const character = this.#line[at]!;
      const within = open.at(-1);
      if (character === '\\' && within !== "'") at++;
      else if (character === within) {
        open.pop();
        if (open.length === 0) return at;
      } else if (within === "'") continue;
      else if (character === '$' && /[({]/.test(this.#line[at + 1] ?? ''))
        open.push(this.#line[++at] === '(' ? ')' : '}');
      else if (within !== '"' && character === '(') open.push(')');
      else if (character === '"' || (character === "'" && within !== '"') || character === '`')
        open.push(character);
      if (open.length > deepest) break;
    }
    this.#gaveUp('a substitution without its end');
    return undefined;
  }

  /** Reads `$'…'`, in which characters can be written by their numbers. */
  #ansi(): void {
    let end = this.#at;
    while (end < this.#line.length && this.#line[end] !== "'") end += this.#line[end] === '\\' ? 2 : 1;
    if (end >= this.#line.length) {
      this.#gaveUp('a quote without its end');
      return;
    }
    this.#add(withoutEscapes(this.#line.slice(this.#at, end)), true);
    this.#at = end + 1;
  }

  #add(text: string, quoted = false): void {
    this.#word = (this.#word ?? '') + text;
    this.#last = text.slice(-1);
    if (quoted) this.#quoted = true;
  }

  #endWord(): void {
    if (this.#word !== undefined)
      this.tokens.push({
        kind: 'word',
        text: this.#word,
        quoted: this.#quoted,
        at: this.#begin,
        end: this.#at,
        ...(this.#inner.length > 0 && { inner: this.#inner }),
      });
    this.#word = undefined;
    this.#quoted = false;
    this.#inner = [];
  }
}
