/** OpenAI's Responses API and Gemini's own: what is sent, what comes back, and what of it goes to whom. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadConfig } from '../../../src/engine/config.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import type { AttachedFile, CompletionRequest, Effort, StreamEvent } from '../../../src/engine/core/ports.ts';
import { toAnthropicRequest } from '../../../src/engine/providers/anthropic.ts';
import { windowOf } from '../../../src/engine/providers/contextWindow.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import { standardLimits } from '../../../src/engine/providers/failures.ts';
import { createGemini, toGeminiRequest } from '../../../src/engine/providers/gemini.ts';
import { toOpenaiRequest } from '../../../src/engine/providers/openai.ts';
import { createOpenaiResponses, toResponsesRequest } from '../../../src/engine/providers/openaiResponses.ts';
import type { ContentBlock, Message } from '../../../src/protocol/run.ts';
import { joined } from '../../fakes/joined.ts';
import type { FakeServer } from '../../fakes/loopback.ts';
import { type MakerDialect, type MakerTurn, startMakerServer } from '../../fakes/makerServer.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';

const key = 'test-key-7f3a';
const tool = { name: 'read_file', description: 'Reads a file.', inputSchema: { type: 'object' } };
const image = {
  type: 'image' as const,
  source: { type: 'base64' as const, media_type: 'image/png', data: 'AAAA' },
};
const files: readonly AttachedFile[] = [
  { name: 'a.pdf', mediaType: 'application/pdf', data: 'UERG' },
  { name: 'b.png', mediaType: 'image/png', data: 'UE5H' },
];

function ask(part: Partial<CompletionRequest> = {}): CompletionRequest {
  return { system: 'S', messages: [{ role: 'user', content: 'hi' }], tools: [], maxTokens: 1024, ...part };
}

/** The message of the model that a run would keep of these events. */
function kept(events: readonly StreamEvent[]): Message {
  const content: ContentBlock[] = [];
  for (const event of events) {
    const last = content.at(-1);
    if (event.type === 'text' && last?.type === 'text') last.text += event.text;
    else if (event.type === 'text') content.push({ type: 'text', text: event.text });
    else if (event.type === 'thinking') content.push(event.block);
    else if (event.type === 'tool_call')
      content.push({ type: 'tool_use', id: event.call.id, name: event.call.name, input: event.call.input });
  }
  return { role: 'assistant', content };
}

const result = (id: string, content = 'data', is_error = false): ContentBlock => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  is_error,
});

describe('the formats of the makers', () => {
  let server: FakeServer | undefined;
  let dialect: MakerDialect = 'responses';
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  async function serve(...turns: MakerTurn[]): Promise<FakeServer> {
    await server?.close();
    server = await startMakerServer({ dialect, turns });
    return server;
  }

  const usual = { responses: 'gpt-5.4', gemini: 'gemini-3.8-flash' };

  function provider(baseUrl = server?.url ?? '', model = usual[dialect]) {
    const own = { apiKey: key, model, baseUrl, limits: { ...standardLimits, firstPauseMs: 1 } };
    return dialect === 'responses' ? createOpenaiResponses(own) : createGemini(own);
  }

  async function collect(request = ask(), from = provider()): Promise<StreamEvent[]> {
    const events: StreamEvent[] = [];
    for await (const event of from.streamCompletion(request, new AbortController().signal))
      events.push(event);
    return events;
  }

  async function failure(from = provider()): Promise<TelosError> {
    const error = await collect(ask(), from).then(
      () => assert.fail('no error'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof TelosError, String(error));
    assert.ok(!error.message.includes(key), error.message);
    return error;
  }

  const stopOf = async (turn: MakerTurn): Promise<string> => {
    await serve(turn);
    const end = (await collect()).at(-1);
    await server?.close();
    return end?.type === 'done' ? end.stopReason : '';
  };

  for (const one of ['responses', 'gemini'] as const)
    describe(one, () => {
      beforeEach(() => {
        dialect = one;
      });

      it('streams thoughts, text and calls side by side, and ends with the tokens', async () => {
        await serve({
          thoughts: ['I ', 'look.'],
          text: ['He', 'llo'],
          toolCalls: [
            { id: 'a', name: 'read_file', input: { path: 'für später.md' } },
            { id: 'b', name: 'list_directory' },
          ],
        });
        const events = joined(await collect()).filter(({ type }) => type !== 'thinking');
        assert.deepEqual(events, [
          { type: 'reasoning', text: 'I look.' },
          { type: 'text', text: 'Hello' },
          { type: 'tool_call', call: { id: 'a', name: 'read_file', input: { path: 'für später.md' } } },
          { type: 'tool_call', call: { id: 'b', name: 'list_directory', input: {} } },
          {
            type: 'done',
            stopReason: 'tool_use',
            usage: { inputTokens: 25, outputTokens: 40, cacheReadTokens: 0, cacheWriteTokens: 0 },
          },
        ]);
      });

      it('tries again as the server asks, but not after the first words', async () => {
        const { requests } = await serve(
          { status: 429, headers: { 'retry-after-ms': '3' } },
          { status: 503 },
          { text: ['ok'] },
        );
        const events = await collect();
        assert.deepEqual(
          events.map(({ type }) => type),
          ['retry', 'retry', 'text', 'done'],
        );
        const [first] = events;
        assert.equal(first?.type === 'retry' && first.waitMs, 3);
        assert.equal(requests.length, 3);
        await server?.close();
        await serve({ text: ['Half of ', 'it'], cutAfterBytes: one === 'responses' ? 900 : 150 });
        const error = await failure();
        assert.equal(error.code, 'provider');
        assert.match(error.message, /The answer is incomplete\.$/);
        assert.equal(server?.requests.length, 1);
      });

      it('begins again where only thoughts had come', async () => {
        const cutAfterBytes = one === 'responses' ? 950 : 200;
        const { requests } = await serve(
          { thoughts: ['a', 'b'], text: ['x'], cutAfterBytes },
          { text: ['ok'] },
        );
        const types = joined(await collect()).map(({ type }) => type);
        assert.deepEqual(types, ['reasoning', 'spent', 'retry', 'text', 'done']);
        assert.equal(requests.length, 2);
      });

      it('says what a refusal says, without the key, and whose fault it is', async () => {
        const errorBody = {
          error: { message: `No such model for ${key}`, code: one === 'gemini' ? 404 : 'model_not_found' },
        };
        await serve({ status: 404, errorBody });
        const { message, runError } = await failure();
        assert.match(message, /refused the request \(404\): No such model for \[key\]/);
        assert.deepEqual(runError.remedy, { kind: 'choose_model' });
        await server?.close();
        await serve({ status: 401, errorBody: { error: { message: 'Wrong key' } } });
        assert.equal((await failure()).code, 'auth');
      });

      it('sends the key to no other server, and reads no refusal without end', async () => {
        let reached = 0;
        const other = createServer((_, response) => {
          reached++;
          response.end();
        });
        await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve));
        const { port } = other.address() as AddressInfo;
        const endless = createServer((_, response) => {
          if (isRedirecting)
            return void response.writeHead(307, { location: `http://127.0.0.1:${port}/` }).end();
          response.writeHead(400);
          const timer = setInterval(() => response.write('x'.repeat(65_536)), 1);
          response.on('close', () => clearInterval(timer));
        });
        let isRedirecting = true;
        await new Promise<void>(resolve => endless.listen(0, '127.0.0.1', resolve));
        try {
          const address = `http://127.0.0.1:${(endless.address() as AddressInfo).port}`;
          assert.match((await failure(provider(address))).message, /refused the request \(307\)/);
          assert.equal(reached, 0);
          isRedirecting = false;
          assert.ok((await failure(provider(address))).message.length < 1_000);
        } finally {
          for (const each of [other, endless]) {
            each.close();
            each.closeAllConnections();
          }
        }
      });

      it('takes no harm from a server that sends anything', async () => {
        const nothing =
          one === 'responses' ? { type: 'response.completed' } : { candidates: [{ finishReason: 'STOP' }] };
        const odd = [
          {
            type: 'response.output_item.done',
            item: { type: 'function_call', call_id: {}, name: 7, arguments: [] },
          },
          { type: 'response.output_text.delta', delta: null },
          { type: 'response.reasoning_summary_text.delta' },
          { type: 'response.output_item.done', item: null },
          { candidates: [null] },
          {
            candidates: [
              { content: { parts: [null, { functionCall: { name: {}, args: 'x' } }, { text: 5 }] } },
            ],
          },
          {
            candidates: [{ content: null }],
            usageMetadata: { promptTokenCount: -7, thoughtsTokenCount: '9' },
          },
        ].filter(each => 'type' in each === (one === 'responses'));
        await serve({
          rawBody: Buffer.from(
            `data: null\n\ndata: {}\n\n${[...odd, nothing].map(each => `data: ${JSON.stringify(each)}\n\n`).join('')}`,
          ),
        });
        const events = await collect();
        const calls = events.flatMap(event => (event.type === 'tool_call' ? [event.call] : []));
        assert.equal(calls.length, 1);
        assert.equal(typeof calls[0]?.id, 'string');
        assert.equal(calls[0]?.name, '');
        assert.match(calls[0]?.problem ?? '', /one JSON object/);
        const end = events.at(-1);
        assert.ok(
          end?.type === 'done' && (end.usage?.inputTokens ?? 0) === 0 && (end.usage?.outputTokens ?? 0) === 0,
        );
      });
    });

  describe('the Responses API', () => {
    beforeEach(() => {
      dialect = 'responses';
    });

    it('is asked to store nothing, and to seal what a model of OpenAI thinks', async () => {
      const { requests } = await serve({ text: ['ok'] });
      await collect(ask({ tools: [tool] }));
      assert.deepEqual(requests[0]?.body, {
        model: 'gpt-5.4',
        instructions: 'S',
        input: [{ role: 'user', content: 'hi' }],
        max_output_tokens: 1024,
        stream: true,
        store: false,
        tools: [
          {
            type: 'function',
            name: 'read_file',
            description: 'Reads a file.',
            parameters: { type: 'object' },
            strict: false,
          },
        ],
        include: ['reasoning.encrypted_content'],
        reasoning: { summary: 'auto' },
      });
      assert.equal(requests[0]?.headers['authorization'], `Bearer ${key}`);
      const plain = toResponsesRequest('gpt-4o', ask({ effort: 'high' }));
      assert.deepEqual(
        [plain.include, plain.reasoning, plain.max_output_tokens],
        [undefined, undefined, 1024],
      );
    });

    it('gets the sealed reasoning back between the calls that it led to, and nobody else does', async () => {
      const sealed = (id: string) => ({
        type: 'reasoning',
        id,
        summary: [],
        encrypted_content: `seal of ${id}`,
      });
      const call = (id: string) => ({
        type: 'function_call',
        call_id: id,
        name: 'read_file',
        arguments: '{"path": "a"}',
      });
      const message = { type: 'message', phase: 'commentary', content: [] };
      const items = [sealed('rs_1'), message, call('c1'), sealed('rs_2'), call('c2')];
      const events: object[] = items.flatMap((item, output_index) => [
        ...(item === message
          ? [{ type: 'response.output_text.delta', output_index, delta: 'Looking.' }]
          : []),
        { type: 'response.output_item.done', output_index, item },
      ]);
      const { requests } = await serve(
        { events: [...events, { type: 'response.completed', response: {} }] },
        { text: ['x'] },
      );
      const said = kept(await collect());
      const messages: Message[] = [
        { role: 'user', content: 'hi' },
        said,
        { role: 'user', content: [result('c1', 'no', true), result('c2')] },
      ];
      await collect(ask({ messages }));
      const sent = (id: string) => ({ ...call(id), arguments: '{"path":"a"}' });
      assert.deepEqual(requests[1]?.body.input, [
        { role: 'user', content: 'hi' },
        sealed('rs_1'),
        { role: 'assistant', content: 'Looking.', phase: 'commentary' },
        sent('c1'),
        sealed('rs_2'),
        sent('c2'),
        { type: 'function_call_output', call_id: 'c1', output: 'Error: no' },
        { type: 'function_call_output', call_id: 'c2', output: 'data' },
      ]);
      const others = [
        toResponsesRequest('gpt-5.5', ask({ messages })),
        toOpenaiRequest('openai', 'gpt-5.4', ask({ messages })),
        toGeminiRequest('gemini-3.8-flash', ask({ messages })),
        toAnthropicRequest('claude-opus-5', ask({ messages })),
      ];
      for (const other of others)
        assert.ok(!JSON.stringify(other).includes('seal of'), JSON.stringify(other));
    });

    it('gets no reasoning that led to nothing, which it would refuse', async () => {
      await serve({ thoughts: ['a'], seal: 's', finish: 'max_output_tokens' });
      const said = kept(await collect());
      const messages: Message[] = [{ role: 'user', content: 'hi' }, said, { role: 'user', content: 'more' }];
      assert.deepEqual(toResponsesRequest('gpt-5.4', ask({ messages })).input, [
        { role: 'user', content: 'hi' },
        { role: 'user', content: 'more' },
      ]);
    });

    it('says under our names why an answer is not complete, and never does half a call', async () => {
      assert.equal(await stopOf({ text: ['x'], finish: 'max_output_tokens' }), 'max_tokens');
      assert.equal(await stopOf({ text: ['x'], finish: 'content_filter' }), 'refusal');
      const refused = [
        { type: 'response.refusal.delta', delta: 'No.' },
        { type: 'response.completed', response: {} },
      ];
      assert.equal(await stopOf({ events: refused }), 'refusal');
      const item = { type: 'function_call', call_id: 'c', name: 'run_command' };
      const half = [
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.added', output_index: 1, item: { ...item, call_id: 'd' } },
        {
          type: 'response.output_item.done',
          output_index: 1,
          item: { ...item, call_id: 'd', status: 'incomplete' },
        },
        {
          type: 'response.incomplete',
          response: {
            incomplete_details: { reason: 'max_output_tokens' },
            output: [{ ...item, status: 'incomplete' }],
          },
        },
      ];
      await serve({ events: half });
      assert.deepEqual(
        (await collect()).map(({ type }) => type),
        ['done'],
      );
    });

    it('shows a message that comes as a whole once, whatever else names it', async () => {
      const item = { type: 'message', content: [{ type: 'output_text', text: 'All in one.' }] };
      const done = { type: 'response.output_item.done', output_index: 0, item };
      const completed = { type: 'response.completed', response: { output: [item] } };
      const delta = { type: 'response.output_text.delta', output_index: 0, delta: 'All in one.' };
      const odd = { ...done, item: { ...item, content: 7 } };
      for (const events of [
        [done, completed],
        [delta, done, completed],
        [completed],
        [done, { ...completed, response: {} }],
        [odd, done, completed],
      ]) {
        await serve({ events });
        const texts = (await collect()).flatMap(event => (event.type === 'text' ? [event.text] : []));
        assert.deepEqual(texts, ['All in one.'], JSON.stringify(events));
      }
    });

    it('counts what came from the cache apart, and what was thought as output', async () => {
      const usage = {
        input_tokens: 90,
        input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 40 },
      };
      await serve({ text: ['x'], usage });
      const end = (await collect()).at(-1);
      assert.deepEqual(end?.type === 'done' && end.usage, {
        inputTokens: 20,
        outputTokens: 50,
        cacheReadTokens: 60,
        cacheWriteTokens: 10,
      });
    });

    it('reports errors in the middle, and tries again what may go better', async () => {
      const failed = (code: string) => ({
        type: 'response.failed',
        response: { error: { code, message: 'It broke.' } },
      });
      await serve(
        { events: [failed('server_error')] },
        { events: [{ type: 'error', code: 'rate_limit_exceeded', message: 'Slow' }] },
        { text: ['ok'] },
      );
      assert.deepEqual(
        (await collect()).map(({ type }) => type),
        ['retry', 'retry', 'text', 'done'],
      );
      await server?.close();
      await serve({ events: [failed('invalid_prompt')] });
      assert.match((await failure()).message, /refused the request \(400\): It broke\. \(invalid_prompt\)\./);
      await server?.close();
      await serve({ events: [{ type: 'error', error: { code: 'insufficient_quota', message: 'Pay' } }] });
      assert.match((await failure()).message, /spending limit at OpenAI is reached/);
      await server?.close();
      await serve({ events: [{ type: 'response.output_text.delta', delta: 'Hal' }, failed('server_error')] });
      assert.match((await failure()).message, /It broke.*The answer is incomplete\.$/);
    });

    it('does without what an account or a model does not have, and asks for it no more', async () => {
      const refusal = (message: string): MakerTurn => ({ status: 400, errorBody: { error: { message } } });
      const { requests } = await serve(
        refusal('Your organization must be verified to generate reasoning summaries. (reasoning.summary)'),
        refusal('Encrypted content is not supported with this model.'),
        { text: ['ok'] },
      );
      const same = provider();
      await collect(ask({ effort: 'low' }), same);
      await collect(ask(), same);
      assert.deepEqual(
        requests.map(({ body }) => [body.include !== undefined, body.reasoning]),
        [
          [true, { effort: 'low', summary: 'auto' }],
          [true, { effort: 'low' }],
          [false, { effort: 'low' }],
          [false, undefined],
        ],
      );
    });

    it('is understood where a server sends no more than the whole answer', async () => {
      const output = [
        { type: 'message', content: [{ type: 'output_text', text: 'All at once.' }] },
        { type: 'function_call', call_id: 'c', name: 'a', arguments: '{}' },
      ];
      await serve({ events: [{ type: 'response.completed', response: { output } }] });
      assert.deepEqual(await collect(), [
        { type: 'text', text: 'All at once.' },
        { type: 'tool_call', call: { id: 'c', name: 'a', input: {} } },
        { type: 'done', stopReason: 'tool_use' },
      ]);
    });

    it('is given pictures and documents as such, those of results with their calls', () => {
      const seen: ContentBlock = {
        type: 'tool_result',
        tool_use_id: 'c',
        content: [{ type: 'text', text: 'T' }, image],
        is_error: false,
      };
      const { input } = toResponsesRequest('gpt-5.4', ask({ messages: [{ role: 'user', content: [seen] }] }));
      const url = 'data:image/png;base64,AAAA';
      assert.deepEqual(input, [
        {
          type: 'function_call_output',
          call_id: 'c',
          output: [
            { type: 'input_text', text: 'T' },
            { type: 'input_image', image_url: url, detail: 'auto' },
          ],
        },
      ]);
      assert.deepEqual(toResponsesRequest('gpt-5.4', ask({ attached: files })).input, [
        {
          role: 'user',
          content: [
            { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,UERG' },
            { type: 'input_image', image_url: 'data:image/png;base64,UE5H', detail: 'auto' },
            { type: 'input_text', text: 'hi' },
          ],
        },
      ]);
    });
  });

  describe("Gemini's API", () => {
    beforeEach(() => {
      dialect = 'gemini';
    });

    it('is asked at the address that people know from the other format, too', async () => {
      const { requests, url } = await serve({ text: ['ok'] });
      await collect(ask({ tools: [tool] }), provider(`${url}/openai`));
      assert.equal(requests[0]?.path, '/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse');
      assert.equal(requests[0]?.headers['x-goog-api-key'], key);
      assert.deepEqual(requests[0]?.body, {
        systemInstruction: { parts: [{ text: 'S' }] },
        contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
        generationConfig: { maxOutputTokens: 1024, thinkingConfig: { includeThoughts: true } },
        tools: [
          {
            functionDeclarations: [
              { name: 'read_file', description: 'Reads a file.', parametersJsonSchema: { type: 'object' } },
            ],
          },
        ],
      });
    });

    it('gets each signature back on the part that had it, and no other model does', async () => {
      const parts = [
        { text: 'Thinking.', thought: true },
        { text: 'I ' },
        { text: 'look', thoughtSignature: 'on look' },
        { text: ' now.' },
        { functionCall: { id: 'own', name: 'read_file', args: { path: 'a' } }, thoughtSignature: 'on call' },
        { functionCall: { name: 'read_file', args: { path: 'b' } } },
        { text: '', thoughtSignature: 'on nothing' },
      ];
      const events = parts.map(part => ({ candidates: [{ content: { parts: [part] } }] }));
      const { requests } = await serve(
        { events: [...events, { candidates: [{ finishReason: 'STOP' }] }] },
        { text: ['x'] },
      );
      const said = kept(await collect());
      const ids = (said.content as ContentBlock[]).flatMap(block =>
        block.type === 'tool_use' ? [block.id] : [],
      );
      const messages: Message[] = [
        { role: 'user', content: 'hi' },
        said,
        { role: 'user', content: [result(ids[0] ?? ''), result(ids[1] ?? '', 'gone', true)] },
      ];
      await collect(ask({ messages }));
      assert.deepEqual(requests[1]?.body.contents.slice(1), [
        { role: 'model', parts: parts.slice(1) },
        {
          role: 'user',
          parts: [
            { functionResponse: { id: 'own', name: 'read_file', response: { output: 'data' } } },
            { functionResponse: { name: 'read_file', response: { error: 'gone' } } },
          ],
        },
      ]);
      const others = [
        toGeminiRequest('gemini-3.1-pro-preview', ask({ messages })),
        toResponsesRequest('gpt-5.4', ask({ messages })),
        toOpenaiRequest('gemini', 'gemini-3.8-flash', ask({ messages })),
        toAnthropicRequest('claude-opus-5', ask({ messages })),
      ];
      for (const other of others)
        assert.ok(!JSON.stringify(other).includes('on look'), JSON.stringify(other));
    });

    it('counts thoughts as output, and what came from the cache apart', async () => {
      const usage = {
        promptTokenCount: 90,
        cachedContentTokenCount: 60,
        candidatesTokenCount: 10,
        thoughtsTokenCount: 40,
      };
      await serve({ text: ['x'], usage });
      const end = (await collect()).at(-1);
      assert.deepEqual(end?.type === 'done' && end.usage, {
        inputTokens: 30,
        outputTokens: 50,
        cacheReadTokens: 60,
        cacheWriteTokens: 0,
      });
    });

    it('says under our names why it ended, and tries a call again that it got wrong', async () => {
      assert.equal(await stopOf({ text: ['x'], finish: 'MAX_TOKENS' }), 'max_tokens');
      assert.equal(await stopOf({ finish: 'SAFETY' }), 'refusal');
      assert.equal(
        await stopOf({ events: [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }] }),
        'refusal',
      );
      await serve({ finish: 'MALFORMED_FUNCTION_CALL' }, { text: ['ok'] });
      assert.deepEqual(
        (await collect()).map(({ type }) => type),
        ['spent', 'retry', 'text', 'done'],
      );
    });

    it('waits as long as it asks, and knows a wrong key by its words', async () => {
      const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.005s' }];
      const error = { code: 429, message: 'Quota.', details };
      await serve(
        { status: 429, errorBody: [{ error }] },
        { events: [{ error: { code: 503, message: 'Busy' } }] },
        { text: ['ok'] },
      );
      const events = await collect();
      const waits = events.flatMap(event => (event.type === 'retry' ? [event.waitMs] : []));
      assert.equal(waits[0], 5);
      assert.equal(waits.length, 2);
      await server?.close();
      await serve({
        status: 400,
        errorBody: { error: { message: 'API key not valid.', details: [{ reason: 'API_KEY_INVALID' }] } },
      });
      const { code, runError } = await failure();
      assert.deepEqual([code, runError.remedy], ['auth', { kind: 'set_key', variable: 'GEMINI_API_KEY' }]);
    });

    it('is given pictures and documents as such', () => {
      const seen: ContentBlock = { type: 'tool_result', tool_use_id: 'c', content: [image], is_error: false };
      const { contents } = toGeminiRequest(
        'gemini-3.8-flash',
        ask({ messages: [{ role: 'user', content: [seen] }], attached: files }),
      );
      assert.deepEqual(contents[0]?.parts, [
        { inlineData: { mimeType: 'application/pdf', data: 'UERG' } },
        { inlineData: { mimeType: 'image/png', data: 'UE5H' } },
        { functionResponse: { name: 'unknown', response: { output: '[image, see below]' } } },
        { text: 'Returned by the tool call c:' },
        { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
      ]);
    });
  });

  it('tells each model in its own words how much to think, with room for it', () => {
    const efforts: readonly Effort[] = ['off', 'low', 'max', 6_000];
    const openai = (model: string) =>
      efforts.map(effort => toResponsesRequest(model, ask({ effort })).reasoning?.effort);
    assert.deepEqual(openai('gpt-5.4'), ['none', 'low', 'xhigh', 'medium']);
    assert.deepEqual(openai('gpt-5-mini-2025-08-07'), ['minimal', 'low', 'high', 'medium']);
    assert.deepEqual(openai('gpt-5.6'), ['none', 'low', 'max', 'medium']);
    assert.deepEqual(openai('o4-mini'), ['low', 'low', 'high', 'medium']);
    assert.equal(toResponsesRequest('gpt-5.4', ask({ effort: 6_000 })).max_output_tokens, 7_024);
    const gemini = (model: string) =>
      efforts.map(effort => toGeminiRequest(model, ask({ effort })).generationConfig.thinkingConfig);
    const shown = (own: object) => ({ includeThoughts: true, ...own });
    assert.deepEqual(
      gemini('gemini-2.5-flash'),
      [0, 2_048, 24_576, 6_000].map(thinkingBudget => shown({ thinkingBudget })),
    );
    assert.deepEqual(gemini('gemini-2.5-pro')[0], shown({ thinkingBudget: 128 }));
    assert.deepEqual(
      gemini('gemini-flash-latest'),
      ['minimal', 'low', 'high', 'medium'].map(thinkingLevel => shown({ thinkingLevel })),
    );
    assert.equal(
      toGeminiRequest('gemini-2.0-flash', ask({ effort: 'high' })).generationConfig.thinkingConfig,
      undefined,
    );
    const anthropic = (model: string) =>
      efforts.map(effort => {
        const { thinking, output_config, max_tokens } = toAnthropicRequest(model, ask({ effort }));
        return [
          thinking?.type,
          thinking?.type === 'enabled' ? thinking.budget_tokens : output_config?.effort,
          max_tokens,
        ];
      });
    assert.deepEqual(anthropic('claude-haiku-4-5-20251001'), [
      [undefined, undefined, 1_024],
      ['enabled', 2_048, 3_072],
      ['enabled', 32_768, 33_792],
      ['enabled', 6_000, 7_024],
    ]);
    assert.deepEqual(anthropic('claude-sonnet-5'), [
      ['disabled', undefined, 1_024],
      ['adaptive', 'low', 3_072],
      ['adaptive', 'max', 33_792],
      ['adaptive', 'medium', 7_024],
    ]);
    for (const model of ['claude-haiku-5-5', 'claude-opus-5', 'claude-sonnet-5-20260630'])
      assert.deepEqual(anthropic(model)[0], ['disabled', undefined, 1_024], model);
    assert.deepEqual(anthropic('claude-sonnet-5-5')[0], ['between_tools', undefined, 1_024]);
    for (const model of ['claude-opus-5-5', 'claude-fable-5-1', 'claude-mythos-5-2'])
      assert.deepEqual(anthropic(model)[0], [undefined, 'low', 1_024], model);
    assert.deepEqual(anthropic('claude-opus-4-8')[0], [undefined, undefined, 1_024]);
    for (const model of ['gpt-6.1-sol', 'gpt-6.2-astra-2026-10-01'])
      assert.deepEqual(openai(model), ['low', 'low', 'max', 'medium'], model);
    assert.equal(openai('gpt-6.1-terra')[0], 'none');
    assert.deepEqual(anthropic('claude-sonnet-4-6')[2]?.slice(0, 2), ['adaptive', 'high']);
    const chat = (name: 'openai' | 'openrouter' | 'ollama', model: string, effort: Effort) => {
      const body = toOpenaiRequest(name, model, ask({ effort })) as unknown as Record<string, unknown>;
      return body['reasoning'] ?? body['reasoning_effort'];
    };
    const high = (model: string) => toAnthropicRequest(model, ask({ effort: 'xhigh' })).output_config?.effort;
    assert.deepEqual(['claude-opus-4-7', 'claude-sonnet-5'].map(high), ['xhigh', 'xhigh']);
    assert.deepEqual(['claude-opus-4-6', 'claude-sonnet-4-6'].map(high), ['high', 'high']);
    const reasoning = (model: string) =>
      toResponsesRequest(model, ask({ effort: 'xhigh' })).reasoning?.effort;
    assert.deepEqual(['gpt-6.2-sol', 'gpt-5.4', 'gpt-5.1', 'o3'].map(reasoning), [
      'xhigh',
      'xhigh',
      'high',
      'high',
    ]);
    assert.equal(chat('ollama', 'qwen3', 'xhigh'), 'high');
    assert.deepEqual(chat('openrouter', 'x/y', 'xhigh'), { effort: 'xhigh' });
    assert.deepEqual(chat('openrouter', 'x/y', 'max'), { effort: 'xhigh' });
    assert.deepEqual(chat('openrouter', 'x/y', 6_000), { max_tokens: 6_000 });
    assert.equal(chat('ollama', 'qwen3', 'off'), 'none');
    assert.equal(chat('openai', 'gpt-4o', 'high'), undefined);
    assert.equal(toOpenaiRequest('openai', 'M', ask()).reasoning_effort, undefined);
  });

  it('knows how much the models of today take, and takes less where more costs twice', () => {
    const tokens = (name: string, model: string) => windowOf({ contextWindow: undefined }, { name, model });
    for (const model of [
      'claude-sonnet-5',
      'claude-sonnet-5-5',
      'claude-haiku-5-5',
      'claude-opus-5-20260724',
    ])
      assert.equal(tokens('anthropic', model), 1_000_000, model);
    for (const model of ['claude-haiku-4-5-20251001', 'claude-opus-4-8', 'claude-3-5-haiku-20241022'])
      assert.equal(tokens('anthropic', model), 200_000, model);
    assert.equal(tokens('openrouter', 'anthropic/claude-sonnet-5.5'), 1_000_000);
    assert.equal(tokens('openrouter', 'anthropic/claude-sonnet-4.6'), 200_000);
    assert.equal(tokens('openai', 'gpt-6.2-sol'), 272_000);
    assert.equal(tokens('openrouter', 'openai/gpt-6.2-sol'), 272_000);
    const full = (name: string, model: string, contextWindow?: number) =>
      windowOf({ contextWindow: 'full' }, { name, model, ...(contextWindow && { contextWindow }) });
    assert.equal(full('openai', 'gpt-6.2-sol'), 1_050_000);
    assert.equal(full('openai', 'gpt-5.4-2026-03-05'), 1_050_000);
    assert.equal(full('openrouter', 'openai/gpt-6.2-sol'), 1_050_000);
    assert.equal(full('openai', 'gpt-5.4-mini'), 272_000);
    assert.equal(full('anthropic', 'claude-haiku-5-5'), 1_000_000);
    assert.equal(full('openai', 'own'), undefined);
    assert.equal(full('vscode', 'own', 64_000), 64_000);
  });

  it('takes more where the provider says so, but not where more costs twice', () => {
    const usual = { contextWindow: undefined };
    const told = (name: string, model: string, contextWindow: number) =>
      windowOf(usual, { name, model, contextWindow });
    assert.equal(told('openrouter', 'openai/gpt-6.2-sol', 1_050_000), 272_000);
    assert.equal(told('anthropic', 'claude-haiku-4-5', 3_000_000), 3_000_000);
    assert.equal(told('anthropic', 'claude-haiku-5-5', 8_000), 1_000_000);
    assert.equal(told('openrouter', 'some/model', 64_000), 64_000);
  });

  describe('a model that takes no such files', () => {
    const pdf: ContentBlock = {
      type: 'document',
      title: 'a.pdf',
      source: { type: 'base64', media_type: 'application/pdf', data: 'UERG' },
    };
    const shown: ContentBlock = {
      ...result('c'),
      content: [{ type: 'text', text: 'T' }, image],
    } as ContentBlock;
    const messages: Message[] = [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'show', input: {} }] },
      { role: 'user', content: [shown, pdf, image] },
    ];

    /** What arrives at a chat server of these. */
    async function arrived(
      name: 'openai' | 'ollama',
      model: string,
      capabilities?: string[],
    ): Promise<string> {
      const chat = await startOpenaiServer({
        turns: [{ text: ['ok'] }],
        other: ({ path }) => (path === '/api/show' ? { capabilities } : undefined),
      });
      try {
        const variable = { openai: 'OPENAI_BASE_URL', ollama: 'OLLAMA_BASE_URL' }[name];
        const config = loadConfig({
          env: { [variable]: chat.url, TELOS_PROVIDER: name, TELOS_MODEL: model },
          home: '/nowhere',
          cwd: '/nowhere',
        });
        const made = await createProvider(config, await chooseProvider(config));
        await collect(ask({ messages }), made);
        return JSON.stringify(chat.requests[0]?.body.messages);
      } finally {
        await chat.close();
      }
    }

    it('is told in their place what was there', async () => {
      const blind = await arrived('openai', 'o3-mini');
      assert.ok(!/AAAA|UERG/.test(blind), blind);
      assert.equal(blind.match(/An image was here, which this model does not take/g)?.length, 2);
      assert.match(blind, /A PDF was here/);
    });

    it('is known on the own machine by what Ollama says, and elsewhere left to its server', async () => {
      const sees = await arrived('ollama', 'gemma3', ['completion', 'vision']);
      assert.ok(sees.includes('AAAA') && !sees.includes('UERG'), sees);
      assert.ok(!/AAAA|UERG/.test(await arrived('ollama', 'llama3.1', ['completion'])));
      assert.match(await arrived('openai', 'somebody-elses'), /UERG.*AAAA/);
    });
  });
});
