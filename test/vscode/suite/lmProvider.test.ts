/** Models that another extension brings, asked through the editor's own API: the fixture extension beside Telos plays them. */
import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { CompletionRequest, StreamEvent } from '../../../src/engine/core/ports.ts';
import { lmProvider, lmProviderWithMemory } from '../../../src/extension/editor/lmProvider.ts';
import type { Message } from '../../../src/protocol/run.ts';
import { activated, scriptModels, until } from './editor.ts';

interface Asked {
  model: string;
  messages: { role: number; content: unknown[] }[];
  tools: string[];
  cancelled: boolean;
}

const requests = (): Thenable<Asked[]> => vscode.commands.executeCommand('telos-lm.requests');

function request(messages: Message[], tools: string[] = []): CompletionRequest {
  return {
    system: 'Be brief.',
    messages,
    tools: tools.map(name => ({ name, description: `Does ${name}`, inputSchema: { type: 'object' } })),
    maxTokens: 100,
  };
}

async function ask(asked: CompletionRequest, signal = new AbortController().signal): Promise<StreamEvent[]> {
  const provider = await lmProvider.create('telos-lm/plain');
  const events: StreamEvent[] = [];
  for await (const event of provider.streamCompletion(asked, signal)) events.push(event);
  return events;
}

/** A PNG of one pixel. */
const redDot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';

const hello: Message[] = [{ role: 'user', content: 'Hello' }];

describe('models of the editor', () => {
  before(async () => {
    await activated();
    await scriptModels([{ id: 'mute', tools: false }, { id: 'plain' }, { id: 'eyes', images: true }], []);
  });
  after(() => scriptModels([], []));

  it('are offered by vendor and id, first one that takes tools', async () => {
    assert.equal(await lmProvider.model(), 'telos-lm/plain');
    const provider = await lmProvider.create('eyes');
    assert.deepEqual([provider.name, provider.model], ['vscode', 'telos-lm/eyes']);
    await assert.rejects(lmProvider.create('telos-lm/gone'), {
      code: 'config',
      message: /no language model 'telos-lm\/gone'.*telos-lm\/plain/,
    });
  });

  it('stream text and calls, and are told of tools; tokens are what the model counts', async () => {
    await scriptModels(undefined, [
      [
        { text: 'One ' },
        { text: 'moment.' },
        { call: { id: 'c1', name: 'read_file', input: { path: 'a' } } },
      ],
    ]);
    const events = await ask(request(hello, ['read_file', 'run_command']));
    const done = events.pop();
    assert.deepEqual(events, [
      { type: 'text', text: 'One ' },
      { type: 'text', text: 'moment.' },
      { type: 'tool_call', call: { id: 'c1', name: 'read_file', input: { path: 'a' } } },
    ]);
    assert.ok(done?.type === 'done' && done.stopReason === 'tool_use');
    assert.ok((done.usage?.inputTokens ?? 0) > 0 && (done.usage?.outputTokens ?? 0) > 0);
    assert.deepEqual((await requests())[0]?.tools, ['read_file', 'run_command']);
  });

  it('read the system text first, calls with their results, and what failed as an error', async () => {
    await scriptModels(undefined, [[{ text: 'ok' }]]);
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
    } as const;
    await ask(
      request([
        { role: 'user', content: 'Look' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 's' },
            { type: 'text', text: 'I look' },
            { type: 'tool_use', id: 'a', name: 'shot', input: { at: 1 } },
            { type: 'tool_use', id: 'b', name: 'read', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'go on' },
            {
              type: 'tool_result',
              tool_use_id: 'a',
              is_error: false,
              content: [{ type: 'text', text: 'here' }, image],
            },
            { type: 'tool_result', tool_use_id: 'b', is_error: true, content: 'no such file' },
          ],
        },
      ]),
    );
    const unseen = { text: '[An image was here; this model cannot see images.]' };
    assert.deepEqual((await requests())[0]?.messages, [
      { role: 1, content: [{ text: 'Be brief.' }, { text: 'Look' }] },
      {
        role: 2,
        content: [
          { text: 'I look' },
          { call: { id: 'a', name: 'shot', input: { at: 1 } } },
          { call: { id: 'b', name: 'read', input: {} } },
        ],
      },
      {
        role: 1,
        content: [
          { result: 'a', content: [{ text: 'here' }, unseen] },
          { result: 'b', content: [{ text: 'Error: ' }, { text: 'no such file' }] },
          { text: 'go on' },
        ],
      },
    ]);
  });

  it('see images where they can, and say so where they take no tools', async () => {
    await scriptModels(undefined, [[{ text: 'a cat' }]]);
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: redDot },
    } as const;
    const signal = new AbortController().signal;
    const looked = request([{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, image] }]);
    const eyes = await lmProvider.create('telos-lm/eyes');
    for await (const event of eyes.streamCompletion(looked, signal)) void event;
    const [system, question, seen] = (await requests())[0]?.messages[0]?.content ?? [];
    assert.deepEqual([system, question], [{ text: 'Be brief.' }, { text: 'What is it?' }]);
    // The editor may make an image smaller on its way.
    const { mime, bytes } = seen as { mime: string; bytes: number };
    assert.ok(mime.startsWith('image/') && bytes > 60, `${mime}, ${bytes} bytes`);
    const mute = await lmProvider.create('telos-lm/mute');
    await assert.rejects(async () => {
      for await (const event of mute.streamCompletion(request(hello, ['read_file']), signal)) void event;
    }, /takes no tools/);
  });

  it('end within moments of an abort, and the request is cancelled', async () => {
    await scriptModels(undefined, [[{ text: 'I begin' }, { hang: true }]]);
    const controller = new AbortController();
    const provider = await lmProvider.create('telos-lm/plain');
    const reason = new Error('stopped by the person');
    await assert.rejects(async () => {
      for await (const event of provider.streamCompletion(request(hello), controller.signal)) {
        if (event.type === 'text') controller.abort(reason);
      }
    }, reason);
    // The model hears of the cancellation.
    await until(async () => (await requests())[0]?.cancelled === true);
  });

  it('fail with a code and what to do', async () => {
    await scriptModels(undefined, [[{ error: 'the lamp is out' }], [{ error: 'quota', code: 'Blocked' }]]);
    await assert.rejects(ask(request(hello)), {
      code: 'provider',
      message: /telos-lm\/plain.*the lamp is out/,
    });
    await assert.rejects(ask(request(hello)), { code: 'rate_limit', message: /Choose Model/ });
  });

  it('say before their first use that they count against a quota, and when a long run asks', async () => {
    const memory = new Map<string, unknown>();
    const memento = {
      keys: () => [...memory.keys()],
      get: (key: string) => memory.get(key),
      update: async (key: string, value: unknown) => void memory.set(key, value),
    } as vscode.Memento;
    const provider = lmProviderWithMemory(memento);
    const first = await provider.create('telos-lm/plain');
    assert.deepEqual(first.quota, { whose: 'telos-lm in the editor', roundsBeforeAsking: 10 });
    assert.match(first.notice ?? '', /count against your quota/);
    assert.ok((await provider.create('telos-lm/plain')).notice, 'it was only looked at');
    await scriptModels(undefined, [[{ text: 'ok' }]]);
    const signal = new AbortController().signal;
    for await (const event of first.streamCompletion(request(hello), signal)) void event;
    assert.equal((await provider.create('telos-lm/plain')).notice, undefined);
  });

  it('are the choice where nothing else is set up', async () => {
    const { status } = (await activated()).exports;
    await status.update();
    await until(() => /telos-lm\/plain/.test(status.text));
  });
});
