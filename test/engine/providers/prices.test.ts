import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { usageOf } from '../../../src/engine/core/usage.ts';
import { priceOf } from '../../../src/engine/providers/models.ts';
import prices from '../../../src/engine/providers/prices.json' with { type: 'json' };

const million = {
  inputTokens: 1_000_000,
  outputTokens: 1_000_000,
  cacheReadTokens: 1_000_000,
  cacheWriteTokens: 1_000_000,
};

const none = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Models that the SDKs name and whose prices are not in the table: older ones, those for sound, and some that few people may use. */
const unknown = {
  anthropic: ['claude-fable-5-2', 'claude-mythos-5-2', 'claude-mythos-preview'],
  openai: [
    'chatgpt-4o-latest codex-mini-latest gpt-audio-mini o1 o1-mini o1-preview o3 o3-mini o4-mini',
    'gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-3.5-turbo-0301 gpt-3.5-turbo-0613 gpt-3.5-turbo-1106 gpt-3.5-turbo-16k',
    'gpt-3.5-turbo-16k-0613 gpt-4 gpt-4-0125-preview gpt-4-0314 gpt-4-0613 gpt-4-1106-preview gpt-4-32k gpt-4-32k-0314',
    'gpt-4-32k-0613 gpt-4-turbo gpt-4-turbo-preview gpt-4-vision-preview gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o',
    'gpt-4o-audio-preview gpt-4o-mini gpt-4o-mini-audio-preview gpt-4o-mini-search-preview gpt-4o-search-preview',
    'gpt-5 gpt-5-chat-latest gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.1-chat-latest gpt-5.1-codex gpt-5.1-mini gpt-5.2',
    'gpt-5.2-chat-latest gpt-5.2-pro gpt-5.3-chat-latest',
  ].flatMap(names => names.split(' ')),
};

/** Returns the model's names that a type of an SDK lists. */
function namesIn(file: string, type: string): string[] {
  const text = readFileSync(new URL(`../../../node_modules/${file}`, import.meta.url), 'utf8');
  const [, union = ''] = new RegExp(`export type ${type} = ([^;]*)`).exec(text) ?? [];
  return [...union.matchAll(/'([^']+)'/g)].map(([, name]) => name ?? '');
}

const undated = (name: string): string => name.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '');

describe('prices', () => {
  it('counts each kind of token at its own price', () => {
    assert.equal(priceOf('anthropic', 'claude-haiku-4-5', million), 1 + 5 + 0.1 + 1.25);
    assert.equal(priceOf('anthropic', 'claude-haiku-4-5', { ...million, outputTokens: 0 }), 1 + 0.1 + 1.25);
  });

  it('knows a model by its dated name', () => {
    assert.equal(
      priceOf('anthropic', 'claude-haiku-4-5-20251001', million),
      priceOf('anthropic', 'claude-haiku-4-5', million),
    );
  });

  it('says unknown, never nothing, for what is not in the table', () => {
    assert.equal(priceOf('anthropic', 'claude-of-next-year', million), 'unknown');
    assert.equal(priceOf('openrouter', 'claude-haiku-4-5', million), 'unknown');
    assert.equal(priceOf('replay', 'claude-haiku-4-5', million), 'unknown');
  });

  it('charges nothing for a model on the own machine, and does not guess for one in its cloud', () => {
    assert.equal(priceOf('ollama', 'llama3.1', million), 0);
    assert.equal(priceOf('ollama', 'gpt-oss:120b-cloud', million), 'unknown');
  });

  it('charges a long prompt as such, and does not guess where that price is not known', () => {
    const round = {
      inputTokens: 60_000,
      outputTokens: 1_000,
      cacheReadTokens: 30_000,
      cacheWriteTokens: 10_000,
    };
    const cents = (tokens: typeof round) => Number(priceOf('anthropic', 'claude-haiku-5-5', tokens)) * 100;
    assert.equal(cents(round).toFixed(4), '0.8050');
    assert.equal(cents({ ...round, cacheReadTokens: 30_001 }).toFixed(4), '4.0250');
    assert.equal(priceOf('openai', 'gpt-5.4-mini', { ...round, inputTokens: 300_000 }), 'unknown');
    assert.notEqual(priceOf('openai', 'gpt-5.4-mini', round), 'unknown');
  });

  it('charges twice for what GPT reads in a prompt of more than 272,000 tokens, and half more for what it writes', () => {
    const round = {
      inputTokens: 172_000,
      outputTokens: 1_000,
      cacheReadTokens: 90_000,
      cacheWriteTokens: 10_000,
    };
    const cents = (tokens: typeof round) => Number(priceOf('openai', 'gpt-6.2-sol', tokens)) * 100;
    assert.equal(cents(round).toFixed(4), '38.8000');
    assert.equal(cents({ ...round, inputTokens: 172_001 }).toFixed(4), '77.1004');
  });

  it('counts what was read from a cache as input where only the price of input is known', () => {
    assert.equal(priceOf('gemini', 'gemini-3.6-flash', { ...none, cacheReadTokens: 1_000_000 }), 1.5);
  });

  it('are there for each model that the installed SDKs name, or the model is here as one of unknown price', () => {
    for (const [provider, file, type] of [
      ['anthropic', '@anthropic-ai/sdk/resources/messages/messages.d.ts', 'Model'],
      ['openai', 'openai/resources/shared.d.ts', 'ChatModel'],
    ] as const) {
      const names = namesIn(file, type);
      assert.ok(names.length > 10, `${type} of ${provider} is read`);
      const one = { ...none, inputTokens: 1 };
      const isPriced = (name: string) => priceOf(provider, name, one) !== 'unknown';
      const without = new Set(names.filter(name => !isPriced(name)).map(undated));
      assert.deepEqual([...without].sort(), [...unknown[provider]].sort(), provider);
    }
  });

  it('knows prices of Gemini, also those that are announced, and none for a name that means whatever is the latest', () => {
    const cents = (tokens: typeof million, now?: Date) =>
      Number(priceOf('gemini', 'gemini-3.8-flash', { ...tokens, cacheWriteTokens: 0 }, now));
    assert.equal(cents(million, new Date('2026-12-31T12:00:00Z')), 0.75 + 3.75 + 0.075);
    assert.equal(cents(million, new Date('2027-01-01T12:00:00Z')), 1.5 + 7.5 + 0.15);
    const short = { inputTokens: 200_000, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
    assert.equal(priceOf('gemini', 'gemini-2.5-pro', short), 0.25);
    assert.equal(priceOf('gemini', 'gemini-2.5-pro', { ...short, inputTokens: 200_001 }), 200_001 * 2.5e-6);
    assert.equal(priceOf('gemini', 'gemini-flash-latest', million), 'unknown');
    assert.equal(priceOf('gemini', 'models/gemini-2.5-pro', short), 'unknown');
  });

  it('believes a provider that says what it has charged, and guesses nothing for a gateway that does not', () => {
    assert.equal(
      priceOf('openrouter', 'anthropic/claude-haiku-4.5', { ...million, charged: 0.0123 }),
      0.0123,
    );
    assert.equal(priceOf('openrouter', 'some/model:free', { ...million, charged: 0 }), 0);
    assert.equal(priceOf('openrouter', 'anthropic/claude-haiku-4.5', million), 'unknown');
    assert.deepEqual(usageOf({ ...million, charged: 0.0123 }, 0.0123), { ...million, cost: 0.0123 });
  });

  it('is not fooled by names that every object has', () => {
    assert.equal(priceOf('anthropic', 'constructor', million), 'unknown');
    assert.equal(priceOf('toString', 'constructor', million), 'unknown');
  });

  it('says from when each list is', () => {
    for (const { date } of Object.values(prices.providers)) assert.match(date, /^\d{4}-\d{2}-\d{2}$/);
  });
});
