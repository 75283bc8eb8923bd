/** Reads what a command has written into its layer as changes of the folders below it: names and facts only. Changes nothing there. */
import { type Dirent, lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { takingTurns } from '../cancellation.ts';
import { isOpenFolder, reopen } from '../files/closedFolder.ts';
import { statsAt } from '../files/paths.ts';
import type { CommandLayer } from '../tools/tool.ts';

/** A file or link that the command wrote or removed. */
export interface LayerFile {
  /** Where it belongs. Absolute and real. */
  path: string;
  /** The file or link that is there now. Undefined for nothing, and for anything else. */
  before: Stats | undefined;
  /** Set if somebody else has removed it since the command began. */
  isGone?: boolean;
  /** What the command left, and where it is. Undefined for a file that it removed. */
  after: { at: string; stats: Stats } | undefined;
}

/** A folder that the command made, removed or gave another mode. Null stands for no folder. */
export interface LayerFolder {
  path: string;
  before: number | null;
  after: number | null;
}

/** What a command has written. A folder comes before those in it. */
export interface LayerChanges {
  files: LayerFile[];
  folders: LayerFolder[];
  /** Pipes, sockets and devices, which do not outlive their command. By their paths. */
  dropped: string[];
  /** Names that are not UTF-8, by what can be shown of their paths. */
  unnamed: string[];
  /** Folders whose further attributes the command has set, which do not land. */
  attributed: string[];
  /** Folders so deep in others that their paths in the layer are longer than the system takes. */
  tooDeep: string[];
}

interface Reading extends LayerChanges {
  /** Folders of the layer that replace the one below. */
  opaque: ReadonlySet<string>;
  /** The modes of folders of the layer that had to be opened. */
  modes: Map<string, number>;
  hadBefore: CommandLayer['hadBefore'];
  turn: () => Promise<void> | void;
}

/** Reads the layer. Throws an Error with a sentence if it cannot be read whole: then nothing of it is known. */
export async function readLayer(layer: CommandLayer): Promise<LayerChanges> {
  const modes = new Map<string, number>();
  const all: FolderOfLayer[] = [];
  for (const { path, upper } of layer.roots) addFolders(upper, path, all, modes);
  const { opaque, attributed } = await marked(all, layer);
  const reading: Reading = {
    files: [],
    folders: [],
    dropped: [],
    unnamed: [],
    attributed,
    tooDeep: [],
    hadBefore: layer.hadBefore,
    opaque,
    modes,
    turn: takingTurns(),
  };
  for (const { path, upper } of layer.roots) {
    const below = statsAt(path);
    addFolder(path, below, modeOf(upper, reading), reading);
    await readFolder(upper, path, below?.isDirectory() === true, reading);
  }
  const { files, folders, dropped, unnamed, tooDeep } = reading;
  return { files, folders, dropped, unnamed, tooDeep, attributed };
}

/** A folder of a layer: each adds to the one at its place, replaces it or is new. */
interface FolderOfLayer {
  at: string;
  place: string;
  isInBoth: boolean;
}

/** Returns those that replace one, and the places of those that have other attributes than before. */
async function marked(
  all: readonly FolderOfLayer[],
  layer: CommandLayer,
): Promise<{ opaque: Set<string>; attributed: string[] }> {
  const marks = await layer.marks([...all.map(({ at }) => at), ...all.map(({ place }) => place)]);
  const isOther = (index: number): boolean =>
    marks[index]?.attributes !== (all[index]?.isInBoth ? marks[all.length + index]?.attributes : '');
  return {
    opaque: new Set(
      all.flatMap(({ at, isInBoth }, index) => (isInBoth && marks[index]?.isOpaque ? [at] : [])),
    ),
    attributed: all.flatMap(({ place }, index) => (isOther(index) ? [place] : [])),
  };
}

function addFolders(upper: string, path: string, found: FolderOfLayer[], modes: Map<string, number>): void {
  for (const entry of entriesOf(upper, modes)) {
    const [at, place] = [join(upper, entry.name), join(path, entry.name)];
    // One whose name is not UTF-8 cannot be found by what is read of it.
    if (!entry.isDirectory() || isTooLong(at) || !statsAt(at)) continue;
    found.push({ at, place, isInBoth: statsAt(place)?.isDirectory() === true });
    addFolders(at, place, found, modes);
  }
}

/** In bytes, with the longest name that may come behind it. */
const longestPath = 4095 - 256;
const isTooLong = (path: string): boolean => Buffer.byteLength(path) > longestPath;

/** A command can close a folder. In its layer it is opened, to be read; it is closed again where it lands. */
function entriesOf(upper: string, modes: Map<string, number>): Dirent[] {
  if (!isOpenFolder(upper, true)) {
    modes.set(upper, lstatSync(upper).mode & 0o7777);
    reopen(upper);
  }
  const entries = readdirSync(upper, { withFileTypes: true });
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}

const modeOf = (upper: string, { modes }: Reading): number =>
  modes.get(upper) ?? lstatSync(upper).mode & 0o7777;

/** Reads a folder of the layer. `adds` is true if it adds to the one at `path`. */
async function readFolder(upper: string, path: string, adds: boolean, reading: Reading): Promise<void> {
  await reading.turn();
  const entries = entriesOf(upper, reading.modes);
  if (!adds) removeOthers(path, new Set(entries.map(({ name }) => name)), reading);
  for (const { name } of entries) {
    const [at, place] = [join(upper, name), join(path, name)];
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats) await readEntry(at, place, stats, reading);
    else reading.unnamed.push(place);
  }
}

async function readEntry(at: string, path: string, stats: Stats, reading: Reading): Promise<void> {
  const below = statsAt(path);
  if (stats.isDirectory()) {
    if (isTooLong(at)) return void reading.tooDeep.push(path);
    if (below && !below.isDirectory()) removed(path, below, reading);
    addFolder(path, below, modeOf(at, reading), reading);
    const adds = below?.isDirectory() === true && !reading.opaque.has(at);
    await readFolder(at, path, adds, reading);
  } else if (stats.isFile() || stats.isSymbolicLink()) {
    if (below?.isDirectory()) removed(path, below, reading);
    const before = below?.isFile() || below?.isSymbolicLink() ? below : undefined;
    const isGone = !below && reading.hadBefore(path);
    reading.files.push({ path, before, after: { at, stats }, ...(isGone && { isGone }) });
  } else if (isRemoval(stats)) {
    if (below) removed(path, below, reading);
  } else {
    if (below) removed(path, below, reading);
    reading.dropped.push(path);
  }
}

/** The kernel marks what was removed so; no command can make such a device. */
const isRemoval = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

function addFolder(path: string, below: Stats | undefined, after: number, { folders }: Reading): void {
  const before = below?.isDirectory() ? below.mode & 0o7777 : null;
  if (before !== after) folders.push({ path, before, after });
}

/** Adds what is below a folder that was replaced, but for the names that it has again. */
function removeOthers(path: string, kept: ReadonlySet<string>, reading: Reading): void {
  if (!statsAt(path)?.isDirectory()) return;
  for (const name of readdirSync(path)) {
    const place = join(path, name);
    const stats = kept.has(name) ? undefined : statsAt(place);
    if (stats) removed(place, stats, reading);
  }
}

function removed(path: string, stats: Stats, reading: Reading): void {
  if (!stats.isDirectory()) {
    // A pipe or a socket that somebody else has there is not looked at any closer.
    reading.files.push({ path, before: stats, after: undefined });
    return;
  }
  reading.folders.push({ path, before: stats.mode & 0o7777, after: null });
  removeOthers(path, new Set(), reading);
}
