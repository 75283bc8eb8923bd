/** Reads and writes the file of a story: frontmatter, a title and numbered boxes. A person may edit any of it at any time. */

import { basename } from 'node:path/posix';
import { findKey, parseSkillFile } from '@telos/engine/skills';
import type { PlanCheck, Story, StoryItem } from '@telos/protocol/plan';
import { beginningOf } from '@telos/protocol/text';

export interface ParsedStory {
  story: Story;
  /** Everything behind the frontmatter, as it is written. */
  body: string;
  /** What the file says in a way that cannot be used, in sentences that name the file and the line, counted from 1: `prds/a.md, line 3: …`. */
  problems: string[];
}

/** A name that is safe in a ref, a file name and a trailer. */
export const isStoryId = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9-]{0,39}$/.test(text);

/** An entry of a list with bullets or numbers that begins with a box: the number that it has in its list, its mark and its words. */
const boxLine = /^\s*(?:[-*+]|(\d{1,9})[.)])[ \t]+\[([ xX])\][ \t]+(.*\S)\s*$/;
const headingLine = /^#\s+(.*\S)\s*$/;

/** Returns the story of a file. `path` is relative to the plan's folder, with `/`. Whatever the text is, there is a story. */
export function parsePrd(path: string, text: string): ParsedStory {
  const { fields, body, diagnostics } = parseSkillFile(text, path);
  const problems: string[] = diagnostics
    .filter(({ severity }) => severity !== 'info')
    .map(({ message, line }) => `${path}, line ${line}: ${message}`);
  const tell = (what: string, line = 1): void => void problems.push(`${path}, line ${line}: ${what}`);
  const of =
    (key: string): Tell =>
    what =>
      tell(what, findKey(text, key));
  for (const key of Object.keys(fields)) {
    const meant = mistaken.get(key.toLowerCase().replaceAll('-', '_'));
    if (meant !== undefined && meant !== key) tell(`${key} is not read; write ${meant}.`, findKey(text, key));
  }
  const lines = openLines(body);
  const above = linesAbove(text, body);
  const title = lines.flatMap(({ line }) => headingLine.exec(line)?.[1] ?? [])[0];
  const description = firstParagraph(lines.map(({ line }) => line));
  const items = itemsOf(lines, (what, index) => tell(what, above + index + 1));
  const story: Story = {
    id: idOf(fields['id'], path, of('id')),
    title: title ?? basename(path).replace(/\.md$/i, ''),
    ...(description !== undefined && { description }),
    prd: path,
    role: textField(fields['role'], 'role', of('role')) ?? 'coder',
    dependsOn: textList(fields['depends_on'], 'depends_on', of('depends_on')),
    touches: touchesOf(fields['touches'], of('touches')),
    checks: checksOf(fields['check'], of('check')),
    items: items.map(({ number, text: words, ticked }) => ({ number, text: words, ticked })),
  };
  return { story, body, problems };
}

type Tell = (what: string) => void;

const known = ['id', 'role', 'depends_on', 'touches', 'check'];
/** Keys that people and models write in place of those that are read. */
const mistaken = new Map([
  ...known.map(key => [key, key] as const),
  ['checks', 'check'],
  ['depends', 'depends_on'],
  ['dependson', 'depends_on'],
  ['dependencies', 'depends_on'],
  ['touch', 'touches'],
]);

/** Returns the number of lines before the text behind the frontmatter. */
const linesAbove = (text: string, body: string): number =>
  text.slice(0, text.length - body.length).split('\n').length - 1;

interface BodyLine {
  line: string;
  /** From 0, in the text of the lines. */
  index: number;
}

/** Returns the lines that are not in a code fence. A fence that is not closed goes on to the end. */
function openLines(text: string): BodyLine[] {
  let fence: string | undefined;
  return text.split('\n').flatMap((raw, index) => {
    const line = raw.replace(/\r$/, '');
    const [, mark, rest = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    if (fence !== undefined) {
      const closes = mark?.startsWith(fence) && rest.trim() === '';
      if (closes) fence = undefined;
      return [];
    }
    // A line with marks at both ends is code within a text, which opens nothing.
    if (mark !== undefined && !(mark.startsWith('`') && rest.includes('`'))) {
      fence = mark;
      return [];
    }
    return [{ line, index }];
  });
}

function firstParagraph(lines: readonly string[]): string | undefined {
  const start = lines.findIndex(line => line.trim() !== '' && !line.startsWith('#'));
  if (start < 0 || lines.slice(0, start).some(line => line.startsWith('##'))) return undefined;
  const rest = lines.slice(start);
  if (boxLine.test(rest[0] ?? '')) return undefined;
  const end = rest.findIndex(line => line.trim() === '' || line.startsWith('#'));
  return (end < 0 ? rest : rest.slice(0, end)).map(line => line.trim()).join(' ');
}

interface FoundItem extends StoryItem {
  index: number;
}

/** A box is known by the number that it is written with. One without a number gets the next that is free. */
function itemsOf(lines: readonly BodyLine[], tell: (what: string, index: number) => void): FoundItem[] {
  const boxes = lines.flatMap(({ line, index }) => {
    const [, place, mark, text = ''] = boxLine.exec(line) ?? [];
    if (mark === undefined && /^\s*(?:[-*+]|\d{1,9}[.)])\s+\[[~/!?*\-✓✔✗]?\]\s+\S/.test(line))
      tell(`"${beginningOf(line.trim(), 60)}" is not read as a box; write [ ] or [x].`, index);
    if (mark === undefined) return [];
    const [, number, words] = /^(\d{1,4})[.)]\s+(.+)$/.exec(text) ?? [];
    const isNamed = number !== undefined;
    const wanted = Number(number ?? (place && place.length <= 4 ? place : 0));
    return [{ wanted, isNamed, text: words ?? text, ticked: mark !== ' ', index }];
  });
  const taken = new Set(boxes.flatMap(({ wanted, isNamed }) => (isNamed && wanted > 0 ? [wanted] : [])));
  const used = new Set<number>();
  const numbers = boxes.map(({ wanted, isNamed, index }) => {
    // A list often begins again below the next heading, and Markdown lets each entry of one have the same number.
    const isFree = wanted > 0 && (isNamed ? !used.has(wanted) : !taken.has(wanted));
    if (isNamed && wanted > 0 && !isFree)
      tell(`Two boxes have the number ${wanted}; give each its own.`, index);
    if (isFree) used.add(wanted);
    if (isFree) taken.add(wanted);
    return isFree ? wanted : 0;
  });
  let next = 1;
  return boxes.map(({ text, ticked, index }, at) => {
    let number = numbers[at] ?? 0;
    while (number === 0 && taken.has(next)) next++;
    if (number === 0) {
      number = next;
      taken.add(number);
    }
    return { number, text, ticked, index };
  });
}

function idOf(value: unknown, path: string, tell: Tell): string {
  if (typeof value === 'string' && isStoryId(value)) return value;
  if (value !== undefined)
    tell('its id is not of letters, digits and hyphens, as US-003 is, so it is ignored.');
  const name = basename(path).replace(/\.md$/i, '');
  const [, number] = /^(\d{1,5})(?:\D|$)/.exec(name) ?? [];
  if (number !== undefined) return `US-${String(Number(number)).padStart(3, '0')}`;
  return (
    name
      .replace(/[^A-Za-z0-9]+/g, '-')
      .replace(/^-+/, '')
      .slice(0, 40)
      .replace(/-+$/, '') || 'story'
  );
}

function textField(value: unknown, key: string, tell: Tell): string | undefined {
  if (typeof value === 'string' && value.trim() !== '') return value.trim();
  if (value !== undefined && value !== null) tell(`${key} is not text, so it is ignored.`);
  return undefined;
}

function textList(value: unknown, key: string, tell: Tell): string[] {
  if (value === undefined || value === null) return [];
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap(one => textField(one, `An entry of ${key}`, tell) ?? []);
}

function touchesOf(value: unknown, tell: Tell): string[] {
  return textList(value, 'touches', tell).filter(path => {
    const isOutside = leadsOut(path);
    if (isOutside)
      tell(`"${beginningOf(path, 60)}" in touches leads out of the repository, so it is ignored.`);
    return !isOutside;
  });
}

/** Returns true for a path or glob that is absolute or climbs above the folder it starts in. Both slashes part it, as on Windows. */
function leadsOut(path: string): boolean {
  if (/^(?:[/\\]|~[/\\]|[A-Za-z]:[/\\])/.test(path)) return true;
  let depth = 0;
  return path.split(/[/\\]+/).some(part => {
    if (part === '..') depth--;
    // `**` may stand for no folder at all.
    else if (part !== '.' && part !== '' && part !== '**') depth++;
    return depth < 0;
  });
}

function checksOf(value: unknown, tell: Tell): PlanCheck[] {
  if (value === undefined || value === null) return [];
  const list = Array.isArray(value) ? value : [value];
  const names = new Set<string>();
  return list.flatMap((one, index) => {
    const check = checkOf(one, index, tell);
    if (check && names.has(check.name)) tell(`Two checks are called ${check.name}; the second is ignored.`);
    if (!check || names.has(check.name)) return [];
    names.add(check.name);
    return [check];
  });
}

/** Returns the check that an entry means, or undefined if it names no command. Also reads those of `plan.json`. */
export function checkOf(value: unknown, index: number, tell: Tell): PlanCheck | undefined {
  const fields = typeof value === 'string' ? { command: value } : value;
  const {
    name,
    command,
    timeout_s,
    timeoutS = timeout_s,
    red,
    outside,
  } = {
    ...(fields as Record<string, unknown>),
  };
  if (typeof command !== 'string' || command.trim() === '' || command.includes('\0')) {
    tell(`Check ${index + 1} has no command, so it is ignored.`);
    return undefined;
  }
  const seconds = Number(timeoutS);
  if (timeoutS !== undefined && !(seconds > 0))
    tell(`The timeout_s of check ${index + 1} is not a number of seconds.`);
  return {
    name: typeof name === 'string' && name.trim() !== '' ? oneLine(name) : `check ${index + 1}`,
    command,
    ...(seconds > 0 && { timeoutS: seconds }),
    ...(red === true && { red }),
    ...(outside === true && { outside }),
  };
}

/** Returns the text in one line, so that no part of it can be taken for a line of a file or a trailer. */
export const oneLine = (text: string): string => text.replace(/\s*[\p{Cc}\u2028\u2029]+\s*/gu, ' ').trim();

/**
 * Returns the file of a story. `body` is prose that follows the boxes; a box in it would be one more criterion, so it becomes a
 * plain entry of its list. Reading it gives the same story.
 */
export function printPrd(story: Story, body = ''): string {
  const list = (values: readonly string[]): string =>
    `[${values.map(value => JSON.stringify(value)).join(', ')}]`;
  const checks = story.checks.map(({ name, command, timeoutS, red, outside }) => {
    const rest = [
      timeoutS !== undefined && `timeout_s: ${timeoutS}`,
      red && 'red: true',
      outside && 'outside: true',
    ].filter(Boolean);
    const parts = [`name: ${JSON.stringify(name)}`, `command: ${JSON.stringify(command)}`, ...rest];
    return `  - {${parts.join(', ')}}`;
  });
  const front = [
    `id: ${story.id}`,
    `role: ${JSON.stringify(story.role)}`,
    ...(story.dependsOn.length > 0 ? [`depends_on: ${list(story.dependsOn)}`] : []),
    ...(story.touches.length > 0 ? [`touches: ${list(story.touches)}`] : []),
    ...(checks.length > 0 ? ['check:', ...checks] : []),
  ];
  const boxes = story.items.map(
    ({ number, text, ticked }) => `- [${ticked ? 'x' : ' '}] ${number}. ${oneLine(text)}`,
  );
  const intro = story.description === undefined ? [] : [plain(oneLine(story.description)), ''];
  const criteria = boxes.length > 0 ? ['## Acceptance criteria', ...boxes, ''] : [];
  const rest = withoutBoxes(body.trim());
  const parts = [`# ${oneLine(story.title)}`, '', ...intro, ...criteria, ...(rest ? [rest, ''] : [])];
  return `---\n${front.join('\n')}\n---\n${parts.join('\n')}`;
}

/** A paragraph that begins like a heading or a box would be one. */
const plain = (text: string): string =>
  text.replace(/^(#|[-*+]\s+\[|`{3}|~{3})/, '\\$1').replace(/^(\d+)(?=[.)]\s+\[)/, '$1\\');

function withoutBoxes(body: string): string {
  const lines = body.split('\n');
  for (const { line, index } of openLines(body))
    if (boxLine.test(line))
      lines[index] = line.replace(/^(\s*(?:[-*+]|\d{1,9}[.)])[ \t]+)(?:\[[ xX]\][ \t]+)+/, '$1');
  return lines.join('\n');
}

/** Returns the text with the box of that number ticked or not. All else stays byte for byte; so does a text without that box. */
export function tick(text: string, itemNumber: number, ticked: boolean): string {
  const { body } = parseSkillFile(text, '');
  const found = itemsOf(openLines(body), () => {}).find(({ number }) => number === itemNumber);
  if (!found || found.ticked === ticked) return text;
  const before = body.split('\n').slice(0, found.index);
  const line = text.length - body.length + before.reduce((sum, { length }) => sum + length + 1, 0);
  const at = text.indexOf('[', line) + 1;
  return text.slice(0, at) + (ticked ? 'x' : ' ') + text.slice(at + 1);
}

/** Returns in which line of the text each box stands, by its number. Lines count from 0. */
export function boxLines(text: string): Map<number, number> {
  const { body } = parseSkillFile(text, '');
  const above = linesAbove(text, body);
  return new Map(itemsOf(openLines(body), () => {}).map(({ number, index }) => [number, above + index]));
}
