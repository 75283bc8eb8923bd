/** Reads JSON as people write it: comments, bare keys, single quotes and commas too many (JSON5, as far as skill files use it). */

/** Longer texts are no metadata; characters. */
const longest = 64 * 1024;

/** Blanks and comments, strings, signs, bare words. What is left open at the end goes to the end, so that nothing is read twice. */
const token =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\]|\\[\s\S])*(?:"|$)|'(?:[^'\\]|\\[\s\S])*(?:'|$)|[{}[\],:]|[^\s{}[\],:"']+/g;

/** The object or list, or undefined where the text is none. Never throws. */
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
