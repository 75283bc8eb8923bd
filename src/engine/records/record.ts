/** Records a run while it goes on: in the log and in the run's own file. What is shown and written contains no secret. */

import type { ApprovalDecision, Message, RoutingModel, RunEvent, Usage } from '@telos/protocol/run';
import { addedUsage, noUsage } from '@telos/protocol/usage';
import { describeFileError } from '../files/paths.ts';
import {
  appendRecord,
  type LogRecord,
  localTimestamp,
  logPath,
  type ModelCallRecord,
  type SkillEndRecord,
  type ToolCallRecord,
  writtenRouting,
  writtenUsage,
} from './logFile.ts';
import { type RecordedRun, RunRecorder, type RunTotals } from './runWriter.ts';

type RunEnd = Extract<RunEvent, { type: 'run_end' }>;

/**
 * Passes the events on without secrets. A record of the log is written before the event it belongs to. The run's file is written a
 * little later, but all of it before the last event. What cannot be written is reported once, as a notice, and never breaks the
 * run. If the reader stops early, the run is recorded as cancelled.
 */
export async function* record(
  events: AsyncIterable<RunEvent>,
  run: RecordedRun,
  dataDir: string,
): AsyncGenerator<RunEvent> {
  const redacted = run.redact.events();
  const fold = new RunFold(run.waited);
  const log = new LogWriter(dataDir, run.countsDay);
  const file = new RunRecorder(run, dataDir);
  let failure: string | undefined;
  try {
    for await (const event of events) {
      for (const shown of redacted(event)) {
        fold.add(shown);
        const problem = log.add(shown, fold);
        if (problem) {
          const notice = warning(run.redact.text(problem));
          file.add(notice, fold);
          yield notice;
        }
        file.add(shown, fold);
        if (shown.type === 'run_end') await file.close();
        const other = file.takeProblem();
        if (other) yield warning(run.redact.text(other));
        yield shown;
      }
    }
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    throw error;
  } finally {
    if (fold.isOpen) {
      for (const last of redacted(fold.endWithout(failure, run.messages))) {
        fold.add(last);
        log.add(last, fold);
        file.add(last, fold);
      }
    }
    await file.close();
  }
}

const warning = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });

/** Adds up the events of one run. */
class RunFold implements RunTotals {
  /** True from the run's start to its end. */
  isOpen = false;
  runId = '';
  /** Undefined until the skill is chosen. */
  routed: RunTotals['routed'];
  rounds = 0;
  toolCalls = 0;
  #startedAt = performance.now();
  readonly #waited: { readonly ms: number };
  /** True while an answer arrives whose usage is not known yet. */
  #isAnswering = false;
  /** Usage of the rounds. */
  #usage: Usage | undefined;
  /** Usage of the call that chose the skill. */
  routing: (RoutingModel & { usage: Usage }) | undefined;
  readonly #approvals = new Map<string, { rule: string; answer: string }>();

  constructor(waited: { readonly ms: number } = { ms: 0 }) {
    this.#waited = waited;
  }

  /** The time of the run so far, without that in which a person was waited for. */
  get elapsedMs(): number {
    return Math.max(0, performance.now() - this.#startedAt - this.#waited.ms);
  }

  add(event: RunEvent): void {
    switch (event.type) {
      case 'run_start':
        this.isOpen = true;
        this.runId = event.runId;
        this.#startedAt = performance.now();
        break;
      case 'routed': {
        const { agent, skill, provider, model, recording } = event;
        const isRecording = recording !== undefined || provider === 'replay';
        this.routed = { agent, skill, provider, model, isRecording };
        break;
      }
      case 'approval_request':
        this.#approvals.set(event.request.callId, { rule: event.request.rule, answer: 'none' });
        break;
      case 'approval_response': {
        const approval = this.#approvals.get(event.callId);
        const { decision } = event;
        if (approval) approval.answer = answerOf(decision);
        break;
      }
      case 'text':
      case 'reasoning':
        this.#isAnswering = true;
        break;
      case 'usage':
        this.#isAnswering = false;
        this.#addUsage(event);
        break;
      case 'tool_end':
        this.toolCalls++;
        break;
      case 'skill_event':
        if (/^approval_/.test(event.event.type)) this.add(event.event);
        break;
      case 'run_end':
        this.isOpen = false;
        this.rounds = event.rounds;
        this.toolCalls = event.toolCalls;
        break;
    }
  }

  #addUsage({ round, usage, routing }: Extract<RunEvent, { type: 'usage' }>): void {
    if (routing) {
      this.routing = { ...routing, usage: addedUsage(this.routing?.usage, usage) };
      return;
    }
    this.rounds = Math.max(this.rounds, round);
    this.#usage = addedUsage(this.#usage, usage);
  }

  /** Rounds without reported usage have an unknown cost. A run without rounds costs nothing, and neither does a recording. */
  get usage(): Usage {
    const isFree = this.rounds === 0 || this.routed?.isRecording;
    const rounds = this.#usage ?? { ...noUsage, cost: isFree ? 0 : 'unknown' };
    return this.routing ? addedUsage(rounds, this.routing.usage) : rounds;
  }

  /** Returns the question about a call and its answer, once: a later call may have the same id. */
  takeApproval(callId: string): { rule: string; answer: string } | undefined {
    const approval = this.#approvals.get(callId);
    this.#approvals.delete(callId);
    return approval;
  }

  /** Returns the end of a run that did not report one. `failure` is the error that ended it, if any. */
  endWithout(failure: string | undefined, messages: readonly Message[]): RunEnd {
    // The reader has stopped in the middle of an answer, so nothing says what it has used.
    if (this.#isAnswering && !this.routed?.isRecording) this.#usage = addedUsage(this.#usage, unknownUsage);
    return {
      type: 'run_end',
      outcome: failure === undefined ? 'cancelled' : 'failed',
      rounds: this.rounds,
      toolCalls: this.toolCalls,
      durationMs: Math.round(this.elapsedMs),
      messages: [...messages],
      ...(failure !== undefined && { error: { code: 'internal', message: failure } }),
    };
  }
}

/** Writes the records of a run to the log of the day, in `<dataDir>/logs`. */
class LogWriter {
  readonly #dataDir: string;
  /** Whether answers are written as they come, for the other runs of the day. */
  readonly #countsDay: boolean;
  #isBroken = false;

  constructor(dataDir: string, countsDay = false) {
    this.#dataDir = dataDir;
    this.#countsDay = countsDay;
  }

  /** Returns a problem if the log cannot be written, once. */
  add(event: RunEvent, fold: RunFold): string | undefined {
    const record = recordOf(event, fold);
    if (!record || (record.event === 'model_call' && !this.#countsDay)) return undefined;
    const file = logPath(this.#dataDir);
    try {
      appendRecord(file, record);
      return undefined;
    } catch (error) {
      if (this.#isBroken) return undefined;
      this.#isBroken = true;
      return `This run is not logged. ${describeFileError(error, file)} Check the folder and the free disk space.`;
    }
  }
}

/** Returns the record for an event, or undefined if the event has none. */
function recordOf(event: RunEvent, fold: RunFold): LogRecord | undefined {
  switch (event.type) {
    case 'routed': {
      const { provider, model, hasMcp: has_mcp, agent, skill } = event;
      const { pid } = process;
      const { runId: run_id } = fold;
      return { ts: now(), event: 'skill_start', provider, model, has_mcp, run_id, agent, skill, pid };
    }
    case 'tool_end':
      return toolRecord(event, fold);
    case 'skill_event':
      return /^(?:tool_end|skill_event)$/.test(event.event.type) ? recordOf(event.event, fold) : undefined;
    case 'usage':
      return !fold.isOpen || fold.routed?.isRecording ? undefined : callRecord(event.usage, fold);
    case 'run_end':
      return endRecord(event, fold);
    default:
      return undefined;
  }
}

const unknownUsage: Usage = { ...noUsage, cost: 'unknown' };

const now = (): string => localTimestamp(new Date());

function toolRecord(
  { name, result, callId, policy }: Extract<RunEvent, { type: 'tool_end' }>,
  fold: RunFold,
): ToolCallRecord {
  const approval = fold.takeApproval(callId);
  return {
    ts: now(),
    event: 'tool_call',
    tool: name,
    is_error: result.isError,
    run_id: fold.runId,
    call_id: callId,
    ...(policy && { policy }),
    ...(approval && { approval }),
  };
}

function callRecord(usage: Usage, { runId: run_id, elapsedMs }: RunFold): ModelCallRecord {
  const duration_s = Math.round(elapsedMs) / 1000;
  return { ts: now(), event: 'model_call', run_id, duration_s, ...writtenUsage(usage) };
}

function endRecord(end: RunEnd, fold: RunFold): SkillEndRecord {
  const { runId, routed, routing, usage } = fold;
  return {
    ts: now(),
    event: 'skill_end',
    duration_s: Math.round(end.durationMs) / 1000,
    rounds: end.rounds,
    tool_calls: end.toolCalls,
    error: end.error?.message ?? null,
    messages: end.messages,
    run_id: runId,
    agent: routed?.agent ?? null,
    skill: routed?.skill ?? null,
    outcome: end.outcome,
    ...writtenUsage(usage),
    ...(routing && { routing: writtenRouting(routing, routing.usage) }),
  };
}

/** Returns an answer as the log has it. */
function answerOf(decision: ApprovalDecision): string {
  if (!decision.allow) return decision.isSkipped ? 'skipped' : `no: ${decision.reason}`;
  return decision.command === undefined ? decision.scope : `changed to: ${decision.command}`;
}
