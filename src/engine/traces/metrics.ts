/** Adds up what a process has measured. */
import type { Attributes, Counter, Histogram } from './otlp.ts';

/** The bounds that the conventions name, for tokens and for seconds. */
const tokens = Array.from({ length: 14 }, (_, at) => 4 ** at);
const seconds = Array.from({ length: 14 }, (_, at) => 2 ** at / 100);

const histogramShapes = {
  'gen_ai.client.token.usage': { unit: '{token}', bounds: tokens },
  'gen_ai.client.operation.duration': { unit: 's', bounds: seconds },
  'gen_ai.invoke_agent.duration': { unit: 's', bounds: seconds },
  'gen_ai.execute_tool.duration': { unit: 's', bounds: seconds },
} as const;
export type HistogramName = keyof typeof histogramShapes;

const counterShapes = {
  /** Calls that a rule or the user refused. */
  'telos.denials': '{call}',
  /** Spans that were not exported. */
  'telos.spans.dropped': '{span}',
} as const;
export type CounterName = keyof typeof counterShapes;

interface Point {
  attributes: Attributes;
  count: number;
  sum: number;
  buckets: number[];
}

export class Metrics {
  readonly since = performance.timeOrigin + performance.now();
  readonly #histograms = new Map<HistogramName, Map<string, Point>>();
  readonly #counters = new Map<CounterName, Map<string, { attributes: Attributes; value: number }>>();

  record(name: HistogramName, value: number, attributes: Attributes): void {
    const { bounds } = histogramShapes[name];
    const points = this.#histograms.get(name) ?? new Map<string, Point>();
    this.#histograms.set(name, points);
    const key = JSON.stringify(attributes);
    const point = points.get(key) ?? { attributes, count: 0, sum: 0, buckets: [...bounds, 0].map(() => 0) };
    points.set(key, point);
    const at = bounds.findIndex(bound => value <= bound);
    point.count++;
    point.sum += value;
    point.buckets[at < 0 ? bounds.length : at]!++;
  }

  count(name: CounterName, more: number, attributes: Attributes = {}): void {
    const points = this.#counters.get(name) ?? new Map<string, { attributes: Attributes; value: number }>();
    this.#counters.set(name, points);
    const key = JSON.stringify(attributes);
    const value = (points.get(key)?.value ?? 0) + more;
    points.set(key, { attributes, value });
  }

  /** Returns everything that was measured since the process has begun. */
  all(): { histograms: Histogram[]; counters: Counter[]; since: number; now: number } {
    return {
      histograms: [...this.#histograms].map(([name, points]) => ({
        ...{ name, ...histogramShapes[name] },
        points: [...points.values()],
      })),
      counters: [...this.#counters].map(([name, points]) => ({
        ...{ name, unit: counterShapes[name] },
        points: [...points.values()],
      })),
      since: this.since,
      now: performance.timeOrigin + performance.now(),
    };
  }
}
