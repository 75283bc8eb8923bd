/** Writes a run down as it passes by: when its skill starts, at every tool call, and how it ended. */
import type {
  ApprovalDecision,
  Message,
  RoutingModel,
  RunError,
  RunEvent,
  RunOutcome,
  Usage,
} from '../protocol/run.ts';
import {
  appendRecord,
  type LogRecord,
  localTimestamp,
  logPath,
  type SkillEndRecord,
  type SkillStartRecord,
  type ToolCallRecord,
  type WrittenRouting,
  type WrittenUsage,
} from './logFile.ts';
import { mapStrings } from './redact.ts';

export interface LogOptions {
  /** The file lies in `<dataDir>/logs`. Absolute path. */
  dataDir: string;
  /** Applied to every string that is written. */
  redact: (text: string) => string;
  /** The run's transcript as far as it is, for a reader who walks away before the run has ended. */
  messages?: readonly Message[];
}

/**
 * Passes the events on and writes the records down before the events that they belong to. A log that cannot be written is said
 * once, as a notice, and never breaks the run. When the reader walks away, the run is written down as cancelled.
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

/** What must be remembered of a run to write its records. */
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

  /** The record that an event asks for, where it asks for one. */
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

  /** The end of a run that did not say how it ended. */
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
    // Rounds without a word about tokens cost something nobody knows; no round at all costs nothing, and neither does a recording.
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

export const writtenRouting = ({ provider, model }: RoutingModel, usage: Usage): WrittenRouting => ({
  provider,
  model,
  ...writtenUsage(usage),
});

export const writtenUsage = (usage: Usage): WrittenUsage => ({
  input_tokens: usage.inputTokens,
  output_tokens: usage.outputTokens,
  cache_read_tokens: usage.cacheReadTokens,
  cache_write_tokens: usage.cacheWriteTokens,
  cost: usage.cost,
});

export const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

const now = (): string => localTimestamp(new Date());

const notice = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });

const answerOf = (decision: ApprovalDecision): string =>
  decision.allow ? decision.scope : `no: ${decision.reason}`;

function unwritable(file: string, error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return `The log ${file} cannot be written (${why}). The run goes on without it; check the folder and the space on its disk.`;
}

/** Both together; a cost of which a part is unknown is unknown. */
export function addedUsage(sum: Usage | undefined, usage: Usage): Usage {
  if (!sum) return usage;
  const known = sum.cost !== 'unknown' && usage.cost !== 'unknown';
  return {
    inputTokens: sum.inputTokens + usage.inputTokens,
    outputTokens: sum.outputTokens + usage.outputTokens,
    cacheReadTokens: sum.cacheReadTokens + usage.cacheReadTokens,
    cacheWriteTokens: sum.cacheWriteTokens + usage.cacheWriteTokens,
    cost: known ? Number(sum.cost) + Number(usage.cost) : 'unknown',
  };
}
