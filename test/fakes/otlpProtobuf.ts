/** Reads the binary form of OTLP, as the .proto files number it, into the JSON of the same request. */

// biome-ignore lint/suspicious/noExplicitAny: a message is whatever came
type Any = any;
type Read = (field: Field) => unknown;
interface Field {
  /** The bytes of a counted field. */
  bytes: Buffer;
  /** The number of any other. */
  number: bigint;
}
/** By number: the name in JSON, how it is read, and whether it repeats. */
type Shape = Readonly<Record<number, readonly [name: string, read: Read, repeats?: 'many' | 'packed']>>;

const text: Read = ({ bytes }) => bytes.toString('utf8');
const hex: Read = ({ bytes }) => bytes.toString('hex');
const whole: Read = ({ number }) => String(BigInt.asIntN(64, number));
const small: Read = ({ number }) => Number(number);
const truth: Read = ({ number }) => number !== 0n;
const real: Read = ({ number }) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(number);
  return bytes.readDoubleLE();
};
const of =
  (shape: () => Shape): Read =>
  ({ bytes }) =>
    messageIn(bytes, shape());

const texts: Shape = { 1: ['stringValue', text] };
const any: Shape = {
  1: ['stringValue', text],
  2: ['boolValue', truth],
  3: ['intValue', whole],
  4: ['doubleValue', real],
  5: ['arrayValue', of(() => ({ 1: ['values', of(() => texts), 'many'] }))],
};
const pair: Shape = { 1: ['key', text], 2: ['value', of(() => any)] };
const resource: Shape = { 1: ['attributes', of(() => pair), 'many'] };
const scope: Shape = { 1: ['name', text], 2: ['version', text] };
const span: Shape = {
  1: ['traceId', hex],
  2: ['spanId', hex],
  4: ['parentSpanId', hex],
  5: ['name', text],
  6: ['kind', small],
  7: ['startTimeUnixNano', whole],
  8: ['endTimeUnixNano', whole],
  9: ['attributes', of(() => pair), 'many'],
  15: ['status', of(() => ({ 2: ['message', text], 3: ['code', small] }))],
};
const numberPoint: Shape = {
  2: ['startTimeUnixNano', whole],
  3: ['timeUnixNano', whole],
  6: ['asInt', whole],
  7: ['attributes', of(() => pair), 'many'],
};
const histogramPoint: Shape = {
  2: ['startTimeUnixNano', whole],
  3: ['timeUnixNano', whole],
  4: ['count', whole],
  5: ['sum', real],
  6: ['bucketCounts', whole, 'packed'],
  7: ['explicitBounds', real, 'packed'],
  9: ['attributes', of(() => pair), 'many'],
};
const metric: Shape = {
  1: ['name', text],
  3: ['unit', text],
  7: [
    'sum',
    of(() => ({
      1: ['dataPoints', of(() => numberPoint), 'many'],
      2: ['aggregationTemporality', small],
      3: ['isMonotonic', truth],
    })),
  ],
  9: [
    'histogram',
    of(() => ({ 1: ['dataPoints', of(() => histogramPoint), 'many'], 2: ['aggregationTemporality', small] })),
  ],
};
const scopeSpans: Shape = { 1: ['scope', of(() => scope)], 2: ['spans', of(() => span), 'many'] };
const scopeMetrics: Shape = { 1: ['scope', of(() => scope)], 2: ['metrics', of(() => metric), 'many'] };
const requests: Readonly<Record<string, Shape>> = {
  '/v1/traces': {
    1: [
      'resourceSpans',
      of(() => ({ 1: ['resource', of(() => resource)], 2: ['scopeSpans', of(() => scopeSpans), 'many'] })),
      'many',
    ],
  },
  '/v1/metrics': {
    1: [
      'resourceMetrics',
      of(() => ({
        1: ['resource', of(() => resource)],
        2: ['scopeMetrics', of(() => scopeMetrics), 'many'],
      })),
      'many',
    ],
  },
};

/** Returns the request to the path. Throws for a field that the path does not have. */
export const requestIn = (path: string, bytes: Buffer): Any => messageIn(bytes, requests[path] ?? {});

function messageIn(bytes: Buffer, shape: Shape): Any {
  const read: Record<string, Any> = {};
  for (const [number, field] of fieldsIn(bytes)) {
    const known = shape[number];
    if (!known) throw new Error(`There is no field ${number} here.`);
    const [name, as, repeats] = known;
    if (repeats === 'packed')
      read[name] = eights(field.bytes).map(one => as({ bytes: field.bytes, number: one }));
    else if (repeats === 'many') read[name] = [...(read[name] ?? []), as(field)];
    else read[name] = as(field);
  }
  for (const [name, , repeats] of Object.values(shape)) if (repeats) read[name] ??= [];
  return read;
}

function* fieldsIn(bytes: Buffer): Generator<[number: number, Field]> {
  let at = 0;
  const varint = (): bigint => {
    for (let [value, shift] = [0n, 0n]; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const none = Buffer.alloc(0);
    if ((tag & 7) === 0) yield [tag >> 3, { bytes: none, number: varint() }];
    else if ((tag & 7) === 1) {
      yield [tag >> 3, { bytes: none, number: bytes.readBigUInt64LE(at) }];
      at += 8;
    } else if ((tag & 7) === 2) {
      const length = Number(varint());
      if (at + length > bytes.length) throw new Error('A field is longer than its message.');
      yield [tag >> 3, { bytes: bytes.subarray(at, at + length), number: 0n }];
      at += length;
    } else throw new Error(`There is no wire type ${tag & 7} here.`);
  }
}

const eights = (bytes: Buffer): bigint[] =>
  Array.from({ length: bytes.length / 8 }, (_, at) => bytes.readBigUInt64LE(at * 8));
