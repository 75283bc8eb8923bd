/** Fakes OpenAI's Responses API and Gemini's own API on a loopback server, in their wire formats. */
import type { ServerResponse } from 'node:http';
import { geminiRefusal } from './geminiRefusal.ts';
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
import { invalidRequest } from './openaiServer.ts';
import { responsesRefusal } from './responsesRefusal.ts';

export type MakerDialect = 'responses' | 'gemini';

/** The server's answer to one request. All parts are optional; an empty turn is an empty answer. */
export interface MakerTurn extends Delivery {
  /** Pieces of what the model shows of its thoughts. */
  thoughts?: string[];
  /** Seal on the thoughts. Gemini's is on the first call, or on the last text. */
  seal?: string;
  /** Text deltas, in order. */
  text?: string[];
  /** Tool calls. `json` sends these raw characters as the arguments in place of `input`. */
  toolCalls?: { id?: string; name: string; input?: unknown; json?: string }[];
  /** A reason in the words of the API: the one for which an answer is incomplete, or Gemini's for its end. */
  finish?: string;
  usage?: object;
  /** Events sent unchanged in place of everything above. */
  events?: object[];
}

export interface MakerServerOptions {
  dialect: MakerDialect;
  /** One turn per request, in order, with the last one repeated; or a function of the request. */
  turns: MakerTurn[] | ((request: ReceivedRequest, index: number) => MakerTurn);
}

/** Starts the server. `url` is the base URL, as a person sets it. */
export async function startMakerServer({ dialect, turns }: MakerServerOptions): Promise<FakeServer> {
  const requests: ReceivedRequest[] = [];
  const refused: string[] = [];
  const isAsked = (path: string): boolean =>
    dialect === 'responses'
      ? path === '/v1/responses'
      : /^\/v1beta\/models\/[^/]+:streamGenerateContent\?alt=sse$/.test(path);
  const server = await listen(async (request, response) => {
    if (!isAsked(request.path)) return sendJson(response, 404, plausibleError(404));
    const refusal = refusalOf(request, dialect);
    if (refusal) {
      refused.push(refusal.message);
      return sendJson(response, 400, refusal.body);
    }
    requests.push(request);
    await answer(turnFor(turns, request, requests.length - 1), dialect, response);
  });
  const base = dialect === 'responses' ? '/v1' : '/v1beta';
  return { url: server.address + base, requests, refused, close: closing(server.close, refused) };
}

/** Returns why the real API would refuse the request, and the body with which it does. */
function refusalOf(
  { path, body }: ReceivedRequest,
  dialect: MakerDialect,
): { message: string; body: object } | undefined {
  if (dialect === 'responses') {
    const message = responsesRefusal(body);
    return message === undefined ? undefined : { message, body: invalidRequest(message) };
  }
  const message = geminiRefusal(body, /models\/([^/]+):/.exec(path)?.[1] ?? '');
  return message === undefined
    ? undefined
    : { message, body: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } } };
}

async function answer(turn: MakerTurn, dialect: MakerDialect, response: ServerResponse): Promise<void> {
  if (await failed(turn, response, plausibleError)) return;
  const events = turn.events ?? (dialect === 'responses' ? responsesEvents(turn) : geminiAnswers(turn));
  const lines = events.map(event => {
    const { type } = event as { type?: string };
    return `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`;
  });
  await sendEvents(response, lines, turn, 0);
}

const plausibleError = (status: number): object => ({
  error: { code: status, message: `Status ${status}`, status: 'UNKNOWN' },
});

/** Returns the events of one answer as the Responses API sends them. */
function responsesEvents(turn: MakerTurn): object[] {
  const events: object[] = [];
  const output: object[] = [];
  const add = (item: object, ...inner: object[]): void => {
    const at = { output_index: output.length };
    events.push({ type: 'response.output_item.added', ...at, item: { ...item, status: 'in_progress' } });
    events.push(...inner.map(event => ({ ...event, ...at })));
    events.push({ type: 'response.output_item.done', ...at, item: { ...item, status: 'completed' } });
    output.push({ ...item, status: 'completed' });
  };
  const { thoughts = [], seal, text = [], toolCalls = [], finish } = turn;
  if (thoughts.length > 0 || seal) {
    const summary = [{ type: 'summary_text', text: thoughts.join('') }];
    const type = 'response.reasoning_summary_text.delta';
    add(
      { type: 'reasoning', id: 'rs_local', summary, encrypted_content: seal ?? null },
      { type: 'response.reasoning_summary_part.added', summary_index: 0 },
      ...thoughts.map(delta => ({ type, summary_index: 0, delta })),
    );
  }
  if (text.length > 0)
    add(
      {
        type: 'message',
        id: 'msg_local',
        role: 'assistant',
        content: [{ type: 'output_text', text: text.join('') }],
      },
      ...text.map(delta => ({ type: 'response.output_text.delta', content_index: 0, delta })),
    );
  for (const [index, { id = `call_${index + 1}`, name, input, json }] of toolCalls.entries()) {
    const given = json ?? JSON.stringify(input ?? {});
    const type = 'response.function_call_arguments.delta';
    add(
      { type: 'function_call', id: `fc_${index}`, call_id: id, name, arguments: given },
      ...slices(given, 9).map(delta => ({ type, delta })),
      { type: 'response.function_call_arguments.done', arguments: given },
    );
  }
  const usage = {
    input_tokens: 25,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 40,
    total_tokens: 65,
    ...turn.usage,
  };
  const end = finish ? { incomplete_details: { reason: finish } } : {};
  const status = finish ? 'incomplete' : 'completed';
  const response = { id: 'resp_local', object: 'response' };
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.in_progress', response: { ...response, status: 'in_progress', output: [] } },
    ...events,
    { type: `response.${status}`, response: { ...response, status, output, usage, ...end } },
  ];
}

/** Returns the answers that together are one, as Gemini streams them. */
function geminiAnswers({
  thoughts = [],
  seal,
  text = [],
  toolCalls = [],
  finish,
  usage,
}: MakerTurn): object[] {
  const usageMetadata = { promptTokenCount: 25, candidatesTokenCount: 40, totalTokenCount: 65, ...usage };
  const sealed = seal ? { thoughtSignature: seal } : {};
  const parts = [
    ...thoughts.map(each => ({ text: each, thought: true })),
    ...text.map((each, index) => ({
      text: each,
      ...(toolCalls.length === 0 && index === text.length - 1 ? sealed : {}),
    })),
    ...toolCalls.map(({ id, name, input = {} }, index) => ({
      functionCall: { ...(id === undefined ? {} : { id }), name, args: input },
      ...(index === 0 ? sealed : {}),
    })),
  ];
  const answers = parts.map(part => ({
    candidates: [{ index: 0, content: { role: 'model', parts: [part] } }],
  }));
  const end = { index: 0, content: { role: 'model', parts: [{ text: '' }] }, finishReason: finish ?? 'STOP' };
  return [...answers, { candidates: [end], usageMetadata }];
}
