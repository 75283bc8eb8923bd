/** Sends spans and metrics to a collector. One that is down holds nothing up: what it does not take is dropped and counted. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fetchOut } from '../tools/fetchOut.ts';
import { Metrics } from './metrics.ts';
import { metricsRequest, type Span, spansRequest } from './otlp.ts';
import type { Place, Protocol, TraceSettings } from './traceSettings.ts';

/** Spans that wait, and that one request has. */
const mostWaiting = 2_048;
const mostSent = 512;
/** How often spans are sent while a run goes on, and how long its end waits for the last ones. In milliseconds. */
const interval = 5_000;
const endTime = 1_000;
/** A collector that was down is not waited for again for this long. In milliseconds. */
const restTime = 60_000;

export class Collector {
  readonly metrics = new Metrics();
  readonly #settings: TraceSettings;
  readonly #resource: Readonly<Record<string, string>>;
  #waiting: Span[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending = Promise.resolve();
  /** Until when a place is not tried again, by its address. */
  readonly #resting = new Map<string, number>();

  constructor(settings: TraceSettings) {
    this.#settings = settings;
    // Numbers of two processes are two rows.
    this.#resource = { 'service.instance.id': randomUUID(), ...settings.resource };
  }

  add(span: Span): void {
    if (!this.#settings.traces) return;
    if (this.#waiting.length >= mostWaiting) this.metrics.count('telos.spans.dropped', 1);
    else this.#waiting.push(span);
    this.#timer ??= setTimeout(() => void this.#send(), interval).unref();
  }

  /** Sends the rest. Resolves when it has gone, or soon. */
  async end(): Promise<void> {
    await Promise.race([this.#send(true), delay(endTime, undefined, { ref: false })]);
  }

  #send(withMetrics = false): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#sending.then(() => this.#sendNow(withMetrics));
    return this.#sending;
  }

  async #sendNow(withMetrics: boolean): Promise<void> {
    const { traces, metrics } = this.#settings;
    while (traces && this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, mostSent);
      if (!(await this.#post(traces, spansRequest(this.#resource, spans))))
        this.metrics.count('telos.spans.dropped', spans.length);
    }
    if (withMetrics && metrics) await this.#post(metrics, metricsRequest(this.#resource, this.metrics.all()));
  }

  /** Returns whether the collector has taken it. Never throws. */
  async #post({ url, headers, protocol }: Place, body: object): Promise<boolean> {
    if (performance.now() < (this.#resting.get(url) ?? 0)) return false;
    try {
      const [type, bytes] = await written(body, protocol);
      const response = await fetchOut(url, {
        method: 'POST',
        redirect: 'error',
        headers: { ...headers, 'content-type': type },
        body: bytes,
        signal: AbortSignal.timeout(this.#settings.timeout),
      });
      await response.body?.cancel();
      if (response.ok) return true;
    } catch {
      // Nobody waits for it, and its reason may name its address.
    }
    this.#resting.set(url, performance.now() + restTime);
    return false;
  }
}

async function written(
  body: object,
  protocol: Protocol,
): Promise<[type: string, body: string | Uint8Array<ArrayBuffer>]> {
  if (protocol === 'http/json') return ['application/json', JSON.stringify(body)];
  const { protobufOf } = await import('./protobuf.ts');
  return ['application/x-protobuf', protobufOf(body)];
}
