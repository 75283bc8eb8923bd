/** What a write would change, in lines, for the person who is asked about it. */
import { readFile, stat } from 'node:fs/promises';
import type { ToolCall } from '../../protocol/run.ts';
import { looksBinary } from '../tools/plainText.ts';

/** A larger old file is not shown, in bytes. */
const longestOld = 1024 * 1024;
/** Unchanged lines shown around a change. */
const around = 3;

/** Lines that begin with `-`, `+` or a blank; undefined for a call that writes no text. `path` is real. */
export async function writeDiff(call: ToolCall, path: string): Promise<string | undefined> {
  const { content, old_text: oldText, new_text: newText } = call.input;
  if (call.name === 'edit_file') return lineDiff(String(oldText), String(newText));
  if (typeof content !== 'string') return undefined;
  const before = await oldContent(path);
  if (typeof before === 'string') return lineDiff(before, content);
  return [`(${before.note})`, ...content.split('\n').map(line => `+${line}`)].join('\n');
}

async function oldContent(path: string): Promise<string | { note: string }> {
  const stats = await stat(path).catch(() => undefined);
  if (!stats) return { note: 'a new file' };
  if (stats.size > longestOld) return { note: `replaces ${stats.size} bytes` };
  const bytes = await readFile(path).catch(() => undefined);
  if (!bytes || looksBinary(bytes)) return { note: `replaces ${stats.size} bytes that are no text` };
  return bytes.toString('utf8');
}

/** One block from the first line that differs to the last. */
export function lineDiff(before: string, after: string): string {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  const shortest = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < shortest && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < shortest - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  const from = Math.max(0, head - around);
  const kept = fresh.slice(fresh.length - tail, fresh.length - tail + around);
  return [
    ...fresh.slice(from, head).map(line => ` ${line}`),
    ...old.slice(head, old.length - tail).map(line => `-${line}`),
    ...fresh.slice(head, fresh.length - tail).map(line => `+${line}`),
    ...kept.map(line => ` ${line}`),
  ].join('\n');
}
