/** Listens to the events of runs for OpenTelemetry, and passes them on as they are. */
import type { RunEvent } from '@telos/protocol/run';
import { Collector } from './collector.ts';
import type { Attributes } from './otlp.ts';
import { newSpanId, newTraceId, RunSpans, type SpanPlace, timeNow } from './runSpans.ts';
import { readTraceSettings, type TraceSettings } from './traceSettings.ts';

type Env = Readonly<Record<string, string>>;

/** A process has one collector for each set-up. */
const opened = new Map<string, Collector>();

function collectorFor(settings: TraceSettings): Collector {
  const { parent: _, ...key } = settings;
  const name = JSON.stringify(key);
  const collector = opened.get(name) ?? new Collector(settings);
  opened.set(name, collector);
  return collector;
}

interface Sampled extends SpanPlace {
  isSampled: boolean;
}

/** Returns where a new span stands: below the parent that is named, or in a trace of its own. */
function placeOf({ sampler }: TraceSettings, parent: string | undefined): Sampled {
  const [, traceId, parentSpanId, flags] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(parent ?? '') ?? [];
  const own = traceId ?? newTraceId();
  const isLucky = Number.parseInt(own.slice(-8), 16) / 0x1_0000_0000 < sampler.ratio;
  const isParents = traceId !== undefined && sampler.isParentBased;
  const isSampled = isParents ? (Number.parseInt(flags ?? '0', 16) & 1) === 1 : isLucky;
  return { traceId: own, parentSpanId, isSampled };
}

export interface TracedRun {
  env: Env;
  /** The span below which the run is; in place of that of the environment. */
  parent: string | undefined;
  attributes: Attributes;
}

/** Passes the events on. After the last one it waits a moment for the collector, if that works. */
export async function* traced(
  events: AsyncIterable<RunEvent>,
  { env, parent, attributes }: TracedRun,
): AsyncGenerator<RunEvent, void> {
  const { settings } = readTraceSettings(env);
  const collector = collectorFor(settings);
  const place = placeOf(settings, parent ?? settings.parent);
  const sink = {
    add: (span: Parameters<Collector['add']>[0]) => place.isSampled && collector.add(span),
    metrics: collector.metrics,
    hasContent: settings.hasContent,
  };
  const spans = new RunSpans(place, sink, attributes);
  try {
    for await (const event of events) {
      spans.add(event);
      yield event;
    }
  } finally {
    spans.close();
    await collector.end();
  }
}

/**
 * Does the work within a span of its own. `work` gets that span, as W3C writes it, for the runs below it. `outcomeOf` says how it ended, where
 * its result says so.
 */
export async function inWorkflow<Result>(
  env: Env,
  name: string,
  work: (parent: string) => Promise<Result>,
  outcomeOf: (result: Result) => string | undefined = () => undefined,
): Promise<Result> {
  const { settings } = readTraceSettings(env);
  const collector = collectorFor(settings);
  const { isSampled, ...place } = placeOf(settings, settings.parent);
  const [spanId, start] = [newSpanId(), timeNow()];
  let [failure, outcome]: (string | undefined)[] = ['failed'];
  try {
    const result = await work(`00-${place.traceId}-${spanId}-${isSampled ? '01' : '00'}`);
    outcome = outcomeOf(result);
    failure = outcome === 'completed' ? undefined : outcome;
    return result;
  } finally {
    const attributes = {
      'gen_ai.operation.name': 'invoke_workflow',
      'gen_ai.workflow.name': name,
      'telos.outcome': outcome,
      'error.type': failure,
    };
    const span = { name: `invoke_workflow ${name}`, kind: 'internal' as const, start, end: timeNow() };
    const error = failure === undefined ? undefined : '';
    if (isSampled) collector.add({ ...place, spanId, ...span, attributes, error });
    await collector.end();
  }
}
