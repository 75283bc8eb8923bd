/** Reads the small settings files that people write, and edits those that other windows and command lines edit at the same time. */

import { randomUUID } from 'node:crypto';
import { type Stats, statSync } from 'node:fs';
import { link, mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { asMessage, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { parse, TomlError } from 'smol-toml';
import { reasonOf, TelosError } from '../core/errors.ts';
import { writeWhole } from './atomicWrite.ts';
import { jsonLine } from './jsonLines.ts';
import { isStillRunning, thisProcess } from './liveProcess.ts';
import { loadText, readRegularFile, readText } from './regularFile.ts';

/** Far larger than any file written by hand. In bytes. */
const handwrittenBytes = 4 * 1024 * 1024;

/** Returns the text of a settings file, without a byte order mark. Throws the errors of `readRegularFile`. */
export const readSettings = (path: string): string =>
  readRegularFile(path, handwrittenBytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');

/** Returns the `$schema` of the plugin.json in a folder, if it is one of agent-plugins.org. Never throws. */
export function pluginSchema(folder: string): string | undefined {
  try {
    const { $schema } = JSON.parse(readSettings(join(folder, 'plugin.json'))) as { $schema?: unknown };
    return typeof $schema === 'string' && $schema.startsWith('https://agent-plugins.org/')
      ? $schema
      : undefined;
  } catch {
    return undefined;
  }
}

type TomlValue = string | number | bigint | boolean | Date | TomlTable | TomlValue[];

/** A table of a TOML file. Its own type, so that who uses Telos as a library needs no types of the parser. */
export interface TomlTable {
  readonly [key: string]: TomlValue;
}

interface TomlFile {
  /** Text on disk. Empty if the file is missing. */
  text: string;
  /** Empty if the file is missing or broken. */
  table: TomlTable;
  diagnostics: readonly Diagnostic[];
}

/**
 * Reads a TOML file. `consequence` ends the message about a broken file. `code` is the code of its diagnostic.
 */
export function readToml(file: string, code: string, consequence: readonly Sentence[]): TomlFile {
  let text = '';
  try {
    text = readSettings(file);
    return { text, table: parse(text), diagnostics: [] };
  } catch (error) {
    if (isAbsent(error)) return { text, table: {}, diagnostics: [] };
    const line = error instanceof TomlError ? error.line : 1;
    const [reason = ''] = reasonOf(error).split('\n');
    const message = sentence('{0} could not be read: {1}.', basename(file), reason.replace(/\.$/, ''));
    const fix =
      error instanceof TomlError
        ? sentence('Correct line {0}; put text in double quotes.', line)
        : sentence('Make it a readable text file, or delete it.');
    const words = worded([message, ...consequence], fix);
    return { text, table: {}, diagnostics: [{ severity: 'error', code, ...words, file, line }] };
  }
}

/**
 * Returns the line on which a key is written, counted from 1, in the table whose header is on the line `header`; 0 stands for the top of
 * the file. Returns the header's line, or 1, if the key is written in another way.
 */
export function lineOfKey(text: string, key: string, header = 0): number {
  const lines = text.split('\n').slice(header);
  const end = lines.findIndex(line => /^\s*\[/.test(line));
  const table = end < 0 ? lines : lines.slice(0, end);
  const at = table.findIndex(line => new RegExp(`^\\s*["']?${key}["']?\\s*=`).test(line));
  return at < 0 ? Math.max(header, 1) : header + at + 1;
}

/** Returns the trimmed text of a key, or undefined if it is missing, empty or not text. */
export function textOf(table: TomlTable, key: string): string | undefined {
  const value = Object.hasOwn(table, key) ? table[key] : undefined;
  return (typeof value === 'string' && value.trim()) || undefined;
}

/**
 * Returns a warning for each of the keys whose value is not text, because `textOf` ignores such a value. `agent` is the one that the
 * keys are about.
 */
export const textDefects = (
  table: TomlTable,
  keys: readonly string[],
  place: Pick<Diagnostic, 'code' | 'file' | 'line'>,
  agent?: string,
): Diagnostic[] =>
  keys
    .filter(key => Object.hasOwn(table, key) && typeof table[key] !== 'string')
    .map(key => ({
      severity: 'warning',
      ...place,
      ...worded(
        agent === undefined
          ? sentence('{0} is not text, so it is ignored.', key)
          : sentence("{0} of agent '{1}' is not text, so it is ignored.", key, agent),
        sentence('Write it as text in double quotes: {0} = "..."', key),
      ),
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
  /** Those of the message, for a frontend that translates. */
  sentences?: readonly Sentence[];
  file: string;
  line: number;
  /** The fix, in words. */
  fix?: string;
  fixSentence?: Sentence;
  /** The same fix as a change that a program can make. */
  edit?: TextEdit;
}

type DefectWords = Pick<Diagnostic, 'message' | 'sentences' | 'fix' | 'fixSentence'>;

/** Returns what a diagnostic says and its fix: the English texts, and the sentences for a frontend that translates. */
export function worded(message: Sentence | readonly Sentence[], fix: Sentence): Required<DefectWords>;
export function worded(message: Sentence | readonly Sentence[], fix?: Sentence): DefectWords;
export function worded(message: Sentence | readonly Sentence[], fix?: Sentence): DefectWords {
  return { ...asMessage(...[message].flat()), ...(fix && { fix: spoken([fix]), fixSentence: fix }) };
}

/**
 * Replaces the file's text with the result of `change`. A missing file has an empty text, and an unchanged text is not written.
 * Only one writer works at a time. If something saves meanwhile without the lock, `change` is called again with the new text.
 * Throws the errors of `change` and of the file system. Throws TelosError `config` if the file stays locked or keeps changing.
 */
export async function editShared(file: string, change: (text: string) => string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  for (let attempt = 0; attempt < 10; attempt++) {
    const lock = await lockFile(`${file}.lock`);
    try {
      const text = await presentText(file);
      const changed = change(text);
      if (changed === text) return;
      if ((await presentText(file)) === text && (await writeWhole(file, changed, lock.isOurs))) return;
    } finally {
      await lock.release();
    }
  }
  throw new TelosError('config', [
    sentence('{0} is constantly changed by another program.', file),
    sentence('Try again.'),
  ]);
}

async function presentText(file: string): Promise<string> {
  return loadText(file).catch(error => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/**
 * In milliseconds. The holder of a lock renews it every `beatInterval`. A lock that was not renewed for `lockAge` was left behind
 * by a process that died.
 */
const beatInterval = 2_000;
const lockAge = 10_000;
const lockPatience = 15_000;

export interface FileLock {
  /** False once another process has taken the lock for an abandoned one, for example after a sleep of the machine. */
  isOurs: () => boolean;
  release(): Promise<void>;
}

/** Takes the lock file for this process. Throws TelosError `config` if another one keeps it for long. */
export async function lockFile(path: string): Promise<FileLock> {
  const watch: LockWatch = {};
  for (const deadline = performance.now() + lockPatience; performance.now() < deadline; ) {
    const made = await make(path);
    if (made) return made;
    await removeStale(path, watch);
    await delay(5 + Math.random() * 20);
  }
  throw new TelosError('config', [
    sentence('{0} is an old lock.', path),
    sentence('If Telos is not running, delete it.'),
  ]);
}

/** Returns undefined if a lock exists. A lock contains its own text, by which its maker recognizes it. */
async function make(path: string): Promise<FileLock | undefined> {
  const token = JSON.stringify({ id: randomUUID(), ...thisProcess() });
  try {
    const handle = await open(path, 'wx', 0o600);
    try {
      await handle.writeFile(token);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    await rm(path, { force: true });
    throw error;
  }
  const isOurs = (): boolean => {
    try {
      return readText(path) === token;
    } catch {
      return false;
    }
  };
  const beat = setInterval(() => {
    const now = new Date();
    if (isOurs()) void utimes(path, now, now).catch(() => undefined);
  }, beatInterval).unref();
  const release = async (): Promise<void> => {
    clearInterval(beat);
    if (isOurs()) await rm(path, { force: true });
  };
  return { isOurs, release };
}

/** How a lock of another machine was found last, and since when it is so, by a clock that no one sets. */
interface LockWatch {
  state?: string;
  since?: number;
}

/** A process of this machine is known to be there or not. Of any other, only the beat says whether it holds the lock. */
function isStale(text: string, { mtimeMs }: Stats, watch: LockWatch): boolean {
  const runs = isStillRunning(jsonLine(text, value => Object(value) as object) ?? {});
  if (runs !== undefined) return !runs;
  const state = `${mtimeMs} ${text}`;
  if (watch.state !== state) Object.assign(watch, { state, since: performance.now() });
  const isStill = performance.now() - (watch.since ?? 0) > 2 * beatInterval;
  return isStill && Date.now() - mtimeMs >= lockAge;
}

async function removeStale(path: string, watch: LockWatch): Promise<void> {
  const seen = await stat(path).catch(() => undefined);
  const text = await loadText(path).catch(() => undefined);
  if (!seen || text === undefined || !isStale(text, seen, watch)) return;
  // Moved aside first: if two processes find it stale, only one gets it. A lock that is no longer the stale one is put back.
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  const got = await loadText(aside).catch(() => undefined);
  if (got !== undefined && got !== text) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

/** A file that has changed less than this before it is read may change again without another time. In milliseconds. */
const settled = 2_000n;

/** Returns what changes with the content of a file, or undefined if it is unknown or has just changed. */
export function fileState(file: string): string | undefined {
  try {
    const { dev, ino, size, mode, mtimeNs, ctimeNs, ctimeMs } = statSync(file, { bigint: true });
    const age = BigInt(Date.now()) - ctimeMs;
    return age < settled ? undefined : [dev, ino, size, mode, mtimeNs, ctimeNs].join();
  } catch {
    return undefined;
  }
}
