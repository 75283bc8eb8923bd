import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { createAnthropic } from '../../../src/engine/providers/anthropic.ts';
import { standardLimits } from '../../../src/engine/providers/failures.ts';
import { createGemini } from '../../../src/engine/providers/gemini.ts';
import { createOpenaiCompatible } from '../../../src/engine/providers/openai.ts';
import { createOpenaiResponses } from '../../../src/engine/providers/openaiResponses.ts';
import { EventStreamDecoder } from '../../../src/engine/providers/turn.ts';
import { joined } from '../../fakes/joined.ts';
import { assertGrowsWithSize } from '../../growth.ts';

/** What the next request is answered with; each piece is one read of its own, so that no socket joins them again. */
let pieces: readonly Uint8Array[] = [];

async function answer(): Promise<Response> {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece);
      controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

const limits = { ...standardLimits, tries: 1 };
const dialects: Record<string, () => Provider> = {
  anthropic: () => createAnthropic({ apiKey: 'k', model: 'M', baseUrl: 'http://127.0.0.1:9', limits }),
  openai: () =>
    createOpenaiCompatible({
      name: 'openai',
      apiKey: 'k',
      keyVariable: 'OPENAI_API_KEY',
      model: 'M',
      baseUrl: 'http://127.0.0.1:9/v1',
      baseUrlVariable: 'OPENAI_BASE_URL',
      limits,
    }),
  responses: () =>
    createOpenaiResponses({ apiKey: 'k', model: 'gpt-5.4', baseUrl: 'http://127.0.0.1:9/v1', limits }),
  gemini: () =>
    createGemini({ apiKey: 'k', model: 'gemini-3.8-flash', baseUrl: 'http://127.0.0.1:9/v1beta', limits }),
};

/** Where each dialect says that an answer is whole. */
const ends: Record<string, string> = {
  anthropic: 'event: message_stop',
  openai: '"finish_reason":"tool_calls"',
  responses: 'event: response.completed',
  gemini: '"finishReason":"STOP"',
};

describe('an event stream', () => {
  it('is read with any line ends, with comments, with data in several lines and without a name', () => {
    const stream =
      '\uFEFFevent: a\r\ndata: 1\r\n\r\n: comment\n\ndata:2\ndata:  3\n\nid: 7\n\nevent: b\ndata:\n\ndata: 4\n\ndata: cut';
    assert.deepEqual(new EventStreamDecoder().push(Buffer.from(stream)), [
      { name: 'a', data: '1' },
      { name: '', data: '2\n 3' },
      { name: '', data: '4' },
    ]);
  });
});

describe('a stream without an end', () => {
  it('is read in time that grows with its length, also as one line or as one event, and up to a limit', () => {
    const piece = Buffer.alloc(8_192, 'x');
    const lines = Buffer.from('data: x\n'.repeat(1_024));
    for (const bytes of [piece, lines])
      assertGrowsWithSize(1_600, size => {
        const decoder = new EventStreamDecoder();
        for (let count = 0; count < size; count++) assert.equal(decoder.push(bytes).length, 0);
      });
    const decoder = new EventStreamDecoder(1024 * 1024);
    assert.throws(() => {
      for (let count = 0; count < 1_000; count++) decoder.push(piece);
    }, /more than 1 MB/);
  });
});

describe('an answer in bytes', () => {
  const realFetch = globalThis.fetch;
  beforeEach(() => {
    globalThis.fetch = answer;
  });
  afterEach(() => {
    globalThis.fetch = realFetch;
  });

  async function readPieces(provider: Provider, ...next: readonly Uint8Array[]): Promise<StreamEvent[]> {
    pieces = next;
    const request = { system: 'S', messages: [], tools: [], maxTokens: 10 };
    const events: StreamEvent[] = [];
    for await (const event of provider.streamCompletion(request, new AbortController().signal)) {
      events.push(event);
    }
    return events;
  }

  it('counts no tokens below zero, and none that are no numbers', async () => {
    const details = { cached_tokens: -9, cache_write_tokens: null };
    const usage = {
      prompt_tokens: -5,
      completion_tokens: 3,
      total_tokens: '7',
      prompt_tokens_details: details,
    };
    const answered = { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }], usage };
    const bytes = Buffer.from(`data: ${JSON.stringify(answered)}\n\ndata: [DONE]\n\n`);
    const end = (await readPieces(dialects['openai']!(), bytes)).at(-1);
    const counted = { inputTokens: 0, outputTokens: 3, cacheReadTokens: 0, cacheWriteTokens: 0 };
    assert.deepEqual(end?.type === 'done' && end.usage, counted);
  });

  for (const [dialect, create] of Object.entries(dialects)) {
    const bytes = readFileSync(new URL(`../../fixtures/wire/${dialect}.sse`, import.meta.url));

    it(`of ${dialect} says the same wherever it is split`, async () => {
      const provider = create();
      const whole = joined(await readPieces(provider, bytes));
      const text = whole.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('');
      assert.equal(text, 'Grüße 👋🏽 – los:\n');
      const calls = whole.flatMap(event => (event.type === 'tool_call' ? [event.call] : []));
      assert.deepEqual(
        calls.map(({ name, input, problem }) => [name, input, problem]),
        [
          ['read_file', { path: 'notizen/März €.md' }, undefined],
          ['list_directory', {}, undefined],
        ],
      );
      assert.equal(whole.at(-1)?.type, 'done');
      for (let at = 1; at < bytes.length; at += 1) {
        const events = await readPieces(provider, bytes.subarray(0, at), bytes.subarray(at));
        assert.deepEqual(joined(events), whole, `split at byte ${at}`);
      }
      const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
      assert.deepEqual(joined(await readPieces(provider, ...single)), whole);
    });

    it(`of ${dialect} that is a refusal without an end is read to its beginning`, async () => {
      let given = 0;
      globalThis.fetch = async () => {
        const piece = Buffer.alloc(65_536, 'no ');
        const body = new ReadableStream({
          pull(controller) {
            if (++given > 1_000) controller.close();
            else controller.enqueue(piece);
          },
        });
        return new Response(body, { status: 400 });
      };
      await assert.rejects(readPieces(create()), { code: 'provider' });
      assert.ok(given < 10, `${given} pieces`);
    });

    it(`of ${dialect} that ends too early is never taken for a whole one`, async () => {
      const provider = create();
      const last = bytes.indexOf(ends[dialect] ?? '');
      assert.ok(last > 0);
      for (let at = 0; at <= last; at += 7) {
        await assert.rejects(
          readPieces(provider, bytes.subarray(0, at)),
          { code: 'provider' },
          `cut at byte ${at}`,
        );
      }
    });
  }
});
