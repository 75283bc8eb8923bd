/** Mends a copy of a SKILL.md that other hosts would not load. They drop such a skill without a word. */

import {
  descriptionProblems,
  findKey,
  findValue,
  longestDescription,
  mendText,
  parseSkillFile,
  splitFrontmatter,
  synopsisOf,
  withoutMark,
} from '@telos/engine/skills';
import { beginningOf } from '@telos/protocol/text';

/** Returns a name that every host takes, made from another. Empty if nothing in it can be a part of one. */
export const portableName = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 64)
    .replace(/^-+|-+$/g, '');

/** Returns the text of a SKILL.md with the name of its folder and a description, and without defects that a program can mend. */
export function mendedSkill(bytes: Buffer, id: string): Buffer {
  const place = `${id}/SKILL.md`;
  let text = withoutMark(mendText(bytes.toString('utf8'), place));
  if (splitFrontmatter(text) === undefined) text = `---\nname: ${id}\n---\n${text}`;
  const { fields, body } = parseSkillFile(text, place);
  if (fields['name'] !== id) text = withField(text, 'name', id);
  const { description } = fields;
  if (descriptionProblems(description).length > 0) {
    const said =
      typeof description === 'string' && description.trim() !== '' ? description : synopsisOf(body);
    text = withField(text, 'description', JSON.stringify(cut(said ?? `The skill ${id}.`)));
  }
  return Buffer.from(text);
}

function cut(description: string): string {
  if (description.length <= longestDescription) return description;
  return `${beginningOf(description, longestDescription - 1).replace(/\s+\S*$/, '')}…`;
}

/** Returns the text with a value of one line for a key of the frontmatter, in place of the one that it has. */
function withField(text: string, key: string, value: string): string {
  const place = findValue(text, key);
  const old = place && text.slice(place.offset, place.offset + place.length);
  // A value of several lines begins with a sign; its lines would be left behind.
  if (place && old !== undefined && !/^[|>&*!]/.test(old) && !continues(text, place.offset + place.length))
    return text.slice(0, place.offset) + value + text.slice(place.offset + place.length);
  const split = splitFrontmatter(text);
  if (!split) return text;
  const without = findKey(text, key) === undefined ? split.frontmatter : withoutKey(split.frontmatter, key);
  return `${text.slice(0, split.start)}${key}: ${value}\n${without}${text.slice(split.start + split.frontmatter.length)}`;
}

const continues = (text: string, end: number): boolean => /^\r?\n[ \t]+\S/.test(text.slice(end));

/** Returns the frontmatter without a key and the lines that belong to it. */
const withoutKey = (frontmatter: string, key: string): string =>
  frontmatter.replace(new RegExp(`^${key}:.*\\r?\\n(?:[ \\t]+.*\\r?\\n|\\r?\\n(?=[ \\t]))*`, 'm'), '');
