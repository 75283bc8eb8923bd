/** Carries out the tool calls of one model turn: checks, decides, asks and runs. Each call gets exactly one result. */

import type { Message, RunEvent, ToolCall, ToolResult, ToolResultBlock } from '../../protocol/run.ts';
import { told } from '../../protocol/text.ts';
import type { KeptWrites } from '../changes/keptWrites.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';
import { cutMiddle } from '../files/plainText.ts';
import { reviewOf } from '../policy/decision.ts';
import { keepAdditions } from '../policy/ownChanges.ts';
import { resolveCall } from '../policy/resolveCall.ts';
import { type ToolContext, toolError } from '../tools/tool.ts';
import { type LookedAfter, lookAfter } from './afterLook.ts';
import { type ApprovalContext, approveCall, type Granted, hostQuestions, signInAt } from './approval.ts';
import { boxNote } from './openBox.ts';
import type { ServerGate } from './serverGate.ts';

/** Everything that the calls of a run work with. */
export interface ToolCallContext extends ApprovalContext {
  context: Omit<
    ToolContext,
    | 'signal'
    | 'approvedSubject'
    | 'approvedFolder'
    | 'approvedLine'
    | 'askHost'
    | 'onProgress'
    | 'askSignIn'
    | 'changes'
  > & { changes?: KeptWrites | undefined };
  messages: Message[];
  /** Holds the MCP servers that are not connected yet. */
  gate?: ServerGate | undefined;
}

/** Maximum size of one result that a model reads, in bytes. A longer one is cut to its head, its tail and the exact size. */
const maxResultBytes = 64 * 1024;

/** Maximum number of calls of a turn that run at the same time, however many a model requests. */
const maxAtOnce = 8;

/** Minimum time between two notices of a call, in milliseconds. */
const progressInterval = 1000;

/**
 * Runs the calls in their order. Neighbours that only read or fetch run at the same time.
 * The results are added to the transcript as one message, also if the run is cancelled in the middle.
 * A call without a result would make the transcript unusable.
 */
export async function* runTools(
  calls: readonly ToolCall[],
  run: ToolCallContext,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  // Keyed by the call itself: a model may give two calls the same id.
  const results = new Map<ToolCall, ToolResult>();
  const running: Promise<RunEvent>[] = [];
  const progress = new ProgressChannel();
  const end = (
    written: ToolCall,
    call: ToolCall,
    result: ToolResult,
    { policy }: Partial<Pick<Granted, 'policy'>> = {},
  ): RunEvent => {
    results.set(written, result);
    return { type: 'tool_end', callId: call.id, name: call.name, result, ...(policy ? { policy } : {}) };
  };
  try {
    for (const written of calls) {
      signal.throwIfAborted();
      if (run.gate?.isFor(resolved(written, run).call, run.tools)) {
        yield* settle(running, progress);
        yield* run.gate.open(signal);
      }
      const { call, notes } = resolved(written, run);
      yield { type: 'tool_start', call };
      const instead = run.gate?.resultFor(call, run.tools);
      if (instead) {
        yield end(written, call, instead);
        continue;
      }
      const outcome = yield* approveCall(call, run, signal);
      if (!outcome.granted) {
        yield end(written, call, toolError(outcome.refusal), outcome);
        continue;
      }
      const alone = outcome.tool.access === 'write' || outcome.tool.access === 'execute';
      if (alone) yield* settle(running, progress);
      if (running.length >= maxAtOnce) yield* settle(running, progress, running.length - maxAtOnce + 1);
      const work = carryOut(outcome, run, progress, signal);
      const told = [...notes, ...editNotes(call, outcome)];
      running.push(
        work.then(result => {
          const inBox = outcome.boxed ? boxNote(result, run.policy) : undefined;
          const all = inBox === undefined ? told : [...told, inBox];
          return end(written, call, withNotes(result, all), outcome);
        }),
      );
      if (alone) yield* settle(running, progress);
    }
    yield* settle(running, progress);
    yield* problemsOf(run.context.changes);
    signal.throwIfAborted();
  } finally {
    await Promise.all(running);
    const cancelled = toolError('The run was cancelled before this call ended.');
    run.messages.push({
      role: 'user',
      content: calls.map(call => resultBlock(call, results.get(call) ?? cancelled)),
    });
  }
}

const resolved = (written: ToolCall, { tools, policy }: ToolCallContext) =>
  resolveCall(written, tools, policy);

/** Returns the result with what ran in place of the model's words, and what of them had no effect. */
function withNotes(result: ToolResult, notes: readonly string[]): ToolResult {
  if (notes.length === 0) return result;
  return { ...result, content: [result.content, ...notes.map(note => `[${note}]`)].join('\n') };
}

/** Waits for the first `count` promises, or all by default. Removes them from `running`. */
async function* settle(
  running: Promise<RunEvent>[],
  progress: ProgressChannel,
  count = running.length,
): AsyncGenerator<RunEvent, void> {
  for (const work of running.slice(0, count)) {
    yield* progress.until(work);
    yield await work;
    running.shift();
  }
}

/** Collects events of calls while the run waits for the calls to end. */
class ProgressChannel {
  #waiting: RunEvent[] = [];
  #wake: () => void = () => undefined;

  /** Returns the notice function of one call. Notices more often than once in `progressInterval` are dropped. */
  of(call: ToolCall): (message: string) => void {
    let last = Number.NEGATIVE_INFINITY;
    return message => {
      const now = performance.now();
      if (now - last < progressInterval) return;
      last = now;
      this.add({ type: 'notice', level: 'info', message: `${call.name}: ${message}` });
    };
  }

  /** Adds an event for the person in the middle of a call. */
  add(event: RunEvent): void {
    this.#waiting.push(event);
    this.#wake();
  }

  /** Adds the events, and returns the result that follows them. */
  async through<Result>(events: AsyncGenerator<RunEvent, Result>): Promise<Result> {
    for (;;) {
      const step = await events.next();
      if (step.done) return step.value;
      this.add(step.value);
    }
  }

  /** Yields the events that are added until the work is done. */
  async *until(work: Promise<unknown>): AsyncGenerator<RunEvent, void> {
    let over = false;
    void work.then(() => {
      over = true;
      this.#wake();
    });
    for (;;) {
      // More may arrive while one of them is read.
      for (let event = this.#waiting.shift(); event; event = this.#waiting.shift()) yield event;
      if (over) return;
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
  }
}

/** Yields warnings about files that cannot be restored. */
function* problemsOf(changes: WriteKeeper | undefined): Generator<RunEvent, void> {
  for (let problem = changes?.takeProblem(); problem !== undefined; problem = changes?.takeProblem())
    yield { type: 'notice', level: 'warning', message: problem };
}

/** Returns what the model must know if the person has changed its command. */
const editNotes = (asked: ToolCall, { call }: Granted): readonly string[] =>
  call === asked ? [] : [`The user changed the command. This ran instead: ${String(call.input['command'])}`];

async function carryOut(
  granted: Granted,
  run: ToolCallContext,
  progress: ProgressChannel,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { tool, call, approvedSubject, approvedFolder, approvedLine, boxed, variables } = granted;
  const { box, ...own } = run.context;
  const env = { ...variables, ...own.env };
  if (boxed && !box) return toolError('The box for commands is gone. Nothing was run.');
  const askHost = hostQuestions(call, run, events => progress.through(events), signal);
  const context: ToolContext = {
    ...own,
    // What only computes wants no host, and need not wait for a way to one.
    ...(boxed && box ? { box, ...(granted.policy.rule !== 'run.compute' && { askHost }) } : {}),
    env,
    signal,
    approvedSubject,
    ...(approvedFolder === undefined ? {} : { approvedFolder }),
    ...(approvedLine === undefined ? {} : { approvedLine }),
    onProgress: progress.of(call),
    askSignIn: wanted => progress.through(signInAt(wanted, run, signal)),
  };
  const isOwnScript = tool.access === 'execute' && granted.policy.rule.startsWith('card.');
  const before = isOwnScript ? await reviewOf(run.policy) : undefined;
  try {
    const result = withinLimit(await executeWatched(granted, context, run, progress));
    const added = await keepAdditions(before, run.policy);
    if (added !== undefined) progress.add({ type: 'notice', level: 'info', ...told(added) });
    return result;
  } catch (error) {
    if (signal.aborted) return toolError('The run was cancelled while this call was running.');
    return toolError(`${call.name} failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Runs the tool. What a command changes in the working folder is recorded, also if the command fails or is stopped. */
async function executeWatched(
  { tool, call, boxed }: Granted,
  context: ToolContext,
  run: ToolCallContext,
  progress: ProgressChannel,
): Promise<ToolResult> {
  const { changes } = run.context;
  if (tool.access !== 'execute' || call.name !== 'run_command' || !changes) {
    if (tool.access === 'execute') changes?.noteCommand();
    return tool.execute(call.input, context);
  }
  const watch = await changes.watchCommand({ ...context, outside: !boxed });
  const look = async (): Promise<LookedAfter> => {
    if (!watch) return { changedFiles: [], notes: [] };
    return progress.through(lookAfter(call, watch, boxed === true, run, context.signal));
  };
  let result: ToolResult;
  try {
    result = await tool.execute(call.input, context);
  } catch (error) {
    await look();
    throw error;
  }
  const { changedFiles, notes } = await look();
  return { ...withNotes(result, notes), ...(changedFiles.length > 0 && { changedFiles }) };
}

function resultBlock(call: ToolCall, result: ToolResult): ToolResultBlock {
  const content = result.images?.length
    ? [{ type: 'text' as const, text: result.content }, ...result.images]
    : result.content;
  return { type: 'tool_result', tool_use_id: call.id, content, is_error: result.isError };
}

/** Keeps the head and the tail of a long result, and says how long it is. */
function withinLimit(result: ToolResult): ToolResult {
  const content = cutMiddle(
    result.content,
    maxResultBytes,
    bytes =>
      `\n\n[... cut: the result has ${result.wholeSize ?? bytes} bytes, of which the middle is left out ...]\n\n`,
  );
  return content === result.content ? result : { ...result, content };
}
