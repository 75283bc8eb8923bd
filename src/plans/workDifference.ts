/** Tells a reviewer what was changed in a folder that need not have Git, by what the runs of a coder have recorded for undo. */

import { relative } from 'node:path';
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
import { type ChangedFile, ChangeStore, unifiedDiff } from '@telos/engine/undo';
import type { RunEvent } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import { longestDiff } from './attemptChanges.ts';

/** In bytes. A longer file is named. */
const longestText = 512 * 1024;

/** A text, null where there is no file, or why its text is not shown. */
type Content = string | null | { note: string };

const notKnown =
  'Commands also worked in the folder directly. What they changed is not in this difference: look at the files.';

/** The difference of one piece of work. Attempts at the same piece add up, since nothing is put aside between them. */
export class WorkDifference {
  readonly #dir: string;
  readonly #closed: readonly string[];
  readonly #changes: ChangeStore;
  #piece: string | undefined;
  /** What was there before the first attempt at the piece, by path. */
  readonly #before = new Map<string, Content>();
  #isPart = false;
  #hasCommands = false;

  /** What is `closed` is left out: absolute paths of files that are not the coder's. */
  constructor(config: Config, dir: string, closed: readonly string[]) {
    this.#dir = dir;
    this.#closed = closed.map(path => realPlace(path) ?? path);
    this.#changes = new ChangeStore(config);
  }

  /** Begins an attempt at a piece. */
  begin(piece: string): void {
    if (piece !== this.#piece) {
      this.#before.clear();
      this.#isPart = false;
    }
    this.#piece = piece;
    this.#hasCommands = false;
  }

  /** Takes note of an event of the coder's run. */
  note(event: RunEvent): void {
    if (event.type !== 'tool_end' || event.name !== 'run_command' || !event.policy) return;
    const { action, rule, boxed } = event.policy;
    if (action === 'deny' || rule === 'run.read-only') return;
    this.#hasCommands = true;
    this.#isPart ||= !boxed;
  }

  /** Returns the difference when the coder's run has ended. */
  async after(runId: string): Promise<string> {
    const [known] = await this.#changes.find(runId);
    const changes = known === undefined ? undefined : await this.#changes.of(known);
    this.#isPart ||= changes ? changes.ranCommands : this.#hasCommands;
    for (const file of changes?.files ?? []) await this.#keep(runId, file);
    const text = await this.#text();
    return this.#isPart ? [text, notKnown].filter(Boolean).join('\n\n') : text;
  }

  async #keep(runId: string, { path, before }: ChangedFile): Promise<void> {
    if (this.#closed.some(one => isInside(one, path)) || this.#before.has(path)) return;
    this.#before.set(path, before && (await this.#oldContent(runId, path, before)));
  }

  async #oldContent(
    runId: string,
    path: string,
    { size, link }: NonNullable<ChangedFile['before']>,
  ): Promise<Content> {
    if (link !== undefined) return `a link to ${link}`;
    const bytes = size > longestText ? undefined : await this.#changes.before(runId, path);
    return bytes ? textOf(bytes) : { note: `Before, it had ${size} bytes.` };
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
