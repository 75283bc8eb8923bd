/** Finds where frontmatter ends and the body begins, also where a fence is missing, without a look at what is in it. */

export interface Split {
  frontmatter: string;
  /** Offset of the frontmatter's first line in the text without its byte order mark. */
  start: number;
  body: string;
  /** Line of the file on which the frontmatter's first line stands, counted from 1. */
  firstLine: number;
  closed: boolean;
}

/** Blank lines and HTML comments may stand before the opening fence; a fence is a line that trims to `---`. */
export function splitFrontmatter(text: string): Split | undefined {
  const start = afterOpeningFence(text);
  if (start === undefined) return undefined;
  const firstLine = countLines(text.slice(0, start)) + 1;
  const fence = /^[^\S\r\n\u2028\u2029]*---[^\S\r\n\u2028\u2029]*\r?$/gm;
  fence.lastIndex = start;
  const closing = fence.exec(text);
  const upToFence = closing ? text.slice(start, closing.index) : undefined;
  // Where prose stands before the next fence, that is a rule far down in the body, and the closing fence is missing.
  const keys = upToFence === undefined || strayProse.test(upToFence) ? leadingKeys(text, start) : undefined;
  if (keys !== undefined)
    return { frontmatter: keys, start, body: text.slice(start + keys.length), firstLine, closed: false };
  // Between two rules at the beginning of a text stands text, and it would be lost as frontmatter without a key.
  if (!closing || upToFence === undefined || (/\S/.test(upToFence) && !hasKey.test(upToFence)))
    return undefined;
  const behind = text.indexOf('\n', closing.index);
  const body = behind < 0 ? '' : text.slice(behind + 1);
  return { frontmatter: upToFence, start, body, firstLine, closed: true };
}

/** Something like `key: value`, `key = value`, or JSON. */
const hasKey = /^[ \t]*(?:[{[]|(?:- +)?["']?[\w.$-]+["']?[ \t]*[:=])/m;

/** A line at the margin behind an empty one that YAML has no use for. */
const strayProse = /\n[ \t]*\r?\n(?![\s#{}[\]"'.<>=|?-]|[^\s:]+:)\S/;

/** The `key: value` lines from an offset on, with the lines indented below them; undefined where there are none. */
function leadingKeys(text: string, start: number): string | undefined {
  const found =
    /^(?:[ \t]*(?:#[^\n]*)?\n|[ \t]*\r\n)*(?:[A-Za-z_][\w.-]*:.*(?:\r?\n|$)|[ \t]+\S.*(?:\r?\n|$))+/.exec(
      text.slice(start),
    )?.[0];
  if (found === undefined || !/^[A-Za-z_][\w.-]*:/m.test(found)) return undefined;
  // A rule and a heading may begin a text without frontmatter, too.
  return /^[ \t]*[#\r\n]/.test(found) && !/^(?:name|description):/m.test(found) ? undefined : found;
}

/** Offset behind the opening fence's line; a scanner, because a regular expression backtracks on thousands of blank lines. */
function afterOpeningFence(text: string): number | undefined {
  let offset = 0;
  for (;;) {
    // A blank of no width is not seen, and not meant.
    while (/[\s\u200B\u2060]/.test(text.charAt(offset))) offset++;
    if (!text.startsWith('<!--', offset)) break;
    const end = text.indexOf('-->', offset);
    if (end < 0) return undefined;
    offset = end + 3;
  }
  const lineEnd = text.indexOf('\n', offset);
  const line = text.slice(offset, lineEnd < 0 ? text.length : lineEnd);
  if (line.trim() !== '---') return undefined;
  return lineEnd < 0 ? text.length : lineEnd + 1;
}

/** Without a byte order mark, and with line feeds where lines end with a carriage return alone; every offset stays. */
export function withoutMark(text: string): string {
  const plain = text.replace(/^\uFEFF/, '');
  return plain.includes('\n') ? plain : plain.replaceAll('\r', '\n');
}

/** Line breaks in a text. */
export const countLines = (text: string): number => text.split('\n').length - 1;
