/** What is noted of a folder of the user that was replaced, removed or put there: enough to bring the earlier state back, and to tell what was edited since. */
import { readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { writeWhole } from '../wholeFile.ts';
import type { FolderContents } from './folderContents.ts';

/** A small file that changed along with a folder. */
export interface AlongFile {
  /** Absolute. */
  file: string;
  /** Null where there was, or is, no such file. */
  before: string | null;
  after: string | null;
}

export interface FolderRecord {
  format: 'telos-replaced-folder';
  version: 1;
  id: string;
  /** ISO 8601, UTC. */
  at: string;
  /** `undo`: an undo has moved it aside although it was edited. */
  kind: 'install' | 'uninstall' | 'undo';
  agent: string;
  /** Where the folder lies, or lay. Absolute. */
  target: string;
  /** Where it came from, in words; missing where nothing was put there. */
  source?: string;
  /** What was there before lies here now; null where nothing was. It is moved, never copied. Absolute. */
  kept: string | null;
  /** What was put there; null where nothing was, or more than can be compared. */
  left: FolderContents | null;
  /** Tells the folder that was put there from another one in its place; null where nothing was. */
  identity: string | null;
  along: readonly AlongFile[];
  /** ISO 8601, UTC; set once the earlier state is back. */
  undoneAt?: string;
}

/** Written before anything is done, and gone once all of it is: what is left of it says what a killed process was doing. */
export interface FolderJournal {
  id: string;
  pid: number;
  host: string;
  at: string;
  target: string;
  /** The folder that was to be put there; null where none was. */
  staged: string | null;
  /** True where `staged` is of no use to anybody else. */
  isOwn: boolean;
  /** The record that this takes back. */
  undoes?: string;
}

export const replacedFolder = (dataDir: string): string => join(dataDir, 'replaced');
export const journalFolder = (dataDir: string): string => join(dataDir, 'replacing');

const idPattern = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
export const isFolderId = (name: string): boolean => idPattern.test(name);

export const recordFolder = (dataDir: string, id: string): string => join(replacedFolder(dataDir), id);
const recordPath = (dataDir: string, id: string): string => join(recordFolder(dataDir, id), 'record.json');

export async function writeRecord(dataDir: string, record: FolderRecord): Promise<void> {
  await writeWhole(recordPath(dataDir, record.id), `${JSON.stringify(record)}\n`);
}

/** Undefined where there is none, or one that makes no sense. */
export function readRecord(dataDir: string, id: string): FolderRecord | undefined {
  const value = isFolderId(id) ? readJson(recordPath(dataDir, id)) : undefined;
  const { format, version, kind, agent, at, target, kept, along } = value ?? {};
  const isRecord =
    format === 'telos-replaced-folder' &&
    version === 1 &&
    value?.['id'] === id &&
    ['install', 'uninstall', 'undo'].includes(String(kind)) &&
    typeof agent === 'string' &&
    typeof at === 'string' &&
    isPlainPath(target) &&
    (kept === null || isPlainPath(kept)) &&
    Array.isArray(along) &&
    along.every(isAlong);
  return isRecord ? (value as unknown as FolderRecord) : undefined;
}

export async function writeJournal(dataDir: string, journal: FolderJournal): Promise<void> {
  await writeWhole(journalPath(dataDir, journal.id), `${JSON.stringify(journal)}\n`);
}

export function readJournal(dataDir: string, id: string): FolderJournal | undefined {
  const value = isFolderId(id) ? readJson(journalPath(dataDir, id)) : undefined;
  const isJournal =
    value?.['id'] === id &&
    typeof value['pid'] === 'number' &&
    typeof value['at'] === 'string' &&
    isPlainPath(value['target']) &&
    (value['staged'] === null || isPlainPath(value['staged']));
  return isJournal ? (value as unknown as FolderJournal) : undefined;
}

export const journalPath = (dataDir: string, id: string): string =>
  join(journalFolder(dataDir), `${id}.json`);

type Fields = Readonly<Record<string, unknown>>;

function readJson(path: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Fields)
      : undefined;
  } catch {
    return undefined;
  }
}

function isAlong(value: unknown): boolean {
  const { file, before, after } = (value ?? {}) as Fields;
  const isText = (text: unknown): boolean => text === null || typeof text === 'string';
  return isPlainPath(file) && isText(before) && isText(after);
}

const isPlainPath = (path: unknown): path is string =>
  typeof path === 'string' && !path.includes('\0') && isAbsolute(path) && resolve(path) === path;
