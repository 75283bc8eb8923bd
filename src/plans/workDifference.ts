/** Tells a reviewer what was changed in a folder that need not have Git: looks before a coder works, and again behind it. */

import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Config } from '@telos/engine/config';
import {
  decodeText,
  formOf,
  isInside,
  isSensitive,
  loadRegularFile,
  realPlace,
  statsAt,
} from '@telos/engine/files';
import { bytesPath, type KeptChange, KeptWrites, unifiedDiff, WatchedFolders } from '@telos/engine/undo';
import { beginningOf } from '@telos/protocol/text';
import { longestDiff } from './attemptChanges.ts';
import { checkFolders } from './checks.ts';

/** In bytes. A longer file is named. */
const longestText = 512 * 1024;

/** A text, null where there is no file, or why its text is not shown. */
type Content = string | null | { note: string };

/** The difference of one piece of work. Attempts at the same piece add up, since nothing is put aside between them. */
export class WorkDifference {
  readonly #config: Config;
  readonly #dir: string;
  readonly #closed: readonly string[];
  readonly #watched: WatchedFolders;
  #piece: string | undefined;
  /** What was there before the first attempt at the piece, by path. */
  readonly #before = new Map<string, Content>();

  /** What is `closed` is left out: absolute paths of files that are not the coder's. */
  constructor(config: Config, dir: string, closed: readonly string[]) {
    this.#config = config;
    this.#dir = dir;
    this.#closed = closed.map(path => realPlace(path) ?? path);
    this.#watched = new WatchedFolders(config.dataDir, [config.dataDir, config.configDir]);
  }

  /** Looks at the folder before a coder works. Call what it returns at the end: it returns the difference, or why it is unknown. */
  async watch(piece: string, signal: AbortSignal): Promise<() => Promise<string>> {
    if (piece !== this.#piece) this.#before.clear();
    this.#piece = piece;
    const folder = join(this.#config.dataDir, 'box', `work-${randomUUID()}`);
    const keeper = new KeptWrites(
      folder,
      () => undefined,
      place => this.#watched.begin(place),
    );
    const places = checkFolders(this.#config, this.#dir);
    const env = { ...this.#config.env, HOME: this.#config.home };
    const watch = await keeper.watchCommand({ ...places, env, outside: false, signal });
    return async () => {
      try {
        const changes = await watch?.end();
        await this.#watched.settled();
        if (!changes) return `The difference is not known. ${keeper.takeProblem() ?? ''}`.trim();
        for (const change of changes) await this.#keep(change, folder);
        return await this.#text();
      } finally {
        await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      }
    };
  }

  async #keep({ path, before }: KeptChange, folder: string): Promise<void> {
    if (this.#closed.some(one => isInside(one, path)) || this.#before.has(path)) return;
    this.#before.set(path, before && (await oldContent(before, folder)));
  }

  async #text(): Promise<string> {
    const parts: string[] = [];
    for (const [path, before] of this.#before) {
      const name = relative(realPlace(this.#dir) ?? this.#dir, path);
      const part = differenceOf(name, before, await contentNow(path));
      if (part !== '') parts.push(part);
    }
    const names = parts.map(part => part.slice(0, part.indexOf('\n'))).join('\n');
    const whole = parts.join('\n').trimEnd();
    if (whole.length <= longestDiff) return whole;
    return `${beginningOf(names, longestDiff)}\n\n${beginningOf(whole, longestDiff)}\n[Cut here: the difference has ${whole.length} characters. Read the other files themselves.]`;
  }
}

function differenceOf(name: string, before: Content, after: Content): string {
  const kind = before === null ? 'new' : after === null ? 'removed' : 'changed';
  const heading = `${kind}: ${name}`;
  const note = [before, after].find(one => one !== null && typeof one === 'object');
  if (isSensitive(name))
    return `${heading}\n(Its name says that it holds secrets, so its text is not shown.)\n`;
  if (note) return `${heading}\n(${(note as { note: string }).note})\n`;
  if (before === after) return '';
  return `${heading}\n${unifiedDiff((before as string) ?? '', (after as string) ?? '')}`;
}

async function oldContent(
  { size, sha256, link }: NonNullable<KeptChange['before']>,
  folder: string,
): Promise<Content> {
  if (link !== undefined) return `a link to ${link}`;
  if (sha256 === undefined || size > longestText) return { note: `Before, it had ${size} bytes.` };
  const bytes = await loadRegularFile(bytesPath(folder, sha256)).catch(() => undefined);
  return bytes ? textOf(bytes) : { note: `Before, it had ${size} bytes.` };
}

async function contentNow(path: string): Promise<Content> {
  const stats = statsAt(path);
  if (!stats) return null;
  if (!stats.isFile()) return { note: 'It is a link or no regular file.' };
  if (stats.size > longestText) return { note: `It has ${stats.size} bytes.` };
  const bytes = await loadRegularFile(path).catch(() => undefined);
  return bytes ? textOf(bytes) : { note: 'It cannot be read.' };
}

function textOf(bytes: Buffer): Content {
  const form = formOf(bytes);
  return form ? decodeText(bytes, form) : { note: `It has ${bytes.length} bytes that are not text.` };
}
