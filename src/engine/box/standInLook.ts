/** Describes what a command has written into a folder that the sandbox shows in place of one of the user's. */
import { contentOf, type HomeContent, writtenSince } from '../files/agentHome.ts';
import type { WrittenElsewhere } from '../tools/tool.ts';

export class StandInLook {
  readonly #folder: string;
  readonly #told: Set<string>;
  readonly #before: HomeContent;

  /** `told` holds what was named before, and an empty name once it was said that not all can be. */
  constructor(folder: string, told: Set<string>) {
    this.#folder = folder;
    this.#told = told;
    this.#before = contentOf(folder);
  }

  /** Returns what is new, each once. `except` are mount points. Undefined if that is nothing. */
  written(except: readonly string[]): WrittenElsewhere | undefined {
    const now = contentOf(this.#folder);
    const files = writtenSince(this.#before, now, except).filter(path => !this.#told.has(path));
    const isWhole = (this.#before.isWhole && now.isWhole) || this.#told.has('');
    for (const path of isWhole ? files : ['', ...files]) this.#told.add(path);
    return files.length === 0 && isWhole ? undefined : { folder: this.#folder, files, isWhole };
  }
}
