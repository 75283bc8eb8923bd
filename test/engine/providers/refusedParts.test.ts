/** A tool or a picture that a server refuses is left out, and the conversation goes on. Words for "too long" that nobody has listed are understood. */
import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/engine/config.ts';
import { PromptTooLong } from '../../../src/engine/core/errors.ts';
import type { CompletionRequest, Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import type { Message } from '../../../src/protocol/run.ts';
import { listen, sendJson } from '../../fakes/loopback.ts';

const names = ['plain', 'odd', 'other', 'last'];
const toolsNamed = (all: readonly string[]) =>
  all.map(name => ({ name, description: 'D', inputSchema: { type: 'object', properties: {} } }));

/** Returns what a server refuses in the body of a request, in its words. */
// biome-ignore lint/suspicious/noExplicitAny: the bodies of three formats
type Refusal = (body: any) => string | undefined;

type Format = 'anthropic' | 'chat' | 'gemini';

const answers: Readonly<Record<Format, string>> = {
  anthropic: [
    { type: 'message_start', message: { usage: { input_tokens: 5, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'well' } },
    { type: 'message_stop' },
  ]
    .map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
  chat: 'data: {"choices":[{"index":0,"delta":{"content":"well"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  gemini:
    'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"well"}]},"finishReason":"STOP"}]}\n\n',
};

/** Starts a server in the format, and hands over the provider that the settings choose for it, with the bodies that have arrived. */
async function withServer(
  format: Format,
  refusal: Refusal,
  // biome-ignore lint/suspicious/noExplicitAny: as above
  test: (provider: Provider, bodies: any[]) => Promise<void>,
  status = 400,
): Promise<void> {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const bodies: any[] = [];
  const server = await listen(async ({ body }, response) => {
    bodies.push(body);
    const message = refusal(body);
    if (message !== undefined) {
      response.setHeader('retry-after-ms', '1');
      return sendJson(response, status, { error: { message } });
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answers[format]);
  });
  const env = {
    anthropic: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.address },
    chat: { OPENAI_BASE_URL: server.address, TELOS_PROVIDER: 'openai', TELOS_MODEL: 'm' },
    gemini: { GEMINI_API_KEY: 'k', GEMINI_BASE_URL: server.address, TELOS_PROTOCOL: 'native' },
  }[format];
  const config = loadConfig({ env, home: '/nowhere', cwd: '/nowhere' });
  try {
    await test(await createProvider(config, await chooseProvider(config)), bodies);
  } finally {
    await server.close();
  }
}

async function eventsOf(
  provider: Provider,
  request: Partial<CompletionRequest> = {},
): Promise<StreamEvent[]> {
  const whole = {
    system: 'S',
    messages: [{ role: 'user' as const, content: 'hello' }],
    tools: toolsNamed(names),
    maxTokens: 100,
    ...request,
  };
  const events: StreamEvent[] = [];
  for await (const event of provider.streamCompletion(whole, new AbortController().signal))
    events.push(event);
  return events;
}

const textOf = (events: readonly StreamEvent[]): string =>
  events.map(event => (event.type === 'text' ? event.text : '')).join('');
const reasonsIn = (events: readonly StreamEvent[]): string[] =>
  events.flatMap(event => (event.type === 'retry' ? [event.why] : []));

const namesIn: Readonly<Record<Format, Refusal>> = {
  anthropic: body => body.tools?.map((tool: { name: string }) => tool.name),
  chat: body => body.tools?.map((tool: { function: { name: string } }) => tool.function.name),
  gemini: body => body.tools?.[0].functionDeclarations.map((tool: { name: string }) => tool.name),
};

describe('a tool that a server refuses', () => {
  for (const [format, words] of [
    ['anthropic', 'tools.1.custom.input_schema.properties: Property keys should match pattern'],
    ['chat', "Invalid schema for function 'odd': True is not of type 'object'."],
    ['chat', "Invalid 'tools[1].function.name': string too long. Expected a string with maximum length 3."],
    ['gemini', '* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[a]: wrong'],
  ] as const)
    it(`is named and left out: ${words.slice(0, 40)}`, async () => {
      const refusal: Refusal = body => (namesIn[format](body)?.includes('odd') ? words : undefined);
      await withServer(format, refusal, async (provider, bodies) => {
        const events = await eventsOf(provider);
        assert.equal(textOf(events), 'well');
        assert.match(reasonsIn(events).join(), /^The server refuses the tool odd, which is left out\./);
        assert.equal(textOf(await eventsOf(provider)), 'well');
        assert.deepEqual(bodies.map(namesIn[format]), [
          names,
          ['plain', 'other', 'last'],
          ['plain', 'other', 'last'],
        ]);
      });
    });

  it('is one of those beyond the most that the server takes', async () => {
    const refusal: Refusal = ({ tools }) =>
      tools.length > 128
        ? `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${tools.length} instead.`
        : undefined;
    await withServer('chat', refusal, async (provider, bodies) => {
      const tools = toolsNamed(Array.from({ length: 300 }, (_, at) => `tool_${at}`));
      const events = await eventsOf(provider, { tools });
      assert.equal(textOf(events), 'well');
      assert.match(
        reasonsIn(events).join(),
        /^The server takes 128 tools at most\. The 172 from tool_128 to tool_299 are left out\./,
      );
      await eventsOf(provider, { tools });
      assert.deepEqual(
        bodies.map(body => body.tools.length),
        [300, 128, 128],
      );
    });
  });
});

const picture = (data: string) => ({
  type: 'image' as const,
  source: { type: 'base64' as const, media_type: 'image/png' as const, data },
});

describe('a picture that a server refuses', () => {
  const messages: Message[] = [
    { role: 'user', content: [picture('R09PRA=='), { type: 'text', text: 'look' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'plain', input: {} }] },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 't', content: [picture('QkFE')], is_error: false }],
    },
  ];
  for (const [format, words] of [
    ['anthropic', 'messages.2.content.0.tool_result.content.0.image.source.base64: image cannot be read'],
    ['chat', 'Failed to load image: cannot identify image file'],
    ['gemini', 'Unable to process input image. Please retry.'],
  ] as const)
    it(`is left out, and no other one: ${words.slice(0, 40)}`, async () => {
      const refusal: Refusal = body => (JSON.stringify(body).includes('QkFE') ? words : undefined);
      await withServer(format, refusal, async (provider, bodies) => {
        const events = await eventsOf(provider, { messages });
        assert.equal(textOf(events), 'well');
        assert.match(
          reasonsIn(events).join(),
          /^The server refuses a picture or document, which is left out\./,
        );
        await eventsOf(provider, { messages });
        assert.deepEqual(
          bodies.map(body => JSON.stringify(body).match(/R09PRA|QkFE|which the server refused/g)),
          [
            ['R09PRA', 'QkFE'],
            ['R09PRA', 'which the server refused'],
            ['R09PRA', 'which the server refused'],
          ],
        );
      });
    });
});

describe('a refusal in words that are not known', () => {
  const said = (length: number): CompletionRequest['messages'] => [
    { role: 'user', content: 'x'.repeat(length) },
  ];
  const tooMuch: Refusal = body =>
    JSON.stringify(body).length > 60_000 ? 'Das ist mir zu viel.' : undefined;

  it('of a longer request than was taken before counts as one for its length', async () => {
    await withServer('chat', tooMuch, async provider => {
      await eventsOf(provider, { messages: said(50_000) });
      await assert.rejects(eventsOf(provider, { messages: said(70_000) }), PromptTooLong);
      assert.equal(textOf(await eventsOf(provider, { messages: said(40_000) })), 'well');
    });
  });

  for (const [status, words] of [
    [500, 'kv cache exhausted'],
    [500, 'CUDA out of memory while allocating 2.00 GiB'],
    [503, 'No free slot of that length'],
    [424, 'Das ist mir zu viel.'],
  ] as const)
    it(`counts with any status, after its tries where it may pass: ${status} ${words}`, async () => {
      const refusal: Refusal = body => tooMuch(body) && words;
      const test = async (provider: Provider, bodies: unknown[]): Promise<void> => {
        await eventsOf(provider, { messages: said(50_000) });
        await assert.rejects(eventsOf(provider, { messages: said(70_000) }), PromptTooLong);
        assert.equal(bodies.length, status < 500 ? 2 : 6);
      };
      await withServer('chat', refusal, test, status);
    });

  it('of a server that is down does not', async () => {
    const refusal: Refusal = body => tooMuch(body) && 'upstream connect error';
    const test = async (provider: Provider): Promise<void> => {
      await eventsOf(provider, { messages: said(50_000) });
      const isOther = (error: Error) => !(error instanceof PromptTooLong);
      await assert.rejects(eventsOf(provider, { messages: said(70_000) }), isOther);
    };
    await withServer('chat', refusal, test, 502);
  });

  it('of the messages of a run, which grow where they are, counts too', async () => {
    await withServer('chat', tooMuch, async provider => {
      const messages = [...said(50_000)];
      await eventsOf(provider, { messages });
      messages.push({ role: 'assistant', content: 'well' }, ...said(20_000));
      await assert.rejects(eventsOf(provider, { messages }), PromptTooLong);
    });
  });

  it('of a conversation that goes on in a new run counts too', async () => {
    await withServer('chat', tooMuch, async provider => {
      const messages = [...said(50_000), { role: 'assistant' as const, content: 'well' }, ...said(20_000)];
      await assert.rejects(eventsOf(provider, { messages }), PromptTooLong);
    });
  });

  it('of a first or a short request does not', async () => {
    await withServer('chat', tooMuch, async provider => {
      const isOther = (error: Error) =>
        !(error instanceof PromptTooLong) && error.message.includes('Das ist mir zu viel.');
      await assert.rejects(eventsOf(provider, { messages: said(70_000) }), isOther);
    });
    const never: Refusal = body => (JSON.stringify(body).includes('second') ? 'No.' : undefined);
    await withServer('chat', never, async provider => {
      await eventsOf(provider);
      const messages = [{ role: 'user' as const, content: 'hello, a second time' }];
      await assert.rejects(eventsOf(provider, { messages }), error => !(error instanceof PromptTooLong));
    });
  });
});
