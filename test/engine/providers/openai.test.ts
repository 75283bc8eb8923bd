import assert from 'node:assert/strict';
import { TelosError } from '../../../src/engine/core/errors.ts';
import type { CompletionRequest, StreamEvent } from '../../../src/engine/core/ports.ts';
import { standardLimits, type TurnLimits } from '../../../src/engine/providers/failures.ts';
import { createOpenaiCompatible, toOpenaiRequest } from '../../../src/engine/providers/openai.ts';
import type { OpenaiCompatibleName } from '../../../src/engine/providers/openaiReader.ts';
import type { ContentBlock, Message } from '../../../src/protocol/run.ts';
import { until } from '../../eventually.ts';
import { joined } from '../../fakes/joined.ts';
import { type OpenaiServerOptions, type OpenaiTurn, startOpenaiServer } from '../../fakes/openaiServer.ts';

const key = 'test-key-7f3a';

/** The result of the call `c1`. */
const answered: Message = {
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'found', is_error: false }],
};

function ask(part: Partial<CompletionRequest> = {}): CompletionRequest {
  return { system: 'S', messages: [{ role: 'user', content: 'hi' }], tools: [], maxTokens: 1024, ...part };
}

describe('openai-compatible', () => {
  let server: Awaited<ReturnType<typeof startOpenaiServer>> | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  async function serve(turns: OpenaiTurn[], more: Partial<OpenaiServerOptions> = {}) {
    server = await startOpenaiServer({ turns, ...more });
    return server;
  }

  function provider(name: OpenaiCompatibleName = 'openai', limits: Partial<TurnLimits> = {}, model = 'M') {
    return createOpenaiCompatible({
      name,
      apiKey: key,
      keyVariable: 'SOME_API_KEY',
      model,
      baseUrl: server?.url ?? '',
      baseUrlVariable: 'SOME_BASE_URL',
      limits: { ...standardLimits, firstPauseMs: 1, ...limits },
    });
  }

  async function collect(
    request = ask(),
    from = provider(),
    signal = new AbortController().signal,
  ): Promise<StreamEvent[]> {
    const events: StreamEvent[] = [];
    for await (const event of from.streamCompletion(request, signal)) events.push(event);
    return events;
  }

  /** What a turn comes to, without the token counts. */
  async function read(turn: OpenaiTurn) {
    await serve([turn]);
    const events = await collect();
    await server?.close();
    return events.map(event => {
      if (event.type === 'text' || event.type === 'reasoning') return [event.type, event.text];
      if (event.type === 'tool_call') return ['tool_call', event.call.id, event.call.name, event.call.input];
      return event.type === 'done' ? ['done', event.stopReason] : [event.type];
    });
  }

  const delta = (part: object, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta: part, finish_reason }],
  });
  const piece = (index: number | undefined, id: string | undefined, name: string | undefined, json: string) =>
    delta({ tool_calls: [{ index, id, function: { name, arguments: json } }] });

  it('streams text as it comes and ends with one done that counts the tokens', async () => {
    const usage = { prompt_tokens: 30, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 20 } };
    const { requests } = await serve([{ text: ['He', 'llo'], usage }]);
    assert.deepEqual(joined(await collect()), [
      { type: 'text', text: 'Hello' },
      {
        type: 'done',
        stopReason: 'stop',
        usage: { inputTokens: 10, outputTokens: 4, cacheReadTokens: 20, cacheWriteTokens: 0 },
      },
    ]);
    assert.deepEqual(requests[0]?.body, {
      model: 'M',
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'hi' },
      ],
      max_tokens: 1024,
      stream: true,
      stream_options: { include_usage: true },
    });
    assert.equal(requests[0]?.headers['authorization'], `Bearer ${key}`);
  });

  it('counts what a provider of its own habits says: what was charged, what was thought, what went into a cache', async () => {
    const counted = async (name: OpenaiCompatibleName, usage: object) => {
      await serve([{ text: ['x'], usage }]);
      const end = (await collect(ask(), provider(name))).at(-1);
      await server?.close();
      return end?.type === 'done' ? end.usage : undefined;
    };
    const details = { prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 5 } };
    const usage = { prompt_tokens: 30, completion_tokens: 4, total_tokens: 34, ...details, cost: 0.5 };
    const tokens = { inputTokens: 5, outputTokens: 4, cacheReadTokens: 20, cacheWriteTokens: 5 };
    assert.deepEqual(await counted('openrouter', usage), { ...tokens, charged: 0.5 });
    // A server that does not count sends zeros, and its answers are not free.
    for (const name of ['openai', 'gemini', 'ollama'] as const)
      assert.equal(
        await counted(name, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
        undefined,
      );
    const ownKey = { ...usage, is_byok: true, cost_details: { upstream_inference_cost: 2 } };
    assert.deepEqual(await counted('openrouter', ownKey), { ...tokens, charged: 2.5 });
    assert.deepEqual(await counted('openrouter', { ...usage, is_byok: true }), tokens);
    assert.deepEqual(await counted('openrouter', { ...usage, cost: '0.5' }), tokens);
    // The "cost" of others may not be in dollars.
    assert.deepEqual(await counted('openai', usage), tokens);
    assert.equal((await counted('gemini', { ...usage, total_tokens: 90 }))?.outputTokens, 60);
    assert.equal((await counted('openai', { ...usage, total_tokens: 90 }))?.outputTokens, 4);
  });

  it('says under one name, whoever answers, that an answer was cut or withheld', async () => {
    assert.deepEqual((await read({ text: ['Half'], finishReason: 'length' })).at(-1), ['done', 'max_tokens']);
    assert.deepEqual((await read({ finishReason: 'content_filter' })).at(-1), ['done', 'refusal']);
  });

  it('gives OpenRouter back the reasoning that came with a call, put together, and nobody else', async () => {
    const part = (detail: object) => delta({ reasoning_details: [detail] });
    const chunks = [
      part({ type: 'reasoning.text', index: 0, text: 'I look', signature: null }),
      part({ type: 'reasoning.text', index: 0, text: ' it up.', signature: 'seal' }),
      part({ type: 'reasoning.encrypted', index: 1, data: 'abc', id: 'c1' }),
      piece(0, 'c1', 'a', '{}'),
      delta({}, 'tool_calls'),
    ];
    await serve([{ chunks }, { text: ['x'] }]);
    const round = async (name: OpenaiCompatibleName) => {
      const events = await collect(ask(), provider(name));
      const content = events.flatMap((event): ContentBlock[] => {
        if (event.type === 'thinking') return [event.block];
        return event.type === 'tool_call' ? [{ type: 'tool_use', ...event.call }] : [];
      });
      await collect(ask({ messages: [{ role: 'assistant', content }, answered] }), provider(name));
      return server?.requests.at(-1)?.body.messages[1];
    };
    const calls = [{ id: 'c1', type: 'function', function: { name: 'a', arguments: '{}' } }];
    assert.deepEqual(await round('openrouter'), {
      role: 'assistant',
      content: null,
      tool_calls: calls,
      reasoning_details: [
        { type: 'reasoning.text', index: 0, text: 'I look it up.', signature: 'seal' },
        { type: 'reasoning.encrypted', index: 1, data: 'abc', id: 'c1' },
      ],
    });
    await server?.close();
    await serve([{ chunks }, { text: ['x'] }]);
    assert.deepEqual(await round('openai'), { role: 'assistant', content: null, tool_calls: calls });
  });

  it('puts interleaved calls together', async () => {
    const chunks = [
      piece(0, 'c1', 'a', '{"x":'),
      piece(1, 'c2', 'b', '{}'),
      piece(0, undefined, undefined, '1}'),
    ];
    assert.deepEqual(await read({ chunks }), [
      ['tool_call', 'c1', 'a', { x: 1 }],
      ['tool_call', 'c2', 'b', {}],
      ['done', 'stop'],
    ]);
  });

  it('tells calls apart that all have index 0, or none', async () => {
    for (const index of [0, undefined]) {
      const chunks = [
        piece(index, 'c1', 'a', '{"x":'),
        piece(index, undefined, undefined, '1}'),
        piece(index, 'c2', 'b', '{}'),
        delta({}, 'tool_calls'),
      ];
      assert.deepEqual(await read({ chunks }), [
        ['tool_call', 'c1', 'a', { x: 1 }],
        ['tool_call', 'c2', 'b', {}],
        ['done', 'tool_calls'],
      ]);
    }
  });

  it('puts interleaved calls together that have an id but no index', async () => {
    const chunks = [
      piece(undefined, 'c1', 'a', '{"x":'),
      piece(undefined, 'c2', 'b', '{"y":'),
      piece(undefined, 'c1', undefined, '1}'),
      piece(undefined, 'c2', undefined, '2}'),
      delta({}, 'tool_calls'),
    ];
    assert.deepEqual(await read({ chunks }), [
      ['tool_call', 'c1', 'a', { x: 1 }],
      ['tool_call', 'c2', 'b', { y: 2 }],
      ['done', 'tool_calls'],
    ]);
  });

  it('gives a call without an id one of its own, also behind another such call', async () => {
    const chunks = [piece(0, '', 'a', '{}'), piece(0, '', 'b', '{"x":1}'), delta({}, 'tool_calls')];
    const [call, other] = await read({ chunks });
    assert.match(String(call?.[1]), /^call_[0-9a-f]{32}$/);
    assert.deepEqual([call?.[2], call?.[3], other?.[2], other?.[3]], ['a', {}, 'b', { x: 1 }]);
  });

  it('does not let two calls have one id, since each result would then be that of both', async () => {
    const chunks = [
      piece(0, 'c1', 'a', '{}'),
      piece(1, 'c1', 'b', '{"x":'),
      piece(1, 'c1', undefined, '1}'),
      delta({}, 'tool_calls'),
    ];
    const [call, other] = await read({ chunks });
    assert.deepEqual(call, ['tool_call', 'c1', 'a', {}]);
    assert.notEqual(other?.[1], 'c1');
    assert.deepEqual([other?.[2], other?.[3]], ['b', { x: 1 }]);
  });

  it('reads arguments that are no text, and words that come as a list of parts', async () => {
    const call = { id: 'c1', function: { name: 'a', arguments: { x: 1 } } };
    const chunks = [
      delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] }),
      delta({ content: [{ type: 'text', text: 'Well' }] }),
      delta({ tool_calls: [call] }),
      delta({}, 'tool_calls'),
    ];
    assert.deepEqual(await read({ chunks }), [
      ['reasoning', 'hm'],
      ['text', 'Well'],
      ['tool_call', 'c1', 'a', { x: 1 }],
      ['done', 'tool_calls'],
    ]);
  });

  it('reads what is null where something should be', async () => {
    const empty = { index: 0, id: 'c1', function: null };
    const chunks = [
      { choices: null },
      { choices: [null] },
      { choices: [{ delta: null }] },
      delta({ content: 'x', tool_calls: [null, empty] }),
      piece(0, undefined, 'a', '{}'),
      delta({}, 'tool_calls'),
    ];
    assert.deepEqual(await read({ chunks }), [
      ['text', 'x'],
      ['tool_call', 'c1', 'a', {}],
      ['done', 'tool_calls'],
    ]);
  });

  it('finds the token counts where Moonshot and Groq put them', async () => {
    const usage = { prompt_tokens: 5, completion_tokens: 6 };
    const ends = [{ choices: [{ delta: {}, finish_reason: 'stop', usage }] }, { x_groq: { usage } }];
    for (const end of ends) {
      await serve([{ chunks: [delta({ content: 'x' }, 'stop'), end] }]);
      const done = (await collect()).at(-1);
      assert.ok(done?.type === 'done');
      assert.deepEqual([done.usage?.inputTokens, done.usage?.outputTokens], [5, 6]);
      await server?.close();
    }
  });

  it('gives a server back what it thought before a call, which DeepSeek and Moonshot insist on', async () => {
    const chunks = [
      delta({ reasoning_content: 'I look' }),
      delta({ reasoning_content: ' it up.' }),
      piece(0, 'c1', 'a', '{}'),
      delta({}, 'tool_calls'),
    ];
    const words = [delta({ reasoning_content: 'Easy.' }), delta({ content: 'x' }, 'stop')];
    await serve([{ chunks }, { chunks: words }, { text: ['x'] }]);
    const asked = await collect();
    assert.deepEqual(
      (await collect()).map(event => event.type),
      ['reasoning', 'text', 'done'],
    );
    const content = asked.flatMap((event): ContentBlock[] => {
      if (event.type === 'thinking') return [event.block];
      return event.type === 'tool_call' ? [{ type: 'tool_use', ...event.call }] : [];
    });
    const messages: Message[] = [{ role: 'assistant', content }, answered];
    await collect(ask({ messages }));
    assert.equal(server?.requests[2]?.body.messages[1].reasoning_content, 'I look it up.');
    await collect(ask({ messages }), provider('gemini'));
    assert.ok(!('reasoning_content' in (server?.requests[3]?.body.messages[1] ?? {})));
  });

  it('shows what a model thinks apart from its answer, under each name that servers give it', async () => {
    const answer = delta({ content: 'x' }, 'stop');
    const detail = { type: 'reasoning.text', index: 0, text: 'Hm.' };
    for (const [thought, name] of [
      [delta({ reasoning_content: 'Hm.' }), 'openai'],
      [delta({ reasoning: 'Hm.' }), 'ollama'],
      [delta({ reasoning_content: 'Hm.', reasoning: 'Hm.' }), 'openai'],
      [delta({ reasoning: 'Hm.', reasoning_details: [detail] }), 'openrouter'],
      [delta({ reasoning_details: [detail] }), 'openrouter'],
      [delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] }), 'openai'],
    ] as const) {
      await serve([{ chunks: [thought, answer] }]);
      const events = (await collect(ask(), provider(name))).filter(({ type }) => type !== 'thinking');
      assert.deepEqual(events.slice(0, 2), [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'x' },
      ]);
      await server?.close();
    }
  });

  it('knows thoughts that are only closed once they were so before, and leaves a text about the tag as it is', async () => {
    const halves = (text: string, length: number) =>
      (text.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []).map(content => delta({ content }));
    const answers = [
      'Let me\n see.\n</think>\n\nIt is 4.',
      'Now 2.\n</think>\n\nAnd 2.',
      'At once.',
      'At < last.',
    ];
    for (const length of [1, 3, 100]) {
      await serve(answers.map(text => ({ chunks: [...halves(text, length), delta({}, 'stop')] })));
      const model = provider();
      const turns: string[][] = [];
      for (const _ of answers) {
        const events = await collect(ask(), model);
        const said = (type: 'text' | 'reasoning'): string =>
          events.map(event => (event.type === type ? event.text : '')).join('');
        turns.push([said('reasoning').trim(), said('text')]);
      }
      await server?.close();
      assert.deepEqual(
        turns,
        [
          ['', 'Let me\n see.\n\nIt is 4.'],
          ['Now 2.', 'And 2.'],
          ['At once.', 'At once.'],
          ['', 'At < last.'],
        ],
        String(length),
      );
    }
    const about = 'Write\n`</think>` or </think> here,\n</thinking>\n';
    for (const length of [1, 2, 7, 100]) {
      await serve([{ chunks: [...halves(about, length), delta({}, 'stop')] }]);
      assert.equal(
        joined(await collect())
          .map(event => (event.type === 'text' ? event.text : ''))
          .join(''),
        about,
      );
      await server?.close();
    }
  });

  it('tells thoughts between tags from the answer, wherever the tags are cut', async () => {
    const whole = '\n<think>a < b </thin</think>\n\nIt <think> so.';
    for (let length = 1; length <= whole.length; length++) {
      const pieces = whole.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? [];
      const events = await read({
        chunks: [...pieces.map(content => delta({ content })), delta({}, 'stop')],
      });
      const said = (type: string): string =>
        events.flatMap(([name, text]) => (name === type ? [text] : [])).join('');
      assert.deepEqual([said('reasoning'), said('text')], ['a < b </thin', 'It <think> so.'], String(length));
    }
    for (const text of ['<thin', 'x <think>y</think>', '<', '  '])
      assert.deepEqual(await read({ chunks: [delta({ content: text }, 'stop')] }), [
        ['text', text],
        ['done', 'stop'],
      ]);
    const cut = [delta({ content: '<think>on and on </th' }, 'length')];
    const events = await read({ chunks: cut });
    assert.deepEqual(
      events.map(([type]) => type),
      ['reasoning', 'reasoning', 'done'],
    );
  });

  it('sends thoughts back under the name or between the tags in which they came before a call', async () => {
    const roundOf = async (chunks: object[], name: 'openai' | 'ollama'): Promise<object> => {
      await serve([
        { chunks: [...chunks, piece(0, 'c1', 'a', '{}'), delta({}, 'tool_calls')] },
        { text: ['x'] },
      ]);
      const content = (await collect(ask(), provider(name))).flatMap((event): ContentBlock[] => {
        if (event.type === 'thinking') return [event.block];
        if (event.type === 'text') return [{ type: 'text', text: event.text }];
        return event.type === 'tool_call' ? [{ type: 'tool_use', ...event.call }] : [];
      });
      await collect(ask({ messages: [{ role: 'assistant', content }, answered] }), provider(name));
      const { role, tool_calls, ...rest } = server?.requests[1]?.body.messages[1] ?? {};
      await server?.close();
      return rest;
    };
    const thought = delta({ reasoning: 'Hm.' });
    assert.deepEqual(await roundOf([thought, delta({ content: 'Look.' })], 'ollama'), {
      content: 'Look.',
      reasoning: 'Hm.',
    });
    assert.deepEqual(await roundOf([delta({ content: '<think>Hm.</think>Look.' })], 'openai'), {
      content: '<think>Hm.</think>\n\nLook.',
    });
  });

  it('reads chunks without choices, calls without arguments, and an answer that is only [DONE]', async () => {
    const noArguments = delta({
      tool_calls: [{ index: 0, id: 'c1', function: { name: 'a', arguments: null } }],
    });
    assert.deepEqual(await read({ chunks: [noArguments] }), [
      ['tool_call', 'c1', 'a', {}],
      ['done', 'stop'],
    ]);
    assert.deepEqual(await read({ chunks: [{ usage: null }, { choices: [] }, delta({ content: 'x' })] }), [
      ['text', 'x'],
      ['done', 'stop'],
    ]);
  });

  it('says what is wrong with arguments that are not JSON', async () => {
    await serve([{ toolCalls: [{ id: 'c1', name: 'a', json: '{bad' }] }]);
    const [event] = await collect();
    assert.ok(event?.type === 'tool_call');
    assert.deepEqual(event.call.input, {});
    assert.match(event.call.problem ?? '', /not valid JSON/);
  });

  it('reads arguments that can be meant in one way only, and no others', async () => {
    for (const json of [
      '"{\\"x\\": 1}"',
      '{"x": 1}</tool_call>',
      '{"x": 1}\n</parameter>\n</function>',
      '{"x": 1}<|tool_call_end|>',
    ])
      assert.deepEqual((await read({ toolCalls: [{ id: 'c1', name: 'a', json }] }))[0], [
        'tool_call',
        'c1',
        'a',
        { x: 1 },
      ]);
    for (const [json, x] of [
      ['{"x": "</b>"}', '</b>'],
      ['{"x":\n"one\ntwo\t\\"three\\""}', 'one\ntwo\t"three"'],
    ] as const)
      assert.deepEqual((await read({ toolCalls: [{ id: 'c1', name: 'a', json }] }))[0]?.[3], { x });
    for (const json of ['"x"', '{"x": 1', '{"x": 1} {"y": 2}', '[1]']) {
      await serve([{ toolCalls: [{ id: 'c1', name: 'a', json }] }]);
      const [event] = await collect();
      assert.ok(event?.type === 'tool_call' && event.call.problem, json);
      await server?.close();
    }
  });

  it('keeps what a server attached to a call, for its way back', async () => {
    const extraContent = { google: { thought_signature: 'seal' } };
    await serve([{ toolCalls: [{ id: 'c1', name: 'a', extraContent }] }]);
    const events = await collect(ask(), provider('gemini'));
    assert.equal(events[0]?.type, 'thinking');
    assert.equal(events[1]?.type, 'tool_call');
    const content = events.flatMap((event): ContentBlock[] => {
      if (event.type === 'thinking') return [event.block];
      return event.type === 'tool_call' ? [{ type: 'tool_use', id: 'c1', name: 'a', input: {} }] : [];
    });
    const result: ContentBlock = { type: 'tool_result', tool_use_id: 'c1', content: 'b', is_error: false };
    const messages: Message[] = [
      { role: 'assistant', content },
      { role: 'user', content: [result] },
    ];
    await collect(ask({ messages }), provider('gemini'));
    assert.deepEqual(server?.requests[1]?.body.messages[1].tool_calls[0].extra_content, extraContent);
  });

  it('sends tools only when there are some, and the limit under the name that the model knows', () => {
    const tool = { name: 'q', description: 'd', inputSchema: { type: 'object' } };
    const request = toOpenaiRequest('openai', 'gpt-4.1', ask({ tools: [tool] }));
    assert.deepEqual(request.tools, [
      { type: 'function', function: { name: 'q', description: 'd', parameters: { type: 'object' } } },
    ]);
    assert.ok(!('tools' in toOpenaiRequest('openai', 'gpt-4.1', ask())));
    const names = (name: OpenaiCompatibleName, model: string) =>
      Object.keys(toOpenaiRequest(name, model, ask())).filter(property => property.startsWith('max_'));
    assert.deepEqual(names('openai', 'gpt-4.1'), ['max_tokens']);
    assert.deepEqual(names('openai', 'gpt-5.4-mini'), ['max_completion_tokens']);
    assert.deepEqual(names('openai', 'o3'), ['max_completion_tokens']);
    assert.deepEqual(names('openrouter', 'openai/gpt-5'), ['max_tokens']);
  });

  it('says what the server said of a 403, and blames the key only if that does', async () => {
    const said = async (errorBody: object): Promise<TelosError> => {
      await server?.close();
      await serve([{ status: 403, errorBody }]);
      const error: unknown = await collect().catch((thrown: unknown) => thrown);
      assert.ok(error instanceof TelosError);
      return error;
    };
    for (const message of [
      'Country, region, or territory not supported.',
      'Project does not have access to model `gpt-5`.',
      'Blocked by the firewall.',
    ]) {
      const { code, remedy, message: shown } = await said({ error: { message } });
      assert.deepEqual([code, remedy], ['provider', undefined], message);
      assert.ok(shown.includes(` refused the request (403): ${message}`), shown);
    }
    for (const message of [
      'Invalid API key.',
      'The API key has expired.',
      'Your API key was reported as leaked.',
    ])
      assert.equal((await said({ error: { message } })).code, 'auth', message);
  });

  it('explains a refused key, never with the key', async () => {
    await serve([{ status: 401, errorBody: { error: { message: `Incorrect API key provided: ${key}.` } } }]);
    await assert.rejects(collect(), (error: unknown) => {
      assert.ok(error instanceof TelosError);
      assert.equal(error.code, 'auth');
      assert.match(error.message, /^127\.0\.0\.1:\d+ refused the key: Incorrect API key/);
      assert.deepEqual(error.remedy, { kind: 'set_key', variable: 'SOME_API_KEY' });
      assert.ok(!error.message.includes(key));
      return true;
    });
  });

  it('reads the errors of Google, of Ollama, and those in a stream', async () => {
    await serve([{ status: 400, errorBody: [{ error: { code: 400, message: 'Unknown field.' } }] }]);
    await assert.rejects(
      collect(ask(), provider('gemini')),
      /Gemini refused the request \(400\): Unknown field\./,
    );
    await server?.close();
    await serve([{ status: 404, errorBody: { error: { message: "model 'M' not found" } } }]);
    await assert.rejects(collect(ask(), provider('ollama')), /model 'M' not found.*ollama pull M/);
    await server?.close();
    await serve([{ chunks: [{ error: { code: 502, message: 'Upstream fell over' } }] }]);
    await assert.rejects(collect(ask(), provider('openrouter', { tries: 2 })), {
      code: 'provider',
      message: /OpenRouter has an internal error \(502\): Upstream fell over.*Tried 2 times/,
    });
  });

  it('knows an error without the usual wrapping, and a line that cannot be read', async () => {
    await serve([
      { rawBody: Buffer.from('event: error\ndata: {"message":"Too many words","code":400}\n\n') },
    ]);
    await assert.rejects(
      collect(),
      /^TelosError: 127\.0\.0\.1:\d+ refused the request \(400\): Too many words\./,
    );
    await server?.close();
    const headers = { 'content-type': 'application/json' };
    await serve([{ headers, rawBody: Buffer.from('{"error":{"message":"Too fast","code":429}}') }]);
    await assert.rejects(collect(ask(), provider('openai', { tries: 1 })), { code: 'rate_limit' });
    await server?.close();
    await serve([{ rawBody: Buffer.from('data: {oops\n\n') }]);
    await assert.rejects(
      collect(ask(), provider('openai', { tries: 1 })),
      /The answer of 127\.0\.0\.1:\d+ could not be read .*SOME_BASE_URL/,
    );
  });

  it('takes no answer for whole whose last line has no end', async () => {
    const last = JSON.stringify(delta({ content: 'x' }));
    await serve([{ rawBody: Buffer.from(`data: ${last}\n\ndata: [DONE]`) }]);
    await assert.rejects(collect(ask(), provider('openai', { tries: 1 })), /was lost/);
  });

  it('tries again when overloaded, once when the money is spent', async () => {
    const { requests } = await serve([
      { status: 503 },
      { status: 429, headers: { 'retry-after': '0' } },
      { text: ['ok'] },
    ]);
    assert.deepEqual(
      (await collect()).map(event => event.type),
      ['retry', 'retry', 'text', 'done'],
    );
    assert.equal(requests.length, 3);
    await server?.close();
    const spent = await serve([
      {
        status: 429,
        errorBody: { error: { message: 'You exceeded your quota', code: 'insufficient_quota' } },
      },
    ]);
    await assert.rejects(collect(), { code: 'rate_limit', message: /spending limit/ });
    assert.equal(spent.requests.length, 1);
  });

  it('says when the connection broke off, also when it ended politely', async () => {
    const open = [delta({ content: 'a' })];
    for (const turn of [
      { chunks: open, withoutDone: true },
      { text: ['a', 'b'], cutAfterBytes: 330 },
    ]) {
      await serve([turn]);
      await assert.rejects(collect(), {
        code: 'provider',
        message: /connection to 127\.0\.0\.1:\d+ was lost/,
      });
      await server?.close();
    }
  });

  it('uses its connections again', async () => {
    const { requests } = await serve([{ text: ['ok'] }], { chunkDelayMs: 3 });
    const one = provider();
    for (let round = 0; round < 6; round += 1) await collect(ask(), one);
    // One is sometimes not free again at once when the next round begins.
    assert.ok(new Set(requests.map(request => request.port)).size <= 2);
  });

  it('stops at once when aborted, and closes the connection', async () => {
    await serve([{ text: Array(500).fill('word ') }], { chunkDelayMs: 20 });
    const controller = new AbortController();
    const reason = new Error('enough');
    await assert.rejects(async () => {
      for await (const event of provider().streamCompletion(ask(), controller.signal)) {
        if (event.type === 'text') controller.abort(reason);
      }
    }, reason);
    const request = server?.requests[0];
    await until(() => request?.aborted === true, 'the connection is still open');
  });

  it('closes the connection when the listener walks away', async () => {
    await serve([{ text: Array(500).fill('word ') }], { chunkDelayMs: 20 });
    for await (const event of provider().streamCompletion(ask(), new AbortController().signal)) {
      if (event.type === 'text') break;
    }
    const request = server?.requests[0];
    await until(() => request?.aborted === true, 'the connection is still open');
  });

  describe('with Ollama', () => {
    const long = 'word '.repeat(6_000);

    function ollama(contextLength: number, most = 131_072) {
      return serve([{ text: ['ok'] }], {
        other({ path }) {
          if (path === '/api/generate') return { done: true };
          if (path === '/api/ps')
            return { models: [{ name: 'llama3.1:latest', context_length: contextLength }] };
          if (path === '/api/show') return { model_info: { 'llama.context_length': most } };
          return path === '/api/create' ? { status: 'success' } : undefined;
        },
      });
    }

    const local = () => provider('ollama', {}, 'llama3.1');

    it('asks the model itself as long as it holds the request', async () => {
      const { requests, others } = await ollama(32_768);
      const model = local();
      await collect(ask({ messages: [{ role: 'user', content: long }] }), model);
      await collect(ask(), model);
      assert.deepEqual(
        requests.map(request => request.body.model),
        ['llama3.1', 'llama3.1'],
      );
      assert.deepEqual(
        others.map(request => request.path),
        ['/api/generate', '/api/ps'],
      );
    });

    it('makes a variant with room enough when the model would cut the request', async () => {
      const { requests, others } = await ollama(4_096);
      const model = local();
      await collect(ask({ messages: [{ role: 'user', content: long }] }), model);
      await collect(ask({ messages: [{ role: 'user', content: long }] }), model);
      assert.deepEqual(
        requests.map(request => request.body.model),
        ['llama3.1:telos-16k', 'llama3.1:telos-16k'],
      );
      assert.deepEqual(
        others.filter(request => request.path === '/api/create').map(request => request.body),
        [{ model: 'llama3.1:telos-16k', from: 'llama3.1', parameters: { num_ctx: 16_384 }, stream: false }],
      );
    });

    it('makes one as large as the model can be where that is no round number', async () => {
      const { requests } = await ollama(4_096, 15_360);
      await collect(ask({ messages: [{ role: 'user', content: long }] }), local());
      assert.equal(requests[0]?.body.model, 'llama3.1:telos-15k');
    });

    it('does not take the bytes of an image for words', async () => {
      const data = 'A'.repeat(1_000_000);
      const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } } as const;
      const { requests } = await ollama(4_096, 16_384);
      await collect(ask({ messages: [{ role: 'user', content: [image, image] }] }), local());
      assert.equal(requests[0]?.body.model, 'llama3.1:telos-16k');
    });

    it('says so when there is no room', async () => {
      const { requests } = await ollama(4_096, 8_192);
      await assert.rejects(collect(ask({ messages: [{ role: 'user', content: long }] }), local()), {
        code: 'config',
        message: /Ollama runs llama3.1 with 4096.*at most 8192 tokens.*OLLAMA_CONTEXT_LENGTH=16384/,
      });
      assert.equal(requests.length, 0);
    });

    it('says at once that none is running', async () => {
      const { url, close } = await serve([]);
      await close();
      const from = local();
      server = undefined;
      const address = url.replace('/v1', '');
      await assert.rejects(collect(ask(), from), {
        message: new RegExp(`^Ollama is not running at ${address}\\.`),
      });
    });

    it('asks a server that is not quite an Ollama as it is', async () => {
      const { requests } = await serve([{ text: ['ok'] }]);
      await collect(ask({ messages: [{ role: 'user', content: long }] }), local());
      assert.equal(requests[0]?.body.model, 'llama3.1');
    });
  });
});
