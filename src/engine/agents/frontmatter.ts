/** Reads any SKILL.md: splits frontmatter from body, and makes the best of YAML that is not quite YAML. Never throws. */
import { LineCounter, parse, parseDocument } from 'yaml';
import type { Diagnostic } from './agent.ts';

export interface ParsedSkillFile {
  /** The frontmatter's keys as they are; no prototype, so that a key called `__proto__` is only a key. */
  fields: Readonly<Record<string, unknown>>;
  /** Everything behind the closing fence, byte for byte. */
  body: string;
  diagnostics: readonly Diagnostic[];
}

interface Split {
  frontmatter: string;
  body: string;
  /** Line of the file on which the frontmatter's first line stands, counted from 1. */
  firstLine: number;
  closed: boolean;
}

type Report = (code: string, line: number, message: string, fix?: string) => void;

/** Parses the text of one skill file; `file` only names it in diagnostics. */
export function parseSkillFile(text: string, file: string): ParsedSkillFile {
  const diagnostics: Diagnostic[] = [];
  const report: Report = (code, line, message, fix) => {
    diagnostics.push({ severity: 'warning', code, line, message, file, ...(fix ? { fix } : {}) });
  };
  const split = splitFrontmatter(text);
  if (!split) return { fields: emptyFields(), body: text.replace(/^\uFEFF/, ''), diagnostics };
  if (!split.closed) {
    const message = 'The frontmatter has no closing `---`; its leading `key: value` lines were taken.';
    report('frontmatter-unclosed', split.firstLine - 1, message, 'Add a line `---` behind the last key.');
  }
  return { fields: parseFields(split, report), body: split.body, diagnostics };
}

/**
 * Finds the `name` of the frontmatter without a YAML parser, for routing by name over thousands of files.
 * Returns undefined where the name is missing or not a plain one-line value.
 */
export function scanName(text: string): string | undefined {
  const split = splitFrontmatter(text);
  const value = split && /^name:[ \t]*(.+?)[ \t]*\r?$/m.exec(split.frontmatter)?.[1];
  if (!value || /^[|>&*!{[]/.test(value)) return undefined;
  return unquote(value.replace(/\s+#.*$/, ''));
}

/** Blank lines and HTML comments may stand before the opening fence; a fence is a line that trims to `---`. */
function splitFrontmatter(text: string): Split | undefined {
  const start = afterOpeningFence(text);
  if (start === undefined) return undefined;
  const firstLine = countLines(text.slice(0, start)) + 1;
  const fence = /^[ \t]*---[ \t]*\r?$/gm;
  fence.lastIndex = start;
  const closing = fence.exec(text);
  if (closing) {
    const behind = text.indexOf('\n', closing.index);
    const body = behind < 0 ? '' : text.slice(behind + 1);
    return { frontmatter: text.slice(start, closing.index), body, firstLine, closed: true };
  }
  const keyLines = /^(?:[A-Za-z_][\w.-]*:.*(?:\r?\n|$)|[ \t]+\S.*(?:\r?\n|$))+/.exec(text.slice(start));
  if (!keyLines || !/^[A-Za-z_][\w.-]*:/m.test(keyLines[0])) return undefined;
  return { frontmatter: keyLines[0], body: text.slice(start + keyLines[0].length), firstLine, closed: false };
}

/** Offset behind the opening fence's line; a scanner, because a regular expression backtracks on thousands of blank lines. */
function afterOpeningFence(text: string): number | undefined {
  let offset = text.startsWith('\uFEFF') ? 1 : 0;
  for (;;) {
    while (/\s/.test(text.charAt(offset))) offset++;
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

function parseFields(split: Split, report: Report): Record<string, unknown> {
  const source = split.frontmatter.replaceAll('\r\n', '\n');
  const lineCounter = new LineCounter();
  const document = parseDocument(source, {
    lineCounter,
    strict: false,
    uniqueKeys: true,
    logLevel: 'silent',
  });
  const problem = document.errors[0];
  if (!problem) {
    const value = acyclic(attempt(() => document.toJS({ maxAliasCount: 20 })));
    if (isRecord(value)) return copyFields(value);
    if (value === null || value === undefined) return emptyFields();
  }
  const line = problem ? lineCounter.linePos(problem.pos[0]).line : 1;
  const [reason] = (problem?.message ?? 'it is not a list of `key: value` lines').split('\n');
  const message = `The frontmatter is not valid YAML (${reason?.replace(/ at line \d+, column \d+:?$/, '')}); it was read line by line.`;
  report('frontmatter-yaml', split.firstLine - 1 + line, message, 'Put the value in double quotes.');
  return parseLines(source);
}

/** Top-level `key: value` lines with continuation lines and block scalars; the first of equal keys wins. */
function parseLines(source: string): Record<string, unknown> {
  const fields = emptyFields();
  const lines = source.split('\n');
  for (let index = 0; index < lines.length; index++) {
    const match = /^([A-Za-z_][\w.-]*):(.*)$/.exec(lines[index] ?? '');
    if (!match) continue;
    const block: string[] = [];
    while (index + 1 < lines.length && /^(?:[ \t]+\S|[ \t]*$)/.test(lines[index + 1] ?? ''))
      block.push(lines[++index] ?? '');
    const [, key = '', head = ''] = match;
    if (!(key in fields)) fields[key] = lineValue(key, head.trim(), block);
  }
  return fields;
}

function lineValue(key: string, head: string, block: string[]): unknown {
  const rest = block.map(line => line.trim());
  if (key === 'metadata') {
    const structured = attempt(() =>
      parse(head ? [head, ...rest].join('\n') : block.join('\n'), { logLevel: 'silent' }),
    );
    if (isRecord(structured)) return structured;
  }
  if (/^[|>][+-]?\d?$/.test(head)) return rest.join(head.startsWith('|') ? '\n' : ' ').trim();
  if (!head && rest.some(line => line.startsWith('- '))) {
    return rest.filter(line => line.startsWith('- ')).map(line => unquote(line.slice(2).trim()));
  }
  return unquote([head, ...rest].filter(Boolean).join(' '));
}

function unquote(value: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value) ?? /^'((?:[^']|'')*)'$/.exec(value);
  if (!quoted) return value;
  return value.startsWith('"')
    ? (quoted[1] ?? '').replace(/\\(["\\])/g, '$1')
    : (quoted[1] ?? '').replaceAll("''", "'");
}

/** Text of a frontmatter value: numbers, booleans and lists become strings; undefined where there is none. */
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

/** An alias inside its own anchor makes a loop, which nothing behind this could print. */
function acyclic(value: unknown): unknown {
  return attempt(() => {
    JSON.stringify(value);
    return value;
  });
}

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const countLines = (text: string): number => text.split('\n').length - 1;
