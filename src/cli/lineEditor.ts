/** Edits a request on a terminal: several lines, pastes, history, completion, and the user's own editor. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRegularFile } from '@telos/engine/files';
import { columnsOf, counted } from '@telos/protocol/text';
import type { KeyInput } from './keyboard.ts';
import { type Key, type KeyName, KeyParser, marksNoPastes, marksPastes } from './keys.ts';
import { terminalText } from './terminalText.ts';

export interface EditorOptions {
  /** The newest first. */
  history: readonly string[];
  /** Returns what the word before the cursor may become. */
  complete(before: string): Promise<readonly string[]>;
  /** The text to begin with. */
  draft?: string;
}

export type Edited = { text: string } | 'end' | 'interrupt';

/** Longer pastes are shown by their number of lines. */
const [mostPastedLines, mostPastedCharacters] = [6, 600];
/** A long paste is one character of the text: the first of these, the next one, and so on. */
const firstMark = 0xe000;
const mark = /[\ue000-\uf8ff]/g;
/** Most that is taken over from the user's own editor, in bytes. */
const mostEdited = 16 * 1024 * 1024;
/** Most rows of offers below the text. */
const mostOffers = 8;

/** Reads one request. The terminal is as before when it resolves. */
export function edit(
  prompt: string,
  options: EditorOptions,
  input: KeyInput,
  output: NodeJS.WriteStream,
): Promise<Edited> {
  return new Promise(resolve => {
    const editor = new LineEditor(prompt, options, output, input, resolve);
    editor.begin();
  });
}

class LineEditor {
  readonly #prompt: string;
  readonly #options: EditorOptions;
  readonly #output: NodeJS.WriteStream;
  readonly #input: KeyInput;
  readonly #done: (result: Edited) => void;
  readonly #parser = new KeyParser(key => this.#take(key));
  readonly #pastes: string[] = [];
  #text = '';
  #cursor = 0;
  /** The index of the shown entry of the history; -1 for the user's own text, which `#own` keeps. */
  #entry = -1;
  #own = '';
  #search: { query: string; from: number } | undefined;
  #offers: readonly string[] = [];
  /** Rows above the cursor that are drawn. */
  #above = 0;
  #isOver = false;

  constructor(
    prompt: string,
    options: EditorOptions,
    output: NodeJS.WriteStream,
    input: KeyInput,
    done: (result: Edited) => void,
  ) {
    this.#prompt = prompt;
    this.#options = options;
    this.#output = output;
    this.#input = input;
    this.#done = done;
  }

  begin(): void {
    if (this.#options.draft) this.#insertPasted(this.#options.draft);
    this.#listen();
    this.#output.on('resize', this.#draw);
    this.#draw();
  }

  #listen(): void {
    this.#input.on('data', this.#feed);
    for (const end of ['end', 'error'] as const) this.#input.on(end, this.#ended);
    this.#input.setRawMode(true);
    this.#input.resume();
    this.#output.write(marksPastes);
  }

  #deafen(): void {
    this.#input.off('data', this.#feed);
    for (const end of ['end', 'error'] as const) this.#input.off(end, this.#ended);
    this.#input.setRawMode(false);
    this.#input.pause();
    this.#output.write(marksNoPastes);
  }

  readonly #feed = (typed: Buffer | string): void => {
    this.#parser.feed(typed);
    if (!this.#isOver) this.#draw();
  };

  readonly #ended = (): void => this.#finish('end');

  #finish(result: Edited, shown = ''): void {
    if (this.#isOver) return;
    this.#offers = [];
    this.#search = undefined;
    this.#cursor = this.#text.length;
    this.#draw();
    this.#isOver = true;
    this.#parser.end();
    this.#output.off('resize', this.#draw);
    this.#deafen();
    this.#output.write(`${shown}\n`);
    this.#done(result);
  }

  #take(key: Key): void {
    if (this.#isOver) return;
    this.#offers = [];
    if (this.#search) this.#takeInSearch(key);
    else if (key.kind === 'text') this.#insert(key.text);
    else if (key.kind === 'paste') this.#insertPasted(key.text);
    else this.#acts[key.name]?.();
  }

  readonly #acts: Partial<Record<KeyName, () => void>> = {
    enter: () => this.#enter(),
    newline: () => this.#insert('\n'),
    // What was typed is given up, as in a shell.
    interrupt: () => this.#finish(this.#text === '' ? 'interrupt' : { text: '' }, '^C'),
    'end of input': () => (this.#text === '' ? this.#finish('end') : this.#cut(this.#cursor, this.#right())),
    quit: () => process.kill(process.pid, 'SIGQUIT'),
    suspend: () => this.#suspend(),
    backspace: () => this.#cut(this.#left(), this.#cursor),
    delete: () => this.#cut(this.#cursor, this.#right()),
    'cut to end': () => this.#cut(this.#cursor, this.#lineEnd()),
    'cut to start': () => this.#cut(this.#lineStart(), this.#cursor),
    'cut word': () => this.#cut(this.#wordLeft(), this.#cursor),
    complete: () => void this.#complete(),
    editor: () => this.#openEditor(),
    search: () => {
      this.#search = { query: '', from: 0 };
    },
    'clear screen': () => {
      this.#output.write('\x1b[H\x1b[2J');
      this.#above = 0;
    },
    up: () =>
      this.#text.slice(0, this.#cursor).includes('\n')
        ? this.#toLine(this.#lineStart() - 1)
        : this.#show(this.#entry + 1),
    down: () =>
      this.#text.indexOf('\n', this.#cursor) >= 0
        ? this.#toLine(this.#lineEnd() + 1)
        : this.#show(this.#entry - 1),
    left: () => this.#to(this.#left()),
    move: () => this.#to(this.#left()),
    right: () => this.#to(this.#right()),
    home: () => this.#to(this.#lineStart()),
    end: () => this.#to(this.#lineEnd()),
    'word left': () => this.#to(this.#wordLeft()),
    'word right': () =>
      this.#to(this.#cursor + (/^\s*\S*/.exec(this.#text.slice(this.#cursor))?.[0].length ?? 0)),
  };

  #enter(): void {
    // A line that ends in \ goes on in the next one.
    if (this.#text.slice(0, this.#cursor).endsWith('\\')) {
      this.#cut(this.#cursor - 1, this.#cursor);
      this.#insert('\n');
    } else this.#finish({ text: this.#whole() });
  }

  #to(place: number): void {
    this.#cursor = Math.min(place, this.#text.length);
  }

  #left(): number {
    return this.#cursor - ([...this.#text.slice(0, this.#cursor)].at(-1)?.length ?? 0);
  }

  #right(): number {
    return this.#cursor + (String.fromCodePoint(this.#text.codePointAt(this.#cursor) ?? 0).length || 1);
  }

  #wordLeft(): number {
    return this.#text.slice(0, this.#cursor).replace(/\S*\s*$/, '').length;
  }

  #lineStart(): number {
    return this.#text.lastIndexOf('\n', this.#cursor - 1) + 1;
  }

  #lineEnd(): number {
    const at = this.#text.indexOf('\n', this.#cursor);
    return at < 0 ? this.#text.length : at;
  }

  /** Goes to the same column of the line that holds this place. */
  #toLine(place: number): void {
    const column = this.#cursor - this.#lineStart();
    this.#cursor = place;
    this.#cursor = Math.min(this.#lineStart() + column, this.#lineEnd());
  }

  #insert(text: string): void {
    this.#text = this.#text.slice(0, this.#cursor) + text + this.#text.slice(this.#cursor);
    this.#cursor += text.length;
  }

  #insertPasted(given: string): void {
    const text = given.replace(/\r\n?/g, '\n').replace(mark, '');
    const lines = text.split('\n').length;
    const isShort = lines <= mostPastedLines && text.length <= mostPastedCharacters;
    this.#insert(isShort ? text : String.fromCharCode(firstMark + (this.#pastes.push(text) - 1)));
  }

  #cut(from: number, to: number): void {
    this.#text = this.#text.slice(0, from) + this.#text.slice(to);
    this.#cursor = from;
  }

  #pasted(character: string): string | undefined {
    return this.#pastes[character.charCodeAt(0) - firstMark];
  }

  /** The text with all that was pasted. */
  #whole(): string {
    return this.#text.replace(mark, character => this.#pasted(character) ?? '');
  }

  #show(entry: number): void {
    if (entry < -1 || entry >= this.#options.history.length) return;
    if (this.#entry === -1) this.#own = this.#text;
    this.#entry = entry;
    this.#text = entry === -1 ? this.#own : this.#options.history[entry]!;
    this.#cursor = this.#text.length;
  }

  #takeInSearch(key: Key): void {
    const search = this.#search!;
    if (key.kind !== 'key') search.query += key.text;
    else if (key.name === 'backspace') search.query = search.query.slice(0, -1);
    else if (key.name === 'search') search.from = this.#found() + 1;
    else {
      const found = this.#options.history[this.#found()];
      this.#search = undefined;
      if (found === undefined || key.name === 'interrupt' || key.name === 'editor') return;
      this.#text = found;
      this.#cursor = found.length;
      // Looking at what was found is not yet sending it.
      if (key.name !== 'enter' && key.name !== 'escape') this.#acts[key.name]?.();
      return;
    }
    if (this.#found() < 0) search.from = 0;
  }

  #found(): number {
    const { query, from } = this.#search!;
    return this.#options.history.findIndex((entry, at) => at >= from && entry.includes(query));
  }

  async #complete(): Promise<void> {
    const before = this.#text.slice(0, this.#cursor);
    const [word = ''] = /\S*$/.exec(before) ?? [];
    const offered = await this.#options.complete(before).catch(() => []);
    if (this.#isOver || this.#text.slice(0, this.#cursor) !== before) return;
    const fitting = offered.filter(each => each.startsWith(word));
    const [only] = fitting.length === 0 && offered.length === 1 && word.startsWith('@') ? offered : [];
    if (only !== undefined) {
      this.#cut(this.#cursor - word.length, this.#cursor);
      this.#insert(`${only} `);
    }
    const common = fitting.reduce(commonStart, fitting[0] ?? word);
    if (common.length > word.length) this.#insert(common.slice(word.length));
    if (fitting.length === 1 && !common.endsWith('/')) this.#insert(' ');
    // Names of files further down begin with none of it.
    const shown = fitting.length > 0 || only !== undefined ? fitting : word.startsWith('@') ? offered : [];
    this.#offers = shown.length > 1 ? shown : [];
    this.#draw();
  }

  #openEditor(): void {
    const { VISUAL, EDITOR } = process.env;
    const folder = mkdtempSync(join(tmpdir(), 'telos-request-'));
    const file = join(folder, 'request.md');
    this.#deafen();
    try {
      writeFileSync(file, this.#whole(), { mode: 0o600 });
      const command = `${VISUAL || EDITOR || 'vi'} "$1"`;
      const { status } = spawnSync('/bin/sh', ['-c', command, 'sh', file], { stdio: 'inherit' });
      if (status === 0) {
        this.#text = '';
        this.#cursor = 0;
        this.#insertPasted(readRegularFile(file, mostEdited).toString('utf8').replace(/\n+$/, ''));
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
      this.#above = 0;
      this.#listen();
    }
  }

  #suspend(): void {
    this.#deafen();
    process.once('SIGCONT', () => {
      this.#above = 0;
      this.#listen();
      this.#draw();
    });
    process.kill(process.pid, 'SIGTSTP');
  }

  readonly #draw = (): void => {
    const width = Math.max(10, this.#output.columns || 80);
    const { rows, at } = this.#laidOut(width - 1);
    const most = Math.max(3, (this.#output.rows || 24) - 2);
    const first = Math.max(0, Math.min(at.row - most + 1, rows.length - most));
    const shown = rows.slice(first, first + most);
    const offers = this.#offers
      .slice(0, mostOffers)
      .map(each => `\x1b[2m${short(terminalText(each), width - 3)}\x1b[22m`);
    if (this.#offers.length > mostOffers)
      offers.push(`\x1b[2m… ${this.#offers.length - mostOffers} more\x1b[22m`);
    const up = this.#above > 0 ? `\x1b[${this.#above}A` : '';
    const lines = [...shown, ...offers.map(each => `  ${each}`)];
    this.#above = at.row - first;
    const back = lines.length - 1 - this.#above;
    const right = at.column > 0 ? `\x1b[${at.column}C` : '';
    this.#output.write(`${up}\r\x1b[J${lines.join('\r\n')}${back > 0 ? `\x1b[${back}A` : ''}\r${right}`);
  };

  /** Returns the rows of the screen, and the row and column of the cursor. */
  #laidOut(width: number): { rows: string[]; at: { row: number; column: number } } {
    const search = this.#search && {
      prompt: `search ${this.#search.query}: `,
      text: this.#options.history[this.#found()] ?? '',
    };
    const prompt = search ? search.prompt : this.#prompt;
    const text = search ? search.text : this.#text;
    const rows = [prompt];
    let column = columnsOf(prompt.replace(/\x1b\[[\d;]*m/g, ''));
    const indent = ' '.repeat(column < width / 2 ? column : 0);
    let at = { row: 0, column };
    for (let index = 0; index <= text.length; ) {
      if (index === (search ? 0 : this.#cursor)) at = { row: rows.length - 1, column };
      if (index === text.length) break;
      const character = String.fromCodePoint(text.codePointAt(index)!);
      index += character.length;
      if (character === '\n') {
        rows.push(indent);
        column = indent.length;
        continue;
      }
      for (const piece of this.#label(character)) {
        const columns = columnsOf(piece);
        if (column + columns > width) {
          rows.push('');
          column = 0;
        }
        rows[rows.length - 1] += piece;
        column += columns;
      }
    }
    return { rows, at };
  }

  /** Returns what is shown for a character: of a long paste, its number of lines. */
  #label(character: string): string {
    const pasted = this.#pasted(character);
    if (pasted !== undefined) return `[pasted ${counted(pasted.split('\n').length, 'line')}]`;
    return character === '\t' ? '  ' : terminalText(character);
  }
}

const short = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

function commonStart(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return one.slice(0, length);
}
