/** Says what a source leads to, and unpacks what was downloaded. */

import { TelosError } from '@telos/engine/errors';
import type { LockedPack, Resolved } from '@telos/engine/skills';
import type { Download } from './download.ts';
import type { Reach, Source } from './sourceText.ts';
import { TreeWriter } from './treeWriter.ts';

/** What someone else says of a pack. Shown as theirs. */
export interface Verdict {
  by: string;
  level: 'high' | 'medium';
  text: string;
}

/** What a source leads to at this moment. */
export interface Found {
  resolved: Resolved;
  /** Where it comes from and in which version, in words: `github.com/acme/tools at 0123456, v1`. */
  from: string;
  /** The version, or the beginning of the commit. */
  version: string;
  /** Name for a pack that brings none of its own. */
  name: string;
  verdict?: Verdict;
}

/** Files that lie in a folder of their own. */
export interface Fetched {
  archive?: LockedPack['archive'];
  leftOut: readonly string[];
}

/** Resolves and fetches one kind of source. */
export interface Resolver<Kind extends Source['kind'], Exact extends Resolved['kind']> {
  /** Throws TelosError `pack`, or UnclearSource if there are several. */
  resolve(source: Extract<Source, { kind: Kind }>, reach: Reach): Promise<Found>;
  /** Fetches exactly what was resolved into an empty folder. Throws TelosError `pack` if the bytes are not those. */
  fetch(resolved: Extract<Resolved, { kind: Exact }>, root: string, reach: Reach): Promise<Fetched>;
}

/** Unpacks an archive, whichever kind its first bytes say. `drop` folders at the beginning of each path are cut off. `most` are its limits. */
export async function unpack(
  { bytes, url, sha256 }: Pick<Download, 'bytes' | 'url' | 'sha256'>,
  root: string,
  drop: number,
  signal: AbortSignal,
  most?: ConstructorParameters<typeof TreeWriter>[3],
): Promise<Fetched & { archive: { url: string; sha256: string } }> {
  const writer = new TreeWriter(root, url, drop, most);
  const isZip = bytes.toString('latin1', 0, 2) === 'PK';
  if (isZip) await (await import('./zip.ts')).unpackZip(bytes, writer, signal);
  else await (await import('./tar.ts')).unpackTar(bytes, writer, signal);
  writer.finish();
  return { archive: { url, sha256 }, leftOut: writer.leftOut };
}

/** Throws TelosError `pack` with both values if they differ. */
export function checkSame(what: string, url: string, wanted: string, got: string): void {
  if (wanted === got) return;
  throw new TelosError(
    'pack',
    `The ${what} of ${url} is ${got}, but ${wanted} was promised. Nothing was installed.`,
  );
}

/** Returns the base address that a variable sets, or the usual one, without a slash at its end. */
export function baseAddress({ env }: Reach, variable: string, usual: string): string {
  return (env[variable] || usual).replace(/\/+$/, '');
}

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

type Fields = Readonly<Record<string, unknown>>;

export const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
