/** Where in a SKILL.md one is: which line belongs to the frontmatter, and to which of its keys. */
import keys from './frontmatterKeys.json' with { type: 'json' };

export interface FrontmatterLines {
  /** The first line behind the opening fence, counted from 0. */
  first: number;
  /** The line of the closing fence, or the one behind the last where there is none. */
  end: number;
}

/** Undefined where the text has no frontmatter. Empty lines and comments may stand before it. */
export function frontmatterLines(lines: readonly string[]): FrontmatterLines | undefined {
  let open = 0;
  while (open < lines.length && /^\uFEFF?\s*(<!--.*-->\s*)?$/.test(lines[open] ?? '')) open++;
  if ((lines[open] ?? '').replace(/^\uFEFF/, '').trim() !== '---') return undefined;
  const close = lines.findIndex((line, index) => index > open && line.trim() === '---');
  return { first: open + 1, end: close === -1 ? lines.length : close };
}

/** The top-level keys of the frontmatter with their lines, counted from 0. */
export function keysIn(lines: readonly string[]): { name: string; line: number }[] {
  const place = frontmatterLines(lines);
  if (!place) return [];
  return lines.slice(place.first, place.end).flatMap((text, index) => {
    const name = /^([A-Za-z][\w.-]*)\s*:/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, line: place.first + index }];
  });
}

/** True for a file that is read as a skill, by its name. */
export function isSkillFile(path: string): boolean {
  return /(^|[\\/])skills?\.md$/i.test(path);
}

export interface FrontmatterKey {
  name: string;
  /** One line, as a person reads it beside the key; Markdown. */
  says: string;
  /** What is inserted behind the key and its colon, in the editor's snippet syntax. */
  value: string;
  /** The values that it can have, where they can be counted. */
  values?: readonly string[];
  /** Editors that know skills as a language complete this key by themselves; hover stays ours, since it says what Telos makes of it. */
  editorOffers: boolean;
}

/** Those that matter most first. */
export const frontmatterKeys: readonly FrontmatterKey[] = keys;
