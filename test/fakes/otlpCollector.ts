/** A collector of OpenTelemetry on loopback that takes OTLP in JSON and in bytes as the specification has it, and notes why it refused something. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { requestIn } from './otlpProtobuf.ts';

// biome-ignore lint/suspicious/noExplicitAny: what came over the wire is checked here
type Any = any;

export interface ReadSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  isError: boolean;
  attributes: Record<string, unknown>;
}

export async function otlpCollector() {
  const spans: ReadSpan[] = [];
  const metrics = new Map<string, Any>();
  const refused: string[] = [];
  const raw: string[] = [];
  const headers: NodeJS.Dict<string | string[]>[] = [];
  let resource: Record<string, unknown> = {};
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces);
    raw.push(bytes.toString('utf8'));
    headers.push(request.headers);
    try {
      check(request.method === 'POST', 'a post');
      const type = request.headers['content-type'];
      check(type === 'application/json' || type === 'application/x-protobuf', 'a known form');
      const body =
        type === 'application/json'
          ? JSON.parse(bytes.toString('utf8'))
          : requestIn(request.url ?? '', bytes);
      if (request.url === '/v1/traces') {
        only(body, ['resourceSpans']);
        for (const { resource: of, scopeSpans, ...more } of body.resourceSpans) {
          only(more, []);
          resource = attributes(of.attributes);
          for (const { scope, spans: some } of scopeSpans) {
            check(typeof scope.name === 'string', 'a scope');
            spans.push(...some.map(spanIn));
          }
        }
      } else if (request.url === '/v1/metrics') {
        only(body, ['resourceMetrics']);
        for (const { scopeMetrics } of body.resourceMetrics)
          for (const { metrics: some } of scopeMetrics)
            for (const one of some) metrics.set(one.name, metricIn(one));
      } else throw new Error(`no such path ${request.url}`);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}');
    } catch (error) {
      refused.push(String(error));
      response.writeHead(400).end();
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, spans, metrics, refused, raw, headers, resource: () => resource, close };
}

function check(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(`This is not ${what}.`);
}

function only(value: object, names: readonly string[]): void {
  const more = Object.keys(value).filter(name => !names.includes(name));
  check(more.length === 0, `known: ${more}`);
}

const time = /^\d{19}$/;
const whole = /^\d+$/;

function spanIn(span: Any): ReadSpan {
  only(span, [
    ...['traceId', 'spanId', 'parentSpanId', 'name', 'kind'],
    ...['startTimeUnixNano', 'endTimeUnixNano', 'attributes', 'status'],
  ]);
  check(/^[0-9a-f]{32}$/.test(span.traceId) && !/^0+$/.test(span.traceId), 'an id of a trace');
  check(/^[0-9a-f]{16}$/.test(span.spanId) && !/^0+$/.test(span.spanId), 'an id of a span');
  check(span.parentSpanId === undefined || /^[0-9a-f]{16}$/.test(span.parentSpanId), 'a parent');
  check(typeof span.name === 'string' && span.name !== '', 'a name');
  check([1, 2, 3, 4, 5].includes(span.kind), 'a kind');
  check(time.test(span.startTimeUnixNano) && time.test(span.endTimeUnixNano), 'a time');
  check(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), 'a span that begins before it ends');
  only(span.status, ['code', 'message']);
  check([undefined, 1, 2].includes(span.status.code), 'a status');
  const { traceId, spanId, parentSpanId, name, kind } = span;
  return {
    ...{ traceId, spanId, name, kind, attributes: attributes(span.attributes) },
    ...(parentSpanId !== undefined && { parentSpanId }),
    isError: span.status.code === 2,
  };
}

function attributes(list: Any[]): Record<string, unknown> {
  const read = list.map(({ key, value, ...more }): [string, unknown] => {
    only(more, []);
    const [kind, ...others] = Object.keys(value);
    check(typeof key === 'string' && others.length === 0, 'one value');
    const given = value[kind as string];
    switch (kind) {
      case 'stringValue':
        check(typeof given === 'string', 'a text');
        return [key, given];
      case 'intValue':
        check(typeof given === 'string' && /^-?\d+$/.test(given), 'a whole number as text');
        return [key, Number(given)];
      case 'doubleValue':
        check(typeof given === 'number', 'a number');
        return [key, given];
      case 'boolValue':
        check(typeof given === 'boolean', 'true or false');
        return [key, given];
      case 'arrayValue':
        return [key, given.values.map((one: Any) => one.stringValue)];
      default:
        throw new Error(`There is no ${kind}.`);
    }
  });
  check(new Set(read.map(([key]) => key)).size === read.length, 'a list without doubles');
  return Object.fromEntries(read);
}

function metricIn({ name, unit, histogram, sum, ...more }: Any): Any {
  only(more, []);
  check(typeof name === 'string' && typeof unit === 'string', 'a metric');
  const { aggregationTemporality, dataPoints } = histogram ?? sum;
  check(aggregationTemporality === 2, 'cumulative');
  return dataPoints.map((point: Any) => {
    check(time.test(point.startTimeUnixNano) && time.test(point.timeUnixNano), 'a time');
    const read = attributes(point.attributes);
    if (sum) {
      check(sum.isMonotonic === true && whole.test(point.asInt), 'a sum');
      return { attributes: read, value: Number(point.asInt) };
    }
    const { count, bucketCounts, explicitBounds } = point;
    check(bucketCounts.length === explicitBounds.length + 1, 'one bucket more than bounds');
    const all = bucketCounts.reduce((total: number, one: string) => total + Number(one), 0);
    check(whole.test(count) && all === Number(count), 'buckets that add up');
    return { attributes: read, count: Number(count), sum: point.sum };
  });
}
