/** Finds the text that an edit replaces: as it stands, or as a model tends to write it, in which small things differ. */

/** A difference that does not say what is meant. */
type Slip = 'tabs' | 'trailing blanks' | 'quotes' | 'Unicode form' | 'line ends';

export interface Found {
  /** Its index in the text. */
  start: number;
  end: number;
  /** The new text, in the characters of the file where they only look different. */
  fresh: string;
  slips: readonly Slip[];
}

/** A text as it is compared: `from` and `to` are the places of each of its characters in the text itself. */
interface Folded {
  text: string;
  from: number[];
  to: number[];
}

/** Longer texts are compared only as they are. In characters. */
const longestFolded = 1024 * 1024;
/** Columns of a tab, the likeliest first. */
const tabWidths = [4, 2, 8];

const quotes: Readonly<Record<string, string>> = {
  '\u2018': "'",
  '\u2019': "'",
  '\u201a': "'",
  '\u201b': "'",
  '\u201c': '"',
  '\u201d': '"',
  '\u201e': '"',
  '\u201f': '"',
  '\u00a0': ' ',
};

/** Returns the only place that differs from `old` in nothing but slips, with what is put there. Undefined if there is none, or more. */
export function likeliest(text: string, old: string, fresh: string): Found | undefined {
  if (text.length > longestFolded || old.length > longestFolded || old.trim() === '') return undefined;
  for (const width of tabWidths) {
    const [within, wanted] = [folded(text, width), folded(old, width).text];
    const at = within.text.indexOf(wanted);
    if (wanted.trim() === '' || at < 0) continue;
    if (within.text.indexOf(wanted, at + 1) >= 0) return undefined;
    const [start, end] = [within.from[at]!, within.to[at + wanted.length - 1]!];
    const own = text.slice(start, end);
    return { start, end, fresh: inOwnCharacters(own, old, fresh, width), slips: slipsOf(own, old) };
  }
  return undefined;
}

/** Returns the text with line feeds, straight quotes, composed characters, indents in blanks, and no blanks at the ends of lines. */
function folded(text: string, width: number): Folded {
  const result: Folded = { text: '', from: [], to: [] };
  const parts: string[] = [];
  const add = (piece: string, from: number, to: number): void => {
    parts.push(piece);
    for (let at = 0; at < piece.length; at++) {
      result.from.push(from);
      result.to.push(to);
    }
  };
  let isIndent = true;
  for (const { 0: unit, index } of text.matchAll(/[ \t]+|\r\n|[\r\n]|\P{M}\p{M}*|\p{M}+/gu)) {
    const end = index + unit.length;
    if (unit[0] === ' ' || unit[0] === '\t') {
      const isTrailing = end === text.length || text[end] === '\r' || text[end] === '\n';
      for (let at = index; !isTrailing && at < end; at++)
        add(isIndent && text[at] === '\t' ? ' '.repeat(width) : text[at]!, at, at + 1);
    } else if (unit[0] === '\r' || unit[0] === '\n') {
      add('\n', index, end);
      isIndent = true;
    } else {
      add(quotes[unit] ?? unit.normalize('NFC'), index, end);
      isIndent = false;
    }
  }
  result.text = parts.join('');
  return result;
}

const plain = (line: string, width: number): string => folded(line, width).text;

const linesOf = (text: string): string[] => text.split(/\r\n|\r|\n/);

/** Returns the new text: lines and parts of lines that are the same as before stay as the file has them. */
function inOwnCharacters(own: string, old: string, fresh: string, width: number): string {
  const lineEnd = /\r\n|\r|\n/.exec(own)?.[0] ?? '\n';
  const [ownLines, oldLines, freshLines] = [linesOf(own), linesOf(old), linesOf(fresh)];
  const usesTabs = /^\t/m.test(own);
  const isPaired = oldLines.length === freshLines.length && ownLines.length === oldLines.length;
  const placesInOld = new Map<string, number[]>();
  for (let at = oldLines.length - 1; at >= 0; at--) {
    const places = placesInOld.get(oldLines[at]!);
    if (places) places.push(at);
    else placesInOld.set(oldLines[at]!, [at]);
  }
  let next = 0;
  const lines = freshLines.map((line, at) => {
    const places = placesInOld.get(line) ?? [];
    while (places.length > 0 && places.at(-1)! < next) places.pop();
    const same = places.at(-1) ?? -1;
    if (same >= 0 && same < ownLines.length) {
      next = same + 1;
      return ownLines[same]!;
    }
    const kept = isPaired ? ownParts(ownLines[at]!, oldLines[at]!, line, width) : line;
    return usesTabs ? kept.replace(/^ +/, blanks => inTabs(blanks, width)) : inBlanks(kept, own, width);
  });
  return lines.join(lineEnd);
}

const inTabs = (blanks: string, width: number): string =>
  '\t'.repeat(Math.floor(blanks.length / width)) + ' '.repeat(blanks.length % width);

/** Where the file indents by blanks, the new lines do too. */
const inBlanks = (line: string, own: string, width: number): string =>
  /^ +/m.test(own) ? line.replace(/^\t+/, tabs => ' '.repeat(tabs.length * width)) : line;

/** Returns a changed line, whose beginning and end stay as the file has them as far as they are those of the old line. */
function ownParts(own: string, old: string, fresh: string, width: number): string {
  const [mine, before, after] = [folded(own, width), plain(old, width), plain(fresh, width)];
  if (mine.text !== before) return fresh;
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const start = head === 0 ? 0 : mine.to[head - 1]!;
  const end = tail === 0 ? own.length : mine.from[before.length - tail]!;
  return own.slice(0, start) + after.slice(head, after.length - tail) + own.slice(end);
}

/** Returns in which ways two texts differ that mean the same. */
function slipsOf(own: string, old: string): Slip[] {
  const differs = (of: (text: string) => string): boolean => of(own) !== of(old);
  return [
    ...(differs(text => linesOf(text).map(blanksAtEnd).join('|')) ? ['trailing blanks' as const] : []),
    ...(differs(text => text.replace(/[^\t]/g, '')) ? ['tabs' as const] : []),
    ...(differs(text => text.replace(/[^\u2018-\u201f\u00a0]/g, '')) ? ['quotes' as const] : []),
    ...(differs(text => text.replace(/\P{M}/gu, '')) ? ['Unicode form' as const] : []),
    ...(differs(text => text.replace(/[^\r]/g, '')) ? ['line ends' as const] : []),
  ];
}

function blanksAtEnd(line: string): string {
  let at = line.length;
  while (at > 0 && (line[at - 1] === ' ' || line[at - 1] === '\t')) at--;
  return line.slice(at);
}

/** Lines that are shown of a file in which a text was not found, and characters of each that are compared. */
const [mostShown, mostCompared] = [12, 300];

/** Returns the lines that are most like the text, with their numbers and a mark where they differ. Empty if none is like it. */
export function nearestLines(text: string, old: string): string {
  if (text.length > longestFolded || old.length > longestFolded) return '';
  const [lines, wanted] = [linesOf(text), linesOf(old)];
  const words = wanted.map(wordsOf);
  const known = lines.map(wordsOf);
  let best = { at: -1, likeness: 0 };
  for (let at = 0; at < lines.length; at++) {
    let likeness = 0;
    for (let index = 0; index < Math.min(words.length, mostShown); index++)
      likeness += alike(words[index]!, known[at + index] ?? []);
    if (likeness > best.likeness) best = { at, likeness };
  }
  const count = Math.min(wanted.length, mostShown);
  if (best.likeness < 0.3 * Math.max(1, words.slice(0, count).filter(({ length }) => length > 0).length))
    return '';
  const shown = lines.slice(best.at, best.at + count).map((line, index) => {
    const mark = plain(line, 4).trim() === plain(wanted[index] ?? '', 4).trim() ? ' ' : '≠';
    return `${mark}${numberedLine(best.at + index + 1, line)}`;
  });
  return `The nearest lines of the file (≠ differs from old_text):\n${shown.join('\n')}`;
}

const numberedLine = (number: number, line: string): string =>
  `${String(number).padStart(5)}\t${line.length > 300 ? `${line.slice(0, 300)}…` : line}`;

const wordsOf = (line: string): string[] =>
  line
    .slice(0, mostCompared)
    .toLowerCase()
    .match(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** Returns how alike two lines are, from 0 to 1. */
function alike(one: readonly string[], other: readonly string[]): number {
  if (one.length === 0 || other.length === 0) return 0;
  const left = new Map<string, number>();
  for (const word of other) left.set(word, (left.get(word) ?? 0) + 1);
  let both = 0;
  for (const word of one) {
    const count = left.get(word) ?? 0;
    if (count > 0) both++;
    left.set(word, count - 1);
  }
  return (2 * both) / (one.length + other.length);
}

/** Most lines of a change that come back. */
const mostBack = 30;

/** Returns the numbered lines that a range of the text now has. */
export function linesAt(text: string, start: number, end: number): string {
  const first = linesOf(text.slice(0, start)).length;
  const from = Math.max(text.lastIndexOf('\n', start - 1), text.lastIndexOf('\r', start - 1)) + 1;
  const rest = text.slice(end).search(/[\r\n]/);
  const lines = linesOf(text.slice(from, rest < 0 ? text.length : end + rest));
  const shown = lines.slice(0, mostBack).map((line, index) => numberedLine(first + index, line));
  return [
    ...shown,
    ...(lines.length > mostBack ? [`  … and ${lines.length - mostBack} more lines`] : []),
  ].join('\n');
}

/** Returns the numbers of the lines on which the text begins, at most ten. */
export function placesOf(text: string, part: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at >= 0 && places.length < 10; at = text.indexOf(part, at + part.length))
    places.push(linesOf(text.slice(0, at)).length);
  return places;
}
