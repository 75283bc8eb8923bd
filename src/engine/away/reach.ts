/** Speaks HTTP with the services of messengers. No error names an address, a header or a body: they hold secrets. */
import { setTimeout as delay } from 'node:timers/promises';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';
import { deepestCode } from '../tools/wayOut.ts';

/** Characters of an answer that are read. */
const mostAnswer = 1_000_000;

export interface Call {
  url: string;
  method?: 'GET' | 'POST';
  headers?: Readonly<Record<string, string>>;
  body?: string;
}

/** Returns the answer once its head is there. Throws TelosError `provider` if the service is not reached or refuses. */
export async function reach(
  name: string,
  { url, method = 'GET', headers, body }: Call,
  signal: AbortSignal,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetchOut(url, {
      method,
      redirect: 'error',
      signal,
      ...(headers && { headers: { ...headers } }),
      ...(body !== undefined && { body }),
    });
  } catch (error) {
    signal.throwIfAborted();
    const why = deepestCode(error) ?? 'no answer';
    throw new TelosError('provider', [sentence('{0} could not be reached ({1}).', name, why)], {
      cause: error,
    });
  }
  if (response.ok) return response;
  await response.body?.cancel();
  throw new TelosError('provider', [
    sentence('{0} did not accept it (HTTP {1}).', name, String(response.status)),
  ]);
}

/** Returns the JSON of the answer; undefined for anything else. Throws as `reach`. */
export async function reachJson(name: string, call: Call, signal: AbortSignal): Promise<unknown> {
  const response = await reach(name, call, signal);
  try {
    return JSON.parse(await answerText(response, mostAnswer));
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** The first and the longest wait before a service is tried again, in milliseconds. */
const [firstPause, longestPause] = [500, 30_000];

/** Does the work again and again until the signal aborts. After a failure it waits longer each time, up to `longest`. Never throws. */
export async function keepTrying(
  work: () => Promise<void>,
  signal: AbortSignal,
  longest = longestPause,
): Promise<void> {
  let pause = firstPause;
  while (!signal.aborted) {
    try {
      await work();
      pause = firstPause;
    } catch {
      await delay(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(2 * pause, longest);
    }
  }
}

/** Returns the field of a JSON value that is an object. */
export const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

/** Does something, such as listening, while at least one question of this process is open. */
export class WhileOpen {
  readonly #work: (signal: AbortSignal) => void;
  #open = 0;
  #over = new AbortController();

  constructor(work: (signal: AbortSignal) => void) {
    this.#work = work;
  }

  /** Begins it unless it goes on, and keeps it until the signal aborts. */
  hold(signal: AbortSignal): void {
    if (signal.aborted) return;
    signal.addEventListener('abort', () => --this.#open === 0 && this.#over.abort(), { once: true });
    if (this.#open++ > 0) return;
    this.#over = new AbortController();
    this.#work(this.#over.signal);
  }
}
