/** A server that takes a thought only where it followed the same instructions, tools and messages, as newer models of Anthropic do. */
import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/engine/config.ts';
import type { CompletionRequest, Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { RunMemory } from '../../../src/engine/policy/decision.ts';
import { createAnthropic } from '../../../src/engine/providers/anthropic.ts';
import { createOpenaiCompatible } from '../../../src/engine/providers/openai.ts';
import { newRun } from '../../../src/engine/run/request.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import type { Message, RunEvent } from '../../../src/protocol/run.ts';
import { type AnthropicTurn, startAnthropicServer } from '../../fakes/anthropicServer.ts';
import type { FakeServer, ReceivedRequest } from '../../fakes/loopback.ts';
import { loopRun } from '../../fakes/loopRun.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

interface WireBlock {
  type: string;
  signature?: string;
}

interface WireMessage {
  role: string;
  content: string | WireBlock[];
}

const blocksOf = ({ content }: WireMessage): WireBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content } as WireBlock] : content;

const isThought = ({ type }: WireBlock): boolean => /thinking/.test(type);

/** Returns all that comes before a message, as a text. Marks for the cache and other thoughts do not count. */
function textBefore({ system, tools, messages }: ReceivedRequest['body'], index: number): string {
  const earlier = (messages as WireMessage[])
    .slice(0, index)
    .map(message => [message.role, blocksOf(message).filter(block => !isThought(block))]);
  return JSON.stringify([system, tools, earlier], (key, value) =>
    key === 'cache_control' ? undefined : value,
  );
}

const thoughtsIn = ({ body }: ReceivedRequest): string[] =>
  (body.messages as WireMessage[]).flatMap(blocksOf).flatMap(({ signature }) => signature ?? []);

describe('thoughts that are bound to what came before them', () => {
  let folder: TempFolder;
  let server: FakeServer;
  const refused: string[] = [];
  beforeEach(() => {
    folder = tempFolder({ 'work/.k': '' });
    refused.length = 0;
  });
  afterEach(async () => {
    folder.remove();
    await server.close();
  });

  /** Thinks and reads a page in each of these rounds, then answers. `refuses` says when a thought is refused wherever it stands. */
  async function serve(rounds: number, refuses = (): boolean => false): Promise<void> {
    const sealed = new Map<string, string>();
    let round = 0;
    server = await startAnthropicServer({
      turns(request): AnthropicTurn {
        const { messages } = request.body as { messages: WireMessage[] };
        for (const [index, message] of messages.entries())
          for (const { signature } of blocksOf(message))
            if (
              signature !== undefined &&
              (refuses() || sealed.get(signature) !== textBefore(request.body, index))
            )
              return refusal(`messages.${index}.content.0`);
        if (/Write that summary/.test(JSON.stringify(messages.at(-1)))) return { text: ['read so far'] };
        const signature = `seal-${++round}`;
        sealed.set(signature, textBefore(request.body, messages.length));
        const usage = { input_tokens: Math.ceil(JSON.stringify(request.body).length / 4) };
        const thinking = [{ thinking: 'let me see', signature }];
        if (round > rounds) return { thinking, text: ['all read'], usage };
        return { thinking, toolCalls: [{ name: 'read_file', input: { path: `p${round}` } }], usage };
      },
    });
  }

  function refusal(place: string): AnthropicTurn {
    refused.push(place);
    const message = `${place}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`;
    return {
      status: 400,
      errorBody: { type: 'error', error: { type: 'invalid_request_error', message } },
    };
  }

  const pages: Tool = {
    definition: { name: 'read_file', description: '', inputSchema: { type: 'object' } },
    access: 'read',
    execute: async ({ path }) => ({ content: `begin ${path} ${'x'.repeat(6_000)}`, isError: false }),
  };

  const provider = () => createAnthropic({ apiKey: 'k', model: 'claude-sonnet-5-5', baseUrl: server.url });

  async function run(window: number | undefined, tools: () => readonly Tool[] = () => [pages]) {
    const { path } = folder;
    const folders = { workingDir: `${path}/work`, packDir: path, skillDir: path, commandDir: path };
    const run = newRun({ text: 'read' }, denyAll, loadConfig({ env: {}, home: path, cwd: path }));
    run.messages.push({ role: 'user', content: 'Read all the pages.' });
    const spec = {
      provider: provider(),
      human: denyAll,
      system: 'S',
      get tools() {
        return tools();
      },
      priceOf: () => 'unknown' as const,
      window,
      maxRounds: 100,
      context: { ...folders, env: {} },
      policy: { ...folders, home: path, protectedDirs: [], memory: new RunMemory() },
    };
    const events: RunEvent[] = [];
    for await (const event of loopRun(run, spec, new AbortController().signal)) events.push(event);
    const end = events.at(-1);
    assert.ok(end?.type === 'run_end');
    assert.equal(end.outcome, 'completed', JSON.stringify(end.error));
    return events;
  }

  it('sends every thought again while nothing before it changes', async () => {
    await serve(5);
    await run(undefined);
    assert.deepEqual(thoughtsIn(server.requests.at(-1)!), ['seal-1', 'seal-2', 'seal-3', 'seal-4', 'seal-5']);
  });

  it('leaves out those after a result that is no longer sent, and sends later ones', async () => {
    await serve(20);
    await run(20_000);
    assert.deepEqual(refused, []);
    const last = thoughtsIn(server.requests.at(-1)!);
    assert.ok(last.includes('seal-20') && !last.includes('seal-10'), last.join(' '));
  });

  it('leaves out those after a summary, whose request has none that no longer fits either', async () => {
    await serve(60);
    const events = await run(8_000);
    assert.ok(events.some(({ type }) => type === 'compacted'));
    assert.deepEqual(refused, []);
    assert.ok(thoughtsIn(server.requests.at(-1)!).length > 0);
  });

  it('leaves out those from before a server changed its tools', async () => {
    await serve(6);
    let asked = 0;
    const other: Tool = { ...pages, definition: { ...pages.definition, name: 'other' } };
    await run(undefined, () => (server.requests.length >= 3 && ++asked ? [pages, other] : [pages]));
    assert.ok(asked > 0);
    assert.deepEqual(refused, []);
    assert.deepEqual(thoughtsIn(server.requests.at(-1)!), ['seal-4', 'seal-5', 'seal-6']);
  });

  it('asks once more without thoughts if the server refuses one all the same, and sends those no more', async () => {
    let refusals = 1;
    await serve(5, () => server.requests.length === 4 && refusals-- > 0);
    await run(undefined);
    assert.equal(refused.length, 1);
    const counts = server.requests.map(request => thoughtsIn(request).length);
    assert.deepEqual(counts, [0, 1, 2, 3, 0, 1, 2]);
  });

  it('asks only once more', async () => {
    const thought = {
      type: 'thinking' as const,
      thinking: 'let me see',
      signature: 'of another conversation',
    };
    server = await startAnthropicServer({ turns: () => refusal('messages.1.content.0') });
    const messages: Message[] = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: [thought, { type: 'text', text: 'two' }] },
      { role: 'user', content: 'three' },
    ];
    await assert.rejects(answerTo(provider(), messages), /refused the request \(400\)/);
    // The first has the thought of another conversation, the second none.
    assert.equal(server.refused.splice(0).length, 1);
    assert.deepEqual(
      server.requests.map(request => thoughtsIn(request).length),
      [0],
    );
  });

  it('brings back those from before a summary that was undone', async () => {
    await serve(4);
    const model = provider();
    const first: Message[] = [{ role: 'user', content: 'one' }];
    const one = await answerTo(model, first);
    const whole: Message[] = [...first, { role: 'assistant', content: [one, { type: 'text', text: 'two' }] }];
    const next: Message = { role: 'user', content: 'three' };
    await answerTo(model, [{ role: 'user', content: 'a summary' }, ...whole.slice(1), next]);
    await answerTo(model, [...whole, next]);
    assert.deepEqual(refused, []);
    assert.deepEqual(
      server.requests.map(request => thoughtsIn(request).length),
      [0, 0, 1],
    );
  });

  it('leaves those of a model of Anthropic out behind OpenRouter too', async () => {
    const details = [{ type: 'reasoning.text', text: 'hm', signature: 'seal', index: 0 }];
    const wire = await startOpenaiServer({
      turns: () => ({
        rawBody: Buffer.from(
          [
            { choices: [{ index: 0, delta: { reasoning_details: details, content: 'ok' } }] },
            { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
          ]
            .map(chunk => `data: ${JSON.stringify(chunk)}\n\n`)
            .join(''),
        ),
      }),
    });
    server = wire;
    const [keyVariable, baseUrlVariable] = ['OPENROUTER_API_KEY', 'OPENROUTER_BASE_URL'];
    const at = { apiKey: 'k', keyVariable, baseUrl: wire.url, baseUrlVariable, name: 'openrouter' } as const;
    const model = createOpenaiCompatible({ ...at, model: 'anthropic/claude-sonnet-5.5' });
    const start: Message[] = [{ role: 'user', content: 'one' }];
    const thought = await answerTo(model, start);
    const said: Message[] = [
      { role: 'assistant', content: [thought, { type: 'text', text: 'ok' }] },
      { role: 'user', content: 'two' },
    ];
    await answerTo(model, [...start, ...said]);
    await answerTo(model, [{ role: 'user', content: 'a summary' }, ...said]);
    assert.deepEqual(
      wire.requests.map(({ body }) => JSON.stringify(body.messages).includes('"signature":"seal"')),
      [false, true, false],
    );
  });

  /** Returns the thought of the answer. */
  async function answerTo(model: Provider, messages: Message[]) {
    const request: CompletionRequest = { system: 'S', messages, tools: [pages.definition], maxTokens: 9 };
    const events: StreamEvent[] = [];
    for await (const event of model.streamCompletion(request, new AbortController().signal))
      events.push(event);
    const found = events.find(event => event.type === 'thinking');
    assert.ok(found);
    return found.block;
  }
});
