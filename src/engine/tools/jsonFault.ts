/** Finds where a text stops being JSON, which the engine's own parser says only sometimes, so that a person can go there. */

/** Blanks between two parts. */
const blanks = /[ \t\n\r]*/y;
const part =
  /[{}[\],:]|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** What may come next, by what has been read. */
type Place = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end';

/** Line and column of the first part that has no place there, both from 1; the end of the text where something is missing. */
export function faultIn(text: string): { line: number; column: number } {
  const open: string[] = [];
  let place: Place = 'value';
  let at = 0;
  for (;;) {
    at = endOf(blanks, text, at);
    const end = endOf(part, text, at);
    const next = nextPlace(place, text.slice(at, end), open);
    if (end === at || next === undefined) break;
    place = next;
    at = end;
  }
  const before = text.slice(0, at);
  return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') };
}

function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

/** Undefined when `found` has no place here. `open` are the brackets that wait for their ends. */
function nextPlace(place: Place, found: string, open: string[]): Place | undefined {
  const isKey = found.startsWith('"');
  if (place === ':') return found === ':' ? 'value' : undefined;
  if (place === 'key' || place === 'key or }') {
    if (isKey) return ':';
    return found === '}' && place === 'key or }' ? closed(open) : undefined;
  }
  if (place === ', or end') {
    const bracket = open.at(-1);
    if (found === ',' && bracket) return bracket === '{' ? 'key' : 'value';
    return (found === '}' && bracket === '{') || (found === ']' && bracket === '[')
      ? closed(open)
      : undefined;
  }
  if (found === ']') return place === 'value or ]' ? closed(open) : undefined;
  if (found === '{' || found === '[') {
    open.push(found);
    return found === '{' ? 'key or }' : 'value or ]';
  }
  return /^[},:]?$/.test(found) ? undefined : ', or end';
}

function closed(open: string[]): Place {
  open.pop();
  return ', or end';
}
