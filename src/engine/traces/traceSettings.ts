/** Reads the variables by which OpenTelemetry is set up, as its specification names them. */
import { isDeepStrictEqual } from 'node:util';
import { type Sentence, sentence } from '@telos/protocol/text';

type Env = Readonly<Record<string, string>>;

export interface TraceSettings {
  /** Where spans and metrics go. Undefined for what is not exported. */
  traces: Place | undefined;
  metrics: Place | undefined;
  /** In milliseconds. */
  timeout: number;
  resource: Readonly<Record<string, string>>;
  sampler: Sampler;
  /** Requests, answers, calls and results are exported too. */
  hasContent: boolean;
  /** The span below which runs are, as W3C writes it. */
  parent: string | undefined;
}

export interface Place {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The form of the requests. */
  protocol: Protocol;
}

export type Protocol = 'http/json' | 'http/protobuf';
const protocols: readonly string[] = ['http/json', 'http/protobuf'] satisfies Protocol[];

export interface Sampler {
  /** The part of the traces that is exported, from 0 to 1. */
  ratio: number;
  /** Whether a parent decides, where there is one. */
  isParentBased: boolean;
}

const usualTimeout = 10_000;

/** Returns true if spans or metrics may be exported. Reads nothing else, so that no run pays for it. */
export const hasTraces = (env: Env): boolean =>
  [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  ].some(name => Boolean(env[name])) && env['OTEL_SDK_DISABLED']?.trim().toLowerCase() !== 'true';

/** Returns the settings, and why something does not count. */
export function readTraceSettings(env: Env): { settings: TraceSettings; problems: readonly Sentence[] } {
  const problems: Sentence[] = [];
  const traces = placeOf(env, 'TRACES', problems);
  const ofMetrics: Sentence[] = [];
  const metrics = placeOf(env, 'METRICS', ofMetrics);
  // One variable of both is named once.
  problems.push(...ofMetrics.filter(one => !problems.some(said => isDeepStrictEqual(said, one))));
  const wantedTimeout = Number(env['OTEL_EXPORTER_OTLP_TIMEOUT'] || usualTimeout);
  const content = env['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'] ?? '';
  return {
    settings: {
      traces,
      metrics,
      timeout: wantedTimeout > 0 ? wantedTimeout : usualTimeout,
      resource: resourceOf(env),
      sampler: samplerOf(env, problems),
      hasContent: /^(?:true|span_only|span_and_event)$/i.test(content.trim()),
      parent: env['TRACEPARENT'] || undefined,
    },
    problems,
  };
}

function placeOf(env: Env, kind: 'TRACES' | 'METRICS', problems: Sentence[]): Place | undefined {
  const of = (name: string): string | undefined =>
    env[`OTEL_EXPORTER_OTLP_${kind}_${name}`] || env[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
  if (env[`OTEL_${kind}_EXPORTER`]?.trim() === 'none') return undefined;
  const own = env[`OTEL_EXPORTER_OTLP_${kind}_ENDPOINT`];
  const base = env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const url = own || (base && `${base.replace(/\/+$/, '')}/v1/${kind.toLowerCase()}`);
  if (!url) return undefined;
  const variable = own ? `OTEL_EXPORTER_OTLP_${kind}_ENDPOINT` : 'OTEL_EXPORTER_OTLP_ENDPOINT';
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    problems.push(sentence('{0} is not an http address, so nothing is exported there.', variable));
    return undefined;
  }
  const protocol = of('PROTOCOL')?.trim() || 'http/json';
  if (!isProtocol(protocol)) {
    const its = `OTEL_EXPORTER_OTLP_${kind}_PROTOCOL`;
    const variable = env[its] ? its : 'OTEL_EXPORTER_OTLP_PROTOCOL';
    problems.push(
      sentence(
        'Nothing is exported there: {0} is {1}. Set it to http/json or http/protobuf.',
        variable,
        protocol,
      ),
    );
    return undefined;
  }
  return { url, headers: pairsIn(of('HEADERS') ?? ''), protocol };
}

const isProtocol = (name: string): name is Protocol => protocols.includes(name);

/** Returns `a=b,c=d` as it is meant. A part that is not written so is left out. */
export function pairsIn(text: string): Record<string, string> {
  const pairs = text.split(',').flatMap(part => {
    const at = part.indexOf('=');
    if (at <= 0) return [];
    return [[part.slice(0, at).trim(), decoded(part.slice(at + 1).trim())] as const];
  });
  return Object.fromEntries(pairs);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function resourceOf(env: Env): Record<string, string> {
  const given = pairsIn(env['OTEL_RESOURCE_ATTRIBUTES'] ?? '');
  return {
    'service.name': 'telos',
    ...given,
    ...(env['OTEL_SERVICE_NAME'] && { 'service.name': env['OTEL_SERVICE_NAME'] }),
  };
}

function samplerOf(env: Env, problems: Sentence[]): Sampler {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || 'parentbased_always_on';
  const [, parent, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined)
    problems.push(
      sentence('OTEL_TRACES_SAMPLER is {0}, which is unknown, so every trace is exported.', name),
    );
  const written = Number(env['OTEL_TRACES_SAMPLER_ARG'] || 1);
  const ratio = written >= 0 && written <= 1 ? written : 1;
  const ratios: Readonly<Record<string, number>> = { always_off: 0, traceidratio: ratio };
  return { ratio: ratios[kind ?? ''] ?? 1, isParentBased: parent !== undefined || kind === undefined };
}
