/**
 * Fakes Anthropic's Messages API on a loopback server, in its wire format. Providers, the command line and benches thus meet real
 * sockets and real bytes. Also runs as a process: `node test/fakes/anthropicServer.ts --port 0 --script turns.json`.
 */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { anthropicRefusal } from './anthropicRefusal.ts';
import { BoundThinking } from './boundThinking.ts';
import {
  closing,
  type Delivery,
  type FakeServer,
  failed,
  listen,
  type ReceivedRequest,
  sendEvents,
  sendJson,
  slices,
  turnFor,
} from './loopback.ts';

export type { FakeServer, ReceivedRequest } from './loopback.ts';

/** The server's answer to one request. All parts are optional; an empty turn is an empty answer. */
export interface AnthropicTurn extends Delivery {
  /** Text deltas, in order, as one text block. */
  text?: string[];
  /** Reasoning, sent before the text. */
  thinking?: { thinking: string; signature: string }[];
  /** Sealed reasoning, sent before the text. */
  redactedThinking?: string[];
  /** Tool calls. `json` sends these raw characters as the arguments in place of `input`. */
  toolCalls?: { id?: string; name: string; input?: unknown; json?: string }[];
  /** Default: `tool_use` if there are tool calls, else `end_turn`. */
  stopReason?: string;
  usage?: Record<string, number>;
  /** The body ends properly, but without the `message_stop` event. */
  withoutStop?: boolean;
  /** An `error` event in the middle of the stream, after the text. */
  streamError?: { type: string; message: string };
}

export interface AnthropicServerOptions {
  /** One turn per request, in order, with the last one repeated; or a function of the request. */
  turns: AnthropicTurn[] | ((request: ReceivedRequest, index: number) => AnthropicTurn);
  /** Pause between two writes. In milliseconds. Default 0. */
  chunkDelayMs?: number;
  port?: number;
  /** The only key that counts. Any key does if it is missing. */
  key?: string;
  /** Called when a request has arrived completely. */
  onRequest?: (request: ReceivedRequest) => void;
}

export async function startAnthropicServer(options: AnthropicServerOptions): Promise<FakeServer> {
  const seen: Seen = { requests: [], refused: [], thinking: new BoundThinking() };
  const server = await listen((request, response) => serve(request, response, seen, options), options.port);
  const { requests, refused } = seen;
  return { url: server.address, requests, refused, close: closing(server.close, refused) };
}

interface Seen {
  requests: ReceivedRequest[];
  refused: string[];
  thinking: BoundThinking;
}

async function serve(
  request: ReceivedRequest,
  response: ServerResponse,
  { requests, refused, thinking }: Seen,
  { turns, chunkDelayMs = 0, key, onRequest }: AnthropicServerOptions,
): Promise<void> {
  const { 'x-api-key': plain, authorization } = request.headers;
  if (key !== undefined && plain !== key && authorization !== `Bearer ${key}`) {
    sendJson(response, 401, plausibleError(401));
    return;
  }
  if (request.method !== 'POST' || request.path.split('?')[0] !== '/v1/messages') {
    sendJson(response, 404, plausibleError(404));
    return;
  }
  const { status, message } = anthropicRefusal(request.body, request.bytes) ?? {
    status: 400,
    message: thinking.refusal(request.body),
  };
  if (message !== undefined) {
    refused.push(message);
    sendJson(response, status, plausibleError(status, message));
    return;
  }
  requests.push(request);
  const turn: AnthropicTurn = turnFor(turns, request, requests.length - 1);
  thinking.note(request.body, thoughtsOf(turn));
  onRequest?.(request);
  if (await failed(turn, response, plausibleError)) return;
  if (request.body?.stream !== true) {
    sendJson(response, 200, wholeMessage(turn, request.body?.model));
    return;
  }
  const events = anthropicEvents(turn, request.body?.model, `toolu_${requests.length}`);
  const lines = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  await sendEvents(response, lines, turn, chunkDelayMs);
}

/**
 * Returns the events of one answer as the API sends them: name and data. Calls without an id get one that starts with `idPrefix`.
 */
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
      ['', ...slices(json, Math.max(9, Math.ceil(json.length / 4000)))].map(part => ({
        type: 'input_json_delta',
        partial_json: part,
      })),
    );
  }
  const stopReason = turn.stopReason ?? (turn.toolCalls?.length ? 'tool_use' : 'end_turn');
  add({ type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage });
  if (!turn.withoutStop) add({ type: 'message_stop' });
  return events;
}

const thoughtsOf = (turn: AnthropicTurn): Record<string, unknown>[] => [
  ...(turn.thinking ?? []).map(block => ({ type: 'thinking', ...block })),
  ...(turn.redactedThinking ?? []).map(data => ({ type: 'redacted_thinking', data })),
];

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

function plausibleError(status: number, message = `Status ${status}`): object {
  const types: Record<number, string> = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  };
  return { type: 'error', error: { type: types[status] ?? 'api_error', message } };
}

/**
 * Runs the server as a process. The script is `{ turns: AnthropicTurn[], chunkDelayMs? }` or the list alone. The URL is the first
 * line on stdout. With `--log`, each request follows as one line of JSON, with `arrivedAt` in milliseconds since 1970. Ends on a
 * signal, with the process that started it, or after ten minutes.
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
  const stop = () =>
    void server.close().then(
      () => process.exit(0),
      (error: Error) => {
        console.error(error.message);
        process.exit(1);
      },
    );
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, 1000).unref();
  setTimeout(stop, 600_000).unref();
}

if (import.meta.main) await main();
