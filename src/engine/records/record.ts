/** Records a run while it goes on: in the log and in the run's own file. */

import type {
  ApprovalDecision,
  Message,
  RoutingModel,
  RunError,
  RunEvent,
  RunOutcome,
  Usage,
} from '../../protocol/run.ts';
import { addedUsage, noUsage } from '../../protocol/usage.ts';
import { mapStrings } from '../redact.ts';
import { RunWriter } from './jsonLines.ts';
import {
  appendRecord,
  type LogRecord,
  localTimestamp,
  logPath,
  type SkillEndRecord,
  type SkillStartRecord,
  type ToolCallRecord,
  writtenRouting,
  writtenUsage,
} from './logFile.ts';
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

export interface LogOptions {
  /** The log is in `<dataDir>/logs`. Absolute path. */
  dataDir: string;
  /** Applied to every string that is written. */
  redact: (text: string) => string;
  /** Transcript of the run so far, used if the reader stops before the run has ended. */
  messages?: readonly Message[];
}

/**
 * Passes the events on, and writes each record before the event it belongs to. A log that cannot be written is reported once, as
 * a notice, and never breaks the run. If the reader stops early, the run is recorded as cancelled.
 */
export async function* recorded(
  events: AsyncIterable<RunEvent>,
  options: LogOptions,
): AsyncGenerator<RunEvent> {
  const run = new RunNotes();
  let broken = false;
  const write = (record: LogRecord | undefined): RunEvent | undefined => {
    if (!record) return undefined;
    const file = logPath(options.dataDir);
    try {
      appendRecord(file, mapStrings(record, options.redact));
    } catch (error) {
      if (broken) return undefined;
      broken = true;
      return notice(options.redact(unwritable(file, error)));
    }
    return undefined;
  };
  let failure: string | null = null;
  try {
    for await (const event of events) {
      const said = write(run.recordFor(event));
      if (said) yield said;
      yield event;
    }
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    throw error;
  } finally {
    if (run.open) write(run.endWithout(failure, options.messages ?? []));
  }
}

/** Holds the parts of a run that its records need. */
class RunNotes {
  open = false;
  private runId = '';
  private agent: string | null = null;
  private skill: string | null = null;
  private isRecording = false;
  private startedAt = performance.now();
  private rounds = 0;
  private toolCalls = 0;
  private usage: Usage | undefined;
  private routing: (RoutingModel & { usage: Usage }) | undefined;
  private readonly approvals = new Map<string, { rule: string; answer: string }>();

  /** Returns the record for an event, or undefined if the event has none. */
  recordFor(event: RunEvent): LogRecord | undefined {
    switch (event.type) {
      case 'run_start':
        this.open = true;
        this.runId = event.runId;
        this.startedAt = performance.now();
        return undefined;
      case 'routed':
        this.agent = event.agent;
        this.skill = event.skill;
        this.isRecording = event.recording !== undefined || event.provider === 'replay';
        return this.startRecord(event);
      case 'approval_request':
        this.approvals.set(event.request.callId, { rule: event.request.rule, answer: 'none' });
        return undefined;
      case 'approval_response': {
        const approval = this.approvals.get(event.callId);
        if (approval) approval.answer = answerOf(event.decision);
        return undefined;
      }
      case 'usage':
        if (event.routing) {
          this.routing = { ...event.routing, usage: event.usage };
          return undefined;
        }
        this.rounds = Math.max(this.rounds, event.round);
        this.usage = addedUsage(this.usage, event.usage);
        return undefined;
      case 'tool_end':
        this.toolCalls++;
        return this.toolRecord(event);
      case 'run_end':
        this.open = false;
        return this.endRecord(event);
      default:
        return undefined;
    }
  }

  /** Returns the end of a run that did not report one. */
  endWithout(failure: string | null, messages: readonly Message[]): SkillEndRecord {
    return this.endRecord({
      outcome: failure === null ? 'cancelled' : 'failed',
      rounds: this.rounds,
      toolCalls: this.toolCalls,
      durationMs: performance.now() - this.startedAt,
      messages,
      ...(failure === null ? {} : { error: { code: 'internal', message: failure } }),
    });
  }

  private startRecord(event: Extract<RunEvent, { type: 'routed' }>): SkillStartRecord {
    const { provider, model, hasMcp, agent, skill } = event;
    return {
      ts: now(),
      event: 'skill_start',
      provider,
      model,
      has_mcp: hasMcp,
      run_id: this.runId,
      agent,
      skill,
      pid: process.pid,
    };
  }

  private toolRecord(event: Extract<RunEvent, { type: 'tool_end' }>): ToolCallRecord {
    const approval = this.approvals.get(event.callId);
    this.approvals.delete(event.callId);
    return {
      ts: now(),
      event: 'tool_call',
      tool: event.name,
      is_error: event.result.isError,
      run_id: this.runId,
      call_id: event.callId,
      ...(event.policy ? { policy: event.policy } : {}),
      ...(approval ? { approval } : {}),
    };
  }

  private endRecord(end: {
    outcome: RunOutcome;
    rounds: number;
    toolCalls: number;
    durationMs: number;
    messages: readonly Message[];
    error?: RunError;
  }): SkillEndRecord {
    // Rounds without reported usage have an unknown cost. A run without rounds costs nothing, and neither does a recording.
    const isFree = end.rounds === 0 || this.isRecording;
    const rounds = this.usage ?? { ...noUsage, cost: isFree ? 0 : 'unknown' };
    const all = this.routing ? addedUsage(rounds, this.routing.usage) : rounds;
    return {
      ts: now(),
      event: 'skill_end',
      duration_s: Math.round(end.durationMs) / 1000,
      rounds: end.rounds,
      tool_calls: end.toolCalls,
      error: end.error?.message ?? null,
      messages: end.messages,
      run_id: this.runId,
      agent: this.agent,
      skill: this.skill,
      outcome: end.outcome,
      ...writtenUsage(all),
      ...(this.routing ? { routing: writtenRouting(this.routing, this.routing.usage) } : {}),
    };
  }
}

const now = (): string => localTimestamp(new Date());

const notice = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });

const answerOf = (decision: ApprovalDecision): string =>
  decision.allow ? decision.scope : `no: ${decision.reason}`;

function unwritable(file: string, error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return `The log ${file} cannot be written (${why}). The run goes on without it; check the folder and the space on its disk.`;
}

export interface KeepOptions {
  /** The file is in `<dataDir>/runs`. Absolute path. */
  dataDir: string;
  /** Applied to the transcript. The events arrive without secrets. */
  redact: (text: string) => string;
  /** Messages that the run was given, and those it has added since. */
  transcript: { readonly messages: readonly Message[]; readonly earlier?: number };
  origin: RunOrigin;
  conversation?: string | undefined;
  parentRunId?: string | undefined;
  /** Attachments and selection of the request, stored in a file beside the run's. */
  attachments?: RunAttachments | undefined;
}

/**
 * Passes the events on and writes them a little later. Everything is written before the last event is passed on. A file that
 * cannot be written is reported once, as a notice, and never breaks the run. If the reader stops early, the run is stored as
 * cancelled.
 */
export async function* kept(events: AsyncIterable<RunEvent>, options: KeepOptions): AsyncGenerator<RunEvent> {
  const notes = new RunRecorder(options);
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

/** Interval at which streaming text is written. In milliseconds. */
const textInterval = 1000;
/** Time that small events wait for the ones after them: one write per round instead of five. In milliseconds. */
const eventInterval = 25;
/** Events that are written at once, with everything before them: completed actions and requests for a decision. */
const boundaries: readonly RunEvent['type'][] = ['run_start', 'routed', 'tool_end', 'approval_request'];

class RunRecorder {
  readonly #options: KeepOptions;
  readonly #startedAt = performance.now();
  #file: RunWriter | undefined;
  /** Text of consecutive text events that is not in a line yet. */
  #text = '';
  #timer: NodeJS.Timeout | undefined;
  #flushAt = 0;
  /** Number of messages of the transcript that are written. */
  #messages: number | undefined;
  #runId = '';
  #keepingAlong: Promise<void> | undefined;
  /** Reason why the attachments cannot be stored. */
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
      file.add(lineOf({ type: 'totals', ...this.#routed, usage: this.#usage ?? { ...noUsage, cost: 0 } }));
      file.add(lineOf({ ...event, messages: [] }));
    } else {
      file.add(lineOf(event));
    }
    if (boundaries.includes(event.type)) this.#flush();
    else this.#flushIn(eventInterval);
  }

  /** Schedules a flush, unless an earlier one is already scheduled. */
  #flushIn(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#timer && at >= this.#flushAt) return;
    clearTimeout(this.#timer);
    this.#flushAt = at;
    this.#timer = setTimeout(() => this.#flush(), milliseconds).unref();
  }

  /** Resolves when everything is written, or cannot be written. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#file) this.#keepAlong();
    await Promise.all([this.#file?.close(), this.#keepingAlong]);
    if (!this.#file?.problem) this.#file = undefined;
  }

  /** Closes a run that was not read to its end. */
  async abandon(): Promise<void> {
    if (this.#file && !this.#file.isClosed) {
      const durationMs = Math.round(performance.now() - this.#startedAt);
      this.add({ type: 'run_end', outcome: 'cancelled', ...this.#counts, durationMs, messages: [] });
    }
    await this.close();
  }

  /** Returns the reason why writing failed, once. */
  takeProblem(): string | undefined {
    const problem = this.#file?.takeProblem() ?? this.#alongProblem;
    if (problem === this.#alongProblem) this.#alongProblem = undefined;
    return problem;
  }

  #open({ runId, startedAt, text }: Extract<RunEvent, { type: 'run_start' }>): void {
    const { dataDir, origin: door, conversation = runId, parentRunId: after } = this.#options;
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

  /** Runs only once the transcript begins, because every secret of the run is known by then. */
  #keepAlong(): void {
    const { dataDir, redact, attachments: along } = this.#options;
    if (!along) return;
    this.#keepingAlong ??= storeAttachments(dataDir, this.#runId, along, redact).catch(error => {
      const why = error instanceof Error ? error.message : String(error);
      this.#alongProblem = `What went along with this request cannot be kept (${why}). When you send it again after a reload of the window, attach it again.`;
    });
  }

  #takeText(file: RunWriter): void {
    if (this.#text) file.add(lineOf({ type: 'text', text: this.#text }));
    this.#text = '';
  }

  #takeMessages(file: RunWriter): void {
    const { transcript, parentRunId: after } = this.#options;
    const { messages } = transcript;
    // The messages it was given are stored with the runs before it. If it follows no run, they are stored here.
    const earlier = after === undefined ? 0 : (transcript.earlier ?? 0);
    // The run has no messages of its own yet. The messages it was given are written together with its first one.
    if (messages.length <= (transcript.earlier ?? 0)) return;
    const from = this.#messages ?? earlier;
    if (messages.length <= from) return;
    this.#keepAlong();
    const added = mapStrings(messages.slice(from), this.#options.redact);
    file.add(lineOf({ type: 'messages', earlier, messages: added }));
    this.#messages = messages.length;
  }
}
