/** Compares texts line by line, for the figures on a card and for diffs on the command line. */

import { stat } from 'node:fs/promises';
import type { JsonObject, ToolCall } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import { diffLines, type StructuredPatchHunk, structuredPatch } from 'diff';
import { loadRegularFile } from '../files/regularFile.ts';
import { decodeText, endsLinesLikeWindows, formOf } from '../files/textEncoding.ts';

/** Number of lines that a write added and removed. */
export interface LineCounts {
  added: number;
  removed: number;
}

/** Maximum number of differing lines. Texts beyond it are shown as one removed and one added block, so that no text is slow. */
const maxEditLength = 500;
/** Number of unchanged lines around a change. */
const context = 3;

export function countLines(before: string, after: string): LineCounts {
  const changes = diffLines(before, after, { maxEditLength });
  if (!changes) {
    const { oldLines, newLines, around } = oneBlock(before, after);
    return { added: newLines - around, removed: oldLines - around };
  }
  const counts = { added: 0, removed: 0 };
  for (const { added, removed, count } of changes) {
    if (added) counts.added += count;
    if (removed) counts.removed += count;
  }
  return counts;
}

/** Returns the diff as `diff -u` writes it, without a heading. Empty for equal texts. */
export function unifiedDiff(before: string, after: string): string {
  const patch = structuredPatch('', '', before, after, '', '', { context, maxEditLength });
  return (patch?.hunks ?? [oneBlock(before, after)]).flatMap(printed).join('');
}

/** Returns everything between the first and the last difference as one change, with the equal lines around it. */
function oneBlock(before: string, after: string): StructuredPatchHunk & { around: number } {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const shortest = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < shortest && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < shortest - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  const first = Math.max(0, head - context);
  const behind = Math.max(0, tail - context);
  const around = head - first + tail - behind;
  const part = (lines: readonly string[], sign: string, from: number, to: number): string[] =>
    lines
      .slice(from, to)
      .flatMap(line => (line.endsWith('\n') ? [sign + line.slice(0, -1)] : [sign + line, noBreak]));
  return {
    oldStart: first + 1,
    oldLines: old.length - first - behind,
    newStart: first + 1,
    newLines: fresh.length - first - behind,
    lines: [
      ...part(old, ' ', first, head),
      ...part(old, '-', head, old.length - tail),
      ...part(fresh, '+', head, fresh.length - tail),
      ...part(old, ' ', old.length - tail, old.length - behind),
    ],
    around,
  };
}

const noBreak = '\\ No newline at end of file';

/** Lines include their line break. A last line without one therefore differs from the same line with one. */
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

function printed({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): string[] {
  // An empty side is given the number of the line before it.
  const place = (start: number, count: number): string => `${count === 0 ? start - 1 : start},${count}`;
  const heading = `@@ -${place(oldStart, oldLines)} +${place(newStart, newLines)} @@`;
  return [heading, ...lines].map(line => `${line}\n`);
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
  const { content, edits, old_text: oldText, new_text: newText, replace_all: everywhere } = call.input;
  if (call.name === 'edit_file' && Array.isArray(edits)) {
    const input = (one: unknown): JsonObject =>
      typeof one === 'object' && one !== null ? (one as JsonObject) : {};
    const all = edits.map(one => writeDiff({ ...call, input: input(one) }, path));
    return (await Promise.all(all)).join('\n');
  }
  if (call.name === 'edit_file') {
    const [before, cutBefore] = beginningOf(String(oldText));
    const [after, cutAfter] = beginningOf(String(newText));
    const notes = [everywhere === true ? '(everywhere)\n' : ''];
    if (cutBefore) notes.push(`(of what goes, ${cutBefore.slice(2)})\n`);
    if (cutAfter) notes.push(`(of what comes, ${cutAfter.slice(2)})\n`);
    return notes.join('') + pieceDiff(before, after);
  }
  if (call.name !== 'write_file' || typeof content !== 'string') return undefined;
  const before = await oldContent(path);
  if (typeof before === 'string' && content.length <= longestNew) {
    // The write keeps these line ends.
    const isWindows = endsLinesLikeWindows(before);
    const after = isWindows ? content.replace(/\r?\n/g, '\r\n') : content;
    return withoutLastBreak(unifiedDiff(before, after));
  }
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
  const bytes = await loadRegularFile(path).catch(() => undefined);
  const form = bytes && formOf(bytes);
  if (!form) return { note: `replaces ${stats.size} bytes that are not text` };
  return decodeText(bytes, form);
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
