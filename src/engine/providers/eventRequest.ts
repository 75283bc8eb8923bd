/** Sends a request whose answer is a stream of events, for the wire formats that are read without an SDK. */
import type { TokenCount } from '../core/ports.ts';
import { answerText, fetchOut, mostRefusal } from '../tools/fetchOut.ts';
import {
  explainHttpFailure,
  explainLineFailure,
  type HttpFailure,
  ReportedError,
  type TurnFailure,
} from './failures.ts';

/** An answer with another status than that of a success. */
export class RefusedRequest extends Error {
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of the answer. */
  readonly text: string;

  constructor(response: Response, text: string) {
    super(`${response.status} ${text}`);
    this.status = response.status;
    this.headers = response.headers;
    this.text = text;
  }

  /** The answer as JSON; an error alone if the server sent a list of them. Undefined if it is not JSON. */
  get body(): unknown {
    try {
      const value: unknown = JSON.parse(this.text);
      return Array.isArray(value) ? value[0] : value;
    } catch {
      return undefined;
    }
  }
}

/** Returns the answer. Throws RefusedRequest for any status but that of a success. A key is sent to no other server. */
export async function requestEvents(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: object,
  signal: AbortSignal,
): Promise<Response> {
  const response = await fetchOut(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal,
  });
  if (response.ok) return response;
  throw new RefusedRequest(response, await answerText(response, mostRefusal));
}

/** Returns the failure for whatever ended a request or its answer. `read` returns what a refusal says, as far as it differs. */
export function explainRequest(
  error: unknown,
  about: Omit<HttpFailure, 'status' | 'reason' | 'headers'>,
  read: (refused: RefusedRequest) => Partial<Pick<HttpFailure, 'status' | 'reason' | 'headers'>>,
): TurnFailure {
  if (error instanceof ReportedError)
    return explainHttpFailure({ ...about, status: error.status, reason: error.message });
  if (!(error instanceof RefusedRequest))
    return explainLineFailure(error, about.label, about.address, about.addressVariable);
  const { status, headers, text } = error;
  return explainHttpFailure({ ...about, status, headers, reason: text, ...read(error) });
}

/** More than any answer, and little enough to be added up. */
const mostTokens = 1e12;

/** Returns the count, or undefined for one of nothing at all, which a server sends that does not count: no request is free of tokens. */
export const countedTokens = (count: TokenCount): TokenCount | undefined =>
  count.inputTokens + count.outputTokens + count.cacheReadTokens + count.cacheWriteTokens > 0 || count.charged
    ? count
    : undefined;

/** Returns a number of tokens that a server sent, or 0 for anything that is not one: none may take from what is counted. */
export const tokenCountIn = (value: unknown): number =>
  typeof value === 'number' && value > 0 ? Math.min(value, mostTokens) : 0;
