/** Carries out the tool calls of one model turn: checks, decides, asks and runs. Each call gets exactly one result. */

import type { Message, RunEvent, ToolCall, ToolResult, ToolResultBlock } from '@telos/protocol/run';
import { asMessage } from '@telos/protocol/text';
import type { KeptWrites } from '../changes/keptWrites.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';
import { cutMiddle } from '../files/plainText.ts';
import { reviewOf } from '../policy/decision.ts';
import { keepAdditions } from '../policy/ownChanges.ts';
import { resolveCall } from '../policy/resolveCall.ts';
import { isBuiltin } from '../policy/subject.ts';
import { asksClock, type RunTape, type TapedCall } from '../providers/recordingFile.ts';
import type { BackgroundCommands } from '../tools/background.ts';
import { type ToolContext, toolError } from '../tools/tool.ts';
import {
  type ApprovalContext,
  approveCall,
  askQuestion,
  type Granted,
  hostQuestions,
  signInAt,
} from './approval.ts';
import { away, executeTool, unseen, withNotes } from './commandChanges.ts';
import { boxNote } from './openBox.ts';
import type { UseSkill } from './request.ts';
import type { ModelParts } from './sampling.ts';
import { serverQuestions } from './serverAsks.ts';
import type { ServerGate } from './serverGate.ts';

/** Everything that the calls of a run work with. */
export interface ToolCallContext extends ApprovalContext, Partial<ModelParts> {
  context: Omit<
    ToolContext,
    | 'signal'
    | 'approvedSubject'
    | 'approvedFolder'
    | 'approvedLine'
    | 'askHost'
    | 'onProgress'
    | 'onNotice'
    | 'onOutput'
    | 'background'
    | 'askUser'
    | 'useSkill'
    | 'askSignIn'
    | 'askServer'
    | 'changes'
  > & { changes?: KeptWrites | undefined };
  messages: Message[];
  /** Holds the MCP servers that are not connected yet. */
  gate?: ServerGate | undefined;
  /** Commands of the conversation that go on in the background. Missing if none may. */
  background?: BackgroundCommands | undefined;
  /** Answers calls that leave the machine, or keeps what they return. */
  tape?: RunTape | undefined;
  /** Carries out another skill as a step. Missing if none may be used. */
  useSkill?: UseSkill | undefined;
}

/** Maximum size of one result that a model reads, in bytes. A longer one is cut to its head, its tail and the exact size. */
const maxResultBytes = 64 * 1024;

/** Maximum number of calls of a turn that run at the same time, however many a model requests. */
const maxAtOnce = 8;

/** Minimum time between two reports of how far a call is, in milliseconds. */
const progressInterval = 1000;

/**
 * Runs the calls in their order. Neighbours that only read or fetch, and that no one was asked about, run at the same time.
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
    { policy }: Pick<Partial<TapedCall>, 'policy'> = {},
  ): RunEvent => {
    results.set(written, result);
    if (run.tape && cannotRepeat(call, run))
      run.tape.keep({ callId: call.id, name: call.name, result, ...(policy && { policy }) });
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
      const taped = run.tape?.endOf(call);
      if (taped) {
        yield end(written, call, taped.result, taped);
        continue;
      }
      const outcome = yield* approveCall(call, run, signal);
      if (!outcome.granted) {
        yield end(written, call, toolError(outcome.refusal), outcome);
        continue;
      }
      // What a person was asked about is done by itself, before anything else is.
      const isAsked = outcome.policy.action === 'ask';
      const alone = isAsked || outcome.tool.access === 'write' || outcome.tool.access === 'execute';
      if (alone) yield* settle(running, progress);
      if (running.length >= maxAtOnce) yield* settle(running, progress, running.length - maxAtOnce + 1);
      const work = carryOut(outcome, run, progress, signal);
      const ours = [...notes, ...editNotes(call, outcome)];
      running.push(
        work.then(result => {
          const inBox = outcome.boxed ? boxNote(result, run.policy) : undefined;
          const all = inBox === undefined ? ours : [...ours, inBox];
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

/** Returns true for a call whose result no replay can repeat: it leaves the machine, or asks its clock. */
const cannotRepeat = (call: ToolCall, { tools }: ToolCallContext): boolean =>
  asksClock(call) ||
  !isBuiltin(call.name) ||
  tools.find(({ definition }) => definition.name === call.name)?.access === 'network';

const resolved = (written: ToolCall, { tools, policy }: ToolCallContext) =>
  resolveCall(written, tools, policy);

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

  /** Returns what reports how far one call is. Of several reports in `progressInterval`, the last is shown. */
  of({ id: callId, name }: ToolCall): { report: (message: string, share?: number) => void; end: () => void } {
    let timer: NodeJS.Timeout | undefined;
    let latest: RunEvent | undefined;
    let isOver = false;
    const show = (): void => {
      timer = undefined;
      if (!latest) return;
      this.add(latest);
      latest = undefined;
      timer = setTimeout(show, progressInterval);
    };
    return {
      report: (message, share) => {
        latest = { type: 'tool_progress', callId, name, message, ...(share !== undefined && { share }) };
        if (!timer && !isOver) show();
      },
      end: () => {
        isOver = true;
        clearTimeout(timer);
      },
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
  const far = progress.of(call);
  const context: ToolContext = {
    ...own,
    // What only computes wants no host, and need not wait for a way to one.
    ...(boxed && box ? { box, ...(granted.policy.rule !== 'run.compute' && { askHost }) } : {}),
    env,
    signal,
    approvedSubject,
    ...(approvedFolder === undefined ? {} : { approvedFolder }),
    ...(approvedLine === undefined ? {} : { approvedLine }),
    onProgress: far.report,
    onNotice: message => progress.add({ type: 'notice', level: 'info', ...asMessage(message) }),
    onOutput: text => progress.add({ type: 'tool_output', callId: call.id, text }),
    askSignIn: wanted => progress.through(signInAt(wanted, run, signal)),
    askUser: (question, choices) => progress.through(askQuestion(call, { question, choices }, run, signal)),
    ...(run.useSkill && {
      useSkill: (skill, request) => progress.through(run.useSkill!(call, { skill, request }, run, signal)),
    }),
    ...(run.background && { background: placeOf(call, run.background, run) }),
    ...(!run.human.isAway && {
      askServer: serverQuestions(call, run, events => progress.through(events)),
    }),
  };
  const isOwnScript = tool.access === 'execute' && granted.policy.rule.startsWith('card.');
  const before = isOwnScript ? await reviewOf(run.policy) : undefined;
  try {
    const result = withinLimit(await executeTool(granted, context, run, events => progress.through(events)));
    const added = await keepAdditions(before, run.policy);
    if (added !== undefined) progress.add({ type: 'notice', level: 'info', ...asMessage(added) });
    return result;
  } catch (error) {
    if (signal.aborted) return toolError('The run was cancelled while this call was running.');
    return toolError(`${call.name} failed: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    far.end();
  }
}

function placeOf(
  call: ToolCall,
  commands: BackgroundCommands,
  run: ToolCallContext,
): NonNullable<ToolContext['background']> {
  return {
    commands,
    callId: call.id,
    shown: command => (run.policy.holdsSecret?.(command) ? '(a command with a secret)' : command),
    askHost: hostQuestions(call, { ...run, human: away }, unseen, new AbortController().signal),
    left: () => undefined,
  };
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
