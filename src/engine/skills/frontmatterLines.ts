/** Reads frontmatter that is not YAML line by line, the way its author meant it. Never throws. */

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
