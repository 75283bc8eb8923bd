/** What a server asks of the run's model: only what a person can look through, and counted like every other question. */
import assert from 'node:assert/strict';
import { defaultMaxTokens } from '../../../src/engine/core/limits.ts';
import type { Budget } from '../../../src/engine/core/ports.ts';
import {
  type ModelParts,
  readSampling,
  type Sampled,
  samplerOf,
  samplingText,
} from '../../../src/engine/run/sampling.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { sentence } from '../../../src/protocol/text.ts';
import { done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';

const text = (words: string) => ({ type: 'text', text: words });
const asks = (content: unknown = text('Which day?')) => ({ role: 'user', content });
const answers = { role: 'assistant', content: text('Monday.') };

describe('what a server asks of the model', () => {
  it('is read as it will be sent', () => {
    const read = readSampling({
      systemPrompt: 'Be brief.',
      maxTokens: 7.9,
      messages: [asks([text('One'), text('two')]), answers, asks()],
    });
    assert.ok(typeof read !== 'string');
    assert.deepEqual(read, {
      system: 'Be brief.',
      maxTokens: 7,
      messages: [
        { role: 'user', content: 'One\ntwo' },
        { role: 'assistant', content: 'Monday.' },
        { role: 'user', content: 'Which day?' },
      ],
    });
    assert.equal(
      samplingText(read),
      '[system]\nBe brief.\n\n[user]\nOne\ntwo\n\n[assistant]\nMonday.\n\n[user]\nWhich day?',
    );
    assert.equal(
      samplingText({ ...read, system: '', messages: read.messages.slice(2) }),
      '[user]\nWhich day?',
    );
  });

  it('is answered in no more than usual, however much it wants', () => {
    const most = (maxTokens: unknown) => {
      const read = readSampling({ messages: [asks()], maxTokens });
      return typeof read === 'string' ? read : read.maxTokens;
    };
    assert.deepEqual([1, 0, -1, '5', undefined, 1e9].map(most), [
      1,
      ...Array.from({ length: 5 }, () => defaultMaxTokens),
    ]);
  });

  it('is not asked for tools, by no one, with pictures, without a question, or at length', () => {
    const many = (count: number) => Array.from({ length: count }, () => asks(text('?')));
    const refused: readonly [unknown, RegExp][] = [
      [{ messages: [asks()], tools: [] }, /tools/],
      [{ messages: [asks()], toolChoice: {} }, /tools/],
      [{ messages: [] }, /no messages/],
      [{ messages: 'x' }, /no messages/],
      [{ messages: many(21) }, /too many/],
      [null, /no messages/],
      [{ messages: [asks(), { role: 'system', content: text('x') }, asks()] }, /of no one/],
      [{ messages: [asks([text('x'), { type: 'image', data: 'AAAA' }])] }, /only text/],
      [{ messages: [asks({ type: 'text', text: 7 })] }, /only text/],
      [{ messages: [asks({ type: 'audio', text: 'x' })] }, /only text/],
      [{ messages: [answers, asks()] }, /begin and end/],
      [{ messages: [asks(), answers] }, /begin and end/],
      [{ messages: [asks(text('x'.repeat(8_001)))] }, /too long/],
      [{ messages: [asks(text('x'.repeat(8_000)))], systemPrompt: 'y' }, /too long/],
    ];
    for (const [params, why] of refused) assert.match(String(readSampling(params)), why);
    assert.equal(typeof readSampling({ messages: many(20) }), 'object');
    assert.equal(typeof readSampling({ messages: [asks(text('x'.repeat(8_000)))] }), 'object');
  });

  const wanted = { system: '', messages: [{ role: 'user' as const, content: '?' }], maxTokens: 100 };
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  async function asked(more: Partial<ModelParts> = {}): Promise<{ events: RunEvent[]; sampled: Sampled }> {
    const turn = [says('The key is '), says('sesame.'), { ...done('max_tokens'), usage }];
    const parts = { provider: scriptedProvider([turn]), counts: { rounds: 3 }, priceOf: () => 0.5, ...more };
    const sampler = samplerOf(parts);
    assert.ok(sampler);
    const asking = sampler.ask(wanted, new AbortController().signal);
    const events: RunEvent[] = [];
    for (;;) {
      const step = await asking.next();
      if (step.done) return { events, sampled: step.value };
      events.push(step.value);
    }
  }

  it('is answered without secrets, and counted in the round of the run', async () => {
    const { events, sampled } = await asked({ redact: words => words.replace('sesame', '[redacted]') });
    assert.deepEqual(sampled, { text: 'The key is [redacted].', model: 'script', stopReason: 'maxTokens' });
    assert.deepEqual(events, [{ type: 'usage', round: 3, usage: { ...usage, cost: 0.5 } }]);
  });

  it('is held by the budget, which warns before and after', async () => {
    const added: unknown[] = [];
    const budget = {
      check: async () => [sentence('Nearly used up.')],
      add: (used: unknown) => {
        added.push(used);
        return [sentence('Used up.')];
      },
    } as Partial<Budget> as Budget;
    const { events } = await asked({ budget });
    assert.deepEqual(
      events.map(event => (event.type === 'notice' ? event.message : event.type)),
      ['Nearly used up.', 'usage', 'Used up.'],
    );
    assert.deepEqual(added, [{ ...usage, cost: 0.5 }]);
    const empty = { ...budget, check: async () => Promise.reject(new Error('over')) } as Budget;
    await assert.rejects(asked({ budget: empty }), /over/);
  });

  it('is answered by no one without a model, and not by a recording', () => {
    const provider = scriptedProvider([[done()]]);
    const parts = { provider, counts: { rounds: 1 }, priceOf: () => 0 };
    assert.notEqual(samplerOf(parts), undefined);
    for (const name of ['provider', 'counts', 'priceOf'])
      assert.equal(samplerOf({ ...parts, [name]: undefined }), undefined, name);
    const recording = { ...provider, recording: { path: 'x' } } as unknown as ModelParts['provider'];
    assert.equal(samplerOf({ ...parts, provider: recording }), undefined);
  });
});
