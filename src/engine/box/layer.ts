/**
 * The layer of one command: what it writes into the working folder lands there first, and the folder itself stays as it is. The kernel
 * makes it (overlayfs) in namespaces that the commands of a conversation share. Bubblewrap 0.8 cannot, so it is mounted before.
 */
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, rmdirSync, statfsSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { forgetLayer, layersIn, noteLanding, noteLayer, removeLayer } from '../files/leftLayers.ts';
import { isInside, realPlace, statsAt } from '../files/paths.ts';
import { readText } from '../files/regularFile.ts';
import type { CommandLayer } from '../tools/tool.ts';
import { inSpaces, type KeptSpaces, type Programs } from './keptSpaces.ts';

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
export interface MadeLayer
  extends Omit<CommandLayer, 'links' | 'repositories' | 'hadBefore' | 'marks' | 'landing' | 'drop'> {
  /** Mounts it. Throws TelosError `config` if that cannot be done. */
  mount(): Promise<void>;
  /** Called when a command gets it, which may be long after it was made. Throws what `makeLayer` throws. */
  begin(): void;
  /** Returns where bubblewrap finds a folder of the layer. Undefined for one that has none. */
  mergedAt(root: string): string | undefined;
  /** Takes it from all processes that may still be in it. Throws the error of the file system. */
  unmount(): void;
  /** Notes that it is landing. Throws the error of the file system. */
  landing(): void;
  /** Called when its command has ended: files left in it no longer mean that the command was cut off. Never throws. */
  forget(): void;
  /** Removes it, with all that has not landed. Throws the error of the file system. */
  remove(): Promise<void>;
  /** The same at once. Never throws. */
  removeNow(): void;
}

/**
 * Makes a layer over the folders, which are real and absolute, the working folder first. Throws the error of the file system, and an
 * Error with a sentence if the layer would lie in one of the folders, or if another disk is mounted in one.
 */
export function makeLayer(
  dataDir: string,
  roots: readonly string[],
  spaces: Pick<KeptSpaces, 'mount' | 'unmount'>,
): MadeLayer {
  const folders = layersIn(dataDir);
  makeOwnFolders(join(dataDir, 'box'), folders);
  const own = join(folders, randomUUID());
  for (const root of roots) refuseRoot(root, own);
  mkdirSync(own, { mode: 0o700 });
  noteLayer(own, roots[0] ?? '');
  const uppers = roots.map((root, at) => {
    symlinkSync(root, join(own, `lower${at}`));
    for (const name of ['upper', 'work', 'merged']) mkdirSync(join(own, `${name}${at}`), { mode: 0o700 });
    return { path: root, upper: join(own, `upper${at}`) };
  });
  const merged = roots.map((_root, at) => join(own, `merged${at}`));
  const layer: MadeLayer = {
    roots: uppers,
    begun: 0,
    mount: () => spaces.mount(own, roots.length),
    begin() {
      for (const { path, upper } of uppers) {
        refuseRoot(path, own);
        // What is at the top of a layer has the mode of its own folder there.
        chmodSync(upper, statSync(path).mode & 0o7777);
      }
      // After each change that was made before, by the clock of the disks.
      chmodSync(own, 0o700);
      layer.begun = statSync(own).ctimeMs;
    },
    mergedAt: root => merged[roots.indexOf(root)],
    unmount() {
      // Removing a folder here also unmounts it in every other namespace.
      for (const each of merged) rmdirSync(each);
    },
    landing: () => noteLanding(own),
    forget: () => forgetLayer(own),
    async remove() {
      await spaces.unmount(own, roots.length);
      removeLayer(own);
    },
    removeNow() {
      try {
        removeLayer(own);
      } catch {
        // The next start tries again.
      }
    },
  };
  layer.begin();
  return layer;
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
 * Returns whether layers work in `dataDir`, after one was really made and read there. None does with an old kernel, a file system that
 * carries none, or no right to mount.
 */
export const carriesLayers = (
  programs: Programs,
  dataDir: string | undefined,
  starts: (spaces: readonly string[], folder: string) => Promise<boolean>,
): Promise<boolean> => inSpaces(programs, spaces => isReplaced(spaces, dataDir ?? tmpdir(), starts));

/** Makes a layer, has a box replace a folder in it, and reads that. Never throws. */
async function isReplaced(
  spaces: Parameters<Parameters<typeof inSpaces>[1]>[0],
  dataDir: string,
  starts: (spaces: readonly string[], folder: string) => Promise<boolean>,
): Promise<boolean> {
  const trial = join(dataDir, `layer-trial-${randomUUID()}`);
  try {
    makeOwnFolders(dataDir, trial, join(trial, 'work'), join(trial, 'work/old'));
    writeFileSync(join(trial, 'work/old/file'), '');
    const layer = makeLayer(`${trial}-data`, [join(trial, 'work')], spaces);
    await layer.mount();
    const entered = spaces.files({ network: false, mounts: true });
    if (!(await starts(entered, layer.mergedAt(join(trial, 'work')) ?? ''))) return false;
    const [marks] = await spaces.marks([join(layer.roots[0]!.upper, 'old')]);
    return marks?.isOpaque === true;
  } catch {
    return false;
  } finally {
    for (const path of [trial, `${trial}-data`]) removeLayer(path);
  }
}
