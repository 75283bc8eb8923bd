/** Turns an HTTP API's answer, or a broken connection, into an error that says what to do. */
import { TelosError } from '../errors.ts';

/** The parts that every HTTP error of the SDKs has. */
export interface HttpFailure {
  /** The provider's name as in a sentence: "Anthropic". */
  label: string;
  /** HTTP status; 0 if there was no answer. */
  status: number;
  /** The provider's own words. */
  reason: string;
  headers?: { get(name: string): string | null } | undefined;
  /** Advice for a refused key. */
  keyHint: string;
  /** Advice for a missing model; by default, to check its name. */
  missingModelHint?: string | undefined;
  /** The base URL. */
  address: string;
  /** Environment variable of the base URL. */
  addressVariable: string;
  /** The key. It must not appear in any message. */
  secret: string;
}

/**
 * Returns the error for an HTTP status: 401 and 403 become `auth`, 429 `rate_limit`, the rest `provider`. Retried are 408,
 * 429 (except for a spent budget) and 5xx.
 */
export function explainHttpFailure(failure: HttpFailure): TurnFailure {
  const { label, status } = failure;
  const reason = sentence(withoutSecret(wordsOf(failure.reason), failure.secret));
  if (status === 401 || status === 403) {
    return {
      error: new TelosError('auth', `${label} refused the key: ${reason} ${failure.keyHint}`),
      again: false,
    };
  }
  const pauseMs = retryAfter(failure.headers);
  if (status === 429) {
    const spent =
      pauseMs === undefined && /enforced_spend_limit_reached|insufficient_quota/.test(failure.reason);
    const what = spent ? 'says that its spend limit is reached' : 'takes no more requests for now';
    return { error: new TelosError('rate_limit', `${label} ${what}: ${reason}`), again: !spent, pauseMs };
  }
  if (status >= 500) {
    const error = new TelosError(
      'provider',
      `${label} has a problem of its own (${status}): ${reason} Try again later.`,
    );
    return { error, again: true, pauseMs };
  }
  const hint = status === 404 ? ` ${missingHint(failure, reason)}` : '';
  return {
    error: new TelosError('provider', `${label} refused the request (${status}): ${reason}${hint}`),
    again: status === 408,
  };
}

/** Returns advice for 404. Only a server that knows models mentions one; any other has nothing at this address. */
function missingHint({ missingModelHint, address, addressVariable }: HttpFailure, reason: string): string {
  if (/model/i.test(reason)) return missingModelHint ?? 'Check the name of the model (TELOS_MODEL).';
  return `Check the address ${address} (${addressVariable}).`;
}

/** Returns the error for a missing or incomplete answer. `address` is the base URL; `variable` sets it. */
export function explainLineFailure(
  error: unknown,
  label: string,
  address: string,
  variable: string,
): TurnFailure {
  if (error instanceof SyntaxError) {
    const message = `What ${label} sent cannot be read (${error.message}). Send the request again; if it stays like that, check ${variable}.`;
    return { error: new TelosError('provider', message, { cause: error }), again: true };
  }
  const code = deepestCode(error);
  const unreachable = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'];
  if (code !== undefined && (unreachable.includes(code) || code === 'UND_ERR_CONNECT_TIMEOUT')) {
    const message = `${label} cannot be reached at ${address} (${code}). Check the network, and ${variable}.`;
    const refused = code === 'ECONNREFUSED';
    return { error: new TelosError('provider', message, { cause: error }), again: true, refused };
  }
  return { error: brokenOff(label, error), again: true };
}

/** Returns the wait in milliseconds from the headers `retry-after-ms` or `retry-after` (seconds, or a date). */
function retryAfter(headers: HttpFailure['headers']): number | undefined {
  const milliseconds = Number(headers?.get('retry-after-ms') || Number.NaN);
  if (milliseconds >= 0) return milliseconds;
  const value = headers?.get('retry-after');
  if (!value) return undefined;
  const seconds = Number(value);
  // A negative number is not a wait. Parsed as a date, it would be one in the past.
  if (seconds < 0) return undefined;
  const wait = Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000;
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

/** Returns the reason without the leading status. From an HTML page, returns its title or its visible text. */
function wordsOf(reason: string): string {
  const text = reason
    .slice(0, 20_000)
    .replace(/^\d{3} /, '')
    .trim();
  if (text === '{}' || text === 'status code (no body)') return '';
  if (!/^<(?:!doctype|html|head|body)\b/i.test(text)) return text;
  const title = /<title[^>]*>([^<]*)</i.exec(text)?.[1]?.trim();
  return title || text.replace(/<(style|script)\b[\s\S]*?<\/\1>|<[^>]*>/gi, ' ').replace(/\s+/g, ' ');
}

function withoutSecret(text: string, secret: string): string {
  const known = secret ? text.replaceAll(secret, '[key]') : text;
  return known.replace(/\bsk-[\w*.-]{6,}/g, '[key]').slice(0, 600);
}

function sentence(text: string): string {
  const trimmed = text.trim() || 'no reason given';
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

function deepestCode(error: unknown): string | undefined {
  let code: string | undefined;
  for (let cause = error, depth = 0; cause instanceof Error && depth < 6; cause = cause.cause, depth += 1) {
    // A host with several addresses fails with one error per address.
    const own = cause instanceof AggregateError ? cause.errors[0] : cause;
    if (own instanceof Error && 'code' in own && typeof own.code === 'string') code = own.code;
  }
  return code;
}

/** The answer is not an event stream. A retry would return the same. */
export class NoEventStream extends TelosError {}

/** Characters of an unexpected answer that are shown to the person. */
const shown = 160;
/** Characters of an answer's beginning that are kept; enough for an error. */
const kept = 16_384;

/** The beginning of an answer. */
export class Opening {
  readonly #type: string;
  #text = '';
  readonly #decoder = new TextDecoder();

  constructor(response: Response) {
    this.#type = (response.headers.get('content-type') ?? '').split(';')[0]!.trim();
  }

  add(bytes: Uint8Array): void {
    if (this.#text.length < kept) this.#text += this.#decoder.decode(bytes, { stream: true });
  }

  /** The answer if it begins like JSON, else undefined. */
  get json(): string | undefined {
    return this.#text.trimStart().startsWith('{') ? this.#text : undefined;
  }

  /** Returns the error for an answer without any event whose content type is not an event stream, else undefined. */
  unexpectedAnswer(label: string): NoEventStream | undefined {
    if (this.#type === '' || this.#type === 'text/event-stream') return undefined;
    const begins = this.#text.slice(0, shown).replace(/\s+/g, ' ').trim();
    const message = `The answer is not an event stream of ${label} but ${this.#type}: “${begins}”. Check the address, and whether the network wants a sign-in or a proxy is in between.`;
    return new NoEventStream('provider', message);
  }
}

/** The failure of one attempt. */
export interface TurnFailure {
  error: TelosError;
  /** True if a retry could help. */
  again: boolean;
  /** The wait that the server asks for in `retry-after`, in milliseconds. */
  pauseMs?: number | undefined;
  /** True if no server listens at the address. */
  refused?: boolean;
}

/** An error that a server reports in the middle of its answer. */
export class ReportedError extends Error {
  /** The HTTP status that corresponds to the error. */
  readonly status: number;

  constructor(status: number, reason: string) {
    super(reason);
    this.status = status;
  }
}

export function brokenOff(label: string, cause?: unknown): TelosError {
  const message = `The connection to ${label} broke off in the middle of an answer. Send the request again.`;
  return new TelosError('provider', message, { cause });
}
