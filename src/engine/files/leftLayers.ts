/** Remembers on the disk which commands write into a layer, so that the next start can say which of them were cut off. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeAll } from './closedFolder.ts';
import { jsonLine } from './jsonLines.ts';
import { isOwnerRunning, type Owned, ownerHere } from './liveProcess.ts';
import { readText } from './regularFile.ts';

/** Returns the folder of all layers. */
export const layersIn = (dataDir: string): string => join(dataDir, 'box', 'layers');

/** What the folder of a layer says of it. */
interface LayerNote extends Owned {
  /** The working folder. */
  root: string;
}

/** Notes in the folder of a layer whose it is. Throws the error of the file system. */
export function noteLayer(own: string, root: string): void {
  const note: LayerNote = { pid: process.pid, owner: ownerHere(), root };
  writeFileSync(join(own, 'owner.json'), JSON.stringify(note), { mode: 0o600 });
}

/** Notes there that the layer is landing from now on. Throws the error of the file system. */
export const noteLanding = (own: string): void => writeFileSync(join(own, 'landing'), '', { mode: 0o600 });

/** Takes back what was noted: nothing of the layer is missed from now on. Never throws. */
export function forgetLayer(own: string): void {
  try {
    rmSync(join(own, 'owner.json'), { force: true });
  } catch {
    // Then the next start says that it was cut off.
  }
}

/** Removes the folder of a layer. In it, a path can be longer than the system takes at once. Throws the error of the file system. */
export function removeLayer(own: string): void {
  try {
    removeAll(own);
  } catch {
    execFileSync('/bin/rm', ['-rf', '--', own], { stdio: 'ignore', env: {} });
  }
}

/** A layer whose command was cut off. */
export interface LeftLayer {
  root: string;
  /** Whether some of it may be in its place. Otherwise nothing is. */
  isLanding: boolean;
}

/** Removes the layers that ended processes have left. Returns those into which something was written, each once. Never throws. */
export function dropLeftLayers(dataDir: string): LeftLayer[] {
  let names: string[] = [];
  try {
    names = readdirSync(layersIn(dataDir));
  } catch {
    return [];
  }
  return names.flatMap(name => {
    const own = join(layersIn(dataDir), name);
    try {
      const note = noteIn(own);
      // Another process may be making it.
      if (!note && Date.now() - statSync(own).mtimeMs < madeWithin) return [];
      if (note && isOwnerRunning(note)) return [];
      const isLanding = existsSync(join(own, 'landing'));
      const isFilled =
        isLanding || readdirSync(own).some(each => /^upper/.test(each) && holdsAny(join(own, each)));
      removeLayer(own);
      return note && isFilled ? [{ root: note.root, isLanding }] : [];
    } catch {
      // Another process may remove it as well.
      return [];
    }
  });
}

/** In milliseconds. */
const madeWithin = 60 * 60 * 1000;

function noteIn(own: string): LayerNote | undefined {
  try {
    return jsonLine(readText(join(own, 'owner.json')), value => Object(value) as LayerNote);
  } catch {
    return undefined;
  }
}

const holdsAny = (folder: string): boolean => readdirSync(folder).length > 0;
