/** Splits any SKILL.md into frontmatter and body, and reads even YAML that is not quite valid. Never throws. */

import { type Sentence, sentence } from '@telos/protocol/text';
import { type Document, LineCounter, parseDocument, visit } from 'yaml';
import { type Diagnostic, type TextEdit, worded } from '../files/settingsFile.ts';
import {
  endlessAliases,
  lineText,
  noMap,
  openBrackets,
  parseLooseJson,
  quote,
  readLines,
  readPlainLines,
  strayIndent,
  unclosed,
  unfinishedMerge,
  unquote,
  yamlDefect,
} from './frontmatterLines.ts';

export interface ParsedSkillFile {
  /** The frontmatter's keys, unchanged. Without a prototype, so that a key `__proto__` is an ordinary key. */
  fields: Readonly<Record<string, unknown>>;
  /** Everything after the closing fence, byte for byte. */
  body: string;
  /** False for a file that is all body. */
  hasFrontmatter: boolean;
  diagnostics: readonly Diagnostic[];
}

type Report = (code: string, line: number, message: Sentence, fix: Sentence, edit?: TextEdit) => void;

/** Parses the text of one skill file. `file` only names it in diagnostics. */
export function parseSkillFile(text: string, file: string): ParsedSkillFile {
  const diagnostics: Diagnostic[] = [];
  const report: Report = (code, line, message, fix, edit) => {
    diagnostics.push({
      severity: 'warning',
      code,
      line,
      ...worded(message, fix),
      file,
      ...(edit && { edit }),
    });
  };
  const plain = withoutMark(text);
  const split = splitFrontmatter(plain);
  if (!split) return { fields: emptyFields(), body: plain, hasFrontmatter: false, diagnostics };
  if (!split.closed) {
    const message = sentence(
      'The frontmatter has no closing `---`; its leading `key: value` lines were used.',
    );
    const fix = sentence('Add a line `---` after the last key.');
    report('frontmatter-unclosed', split.firstLine - 1, message, fix, closingFence(split));
  }
  const fields = parseFields(split, report);
  reportCapitals(fields, split, report);
  return { fields, body: split.body, hasFrontmatter: true, diagnostics };
}

/** Reports keys with capitals. A key counts only in small letters, and the file does not show that. */
function reportCapitals(fields: ParsedSkillFile['fields'], split: Split, report: Report): void {
  for (const key of Object.keys(fields)) {
    const usual = key.toLowerCase();
    if (usual === key || usual in fields || !['name', 'description', 'metadata'].includes(usual)) continue;
    const lines = split.frontmatter.split('\n');
    const index = lines.findIndex(line => line.startsWith(`${key}:`));
    if (index < 0) continue;
    const offset = split.start + lines.slice(0, index).reduce((sum, { length }) => sum + length + 1, 0);
    const message = sentence('The key {0} is ignored, since keys are written in lowercase.', `\`${key}\``);
    const edit = { offset, length: key.length, text: usual };
    report('key-case', split.firstLine + index, message, sentence('Write {0}.', `\`${usual}\``), edit);
  }
}

/** Returns the position of the one-line value of a top-level key of the frontmatter. Returns undefined if there is none. */
export function findValue(
  text: string,
  key: string,
): { line: number; offset: number; length: number } | undefined {
  const split = splitFrontmatter(withoutMark(text));
  for (const found of split?.frontmatter.matchAll(keyLine) ?? []) {
    const [, name = '', space = '', value = ''] = found;
    if (!split || name !== key) continue;
    const line = split.firstLine + countLines(split.frontmatter.slice(0, found.index));
    return { line, offset: split.start + found.index + name.length + 1 + space.length, length: value.length };
  }
  return undefined;
}

/** Returns the line of a top-level key of the frontmatter, whatever its value. Returns undefined if there is none. */
export function findKey(text: string, key: string): number | undefined {
  const split = splitFrontmatter(withoutMark(text));
  const index = split?.frontmatter.split('\n').findIndex(line => line.startsWith(`${key}:`)) ?? -1;
  return split && index >= 0 ? split.firstLine + index : undefined;
}

/** Parses a single value as YAML. Returns undefined if it is not valid YAML or is too long. */
export function parseYamlValue(text: string): unknown {
  if (text.length > longestYaml) return undefined;
  const document = parseDocument(text, yamlOptions);
  return document.errors.length > 0 ? undefined : plainValue(document);
}

/**
 * Finds the `name` of the frontmatter without a YAML parser, for routing by name over thousands of files. Returns undefined if
 * the name is missing or is not a plain one-line value.
 */
export function scanName(text: string): string | undefined {
  const split = splitFrontmatter(withoutMark(text));
  const value = split && /^name:[ \t]*(.+?)[ \t]*\r?$/m.exec(split.frontmatter)?.[1];
  if (!value || /^[|>&*!{[]/.test(value)) return undefined;
  return unquote(value.replace(/\s+#.*$/, ''));
}

const yamlOptions = { strict: false, uniqueKeys: true, logLevel: 'silent' } as const;

/**
 * Number of characters beyond which frontmatter is read line by line. The parser compares each key with all others of its table.
 */
const longestYaml = 32 * 1024;

function parseFields(split: Split, report: Report): Record<string, unknown> {
  const source = split.frontmatter.replaceAll('\r\n', '\n');
  if (source.length > longestYaml) {
    const message = sentence(
      'The frontmatter has {0} characters, too many to be read as YAML; it was read line by line.',
      source.length,
    );
    const fix = sentence('Move text from the frontmatter to the body.');
    report('frontmatter-long', split.firstLine, message, fix);
    return readLines(source, parseYamlValue);
  }
  const plain = readPlainLines(source);
  if (plain) return copyFields(plain);
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { ...yamlOptions, lineCounter });
  const problem = problemOf(document, source);
  const value = problem ? undefined : plainValue(document);
  if (isRecord(value)) return withLooseMetadata(copyFields(value), document, source);
  if (value === null) return emptyFields();
  const found = problem && lineCounter.linePos(problem.pos[0]).line;
  const placed =
    unfinishedMerge(source) ?? (found ? (unclosed(source) ?? strayIndent(source, found)) : undefined);
  const { reason, fix } =
    placed ?? (problem ? yamlDefect(problem) : value === undefined ? endlessAliases : noMap);
  const line = placed?.line ?? found ?? 1;
  const message = sentence('The frontmatter is not valid YAML ({0}); it was read line by line.', reason);
  const edit = problem && !placed?.isForPerson ? quotedValue(split, line) : undefined;
  report('frontmatter-yaml', split.firstLine - 1 + line, message, edit ? quote : fix, edit);
  return readLines(source, parseYamlValue);
}

/** Returns the first YAML error, or a defect that YAML accepts although it loses data: an unknown tag, an alias of nothing. */
function problemOf(
  document: Document,
  source: string,
): { code: string; message: string; pos: readonly [number, number] } | undefined {
  const problem = document.errors[0] ?? document.warnings.find(({ code }) => code === 'TAG_RESOLVE_FAILED');
  if (problem) return problem;
  // Few files have an alias, and walking all nodes of thousands of files takes time.
  if (!source.includes('*')) return undefined;
  let lost: readonly [number, number] | undefined;
  visit(document, {
    Alias: (_key, node) => {
      if (node.resolve(document)) return undefined;
      lost = [node.range?.[0] ?? 0, node.range?.[1] ?? 0];
      return visit.BREAK;
    },
  });
  return lost && { code: 'BAD_ALIAS', message: '', pos: lost };
}

/** Reads `metadata` as JSON5 if it has comments. YAML takes them for keys, and what follows them is lost. */
function withLooseMetadata(
  fields: Record<string, unknown>,
  document: Document,
  source: string,
): Record<string, unknown> {
  const { metadata } = fields;
  if (!isRecord(metadata) || !/"\/[/*]/.test(JSON.stringify(metadata))) return fields;
  const node = document.get('metadata', true) as
    | { range?: readonly [number, number, number] | null }
    | undefined;
  const read = node?.range && parseLooseJson(source.slice(node.range[0], node.range[1]));
  return isRecord(read) ? Object.assign(fields, { metadata: read }) : fields;
}

/** Matches a top-level key with a value on its line: key, blanks, value. */
const keyLine = /^([A-Za-z_][\w.-]*):([ \t]*)([^\r\n]*?)[ \t]*\r?$/gm;

function closingFence({ frontmatter, start }: Split): TextEdit {
  const end = frontmatter.trimEnd().length;
  const lineBreak = frontmatter.includes('\r\n') ? '\r\n' : '\n';
  const hasBreak = frontmatter.startsWith(lineBreak, end);
  const text = hasBreak ? `---${lineBreak}` : `${lineBreak}---${lineBreak}`;
  return { offset: start + end + (hasBreak ? lineBreak.length : 0), length: 0, text };
}

/** Returns an edit that quotes the value that YAML cannot read, if that helps. `line` counts from 1 within the frontmatter. */
function quotedValue({ frontmatter, start }: Split, line: number): TextEdit | undefined {
  const upTo = frontmatter.split('\n', line).join('\n').length;
  const found = [...frontmatter.slice(0, upTo).matchAll(keyLine)].at(-1);
  if (!found) return undefined;
  const [, name = '', space = '', head = ''] = found;
  const at = found.index + name.length + 1 + space.length;
  const more = /^[ \t]*(?:\r?\n[ \t]+\S.*)*/.exec(frontmatter.slice(at + head.length))?.[0].trimEnd() ?? '';
  // The line may belong to a key with a spelling that is not handled here, such as `<<`.
  if (frontmatter.slice(at + head.length + more.length, upTo).trim()) return undefined;
  const value = lineText((head + more).split('\n'));
  // A value that is read as a list, or that continues after this, would be another value in quotes.
  const read = readLines(frontmatter.replaceAll('\r\n', '\n'), parseYamlValue)[name];
  if (!value || value !== read || name === 'metadata') return undefined;
  if (/^[[{]/.test(value) && openBrackets(value) !== 0) return undefined;
  const quoted =
    /["\\]/.test(value) && !value.includes("'") ? `'${value}'` : `"${value.replace(/["\\]/g, '\\$&')}"`;
  const text = `${space ? '' : ' '}${quoted}`;
  const [before, behind] = [frontmatter.slice(0, at), frontmatter.slice(at + head.length + more.length)];
  const [problem] = parseDocument(frontmatter, yamlOptions).errors;
  const [next] = parseDocument(before + text + behind, yamlOptions).errors;
  // The next error must be after the value and differ from the one before. Otherwise quotes would be put around quotes.
  const moved = text.length - head.length - more.length;
  const isSame = next && problem && next.pos[0] <= problem.pos[0] + moved;
  if (next && (isSame || next.pos[0] < before.length + text.length)) return undefined;
  return { offset: start + at, length: head.length + more.length, text };
}

/** Returns the text of a frontmatter value, or undefined if there is none. Numbers, booleans and lists become strings. */
export function fieldText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (value === null) return '';
  if (Array.isArray(value)) return value.map(item => fieldText(item) ?? '').join(', ');
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value).trim();
}

const emptyFields = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>;

function copyFields(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields = emptyFields();
  for (const [key, item] of Object.entries(value)) fields[key] = item;
  return fields;
}

/** Returns the plain value, or undefined if later code could not print it. An alias inside its own anchor makes a loop. */
function plainValue(document: Document): unknown {
  try {
    const value: unknown = document.toJS({ maxAliasCount: 20 });
    JSON.stringify(value);
    return value;
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export interface Split {
  frontmatter: string;
  /** Offset of the frontmatter's first line in the text without its byte order mark. */
  start: number;
  body: string;
  /** Line of the file with the frontmatter's first line, counted from 1. */
  firstLine: number;
  closed: boolean;
}

/**
 * Returns frontmatter and body, or undefined without frontmatter. Blank lines and HTML comments may precede the opening fence. A
 * fence is a line that trims to `---`.
 */
export function splitFrontmatter(text: string): Split | undefined {
  const start = afterOpeningFence(text);
  if (start === undefined) return undefined;
  const firstLine = countLines(text.slice(0, start)) + 1;
  const fence = /^[^\S\r\n\u2028\u2029]*---[^\S\r\n\u2028\u2029]*\r?$/gm;
  fence.lastIndex = start;
  const closing = fence.exec(text);
  const upToFence = closing ? text.slice(start, closing.index) : undefined;
  // If there is prose before the next fence, that fence is a rule far down in the body. The closing fence is then missing.
  const keys = upToFence === undefined || strayProse.test(upToFence) ? leadingKeys(text, start) : undefined;
  if (keys !== undefined)
    return { frontmatter: keys, start, body: text.slice(start + keys.length), firstLine, closed: false };
  // Text between two rules at the beginning would be lost as frontmatter without a key.
  if (!closing || upToFence === undefined || (/\S/.test(upToFence) && !hasKey.test(upToFence)))
    return undefined;
  const behind = text.indexOf('\n', closing.index);
  const body = behind < 0 ? '' : text.slice(behind + 1);
  return { frontmatter: upToFence, start, body, firstLine, closed: true };
}

/** Matches something like `key: value`, `key = value`, or JSON. */
const hasKey = /^[ \t]*(?:[{[]|(?:- +)?["']?[\w.$-]+["']?[ \t]*[:=])/m;

/** Matches an unindented line after an empty one that YAML cannot use. */
const strayProse = /\n[ \t]*\r?\n(?![\s#{}[\]"'.<>=|?-]|[^\s:]+:)\S/;

/** Returns the `key: value` lines from an offset, with the lines indented below them. Returns undefined if there are none. */
function leadingKeys(text: string, start: number): string | undefined {
  const found =
    /^(?:[ \t]*(?:#[^\n]*)?\n|[ \t]*\r\n)*(?:[A-Za-z_][\w.-]*:.*(?:\r?\n|$)|[ \t]+\S.*(?:\r?\n|$))+/.exec(
      text.slice(start),
    )?.[0];
  if (found === undefined || !/^[A-Za-z_][\w.-]*:/m.test(found)) return undefined;
  // A text without frontmatter may also begin with a rule and a heading.
  return /^[ \t]*[#\r\n]/.test(found) && !/^(?:name|description):/m.test(found) ? undefined : found;
}

/**
 * Returns the offset after the opening fence's line. A scanner, because a regular expression backtracks on thousands of blank
 * lines.
 */
function afterOpeningFence(text: string): number | undefined {
  let offset = 0;
  for (;;) {
    // A blank of zero width is not visible and not intended.
    while (/[\s\u200B\u2060]/.test(text.charAt(offset))) offset++;
    if (!text.startsWith('<!--', offset)) break;
    const end = text.indexOf('-->', offset);
    if (end < 0) return undefined;
    offset = end + 3;
  }
  const lineEnd = text.indexOf('\n', offset);
  const line = text.slice(offset, lineEnd < 0 ? text.length : lineEnd);
  if (line.trim() !== '---') return undefined;
  return lineEnd < 0 ? text.length : lineEnd + 1;
}

/** Removes a byte order mark. Line ends that are a carriage return alone become line feeds. Every offset stays. */
export function withoutMark(text: string): string {
  const plain = text.replace(/^\uFEFF/, '');
  return plain.includes('\n') ? plain : plain.replaceAll('\r', '\n');
}

/** Returns the number of line breaks in a text. */
export const countLines = (text: string): number => text.split('\n').length - 1;
