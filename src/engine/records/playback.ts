/** Plays the events of a kept run again at a speed that can be read; nothing runs. */
import type { RunEvent } from '../../protocol/run.ts';

/** UTF-16 units of text in one step, and how long each step is looked at. Some 600 words a minute. */
const textStep = 6;
const textPauseMs = 12;
/** Long enough to see that something has happened, however long it took then. */
const eventPauseMs = 350;

/** Waits no longer once the signal aborts: the rest comes at once. */
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
