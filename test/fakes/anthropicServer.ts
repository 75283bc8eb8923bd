/**
 * A loopback server that speaks the wire format of Anthropic's Messages API, so that providers, the command line and benches
 * meet real sockets and real bytes. Also runs as a process: `node test/fakes/anthropicServer.ts --port 0 --script turns.json`.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';

/** What the server answers to one request. All parts are optional; an empty turn is an empty answer. */
export interface AnthropicTurn {
  /** Text deltas, in order, as one text block. */
  text?: string[];
  /** Reasoning, sent before the text. */
  thinking?: { thinking: string; signature: string }[];
  /** Sealed reasoning, sent before the text. */
  redactedThinking?: string[];
  /** `json` sends these raw characters as the arguments in place of `input`. */
  toolCalls?: { id?: string; name: string; input?: unknown; json?: string }[];
  /** Default: `tool_use` when there are tool calls, else `end_turn`. */
  stopReason?: string;
  usage?: Record<string, number>;
  /** An HTTP status other than 200 sends `errorBody` (or a plausible one) as JSON. */
  status?: number;
  errorBody?: unknown;
  headers?: Record<string, string>;
  /** The socket is destroyed after this many bytes of the body. */
  cutAfterBytes?: number;
  /** The body ends properly, but without the `message_stop` event. */
  withoutStop?: boolean;
  /** Milliseconds of silence before the headers. */
  stallMs?: number;
  /** Milliseconds of silence after `message_start` and the first ping. */
  stallAfterStartMs?: number;
  /** An `error` event in the middle of the stream, after the text. */
  streamError?: { type: string; message: string };
  /** Bytes in each write; the whole body is cut into such pieces. Default: one write per event. */
  chunkBytes?: number;
}

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the body of a request as it came
  body: any;
  /** `performance.now()` when the whole request had arrived. */
  arrivedAt: number;
  /** Becomes true when the client went away before the answer was complete. */
  aborted: boolean;
}

export interface FakeServer {
  /** For ANTHROPIC_BASE_URL; without a slash at the end. */
  url: string;
  requests: ReceivedRequest[];
  close(): Promise<void>;
}

export interface AnthropicServerOptions {
  /** One turn per request, in order, the last one again and again; or a function of the request. */
  turns: AnthropicTurn[] | ((request: ReceivedRequest, index: number) => AnthropicTurn);
  /** Pause between two writes in milliseconds. Default 0. */
  chunkDelayMs?: number;
  port?: number;
  /** Called when a request has arrived whole. */
  onRequest?: (request: ReceivedRequest) => void;
}

export async function startAnthropicServer(options: AnthropicServerOptions): Promise<FakeServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    serve(request, response, requests, options).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests, close: () => closeServer(server) };
}

function closeServer(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function serve(
  incoming: IncomingMessage,
  response: ServerResponse,
  requests: ReceivedRequest[],
  options: AnthropicServerOptions,
): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString('utf8');
  const received: ReceivedRequest = {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    ),
    body: text ? JSON.parse(text) : undefined,
    arrivedAt: performance.now(),
    aborted: false,
  };
  if (received.method !== 'POST' || received.path.split('?')[0] !== '/v1/messages') {
    sendJson(response, 404, { type: 'error', error: { type: 'not_found_error', message: 'Not found' } });
    return;
  }
  requests.push(received);
  response.on('close', () => {
    if (!response.writableFinished) received.aborted = true;
  });
  const { turns } = options;
  const index = requests.length - 1;
  const turn =
    typeof turns === 'function' ? turns(received, index) : (turns[Math.min(index, turns.length - 1)] ?? {});
  options.onRequest?.(received);
  if (turn.stallMs) await pause(turn.stallMs, response);
  if (response.destroyed) return;
  if (turn.status !== undefined && turn.status !== 200) {
    const fallback = {
      type: 'error',
      error: { type: errorType(turn.status), message: `Status ${turn.status}` },
    };
    sendJson(response, turn.status, turn.errorBody ?? fallback, turn.headers);
    return;
  }
  if (received.body?.stream !== true) {
    sendJson(response, 200, wholeMessage(turn, received.body?.model));
    return;
  }
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    ...turn.headers,
  });
  const events = anthropicEvents(turn, received.body?.model, `toolu_${index + 1}`);
  await sendStream(response, turn, events, options.chunkDelayMs ?? 0);
}

async function sendStream(
  response: ServerResponse,
  turn: AnthropicTurn,
  events: readonly [string, object][],
  chunkDelayMs: number,
): Promise<void> {
  let left = turn.cutAfterBytes ?? Number.POSITIVE_INFINITY;
  const pieces = events.map(([event, data]) =>
    Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
  );
  const writes = turn.chunkBytes ? cut(Buffer.concat(pieces), turn.chunkBytes) : pieces;
  for (const [index, write] of writes.entries()) {
    if (response.destroyed) return;
    const open = response.write(write.subarray(0, left));
    left -= write.length;
    if (left <= 0) {
      await pause(20, response); // lets the bytes leave before the socket goes
      response.destroy();
      return;
    }
    if (turn.stallAfterStartMs && index === 1) await pause(turn.stallAfterStartMs, response);
    if (chunkDelayMs > 0) await pause(chunkDelayMs, response);
    else if (turn.chunkBytes) await new Promise(resolve => setImmediate(resolve));
    else if (!open) await new Promise<void>(resolve => onceEither(response, 'drain', 'close', resolve));
  }
  response.end();
}

/** The events of one answer as the API sends them: name and data. Calls without an id get one that starts with `idPrefix`. */
export function anthropicEvents(
  turn: AnthropicTurn,
  model = 'claude-haiku-4-5',
  idPrefix = 'toolu_1',
): [string, object][] {
  const events: [string, object][] = [];
  const add = (data: { type: string } & Record<string, unknown>) => events.push([data.type, data]);
  const usage = {
    input_tokens: 25,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 40,
    ...turn.usage,
  };
  add({ type: 'message_start', message: { ...emptyMessage(model), usage: { ...usage, output_tokens: 1 } } });
  add({ type: 'ping' });
  let index = 0;
  const block = (start: object, deltas: object[]) => {
    add({ type: 'content_block_start', index, content_block: start });
    for (const delta of deltas) add({ type: 'content_block_delta', index, delta });
    add({ type: 'content_block_stop', index });
    index += 1;
  };
  for (const { thinking, signature } of turn.thinking ?? []) {
    block({ type: 'thinking', thinking: '', signature: '' }, [
      ...slices(thinking, 12).map(part => ({ type: 'thinking_delta', thinking: part })),
      { type: 'signature_delta', signature },
    ]);
  }
  for (const data of turn.redactedThinking ?? []) block({ type: 'redacted_thinking', data }, []);
  if (turn.text) {
    block(
      { type: 'text', text: '' },
      turn.text.map(text => ({ type: 'text_delta', text })),
    );
  }
  if (turn.streamError) {
    events.push(['error', { type: 'error', error: turn.streamError }]);
    return events;
  }
  for (const [position, call] of (turn.toolCalls ?? []).entries()) {
    const id = call.id ?? `${idPrefix}_${position + 1}`;
    const json = call.json ?? (call.input === undefined ? '' : JSON.stringify(call.input));
    block(
      { type: 'tool_use', id, name: call.name, input: {} },
      ['', ...slices(json, 9)].map(part => ({ type: 'input_json_delta', partial_json: part })),
    );
  }
  const stopReason = turn.stopReason ?? (turn.toolCalls?.length ? 'tool_use' : 'end_turn');
  add({ type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage });
  if (!turn.withoutStop) add({ type: 'message_stop' });
  return events;
}

function emptyMessage(model: string): Record<string, unknown> {
  return {
    id: 'msg_local',
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

function wholeMessage(turn: AnthropicTurn, model: string): object {
  const calls = (turn.toolCalls ?? []).map((call, position) => ({
    type: 'tool_use',
    id: call.id ?? `toolu_${position + 1}`,
    name: call.name,
    input: call.input ?? {},
  }));
  const text = turn.text ? [{ type: 'text', text: turn.text.join('') }] : [];
  const stopReason = turn.stopReason ?? (calls.length ? 'tool_use' : 'end_turn');
  const usage = { input_tokens: 25, output_tokens: 40, ...turn.usage };
  return { ...emptyMessage(model), content: [...text, ...calls], stop_reason: stopReason, usage };
}

function errorType(status: number): string {
  const types: Record<number, string> = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  };
  return types[status] ?? 'api_error';
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_local', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

function slices(text: string, size: number): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
    text.slice(at * size, (at + 1) * size),
  );
}

function cut(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
}

/** Waits, but not for a client that has gone. */
function pause(milliseconds: number, response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(finish, milliseconds);
    function finish(): void {
      clearTimeout(timer);
      response.off('close', finish);
      resolve();
    }
    response.on('close', finish);
  });
}

function onceEither(response: ServerResponse, first: string, second: string, then: () => void): void {
  function finish(): void {
    response.off(first, finish);
    response.off(second, finish);
    then();
  }
  response.on(first, finish);
  response.on(second, finish);
}

/**
 * The script is `{ turns: AnthropicTurn[], chunkDelayMs? }` or the list alone. The URL is the first line on stdout; with `--log`
 * each request follows as one line of JSON, with `arrivedAt` in milliseconds since 1970. Ends on a signal, with the process that
 * started it, or after ten minutes.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '0' }, script: { type: 'string' }, log: { type: 'boolean' } },
  });
  const script: unknown = values.script
    ? JSON.parse(readFileSync(values.script, 'utf8'))
    : [{ text: ['Hello.'] }];
  const { turns, chunkDelayMs = 0 } = (Array.isArray(script) ? { turns: script } : script) as {
    turns: AnthropicTurn[];
    chunkDelayMs?: number;
  };
  const onRequest = (request: ReceivedRequest) => {
    const arrivedAt = performance.timeOrigin + request.arrivedAt;
    if (values.log) console.log(JSON.stringify({ ...request, arrivedAt }));
  };
  const server = await startAnthropicServer({ turns, chunkDelayMs, port: Number(values.port), onRequest });
  console.log(server.url);
  const stop = () => void server.close().then(() => process.exit(0));
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, 1000).unref();
  setTimeout(stop, 600_000).unref();
}

if (import.meta.main) await main();
