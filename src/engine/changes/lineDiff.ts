/** Compares texts line by line, for the figures on a card and for diffs on the command line. */

import { readFile, stat } from 'node:fs/promises';
import type { ToolCall } from '../../protocol/run.ts';
import { grouped, looksBinary } from '../files/plainText.ts';

/** Number of lines that a write added and removed. */
export interface LineCounts {
  added: number;
  removed: number;
}

/** Lines include their line break. A last line without one therefore differs from the same line with one. */
interface LineEdit {
  kind: ' ' | '-' | '+';
  line: string;
}

/** Maximum number of differing lines. Texts beyond it are shown as one removed and one added block, so that no text is slow. */
const mostSteps = 500;
/** Number of unchanged lines around a change. */
const around = 3;

export function countLines(before: string, after: string): LineCounts {
  const { old, fresh } = changedMiddle(linesOf(before), linesOf(after));
  const steps = shortestWay(old, fresh);
  if (steps === undefined) return { added: fresh.length, removed: old.length };
  // Each step adds or removes one line. The lengths give the difference between added and removed lines.
  const added = (steps + fresh.length - old.length) / 2;
  return { added, removed: steps - added };
}

/** Returns the diff as `diff -u` writes it, without a heading. Empty for equal texts. */
export function unifiedDiff(before: string, after: string): string {
  const edits = lineEdits(before, after);
  const near = new Uint8Array(edits.length);
  for (const [index, { kind }] of edits.entries())
    if (kind !== ' ') near.fill(1, Math.max(0, index - around), index + around + 1);
  let [oldLine, newLine] = [1, 1];
  let hunk: LineEdit[] = [];
  const out: string[] = [];
  const close = (): void => {
    if (hunk.length === 0) return;
    const [ofOld, ofNew] = [hunk.filter(isOld).length, hunk.filter(isNew).length];
    // An empty side is given the number of the line before it.
    const start = (line: number, count: number): number => (count === 0 ? line - 1 : line - count);
    const oldPart = `${start(oldLine, ofOld)},${ofOld}`;
    const newPart = `${start(newLine, ofNew)},${ofNew}`;
    // One by one, because a call takes a limited number of arguments.
    out.push(`@@ -${oldPart} +${newPart} @@\n`);
    for (const edit of hunk) out.push(printed(edit));
    hunk = [];
  };
  for (const [index, edit] of edits.entries()) {
    if (!near[index]) close();
    if (isOld(edit)) oldLine++;
    if (isNew(edit)) newLine++;
    if (near[index]) hunk.push(edit);
  }
  close();
  return out.join('');
}

const isOld = ({ kind }: LineEdit): boolean => kind !== '+';
const isNew = ({ kind }: LineEdit): boolean => kind !== '-';

const printed = ({ kind, line }: LineEdit): string =>
  line.endsWith('\n') ? kind + line : `${kind}${line}\n\\ No newline at end of file\n`;

function lineEdits(before: string, after: string): LineEdit[] {
  const [allOld, allFresh] = [linesOf(before), linesOf(after)];
  const { old, fresh, head, tail } = changedMiddle(allOld, allFresh);
  const same = (line: string): LineEdit => ({ kind: ' ', line });
  const trace: Int32Array[] = [];
  const steps = shortestWay(old, fresh, trace);
  const middle: LineEdit[] =
    steps === undefined
      ? [
          ...old.map(line => ({ kind: '-', line }) as const),
          ...fresh.map(line => ({ kind: '+', line }) as const),
        ]
      : wayBack(trace, old, fresh);
  return [...allOld.slice(0, head).map(same), ...middle, ...allOld.slice(allOld.length - tail).map(same)];
}

const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** Returns the texts without the equal lines at both ends. */
function changedMiddle(
  old: readonly string[],
  fresh: readonly string[],
): { old: readonly string[]; fresh: readonly string[]; head: number; tail: number } {
  const shortest = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < shortest && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < shortest - head && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail++;
  return {
    old: old.slice(head, old.length - tail),
    fresh: fresh.slice(head, fresh.length - tail),
    head,
    tail,
  };
}

/**
 * Returns the least number of added and removed lines, after Myers (1986). Finds the furthest point on each diagonal, one more
 * step at a time. The points before each step are added to `trace`. Returns undefined if there are too many steps.
 */
function shortestWay(
  old: readonly string[],
  fresh: readonly string[],
  trace?: Int32Array[],
): number | undefined {
  const all = old.length + fresh.length;
  if (!trace && (old.length === 0 || fresh.length === 0)) return all;
  const most = Math.min(mostSteps, all);
  // The middle element is diagonal 0.
  const furthest = new Int32Array(2 * most + 3);
  const zero = most + 1;
  for (let steps = 0; steps <= most; steps++) {
    trace?.push(furthest.slice(zero - steps - 1, zero + steps + 2));
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      const above = furthest[zero + diagonal + 1]!;
      const before = furthest[zero + diagonal - 1]!;
      let x = addsLine(diagonal, steps, before, above) ? above : before + 1;
      while (x < old.length && x - diagonal < fresh.length && old[x] === fresh[x - diagonal]) x++;
      furthest[zero + diagonal] = x;
      if (x >= old.length && x - diagonal >= fresh.length) return steps;
    }
  }
  return undefined;
}

/**
 * Whether the step onto a diagonal adds a line rather than removing one. `before` and `above` are the furthest points on the
 * neighboring diagonals.
 */
const addsLine = (diagonal: number, steps: number, before: number, above: number): boolean =>
  diagonal === -steps || (diagonal !== steps && before < above);

function wayBack(trace: readonly Int32Array[], old: readonly string[], fresh: readonly string[]): LineEdit[] {
  const edits: LineEdit[] = [];
  let [x, y] = [old.length, fresh.length];
  for (let steps = trace.length - 1; steps > 0; steps--) {
    const furthest = trace[steps]!;
    const diagonal = x - y;
    const [before, above] = [furthest[steps + diagonal]!, furthest[steps + diagonal + 2]!];
    const adds = addsLine(diagonal, steps, before, above);
    const fromX = adds ? above : before;
    const fromY = fromX - (adds ? diagonal + 1 : diagonal - 1);
    while (x > fromX && y > fromY) {
      edits.push({ kind: ' ', line: old[--x]! });
      y--;
    }
    if (adds) edits.push({ kind: '+', line: fresh[--y]! });
    else edits.push({ kind: '-', line: old[--x]! });
  }
  while (x > 0) edits.push({ kind: ' ', line: old[--x]! });
  return edits.reverse();
}

/** Maximum size of an old file that is shown. In bytes. */
const longestOld = 1024 * 1024;
/** Maximum shown of a new text, from its beginning. More is never read, and comparing it would be slow. In characters. */
const longestNew = 256 * 1024;

/**
 * Returns lines that begin with `-`, `+` or a space, as `diff -u` writes them. Returns undefined for a call that writes no file.
 * `path` is real.
 */
export async function writeDiff(call: ToolCall, path: string): Promise<string | undefined> {
  const { content, old_text: oldText, new_text: newText, replace_all: everywhere } = call.input;
  if (call.name === 'edit_file') {
    const [before, cutBefore] = beginningOf(String(oldText));
    const [after, cutAfter] = beginningOf(String(newText));
    const notes = [everywhere === true ? '(wherever this stands)\n' : ''];
    if (cutBefore) notes.push(`(of what goes, ${cutBefore.slice(2)})\n`);
    if (cutAfter) notes.push(`(of what comes, ${cutAfter.slice(2)})\n`);
    return notes.join('') + pieceDiff(before, after);
  }
  if (call.name !== 'write_file' || typeof content !== 'string') return undefined;
  const before = await oldContent(path);
  if (typeof before === 'string' && content.length <= longestNew)
    return withoutLastBreak(unifiedDiff(before, content));
  const note = typeof before === 'string' ? `replaces ${Buffer.byteLength(before)} bytes` : before.note;
  const [shown, cut] = beginningOf(content);
  return withoutLastBreak(`(${note}${cut})\n${withoutHeadings(unifiedDiff('', shown))}`);
}

function beginningOf(text: string): [shown: string, cut: string] {
  if (text.length <= longestNew) return [text, ''];
  const hidden = grouped(text.length - longestNew);
  return [
    text.slice(0, longestNew),
    `; the last ${hidden} of ${grouped(text.length)} characters are not shown`,
  ];
}

async function oldContent(path: string): Promise<string | { note: string }> {
  const stats = await stat(path).catch(() => undefined);
  if (!stats) return { note: 'a new file' };
  if (stats.size > longestOld) return { note: `replaces ${stats.size} bytes` };
  const bytes = await readFile(path).catch(() => undefined);
  if (!bytes || looksBinary(bytes)) return { note: `replaces ${stats.size} bytes that are not text` };
  return bytes.toString('utf8');
}

/** Compares pieces of a file whose line numbers are unknown. They end where the model has cut them. */
const pieceDiff = (before: string, after: string): string =>
  withoutLastBreak(withoutHeadings(unifiedDiff(`${before}\n`, `${after}\n`)));

/**
 * Removes the hunk headings. Each remaining line begins with its sign. Only a line feed ends a line: characters that merely look
 * like one are content.
 */
const withoutHeadings = (diff: string): string =>
  diff
    .split('\n')
    .filter(line => !line.startsWith('@@'))
    .join('\n');

const withoutLastBreak = (text: string): string => text.replace(/\n$/, '');
