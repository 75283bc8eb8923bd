/** Reads frontmatter that is not YAML or needs no YAML line by line, the way its author meant it, and explains what is wrong with it. */
import { type Sentence, sentence } from '@telos/protocol/text';

/** Whether the value of a key is text, whatever it looks like. */
const isText = (key: string): boolean => /^(?:name|description|summary|short-description)$/.test(key);

/**
 * Reads top-level `key: value` lines with continuation lines and block scalars. The first of equal keys wins. `parseYaml` returns
 * undefined for text that is not YAML.
 */
export function readLines(source: string, parseYaml: (text: string) => unknown): Record<string, unknown> {
  const fields = Object.create(null) as Record<string, unknown>;
  const lines = source.split('\n');
  for (let index = 0; index < lines.length; index++) {
    const match = keyLine.exec(lines[index] ?? '');
    if (!match) continue;
    const [, key = '', head = ''] = match;
    const block: string[] = [];
    // A JSON value continues to its last bracket, wherever its lines begin.
    let open = openBrackets(head);
    const continues = (line: string): boolean =>
      isContinuation(line) ||
      (open > 0 && /^\s*[{[]/.test(head.trim() || (block[0] ?? ''))) ||
      (isBare(head, block) && !keyLine.test(line) && !/^(?:#|[<>=|]{7})/.test(line));
    while (index + 1 < lines.length && continues(lines[index + 1] ?? '')) {
      const next = lines[++index] ?? '';
      block.push(next);
      open += openBrackets(next);
    }
    if (!(key in fields)) fields[key] = lineValue(key, head.trim(), block, parseYaml);
  }
  return fields;
}

/** A key in letters, and what is behind it. */
const plainKey = /^([A-Za-z][\w-]{0,99}):(?: *| +(.*))$/;
/**
 * A value that any YAML reads alike: words that begin with a letter, or text in quotes with nothing escaped. In words, a sign that could end
 * or tag them is left to YAML, as is what it might take for more than text.
 */
const plainValue =
  /^(?:([A-Za-z](?:[ -9;-~\u00a1-\u167f]|:(?=[!-~]))*)|"([ !#-[\]-~\u00a1-\u167f]*)" *|'([ -&(-~\u00a1-\u167f]*)' *)$/;
/** A list in brackets of such words, of which none has a sign of YAML in it. */
const plainList = /^\[ *((?:[A-Za-z][\w./-]*)(?: *, *[A-Za-z][\w./-]*)*) *\] *$/;
const isWordOfYaml = /^(?:true|false|null)$/i;

type PlainValue = string | null | readonly string[] | { readonly [key: string]: PlainValue };

/**
 * Returns the keys and values of frontmatter of which every line is plain, as YAML has them, with one level of keys or of a list below a key.
 * Returns undefined for any other, which needs a parser of YAML. That takes longer for one file than a start may take for everything.
 */
export function readPlainLines(source: string): Record<string, PlainValue> | undefined {
  const fields = new Map<string, PlainValue>();
  const lines = source.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line === '') continue;
    const entry = plainEntry(line);
    if (!entry || fields.has(entry.key)) return undefined;
    const below: string[] = [];
    while (entry.value === null && /^ {2}\S/.test(lines[at + 1] ?? ''))
      below.push((lines[++at] ?? '').slice(2));
    const value = below.length === 0 ? entry.value : plainBlock(below);
    if (value === undefined) return undefined;
    fields.set(entry.key, value);
  }
  return fields.size > 0 ? Object.fromEntries(fields) : undefined;
}

function plainEntry(line: string): { key: string; value: PlainValue } | undefined {
  const [whole, key = '', text = ''] = plainKey.exec(line) ?? [];
  if (whole === undefined || isWordOfYaml.test(key)) return undefined;
  if (text === '') return { key, value: null };
  const listed = plainList.exec(text)?.[1]?.split(/ *, */);
  const value = listed ?? plainText(text);
  return value === undefined || listed?.some(word => isWordOfYaml.test(word)) ? undefined : { key, value };
}

function plainText(text: string): string | undefined {
  const [whole, bare, double, single] = plainValue.exec(text) ?? [];
  const words = bare?.trimEnd();
  if (whole === undefined || (words !== undefined && (isWordOfYaml.test(words) || words.includes(' #'))))
    return undefined;
  return words ?? double ?? single;
}

/** Returns the keys, or the list, of the lines below a key. */
function plainBlock(lines: readonly string[]): PlainValue | undefined {
  if (lines[0]?.startsWith('- ')) {
    const items = lines.map(line => (line.startsWith('- ') ? plainItem(line.slice(2)) : undefined));
    return items.every(item => item !== undefined) ? items : undefined;
  }
  const entries = lines.map(plainEntry);
  const keys = new Set(entries.map(entry => entry?.key));
  if (keys.size < lines.length || keys.has(undefined)) return undefined;
  return Object.fromEntries(entries.map(entry => [entry!.key, entry!.value]));
}

/** A colon before a blank would make the item a key. */
const plainItem = (text: string): string | undefined =>
  /^ |:(?: |$)/.test(text) ? undefined : plainText(text);

const keyLine = /^([A-Za-z_][\w.-]*):(.*)$/;
const isContinuation = (line: string): boolean => /^(?:[ \t]+\S|[ \t]*$|[}\]])/.test(line);

/** Whether nothing follows the key and nothing is indented below it. A list or a text may then follow unindented. */
const isBare = (head: string, block: readonly string[]): boolean =>
  (!head.trim() || blockHeader.test(head.trim())) && !block.some(line => /^[ \t]+\S/.test(line));

const blockHeader = /^[|>][+-]?\d?$/;

/** Returns how many of a text's brackets are left open. Below zero if too many are closed. */
export const openBrackets = (text: string): number =>
  text.replace(/[^{[]/g, '').length - text.replace(/[^}\]]/g, '').length;

function lineValue(
  key: string,
  head: string,
  block: readonly string[],
  parseYaml: (text: string) => unknown,
): unknown {
  const rest = block.map(line => line.trim());
  if (!isText(key) && (key === 'metadata' || /^[[{]|^$/.test(head))) {
    // YAML has no tabs, so a tab in an indentation is read as two blanks.
    const below = block.map(line => line.replace(/^[\t ]+/, blanks => blanks.replaceAll('\t', '  ')));
    const structured = parseYaml((head ? [head, ...rest] : below).join('\n'));
    if (typeof structured === 'object' && structured !== null) return structured;
  }
  if (key === 'metadata') return [head, ...rest].filter(Boolean).join('\n');
  if (blockHeader.test(head)) return rest.join(head.startsWith('|') ? '\n' : ' ').trim();
  if (!head && rest.some(line => line.startsWith('- '))) {
    return rest.filter(line => line.startsWith('- ')).map(line => unquote(line.slice(2).trim()));
  }
  return lineText([head, ...rest]);
}

/** Returns the lines of a value as one text. Quotes around it are removed, and a block sign that begins no block. */
export function lineText(lines: readonly string[]): string {
  const text = lines.map(line => line.trim()).filter(Boolean);
  return unquote(text.join(' ').replace(/^[|>][+-]?\d?[ \t]+(?=\S)/, ''));
}

/** Removes the quotes around a value, even if its author forgot to escape inner quotes or to close it. */
export function unquote(value: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value) ?? /^'((?:[^']|'')*)'$/.exec(value);
  if (quoted) {
    return value.startsWith('"')
      ? (quoted[1] ?? '').replace(/\\(["\\])/g, '$1')
      : (quoted[1] ?? '').replaceAll("''", "'");
  }
  const quote = value.charAt(0);
  if (quote !== '"' && quote !== "'") return value;
  const inner = value.indexOf(quote, 1);
  if (inner < 0) return value.slice(1);
  // "Say "hi" now" and 'It's on' have quotes around them; "this" and "that" has not.
  const [before, behind] = [value.charAt(inner - 1), value.charAt(inner + 1)];
  const isWithin = /[\s(]/.test(before) || (/\p{L}/u.test(before) && /\p{L}/u.test(behind));
  return isWithin && value.length > inner + 1 && value.endsWith(quote) ? value.slice(1, -1) : value;
}

/** Number of characters beyond which a text is not metadata. */
const longest = 64 * 1024;

/** Matches blanks and comments, strings, signs, bare words. An unclosed one extends to the end, so that nothing is read twice. */
const token =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\]|\\[\s\S])*(?:"|$)|'(?:[^'\\]|\\[\s\S])*(?:'|$)|[{}[\],:]|[^\s{}[\],:"']+/g;

/** Returns the object or list, or undefined if the text is neither. Never throws. */
export function parseLooseJson(text: string): unknown {
  if (text.length > longest) return undefined;
  const value = parsed(text) ?? parsed(strictJson(text));
  return typeof value === 'object' && value !== null ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function strictJson(text: string): string {
  const tokens = (text.match(token) ?? []).filter(part => !/^(?:\s|\/\/|\/\*)/.test(part));
  return tokens
    .map((part, index) => {
      const next = tokens[index + 1];
      if (part === ',' && (next === '}' || next === ']')) return '';
      if (/^[{}[\],:]$/.test(part)) return part;
      if (part.startsWith("'") || part.startsWith('"')) return JSON.stringify(unescaped(part.slice(1, -1)));
      if (next !== ':' && /^(?:true|false|null)$/.test(part)) return part;
      return next !== ':' && Number.isFinite(Number(part)) ? String(Number(part)) : JSON.stringify(part);
    })
    .join('');
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '\n': '' };

function unescaped(text: string): string {
  return text.replace(/\\(u[\da-fA-F]{4}|x[\da-fA-F]{2}|[\s\S])/g, (_all, code: string) =>
    code.length > 1 ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : (escapes[code] ?? code),
  );
}

interface FrontmatterDefect {
  /** Continues "The frontmatter is not valid YAML", in brackets. */
  reason: Sentence | string;
  fix: Sentence;
}

export const quote = sentence('Put the value in quotes.');
const noKey: FrontmatterDefect = {
  reason: sentence('a line is not `key: value`'),
  fix: sentence(
    'Write it as `key: value`, indent it if it belongs to the value above, or move it after the closing `---`.',
  ),
};

const byCode: Readonly<Record<string, FrontmatterDefect>> = {
  BLOCK_AS_IMPLICIT_KEY: { reason: sentence('a value holds `: `, which begins another value'), fix: quote },
  BAD_SCALAR_START: {
    reason: sentence('a value begins with a character that is reserved in YAML'),
    fix: quote,
  },
  UNEXPECTED_TOKEN: { reason: sentence('text follows the end of a value'), fix: quote },
  MULTILINE_IMPLICIT_KEY: noKey,
  DUPLICATE_KEY: {
    reason: sentence('a key occurs twice; the first one is used'),
    fix: sentence('Remove one of them.'),
  },
  BAD_ALIAS: { reason: sentence('a value begins with `*` or `&`, which is reserved in YAML'), fix: quote },
  TAG_RESOLVE_FAILED: {
    reason: sentence('a value begins with `!`, which is reserved in YAML'),
    fix: quote,
  },
  BAD_DQ_ESCAPE: {
    reason: sentence('a backslash in double quotes is followed by a letter that cannot be escaped'),
    fix: sentence('Write two backslashes, or use single quotes.'),
  },
  TAB_AS_INDENT: { reason: sentence('a line is indented with a tab'), fix: sentence('Indent with spaces.') },
  BAD_INDENT: {
    reason: sentence('a line is not indented like those it belongs to'),
    fix: sentence('Give lines that belong together the same indentation.'),
  },
};

/** Returns the defect that a parser's error reports. */
export function yamlDefect({ code, message }: { code: string; message: string }): FrontmatterDefect {
  if (code === 'MISSING_CHAR') {
    if (!/^Missing closing|expected to end|must end/i.test(message)) return noKey;
    return {
      reason: sentence('a quote or a bracket is opened and never closed'),
      fix: sentence('Close it, or put the whole value in quotes.'),
    };
  }
  const [reason = ''] = message.split('\n');
  return byCode[code] ?? { reason: reason.replace(/ at line \d+, column \d+:?$/, ''), fix: quote };
}

/** Frontmatter that is YAML, but not keys and values. */
export const noMap: FrontmatterDefect = {
  reason: sentence('it is not a list of `key: value` lines'),
  fix: sentence('Write each entry on its own line as `key: value`.'),
};

/** Aliases that contain themselves, or that would grow without limit. */
export const endlessAliases: FrontmatterDefect = {
  reason: sentence('its `&` and `*` refer to themselves, or expand to too much'),
  fix: sentence('Write the value out.'),
};

/** A defect at another place than where a parser gives up. `line` counts from 1 within the frontmatter. */
interface PlacedDefect extends FrontmatterDefect {
  line: number;
  /** True if only a person knows what was meant, so no change is offered. */
  isForPerson: boolean;
}

/** Finds the marks of an unfinished merge. */
export function unfinishedMerge(source: string): PlacedDefect | undefined {
  const line = source.split('\n').findIndex(text => /^(?:<{7}|>{7})(?:\s|$)/.test(text)) + 1;
  if (line === 0) return undefined;
  return {
    reason: sentence('it contains the marks of an unfinished merge'),
    fix: sentence(
      'Keep one of the two versions, and take the lines with `<<<<<<<`, `=======` and `>>>>>>>` out.',
    ),
    line,
    isForPerson: true,
  };
}

/** Finds a quote or a bracket that is opened and never closed. A parser reports it only at the end. */
export function unclosed(source: string): PlacedDefect | undefined {
  const lines = source.split('\n');
  const index = lines.findIndex((line, at) => {
    const value = /^[A-Za-z_][\w.-]*:[ \t]+(.*)$/.exec(line)?.[1] ?? '';
    const quote = value.charAt(0);
    if (quote === '"' || quote === "'")
      return !lines
        .slice(at)
        .join('\n')
        .slice(line.length - value.length + 1)
        .includes(quote);
    return /^[[{]/.test(value) && openBrackets(lines.slice(at).join('\n')) > 0 && openBrackets(value) > 0;
  });
  if (index < 0) return undefined;
  return {
    reason: sentence('a quote or a bracket is opened and never closed'),
    fix: sentence('Close it, or put the whole value in quotes.'),
    line: index + 1,
    isForPerson: false,
  };
}

/** Finds a key that is indented, and so belongs to the value above it. `found` is the line that the parser names. */
export function strayIndent(source: string, found: number): PlacedDefect | undefined {
  const lines = source.split('\n');
  const key = /^[ \t]+([A-Za-z_][\w.-]*):(?:\s|$)/.exec(lines[found] ?? '')?.[1];
  if (key === undefined || !/^[A-Za-z_][\w.-]*:[ \t]+[^\s|>[{"'&]/.test(lines[found - 1] ?? ''))
    return undefined;
  return {
    reason: sentence('{0} is indented, so it belongs to the value above it', `\`${key}:\``),
    fix: sentence(
      'Remove the blanks before {0} if it is a key itself; put the whole value in quotes if it is not.',
      `\`${key}:\``,
    ),
    line: found + 1,
    isForPerson: true,
  };
}

/**
 * Returns what replaces the fence at the beginning of a text without frontmatter, as a sentence. Returns undefined if nothing
 * looks like a fence.
 */
export function almostFence(text: string): Sentence | undefined {
  const lines = text
    .slice(0, 2000)
    .trimStart()
    .split(/\r\n?|\n/);
  const first = lines[0]?.trim() ?? '';
  const keyFollows = /^[A-Za-z_][\w.-]*[ \t]*:/.test(lines[1]?.trim() ?? '');
  if (
    /^(?!---$)[-\u2010-\u2015\u2212\uFF0D]+$/.test(first) ||
    (keyFollows && /^(?:---+\s*\w+|([^\w\s])\1+)$/.test(first))
  )
    return sentence(
      'The first line is {0}; a fence is `---`, three hyphens and nothing else.',
      `\`${first.slice(0, 20)}\``,
    );
  if (first === '+++')
    return sentence('The text between `+++` is TOML; frontmatter is YAML between lines `---`.');
  if (/^```/.test(first) && lines.slice(1, 3).some(line => line.trim() === '---'))
    return sentence('The frontmatter is inside a block of code; remove the line of backticks before it.');
  if (first.startsWith('{'))
    return sentence('The file begins with JSON; frontmatter is YAML between lines `---`.');
  if (/^(?:name|description):\s/i.test(first))
    return sentence('The line `---` before the first key is missing.');
  if (first.startsWith('<!--') && !text.includes('-->'))
    return sentence('The comment at the beginning is never closed with `-->`.');
  const fence = lines.findIndex(
    (line, at) => line.trim() === '---' && /^(?:name|description)[ \t]*:/.test(lines[at + 1] ?? ''),
  );
  if (fence > 0)
    return sentence(
      'The frontmatter has to be the first thing in the file; move the text before it below it.',
    );
  return undefined;
}
