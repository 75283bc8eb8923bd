/** The runs that are kept: listed, searched, read again, named and deleted. */

import { type Stats, statSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AttachedName } from '../../protocol/attachment.ts';
import type { Message } from '../../protocol/run.ts';
import { TelosError } from '../errors.ts';
import { appendLine } from './logFile.ts';
import { forgetAlong, type KeptAlong, readAlong } from './runAttachments.ts';
import { runPath, runsFolder } from './runFile.ts';
import { type KeptRun, type RunSummary, readSummary, runOf, textHolds, titleOf } from './runSummary.ts';

/** A conversation, as its latest run had it. */
export interface KeptConversation {
  id: string;
  title: string;
  /** In their order; runs whose place another one took are left out. */
  runs: readonly KeptRun[];
  skippedLines: number;
}

/** Files are looked into so many at a time before others have their turn. */
const slice = 64;

export class RunHistory {
  readonly #dataDir: string;
  /** By file, with what tells that the file is still the same. */
  readonly #known = new Map<string, { stamp: string; summary: RunSummary | undefined }>();

  /** Reads nothing yet. */
  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** Every run, the newest first; none where there is no folder. Files that are no runs are left out. Throws what the file system says of the folder. */
  async list(): Promise<readonly RunSummary[]> {
    const folder = runsFolder(this.#dataDir);
    const names = (await listed(folder)).filter(name => name.endsWith('.jsonl'));
    const summaries: RunSummary[] = [];
    const files = new Set<string>();
    for (const [index, name] of names.entries()) {
      if (index % slice === slice - 1) await new Promise(resolve => setImmediate(resolve));
      const file = join(folder, name);
      files.add(file);
      const summary = this.#summary(file);
      if (summary) summaries.push(summary);
    }
    for (const file of this.#known.keys()) if (!files.has(file)) this.#known.delete(file);
    return summaries.sort(newestFirst);
  }

  /** The runs whose id begins like this; all for an empty text. */
  async find(idPrefix: string): Promise<readonly RunSummary[]> {
    return (await this.list()).filter(({ runId }) => runId.startsWith(idPrefix));
  }

  /** Throws TelosError `config` when there is no such run, or its file cannot be read. */
  async read(runId: string): Promise<KeptRun> {
    const file = this.#file(runId);
    let bytes: Buffer;
    try {
      bytes = await readFile(file);
    } catch (error) {
      throw gone(runId, error);
    }
    const run = runOf(file, bytes);
    if (!run)
      throw new TelosError('config', `${file} does not begin like the file of a run, so it cannot be shown.`);
    return run;
  }

  /**
   * The conversation of a run: the runs behind the latest one that came after it, or behind itself alone where `upTo` names it. A run that was
   * deleted ends the way back. Throws what `read` throws.
   */
  async conversation(runId: string, upTo?: string): Promise<KeptConversation> {
    const { summary } = await this.read(upTo ?? runId);
    const members = (await this.list()).filter(({ conversation }) => conversation === summary.conversation);
    const byId = new Map(members.map(member => [member.runId, member]));
    const own = chainBehind(summary, byId);
    // Sent again in other words, a request has a latest run of its own.
    const later = members
      .map(member => chainBehind(member, byId))
      .find(runs => runs.includes(own.at(-1) ?? summary));
    const chain = upTo === undefined ? (later ?? own) : own;
    const runs: KeptRun[] = [];
    for (const { runId: id } of chain) runs.push(await this.read(id));
    const named = members.find(({ title }) => title) ?? chain[0] ?? summary;
    return {
      id: summary.conversation,
      title: titleOf(named),
      runs: withAllMessages(runs),
      skippedLines: runs.reduce((sum, run) => sum + run.skippedLines, 0),
    };
  }

  /**
   * The runs in whose title, request, skill or texts all the words occur, the newest first, as they are found. Ends early when the signal aborts.
   * What a tool gave back is not looked through.
   */
  async *search(query: string, signal: AbortSignal): AsyncGenerator<RunSummary> {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    for (const summary of await this.list()) {
      if (signal.aborted) return;
      const heading =
        `${titleOf(summary)} ${summary.request} ${summary.agent}:${summary.skill}`.toLowerCase();
      const missing = words.filter(word => !heading.includes(word));
      if (missing.length === 0 || (await textHolds(summary.file, missing))) yield summary;
    }
  }

  /** An empty title takes the name away. Throws TelosError `config` for a run that goes on or is gone. */
  async rename(runId: string, title: string): Promise<void> {
    const { file, outcome } = (await this.read(runId)).summary;
    // The two ends of its file are what a list reads, and it is still growing.
    if (outcome === 'running') throw new TelosError('config', 'This run goes on; name it when it has ended.');
    appendLine(
      file,
      JSON.stringify({ type: 'title', title: title.replace(/\s+/g, ' ').trim().slice(0, maxTitle) }),
    );
  }

  /** Throws TelosError `config` for a run that goes on, or when its file cannot be deleted. */
  async delete(runId: string): Promise<void> {
    const file = this.#file(runId);
    if (this.#summary(file)?.outcome === 'running')
      throw new TelosError('config', 'This run goes on; stop it first, then delete it.');
    try {
      await forgetAlong(this.#dataDir, runId);
      await rm(file);
    } catch (error) {
      throw gone(runId, error);
    }
    this.#known.delete(file);
  }

  /** What went along with a run's request; `names` is what its start says. All of it is missing where nothing is kept. */
  along(runId: string, names: readonly AttachedName[]): Promise<KeptAlong> {
    return readAlong(this.#dataDir, runId, names);
  }

  #file(runId: string): string {
    const file = runPath(this.#dataDir, runId);
    if (!file) throw new TelosError('config', `'${runId}' is no id of a run.`);
    return file;
  }

  /** From memory as long as the file is the same and the run is over. */
  #summary(file: string): RunSummary | undefined {
    try {
      const stamp = stampOf(statSync(file));
      const known = this.#known.get(file);
      if (known?.stamp === stamp && known.summary?.outcome !== 'running') return known.summary;
      const summary = readSummary(file);
      this.#known.set(file, { stamp, summary });
      return summary;
    } catch {
      // Deleted in between, or not ours to read.
      return undefined;
    }
  }
}

/** The run and those before it, the first one first. */
function chainBehind(last: RunSummary, byId: ReadonlyMap<string, RunSummary>): RunSummary[] {
  const chain: RunSummary[] = [];
  const seen = new Set<string>();
  for (let next = byId.get(last.runId) ?? last; ; ) {
    chain.unshift(next);
    seen.add(next.runId);
    const before = next.after === undefined ? undefined : byId.get(next.after);
    if (!before || seen.has(before.runId)) return chain;
    next = before;
  }
}

/** Characters of a title. */
const maxTitle = 200;

const stampOf = ({ size, mtimeMs, ino }: Stats): string => `${size} ${mtimeMs} ${ino}`;

const newestFirst = (one: RunSummary, other: RunSummary): number =>
  one.startedAt === other.startedAt
    ? one.runId < other.runId
      ? 1
      : -1
    : one.startedAt < other.startedAt
      ? 1
      : -1;

async function listed(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function gone(runId: string, error: unknown): TelosError {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT')
    return new TelosError('config', `The run ${runId} is not there any more; it may have been deleted.`);
  const why = error instanceof Error ? error.message : String(error);
  return new TelosError('config', `The file of the run ${runId} cannot be reached: ${why}`);
}

/** Each run's end gets back what was said up to there. */
function withAllMessages(runs: readonly KeptRun[]): KeptRun[] {
  let said: readonly Message[] = [];
  return runs.map(run => {
    // One that began anew was given nothing; one that never reached a model has added nothing.
    if (run.messages.length > 0) said = run.earlier > 0 ? [...said, ...run.messages] : run.messages;
    const messages = run.messages.length > 0 ? [...said] : [];
    const events = run.events.map(event => (event.type === 'run_end' ? { ...event, messages } : event));
    return { ...run, events };
  });
}
