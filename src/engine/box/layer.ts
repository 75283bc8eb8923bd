/**
 * The layer of one command: what it writes into the working folder lands there first, and the folder itself stays as it is. The kernel
 * makes it (overlayfs) in namespaces that the commands of a conversation share. Bubblewrap 0.8 cannot, so `mount` does it before.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, rmdirSync, statfsSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { layersIn, noteLanding, noteLayer, removeLayer } from '../files/leftLayers.ts';
import { isInside, realPlace, statsAt } from '../files/paths.ts';
import { readText } from '../files/regularFile.ts';
import { findProgram, type ProgramPlaces } from '../tools/programPath.ts';
import type { CommandLayer } from '../tools/tool.ts';
import { inSpaces, type KeptSpaces } from './keptSpaces.ts';

/** The programs that make a layer and tell how it was left. Absolute paths. */
export interface LayerPrograms {
  mount: string;
  tar: string;
}

/** File systems over which the kernel makes a layer, by its number for them: ext, xfs, btrfs, memory, overlay, zfs, f2fs and bcachefs. */
const layered = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010, 0xca451a4e,
]);

/**
 * Whether a layer can be made over the folder, of which a part may not be there yet: its file system carries one, no other is mounted in it,
 * and Telos's data is elsewhere.
 */
export function carriesLayer(folder: string, dataDir: string): boolean {
  const data = realPlace(dataDir) ?? dataDir;
  const root = realPlace(folder) ?? folder;
  try {
    if (isInside(root, data) || mountedBelow(root) !== undefined || !isOwn(existingPart(root))) return false;
    return layered.has(statfsSync(existingPart(root)).type);
  } catch {
    return false;
  }
}

/** In the namespaces of a layer there is one user and one group: in a folder of others, nothing could be written. */
function isOwn(folder: string): boolean {
  const { uid, gid } = statSync(folder);
  return uid === process.getuid?.() && gid === process.getgid?.();
}

const existingPart = (path: string): string =>
  statsAt(path) || dirname(path) === path ? path : existingPart(dirname(path));

/** A layer that is made for a command. */
export interface MadeLayer extends Omit<CommandLayer, 'links' | 'repositories' | 'hadBefore'> {
  /** Mounts it. Throws TelosError `config` if that cannot be done. */
  mount(spaces: Pick<KeptSpaces, 'mount'>): Promise<void>;
  /** Returns where bubblewrap finds a folder of the layer. Undefined for one that has none. */
  mergedAt(root: string): string | undefined;
}

/**
 * Makes a layer over the folders, which are real and absolute, the working folder first. Throws the error of the file system, and an
 * Error with a sentence if the layer would lie in one of the folders, or if another disk is mounted in one.
 */
export function makeLayer(tar: string, dataDir: string, roots: readonly string[]): MadeLayer {
  const folders = layersIn(dataDir);
  makeOwnFolders(join(dataDir, 'box'), folders);
  const own = join(folders, randomUUID());
  for (const root of roots) refuseRoot(root, own);
  mkdirSync(own, { mode: 0o700 });
  noteLayer(own, roots[0] ?? '');
  const uppers = roots.map((root, at) => {
    symlinkSync(root, join(own, `lower${at}`));
    for (const name of ['upper', 'work', 'merged']) mkdirSync(join(own, `${name}${at}`), { mode: 0o700 });
    // What is at the top of a layer has the mode of its own folder there.
    chmodSync(join(own, `upper${at}`), statSync(root).mode & 0o7777);
    return { path: root, upper: join(own, `upper${at}`) };
  });
  const merged = roots.map((_root, at) => join(own, `merged${at}`));
  return {
    roots: uppers,
    // After each change that was made before, by the clock of the disks.
    begun: statSync(join(own, 'work0')).ctimeMs,
    opaque: folders => opaqueAmong(tar, folders),
    landing() {
      // Removing a folder here also unmounts it in every other namespace.
      for (const each of merged) rmdirSync(each);
      noteLanding(own);
    },
    drop: async () => removeLayer(own),
    mount: spaces => spaces.mount(own, roots.length),
    mergedAt(root) {
      return merged[roots.indexOf(root)];
    },
  };
}

function refuseRoot(root: string, own: string): void {
  if (isInside(root, own)) throw new Error(`${root} contains the folder in which commands write, ${own}.`);
  const mounted = mountedBelow(root);
  if (mounted !== undefined) throw new Error(`${mounted} is another file system, mounted in ${root}.`);
}

/** Returns where another file system is mounted below a folder. A layer would show what lies under it. */
function mountedBelow(root: string): string | undefined {
  return readText('/proc/self/mountinfo')
    .split('\n')
    .map(line =>
      (line.split(' ')[4] ?? '').replace(/\\(\d{3})/g, (_all, code: string) =>
        String.fromCharCode(Number.parseInt(code, 8)),
      ),
    )
    .find(place => place !== root && place !== '' && isInside(root, place));
}

/**
 * Returns those of the folders of a layer that replace the folder below them in place of adding to it. Node cannot read the mark of the
 * kernel. Throws an Error if it cannot be read.
 */
async function opaqueAmong(tar: string, folders: readonly string[]): Promise<Set<string>> {
  if (folders.length === 0) return new Set();
  const args = [
    '--create',
    '--format=pax',
    '--numeric-owner',
    '--xattrs',
    '--xattrs-include=user.overlay.opaque',
    '--no-recursion',
  ];
  const archive = await new Promise<Buffer>((done, fail) => {
    const options = { encoding: 'buffer', env: { LC_ALL: 'C' }, maxBuffer: 512 * 1024 * 1024 } as const;
    const child = execFile(
      tar,
      [...args, '-P', '--null', '--verbatim-files-from', '-T', '-', '-f', '-'],
      options,
      (error, stdout) => (error ? fail(error) : done(stdout)),
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(folders.map(folder => `${folder}\0`).join(''));
  });
  return opaqueIn(archive, folders);
}

/** In bytes, the unit of an archive. */
const block = 512;

/** Each folder has a header of its own in the archive, in the order in which they were named, after its marks if it has some. */
function opaqueIn(archive: Buffer, folders: readonly string[]): Set<string> {
  const found = new Set<string>();
  let [marks, at] = ['', 0];
  const waiting = [...folders];
  while (at + block <= archive.length && archive[at] !== 0) {
    const kind = String.fromCharCode(archive[at + 156] ?? 0);
    const size = Number.parseInt(archive.toString('latin1', at + 124, at + 135), 8) || 0;
    const content = archive.toString('latin1', at + block, at + block + size);
    if (kind === 'x') marks = content;
    else if (kind === '5') {
      const folder = waiting.shift();
      if (folder !== undefined && isOpaque(marks)) found.add(folder);
      marks = '';
    }
    at += block + Math.ceil(size / block) * block;
  }
  if (waiting.length > 0) throw new Error('The layer of the command could not be read.');
  return found;
}

/** Each mark begins with its own length; a name among them may hold anything. */
function isOpaque(marks: string): boolean {
  for (let at = 0; at < marks.length; ) {
    const length = Number.parseInt(marks.slice(at), 10);
    if (!(length > 0)) return false;
    const [, name, value] = /^\d+ ([^=]*)=([\s\S]*)\n$/.exec(marks.slice(at, at + length)) ?? [];
    if (name === 'SCHILY.xattr.user.overlay.opaque') return /^[yx]/.test(value ?? '');
    at += length;
  }
  return false;
}

/**
 * Returns the programs with which layers work in `dataDir`, after one was really made and read there; null if none works: an old kernel, a
 * file system that carries no layer, or no right to mount.
 */
export async function findLayers(
  places: ProgramPlaces,
  dataDir: string | undefined,
  bubblewrap: string,
  starts: (words: readonly string[], folder: string) => Promise<boolean>,
): Promise<LayerPrograms | null> {
  const [mount, tar] = ['mount', 'tar'].map(name => findProgram(name, places));
  if (mount === undefined || tar === undefined) return null;
  const isMade = await inSpaces(bubblewrap, mount, spaces =>
    isReplaced(spaces, tar, dataDir ?? tmpdir(), starts),
  );
  return isMade ? { mount, tar } : null;
}

/** Makes a layer, has a box replace a folder in it, and reads that. Never throws. */
async function isReplaced(
  spaces: Parameters<Parameters<typeof inSpaces>[2]>[0],
  tar: string,
  dataDir: string,
  starts: (words: readonly string[], folder: string) => Promise<boolean>,
): Promise<boolean> {
  const trial = join(dataDir, `layer-trial-${randomUUID()}`);
  try {
    makeOwnFolders(dataDir, trial, join(trial, 'work'), join(trial, 'work/old'));
    writeFileSync(join(trial, 'work/old/file'), '');
    const layer = makeLayer(tar, `${trial}-data`, [join(trial, 'work')]);
    await layer.mount(spaces);
    const words = spaces.words({ network: false, mounts: true });
    if (!(await starts(words, layer.mergedAt(join(trial, 'work')) ?? ''))) return false;
    const replaced = join(layer.roots[0]!.upper, 'old');
    return (await layer.opaque([replaced])).has(replaced);
  } catch {
    return false;
  } finally {
    for (const path of [trial, `${trial}-data`]) removeLayer(path);
  }
}
