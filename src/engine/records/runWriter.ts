/** Writes the file of a run while it goes on: its events, its messages and what they add up to. */

import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { innermost, type Message, type RunEvent, type Usage } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import { reasonOf } from '../core/errors.ts';
import { makeOwnFolders } from '../files/atomicWrite.ts';
import { ownerHere } from '../files/liveProcess.ts';
import { describeFileError } from '../files/paths.ts';
import { mapStrings, type Redactor } from '../redact.ts';
import { type RunAttachments, storeAttachments } from './runAttachments.ts';
import {
  lineOf,
  maxHeaderRequest,
  type RunHeader,
  type RunOrigin,
  runPath,
  runsFolder,
  type TotalsLine,
} from './runFile.ts';
import { joinedDeltas } from './transcript.ts';

/** A run, which goes on while it is recorded. */
export interface RecordedRun {
  readonly request: RecordedRequest;
  /** Messages that the run was given, and those it has added since. `earlier` is the number of the former. */
  readonly messages: readonly Message[];
  readonly earlier: number;
  /** Applied to everything that does not come as an event. */
  readonly redact: Redactor;
  /** The folder of the call. Absolute path. */
  readonly folder?: string;
  /** Set where a limit of the day counts each answer as it comes. */
  readonly countsDay?: boolean;
  /** How long a person was waited for, in milliseconds. It is not the run's time. */
  readonly waited?: { readonly ms: number };
}

/** The parts of a request that are stored with its run. */
export interface RecordedRequest extends Partial<RunAttachments> {
  /** Defaults to `other`. */
  origin?: RunOrigin;
  /** Defaults to a conversation of its own. */
  conversationId?: string;
  parentRunId?: string;
  /** What a plan has it for. */
  step?: { readonly key: string };
}

/** Sums of the events of a run so far. */
export interface RunTotals {
  /** Undefined until the skill is chosen. */
  readonly routed: Omit<TotalsLine, 'type' | 'usage'> | undefined;
  readonly usage: Usage;
}

const notRouted = { agent: '', skill: '', provider: '', model: '', isRecording: false };

/** Interval at which streaming text is written. In milliseconds. */
const textInterval = 1000;
/** Time that small events wait for the ones after them: one write per round instead of five. In milliseconds. */
const eventInterval = 25;
/** Events that are written at once, with everything before them: completed actions and requests for a decision. */
const boundaries: readonly RunEvent['type'][] = ['run_start', 'routed', 'tool_end', 'approval_request'];

/** Writes the run's own file: its events, with neighbouring texts as one, and the messages that it adds. */
export class RunRecorder {
  readonly #run: RecordedRun;
  readonly #dataDir: string;
  #file: RunWriter | undefined;
  /** Consecutive deltas that are not in a line yet. */
  #deltas: RunEvent | undefined;
  #timer: NodeJS.Timeout | undefined;
  #flushAt = 0;
  /** Number of messages of the transcript that are written. */
  #messages: number | undefined;
  #runId = '';
  #storing: Promise<void> | undefined;
  /** Reason why the attachments cannot be stored. */
  #attachmentsProblem: string | undefined;

  /** The run's file is in `<dataDir>/runs`. */
  constructor(run: RecordedRun, dataDir: string) {
    this.#run = run;
    this.#dataDir = dataDir;
  }

  add(event: RunEvent, totals: RunTotals): void {
    if (event.type === 'run_start') this.#open(event);
    const file = this.#file;
    if (!file || /^tool_(?:output|progress)$/.test(innermost(event).type)) return;
    if (event.type === 'text' || event.type === 'reasoning') {
      const joined = joinedDeltas(this.#deltas, event);
      if (!joined) this.#takeDeltas(file);
      this.#deltas = joined ?? event;
      this.#flushIn(textInterval);
      return;
    }
    this.#takeDeltas(file);
    this.#takeMessages(file);
    if (event.type === 'run_end') {
      const { routed = notRouted, usage } = totals;
      file.add(lineOf({ type: 'totals', ...routed, usage }));
    }
    file.add(lineOf(event.type === 'run_end' ? { ...event, messages: [] } : event));
    if (boundaries.includes(event.type)) this.#flush();
    else this.#flushIn(eventInterval);
  }

  /** Resolves when everything is written, or cannot be written. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#file) this.#storeAttachments();
    this.#file?.close();
    await this.#storing;
    if (!this.#file?.problem) this.#file = undefined;
  }

  /** Returns the reason why writing failed, once. */
  takeProblem(): string | undefined {
    const problem = this.#file?.takeProblem() ?? this.#attachmentsProblem;
    if (problem === this.#attachmentsProblem) this.#attachmentsProblem = undefined;
    return problem;
  }

  #open({ runId, startedAt, text }: Extract<RunEvent, { type: 'run_start' }>): void {
    const { origin = 'other', conversationId = runId, parentRunId, step } = this.#run.request;
    const path = runPath(this.#dataDir, runId);
    if (!path || this.#file) return;
    const header: RunHeader = {
      type: 'run',
      version: 1,
      runId,
      conversation: conversationId,
      ...(parentRunId !== undefined && { after: parentRunId }),
      door: origin,
      ...(step && { step: step.key }),
      ...(this.#run.folder !== undefined && { folder: this.#run.folder }),
      startedAt,
      request: beginningOf(text, maxHeaderRequest),
      pid: process.pid,
      owner: ownerHere(),
    };
    this.#runId = runId;
    this.#file = new RunWriter(path, runsFolder(this.#dataDir));
    this.#file.add(lineOf(header));
  }

  /** Schedules a flush, unless an earlier one is already scheduled. */
  #flushIn(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#timer && at >= this.#flushAt) return;
    clearTimeout(this.#timer);
    this.#flushAt = at;
    this.#timer = setTimeout(() => this.#flush(), milliseconds).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#file) return;
    this.#takeDeltas(this.#file);
    this.#file.flush();
  }

  /** Runs only once the transcript begins, because every secret of the run is known by then. */
  #storeAttachments(): void {
    const { request, redact } = this.#run;
    const { attachments = [], selection } = request;
    const all = { attachments, ...(selection && { selection }) };
    this.#storing ??= storeAttachments(this.#dataDir, this.#runId, all, redact.text).catch(error => {
      const why = reasonOf(error);
      this.#attachmentsProblem = `The attachments of this request could not be stored (${why}). Attach them again if you resend it after reloading the window.`;
    });
  }

  #takeDeltas(file: RunWriter): void {
    if (this.#deltas) file.add(lineOf(this.#deltas));
    this.#deltas = undefined;
  }

  #takeMessages(file: RunWriter): void {
    const { request, messages, earlier: given, redact } = this.#run;
    // The messages it was given are stored with the runs before it. If it follows no run, they are stored here.
    const earlier = request.parentRunId === undefined ? 0 : given;
    // The run has no messages of its own yet. The messages it was given are written together with its first one.
    if (messages.length <= given) return;
    const from = this.#messages ?? earlier;
    if (messages.length <= from) return;
    this.#storeAttachments();
    const added = mapStrings(messages.slice(from), redact.text);
    file.add(lineOf({ type: 'messages', earlier, messages: added }));
    this.#messages = messages.length;
  }
}

/** Most that may wait for a disk that accepts no writes. Anything beyond it is dropped. In bytes. */
const maxWaiting = 16 * 1024 * 1024;

/**
 * Appends lines to a file, many with one write. Lines that cannot be written now are tried again with the next ones. Synchronous: a
 * write of a round's lines takes microseconds, and a hop through the thread pool many times that.
 */
class RunWriter {
  readonly #path: string;
  readonly #folder: string;
  #lines: string[] = [];
  /** Bytes that the last write did not write. */
  #rest: Buffer = Buffer.alloc(0);
  #handle: number | undefined;
  #said = false;
  problem: string | undefined;
  isClosed = false;

  constructor(path: string, folder: string) {
    this.#path = path;
    this.#folder = folder;
  }

  add(line: string): void {
    this.#lines.push(line);
  }

  flush(): void {
    try {
      this.#handle ??= this.#create();
      for (;;) {
        if (this.#rest.length === 0) this.#rest = this.#taken();
        if (this.#rest.length === 0) break;
        this.#rest = this.#rest.subarray(writeSync(this.#handle, this.#rest));
      }
    } catch (error) {
      this.#keepProblem(error);
      this.#giveUp();
    }
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.flush();
    try {
      if (this.#handle !== undefined) closeSync(this.#handle);
    } catch (error) {
      this.#keepProblem(error);
    }
    this.#handle = undefined;
  }

  #keepProblem(error: unknown): void {
    const why = describeFileError(error, this.#path);
    this.problem ??= `This run is not saved, or only in part. ${why} Check the folder and the free disk space.`;
  }

  takeProblem(): string | undefined {
    if (this.#said || this.problem === undefined) return undefined;
    this.#said = true;
    return this.problem;
  }

  #create(): number {
    makeOwnFolders(this.#folder);
    const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
    return openSync(this.#path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600);
  }

  #taken(): Buffer {
    const lines = this.#lines;
    this.#lines = [];
    return Buffer.from(lines.join(''));
  }

  #giveUp(): void {
    const waiting = this.#lines.reduce((sum, line) => sum + line.length, this.#rest.length);
    if (waiting <= maxWaiting) return;
    this.#rest = Buffer.from('\n');
    this.#lines = [];
  }
}
