/** What a write would change, in lines, for the person who is asked about it. */
import { readFile, stat } from 'node:fs/promises';
import type { ToolCall } from '../../protocol/run.ts';
import { unifiedDiff } from '../changes/lineChanges.ts';
import { looksBinary } from '../tools/plainText.ts';

/** A larger old file is not shown, in bytes. */
const longestOld = 1024 * 1024;

/** Lines that begin with `-`, `+` or a blank, as `diff -u` writes them; undefined for a call that writes no file. `path` is real. */
export async function writeDiff(call: ToolCall, path: string): Promise<string | undefined> {
  const { content, old_text: oldText, new_text: newText, replace_all: everywhere } = call.input;
  if (call.name === 'edit_file') {
    const pieces = pieceDiff(String(oldText), String(newText));
    return everywhere === true ? `(wherever this stands)\n${pieces}` : pieces;
  }
  if (call.name !== 'write_file' || typeof content !== 'string') return undefined;
  const before = await oldContent(path);
  if (typeof before === 'string') return withoutLastBreak(unifiedDiff(before, content));
  return withoutLastBreak(`(${before.note})\n${withoutHeadings(unifiedDiff('', content))}`);
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

/** Every other line begins with what becomes of it. */
const withoutHeadings = (diff: string): string => diff.replace(/^@@.*\n/gm, '');

const withoutLastBreak = (text: string): string => text.replace(/\n$/, '');
