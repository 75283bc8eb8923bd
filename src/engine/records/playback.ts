/** Replays the events of a stored run at a readable speed. Nothing is executed. */
import type { RunEvent } from '../../protocol/run.ts';

/** UTF-16 units of text per step, and the pause after each step. About 600 words a minute. */
const textStep = 6;
const textPauseMs = 12;
/** Long enough to notice that something has happened, however long it took originally. */
const eventPauseMs = 350;

/** Yields the events with pauses between them. Once the signal aborts, the rest is yielded at once. */
export async function* paced(events: readonly RunEvent[], signal: AbortSignal): AsyncGenerator<RunEvent> {
  for (const event of events) {
    if (event.type === 'text') {
      for (let at = 0; at < event.text.length; at += textStep) {
        if (signal.aborted) {
          yield { type: 'text', text: event.text.slice(at) };
          break;
        }
        yield { type: 'text', text: event.text.slice(at, at + textStep) };
        await pause(textPauseMs, signal);
      }
      continue;
    }
    yield event;
    if (event.type !== 'usage' && event.type !== 'run_end') await pause(eventPauseMs, signal);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}
