/** The table of prices is made from a list of models.dev, which a server on this machine stands in for. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen, sendJson } from '../../fakes/loopback.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';
import { generatePrices, type PriceTable } from '../../samples/generatePrices.ts';

const model = (cost: object, more: object = {}) => ({
  tool_call: true,
  modalities: { input: ['text'], output: ['text'] },
  release_date: '2026-01-01',
  cost,
  ...more,
});
const plain = { input: 1, output: 5 };

describe('the table of prices', () => {
  const temp = tempFolder();
  let list: Record<string, { models: Record<string, unknown> }>;
  let server: Awaited<ReturnType<typeof listen>>;
  before(async () => {
    server = await listen(async (_, response) => sendJson(response, 200, list));
  });
  beforeEach(() => {
    const row = { input: 9, output: 9, cacheWrite: 0 };
    const later = { from: '2027-06-01', input: 2, output: 4 };
    const table: PriceTable = {
      unit: 'US dollars for a million tokens',
      providers: {
        anthropic: { date: '2026-01-01', models: { 'claude-a-1': row, 'claude-gone': row } },
        openai: { date: '2026-01-01', models: { 'gpt-1': { ...row, later } } },
        gemini: { date: '2026-01-01', models: {} },
      },
    };
    temp.add({ 'prices.json': JSON.stringify(table) });
    list = {
      anthropic: { models: { 'claude-a-1': model(plain) } },
      openai: { models: { 'gpt-1': model(plain) } },
      google: { models: { 'gemini-1': model(plain) } },
    };
  });
  after(async () => {
    temp.remove();
    await server.close();
  });

  const file = () => join(temp.path, 'prices.json');
  async function made(today = '2027-01-01'): Promise<PriceTable['providers']> {
    await generatePrices(server.address, file(), today);
    return (JSON.parse(readFileSync(file(), 'utf8')) as PriceTable).providers;
  }

  it('has the prices of the list with its day, the newest model first, and what the list does not have as it was', async () => {
    const cost = { ...plain, cache_read: 0.1, cache_write: 1.25 };
    list['anthropic']!.models['claude-a-2'] = model(cost, { release_date: '2026-12-01' });
    const { anthropic, openai } = await made();
    assert.deepEqual(anthropic, {
      date: '2027-01-01',
      models: {
        'claude-a-2': { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
        'claude-a-1': plain,
        'claude-gone': { input: 9, output: 9, cacheWrite: 0 },
      },
    });
    assert.deepEqual(Object.keys(anthropic?.models ?? {}), ['claude-a-2', 'claude-a-1', 'claude-gone']);
    assert.equal(openai?.models['gpt-1']?.later?.input, 2, 'an announced price stays');
    assert.equal((await made('2027-06-01'))['openai']?.models['gpt-1']?.later, undefined, 'until its day');
  });

  it('has the price of long prompts, in both forms of the list, and the dearest of several steps', async () => {
    const step = (size: number, input: number) => ({ input, output: 6, tier: { type: 'context', size } });
    const models = list['openai']!.models;
    models['gpt-1'] = model({
      ...plain,
      tiers: [step(272_000, 2)],
      context_over_200k: { input: 3, output: 3 },
    });
    models['gpt-2'] = model({ ...plain, tiers: [step(500_000, 4), step(100_000, 2)] });
    models['gpt-3'] = model({ ...plain, context_over_200k: { input: 2, output: 7.5, cache_read: 0.2 } });
    const { openai } = await made();
    const long = (id: string) => openai?.models[id]?.longPrompt;
    assert.deepEqual(long('gpt-1'), { over: 272_000, input: 2, output: 6 });
    assert.deepEqual(long('gpt-2'), { over: 100_000, input: 4, output: 6 });
    assert.deepEqual(long('gpt-3'), { over: 200_000, input: 2, output: 7.5, cacheRead: 0.2 });
  });

  it('leaves out what no run can use, and names with a date', async () => {
    Object.assign(list['google']!.models, {
      'gemini-1-image': model(plain, { modalities: { output: ['image'] } }),
      'gemini-0': model(plain, { status: 'deprecated' }),
      'gemini-embed': model(plain, { tool_call: false }),
      'gemini-1-2026-01-01': model(plain),
      'gemini-flash-latest': model(plain),
      'gemini-free': { ...model(plain), cost: undefined },
    });
    assert.deepEqual(Object.keys((await made())['gemini']?.models ?? {}), ['gemini-1']);
  });

  it('stays as it was, and says why, where the list is none or has a price that cannot be one', async () => {
    const before = readFileSync(file(), 'utf8');
    const whole = list;
    for (const [bad, why] of [
      [{}, /no models of anthropic/],
      [{ ...whole, google: { models: {} } }, /no models of google/],
      [{ ...whole, openai: { models: { 'gpt-1': model({ input: '1', output: 5 }) } } }, /price of gpt-1/],
      [{ ...whole, openai: { models: { 'gpt-1': model({ input: -1, output: 5 }) } } }, /price of gpt-1/],
      [{ ...whole, openai: { models: { 'gpt-1': model({ output: 5 }) } } }, /price of gpt-1/],
      [
        { ...whole, openai: { models: { 'gpt-1': model({ ...plain, tiers: [plain] }) } } },
        /gpt-1 has a step/,
      ],
    ] as const) {
      list = bad as typeof list;
      await assert.rejects(made(), why);
      assert.equal(readFileSync(file(), 'utf8'), before);
    }
  });
});
