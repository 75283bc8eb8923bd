/** Writes the requests of `otlp.ts` in the binary form of Protocol Buffers: https://github.com/open-telemetry/opentelemetry-proto. */

/** How a field is written. A list is a message by its fields; `[]` repeats what it holds. */
type Kind = 'text' | 'hex' | 'bool' | 'int' | 'fixed' | 'double' | Message | readonly [Kind];
interface Message {
  readonly [field: string]: readonly [number: number, kind: Kind];
}

const value: Message = {
  stringValue: [1, 'text'],
  boolValue: [2, 'bool'],
  intValue: [3, 'int'],
  doubleValue: [4, 'double'],
  arrayValue: [5, { values: [1, [{ stringValue: [1, 'text'] }]] }],
};
const attributes: Kind = [{ key: [1, 'text'], value: [2, value] }];
const resource: Message = { attributes: [1, attributes] };
const scope: Message = { name: [1, 'text'] };
const times: Message = { startTimeUnixNano: [2, 'fixed'], timeUnixNano: [3, 'fixed'] };

const span: Message = {
  traceId: [1, 'hex'],
  spanId: [2, 'hex'],
  parentSpanId: [4, 'hex'],
  name: [5, 'text'],
  kind: [6, 'int'],
  startTimeUnixNano: [7, 'fixed'],
  endTimeUnixNano: [8, 'fixed'],
  attributes: [9, attributes],
  status: [15, { message: [2, 'text'], code: [3, 'int'] }],
};
const histogramPoint: Message = {
  ...times,
  count: [4, 'fixed'],
  sum: [5, 'double'],
  bucketCounts: [6, ['fixed']],
  explicitBounds: [7, ['double']],
  attributes: [9, attributes],
};
const metric: Message = {
  name: [1, 'text'],
  unit: [3, 'text'],
  sum: [
    7,
    {
      dataPoints: [1, [{ ...times, asInt: [6, 'fixed'], attributes: [7, attributes] }]],
      aggregationTemporality: [2, 'int'],
      isMonotonic: [3, 'bool'],
    },
  ],
  histogram: [9, { dataPoints: [1, [histogramPoint]], aggregationTemporality: [2, 'int'] }],
};

/** Both requests: each has one of the two. */
const request: Message = {
  resourceSpans: [
    1,
    [{ resource: [1, resource], scopeSpans: [2, [{ scope: [1, scope], spans: [2, [span]] }]] }],
  ],
  resourceMetrics: [
    1,
    [{ resource: [1, resource], scopeMetrics: [2, [{ scope: [1, scope], metrics: [2, [metric]] }]] }],
  ],
};

/** Returns the request in bytes. */
export const protobufOf = (body: object): Uint8Array<ArrayBuffer> => new Uint8Array(messageOf(body, request));

/** The ways in which the length of a field is told, by the format. */
const wire = { varint: 0, eight: 1, counted: 2 } as const;

function messageOf(given: object, fields: Message): Buffer {
  const parts = Object.entries(given).flatMap(([name, content]) => {
    const field = fields[name];
    if (!field) throw new Error(`OTLP has no field ${name} here.`);
    return content === undefined ? [] : fieldOf(field[0], content, field[1]);
  });
  return Buffer.concat(parts);
}

function fieldOf(number: number, content: unknown, kind: Kind): Buffer[] {
  if (Array.isArray(kind)) {
    const [each] = kind as readonly [Kind];
    const items = content as readonly unknown[];
    // Numbers stand one behind the other, without a field each.
    if (each === 'fixed' || each === 'double')
      return counted(number, Buffer.concat(items.map(item => eightBytes(item, each))));
    return items.flatMap(item => fieldOf(number, item, each));
  }
  switch (kind) {
    case 'text':
      return counted(number, Buffer.from(String(content)));
    case 'hex':
      return counted(number, Buffer.from(String(content), 'hex'));
    case 'bool':
    case 'int':
      return [tag(number, wire.varint), varint(BigInt(content as number | string | boolean))];
    case 'fixed':
    case 'double':
      return [tag(number, wire.eight), eightBytes(content, kind)];
    default:
      return counted(number, messageOf(content as object, kind as Message));
  }
}

const tag = (number: number, type: number): Buffer => varint(BigInt((number << 3) | type));

const counted = (number: number, bytes: Buffer): Buffer[] => [
  tag(number, wire.counted),
  varint(BigInt(bytes.length)),
  bytes,
];

function eightBytes(content: unknown, kind: 'fixed' | 'double'): Buffer {
  const bytes = Buffer.alloc(8);
  if (kind === 'double') bytes.writeDoubleLE(Number(content));
  else bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(content as string)));
  return bytes;
}

/** Seven bits a byte, the lowest first; a negative number takes ten bytes. */
function varint(number: bigint): Buffer {
  const bytes: number[] = [];
  for (let rest = BigInt.asUintN(64, number); ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    if (rest <= 0x7fn) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}
