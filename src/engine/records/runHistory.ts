/** Lists, searches, reads, names, follows and deletes stored runs. */

import { type Stats, statSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { AttachedName } from '@telos/protocol/attachment';
import type { Message, RunEvent } from '@telos/protocol/run';
import { beginningOf, sentence } from '@telos/protocol/text';
import { reasonOf, TelosError } from '../core/errors.ts';
import { appendLine, linesFrom, readLines } from '../files/jsonLines.ts';
import { loadRegularFile } from '../files/regularFile.ts';
import { deleteAttachments, readAttachments, type StoredAttachments } from './runAttachments.ts';
import { parseLine, runPath, runsFolder } from './runFile.ts';
import {
  isEvent,
  type RunSummary,
  readSummary,
  runOf,
  type StoredRun,
  textHolds,
  titleOf,
} from './runSummary.ts';
import { messagesFrom, withoutCutImages } from './transcript.ts';

/** A conversation, as its latest run had it. */
export interface KeptConversation {
  id: string;
  title: string;
  /** In their order. Runs that another one replaced are left out. */
  runs: readonly StoredRun[];
  skippedLines: number;
}

/** Number of files read before other work gets its turn. */
const slice = 64;

export class RunHistory {
  readonly #dataDir: string;
  /** By file, with a stamp that shows whether the file has changed. */
  readonly #known = new Map<string, { stamp: string; summary: RunSummary | undefined }>();
  /** Files in the folder of the runs that the latest `list` could not read. */
  unread: readonly string[] = [];

  /** Creates the history without reading anything. */
  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /**
   * Returns every run, the newest first, or none if the folder is missing. Files that are not runs are left out, and named in `unread`.
   * Throws the error of the file system about the folder.
   */
  async list(): Promise<readonly RunSummary[]> {
    const folder = runsFolder(this.#dataDir);
    const names = (await listed(folder)).filter(name => name.endsWith('.jsonl'));
    const summaries: RunSummary[] = [];
    const files = new Set<string>();
    const unread: string[] = [];
    for (const [index, name] of names.entries()) {
      if (index % slice === slice - 1) await new Promise(resolve => setImmediate(resolve));
      const file = join(folder, name);
      files.add(file);
      const summary = this.#summary(file);
      if (summary) summaries.push(summary);
      // A run of which nothing could be stored has an empty file, and one that was deleted meanwhile none.
      else if (hasContent(file)) unread.push(file);
    }
    this.unread = unread;
    for (const file of this.#known.keys()) if (!files.has(file)) this.#known.delete(file);
    return summaries.sort(newestFirst);
  }

  /** Returns the runs of `list` that still belong to their conversations: the person has not restored one to before them. */
  async shown(): Promise<readonly RunSummary[]> {
    const all = await this.list();
    const byId = new Map(all.map(run => [run.runId, run]));
    return all.filter(run => !isAside(chainBehind(run, byId)));
  }

  /** Returns the runs whose id begins with the prefix. An empty prefix returns all. */
  async find(idPrefix: string): Promise<readonly RunSummary[]> {
    return (await this.list()).filter(({ runId }) => runId.startsWith(idPrefix));
  }

  /** Throws TelosError `config` if there is no such run, or if its file cannot be read. */
  async read(runId: string): Promise<StoredRun> {
    const file = this.#file(runId);
    let bytes: Buffer;
    try {
      bytes = await loadRegularFile(file);
    } catch (error) {
      throw gone(runId, error);
    }
    const run = runOf(file, bytes);
    if (!run)
      throw new TelosError('config', [
        sentence('{0} is not the file of a run, so it cannot be shown.', file),
      ]);
    return run;
  }

  /**
   * Returns the conversation of a run. It ends with the latest run that came after this one and still belongs to it, or with `upTo`
   * itself if given. A deleted run ends the way back. Throws the errors of `read`.
   */
  async conversation(runId: string, upTo?: string): Promise<KeptConversation> {
    const { summary } = await this.read(upTo ?? runId);
    const all = await this.list();
    const members = all.filter(({ conversation }) => conversation === summary.conversation);
    // One that has branched off another begins with runs of that one.
    const byId = new Map(all.map(run => [run.runId, run]));
    const own = chainBehind(summary, byId);
    // A request that was sent again in other words has a latest run of its own.
    const later = members
      .map(member => chainBehind(member, byId))
      .find(runs => runs.includes(own.at(-1) ?? summary) && (isAside(own) || !isAside(runs)));
    const chain = upTo === undefined ? (later ?? own) : own;
    const runs: StoredRun[] = [];
    for (const { runId: id } of chain) runs.push(await this.read(id));
    const isOwn = ({ conversation }: RunSummary): boolean => conversation === summary.conversation;
    const named = members.find(({ title }) => title) ?? chain.find(isOwn) ?? summary;
    return {
      id: summary.conversation,
      title: titleOf(named),
      runs: withAllMessages(runs),
      skippedLines: runs.reduce((sum, run) => sum + run.skippedLines, 0),
    };
  }

  /**
   * Yields the runs that contain all the words in their title, request, skill or texts, the newest first. Ends early if the
   * signal aborts. Tool results are not searched.
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

  /** Names a run. An empty title removes the name. Throws TelosError `config` if the run is still running or is missing. */
  async rename(runId: string, title: string): Promise<void> {
    const { file, outcome } = (await this.read(runId)).summary;
    // A list reads only the two ends of the file, and this one is still growing.
    if (outcome === 'running')
      throw new TelosError('config', [
        sentence('This run is still active.'),
        sentence('Rename it when it has ended.'),
      ]);
    appendLine(
      file,
      JSON.stringify({ type: 'title', title: beginningOf(title.replace(/\s+/g, ' ').trim(), maxTitle) }),
    );
  }

  /** Throws TelosError `config` if the run is still running, or if its file cannot be deleted. */
  async delete(runId: string): Promise<void> {
    const file = this.#file(runId);
    if (this.#summary(file)?.outcome === 'running')
      throw new TelosError('config', [
        sentence('This run is still active.'),
        sentence('Stop it first, then delete it.'),
      ]);
    try {
      await deleteAttachments(this.#dataDir, runId);
      await rm(file);
    } catch (error) {
      throw gone(runId, error);
    }
    this.#known.delete(file);
  }

  /**
   * Returns the attachments of a run's request. `names` come from the run's start; all of them are missing if nothing is stored.
   */
  attachments(runId: string, names: readonly AttachedName[]): Promise<StoredAttachments> {
    return readAttachments(this.#dataDir, runId, names);
  }

  #file(runId: string): string {
    const file = runPath(this.#dataDir, runId);
    if (!file) throw new TelosError('config', [sentence("'{0}' is not the id of a run.", runId)]);
    return file;
  }

  /** Returns the summary from memory if the file is unchanged and the run is over. */
  #summary(file: string): RunSummary | undefined {
    try {
      const stamp = stampOf(statSync(file));
      const known = this.#known.get(file);
      if (known?.stamp === stamp && known.summary?.outcome !== 'running') return known.summary;
      const summary = readSummary(file);
      this.#known.set(file, { stamp, summary });
      return summary;
    } catch {
      // Deleted in the meantime, or not readable.
      return undefined;
    }
  }
}

/** Returns the run and those before it, the first one first. */
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

/** What another conversation leaves out stays in one that has branched off it. */
const isAside = (chain: readonly RunSummary[]): boolean =>
  chain.some(run => run.isAside && run.conversation === chain.at(-1)?.conversation);

/** Notes whether runs are left out of their conversation, with all that came after them. Leaves out a run that is not stored. */
export function setAside(dataDir: string, runIds: readonly string[], isAside: boolean): void {
  for (const runId of runIds) {
    const file = runPath(dataDir, runId);
    try {
      if (file !== undefined) appendLine(file, JSON.stringify({ type: 'set_aside', isAside }));
    } catch {
      // Not stored, or it cannot be written. The files are restored all the same.
    }
  }
}

/** Maximum length of a title. In characters. */
const maxTitle = 200;

function hasContent(file: string): boolean {
  const about = statSync(file, { throwIfNoEntry: false });
  return about !== undefined && (!about.isFile() || about.size > 0);
}

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
    return new TelosError('config', [
      sentence('The run {0} was not found; it may have been deleted.', runId),
    ]);
  const why = reasonOf(error);
  return new TelosError('config', [sentence('The file of the run {0} could not be opened: {1}', runId, why)]);
}

/** Puts all messages up to the end of each run into its `run_end`. */
function withAllMessages(runs: readonly StoredRun[]): StoredRun[] {
  let said: readonly Message[] = [];
  return runs.map(run => {
    // A run that began again was given no messages. A run that never reached a model has added none.
    if (run.messages.length > 0) said = run.earlier > 0 ? [...said, ...run.messages] : run.messages;
    const messages = run.messages.length > 0 ? [...said] : [];
    const events = run.events.map(event => (event.type === 'run_end' ? { ...event, messages } : event));
    return { ...run, events };
  });
}

export interface FollowOptions {
  /** All messages from before the run. They are added back to its end. */
  said: readonly Message[];
  /** False while the run is not being viewed. The file is then read less often. */
  isWatched(): boolean;
  /** Pause between two reads of the file. In milliseconds. */
  pause?: number;
}

const watchedPause = 300;
/** Factor for the pause while the run is not viewed. Also the number of reads between two checks that the process is alive. */
const longPauses = 8;

/**
 * Follows a run of another process by reading its file as it grows; nothing is sent to that process. Yields the events written after
 * the part that `run` was read from, up to its end. If the process ended without writing an end,
 * yields an end that is marked as interrupted. Ends without an event if the signal aborts or the file is missing.
 */
export async function* followedRun(
  run: StoredRun,
  { said, isWatched, pause = watchedPause }: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const { file } = run.summary;
  let before = run.earlier > 0 ? said : [];
  const events = [...run.events];
  const own = [...run.messages];
  let position = run.readTo;
  for (let looks = 1; !signal.aborted; looks++) {
    // Checked before the read, so that everything the process wrote before it ended is still read.
    const isGone = looks % longPauses === 0 && !mayGoOn(file);
    const known = await stat(file).catch(() => undefined);
    if (!known || known.size < position) return;
    const { text, read } = await linesFrom(file, position, known.size).catch(() => nothing);
    position += read;
    for (const line of readLines(text, parseLine).values) {
      if (line.type === 'messages') {
        before = line.earlier > 0 ? said : [];
        for (const message of line.messages) own.push(message);
        continue;
      }
      if (!isEvent(line)) continue;
      events.push(line);
      if (line.type !== 'run_end') yield line;
      else return yield { ...line, messages: own.length > 0 ? withoutCutImages([...before, ...own]) : [] };
    }
    if (isGone) {
      const messages = own.length > 0 ? withoutCutImages(messagesFrom(before, events, own)) : [];
      return yield interruptedEnd(run, events, messages, known);
    }
    await wait(isWatched() ? pause : pause * longPauses, undefined, { signal }).catch(() => undefined);
  }
}

const nothing = { text: '', read: 0 };

function mayGoOn(file: string): boolean {
  try {
    return readSummary(file)?.outcome === 'running';
  } catch {
    return false;
  }
}

function interruptedEnd(
  { summary }: StoredRun,
  events: readonly RunEvent[],
  messages: Message[],
  { mtimeMs }: Stats,
): RunEvent {
  const rounds = events.reduce(
    (most, event) => (event.type === 'usage' ? Math.max(most, event.round) : most),
    0,
  );
  return {
    type: 'run_end',
    outcome: 'cancelled',
    interrupted: true,
    rounds,
    toolCalls: events.filter(({ type }) => type === 'tool_end').length,
    durationMs: Math.max(0, Math.round(mtimeMs - Date.parse(summary.startedAt)) || 0),
    messages,
  };
}
