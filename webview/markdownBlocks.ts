/**
 * Cuts Markdown into blocks while it streams in, so that the view parses only the block that is still growing. Pure text work:
 * each closed block keeps its identity, and all sources joined are the input again.
 */
import { t } from './host.ts';

/**
 * `code` is one top-level fenced block with its fences. `fold` opens a `<details>` with its summary, and `fold_end` closes it.
 * `prose` is everything else.
 */
export interface MarkdownBlock {
  readonly kind: 'prose' | 'code' | 'fold' | 'fold_end';
  readonly source: string;
  /** The block was cut only for its length. The next one continues its list or paragraph. */
  readonly cut?: true;
}

export interface MarkdownStream {
  readonly closed: readonly MarkdownBlock[];
  /** Source of the block that may still grow. */
  readonly open: string;
  readonly scan: Scan;
}

/** State of scanning the open block's complete lines, so that no line is scanned twice. */
interface Scan {
  /** Offset in `open` after the last scanned line. */
  readonly at: number;
  readonly mode: 'start' | 'prose' | 'table' | 'list' | 'indented' | 'fence' | 'math' | 'fold' | 'fold_end';
  /** The fence that ends a fenced block, at the top level or inside a list item, or a formula. */
  readonly fence: string;
  /** Column at which the text of a list's current top-level item begins. */
  readonly contentIndent: number;
  readonly afterBlank: boolean;
}

/** A longer list or paragraph is cut at its next item or line, which bounds the cost of parsing. In UTF-16 units. */
const longBlock = 2_000;

/** In UTF-16 units. */
const longSummary = 500;

const freshScan: Scan = { at: 0, mode: 'start', fence: '', contentIndent: 0, afterBlank: false };

export const emptyMarkdown: MarkdownStream = { closed: [], open: '', scan: freshScan };

/** Returns the stream with `delta` appended. */
export function appendMarkdown(stream: MarkdownStream, delta: string): MarkdownStream {
  return readLines(stream, stream.open + delta, false);
}

/** Returns the finished stream. Its last line counts as complete, and no block is open. */
export function closeMarkdown(stream: MarkdownStream): MarkdownStream {
  const read = readLines(stream, stream.open, true);
  const last = openBlock(read);
  return { closed: last ? [...read.closed, last] : read.closed, open: '', scan: freshScan };
}

function readLines(stream: MarkdownStream, source: string, atEnd: boolean): MarkdownStream {
  const closed: MarkdownBlock[] = [];
  let open = source;
  let scan = stream.scan;
  while (scan.at < open.length) {
    const newline = open.indexOf('\n', scan.at);
    if (newline === -1 && !atEnd) break;
    const end = newline === -1 ? open.length : newline + 1;
    const step = readLine(scan, open.slice(scan.at, end).replace(/\r?\n$/, ''));
    if (step === 'close_before' || step === 'cut_before') {
      const block = makeBlock(scan.mode, open.slice(0, scan.at));
      closed.push(step === 'cut_before' ? { ...block, cut: true } : block);
      open = open.slice(scan.at);
      scan = freshScan;
    } else if (step.closes) {
      closed.push(makeBlock(step.mode, open.slice(0, end)));
      open = open.slice(end);
      scan = freshScan;
    } else {
      scan = { ...step.scan, at: end };
    }
  }
  return { closed: closed.length > 0 ? [...stream.closed, ...closed] : stream.closed, open, scan };
}

/** Returns the block that may still grow, or undefined if it has nothing to show. */
export function openBlock(stream: MarkdownStream): MarkdownBlock | undefined {
  if (stream.open.trim() === '') return undefined;
  if (stream.scan.mode !== 'start') return makeBlock(stream.scan.mode, stream.open);
  const firstLine = stream.open.slice(stream.scan.at);
  // Half a tag is not drawn as text first.
  if (/^ {0,3}<\/?[a-z]*$/i.test(firstLine) || isFoldStart(firstLine)) return undefined;
  return makeBlock(fenceOf(firstLine) ? 'fence' : 'prose', stream.open);
}

/**
 * Returns language and text of a `code` block. If the block is still growing, a last line that may begin the closing fence is
 * held back. The text therefore only grows at its end.
 */
export function codeParts(source: string, growing = false): { language: string; code: string } {
  const start = source.search(/\S/);
  const lineStart = source.lastIndexOf('\n', start) + 1;
  const headEnd = source.indexOf('\n', lineStart);
  const head = headEnd === -1 ? source.slice(lineStart) : source.slice(lineStart, headEnd);
  const fence = fenceOf(head) ?? '';
  const language = /^[^\s{,]*/.exec(head.trim().slice(fence.length).trim())?.[0] ?? '';
  let code = headEnd === -1 ? '' : source.slice(headEnd + 1);
  const lastLineAt = code.trimEnd().lastIndexOf('\n') + 1;
  const lastLine = code.slice(lastLineAt);
  const partialFence = growing && new RegExp(`^ {0,3}\\${fence[0]}*$`).test(lastLine);
  if (closesFence(lastLine.trimEnd(), fence) || partialFence) code = code.slice(0, lastLineAt);
  const indent = indentOf(head);
  if (indent > 0) code = code.replace(new RegExp(`^ {1,${indent}}`, 'gm'), '');
  return { language, code };
}

function makeBlock(mode: Scan['mode'], source: string): MarkdownBlock {
  const kind = mode === 'fence' ? 'code' : mode === 'fold' || mode === 'fold_end' ? mode : 'prose';
  return { kind, source };
}

type Step =
  | 'close_before'
  | 'cut_before'
  | { closes: true; mode: Scan['mode'] }
  | { closes: false; scan: Scan };

const stay = (scan: Scan): Step => ({ closes: false, scan });

function readLine(scan: Scan, line: string): Step {
  const blank = line.trim() === '';
  switch (scan.mode) {
    case 'fence':
      return closesFence(line, scan.fence) ? { closes: true, mode: 'fence' } : stay(scan);
    case 'list':
      return readListLine(scan, line, blank);
    case 'indented':
      return blank || indentOf(line) >= 4 ? stay(scan) : 'close_before';
    case 'math':
      return line.includes(scan.fence) || blank ? { closes: true, mode: 'math' } : stay(scan);
    case 'fold':
      return readSummaryLine(scan, line, blank);
    case 'fold_end':
      return 'close_before';
    case 'table':
    case 'prose':
      return readProseLine(scan, line, blank);
    case 'start':
      return blank ? stay(scan) : beginBlock(scan, line);
  }
}

function beginBlock(scan: Scan, line: string): Step {
  const fence = fenceOf(line);
  if (fence) return stay({ ...scan, mode: 'fence', fence });
  if (indentOf(line) >= 4) return stay({ ...scan, mode: 'indented' });
  if (isFoldEnd(line)) return { closes: true, mode: 'fold_end' };
  if (isFoldStart(line)) return readSummaryLine({ ...scan, mode: 'fold' }, line, false);
  const math = mathFenceOf(line);
  if (math) return stay({ ...scan, mode: 'math', fence: math });
  if (isHeading(line) || isRule(line)) return { closes: true, mode: 'prose' };
  const contentIndent = listContentIndent(line);
  if (contentIndent === undefined) return stay({ ...scan, mode: 'prose' });
  return stay({ ...scan, mode: 'list', contentIndent, fence: fenceOf(line.slice(contentIndent)) ?? '' });
}

/** Reads the lines of `<details>` up to the end of its summary, which may be on the same line, on the next or missing. */
function readSummaryLine(scan: Scan, line: string, blank: boolean): Step {
  if (blank || /<\/summary>/i.test(line)) return { closes: true, mode: 'fold' };
  const rest = line.replace(/^ {0,3}<details(?=[\s>])[^<>]*>/i, '').trim();
  const isSummary = /^<summary\b/i.test(rest);
  if (scan.at > 0 && !isSummary && scan.fence === '') return 'close_before';
  if (rest !== '' && !isSummary && scan.fence === '') return { closes: true, mode: 'fold' };
  return scan.at > longSummary
    ? { closes: true, mode: 'fold' }
    : stay({ ...scan, fence: isSummary ? 'summary' : scan.fence });
}

function readProseLine(scan: Scan, line: string, blank: boolean): Step {
  if (blank || isUnderline(line)) return { closes: true, mode: 'prose' };
  if (isFoldStart(line) || isFoldEnd(line) || mathFenceOf(line)) return 'close_before';
  if (fenceOf(line) || isHeading(line) || isRule(line) || interruptsParagraph(line)) return 'close_before';
  if (scan.mode === 'table') return stay(scan);
  if (isDelimiterRow(line)) return stay({ ...scan, mode: 'table' });
  return scan.at > longBlock ? 'cut_before' : stay(scan);
}

function readListLine(scan: Scan, line: string, blank: boolean): Step {
  if (blank) return stay({ ...scan, afterBlank: true });
  const inside = indentOf(line) >= scan.contentIndent;
  if (scan.fence && inside) {
    return stay(closesFence(line.trim(), scan.fence) ? { ...scan, fence: '', afterBlank: false } : scan);
  }
  if (inside) {
    const fence = fenceOf(line.trimStart().replace(/^([-*+]|\d{1,9}[.)])\s+/, '')) ?? '';
    return stay({ ...scan, fence, afterBlank: false });
  }
  if (isHeading(line) || isRule(line) || fenceOf(line) || isFoldStart(line) || isFoldEnd(line))
    return 'close_before';
  const contentIndent = listContentIndent(line);
  if (contentIndent !== undefined) {
    if (scan.at > longBlock) return 'cut_before';
    const fence = fenceOf(line.slice(contentIndent)) ?? '';
    return stay({ ...scan, contentIndent, fence, afterBlank: false });
  }
  return scan.afterBlank ? 'close_before' : stay({ ...scan, fence: '' });
}

function indentOf(line: string): number {
  let indent = 0;
  for (const character of line) {
    if (character === ' ') indent += 1;
    else if (character === '\t') indent += 4 - (indent % 4);
    else break;
  }
  return indent;
}

/** Returns the fence that this line opens, for example "```". A backtick fence has no backtick in its info string. */
function fenceOf(line: string): string | undefined {
  const match = /^ {0,3}(?:(`{3,})[^`]*|(~{3,}).*)$/.exec(line);
  return match?.[1] ?? match?.[2];
}

function closesFence(line: string, fence: string): boolean {
  const match = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line);
  return match?.[1] !== undefined && match[1][0] === fence[0] && match[1].length >= fence.length;
}

const isFoldStart = (line: string): boolean => /^ {0,3}<details(?=[\s>])[^<>]*>/i.test(line);
const isFoldEnd = (line: string): boolean => /^ {0,3}<\/details>\s*$/i.test(line);

/** Returns the mark that ends the formula that this line begins and does not end. */
function mathFenceOf(line: string): string | undefined {
  const [, mark, rest = ''] = /^ {0,3}(\$\$|\\\[)(.*)$/.exec(line) ?? [];
  if (!mark) return undefined;
  const fence = mark === '$$' ? '$$' : '\\]';
  return rest.includes(fence) ? undefined : fence;
}

/** A part of a fold's first lines. `isOpen` is true if it shows its content without a click, `rest` is content on the same line. */
export function foldParts(source: string): { summary: string; isOpen: boolean; rest: string } {
  const [, attributes = '', inside = ''] = /^\s*<details(?=[\s>])([^<>]*)>([\s\S]*)$/i.exec(source) ?? [];
  const [, head, after] = /^\s*<summary\b[^<>]*>([\s\S]*?)<\/summary>([\s\S]*)$/i.exec(inside) ?? [];
  const summary = (head ?? '')
    .replace(/<\/?[a-z][^<>]*>/gi, '')
    .replace(/\s+/g, ' ')
    .trim();
  const rest = (head === undefined ? inside.replace(/<summary\b[^<>]*>/i, '') : (after ?? '')).trim();
  return { summary: summary.slice(0, longSummary), isOpen: /(?:^|\s)open\b/i.test(attributes), rest };
}

function isHeading(line: string): boolean {
  return /^ {0,3}#{1,6}(\s|$)/.test(line);
}

function isRule(line: string): boolean {
  return /^ {0,3}(?:(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})$/.test(line);
}

/** Returns true for a line of `=` or `-` that turns the paragraph above it into a heading. */
function isUnderline(line: string): boolean {
  return /^ {0,3}(=+|-+)\s*$/.test(line);
}

/**
 * Returns true for the line between a table's head and its rows. Matches cell by cell, so that blanks cannot be matched in two
 * ways.
 */
function isDelimiterRow(line: string): boolean {
  if (!line.includes('|')) return false;
  const cells = line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|');
  return cells.every(cell => /^:?-+:?$/.test(cell.trim()));
}

/**
 * Returns true if a list item may end a paragraph without a blank line. Only a bullet with text, or number one, may: "1986. A
 * good year" may not.
 */
function interruptsParagraph(line: string): boolean {
  return /^ {0,3}([-*+]|1[.)])\s+\S/.test(line);
}

function listContentIndent(line: string): number | undefined {
  const match = /^( {0,3}(?:[-*+]|\d{1,9}[.)]))(?:( {1,4})(?=\S)|\s|$)/.exec(line);
  if (!match?.[1]) return undefined;
  return match[1].length + (match[2]?.length ?? 1);
}

/** Characters of a block that are drawn without a request. A page of prose has some 3,000. */
const drawnAtOnce = 20_000;
/** Characters that one press of the button adds. */
const addedAtOnce = 100_000;

/** Splits off the text that is not drawn at once. `rest` is empty for each block of a usual length. */
export function splitLong(source: string): { head: string; rest: string } {
  if (source.length <= drawnAtOnce * 2) return { head: source, rest: '' };
  const at = wholeCharacters(source, drawnAtOnce);
  return { head: source.slice(0, at), rest: source.slice(at) };
}

/** Returns a button that inserts more of `rest` before itself, as plain text, until nothing is left. */
export function showMore(rest: string): HTMLElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'show-more';
  let left = rest;
  const label = (): void => {
    button.textContent = t('Show more ({0} characters)', left.length.toLocaleString('en'));
  };
  button.addEventListener('click', () => {
    const at = wholeCharacters(left, addedAtOnce);
    const paragraph = document.createElement('p');
    paragraph.textContent = left.slice(0, at);
    button.before(paragraph);
    left = left.slice(at);
    if (left === '') button.remove();
    else label();
  });
  label();
  return button;
}

/** Returns a length of at most `length` that does not split a surrogate pair. */
function wholeCharacters(text: string, length: number): number {
  const code = text.charCodeAt(length - 1);
  return code >= 0xd800 && code < 0xdc00 ? length - 1 : Math.min(length, text.length);
}
