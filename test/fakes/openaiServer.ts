/** Fakes OpenAI's chat completions on a loopback server, in their wire format and with the habits of imitating servers. */
import type { ServerResponse } from 'node:http';
import { chatRefusal } from './chatRefusal.ts';
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

/** The server's answer to one request. All parts are optional; an empty turn is an empty answer. */
export interface OpenaiTurn extends Delivery {
  /** Text deltas, in order. */
  text?: string[];
  /** Tool calls. `json` sends these raw characters as the arguments in place of `input`. */
  toolCalls?: { id?: string; name: string; input?: unknown; json?: string; extraContent?: object }[];
  /** Default: `tool_calls` if there are tool calls, else `stop`. */
  finishReason?: string;
  usage?: object;
  /** Chunks sent unchanged in place of everything above. */
  chunks?: object[];
  /** The stream ends without the line `[DONE]`. */
  withoutDone?: boolean;
}

export interface OpenaiServerOptions {
  /** One turn per request, in order, with the last one repeated; or a function of the request. */
  turns: OpenaiTurn[] | ((request: ReceivedRequest, index: number) => OpenaiTurn);
  /** Pause between two writes. In milliseconds. Default 0. */
  chunkDelayMs?: number;
  /** Answers requests for other paths, such as Ollama's `/api/ps`. Undefined means 404. */
  other?: (request: ReceivedRequest) => object | undefined;
}

/** Starts the server. `url` is the base URL and ends in /v1. `requests` holds those for completions, `others` the rest. */
export async function startOpenaiServer(
  options: OpenaiServerOptions,
): Promise<FakeServer & { others: ReceivedRequest[] }> {
  const requests: ReceivedRequest[] = [];
  const others: ReceivedRequest[] = [];
  const refused: string[] = [];
  const server = await listen(async (request, response) => {
    if (request.path === '/v1/chat/completions') {
      const refusal = chatRefusal(request.body, request.bytes);
      if (refusal !== undefined) {
        refused.push(refusal);
        sendJson(response, 400, invalidRequest(refusal));
        return;
      }
      requests.push(request);
      await complete(request, response, requests.length - 1, options);
      return;
    }
    others.push(request);
    const answer = options.other?.(request);
    sendJson(response, answer ? 200 : 404, answer ?? plausibleError(404));
  });
  return { url: `${server.address}/v1`, requests, others, refused, close: closing(server.close, refused) };
}

async function complete(
  request: ReceivedRequest,
  response: ServerResponse,
  index: number,
  { turns, chunkDelayMs = 0 }: OpenaiServerOptions,
): Promise<void> {
  const turn: OpenaiTurn = turnFor(turns, request, index);
  if (await failed(turn, response, plausibleError)) return;
  const lines = openaiChunks(turn, request.body?.model).map(chunk => `data: ${JSON.stringify(chunk)}\n\n`);
  if (!turn.withoutDone) lines.push('data: [DONE]\n\n');
  await sendEvents(response, lines, turn, chunkDelayMs);
}

/** Returns the body with which OpenAI refuses a request. */
export const invalidRequest = (message: string): object => ({
  error: { message, type: 'invalid_request_error', param: null, code: null },
});

function plausibleError(status: number): object {
  return { error: { message: `Status ${status}`, type: 'api_error', code: null } };
}

/** Returns the chunks of one answer as the API sends them, with the token counts in the last one. */
export function openaiChunks(turn: OpenaiTurn, model = 'gpt'): object[] {
  if (turn.chunks) return turn.chunks;
  const envelope = { id: 'chatcmpl-local', object: 'chat.completion.chunk', created: 0, model };
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...envelope,
    choices: [{ index: 0, delta, finish_reason }],
  });
  const chunks: object[] = [chunk({ role: 'assistant', content: '' })];
  for (const text of turn.text ?? []) chunks.push(chunk({ content: text }));
  for (const [index, call] of (turn.toolCalls ?? []).entries()) {
    const json = call.json ?? JSON.stringify(call.input ?? {});
    const start = {
      index,
      id: call.id ?? `call_${index + 1}`,
      type: 'function',
      function: { name: call.name, arguments: '' },
    };
    const extra = call.extraContent ? { extra_content: call.extraContent } : {};
    chunks.push(chunk({ tool_calls: [{ ...start, ...extra }] }));
    for (const part of slices(json, 9)) {
      chunks.push(chunk({ tool_calls: [{ index, function: { arguments: part } }] }));
    }
  }
  chunks.push(chunk({}, turn.finishReason ?? (turn.toolCalls?.length ? 'tool_calls' : 'stop')));
  const usage = { prompt_tokens: 25, completion_tokens: 40, total_tokens: 65, ...turn.usage };
  chunks.push({ ...envelope, choices: [], usage });
  return chunks;
}
