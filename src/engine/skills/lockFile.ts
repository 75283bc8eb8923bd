/** Reads the lock files: what each installed pack came from, and the digest of each of its files. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { AlongFile, FolderContents } from '../files/folderRecord.ts';
import { canonicalJson, entryIn, lockName, packsIn } from '../files/lockText.ts';
import { readText } from '../files/regularFile.ts';
import { packNameProblem } from './scaffold.ts';

/** What a source was resolved to: the exact version, from which the same bytes can be fetched again. */
export type Resolved =
  | { kind: 'folder'; path: string }
  | { kind: 'github'; url: string; ref: string; commit: string; path: string }
  | { kind: 'git'; url: string; ref: string; commit: string; path: string }
  | { kind: 'npm'; registry: string; name: string; version: string; integrity: string; path: string }
  | { kind: 'clawhub'; registry: string; slug: string; ownerHandle: string; version: string; path?: string }
  | {
      kind: 'well-known';
      indexUrl: string;
      schema: string;
      name: string;
      type: string;
      digest: string;
      url: string;
      path?: string;
    }
  | { kind: 'url'; url: string; sha256: string; path: string }
  /** Skills of an MCP server of the user's. Without `name` all that it serves. `digest` is over the digests of their files. */
  | { kind: 'mcp'; agent: string; server: string; name?: string; digest: string; path: string };

export interface LockedPack {
  /** The source as it was asked for. */
  source: string;
  resolved: Resolved;
  /** The downloaded archive. A server may pack the same files again with other bytes, so it is only information. */
  archive?: { url: string; sha256: string };
  digest: string;
  /** By path below the pack's folder: `sha256:<hex>`, with `+x` if it is executable. */
  files: Readonly<Record<string, string>>;
  leftOut: readonly string[];
  pinned: boolean;
  /** Folders of the skills that make up the pack, in the source. Missing if a folder of the source is the pack. */
  skills?: readonly string[];
  /** The skills that the person chose, by id. Missing if later ones are to come along. */
  only?: readonly string[];
  scan?: { rules: string; read: number; of: number; high: number; medium: number; low: number };
  installedAt: string;
}

/** Returns the path of the lock file for what lies in the skills folder. */
export const lockPath = ({ skillsDir }: Pick<Config, 'skillsDir'>): string => join(skillsDir, lockName);

/** Returns the packs of a lock file, or an empty map if the file is missing. Throws TelosError `pack` if the file is not a lock file or is damaged. */
export function readLock(file: string): Map<string, LockedPack> {
  const found = new Map<string, LockedPack>();
  try {
    for (const [name, value] of Object.entries(packsIn(textOf(file)))) found.set(name, checked(name, value));
    return found;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    const next =
      'Restore it from a backup or your version control, or move it away and install the packs again.';
    throw new TelosError('pack', `${file} ${problem}. Nothing was changed. ${next}`);
  }
}

/** Returns the entry of a pack, or undefined if there is none or the lock file cannot be read. */
export function lockedPack(file: string, name: string): LockedPack | undefined {
  try {
    return readLock(file).get(name);
  } catch {
    return undefined;
  }
}

function checked(name: string, value: unknown): LockedPack {
  const problem = packNameProblem(name);
  if (problem) throw new Error(`names a pack ${JSON.stringify(name)}, which ${problem}`);
  const { source, resolved, digest, files, leftOut, pinned, installedAt } = (value ??
    {}) as Partial<LockedPack>;
  const isWhole =
    [source, resolved?.kind, digest, installedAt].every(text => typeof text === 'string') &&
    typeof files === 'object' &&
    files !== null &&
    typeof pinned === 'boolean' &&
    Array.isArray(leftOut);
  if (!isWhole) throw new Error(`has an entry for '${name}' in which something is missing`);
  for (const [path, text] of Object.entries(files)) {
    if (!/^sha256:[\da-f]{64}(\+x)?$/.test(text))
      throw new Error(`has no digest for ${JSON.stringify(path)} of '${name}'`);
    const isInner = !/[\\\0]/.test(path) && path.split('/').every(part => !['', '.', '..'].includes(part));
    if (!isInner)
      throw new Error(`names a file ${JSON.stringify(path)} of '${name}', which leads out of the pack`);
  }
  const own = digestOf(files);
  if (own !== digest)
    throw new Error(
      `says that the digest of '${name}' is ${digest}, but its files there have the digest ${own}`,
    );
  return value as LockedPack;
}

/** Returns the SHA-256 over the sorted `path:sha256` lines, as in an agent's card. */
export function digestOf(files: Readonly<Record<string, string>>): string {
  const lines = Object.entries(files).map(
    ([path, text]) =>
      `${path.replace(/[\\\n]/g, sign => (sign === '\n' ? '\\n' : '\\\\'))}:${text.slice(7, 71)}`,
  );
  return createHash('sha256').update(lines.sort().join('\n')).digest('hex');
}

/** Returns a digest of an entry without what changes nothing of the pack. */
export function entryDigest({
  pinned: _pinned,
  installedAt: _at,
  scan: _scan,
  ...entry
}: LockedPack): string {
  return createHash('sha256').update(canonicalJson(entry)).digest('hex');
}

/** Files that other programs keep beside a pack. They change by themselves and are in no lock. */
export const isKeptBeside = (path: string): boolean => /(?:^|\/)\.clawhub\//.test(path);

/** Returns the files of a folder's contents, without its folders and links. */
export const filesOf = (contents: FolderContents): Record<string, string> =>
  Object.fromEntries(
    Object.entries(contents).filter(([path, text]) => text.startsWith('sha256:') && !isKeptBeside(path)),
  );

/** Returns the change of a pack's entry that is made together with its folder. Without `entry`, the entry is removed. */
export function lockChange(file: string, name: string, entry: LockedPack | undefined): AlongFile {
  readLock(file);
  const after = entry ? canonicalJson(entry) : null;
  return { file, before: entryIn(textOf(file), name), after, entry: name };
}

function textOf(file: string): string | null {
  try {
    return readText(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
}
