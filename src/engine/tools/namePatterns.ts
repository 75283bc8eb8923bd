/** Compares names and paths with the patterns of the table of known names, in a time that grows with their lengths alone. */

/** A file system takes no name of more than 255 units; folding can make a few more of them. */
const longestName = 1000;

const hasSigns = (pattern: string): boolean => /[*?[]/.test(pattern);

/** The pattern as the source of a regular expression for one name. */
export const sourceOf = (pattern: string): string =>
  pattern.replace(/\[(!?)([^\]]*)\]|[\s\S]/g, (sign, not: string | undefined, set: string | undefined) => {
    if (set !== undefined) return `[${not ? '^' : ''}${set}]`;
    if (sign === '*') return '[^/]*';
    if (sign === '?') return '[^/]';
    return sign.replace(/[\\^$.|?*+()[\]{}]/, '\\$&');
  });

/** True for a name that is one of the patterns. */
export function nameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const plain = new Set(patterns.filter(pattern => !hasSigns(pattern)));
  // Most of those with a sign are for an ending, which is looked up as well.
  const isForEnding = (pattern: string): boolean =>
    /^\*\.[^.]+$/.test(pattern) && !hasSigns(pattern.slice(1));
  const endings = new Set(patterns.filter(isForEnding).map(pattern => pattern.slice(1)));
  const others = patterns.filter(pattern => hasSigns(pattern) && !isForEnding(pattern));
  const expression = new RegExp(`^(?:${others.map(sourceOf).join('|')})$`);
  return name => {
    if (plain.has(name)) return true;
    const dot = name.lastIndexOf('.');
    if (dot >= 0 && endings.has(name.slice(dot))) return true;
    if (others.length === 0) return false;
    // What is longer is not the name of a file, and two signs in a pattern would take its length squared.
    const isShort = name.length <= 2 * longestName;
    return expression.test(isShort ? name : name.slice(0, longestName) + name.slice(-longestName));
  };
}

/** True for a path, with `/` between its parts, of which parts in a row are one of the patterns. */
export function placeMatcher(patterns: readonly string[]): (path: string) => boolean {
  const isPlace = nameMatcher(patterns.filter(pattern => !pattern.includes('/')));
  const longer = new Map<string, (readonly ((name: string) => boolean)[])[]>();
  for (const [first = '', ...rest] of patterns.map(pattern => pattern.split('/'))) {
    if (rest.length === 0) continue;
    const tests = rest.map(part => nameMatcher([part]));
    longer.set(first, [...(longer.get(first) ?? []), tests]);
  }
  return path => {
    const parts = path.split('/');
    return parts.some(
      (part, at) =>
        isPlace(part) ||
        longer.get(part)?.some(tests => tests.every((test, index) => test(parts[at + 1 + index] ?? ''))),
    );
  };
}
