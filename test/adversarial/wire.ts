/** A model's server that answers with bytes as they are written down, and keeps what it was asked. */
import type { ServerResponse } from 'node:http';
import { anthropicRefusal } from '../fakes/anthropicRefusal.ts';
import { chatRefusal } from '../fakes/chatRefusal.ts';
import { closing, type FakeServer, listen, type ReceivedRequest, sendJson } from '../fakes/loopback.ts';
import { type Fields, fieldsOf } from './caseFile.ts';

export interface WireAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Each is one write. */
  chunks: readonly Buffer[];
  /** How the answer ends after the last one. */
  finish: 'end' | 'destroy' | 'open';
}

/** Starts a server that asks `answer` for each completion; everything else is not found. */
export async function startWire(
  answer: (request: ReceivedRequest, index: number) => WireAnswer,
): Promise<FakeServer> {
  const requests: ReceivedRequest[] = [];
  const refused: string[] = [];
  const { address, close } = await listen(async (request, response) => {
    if (!/\/(messages|completions)$/.test(request.path)) return sendJson(response, 404, {});
    const refusal = request.path.endsWith('/messages')
      ? anthropicRefusal(request.body, request.bytes)?.message
      : chatRefusal(request.body, request.bytes);
    if (refusal !== undefined) {
      refused.push(refusal);
      return sendJson(response, 400, { error: { type: 'invalid_request_error', message: refusal } });
    }
    requests.push(request);
    await send(response, answer(request, requests.length - 1));
  });
  return { url: address, requests, refused, close: closing(close, refused) };
}

async function send(
  response: ServerResponse,
  { status, headers, chunks, finish }: WireAnswer,
): Promise<void> {
  response.writeHead(status, headers);
  response.flushHeaders();
  for (const chunk of chunks) {
    if (response.destroyed) return;
    response.write(chunk);
    if (chunks.length > 1) await new Promise(resolve => setImmediate(resolve));
  }
  if (finish === 'open') return;
  if (finish === 'end') return void response.end();
  await new Promise(resolve => setTimeout(resolve, 5)); // lets the bytes leave before the socket goes
  response.destroy();
}

const eventStream = { 'content-type': 'text/event-stream' };

/** A whole answer of one word or more, in the words of a provider. */
export function plainAnswer(text: string, dialect: 'anthropic' | 'openai'): WireAnswer {
  const message = { id: 'm', type: 'message', role: 'assistant', content: [], model: 'm', stop_reason: null };
  const events =
    dialect === 'openai'
      ? [{ choices: [{ delta: { content: text }, finish_reason: 'stop' }] }]
      : [
          { type: 'message_start', message: { ...message, usage: { input_tokens: 1, output_tokens: 1 } } },
          { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
          { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
          { type: 'content_block_stop', index: 0 },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
          { type: 'message_stop' },
        ];
  const lines = events.map(event => `${nameOf(event)}data: ${JSON.stringify(event)}\n\n`);
  const done = dialect === 'openai' ? ['data: [DONE]\n\n'] : [];
  const body = Buffer.from([...lines, ...done].join(''));
  return { status: 200, headers: eventStream, chunks: [body], finish: 'end' };
}

const nameOf = (event: object): string => ('type' in event ? `event: ${event.type}\n` : '');

/** Returns the results that the last request gives the model for its calls, in order, in both dialects. */
export function toldIn({ body }: ReceivedRequest): { content: string; isError: boolean }[] {
  const messages: Fields[] = Array.isArray(body?.messages) ? body.messages.map(fieldsOf) : [];
  return messages.flatMap(({ role, content }) => {
    if (role === 'tool')
      return [{ content: String(content), isError: /^Error|failed/.test(String(content)) }];
    const blocks = Array.isArray(content) ? content.map(fieldsOf) : [];
    return blocks
      .filter(block => block['type'] === 'tool_result')
      .map(block => ({ content: String(block['content']), isError: block['is_error'] === true }));
  });
}
