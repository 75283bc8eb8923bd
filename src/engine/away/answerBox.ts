/**
 * Hands answers from process to process: a bot and a port have one listener on a machine, which also hears what others have asked. A file for each
 * question, in a folder of the user's; who has asked checks the signature.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeOwnFolders, writeOwn } from '../files/atomicWrite.ts';
import { loadText } from '../files/regularFile.ts';
import { idIn, patience } from './ticket.ts';

/** How often a process looks for answers that another one has heard. In milliseconds. */
const lookInterval = 500;

export class AnswerBox {
  readonly #folder: string;
  /** The questions of this process, by id. */
  readonly #open = new Map<string, (token: string) => string>();

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'away');
  }

  /** Hears answers to the question until the signal aborts, whoever receives them. */
  await(id: string, heard: (token: string) => string, signal: AbortSignal): void {
    this.#open.set(id, heard);
    signal.addEventListener('abort', () => this.#open.delete(id), { once: true });
    void this.#watch(id, heard, signal);
  }

  /** Takes what somebody who may answer has sent. Returns what to say; undefined if another process has asked, or if it is no answer. */
  async put(token: string): Promise<string | undefined> {
    const id = idIn(token);
    if (id === undefined) return undefined;
    const heard = this.#open.get(id);
    if (heard) return heard(token);
    makeOwnFolders(this.#folder);
    this.#removeOld();
    await writeOwn(this.#file(id), token);
    return undefined;
  }

  async #watch(id: string, heard: (token: string) => string, signal: AbortSignal): Promise<void> {
    const file = this.#file(id);
    while (!signal.aborted) {
      const token = await loadText(file).catch(() => undefined);
      if (token !== undefined) {
        rmSync(file, { force: true });
        heard(token);
      }
      await delay(lookInterval, undefined, { signal }).catch(() => undefined);
    }
    rmSync(file, { force: true });
  }

  /** Nobody waits for an answer that long. */
  #removeOld(): void {
    for (const name of readdirSync(this.#folder)) {
      const file = join(this.#folder, name);
      const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > patience) rmSync(file, { force: true });
    }
  }

  #file(id: string): string {
    return join(this.#folder, id);
  }
}
