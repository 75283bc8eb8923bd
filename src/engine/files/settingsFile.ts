/**
 * Reads settings files that a stranger may have placed, where a pipe would never begin and a device never end, and
 * defines their diagnostics with the edits that fix them.
 */
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { parse, TomlError, type TomlTable } from 'smol-toml';

/** Far larger than any file written by hand. In bytes. */
const handwrittenBytes = 4 * 1024 * 1024;

/** Returns the text of a settings file, without a byte order mark. Throws the errors of `readRegularFile`. */
export const readSettings = (path: string): string =>
  readRegularFile(path, handwrittenBytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');

/**
 * Returns the whole file. Throws the error of the file system. Throws an Error with a sentence if it is not a regular file or is
 * larger than `mostBytes`.
 */
export function readRegularFile(path: string, mostBytes: number): Buffer {
  const stats = statSync(path);
  if (stats.isDirectory()) throw new Error('It is a folder, not a file.');
  if (!stats.isFile()) throw new Error('It is a pipe, a socket or a device, not a file.');
  if (stats.size > mostBytes) throw new Error(`It has ${stats.size} bytes; the maximum is ${mostBytes}.`);
  return readFileSync(path);
}

export type { TomlTable } from 'smol-toml';

interface TomlFile {
  /** Text on disk. Empty if the file is missing. */
  text: string;
  /** Empty if the file is missing or broken. */
  table: TomlTable;
  diagnostics: readonly Diagnostic[];
}

/**
 * Reads a TOML file. `consequence` is the last sentence of the message about a broken file. `code` is the code of its diagnostic.
 */
export function readToml(file: string, code: string, consequence: string): TomlFile {
  let text = '';
  try {
    text = readSettings(file);
    return { text, table: parse(text), diagnostics: [] };
  } catch (error) {
    if (isAbsent(error)) return { text, table: {}, diagnostics: [] };
    const line = error instanceof TomlError ? error.line : 1;
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    const message = `${basename(file)} could not be read: ${reason.replace(/\.$/, '')}. ${consequence}`;
    const fix =
      error instanceof TomlError
        ? `Correct line ${line}; put text in double quotes.`
        : 'Make it a readable text file, or delete it.';
    return { text, table: {}, diagnostics: [{ severity: 'error', code, message, file, line, fix }] };
  }
}

/** Returns the trimmed text of a key, or undefined if it is missing, empty or not text. */
export function textOf(table: TomlTable, key: string): string | undefined {
  const value = Object.hasOwn(table, key) ? table[key] : undefined;
  return (typeof value === 'string' && value.trim()) || undefined;
}

/**
 * Returns a warning for each of the keys whose value is not text, because `textOf` ignores such a value. `of` names the owner of
 * the key.
 */
export const textDefects = (
  table: TomlTable,
  keys: readonly string[],
  place: Pick<Diagnostic, 'code' | 'file' | 'line'>,
  of = '',
): Diagnostic[] =>
  keys
    .filter(key => Object.hasOwn(table, key) && typeof table[key] !== 'string')
    .map(key => ({
      severity: 'warning',
      ...place,
      message: `${key}${of} is not text, so it is ignored.`,
      fix: `Write it as text in double quotes: ${key} = "..."`,
    }));

/** Returns the table below a key, or undefined if there is none. */
export function tableOf(table: TomlTable, key: string): TomlTable | undefined {
  const value = Object.hasOwn(table, key) ? table[key] : undefined;
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date) ? value : undefined;
}

function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Returns the value as a TOML string. */
export const tomlString = (value: string): string => JSON.stringify(value).replaceAll('\u007f', '\\u007f');

/** Parses text that Telos is about to write. Throws the errors of the parser. */
export const parseToml = (text: string): TomlTable => parse(text);

/** Replaces `length` characters at `offset` with `text`. Counted in UTF-16 units of the file without its byte order mark. */
export interface TextEdit {
  offset: number;
  length: number;
  text: string;
}

/** A defect in a file of the user, with its fix. Never an exception. Lines count from 1. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'info';
  /** Stable and searchable, for example `frontmatter-unclosed`. */
  code: string;
  message: string;
  file: string;
  line: number;
  /** The fix, in words. */
  fix?: string;
  /** The same fix as a change that a program can make. */
  edit?: TextEdit;
}
