/** Reads one streamed model turn and tries it again where that is safe, the same way for every provider. */
import { TelosError } from '../errors.ts';
import { brokenOff, NoEventStream, Opening, ReportedError, type TurnFailure } from './failures.ts';
import type { StreamEvent } from './provider.ts';
import { EventStreamDecoder, type ServerSentEvent } from './serverSentEvents.ts';
import { type TurnLimits, TurnWatch } from './turnWatch.ts';

/** Makes stream events of the data of a provider's wire events; one reader reads one answer. */
export interface WireReader {
  /** Throws ReportedError when the data says so. */
  read(data: string): StreamEvent | undefined;
  /** True once the whole answer was read, whether or not the connection has ended. */
  readonly whole: boolean;
  /** Called at the end of a whole answer: what is left to say. */
  end(): readonly StreamEvent[];
}

export interface TurnSource {
  /** As in a sentence: "Anthropic". */
  label: string;
  reader(): WireReader;
  /** Sends the request; resolves with an answer whose body is an event stream. */
  open(signal: AbortSignal): Promise<Response>;
  explain(error: unknown): TurnFailure;
}

/**
 * One model turn. Tries again, with a `retry` event before each pause, only as long as nothing of an answer was passed on.
 * Throws what `explain` makes of the last failure, or the signal's reason.
 */
export async function* streamTurn(
  source: TurnSource,
  limits: TurnLimits,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    const watch = new TurnWatch(signal, limits);
    const reader = source.reader();
    let passedOn = false;
    let failure: TurnFailure;
    try {
      const response = await source.open(watch.signal);
      const body = response.body?.getReader();
      const decoder = new EventStreamDecoder();
      const opening = new Opening(response);
      for (;;) {
        const bytes = await nextBytes(body, reader);
        if (!bytes) break;
        opening.add(bytes);
        for (const event of joinedText(eventsIn(decoder.push(bytes), reader, watch))) {
          passedOn = true;
          watch.held = true; // the clock stands while the listener takes its time
          yield event;
          watch.held = false;
        }
        if (reader.whole) watch.linger();
      }
      if (!reader.whole)
        throw (!watch.hasHeard && noAnswer(opening, reader, source.label)) || brokenOff(source.label);
      for (const event of reader.end()) yield event;
      return;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const cause = watch.expired ?? error;
      failure =
        cause instanceof NoEventStream
          ? { error: cause, again: false }
          : cause instanceof TelosError
            ? { error: cause, again: cause.code === 'provider' }
            : source.explain(cause);
    } finally {
      watch.end();
      // Whoever stopped listening, or threw, leaves no open connection behind.
      if (!reader.whole) watch.abandon();
    }
    if (passedOn) throw incomplete(failure.error);
    if (!failure.again) throw failure.error;
    const retry = planRetry(failure, attempt, limits);
    yield retry;
    // A timer may come a fraction of a millisecond early, and a server's wish is a lower bound.
    await pause(retry.waitMs + 1, signal);
  }
}

/** Why there was not one event; undefined where nothing tells. Some servers report an error with the status of a success. */
function noAnswer(opening: Opening, reader: WireReader, label: string): unknown {
  try {
    if (opening.json !== undefined) reader.read(opening.json);
  } catch (error) {
    if (error instanceof ReportedError) return error;
  }
  return opening.strangerThan(label);
}

function* eventsIn(
  messages: Iterable<ServerSentEvent>,
  reader: WireReader,
  watch: TurnWatch,
): Generator<StreamEvent> {
  for (const { name, data } of messages) {
    if (name === 'ping') continue;
    watch.heard();
    const event = reader.read(data);
    if (event) yield event;
  }
}

/** Text that arrived together goes on together, also in front of a failure: every listener above costs something per event. */
function* joinedText(events: Iterable<StreamEvent>): Generator<StreamEvent> {
  let text = '';
  try {
    for (const event of events) {
      if (event.type === 'text') {
        text += event.text;
        continue;
      }
      if (text) yield { type: 'text', text };
      text = '';
      yield event;
    }
  } catch (error) {
    if (text) yield { type: 'text', text };
    throw error;
  }
  if (text) yield { type: 'text', text };
}

/** Undefined at the end of the body. Behind a whole answer, an error is an end as well. */
async function nextBytes(
  body: ReadableStreamDefaultReader<Uint8Array> | undefined,
  reader: WireReader,
): Promise<Uint8Array | undefined> {
  try {
    return (await body?.read())?.value;
  } catch (error) {
    if (reader.whole) return undefined;
    throw error;
  }
}

function planRetry(
  failure: TurnFailure,
  attempt: number,
  limits: TurnLimits,
): StreamEvent & { type: 'retry' } {
  const { error, pauseMs } = failure;
  if (attempt >= limits.tries) {
    throw new TelosError(error.code, `${error.message} (Tried ${attempt} times.)`, { cause: error });
  }
  if (pauseMs !== undefined && pauseMs > limits.longestPauseMs) {
    const minutes = Math.ceil(pauseMs / 60_000);
    throw new TelosError(error.code, `${error.message} It asks to wait ${minutes} minutes.`, {
      cause: error,
    });
  }
  const backoff = limits.firstPauseMs * 2 ** (attempt - 1);
  // Up to half is left to chance, so that many clients do not come back at the same moment.
  const waitMs = Math.ceil(pauseMs ?? backoff * (0.5 + Math.random() / 2));
  return { type: 'retry', attempt, waitMs, why: error.message };
}

function incomplete(error: TelosError): TelosError {
  return new TelosError(error.code, `${error.message} What came of the answer is incomplete.`, {
    cause: error,
  });
}

/** Waits, and throws the signal's reason as soon as it aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    function stop(): void {
      clearTimeout(timer);
      reject(signal.reason);
    }
    signal.addEventListener('abort', stop, { once: true });
  });
}
