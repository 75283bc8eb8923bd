/**
 * Closes what a Markdown block has only begun while it streams, so that `**bold` is drawn bold at once and does not
 * flicker when its end arrives. Works on the last line alone: emphasis rarely runs over a line's end. Pure.
 */

/** A longer line is left as it is, in characters: what follows goes through it again and again. */
const longestLine = 2_000;

/** The source with the emphasis, code span or link on its last line brought to an end. */
export function completeMarkdown(source: string): string {
  const lineStart = source.lastIndexOf('\n') + 1;
  const line = source.slice(lineStart);
  if (line.length > longestLine || !/[*_`[~]/.test(line)) return source;
  return source.slice(0, lineStart) + completeLine(line);
}

function completeLine(line: string): string {
  const ticks = line.match(/`+/g) ?? [];
  if (ticks.length % 2 === 1) {
    const last = ticks.at(-1)!;
    return line.endsWith(last) ? line.slice(0, -last.length) : line + last;
  }
  // What lies in code spans is no emphasis; blanked out, the places of everything else stay the same.
  const outside = line.replace(/(`+).*?\1/g, span => 'x'.repeat(span.length));
  const link = /!?\[([^\]]*)\]\([^)]*$/.exec(outside);
  if (link) {
    const label = line.slice(link.index).replace(/^!?\[/, '').slice(0, link[1]!.length);
    return completeLine(line.slice(0, link.index) + label);
  }
  return closeEmphasis(line, outside);
}

function closeEmphasis(line: string, outside: string): string {
  const open: string[] = [];
  for (const match of outside.matchAll(/(?<!\\)(\*{1,3}|_{1,3}|~~)/g)) {
    const mark = match[0];
    const before = outside[match.index - 1] ?? ' ';
    const after = outside[match.index + mark.length] ?? '';
    if (open.at(-1) === mark && !/\s/.test(before)) open.pop();
    else if (after !== '' && !/\s/.test(after) && !(mark[0] === '_' && /\w/.test(before))) open.push(mark);
    else if (after === '' && open.length > 0) return line.slice(0, match.index) + open.reverse().join('');
    else if (after === '' && /\s|^$/.test(before))
      return line.slice(0, match.index) + open.reverse().join('');
  }
  return open.length === 0 ? line : line.trimEnd() + open.reverse().join('');
}
