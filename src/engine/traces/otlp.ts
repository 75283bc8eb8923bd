/** Returns spans and metrics as OTLP has them in JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. */

export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string | undefined;
  name: string;
  kind: 'internal' | 'client';
  /** In milliseconds since 1970, with fractions. */
  start: number;
  end: number;
  attributes: Attributes;
  /** The message of an error; empty for one without. Undefined for none. */
  error?: string | undefined;
}

export interface Histogram {
  name: string;
  unit: string;
  bounds: readonly number[];
  points: readonly { attributes: Attributes; count: number; sum: number; buckets: readonly number[] }[];
}

export interface Counter {
  name: string;
  unit: string;
  points: readonly { attributes: Attributes; value: number }[];
}

/** Says which code wrote it. */
const scope = { name: 'telos' };
const kinds = { internal: 1, client: 3 } as const;
const errorStatus = 2;
/** Numbers since the start of the process. */
const cumulative = 2;

const nanoseconds = (milliseconds: number): string => String(BigInt(Math.round(milliseconds * 1000)) * 1000n);

const resourceOf = (resource: Attributes) => ({ attributes: attributesOf(resource) });

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: asValue(value) }],
  );
}

function asValue(value: NonNullable<Attributes[string]>): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map(one => ({ stringValue: one })) } };
}

/** Returns the request that exports the spans. */
export const spansRequest = (resource: Attributes, spans: readonly Span[]): object => ({
  resourceSpans: [{ resource: resourceOf(resource), scopeSpans: [{ scope, spans: spans.map(spanOf) }] }],
});

const spanOf = ({ traceId, spanId, parentSpanId, name, kind, start, end, attributes, error }: Span) => ({
  ...{ traceId, spanId, ...(parentSpanId !== undefined && { parentSpanId }), name },
  kind: kinds[kind],
  startTimeUnixNano: nanoseconds(start),
  endTimeUnixNano: nanoseconds(end),
  attributes: attributesOf(attributes),
  status: error === undefined ? {} : { code: errorStatus, ...(error !== '' && { message: error }) },
});

/** Returns the request that exports the metrics as they are now. */
export function metricsRequest(
  resource: Attributes,
  {
    histograms,
    counters,
    since,
    now,
  }: {
    histograms: readonly Histogram[];
    counters: readonly Counter[];
    since: number;
    now: number;
  },
): object {
  const times = { startTimeUnixNano: nanoseconds(since), timeUnixNano: nanoseconds(now) };
  const metrics = [
    ...histograms.map(({ name, unit, bounds, points }) => ({
      ...{ name, unit },
      histogram: {
        aggregationTemporality: cumulative,
        dataPoints: points.map(({ attributes, count, sum, buckets }) => ({
          attributes: attributesOf(attributes),
          ...times,
          count: String(count),
          sum,
          bucketCounts: buckets.map(String),
          explicitBounds: bounds,
        })),
      },
    })),
    ...counters.map(({ name, unit, points }) => ({
      ...{ name, unit },
      sum: {
        aggregationTemporality: cumulative,
        isMonotonic: true,
        dataPoints: points.map(({ attributes, value }) => ({
          attributes: attributesOf(attributes),
          ...times,
          asInt: String(value),
        })),
      },
    })),
  ];
  return { resourceMetrics: [{ resource: resourceOf(resource), scopeMetrics: [{ scope, metrics }] }] };
}
