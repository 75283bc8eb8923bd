/** Reads any SKILL.md: splits frontmatter from body, and makes the best of YAML that is not quite YAML. Never throws. */
import { type Document, LineCounter, parseDocument } from 'yaml';
import type { Diagnostic, TextEdit } from './agent.ts';
import { endlessAliases, noMap, unfinishedMerge, yamlDefect } from './frontmatterDefects.ts';
import { countLines, type Split, splitFrontmatter, withoutMark } from './splitFrontmatter.ts';

export interface ParsedSkillFile {
  /** The frontmatter's keys as they are; no prototype, so that a key called `__proto__` is only a key. */
  fields: Readonly<Record<string, unknown>>;
  /** Everything behind the closing fence, byte for byte. */
  body: string;
  /** False for a file that is all body. */
  hasFrontmatter: boolean;
  diagnostics: readonly Diagnostic[];
}

type Report = (code: string, line: number, message: string, fix: string, edit?: TextEdit) => void;

/** Parses the text of one skill file; `file` only names it in diagnostics. */
export function parseSkillFile(text: string, file: string): ParsedSkillFile {
  const diagnostics: Diagnostic[] = [];
  const report: Report = (code, line, message, fix, edit) => {
    diagnostics.push({ severity: 'warning', code, line, message, file, fix, ...(edit ? { edit } : {}) });
  };
  const plain = withoutMark(text);
  const split = splitFrontmatter(plain);
  if (!split) return { fields: emptyFields(), body: plain, hasFrontmatter: false, diagnostics };
  if (!split.closed) {
    const message = 'The frontmatter has no closing `---`; its leading `key: value` lines were taken.';
    const fix = 'Add a line `---` behind the last key.';
    report('frontmatter-unclosed', split.firstLine - 1, message, fix, closingFence(split));
  }
  const fields = parseFields(split, report);
  reportCapitals(fields, split, report);
  return { fields, body: split.body, hasFrontmatter: true, diagnostics };
}

/** A key counts in small letters only, and nobody sees that from the file. */
function reportCapitals(fields: ParsedSkillFile['fields'], split: Split, report: Report): void {
  for (const key of Object.keys(fields)) {
    const usual = key.toLowerCase();
    if (usual === key || usual in fields || !['name', 'description', 'metadata'].includes(usual)) continue;
    const lines = split.frontmatter.split('\n');
    const index = lines.findIndex(line => line.startsWith(`${key}:`));
    if (index < 0) continue;
    const offset = split.start + lines.slice(0, index).reduce((sum, { length }) => sum + length + 1, 0);
    const message = `The key \`${key}\` counts as not said, since keys are written in small letters.`;
    const edit = { offset, length: key.length, text: usual };
    report('key-case', split.firstLine + index, message, `Write \`${usual}\`.`, edit);
  }
}

/** Where the one-line value of a top-level key of the frontmatter stands; undefined where there is none. */
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

/** The line of a top-level key of the frontmatter, whatever its value; undefined where there is none. */
export function findKey(text: string, key: string): number | undefined {
  const split = splitFrontmatter(withoutMark(text));
  const index = split?.frontmatter.split('\n').findIndex(line => line.startsWith(`${key}:`)) ?? -1;
  return split && index >= 0 ? split.firstLine + index : undefined;
}

/** Parses a value that stands alone as YAML; undefined where it is none. */
export function parseYamlValue(text: string): unknown {
  if (text.length > longestYaml) return undefined;
  const document = parseDocument(text, yamlOptions);
  return document.errors.length > 0 ? undefined : plainValue(document);
}

/**
 * Finds the `name` of the frontmatter without a YAML parser, for routing by name over thousands of files.
 * Returns undefined where the name is missing or not a plain one-line value.
 */
export function scanName(text: string): string | undefined {
  const split = splitFrontmatter(withoutMark(text));
  const value = split && /^name:[ \t]*(.+?)[ \t]*\r?$/m.exec(split.frontmatter)?.[1];
  if (!value || /^[|>&*!{[]/.test(value)) return undefined;
  return unquote(value.replace(/\s+#.*$/, ''));
}

const yamlOptions = { strict: false, uniqueKeys: true, logLevel: 'silent' } as const;

/** Longer frontmatter is read line by line, in characters: the parser compares each key with all others of its table. */
const longestYaml = 32 * 1024;

function parseFields(split: Split, report: Report): Record<string, unknown> {
  const source = split.frontmatter.replaceAll('\r\n', '\n');
  if (source.length > longestYaml) {
    const message = `The frontmatter has ${source.length} characters, too many to be read as YAML; it was read line by line.`;
    report('frontmatter-long', split.firstLine, message, 'Move text from the frontmatter to the body.');
    return parseLines(source);
  }
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { ...yamlOptions, lineCounter });
  const problem = document.errors[0];
  const value = problem ? undefined : plainValue(document);
  if (isRecord(value)) return copyFields(value);
  if (value === null) return emptyFields();
  const merge = unfinishedMerge(source);
  const { reason, fix } =
    merge ?? (problem ? yamlDefect(problem) : value === undefined ? endlessAliases : noMap);
  const line = merge?.line ?? (problem ? lineCounter.linePos(problem.pos[0]).line : 1);
  const message = `The frontmatter is not valid YAML (${reason}); it was read line by line.`;
  const edit = merge || !problem ? undefined : quotedValue(split, line);
  report(
    'frontmatter-yaml',
    split.firstLine - 1 + line,
    message,
    edit ? 'Put the value in quotes.' : fix,
    edit,
  );
  return parseLines(source);
}

/** A top-level key with a value on its line: key, blanks, value. */
const keyLine = /^([A-Za-z_][\w.-]*):([ \t]*)([^\r\n]*?)[ \t]*\r?$/gm;

function closingFence({ frontmatter, start }: Split): TextEdit {
  const end = frontmatter.trimEnd().length;
  const lineBreak = frontmatter.includes('\r\n') ? '\r\n' : '\n';
  const hasBreak = frontmatter.startsWith(lineBreak, end);
  const text = hasBreak ? `---${lineBreak}` : `${lineBreak}---${lineBreak}`;
  return { offset: start + end + (hasBreak ? lineBreak.length : 0), length: 0, text };
}

/** Puts quotes round the value that YAML stumbles over, if that helps. `line` counts from 1 within the frontmatter. */
function quotedValue({ frontmatter, start }: Split, line: number): TextEdit | undefined {
  const upTo = frontmatter.split('\n', line).join('\n').length;
  const found = [...frontmatter.slice(0, upTo).matchAll(keyLine)].at(-1);
  if (!found) return undefined;
  const [, name = '', space = '', head = ''] = found;
  const at = found.index + name.length + 1 + space.length;
  const more = /^[ \t]*(?:\r?\n[ \t]+\S.*)*/.exec(frontmatter.slice(at + head.length))?.[0].trimEnd() ?? '';
  const value = (head + more)
    .split('\n')
    .map(part => part.trim())
    .join(' ');
  if (!value || name === 'metadata' || /^[|>]/.test(value)) return undefined;
  const quoted =
    /["\\]/.test(value) && !value.includes("'") ? `'${value}'` : `"${value.replace(/["\\]/g, '\\$&')}"`;
  const text = `${space ? '' : ' '}${quoted}`;
  const [before, behind] = [frontmatter.slice(0, at), frontmatter.slice(at + head.length + more.length)];
  const [problem] = parseDocument(frontmatter, yamlOptions).errors;
  const [next] = parseDocument(before + text + behind, yamlOptions).errors;
  // What is wrong next has to stand behind the value, and to be something else than before; quotes would be put round quotes otherwise.
  const moved = text.length - head.length - more.length;
  const isSame = next && problem && next.pos[0] <= problem.pos[0] + moved;
  if (next && (isSame || next.pos[0] < before.length + text.length)) return undefined;
  return { offset: start + at, length: head.length + more.length, text };
}

/** Top-level `key: value` lines with continuation lines and block scalars; the first of equal keys wins. */
function parseLines(source: string): Record<string, unknown> {
  const fields = emptyFields();
  const lines = source.split('\n');
  for (let index = 0; index < lines.length; index++) {
    const match = /^([A-Za-z_][\w.-]*):(.*)$/.exec(lines[index] ?? '');
    if (!match) continue;
    const [, key = '', head = ''] = match;
    const block: string[] = [];
    // A JSON value goes on to its last bracket, wherever its lines begin.
    let open = openBrackets(head);
    const isOpen = (): boolean => open > 0 && /^\s*[{[]/.test(head || (block[0] ?? ''));
    while (index + 1 < lines.length && (isContinuation(lines[index + 1] ?? '') || isOpen())) {
      const next = lines[++index] ?? '';
      block.push(next);
      open += openBrackets(next);
    }
    if (!(key in fields)) fields[key] = lineValue(key, head.trim(), block);
  }
  return fields;
}

function lineValue(key: string, head: string, block: string[]): unknown {
  const rest = block.map(line => line.trim());
  if (key === 'metadata') {
    const structured = parseYamlValue(head ? [head, ...rest].join('\n') : block.join('\n'));
    if (isRecord(structured)) return structured;
    return [head, ...rest].filter(Boolean).join('\n');
  }
  if (/^[|>][+-]?\d?$/.test(head)) return rest.join(head.startsWith('|') ? '\n' : ' ').trim();
  if (!head && rest.some(line => line.startsWith('- '))) {
    return rest.filter(line => line.startsWith('- ')).map(line => unquote(line.slice(2).trim()));
  }
  return unquote([head, ...rest].filter(Boolean).join(' '));
}

const isContinuation = (line: string): boolean => /^(?:[ \t]+\S|[ \t]*$|[}\]])/.test(line);

const openBrackets = (line: string): number =>
  line.replace(/[^{[]/g, '').length - line.replace(/[^}\]]/g, '').length;

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

/** Undefined for what nothing behind this could print: an alias inside its own anchor makes a loop. */
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
