/** Turns what a terminal sends into keys, typed text and pasted text. */
import { StringDecoder } from 'node:string_decoder';

export type Key =
  | { kind: 'text'; text: string }
  | { kind: 'paste'; text: string }
  | { kind: 'key'; name: KeyName };

export type KeyName =
  | (typeof controls)[keyof typeof controls]
  | (typeof sequences)[keyof typeof sequences]
  | 'escape';

/** Have a terminal mark what is pasted, and mark it no more. */
export const marksPastes = '\x1b[?2004h';
export const marksNoPastes = '\x1b[?2004l';

const controls = {
  '\x01': 'home',
  '\x02': 'move',
  '\x03': 'interrupt',
  '\x04': 'end of input',
  '\x05': 'end',
  '\x06': 'right',
  '\x07': 'editor',
  '\x08': 'backspace',
  '\t': 'complete',
  '\n': 'newline',
  '\x0b': 'cut to end',
  '\x0c': 'clear screen',
  '\r': 'enter',
  '\x0e': 'down',
  '\x10': 'up',
  '\x12': 'search',
  '\x15': 'cut to start',
  '\x17': 'cut word',
  '\x1a': 'suspend',
  '\x1c': 'quit',
  '\x7f': 'backspace',
} as const;

const sequences = {
  '[A': 'up',
  OA: 'up',
  '[B': 'down',
  OB: 'down',
  '[C': 'right',
  OC: 'right',
  '[D': 'left',
  OD: 'left',
  '[H': 'home',
  OH: 'home',
  '[1~': 'home',
  '[F': 'end',
  OF: 'end',
  '[4~': 'end',
  '[3~': 'delete',
  '[1;5C': 'word right',
  f: 'word right',
  '[1;5D': 'word left',
  b: 'word left',
  '\x7f': 'cut word',
  '\r': 'newline',
  '\n': 'newline',
  '[13;2u': 'newline',
  '[13;3u': 'newline',
  '[27;2;13~': 'newline',
  '[27;3;13~': 'newline',
} as const;

const pasteBegins = '\x1b[200~';
const pasteEnds = '\x1b[201~';
const whole = /^\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z]|[^[O\x1b])/;
/** A key that begins with an escape arrives in one piece. In milliseconds. */
const patience = 30;

export class KeyParser {
  readonly #emit: (key: Key) => void;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  /** The pieces of a paste that has not ended. */
  #pasted: string[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Text has just come, in the same chunk. */
  #hasText = false;

  constructor(emit: (key: Key) => void) {
    this.#emit = emit;
  }

  feed(typed: Buffer | string): void {
    const chunk = typeof typed === 'string' ? typed : this.#decoder.write(typed);
    clearTimeout(this.#timer);
    if (this.#pasted) this.#paste(chunk);
    else this.#rest += chunk;
    this.#hasText = false;
    while (this.#rest !== '' && this.#next());
  }

  /** Forgets what is unfinished. */
  end(): void {
    clearTimeout(this.#timer);
    this.#rest = '';
    this.#pasted = undefined;
  }

  /** Takes the next key. Returns false if more must come first, or a paste has begun. */
  #next(): boolean {
    const rest = this.#rest;
    if (rest.startsWith(pasteBegins)) {
      this.#rest = '';
      this.#pasted = [];
      this.#paste(rest.slice(pasteBegins.length));
      return this.#rest !== '';
    }
    if (rest[0] === '\x1b') return this.#sequence(rest);
    const control = Object.hasOwn(controls, rest[0]!)
      ? controls[rest[0] as keyof typeof controls]
      : undefined;
    const text = control ? '' : (/^[^\x00-\x1f\x7f]+/.exec(rest)?.[0] ?? '');
    this.#rest = rest.slice(text.length || 1);
    // Of lines that arrive at once, as a terminal pastes that marks nothing, only the last end sends them.
    const isInside = control === 'enter' && /^[^\x00-\x1f\x7f]/.test(this.#rest);
    // What was typed before the keys were read came as a line.
    const isSent = control === 'newline' && this.#hasText && this.#rest === '';
    this.#hasText = text !== '';
    if (control) this.#emit({ kind: 'key', name: isInside ? 'newline' : isSent ? 'enter' : control });
    else if (text !== '') this.#emit({ kind: 'text', text });
    return true;
  }

  #sequence(rest: string): boolean {
    const found = whole.exec(rest)?.[0];
    if (found === undefined) {
      this.#timer = setTimeout(() => {
        this.#rest = '';
        this.#emit({ kind: 'key', name: 'escape' });
      }, patience);
      return false;
    }
    this.#rest = rest.slice(found.length);
    const name = found.slice(1);
    if (Object.hasOwn(sequences, name))
      this.#emit({ kind: 'key', name: sequences[name as keyof typeof sequences] });
    return true;
  }

  #paste(chunk: string): void {
    const parts = this.#pasted!;
    // The mark of the end may come in two pieces.
    const before = parts.pop() ?? '';
    const joined = before.slice(-pasteEnds.length) + chunk;
    const at = joined.indexOf(pasteEnds);
    parts.push(before.slice(0, Math.max(0, before.length - pasteEnds.length)));
    if (at < 0) {
      parts.push(joined);
      return;
    }
    this.#pasted = undefined;
    this.#emit({ kind: 'paste', text: parts.join('') + joined.slice(0, at) });
    this.#rest = joined.slice(at + pasteEnds.length);
  }
}
