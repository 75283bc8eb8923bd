import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Config, loadConfig } from '../../../src/engine/config.ts';
import { effortLevels } from '../../../src/engine/core/limits.ts';
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
