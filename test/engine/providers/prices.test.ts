import assert from 'node:assert/strict';
import { priceOf, usageOf } from '../../../src/engine/providers/models.ts';
import prices from '../../../src/engine/providers/prices.json' with { type: 'json' };

const million = {
  inputTokens: 1_000_000,
  outputTokens: 1_000_000,
  cacheReadTokens: 1_000_000,
  cacheWriteTokens: 1_000_000,
};

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
    assert.equal(priceOf('openai', 'gpt-5.5', { ...round, inputTokens: 300_000 }), 'unknown');
    assert.notEqual(priceOf('openai', 'gpt-5.5', round), 'unknown');
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
