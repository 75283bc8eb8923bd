/** Carries out the tool calls of one model turn in their order. Each call gets exactly one result. */
import type { Message, RunEvent, ToolCall, ToolResult, ToolResultBlock } from '@telos/protocol/run';
import { maxAtOnce, progressInterval } from './limits.ts';
import type { AllowedCall, CallPolicy, CallReport, SettledCall } from './ports.ts';

/**
 * Runs the calls in their order. Neighbours that only read or fetch, and that no one was asked about, run at the same time.
 * The results are added to the transcript as one message, also if the run is cancelled in the middle.
 * A call without a result would make the transcript unusable.
 */
export async function* runCalls(
  calls: readonly ToolCall[],
  policy: CallPolicy,
  messages: Message[],
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  // Keyed by the call itself: a model may give two calls the same id.
  const results = new Map<ToolCall, ToolResult>();
  const running = new Running();
  const end = (written: ToolCall, call: ToolCall, settled: SettledCall): RunEvent => {
    results.set(written, settled.result);
    policy.ended(call, settled);
    const { result, policy: by } = settled;
    return { type: 'tool_end', callId: call.id, name: call.name, result, ...(by ? { policy: by } : {}) };
  };
  try {
    for (const written of calls) {
      signal.throwIfAborted();
      const start = policy.wait(written, signal);
      if (start) {
        yield* running.settle();
        yield* start;
      }
      const meant = policy.resolve(written);
      const { call } = meant;
      yield { type: 'tool_start', call };
      const decided = yield* policy.decide(meant, signal);
      if ('result' in decided) {
        yield end(written, call, decided);
        continue;
      }
      if (decided.isAlone) yield* running.settle();
      else yield* running.makeRoom();
      running.start(call, decided, result => end(written, call, { result, policy: decided.policy }));
      if (decided.isAlone) yield* running.settle();
    }
    yield* running.settle();
    yield* policy.warnings();
    signal.throwIfAborted();
  } finally {
    await running.over();
    const cancelled: ToolResult = {
      content: 'The run was cancelled before this call ended.',
      isError: true,
    };
    messages.push({
      role: 'user',
      content: calls.map(call => resultBlock(call, results.get(call) ?? cancelled)),
    });
  }
}

/** The calls that run now, in the order of their results. */
class Running {
  readonly #works: Promise<RunEvent>[] = [];
  readonly #progress = new ProgressChannel();

  start(call: ToolCall, allowed: AllowedCall, ended: (result: ToolResult) => RunEvent): void {
    const report = this.#progress.of(call);
    this.#works.push(
      allowed
        .execute(report)
        .finally(() => report.end())
        .then(ended),
    );
  }

  /** Waits until one more call may run. */
  makeRoom(): AsyncGenerator<RunEvent, void> {
    return this.settle(Math.max(0, this.#works.length - maxAtOnce + 1));
  }

  /** Waits for the first `count` calls, or all by default, with their events. */
  async *settle(count = this.#works.length): AsyncGenerator<RunEvent, void> {
    for (const work of this.#works.slice(0, count)) {
      yield* this.#progress.until(work);
      yield await work;
      this.#works.shift();
    }
  }

  async over(): Promise<void> {
    await Promise.all(this.#works);
  }
}

function resultBlock(call: ToolCall, result: ToolResult): ToolResultBlock {
  const content = result.images?.length
    ? [{ type: 'text' as const, text: result.content }, ...result.images]
    : result.content;
  return { type: 'tool_result', tool_use_id: call.id, content, is_error: result.isError };
}

/** Collects events of calls while the run waits for the calls to end. */
export class ProgressChannel {
  #waiting: RunEvent[] = [];
  #wake: () => void = () => undefined;

  /** Returns the reports of one call. Of several about its progress in `progressInterval`, the last is shown. */
  of({ id: callId, name }: ToolCall): CallReport & { end(): void } {
    let timer: NodeJS.Timeout | undefined;
    let latest: RunEvent | undefined;
    let isOver = false;
    const showLatest = (): void => {
      timer = undefined;
      if (!latest) return;
      this.#add(latest);
      latest = undefined;
      timer = setTimeout(showLatest, progressInterval);
    };
    return {
      progress: (message, share) => {
        latest = { type: 'tool_progress', callId, name, message, ...(share !== undefined && { share }) };
        if (!timer && !isOver) showLatest();
      },
      show: event => this.#add(event),
      through: events => this.#through(events),
      end: () => {
        isOver = true;
        clearTimeout(timer);
      },
    };
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

  #add(event: RunEvent): void {
    this.#waiting.push(event);
    this.#wake();
  }

  async #through<Result>(events: AsyncGenerator<RunEvent, Result>): Promise<Result> {
    for (;;) {
      const step = await events.next();
      if (step.done) return step.value;
      this.#add(step.value);
    }
  }
}
