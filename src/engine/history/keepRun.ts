/** Keeps a run in a file of its own as it passes by, so that it can be shown, searched and gone on with later; the run waits for none of it. */
import type { Message, RunEvent, Usage } from '../../protocol/run.ts';
import { addedUsage } from '../log.ts';
import { mapStrings } from '../redact.ts';
import {
  lineOf,
  maxHeaderRequest,
  type RunDoor,
  type RunHeader,
  runPath,
  runsFolder,
  type TotalsLine,
} from './runFile.ts';
import { RunWriter } from './runWriter.ts';
import { keepAlong, type WentAlong } from './wentAlong.ts';

export interface KeepOptions {
  /** The file lies in `<dataDir>/runs`. Absolute path. */
  dataDir: string;
  /** Applied to the transcript; the events come without secrets. */
  redact: (text: string) => string;
  /** What the run was given, and what it has added since. */
  transcript: { readonly messages: readonly Message[]; readonly earlier?: number };
  door: RunDoor;
  conversation?: string | undefined;
  after?: string | undefined;
  /** Kept in a file beside the run's. */
  along?: WentAlong | undefined;
}

/**
 * Passes the events on and writes them down a little later; before the last event is handed on, everything is written. A file that cannot be
 * written is said once, as a notice, and never breaks the run. A run whose reader walks away is kept as cancelled.
 */
export async function* kept(events: AsyncIterable<RunEvent>, options: KeepOptions): AsyncGenerator<RunEvent> {
  const notes = new KeptRun(options);
  try {
    for await (const event of events) {
      notes.add(event);
      if (event.type === 'run_end') await notes.close();
      const problem = notes.takeProblem();
      if (problem) yield { type: 'notice', level: 'warning', message: options.redact(problem) };
      yield event;
    }
  } finally {
    await notes.abandon();
  }
}

/** Text that streams is written this often, in milliseconds. */
const textInterval = 1000;
/** What says little by itself waits this long for what comes with it: one write for a round, in place of five. In milliseconds. */
const eventInterval = 25;
/** These are written at once, with all before them: what was done, and what a person is asked. */
const boundaries: readonly RunEvent['type'][] = ['run_start', 'routed', 'tool_end', 'approval_request'];

class KeptRun {
  readonly #options: KeepOptions;
  readonly #startedAt = performance.now();
  #file: RunWriter | undefined;
  /** Deltas of one text that are not in a line yet. */
  #text = '';
  #timer: NodeJS.Timeout | undefined;
  #flushAt = 0;
  /** So many messages of the transcript are written. */
  #messages: number | undefined;
  #runId = '';
  #keepingAlong: Promise<void> | undefined;
  /** What stands in the way of keeping what went along. */
  #alongProblem: string | undefined;
  #routed: Omit<TotalsLine, 'type' | 'usage'> = {
    agent: '',
    skill: '',
    provider: '',
    model: '',
    isRecording: false,
  };
  #usage: Usage | undefined;
  #counts = { rounds: 0, toolCalls: 0 };

  constructor(options: KeepOptions) {
    this.#options = options;
  }

  add(event: RunEvent): void {
    if (event.type === 'run_start') this.#open(event);
    const file = this.#file;
    if (!file) return;
    if (event.type === 'text') {
      this.#text += event.text;
      this.#flushIn(textInterval);
      return;
    }
    this.#note(event);
    this.#takeText(file);
    this.#takeMessages(file);
    if (event.type === 'run_end') {
      file.add(lineOf({ type: 'totals', ...this.#routed, usage: this.#usage ?? noUsage }));
      file.add(lineOf({ ...event, messages: [] }));
    } else {
      file.add(lineOf(event));
    }
    if (boundaries.includes(event.type)) this.#flush();
    else this.#flushIn(eventInterval);
  }

  /** The sooner of what was asked for before and now. */
  #flushIn(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#timer && at >= this.#flushAt) return;
    clearTimeout(this.#timer);
    this.#flushAt = at;
    this.#timer = setTimeout(() => this.#flush(), milliseconds).unref();
  }

  /** Settles when everything is written, or cannot be. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#file) this.#keepAlong();
    await Promise.all([this.#file?.close(), this.#keepingAlong]);
    if (!this.#file?.problem) this.#file = undefined;
  }

  /** For a run that was not read to its end. */
  async abandon(): Promise<void> {
    if (this.#file && !this.#file.isClosed) {
      const durationMs = Math.round(performance.now() - this.#startedAt);
      this.add({ type: 'run_end', outcome: 'cancelled', ...this.#counts, durationMs, messages: [] });
    }
    await this.close();
  }

  /** What stands in the way of writing; once. */
  takeProblem(): string | undefined {
    const problem = this.#file?.takeProblem() ?? this.#alongProblem;
    if (problem === this.#alongProblem) this.#alongProblem = undefined;
    return problem;
  }

  #open({ runId, startedAt, text }: Extract<RunEvent, { type: 'run_start' }>): void {
    const { dataDir, door, conversation = runId, after } = this.#options;
    const path = runPath(dataDir, runId);
    if (!path || this.#file) return;
    const header: RunHeader = {
      type: 'run',
      version: 1,
      runId,
      conversation,
      ...(after !== undefined && { after }),
      door,
      startedAt,
      request: text.slice(0, maxHeaderRequest),
      pid: process.pid,
    };
    this.#runId = runId;
    this.#file = new RunWriter(path, runsFolder(dataDir));
    this.#file.add(lineOf(header));
  }

  #note(event: RunEvent): void {
    if (event.type === 'routed') {
      const { agent, skill, provider, model } = event;
      const isRecording = event.recording !== undefined || provider === 'replay';
      this.#routed = { agent, skill, provider, model, isRecording };
    } else if (event.type === 'usage') {
      this.#counts.rounds = Math.max(this.#counts.rounds, event.round);
      this.#usage = addedUsage(this.#usage, event.usage);
    } else if (event.type === 'tool_end') {
      this.#counts.toolCalls++;
    }
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#file) return;
    this.#takeText(this.#file);
    this.#file.flush();
  }

  /** Not before the transcript begins: by then every secret of the run is known. */
  #keepAlong(): void {
    const { dataDir, redact, along } = this.#options;
    if (!along) return;
    this.#keepingAlong ??= keepAlong(dataDir, this.#runId, along, redact).catch(error => {
      const why = error instanceof Error ? error.message : String(error);
      this.#alongProblem = `What went along with this request cannot be kept (${why}). When you send it again after a reload of the window, attach it again.`;
    });
  }

  #takeText(file: RunWriter): void {
    if (this.#text) file.add(lineOf({ type: 'text', text: this.#text }));
    this.#text = '';
  }

  #takeMessages(file: RunWriter): void {
    const { transcript, after } = this.#options;
    const { messages } = transcript;
    // What it was given is kept with the runs before it; where it comes after none, nobody else keeps it.
    const earlier = after === undefined ? 0 : (transcript.earlier ?? 0);
    // None of its own yet: what it was given comes together with its first.
    if (messages.length <= (transcript.earlier ?? 0)) return;
    const from = this.#messages ?? earlier;
    if (messages.length <= from) return;
    this.#keepAlong();
    const added = mapStrings(messages.slice(from), this.#options.redact);
    file.add(lineOf({ type: 'messages', earlier, messages: added }));
    this.#messages = messages.length;
  }
}

const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 };
