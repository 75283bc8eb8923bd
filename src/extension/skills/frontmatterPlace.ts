/** Locates the frontmatter of a SKILL.md: its lines and the keys on them. */
import keys from './frontmatterKeys.json' with { type: 'json' };

export interface FrontmatterLines {
  /** The first line after the opening fence, counted from 0. */
  first: number;
  /** The line of the closing fence, or the one after the last line if there is none. */
  end: number;
}

/** Returns the place of the frontmatter, or undefined if there is none. Empty lines and comments may come before it. */
export function frontmatterLines(lines: readonly string[]): FrontmatterLines | undefined {
  let open = 0;
  while (open < lines.length && /^\uFEFF?\s*(<!--.*-->\s*)?$/.test(lines[open] ?? '')) open++;
  if ((lines[open] ?? '').replace(/^\uFEFF/, '').trim() !== '---') return undefined;
  const close = lines.findIndex((line, index) => index > open && line.trim() === '---');
  return { first: open + 1, end: close === -1 ? lines.length : close };
}

/** Returns the top-level keys of the frontmatter with their lines, counted from 0. */
export function keysIn(lines: readonly string[]): { name: string; line: number }[] {
  const place = frontmatterLines(lines);
  if (!place) return [];
  return lines.slice(place.first, place.end).flatMap((text, index) => {
    const name = /^([A-Za-z][\w.-]*)\s*:/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, line: place.first + index }];
  });
}

/** Returns true if a file of this name is read as a skill. */
export function isSkillFile(path: string): boolean {
  return /(^|[\\/])skills?\.md$/i.test(path);
}

export interface FrontmatterKey {
  name: string;
  /** One line of Markdown that explains the key. */
  says: string;
  /** The text to insert after the key and its colon, in the editor's snippet syntax. */
  value: string;
  /** All possible values, if they are a fixed set. */
  values?: readonly string[];
  /**
   * True if editors that know skills as a language complete this key themselves. Telos still shows its hover, which
   * says how Telos uses the key.
   */
  editorOffers: boolean;
}

/** All keys, most important first. */
export const frontmatterKeys: readonly FrontmatterKey[] = keys;
