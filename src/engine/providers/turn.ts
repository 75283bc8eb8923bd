/** Reads one streamed model turn, event by event, and retries it if that is safe, in the same way for every provider. */
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import type { CompletionRequest, StreamEvent, TokenCount } from '../core/ports.ts';
import {
  brokenOff,
  NoEventStream,
  Opening,
  ReportedError,
  type TurnFailure,
  type TurnLimits,
  TurnWatch,
} from './failures.ts';

/** Converts the data of a provider's wire events into stream events. One reader reads one answer. */
export interface WireReader {
  /** Returns the event for the data, or all of them, if there are any. Throws ReportedError if the data reports an error. */
  read(data: string): StreamEvent | readonly StreamEvent[] | undefined;
  /** True once the complete answer was read, whether or not the connection has ended. */
  readonly whole: boolean;
  /** What the server has said of the answer's tokens so far. */
  readonly used?: TokenCount | undefined;
  /** Returns the remaining events. Called at the end of a complete answer. */
  end(): readonly StreamEvent[];
}

export interface TurnSource {
  /** The provider's name as in a sentence: "Anthropic". */
  label: string;
  request: CompletionRequest;
  reader(): WireReader;
  /** Sends the request. Resolves with an answer whose body is an event stream. */
  open(signal: AbortSignal): Promise<Response>;
  explain(error: unknown): TurnFailure;
}

/**
 * Streams one model turn. Retries, with a `retry` event before each pause, only while no part of an answer was passed on.
 * Throws the error that `explain` returns for the last failure, or the signal's reason.
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
    let written = 0;
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
          // Thoughts are only shown, so an answer that breaks off in them can begin again.
          if (event.type !== 'reasoning') passedOn = true;
          written += writtenIn(event);
          watch.held = true; // the time that the caller takes does not count
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
      // Who reports an error in place of an answer, and counts nothing, charges nothing.
      const isUnused = error instanceof ReportedError && written === 0 && !reader.used;
      const isBegun = watch.hasHeard && !isUnused;
      if (isBegun) yield { type: 'spent', usage: spentBy(source.request, reader.used, written) };
      if (signal.aborted) throw signal.reason;
      const cause = watch.expired ?? error;
      failure =
        cause instanceof NoEventStream
          ? { error: cause, again: false }
          : cause instanceof TelosError
            ? { error: cause, again: cause.code === 'provider' && !(watch.expired && limits.waitsOnce) }
            : source.explain(cause);
    } finally {
      watch.end();
      // Closes the connection if the caller stopped reading or an error was thrown.
      if (!reader.whole) watch.abandon();
    }
    if (passedOn) throw incomplete(failure.error);
    if (!failure.again) throw failure.error;
    const retry = planRetry(failure, attempt, limits);
    yield retry;
    // A timer may fire a fraction of a millisecond early. The wait that a server asks for is a lower bound.
    await pause(retry.waitMs + 1, signal);
  }
}

/** Characters of an event that the model has written. */
function writtenIn(event: StreamEvent): number {
  if (event.type === 'text' || event.type === 'reasoning') return event.text.length;
  return event.type === 'tool_call' ? JSON.stringify(event.call.input).length : 0;
}

/** About as many characters are one token, and about as many tokens are a picture. */
const charactersPerToken = 4;
const mediaTokens = 1_600;

/** Returns what an answer has used that did not come to its end: what the server has said, and an estimate of the rest. */
function spentBy(
  { system, messages, tools }: CompletionRequest,
  used: TokenCount | undefined,
  written: number,
): TokenCount {
  let media = 0;
  const read = (name: string, value: unknown): unknown => {
    if (name !== 'source') return value;
    media++;
    return undefined;
  };
  const outputTokens = Math.max(used?.outputTokens ?? 0, Math.ceil(written / charactersPerToken));
  if (used && used.inputTokens + used.cacheReadTokens + used.cacheWriteTokens > 0)
    return { ...used, outputTokens };
  const characters = JSON.stringify([system, messages, tools], read).length;
  const inputTokens = Math.ceil(characters / charactersPerToken) + media * mediaTokens;
  return { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
}

/**
 * Returns the error for an answer without any event, or undefined if nothing shows the cause. Some servers report an error
 * with the status of a success.
 */
function noAnswer(opening: Opening, reader: WireReader, label: string): unknown {
  try {
    if (opening.json !== undefined) reader.read(opening.json);
  } catch (error) {
    if (error instanceof ReportedError) return error;
  }
  return opening.unexpectedAnswer(label);
}

function* eventsIn(
  messages: Iterable<ServerSentEvent>,
  reader: WireReader,
  watch: TurnWatch,
): Generator<StreamEvent> {
  for (const { name, data } of messages) {
    if (name === 'ping') continue;
    watch.heard();
    const read = reader.read(data);
    if (read) yield* 'type' in read ? [read] : read;
  }
}

/** Joins deltas that arrived together, also before a failure: each event costs time in every caller above. */
function* joinedText(events: Iterable<StreamEvent>): Generator<StreamEvent> {
  let joined: Extract<StreamEvent, { type: 'text' | 'reasoning' }> | undefined;
  try {
    for (const event of events) {
      if (event.type !== 'text' && event.type !== 'reasoning') {
        if (joined) yield joined;
        joined = undefined;
        yield event;
      } else if (joined?.type === event.type) joined = { ...event, text: joined.text + event.text };
      else {
        if (joined) yield joined;
        joined = event;
      }
    }
  } catch (error) {
    if (joined) yield joined;
    throw error;
  }
  if (joined) yield joined;
}

/** Returns the next bytes, or undefined at the end of the body. After a complete answer, an error also counts as the end. */
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
    throw error.followedBy(sentence('Tried {0} times.', attempt));
  }
  if (pauseMs !== undefined && pauseMs > limits.longestPauseMs) {
    const minutes = Math.ceil(pauseMs / 60_000);
    throw error.followedBy(
      minutes === 1
        ? sentence('It asks to wait 1 minute.')
        : sentence('It asks to wait {0} minutes.', minutes),
    );
  }
  const backoff = limits.firstPauseMs * 2 ** (attempt - 1);
  // Up to half is random, so that many clients do not come back at the same moment.
  const waitMs = Math.ceil(pauseMs ?? backoff * (0.5 + Math.random() / 2));
  return {
    type: 'retry',
    attempt,
    waitMs,
    why: error.message,
    ...(error.sentences && { sentences: error.sentences }),
  };
}

const incomplete = (error: TelosError): TelosError => error.followedBy(sentence('The answer is incomplete.'));

/** Resolves after the given time. Rejects with the signal's reason as soon as it aborts. */
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

/** In bytes. The longest answer of a model has some tens of megabytes on the wire, most of them around its words. */
const mostAnswer = 128 * 1024 * 1024;

export interface ServerSentEvent {
  /** Empty if the stream gave none. */
  name: string;
  data: string;
}

/**
 * Decodes one event stream. The SDKs can do this too, but they pass each event through two async generators, which is half of the
 * time with long answers, and hide whether a stream was complete or merely stopped. Bytes may be split anywhere, also within a character.
 */
export class EventStreamDecoder {
  readonly #text = new TextDecoder();
  readonly #mostBytes: number;
  #bytes = 0;
  /** The pieces of a line whose end has not arrived yet. Looking through all of them with each new one would take the square of its length. */
  #rest: string[] = [];
  #name = '';
  #data: string[] = [];

  constructor(mostBytes = mostAnswer) {
    this.#mostBytes = mostBytes;
  }

  /**
   * Returns the events that these bytes complete, in order. Comments and empty events are left out. Throws SyntaxError once the stream
   * is longer than any answer.
   */
  push(bytes: Uint8Array): ServerSentEvent[] {
    this.#bytes += bytes.length;
    if (this.#bytes > this.#mostBytes)
      throw new SyntaxError(`it has more than ${this.#mostBytes / 1024 / 1024} MB`);
    const added = this.#text.decode(bytes, { stream: true });
    const events: ServerSentEvent[] = [];
    let start = 0;
    if (added.includes('\n')) {
      const text = this.#rest.join('') + added;
      const from = text.length - added.length;
      this.#rest = [];
      for (let end = text.indexOf('\n', from); end !== -1; end = text.indexOf('\n', start)) {
        this.#readLine(
          text.charCodeAt(end - 1) === 13 ? text.slice(start, end - 1) : text.slice(start, end),
          events,
        );
        start = end + 1;
      }
      start -= from;
    }
    this.#rest.push(added.slice(start));
    return events;
  }

  #readLine(line: string, events: ServerSentEvent[]): void {
    if (line === '') {
      const data = this.#data.join('\n');
      if (data !== '') events.push({ name: this.#name, data });
      this.#name = '';
      this.#data = [];
      return;
    }
    if (line.startsWith('data:')) this.#data.push(fieldValue(line, 5));
    else if (line.startsWith('event:')) this.#name = fieldValue(line, 6);
  }
}

/** Returns the value of a field. One space after the colon belongs to the format. */
function fieldValue(line: string, start: number): string {
  return line.slice(line.charCodeAt(start) === 32 ? start + 1 : start);
}
