/** Reads files that a stranger may have laid: a pipe would never begin, a device never end. */

import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { parse, TomlError, type TomlTable } from 'smol-toml';
import type { Diagnostic } from './diagnostic.ts';

/** Far more than anybody writes by hand. */
const handwrittenBytes = 4 * 1024 * 1024;

/** The text of a file of settings, without a byte order mark. Throws what `readRegularFile` throws. */
export const readSettings = (path: string): string =>
  readRegularFile(path, handwrittenBytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');

/** The whole file. Throws what the file system says, and Error with a sentence for what is no file, and for one of more than `mostBytes`. */
export function readRegularFile(path: string, mostBytes: number): Buffer {
  const stats = statSync(path);
  if (stats.isDirectory()) throw new Error('It is a folder, not a file.');
  if (!stats.isFile()) throw new Error('It is a pipe, a socket or a device, not a file.');
  if (stats.size > mostBytes)
    throw new Error(`It has ${stats.size} bytes, and at most ${mostBytes} are read.`);
  return readFileSync(path);
}

export type { TomlTable } from 'smol-toml';

export interface TomlFile {
  /** As it is on disk; empty where there is no such file. */
  text: string;
  /** Empty where there is no such file, and where it is broken. */
  table: TomlTable;
  diagnostics: readonly Diagnostic[];
}

/** `consequence` is the sentence that ends the message of a broken file. `code` is that of its diagnostic. */
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
        ? `Correct line ${line}; text stands in double quotes.`
        : 'Put a text file there that you may read, or delete it.';
    return { text, table: {}, diagnostics: [{ severity: 'error', code, message, file, line, fix }] };
  }
}

/** The trimmed text of a key; undefined where it is missing, empty or no text. */
export function textOf(table: TomlTable, key: string): string | undefined {
  const value = Object.hasOwn(table, key) ? table[key] : undefined;
  return (typeof value === 'string' && value.trim()) || undefined;
}

/** A warning for each of the keys that has a value which is no text, so that `textOf` passes over it. `of` says whose key it is. */
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
      message: `${key}${of} is no text, so it is not used.`,
      fix: `Write it as text in double quotes: ${key} = "..."`,
    }));

/** The table below a key; undefined where there is none. */
export function tableOf(table: TomlTable, key: string): TomlTable | undefined {
  const value = Object.hasOwn(table, key) ? table[key] : undefined;
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date) ? value : undefined;
}

function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** The text of a TOML string with this value. */
export const tomlString = (value: string): string => JSON.stringify(value).replaceAll('\u007f', '\\u007f');

/** Parses text that Telos is about to write. Throws what the parser throws. */
export const parseToml = (text: string): TomlTable => parse(text);
