/** Compares text with a pattern in a time that grows with their lengths alone, whoever has written the pattern. */

/** What one place of a pattern stands for: any run of characters, or one that passes. */
export type WildcardPart = '*' | ((character: string) => boolean);

/** `*` is any run of characters, also none; everything else is itself. */
export function matchesWildcard(pattern: string, text: string): boolean {
  const parts = [...pattern].map((sign): WildcardPart => (sign === '*' ? '*' : other => other === sign));
  return matchesParts(parts, text);
}

/** True when all of the text is matched. The last `*` alone is ever tried again, which is enough. */
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
