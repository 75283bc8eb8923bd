/** Turns what ends a turn early into an error that says what to do: an HTTP answer, a broken connection, a limit of time. */
import type { Remedy } from '@telos/protocol/run';
import { beginningOf, type Sentence, sentence } from '@telos/protocol/text';
import { hostKind } from '../addresses.ts';
import { PromptTooLong, TelosError } from '../core/errors.ts';
import { shortestSecret } from '../secretForms.ts';
import { certificateProblem, deepestCode } from '../tools/wayOut.ts';

/** Advice after an answer that may come another time. */
const sendAgain = sentence('Send the request again.');

/** The parts that every HTTP error of the SDKs has. */
export interface HttpFailure {
  /** The provider's name as in a sentence: "Anthropic". */
  label: string;
  /** HTTP status; 0 if there was no answer. */
  status: number;
  /** The provider's own words. */
  reason: string;
  headers?: { get(name: string): string | null } | undefined;
  /** Environment variable of the key, if the provider has one. */
  keyVariable?: string | undefined;
  /** Advice for a missing model; by default, to choose another one. */
  missingModelHint?: Sentence | undefined;
  /** The base URL. */
  address: string;
  /** Environment variable of the base URL. */
  addressVariable: string;
  /** The key. It must not appear in any message. */
  secret: string;
}

/**
 * Returns the error for an HTTP status: 401, and 403 if it is about the key, become `auth`, 429 `rate_limit`, the rest `provider`. Retried are 408,
 * 429 (except for a spent budget) and 5xx.
 */
export function explainHttpFailure(failure: HttpFailure): TurnFailure {
  const { label, status } = failure;
  const reason = asSentence(withoutSecret(wordsOf(failure.reason), failure.secret));
  if (isAboutKey(status, failure.reason)) {
    const why = sentence('{0} refused the key: {1}', label, reason);
    const remedy = failure.keyVariable && { kind: 'set_key' as const, variable: failure.keyVariable };
    return { error: new TelosError('auth', [why], { remedy: remedy || undefined }), again: false };
  }
  const isLong = status !== 429 && tooLongWords.test(failure.reason.slice(0, 4_000));
  if (isLong || status === 413) {
    const why = sentence('{0} refused the request ({1}): {2}', label, status, reason);
    const next = sentence('Start a new conversation, or choose a model with a larger context.');
    return { error: new PromptTooLong('provider', isLong ? [why, next] : [why]), again: false };
  }
  if (status === 403) {
    const why = sentence('{0} refused the request ({1}): {2}', label, status, reason);
    const next = sentence('The key may have no right to this, or something between does not let it through.');
    return { error: new TelosError('provider', [why, next]), again: false };
  }
  const pauseMs = retryAfter(failure.headers);
  if (status === 429) {
    const spent =
      pauseMs === undefined && /enforced_spend_limit_reached|insufficient_quota/.test(failure.reason);
    const why = spent
      ? sentence('The spending limit at {0} is reached: {1}', label, reason)
      : sentence('{0} accepts no more requests for now: {1}', label, reason);
    return { error: new TelosError('rate_limit', [why], { retryAfterMs: pauseMs }), again: !spent, pauseMs };
  }
  if (status >= 500) {
    const why = sentence('{0} has an internal error ({1}): {2}', label, status, reason);
    // Too little room for a long conversation, as some say it; or for all of them, which passes.
    const Kind = sizeWords.test(failure.reason.slice(0, 4_000)) ? Refused : TelosError;
    return { error: new Kind('provider', [why, sentence('Try again later.')]), again: true, pauseMs };
  }
  const why = sentence('{0} refused the request ({1}): {2}', label, status, reason);
  const { hint, remedy } = status === 404 ? missing(failure, reason) : {};
  const Kind = status === 404 || status === 408 ? TelosError : Refused;
  const error = new Kind('provider', [why, ...(hint ? [hint] : [])], { remedy });
  return { error, again: status === 408 };
}

/**
 * Returns true if a server refuses the key. It says 403 also for a model or a country that is not allowed, and a firewall between says it
 * for anything.
 */
export const isAboutKey = (status: number, reason: string): boolean =>
  status === 401 || (status === 403 && keyWords.test(reason.slice(0, 4_000)));

const keyWords =
  /\b(?:invalid|incorrect|wrong|bad|expired|revoked|missing|unknown|no)\b[^.]{0,30}\b(?:key|token|credential)s?\b|\b(?:key|token|credential)s?\b[^.]{0,40}\b(?:invalid|incorrect|wrong|expired|revoked|missing|unknown|leaked|disabled|not (?:valid|found|recognized))\b|unregistered callers|API_KEY_INVALID/i;

/** The words in which servers refuse a prompt because of its length. With 429 they are about a limit of tokens a minute. */
const tooLongWords =
  /(?:prompt|input|request|message)s?\b[^.]{0,40}\btoo (?:long|large)|context[_ ](?:length|window|size|limit)|(?:maximum|available) (?:context|prompt) |token count[^.]{0,40}exceeds|exceed\w* (?:the )?(?:limit|maximum)[^.]{0,40}\btokens|too many (?:input |prompt )?tokens|reduce the length of the (?:messages|prompt|input)|(?:prompt|input|length|tokens?)\b[^.]{0,40}\bexceed\w*[^.]{0,20}\bmax\w* (?:\w+ )?length|range of input length|exceed\w*[^.]{0,20}\btoken limit|inputs?\W+tokens \+ \W?max_new_tokens|inputs?\W+must have less than \d+ tokens/i;

/** Words in which a server says of an error that it may come from the length of the request. */
const sizeWords =
  /\b(?:kv[ _-]?cache|memory|oom|context|tokens?|sequence|prompt|length|slots?|n_ctx|too (?:long|large|big|many))\b/i;

/** Returns advice for 404. Only a server that knows models mentions one; any other has nothing at this address. */
function missing(
  { missingModelHint, address, addressVariable }: HttpFailure,
  reason: string,
): { hint?: Sentence; remedy?: Remedy } {
  if (!/model/i.test(reason))
    return { hint: sentence('Check the address {0} ({1}).', address, addressVariable) };
  return missingModelHint ? { hint: missingModelHint } : { remedy: { kind: 'choose_model' } };
}

/** Returns the error for a missing or incomplete answer. `address` is the base URL; `variable` sets it. */
export function explainLineFailure(
  error: unknown,
  label: string,
  address: string,
  variable: string,
): TurnFailure {
  if (error instanceof SyntaxError) {
    const why = [
      sentence('The answer of {0} could not be read ({1}).', label, error.message),
      sentence('Send the request again. If this happens again, check {0}.', variable),
    ];
    return { error: new TelosError('provider', why, { cause: error }), again: true };
  }
  const own = telosErrorIn(error);
  if (own) return { error: own, again: own.code === 'provider' };
  const certificate = certificateProblem(URL.canParse(address) ? new URL(address).host : address, error);
  if (certificate) return { error: new TelosError('provider', certificate, { cause: error }), again: false };
  const code = deepestCode(error);
  const unreachable = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'];
  if (code !== undefined && (unreachable.includes(code) || code === 'UND_ERR_CONNECT_TIMEOUT')) {
    const why = [
      sentence('{0} cannot be reached at {1} ({2}).', label, address, code),
      sentence('Check the network and {0}.', variable),
    ];
    const refused = code === 'ECONNREFUSED';
    return { error: new TelosError('provider', why, { cause: error }), again: true, refused };
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
export function wordsOf(reason: string): string {
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
  // A key of a few letters, as local servers take any, is a part of ordinary words.
  const known = secret
    ? text.split(secret.length < shortestSecret ? wordOf(secret) : secret).join('[key]')
    : text;
  return beginningOf(known.replace(/\bsk-[\w*.-]{6,}/g, '[key]'), 600);
}

const wordOf = (secret: string): RegExp =>
  new RegExp(`(?<![\\w-])${secret.replace(/[^\w]/g, '\\$&')}(?![\\w-])`);

function asSentence(text: string): string {
  const trimmed = text.trim() || 'no reason given';
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** Returns the error of Telos that an SDK has wrapped. */
function telosErrorIn(error: unknown): TelosError | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 6; cause = cause.cause, depth += 1)
    if (cause instanceof TelosError) return cause;
  return undefined;
}

/** The error for a request that a server does not take as it is. */
export class Refused extends TelosError {}

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
    const begins = beginningOf(this.#text, shown).replace(/\s+/g, ' ').trim();
    return new NoEventStream('provider', [
      sentence('The answer is not an event stream of {0} but {1}: “{2}”.', label, this.#type, begins),
      sentence('Check the address, and whether a proxy or the sign-in page of a network answered instead.'),
    ]);
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
  const why = sentence('The connection to {0} was lost in the middle of an answer.', label);
  return new TelosError('provider', [why, sendAgain], { cause });
}

/** Limits of a turn; times in milliseconds. */
export interface TurnLimits {
  /** Time from sending the request to the first event of an answer. Connecting has its own limit of 10 s, in Node's fetch. */
  firstByteMs: number;
  /** Time between two parts of an answer; a ping is not a part. */
  idleMs: number;
  /** How long a connection may stay open after a complete answer. If it is read to its end, it can be used again. */
  lingerMs: number;
  /** Number of attempts in all, including the first. */
  tries: number;
  /** Pause before the second attempt; it doubles with each further one. */
  firstPauseMs: number;
  /** Set where a model that was silent for so long is not asked again: it would begin anew, and be as slow. */
  waitsOnce?: true;
  /** Longest pause that a server may ask for. If it asks for more, the turn fails at once and says so. */
  longestPauseMs: number;
}

export const standardLimits: TurnLimits = {
  firstByteMs: 60_000,
  idleMs: 90_000,
  lingerMs: 1_000,
  tries: 5,
  firstPauseMs: 1_000,
  longestPauseMs: 120_000,
};

/** A model on this machine or in this network may have to be loaded from disk, and reads a long prompt slowly. */
const localLimits: TurnLimits = { ...standardLimits, firstByteMs: 600_000, idleMs: 600_000, waitsOnce: true };

/** Returns the limits for a server, by where it is, or by the minutes of silence that the person allows. */
export function limitsAt(baseUrl: string, minutes?: number): TurnLimits {
  if (minutes !== undefined) {
    const silence = minutes * 60_000;
    return { ...standardLimits, firstByteMs: silence, idleMs: silence, waitsOnce: true };
  }
  const kind = URL.canParse(baseUrl) ? hostKind(new URL(baseUrl).hostname) : 'public';
  return kind === 'loopback' || kind === 'private' ? localLimits : standardLimits;
}

/**
 * Aborts one attempt when the outer signal aborts or when the model was silent for too long. Uses one timer, however many
 * parts arrive.
 */
export class TurnWatch {
  held = false;
  expired: TelosError | undefined;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #limits: TurnLimits;
  #lastHeard = performance.now();
  #state: 'waiting' | 'hearing' | 'lingering' = 'waiting';
  #timer: NodeJS.Timeout | undefined;

  constructor(outer: AbortSignal, limits: TurnLimits) {
    this.#outer = outer;
    this.#limits = limits;
    outer.addEventListener('abort', this.#stop, { once: true });
    this.#timer = setTimeout(this.#check, limits.firstByteMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasHeard(): boolean {
    return this.#state !== 'waiting';
  }

  heard(): void {
    this.#lastHeard = performance.now();
    if (this.#state === 'waiting') this.#enter('hearing', this.#limits.idleMs);
  }

  linger(): void {
    if (this.#state !== 'lingering') this.#enter('lingering', this.#limits.lingerMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#stop);
  }

  abandon(): void {
    this.#controller.abort();
  }

  #enter(state: 'hearing' | 'lingering', limit: number): void {
    this.#state = state;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#check, limit);
  }

  readonly #stop = (): void => {
    this.#controller.abort(this.#outer.reason);
  };

  readonly #check = (): void => {
    const limit = this.#state === 'waiting' ? this.#limits.firstByteMs : this.#limits.idleMs;
    if (this.#state !== 'lingering') {
      const silence = this.held ? 0 : performance.now() - this.#lastHeard;
      if (silence < limit) {
        this.#timer = setTimeout(this.#check, limit - silence);
        return;
      }
      const seconds = Math.round(limit / 1000);
      const what =
        this.#state === 'waiting'
          ? sentence('The model did not answer within {0} seconds.', seconds)
          : sentence('The model sent nothing for {0} seconds.', seconds);
      this.expired = new TelosError('provider', [what, sendAgain]);
    }
    this.#controller.abort();
  };
}
