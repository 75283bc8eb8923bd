/**
 * Makes a layer for the next command of a box while the model thinks, and removes those of earlier ones: the kernel takes longer for either
 * than for starting a program.
 */
import { statSync } from 'node:fs';
import type { KeptSpaces } from './keptSpaces.ts';
import { type MadeLayer, makeLayer } from './layer.ts';

/** A layer, and when it is mounted. */
export interface MountedLayer {
  layer: MadeLayer;
  mounted: Promise<void>;
}

interface Ready extends MountedLayer {
  /** Of what it was made: another one is needed when that has changed. */
  stamp: string;
  spaces: KeptSpaces;
}

export class ReadyLayers {
  #ready: Ready | undefined;
  readonly #left = new Set<MadeLayer>();
  #isClosed = false;

  /** Returns a layer over the folders, which no command has had. Throws what `makeLayer` throws; `mounted` may be rejected. */
  take(dataDir: string, roots: readonly string[], spaces: KeptSpaces): MountedLayer {
    const ready = this.#ready;
    this.#ready = undefined;
    this.#isClosed = false;
    if (ready?.stamp === stampOf(roots) && ready.spaces.isSame(spaces)) {
      try {
        ready.layer.begin();
        return ready;
      } catch {
        // A new one tells why.
      }
    }
    if (ready) this.leave(ready.layer);
    return made(dataDir, roots, spaces);
  }

  /** Makes the next one. Nobody waits for it, so its problems are those of the next command. */
  prepare(dataDir: string, roots: readonly string[], spaces: KeptSpaces): void {
    if (this.#ready || this.#isClosed) return;
    try {
      const next = made(dataDir, roots, spaces);
      this.#ready = { ...next, spaces, stamp: stampOf(roots) };
    } catch {
      // It is said when one is needed.
    }
  }

  /** Removes a layer when there is time. */
  leave(layer: MadeLayer): void {
    layer.forget();
    this.#left.add(layer);
    void layer
      .remove()
      .catch(() => undefined)
      .finally(() => this.#left.delete(layer));
  }

  /** Removes all of them now, until one is taken again. Never throws. */
  close(): void {
    this.#isClosed = true;
    if (this.#ready) this.#left.add(this.#ready.layer);
    this.#ready = undefined;
    for (const layer of this.#left) layer.removeNow();
    this.#left.clear();
  }
}

function made(dataDir: string, roots: readonly string[], spaces: KeptSpaces): MountedLayer {
  const layer = makeLayer(dataDir, roots, spaces);
  const mounted = layer.mount();
  mounted.catch(() => undefined);
  return { layer, mounted };
}

/** Returns what tells the folders from others in their places. */
function stampOf(roots: readonly string[]): string {
  return roots
    .map(root => {
      const { dev, ino, birthtimeMs } = statSync(root);
      return [root, dev, ino, birthtimeMs].join();
    })
    .join('\0');
}
