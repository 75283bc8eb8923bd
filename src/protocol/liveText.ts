/** Keeps the end of what a running command prints, as a terminal would show it. */
import { endOf } from './text.ts';

/**
 * Returns the output with `added` behind it, at most `most` characters of its end, from the beginning of a line. A carriage return
 * writes its line again.
 */
export function withOutput(before: string, added: string, most: number): string {
  const lines = (before + added).replaceAll('\r\n', '\n').split('\n');
  const last = lines.length - 1;
  const text = lines.map((line, index) => rewritten(line, index === last)).join('\n');
  if (text.length <= most) return text;
  const cut = endOf(text, most);
  const begin = cut.indexOf('\n') + 1;
  return begin > 0 && begin < cut.length ? cut.slice(begin) : cut;
}

/** Returns what is left of a line. A carriage return at the end of the last one may be half a line break. */
function rewritten(line: string, isLast: boolean): string {
  const end = isLast && line.endsWith('\r') ? line.length - 1 : line.length;
  const begin = line.lastIndexOf('\r', end - 1);
  return begin < 0 || end === 0 ? line : line.slice(begin + 1);
}
