import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { loadConfig } from '../../../src/engine/config.ts';
import { usageOf } from '../../../src/engine/core/usage.ts';
import { costOf, hasPrice, oldPrices, ownPrices, priceOf } from '../../../src/engine/providers/models.ts';
import prices from '../../../src/engine/providers/prices.json' with { type: 'json' };
import { spoken } from '../../../src/protocol/text.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

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

  it('charges a long prompt as such, and a model that has one price for all by that', () => {
    const round = {
      inputTokens: 60_000,
      outputTokens: 1_000,
      cacheReadTokens: 30_000,
      cacheWriteTokens: 10_000,
    };
    const cents = (tokens: typeof round) => Number(priceOf('anthropic', 'claude-haiku-5-5', tokens)) * 100;
    assert.equal(cents(round).toFixed(4), '0.8050');
    assert.equal(cents({ ...round, cacheReadTokens: 30_001 }).toFixed(4), '4.0250');
    const long = { ...none, inputTokens: 272_000 };
    assert.equal(Number(priceOf('openai', 'gpt-5.4-mini', long)).toFixed(4), '0.2040');
    assert.equal(Number(priceOf('openai', 'gpt-5.4-nano', long)).toFixed(4), '0.0544');
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

  describe('of the user', () => {
    const temp = tempFolder();
    after(() => temp.remove());

    function own(toml: string, setting: Record<string, unknown> = {}) {
      temp.add({ 'config.toml': toml });
      const env = { TELOS_CONFIG_DIR: temp.path };
      const config = loadConfig({ env, home: temp.path, cwd: temp.path, prices: setting });
      return (name: string, model: string) => ownPrices(config)({ name, model });
    }
    const one = { ...million, outputTokens: 0, cacheWriteTokens: 0 };

    it('count in place of those that are known, and for models that are not', () => {
      const price = own(
        '[prices]\nown = { input = 3, output = 9 }\n"claude-haiku-4-5" = { input = 2, output = 4, cache_read = 0.5, cache_write = 7 }\n',
      );
      const cost = (name: string, model: string, tokens = one) =>
        costOf({ name, model, ...price(name, model) }, tokens);
      assert.equal(cost('openai', 'own'), 6, 'what is read from a cache costs as input');
      assert.equal(cost('anthropic', 'claude-haiku-4-5', million), 13.5);
      assert.equal(cost('anthropic', 'claude-haiku-5-5'), priceOf('anthropic', 'claude-haiku-5-5', one));
      assert.equal(
        costOf({ name: 'openai', model: 'own', ...price('openai', 'own') }, { ...one, charged: 1 }),
        1,
      );
      assert.ok(hasPrice({ name: 'openai', model: 'own', ...price('openai', 'own') }));
      assert.ok(!hasPrice({ name: 'openai', model: 'other', ...price('openai', 'other') }));
    });

    it('are those of the provider that is named with the model, and of the setting before the file', () => {
      const price = own('[prices]\n"openai:m" = { input = 1, output = 1 }\nm = { input = 2, output = 2 }\n', {
        both: { input: 5, output: 5 },
      });
      assert.equal(price('openai', 'm').price?.input, 1);
      assert.equal(price('ollama', 'm').price?.input, 2);
      assert.equal(price('ollama', 'both').price?.input, 5);
      assert.deepEqual(price('ollama', 'constructor'), {});
    });

    it('are named where they cannot be read, and do not count', () => {
      for (const bad of ['7', '{ input = 1 }', '{ input = 1, output = -2 }', '{ input = "1", output = 2 }'])
        assert.match(
          spoken(own(`[prices]\nm = ${bad}\n`)('openai', 'm').problem ?? []),
          /^The price of m in .*config\.toml cannot be read, so it does not count\. Write input and output, /,
        );
      const typo = own('', { m: { input: 1, output: 2, cacheRead: 1 } })('openai', 'm');
      assert.match(spoken(typo.problem ?? []), /^The price of m in the setting telos\.prices cannot be read/);
      assert.equal(typo.price, undefined);
      const broken = own('[prices]\nm = { input = \n')('openai', 'm');
      assert.match(
        spoken(broken.problem ?? []),
        /config\.toml cannot be read, so the prices in it do not count\. Correct line \d/,
      );
      assert.deepEqual(own('')('openai', 'm'), {});
      assert.deepEqual(own('prices = 3')('openai', 'm'), {});
    });
  });

  it('are said to be old after a year, with what to do', () => {
    assert.equal(oldPrices(new Date('2027-11-01')), undefined);
    assert.match(
      spoken(oldPrices(new Date('2027-12-15')) ?? []),
      /^The prices that Telos knows are of 2026-11-28, more than a year ago\. Update Telos, /,
    );
  });

  it('says from when each list is', () => {
    for (const { date } of Object.values(prices.providers)) assert.match(date, /^\d{4}-\d{2}-\d{2}$/);
  });
});
