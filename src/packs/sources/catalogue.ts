/** Lists the packs of a catalogue, each with what a person wants to know before choosing one. Runs nothing, and keeps nothing. */

import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { copyPack } from '@telos/engine/skills';
import type { PackLook } from '@telos/protocol/packOffer';
import {
  type FetchedTree,
  type FetchOptions,
  fetchTree,
  packFolder,
  reachFor,
  temporaryFolder,
} from './fetchSource.ts';
import { lookAtPack } from './look.ts';
import type { Candidate } from './marketplace.ts';
import { parseSource, type Reach, type Source, sourceText } from './sourceText.ts';

export interface CatalogueEntry {
  /** What `lookAtSource` takes. */
  source: string;
  name: string;
  description: string;
  /** Another place where it lies. Nothing is fetched from there before it is chosen. */
  elsewhere?: string;
  /** What its files hold, if they lie in the catalogue itself. */
  look?: PackLook;
  /** Why it cannot be installed, as the end of a sentence that begins with its name. */
  problem?: string;
}

export interface CatalogueOptions extends FetchOptions {
  /** Packs beyond these are listed without a look, so that a large catalogue is not waited for. 60 if missing. */
  mostLooks?: number;
  /** Called with each pack that was looked at and the folder of its files, which is gone afterwards. */
  looked?: (entry: CatalogueEntry, folder: string) => Promise<void>;
}

/**
 * Returns the packs that the text leads to. Throws TelosError `pack` for what was refused or cannot be reached, UnclearSource for a text
 * that is no source, and the abort reason on abort.
 */
export async function lookAtCatalogue(
  text: string,
  config: Config,
  options: CatalogueOptions = {},
): Promise<CatalogueEntry[]> {
  const source = parseSource(text, config);
  const reach = await reachFor(source, config, options);
  const listed = source.kind === 'web' ? await ofIndex(source, reach) : undefined;
  if (listed) return listed;
  const temporary = await temporaryFolder();
  try {
    const tree = await fetchTree(source, join(temporary.path, 'tree'), reach);
    const entries: CatalogueEntry[] = [];
    for (const candidate of tree.packs.candidates) {
      reach.signal.throwIfAborted();
      const parent = entries.length < (options.mostLooks ?? 60) ? temporary.path : undefined;
      entries.push(await entryOf(candidate, source, tree, config, parent, options.looked));
    }
    return entries;
  } finally {
    await temporary.remove();
  }
}

/** Returns what the index of a site lists, or undefined for the address of a file. */
async function ofIndex(
  source: Extract<Source, { kind: 'web' }>,
  reach: Reach,
): Promise<CatalogueEntry[] | undefined> {
  const { listedAt } = await import('./web.ts');
  return (await listedAt(source, reach))?.map(({ name, description }) => ({
    source: sourceText({ ...source, name }),
    name,
    description,
  }));
}

async function entryOf(
  candidate: Candidate,
  source: Source,
  tree: FetchedTree,
  config: Config,
  parent: string | undefined,
  looked: CatalogueOptions['looked'],
): Promise<CatalogueEntry> {
  const { name, description, problem, elsewhere } = candidate;
  const isAlone = tree.packs.candidates.length === 1;
  const entry = { source: sourceText(isAlone ? source : { ...source, name }), name, description };
  if (problem !== undefined) return { ...entry, problem };
  if (elsewhere) return { ...entry, elsewhere: sourceText(elsewhere.source) };
  if (parent === undefined) return entry;
  try {
    const folder = candidate.skills
      ? await packFolder(tree.root, candidate, 'pack', await mkdtemp(join(parent, 'pack-')))
      : join(tree.root, candidate.path);
    const look = await lookAtPack(folder, name, (await copyPack(folder, undefined)).contents, config);
    const shown = { ...entry, description: description || look.skills[0]?.description || '', look };
    await looked?.(shown, folder);
    return shown;
  } catch (error) {
    // One pack that is refused does not hide the others.
    if (error instanceof TelosError) return { ...entry, problem: `cannot be installed: ${error.message}` };
    throw error;
  }
}
