/** Matches file patterns with stars, braces and character sets, without ever going back far, and tells folders that searches skip. */

/** Maximum number of alternatives in braces. Further ones are ignored. */
const maxAlternatives = 64;
/** Maximum length of a pattern that a tool accepts. In characters. */
export const longestGlob = 1000;

/**
 * Returns a test for paths with `/` between their parts. `*` and `?` stay within one part, and `**` matches any number of parts.
 * `{a,b}` matches either, `[a-z]` one character of the set. A part also matches the name that is written like it, as web
 * frameworks call files `[id].tsx`. If `anywhere` is set, a pattern without `/` applies to the last part alone.
 */
export function globMatcher(pattern: string, anywhere = false): (path: string) => boolean {
  const normal = pattern.replaceAll('\\', '/').replace(/^(?:\.?\/)+/, '');
  const wanted = anywhere && !normal.includes('/') ? `**/${normal}` : normal;
  const alternatives = expandBraces(wanted).map(one =>
    one.split('/').map(part => (part === '**' ? ('**' as const) : waysOf(part))),
  );
  return path => {
    const names = path.split('/');
    return alternatives.some(parts => matchesPath(parts, names));
  };
}

/** Each way to read a part. */
type PathPart = '**' | readonly (readonly WildcardPart[])[];

/** Works row by row: after each part of the pattern, keeps how many names it can have consumed. */
function matchesPath(parts: readonly PathPart[], names: readonly string[]): boolean {
  let used = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    if (part === '**') for (let count = Math.min(...used); count <= names.length; count++) next.add(count);
    else
      for (const count of used)
        if (count < names.length && part.some(way => matchesParts(way, names[count] ?? '')))
          next.add(count + 1);
    if (next.size === 0) return false;
    used = next;
  }
  return used.has(names.length);
}

const waysOf = (part: string): WildcardPart[][] =>
  part.includes(']') ? [partsOf(part, part.lastIndexOf(']') + 1), partsOf(part, 0)] : [partsOf(part, 0)];

/** `last` is where the last `]` ends: no set can end later, so none is searched for there. */
function partsOf(text: string, last: number): WildcardPart[] {
  const parts: WildcardPart[] = [];
  const signs = [...text.slice(0, last).matchAll(/\[[!^]?\]?[^\]]*\]|[\s\S]/gu)].map(([sign]) => sign);
  for (const sign of [...signs, ...text.slice(last)]) {
    if (sign === '*') {
      if (parts.at(-1) !== '*') parts.push('*');
    } else if (sign === '?') parts.push(() => true);
    else if (sign.length > 2 && sign.startsWith('[')) parts.push(oneOf(sign.slice(1, -1)));
    else for (const one of sign) parts.push(other => other === one);
  }
  return parts;
}

function oneOf(set: string): (character: string) => boolean {
  const isNegated = /^[!^]/.test(set);
  const ranges = [...set.slice(isNegated ? 1 : 0).matchAll(/([\s\S])-([\s\S])|([\s\S])/gu)];
  return character => {
    const isIn = ranges.some(([, from, to, one]) =>
      one === undefined ? character >= (from ?? '') && character <= (to ?? '') : character === one,
    );
    return isIn !== isNegated;
  };
}

function firstAlternatives(pattern: string): RegExpExecArray | undefined {
  for (const braces of pattern.matchAll(/\{([^{}]*)\}/g)) if (braces[1]?.includes(',')) return braces;
  return undefined;
}

/** Expands the innermost braces first, so that nested ones need no stack. */
function expandBraces(pattern: string): string[] {
  const done: string[] = [];
  const open = [pattern];
  while (open.length > 0 && done.length + open.length <= maxAlternatives) {
    const one = open.shift() ?? '';
    const braces = firstAlternatives(one);
    if (!braces) {
      done.push(one);
      continue;
    }
    const [before, behind] = [one.slice(0, braces.index), one.slice(braces.index + braces[0].length)];
    for (const choice of (braces[1] ?? '').split(',', maxAlternatives)) open.push(before + choice + behind);
  }
  return [...done, ...open].slice(0, maxAlternatives);
}

/** One place of a pattern: `*` for any run of characters, or a test for a single character. */
export type WildcardPart = '*' | ((character: string) => boolean);

/** Whether all of the text is matched. Only the last `*` is ever tried again, which is enough. */
export function matchesParts(parts: readonly WildcardPart[], text: string): boolean {
  const characters = [...text];
  let part = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < characters.length) {
    const wanted = parts[part];
    if (wanted === '*') {
      star = part++;
      starAt = at;
    } else if (wanted?.(characters[at] ?? '')) {
      part++;
      at++;
    } else if (star >= 0) {
      part = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (parts[part] === '*') part++;
  return part === parts.length;
}

/** Prefix of temporary files and folders beside their target, so that no folder is taken for a pack. */
export const temporaryPrefix = '.telos-';

const skipped = new Set(['.git', 'node_modules']);

/** Returns true for the name of a folder in which no skills are looked for. */
export const isSkippedFolder = (name: string): boolean =>
  skipped.has(name) || name.startsWith(temporaryPrefix);
