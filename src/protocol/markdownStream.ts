/** Shows Markdown on a terminal while it arrives. What could still become a mark is held back until that is known. */
import { colourCode } from './codeColours.ts';
import { inline, type Mark, type Piece } from './markdownMarks.ts';
import { beginningOf, columnsOf } from './text.ts';

/** Takes text without steering characters, and returns what can be shown. */
export interface MarkdownStream {
  add(text: string): string;
  /** Returns what was held back. The next text begins a new line. */
  end(): string;
}

export interface MarkdownLook {
  /** Columns of the terminal. */
  width: number;
  /** False to use no escape sequence: marks within a line then stay as they are. */
  styled: boolean;
}

const sequences: Readonly<Record<Mark, readonly [on: string, off: string]>> = {
  bold: ['\x1b[1m', '\x1b[22m'],
  italic: ['\x1b[3m', '\x1b[23m'],
  strike: ['\x1b[9m', '\x1b[29m'],
  code: ['\x1b[36m', '\x1b[39m'],
  link: ['\x1b[4m', '\x1b[24m'],
  dim: ['\x1b[2m', '\x1b[22m'],
};

const shown = ({ text, marks }: Piece): string =>
  marks.reduce((inner, mark) => sequences[mark][0] + inner + sequences[mark][1], text);

/** Characters of a line that are held back at most. What is longer is shown as it is. */
const mostHeld = 1000;
/** Lines of a table that are held back at most. */
const mostRows = 200;

export function markdownStream(look: MarkdownLook): MarkdownStream {
  return new Renderer(look);
}

const onlyMarks = /^\s*(?:[-#>*+_=`~|\s]*|\d{1,9}[.)]?\s*|[-*+]\s+\[[ xX]?\]?\s*)$/;

class Renderer implements MarkdownStream {
  readonly #look: MarkdownLook;
  #line = '';
  /** Marks of the whole line, once its block is known. */
  #marks: readonly Mark[] | undefined;
  #before = '';
  #fence: string | undefined;
  #language = '';
  #rows: string[] = [];
  #wrap: Wrap;

  constructor(look: MarkdownLook) {
    this.#look = look;
    this.#wrap = new Wrap(look.width);
  }

  add(text: string): string {
    let out = '';
    for (const [index, part] of text.split('\n').entries()) {
      if (index > 0) out += this.#take(true);
      this.#line += part;
      out += this.#take(false);
    }
    return out;
  }

  end(): string {
    const hasLine = this.#line !== '' || this.#marks !== undefined;
    const out = (hasLine ? this.#take(true).replace(/\n$/, '') : '') + this.#table();
    this.#fence = undefined;
    return out;
  }

  /** Returns what can be shown of the line, which `isWhole` once its end has come. */
  #take(isWhole: boolean): string {
    if (this.#marks === undefined) {
      const started = this.#start(isWhole);
      if (this.#marks === undefined) return started;
      return started + this.#take(isWhole);
    }
    const marks = this.#marks;
    let out = '';
    const show = (text: string, isPart: boolean): string => {
      const { pieces, rest } = this.#look.styled
        ? inline(text, isPart, this.#before)
        : { pieces: [{ text, marks: [] }], rest: '' };
      this.#before = text.slice(0, text.length - rest.length).at(-1) ?? this.#before;
      for (const piece of pieces) out += this.#wrap.add({ ...piece, marks: [...marks, ...piece.marks] });
      return rest;
    };
    while (this.#line.length > mostHeld) {
      const shown = beginningOf(this.#line, mostHeld);
      show(shown, true);
      this.#line = this.#line.slice(shown.length);
    }
    this.#line = show(this.#line, isWhole);
    if (!isWhole) return out;
    this.#marks = undefined;
    this.#before = '';
    return `${out}${this.#wrap.end()}\n`;
  }

  /** Begins the line if its block is known. Returns what a block shows that is known as a whole, or what precedes the line. */
  #start(isWhole: boolean): string {
    const { styled, width } = this.#look;
    const line = this.#line;
    if (this.#fence !== undefined || /^ {0,3}(?:```|~~~)/.test(line)) {
      if (!isWhole) return '';
      this.#line = '';
      return this.#table() + this.#code(line);
    }
    const mayBeTable = /^\s*\|/.test(line) && this.#rows.length < mostRows;
    if (mayBeTable && line.length <= mostHeld) {
      if (!isWhole) return '';
      this.#line = '';
      this.#rows.push(line);
      return '';
    }
    // Only marks so far: what they mean depends on what follows.
    if (!isWhole && line.length < width && onlyMarks.test(line)) return '';
    const table = this.#table();
    if (isWhole && /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/.test(line)) {
      this.#line = '';
      return `${table}${styled ? shown({ text: '─'.repeat(width), marks: ['dim'] }) : line}\n`;
    }
    const [, indent = '', heading, quote, bullet, task, number] =
      /^(\s*)(?:(#{1,6})\s+|(>)\s?|([-*+])\s+(?:\[([ xX])\]\s+)?|(\d{1,9}[.)])\s+)/.exec(line) ?? [];
    const mark = heading ?? quote ?? bullet ?? number;
    const [whole = ''] =
      mark === undefined
        ? []
        : (/^(\s*)(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,9}[.)]\s+)/.exec(line) ?? []);
    this.#line = line.slice(whole.length);
    this.#marks = heading && styled ? ['bold'] : [];
    const prefix = prefixOf({ heading, quote, bullet, task, number }, styled);
    this.#wrap.begin(indent.replaceAll('\t', '    ') + prefix, quote ? indent + prefix : undefined);
    return table;
  }

  #code(line: string): string {
    const [, marks = '', language = ''] = /^ {0,3}(`{3,}|~{3,})(.*)/.exec(line) ?? [];
    const opened = this.#fence;
    if (opened === undefined) {
      this.#fence = marks;
      this.#language = language;
    } else if (marks.startsWith(opened) && line.trim() === marks) this.#fence = undefined;
    else return `${this.#look.styled ? colourCode(line, this.#language) : line}\n`;
    return this.#look.styled ? '' : `${line}\n`;
  }

  /** Returns the table that has been held back: in columns if it fits, or else row by row. */
  #table(): string {
    const rows = this.#rows;
    if (rows.length === 0) return '';
    this.#rows = [];
    const isTable = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/.test(rows[1] ?? '');
    return isTable ? tableText(rows, this.#look) : `${rows.join('\n')}\n`;
  }
}

interface Block {
  heading: string | undefined;
  quote: string | undefined;
  bullet: string | undefined;
  task: string | undefined;
  number: string | undefined;
}

function prefixOf({ heading, quote, bullet, task, number }: Block, styled: boolean): string {
  if (heading) return styled ? '' : `${heading} `;
  if (quote) return '│ ';
  if (task !== undefined) return task === ' ' ? '☐ ' : '☑ ';
  if (bullet) return '• ';
  return number ? `${number} ` : '';
}

/** Breaks lines between words. A long word is left to the terminal. */
class Wrap {
  readonly #width: number;
  #column = 0;
  #blanks = '';
  #word: Piece[] = [];
  #prefix = '';
  #hanging = '';

  constructor(width: number) {
    this.#width = width;
  }

  /** Begins a line. Its further lines are indented as far as its first one, or begin with `again`. */
  begin(prefix: string, again = ' '.repeat(columnsOf(prefix))): void {
    this.#prefix = prefix;
    this.#hanging = again.length < this.#width / 2 ? again : '';
    this.#column = columnsOf(prefix);
    this.#blanks = '';
  }

  add({ text, marks }: Piece): string {
    let out = '';
    for (const part of text.split(/(\s+)/)) {
      if (part === '') continue;
      if (/^\s/.test(part)) {
        out += this.#flush();
        this.#blanks += part.replaceAll('\t', '    ');
      } else this.#addToWord({ text: part, marks });
    }
    // Languages that write without blanks, and long words.
    if (this.#wordColumns() > this.#width / 2) out += this.#flush();
    return out;
  }

  /** Returns the last word. Blanks at the end of a line are dropped. */
  end(): string {
    const out = this.#flush() || this.#prefix.trimEnd();
    this.#prefix = '';
    this.#column = 0;
    this.#blanks = '';
    return out;
  }

  #addToWord(piece: Piece): void {
    const last = this.#word.at(-1);
    if (last && last.marks.join() === piece.marks.join()) last.text += piece.text;
    else this.#word.push(piece);
  }

  #wordColumns(): number {
    return this.#word.reduce((sum, { text }) => sum + columnsOf(text), 0);
  }

  #flush(): string {
    if (this.#word.length === 0) return '';
    const columns = this.#wordColumns();
    const isFirst = this.#prefix !== '';
    let before = this.#prefix + this.#blanks;
    this.#column += this.#blanks.length;
    if (!isFirst && this.#blanks !== '' && this.#column + columns > this.#width) {
      before = `\n${this.#hanging}`;
      this.#column = columnsOf(this.#hanging);
    }
    this.#column += columns;
    const word = this.#word.map(shown).join('');
    this.#word = [];
    this.#blanks = '';
    this.#prefix = '';
    return before + word;
  }
}

/** Returns the rows in columns. In a narrow terminal each cell is a line of its own behind the head of its column. */
function tableText(rows: readonly string[], { width, styled }: MarkdownLook): string {
  const cells = rows
    .filter((_, index) => index !== 1)
    .map(row => cellsOf(row).map(cell => (styled ? inline(cell, true).pieces : [{ text: cell, marks: [] }])));
  const columns = Math.max(...cells.map(row => row.length));
  const widthOf = (cell: readonly Piece[] = []): number =>
    cell.reduce((sum, { text }) => sum + columnsOf(text), 0);
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(1, ...cells.map(row => widthOf(row[column]))),
  );
  if (widths.reduce((sum, each) => sum + each + 2, -2) > width) {
    const [heads = [], ...records] = cells;
    const record = (row: readonly (readonly Piece[])[]): string =>
      row.map((cell, column) => cellLine(heads[column] ?? [], cell, { width, styled })).join('\n');
    return `${records.map(record).join(`\n${'─'.repeat(Math.min(width, 8))}\n`)}\n`;
  }
  const line = (row: readonly (readonly Piece[])[], isHead: boolean): string =>
    widths
      .map((columnWidth, column) => {
        const cell = row[column] ?? [];
        const text = cell.map(({ text, marks }) =>
          shown({ text, marks: isHead && styled ? ['bold', ...marks] : marks }),
        );
        return text.join('') + ' '.repeat(columnWidth - widthOf(cell));
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map(each => '─'.repeat(each)).join('  ');
  const [head = [], ...body] = cells;
  return `${[line(head, true), rule, ...body.map(row => line(row, false))].join('\n')}\n`;
}

function cellLine(head: readonly Piece[], cell: readonly Piece[], { width, styled }: MarkdownLook): string {
  const wrap = new Wrap(width);
  wrap.begin('', '  ');
  const named = head.map(({ text, marks }): Piece => ({ text, marks: styled ? ['bold', ...marks] : marks }));
  const words = [...named, { text: head.length > 0 ? ': ' : '', marks: [] }, ...cell];
  return words.map(piece => wrap.add(piece)).join('') + wrap.end();
}

const cellsOf = (row: string): string[] =>
  row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
    .split(/(?<!\\)\|/)
    .map(cell => cell.trim().replaceAll('\\|', '|'));
