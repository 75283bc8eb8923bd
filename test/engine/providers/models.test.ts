import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Config, loadConfig } from '../../../src/engine/config.ts';
import { effortLevels } from '../../../src/engine/core/limits.ts';
import type { CompletionRequest } from '../../../src/engine/core/ports.ts';
import { windowOf } from '../../../src/engine/providers/contextWindow.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import { listModels, type ProviderModels } from '../../../src/engine/providers/modelList.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('the models to choose from', () => {
  const servers: Server[] = [];
  let temp = tempFolder();
  beforeEach(() => {
    temp = tempFolder();
  });
  afterEach(() => {
    temp.remove();
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** Answers every request with `body`; returns its base URL and the requests as they come. */
  async function serve(body: string, status = 200): Promise<{ url: string; asked: string[] }> {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(
        `${request.url} ${request.headers.authorization ?? request.headers['x-api-key'] ?? 'no key'}`,
      );
      response.writeHead(status).end(body);
    });
    servers.push(server);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
  }

  const config = (env: Record<string, string>): Config =>
    loadConfig({
      env: { OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', ...env },
      home: temp.path,
      cwd: temp.path,
    });

  const find = (all: readonly ProviderModels[], name: string): ProviderModels | undefined =>
    all.find(provider => provider.name === name);

  it('are those with known prices where a key is set and nobody answers', async () => {
    const all = await listModels(config({ ANTHROPIC_API_KEY: 'k' }));
    assert.deepEqual(
      all.map(({ name, ready }) => [name, ready]),
      [
        ['anthropic', true],
        ['openai', false],
        ['gemini', false],
        ['openrouter', false],
        ['azure', false],
        ['bedrock', false],
        ['vertex', false],
        ['ollama', false],
      ],
    );
    assert.ok(find(all, 'anthropic')?.models.includes('claude-haiku-4-5'));
    assert.deepEqual(find(all, 'ollama')?.models, []);
  });

  it('are what an Ollama, or a server like OpenAI, says it has', async () => {
    const ollama = await serve('{"data":[{"id":"llama3.1"},{"id":7},{"id":"qwen3"}]}');
    const local = await serve('{"data":[{"id":"own"}]}');
    const all = await listModels(
      config({ OLLAMA_BASE_URL: ollama.url, OPENAI_BASE_URL: local.url, OPENAI_API_KEY: 'secret' }),
    );
    assert.deepEqual(find(all, 'ollama')?.models, ['llama3.1', 'qwen3']);
    assert.deepEqual(find(all, 'openai')?.models, ['own']);
    assert.deepEqual(ollama.asked, ['/v1/models no key']);
    assert.deepEqual(local.asked, ['/v1/models Bearer secret']);
  });

  it('are none where a server answers otherwise', async () => {
    for (const [body, status] of [
      ['{"data":[{"id":"a"}]}', 500],
      ['<html>', 200],
      ['null', 200],
    ] as const) {
      const { url } = await serve(body, status);
      const ollama = find(await listModels(config({ OLLAMA_BASE_URL: url })), 'ollama');
      assert.deepEqual(ollama, { name: 'ollama', ready: false, models: [], facts: [] }, body);
    }
  });

  it('have what the provider says of them, and what is known besides, the newest first', async () => {
    const support = { supported: true };
    const list = [
      {
        id: 'claude-sonnet-4-5-20250929',
        created_at: '2025-09-29T00:00:00Z',
        max_input_tokens: 200_000,
        retires_at: '2026-11-30T00:00:00Z',
        lifecycle: 'deprecated',
        capabilities: { effort: { supported: false, low: null } },
      },
      {
        id: 'claude-new-9',
        created_at: '2027-09-29T00:00:00Z',
        max_input_tokens: 3_000_000,
        retires_at: null,
        lifecycle: 'active',
        capabilities: { effort: { ...support, low: support, high: support, xhigh: { supported: false } } },
      },
      { id: 'claude-haiku-5-5', created_at: 'never', max_input_tokens: -7 },
      { id: 'claude-gone', lifecycle: 'retired' },
      null,
    ];
    const { url, asked } = await serve(JSON.stringify({ data: list }));
    const set = config({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: url.replace('/v1', '') });
    const facts = find(await listModels(set), 'anthropic')?.facts;
    assert.deepEqual(
      facts?.map(({ id, window, price, efforts, retires }) => [
        id,
        window,
        price?.input,
        efforts.join(),
        retires,
      ]),
      [
        ['claude-new-9', 3_000_000, undefined, 'low,high', undefined],
        ['claude-sonnet-4-5-20250929', 200_000, 3, '', '2026-11-30'],
        ['claude-haiku-5-5', 1_000_000, 0.1, effortLevels.join(), undefined],
      ],
    );
    assert.deepEqual(asked, ['/v1/models?limit=1000 k']);
  });

  it('are asked for once a day, at one address, and stay while nobody answers', async () => {
    const first = await serve('{"data":[{"id":"claude-a"}]}');
    const at = (url: string) =>
      config({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: url.replace('/v1', '') });
    const names = async (url: string, isFresh = false) =>
      find(await listModels(at(url), isFresh), 'anthropic')?.models;
    assert.deepEqual(await names(first.url), ['claude-a']);
    assert.deepEqual(await names(first.url), ['claude-a']);
    assert.equal(first.asked.length, 1);
    assert.deepEqual(await names(first.url, true), ['claude-a']);
    assert.equal(first.asked.length, 2);
    const other = await serve('{"data":[{"id":"claude-b"}]}');
    assert.deepEqual(await names(other.url), ['claude-b']);
    const file = join(temp.path, '.local/share/telos/models/anthropic.json');
    const kept = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...kept, at: kept.at - 86_400_001 }));
    for (const server of servers.splice(0)) server.close().closeAllConnections();
    assert.deepEqual(await names(other.url), ['claude-b']);
    writeFileSync(file, '{"models":[null]}');
    assert.ok((await names(other.url))?.includes('claude-haiku-4-5'));
  });

  describe('once they are listed', () => {
    const sent: { path: string; body: Record<string, unknown> }[] = [];
    let list: readonly object[] = [];

    /** Lists `list`, then answers a request for `model`; returns the body of that request and what the provider says of the model. */
    async function asked(model: string, part: Partial<CompletionRequest>, env: Record<string, string> = {}) {
      const server = createServer(async (request, response) => {
        let text = '';
        for await (const piece of request) text += piece;
        if (request.method === 'GET') return response.end(JSON.stringify({ data: list }));
        sent.push({ path: request.url ?? '', body: JSON.parse(text) });
        response.writeHead(400).end('{"error":{"message":"enough"}}');
      });
      servers.push(server);
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const set = config({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: url, ...env, TELOS_MODEL: model });
      await listModels(set, true);
      const provider = await createProvider(set, await chooseProvider(set));
      const request = {
        system: '',
        messages: [{ role: 'user', content: 'hi' } as const],
        tools: [],
        ...part,
      };
      const { signal } = new AbortController();
      await assert.rejects(async () => {
        for await (const _ of provider.streamCompletion({ maxTokens: 16_384, ...request }, signal));
      });
      return { provider, body: sent.at(-1)!.body };
    }

    const yes = { supported: true };
    const no = { supported: false };

    it('are asked for no longer answer, and no other effort, than the provider says they have', async () => {
      const effort = { ...yes, low: yes, medium: yes, high: yes, xhigh: no, max: no };
      const capabilities = { effort, image_input: yes, pdf_input: no };
      list = [
        { id: 'claude-short-7-20270101', max_tokens: 20_000, max_input_tokens: 2_000_000, capabilities },
        { id: 'claude-odd-7', max_tokens: 3, capabilities: { effort: { ...yes, low: no, high: yes } } },
      ];
      for (const name of ['claude-short-7-20270101', 'claude-short-7']) {
        const { provider, body } = await asked(name, { effort: 'max' });
        assert.deepEqual(body['output_config'], { effort: 'high' }, name);
        assert.ok(Number(body['max_tokens']) <= 20_000, 'with what it thinks');
        assert.equal(windowOf({ contextWindow: undefined }, provider), 2_000_000);
        assert.deepEqual(await provider.media?.(new AbortController().signal), ['image']);
      }
      list = [...list, { id: 'claude-opus-4-1', max_tokens: 32_000 }];
      const { body: budget } = await asked('claude-opus-4-1', { effort: 'max' });
      assert.deepEqual(budget['thinking'], { type: 'enabled', budget_tokens: 27_904 });
      assert.equal(budget['max_tokens'], 32_000);
      const { body } = await asked('claude-odd-7', { effort: 'low' });
      assert.deepEqual(body['output_config'], { effort: 'high' });
      assert.equal(body['max_tokens'], 32_768, 'nonsense counts for nothing');
    });

    it('think as little as they can where the provider says that they always think', async () => {
      const effort = { ...yes, low: yes, high: yes };
      const types = { disabled: no, between_tools: no };
      list = [
        { id: 'claude-deep-7', capabilities: { effort, thinking: { ...yes, types } } },
        { id: 'claude-calm-7', capabilities: { effort, thinking: { ...yes, types: { disabled: yes } } } },
      ];
      const deep = await asked('claude-deep-7', { effort: 'off' });
      assert.deepEqual(deep.body['output_config'], { effort: 'low' });
      assert.notDeepEqual(deep.body['thinking'], { type: 'disabled' });
      const calm = await asked('claude-calm-7', { effort: 'off' });
      assert.deepEqual(calm.body['thinking'], { type: 'disabled' });
      for (const [id, kind] of [
        ['claude-haiku-7', 'between_tools'],
        ['claude-sonnet-7', 'disabled'],
      ] as const) {
        list = [{ id, capabilities: { effort, thinking: { ...yes, types: { ...types, [kind]: yes } } } }];
        assert.deepEqual((await asked(id, { effort: 'off' })).body['thinking'], { type: kind }, id);
      }
    });

    it('are as known where nothing is listed of them', async () => {
      list = [{ id: 'claude-other' }];
      const { provider, body } = await asked('claude-haiku-5-5', { effort: 'max' });
      assert.deepEqual(body['output_config'], { effort: 'max' });
      assert.equal(provider.contextWindow, undefined);
    });
  });

  it('have a window where a server of your own says it, in the words of each', async () => {
    const words = ['max_model_len', 'context_window', 'context_length', 'max_input_tokens'];
    const { url } = await serve(JSON.stringify({ data: words.map(word => ({ id: word, [word]: 32_768 })) }));
    for (const model of words) {
      const set = config({ OPENAI_BASE_URL: url, TELOS_MODEL: model });
      await listModels(set);
      assert.equal((await createProvider(set, await chooseProvider(set))).contextWindow, 32_768, model);
    }
  });

  it('are those that were known before where a list never ends, is longer than any is, or is empty', async () => {
    let kind = 'sound';
    const huge = JSON.stringify({ data: [{ id: 'claude-huge', more: 'x'.repeat(9_000_000) }] });
    const server = createServer((_, response) => {
      if (kind === 'sound') return response.end('{"data":[{"id":"claude-kept","max_input_tokens":500000}]}');
      if (kind === 'empty') return response.end('{"data":[]}');
      if (kind === 'huge') return response.end(huge);
      response.write('{"data":[');
      const drip = setInterval(() => response.write('{"id":"claude-drip"},'), 50);
      return response.on('close', () => clearInterval(drip));
    });
    servers.push(server);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const set = config({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: url, TELOS_MODEL: 'claude-kept' });
    await listModels(set, true);
    for (kind of ['empty', 'huge', 'endless']) {
      const listed = find(await listModels(set, true), 'anthropic');
      assert.deepEqual([listed?.models, listed?.isUnanswered], [['claude-kept'], true], kind);
      assert.equal((await createProvider(set, await chooseProvider(set))).contextWindow, 500_000, kind);
    }
  });

  it('are listed once each, and not with a name that fills the screen', async () => {
    const ids = ['own', 'own', 'x'.repeat(5_000), ...Array.from({ length: 3_000 }, (_, at) => `m-${at}`)];
    const { url } = await serve(JSON.stringify({ data: ids.map(id => ({ id })) }));
    const { models = [] } = find(await listModels(config({ OPENAI_BASE_URL: url })), 'openai') ?? {};
    assert.deepEqual(models.slice(0, 3), ['own', 'm-0', 'm-1']);
    assert.equal(models.length, 200);
  });

  it('have the newest of each family first, then the others, and always the one in use', async () => {
    const day = (at: number): string => new Date(at * 86_400_000).toISOString();
    const ids = [
      ...['claude-opus-5-20260101', 'claude-haiku-5-5', 'claude-opus-5-5', 'claude-opus-4-8'],
      ...['claude-sonnet-5', 'claude-haiku-4-5-20251001'],
    ];
    const at = [5, 9, 8, 2, 4, 1];
    const list = ids.map((id, index) => ({ id, created_at: day(at[index]!) }));
    const { url } = await serve(JSON.stringify({ data: list }));
    const set = config({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: url.replace('/v1', '') });
    const named = async (model: string) =>
      find(await listModels(set, false, { name: 'anthropic', model }), 'anthropic')?.facts ?? [];
    const ordered = [
      ...['claude-haiku-5-5', 'claude-opus-5-5', 'claude-sonnet-5'],
      ...['claude-opus-5-20260101', 'claude-opus-4-8', 'claude-haiku-4-5-20251001'],
    ];
    const used = await named('claude-opus-4-8');
    assert.deepEqual(
      used.map(({ id }) => id),
      ordered,
    );
    assert.deepEqual(
      used.filter(({ isUsed }) => isUsed).map(({ id }) => id),
      ['claude-opus-4-8'],
    );
    assert.deepEqual(
      (await named('claude-own')).map(({ id }) => id),
      ['claude-own', ...ordered],
    );
    const known = find(await listModels(config({})), 'openai')?.models ?? [];
    assert.deepEqual(
      known.filter(id => /-(?:sol|terra)$/.test(id)),
      ['gpt-6.2-sol', 'gpt-6.1-terra', 'gpt-6.1-sol', 'gpt-6-sol', 'gpt-5.6-sol', 'gpt-5.6-terra'],
    );
  });

  it('have only efforts that a model tells apart', async () => {
    const all = await listModels(config({}));
    const efforts = (name: string, model: string): string =>
      find(all, name)
        ?.facts.find(({ id }) => id === model)
        ?.efforts.join(' ') ?? '';
    assert.equal(efforts('openai', 'gpt-6.1-sol'), 'low medium high xhigh max');
    assert.equal(efforts('openai', 'gpt-6-luna'), 'off low medium high xhigh max');
    assert.equal(efforts('openai', 'gpt-5.4'), 'off low medium high xhigh');
    assert.equal(efforts('anthropic', 'claude-opus-5-5'), 'low medium high xhigh max');
    assert.equal(efforts('anthropic', 'claude-sonnet-5-5'), 'off low medium high xhigh max');
    assert.equal(efforts('anthropic', 'claude-sonnet-4-6'), 'off low medium high');
    assert.equal(efforts('gemini', 'gemini-3.8-flash'), 'off low medium high');
  });

  it('leave out those for sound, pictures and vectors, and take the prices that OpenRouter tells', async () => {
    const ids = [
      'models/gemini-9-flash',
      'models/gemini-embedding-001',
      'models/imagen-4',
      'models/gemini-9-image',
    ];
    const gemini = await serve(JSON.stringify({ data: ids.map(id => ({ id })) }));
    const router = await serve(
      '{"data":[{"id":"a/b","context_length":64000,"pricing":{"prompt":"0.0000025","completion":"0.00001"}},{"id":"a/auto","pricing":{"prompt":"-1","completion":"-1"}}]}',
    );
    const all = await listModels(
      config({
        GEMINI_API_KEY: 'g',
        GEMINI_BASE_URL: gemini.url,
        OPENROUTER_API_KEY: 'o',
        OPENROUTER_BASE_URL: router.url,
      }),
    );
    assert.deepEqual(find(all, 'gemini')?.models, ['gemini-9-flash']);
    assert.deepEqual(
      find(all, 'openrouter')?.facts.map(({ id, window, price }) => [id, window, price]),
      [
        ['a/b', 64_000, { input: 2.5, output: 10 }],
        ['a/auto', undefined, undefined],
      ],
    );
  });
});
