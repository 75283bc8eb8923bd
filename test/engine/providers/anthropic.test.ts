import assert from 'node:assert/strict';
import { TelosError } from '../../../src/engine/core/errors.ts';
import type { CompletionRequest, StreamEvent } from '../../../src/engine/core/ports.ts';
import { createAnthropic, toAnthropicRequest } from '../../../src/engine/providers/anthropic.ts';
import { standardLimits, type TurnLimits } from '../../../src/engine/providers/failures.ts';
import type { Message } from '../../../src/protocol/run.ts';
import { never, until } from '../../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { joined } from '../../fakes/joined.ts';
import type { FakeServer } from '../../fakes/loopback.ts';

const key = 'test-key-7f3a';
const readTool = {
  name: 'read_file',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
};

function ask(part: Partial<CompletionRequest> = {}): CompletionRequest {
  return { system: 'S', messages: [{ role: 'user', content: 'hi' }], tools: [], maxTokens: 1024, ...part };
}

describe('anthropic', () => {
  let server: FakeServer | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  async function serve(...turns: AnthropicTurn[]) {
    server = await startAnthropicServer({ turns });
    return server;
  }

  function provider(limits: Partial<TurnLimits> = {}) {
    const fast = { ...standardLimits, firstPauseMs: 1, ...limits };
    return createAnthropic({ apiKey: key, model: 'M', baseUrl: server?.url ?? '', limits: fast });
  }

  async function collect(
    request = ask(),
    limits: Partial<TurnLimits> = {},
    signal = new AbortController().signal,
  ) {
    const events: StreamEvent[] = [];
    for await (const event of provider(limits).streamCompletion(request, signal)) events.push(event);
    return events;
  }

  async function failure(limits: Partial<TurnLimits> = {}): Promise<TelosError> {
    const error = await collect(ask(), limits).then(
      () => assert.fail('no error'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof TelosError, String(error));
    return error;
  }

  it('streams text as it comes and ends with one done that counts the tokens', async () => {
    await serve({
      text: ['Hello', ' world'],
      usage: {
        input_tokens: 7,
        output_tokens: 3,
        cache_read_input_tokens: 11,
        cache_creation_input_tokens: 5,
      },
    });
    assert.deepEqual(joined(await collect()), [
      { type: 'text', text: 'Hello world' },
      {
        type: 'done',
        stopReason: 'end_turn',
        usage: { inputTokens: 7, outputTokens: 3, cacheReadTokens: 11, cacheWriteTokens: 5 },
      },
    ]);
  });

  it('sends tool calls whole, and says what is wrong with arguments that are not JSON', async () => {
    await serve({
      toolCalls: [
        { id: 'a', name: 'read_file', input: { path: 'notes/für später.md' } },
        { id: 'b', name: 'list_directory' },
        { id: 'c', name: 'read_file', json: '{"path": ' },
        { id: 'd', name: 'read_file', json: '["x"]' },
      ],
    });
    const calls = (await collect()).flatMap(event => (event.type === 'tool_call' ? [event.call] : []));
    assert.deepEqual(calls.slice(0, 2), [
      { id: 'a', name: 'read_file', input: { path: 'notes/für später.md' } },
      { id: 'b', name: 'list_directory', input: {} },
    ]);
    assert.match(calls[2]?.problem ?? '', /not valid JSON/);
    assert.match(calls[3]?.problem ?? '', /one JSON object/);
    assert.deepEqual(calls[2]?.input, {});
  });

  it('passes reasoning on and sends it back unchanged', async () => {
    const { requests } = await serve({
      thinking: [{ thinking: 'Let me look at the list first.', signature: 'seal' }],
      redactedThinking: ['sealed'],
      text: ['ok'],
    });
    const blocks = (await collect()).flatMap(event => (event.type === 'thinking' ? [event.block] : []));
    assert.deepEqual(blocks, [
      { type: 'thinking', thinking: 'Let me look at the list first.', signature: 'seal' },
      { type: 'redacted_thinking', data: 'sealed' },
    ]);
    const messages: Message[] = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [...blocks, { type: 'text', text: 'ok' }] },
      { role: 'user', content: 'more' },
    ];
    await collect(ask({ messages }));
    assert.deepEqual(requests[1]?.body.messages[1].content, messages[1]?.content);
  });

  it('sends a plain question without tools and without cache marks', async () => {
    const { requests } = await serve({ text: ['ok'] });
    await collect();
    const body = { model: 'M', max_tokens: 1024, system: 'S', stream: true, messages: ask().messages };
    assert.deepEqual(requests[0]?.body, body);
    assert.deepEqual(
      [requests[0]?.headers['x-api-key'], requests[0]?.headers['authorization']],
      [key, undefined],
    );
  });

  it('marks tools, system and the last two turns of the user for the cache', () => {
    const result = { type: 'tool_result' as const, tool_use_id: 't', content: 'data', is_error: false };
    const messages: Message[] = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'read_file', input: {} }] },
      { role: 'user', content: [result] },
    ];
    const request = toAnthropicRequest(
      'M',
      ask({ messages, tools: [readTool, { ...readTool, name: 'second' }] }),
    );
    const cache_control = { type: 'ephemeral' };
    assert.deepEqual(request.system, [{ type: 'text', text: 'S', cache_control }]);
    assert.deepEqual(
      request.tools?.map(tool => tool.cache_control),
      [undefined, cache_control],
    );
    assert.deepEqual(request.messages, [
      ...messages.slice(0, 2),
      { role: 'user', content: [{ type: 'text', text: 'three', cache_control }] },
      messages[3],
      { role: 'user', content: [{ ...result, cache_control }] },
    ]);
  });

  it('puts no mark on an empty text, which the API refuses', () => {
    const marked = (content: Message['content']): boolean => {
      const messages: Message[] = [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'two' },
        { role: 'user', content },
      ];
      const last = toAnthropicRequest('M', ask({ messages, tools: [readTool] })).messages.at(-1);
      return JSON.stringify(last).includes('cache_control');
    };
    assert.deepEqual([marked(''), marked('three')], [false, true]);
    assert.deepEqual([marked([]), marked([{ type: 'text', text: 'x' }])], [false, true]);
  });

  it('marks the start of a single question for the cache only if others repeat it', () => {
    const list = { type: 'text' as const, text: 'the list' };
    const messages: Message[] = [{ role: 'user', content: [list, { type: 'text', text: 'which?' }] }];
    const marks = (repeatsStart: boolean): unknown => {
      const [turn] = toAnthropicRequest('M', ask({ messages, tools: [], repeatsStart })).messages;
      return typeof turn?.content === 'string' ? [] : turn?.content.map(block => 'cache_control' in block);
    };
    assert.deepEqual(marks(true), [true, false]);
    assert.deepEqual(marks(false), [false, false]);
  });

  it('explains a refused key with the reason and the remedy, never with the key', async () => {
    const { requests } = await serve({
      status: 401,
      errorBody: {
        type: 'error',
        error: { type: 'authentication_error', message: `invalid x-api-key ${key}` },
      },
    });
    const error = await failure();
    assert.equal(error.code, 'auth');
    assert.match(error.message, /invalid x-api-key/);
    assert.deepEqual(error.remedy, { kind: 'set_key', variable: 'ANTHROPIC_API_KEY' });
    assert.ok(!error.message.includes(key));
    assert.equal(requests.length, 1);
  });

  it('tries again after 529, 500 and 429 as long as nothing was said, and tells so', async () => {
    const { requests } = await serve(
      { status: 529 },
      { status: 500 },
      { status: 429, headers: { 'retry-after': '0' } },
      { text: ['at last'] },
    );
    const events = await collect();
    assert.deepEqual(
      events.map(event => event.type),
      ['retry', 'retry', 'retry', 'text', 'done'],
    );
    assert.deepEqual(events[2], {
      type: 'retry',
      attempt: 3,
      waitMs: 0,
      why: events[2]?.type === 'retry' && events[2].why,
      sentences: [
        { text: '{0} accepts no more requests for now: {1}', values: ['Anthropic', 'Status 429.'] },
      ],
    });
    assert.equal(requests.length, 4);
  });

  it('waits as long as retry-after says', async () => {
    const { requests } = await serve({ status: 429, headers: { 'retry-after': '0.1' } }, { text: ['ok'] });
    const events = await collect();
    assert.equal(events[0]?.type === 'retry' && events[0].waitMs, 100);
    assert.ok((requests[1]?.arrivedAt ?? 0) - (requests[0]?.arrivedAt ?? 0) >= 95);
  });

  it('takes a retry-after below zero for none, and waits as if there were no header', async () => {
    await serve({ status: 429, headers: { 'retry-after': '-1' } }, { text: ['ok'] });
    const [retry] = await collect();
    assert.ok(retry?.type === 'retry' && retry.waitMs > 0, JSON.stringify(retry));
  });

  it('gives up after five tries', async () => {
    const { requests } = await serve({ status: 503 });
    const error = await failure();
    assert.equal(error.code, 'provider');
    assert.match(error.message, /Tried 5 times/);
    assert.equal(requests.length, 5);
  });

  it('does not wait for hours', async () => {
    const { requests } = await serve({ status: 429, headers: { 'retry-after': '7200' } });
    const error = await failure();
    assert.equal(error.code, 'rate_limit');
    assert.match(error.message, /120 minutes/);
    assert.equal(requests.length, 1);
  });

  it('tries once when the spend limit is reached', async () => {
    const error = { type: 'rate_limit_error', message: 'enforced_spend_limit_reached' };
    const { requests } = await serve({ status: 429, errorBody: { type: 'error', error } });
    const thrown = await failure();
    assert.equal(thrown.code, 'rate_limit');
    assert.match(thrown.message, /^The spending limit at Anthropic is reached/);
    assert.equal(requests.length, 1);
  });

  it('tries other refusals once and gives the reason', async () => {
    const error = { type: 'invalid_request_error', message: 'prompt is too long: 250000 tokens' };
    const { requests } = await serve({ status: 400, errorBody: { type: 'error', error } });
    assert.match((await failure()).message, /prompt is too long/);
    assert.equal(requests.length, 1);
  });

  it('says when the connection broke off, and does not say a text twice', async () => {
    for (const turn of [
      { text: ['a', 'b'], cutAfterBytes: 620 },
      { text: ['a', 'b'], withoutStop: true },
    ]) {
      const { requests, close } = await serve(turn);
      const events: StreamEvent[] = [];
      await assert.rejects(
        async () => {
          for await (const event of provider().streamCompletion(ask(), new AbortController().signal))
            events.push(event);
        },
        { code: 'provider', message: /connection to Anthropic was lost in the middle of an answer/ },
      );
      assert.equal(events[0]?.type, 'text');
      assert.equal(requests.length, 1);
      await close();
    }
  });

  it('knows a page that is no answer of a model, asks it once, and shows where it begins', async () => {
    const page = `<html>${'Please sign in. '.repeat(100)}</html>`;
    const { requests } = await serve({
      headers: { 'content-type': 'text/html' },
      rawBody: Buffer.from(page),
    });
    const { message } = await failure();
    assert.match(message, /not an event stream of Anthropic but text\/html: “<html>Please sign in/);
    assert.ok(message.length < 500);
    assert.equal(requests.length, 1);
  });

  it('reads servers that imitate the format: blocks side by side, empty parts left out, OpenAI’s last line', async () => {
    const event = (type: string, more: object = {}) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    const start = (index: number, content_block: object) =>
      event('content_block_start', { index, content_block });
    const delta = (index: number, part: object) => event('content_block_delta', { index, delta: part });
    const json = (index: number, partial_json: string) =>
      delta(index, { type: 'input_json_delta', partial_json });
    const stop = (index: number) => event('content_block_stop', { index });
    const stream = [
      event('message_start'),
      'data: null\n\n',
      start(0, { type: 'thinking' }),
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      delta(0, { type: 'signature_delta', signature: 'seal' }),
      stop(0),
      start(1, { type: 'tool_use', id: 't1', name: 'a' }),
      start(2, { type: 'tool_use', id: 't2', name: 'b' }),
      json(1, '{"x":1}'),
      json(2, '{"y":2}'),
      stop(1),
      event('message_delta', { delta: null, usage: null }),
      event('message_stop'),
      'data: [DONE]\n',
    ];
    await serve({ rawBody: Buffer.from(stream.join('')) });
    assert.deepEqual((await collect()).slice(0, -1), [
      { type: 'reasoning', text: 'hm' },
      { type: 'thinking', block: { type: 'thinking', thinking: 'hm', signature: 'seal' } },
      { type: 'tool_call', call: { id: 't1', name: 'a', input: { x: 1 } } },
      { type: 'tool_call', call: { id: 't2', name: 'b', input: { y: 2 } } },
    ]);
  });

  it('knows an error that comes with the status of a success', async () => {
    const error = { type: 'error', error: { type: 'authentication_error', message: 'No such key' } };
    await serve({
      headers: { 'content-type': 'application/json' },
      rawBody: Buffer.from(JSON.stringify(error)),
    });
    assert.match((await failure()).message, /refused the key: No such key\./);
  });

  it('shows of an error page what a person would read of it, and asks again where that may help', async () => {
    const page = '<html><head><title>502 Bad Gateway</title><style>p{}</style></head><p>nginx</p></html>';
    const { requests } = await serve({ status: 502, errorBody: page });
    assert.match((await failure({ tries: 1 })).message, /\(502\): 502 Bad Gateway\. Try again later\./);
    await server?.close();
    await serve({ status: 413, errorBody: '<html><style>p{}</style><p>Too  large</p></html>' });
    assert.match((await failure()).message, /\(413\): Too large\.$/);
    await server?.close();
    await serve({ status: 408 }, { text: ['ok'] });
    assert.equal((await collect())[0]?.type, 'retry');
    assert.equal(requests.length, 1);
  });

  it('tells a wrong address from a model that is not there', async () => {
    await serve({ status: 404, errorBody: {} });
    assert.match((await failure()).message, /no reason given\. Check the address http.*ANTHROPIC_BASE_URL/);
    await server?.close();
    await serve({ status: 404, errorBody: { error: { message: 'model: M' } } });
    assert.deepEqual((await failure()).remedy, { kind: 'choose_model' });
  });

  it('says of an answer that began and failed that it is incomplete', async () => {
    await serve({ text: ['a'], streamError: { type: 'overloaded_error', message: 'Overloaded' } });
    assert.match((await failure()).message, /Overloaded.*incomplete/);
  });

  it('tries again when the connection broke off before a word was said', async () => {
    await serve({ text: ['a'], cutAfterBytes: 30 }, { text: ['whole'] });
    const events = await collect();
    assert.deepEqual(
      events.map(event => event.type),
      ['retry', 'text', 'done'],
    );
  });

  it('tries again when overload is reported in the stream', async () => {
    await serve({ streamError: { type: 'overloaded_error', message: 'Overloaded' } }, { text: ['ok'] });
    const [used, next] = await collect();
    assert.deepEqual([used?.type, next?.type], ['spent', 'retry']);
  });

  it('names the address when nobody answers there', async () => {
    const { url, close } = await serve({});
    await close();
    const error = await failure({ tries: 2 });
    assert.equal(error.code, 'provider');
    assert.ok(error.message.includes(url), error.message);
    assert.match(error.message, /ECONNREFUSED/);
  });

  it('gives up on a server that does not begin', async () => {
    await serve({ stallMs: 5000 });
    const error = await failure({ firstByteMs: 30, tries: 1 });
    assert.match(error.message, /did not answer within/);
  });

  it('asks a model that is slow by itself only once', async () => {
    await serve({ stallMs: 5000 });
    const error = await failure({ firstByteMs: 400, tries: 3, firstPauseMs: 1, waitsOnce: true });
    assert.match(error.message, /did not answer within/);
    assert.equal(server?.requests.length, 1);
  });

  it('gives up on a stream that falls silent, or only says that it is still there', async () => {
    for (const stallFiller of ['', 'event: ping\ndata: {"type": "ping"}\n\n']) {
      await serve({ text: ['x'], stallAfterStartMs: 3000, stallFiller });
      const error = await failure({ idleMs: 40, tries: 1 });
      assert.match(error.message, /sent nothing/);
      await server?.close();
    }
  });

  it('uses its connections again', async () => {
    const { requests } = await serve({ text: ['ok'] });
    const one = provider();
    for (let round = 0; round < 6; round += 1) {
      for await (const _ of one.streamCompletion(ask(), new AbortController().signal));
    }
    // One is sometimes not free again at once when the next round begins.
    assert.ok(new Set(requests.map(request => request.port)).size <= 2);
  });

  it('stops at once when aborted, closes the connection and throws the reason', async () => {
    server = await startAnthropicServer({
      turns: [{ text: ['word ', 'word '], hold: { behind: 'word ', until: never } }],
    });
    const controller = new AbortController();
    const reason = new Error('enough');
    await assert.rejects(async () => {
      for await (const event of provider().streamCompletion(ask(), controller.signal)) {
        if (event.type === 'text') controller.abort(reason);
      }
    }, reason);
    const [request] = server.requests;
    await until(() => request?.aborted === true, 'the connection is still open');
  });

  it('stops at once when aborted before the answer, and while it waits to try again', async () => {
    const cases: [AnthropicTurn, Partial<TurnLimits>][] = [
      [{ stallMs: 5000 }, {}],
      [{ status: 500 }, { firstPauseMs: 5000 }],
    ];
    for (const [turn, limits] of cases) {
      const { close } = await serve(turn);
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error('enough')), 40);
      await assert.rejects(collect(ask(), limits, controller.signal), /enough/);
      await close();
    }
  });
});
