/** What a write would change, in lines, for the person who is asked about it. */
import { readFile, stat } from 'node:fs/promises';
import type { ToolCall } from '../../protocol/run.ts';
import { unifiedDiff } from '../changes/lineChanges.ts';
import { grouped, looksBinary } from '../tools/plainText.ts';

/** A larger old file is not shown, in bytes. */
const longestOld = 1024 * 1024;
/** Of a longer new text the beginning is shown, in characters: no more is ever read, and to compare it takes its time. */
const longestNew = 256 * 1024;

/** Lines that begin with `-`, `+` or a blank, as `diff -u` writes them; undefined for a call that writes no file. `path` is real. */
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
  if (!bytes || looksBinary(bytes)) return { note: `replaces ${stats.size} bytes that are no text` };
  return bytes.toString('utf8');
}

/** Pieces of a file, of which nobody knows the line; they end where the model has cut them. */
const pieceDiff = (before: string, after: string): string =>
  withoutLastBreak(withoutHeadings(unifiedDiff(`${before}\n`, `${after}\n`)));

/** Every other line begins with what becomes of it. Lines end with a line feed alone: what only looks like one is part of what is written. */
const withoutHeadings = (diff: string): string =>
  diff
    .split('\n')
    .filter(line => !line.startsWith('@@'))
    .join('\n');

const withoutLastBreak = (text: string): string => text.replace(/\n$/, '');
