/** Collects events of calls while the run waits for the calls to end. */
import type { RunEvent, ToolCall } from '@telos/protocol/run';
import { progressInterval } from './limits.ts';
import type { CallReport } from './ports.ts';

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
