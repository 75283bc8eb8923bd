import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Config, loadConfig } from '../../../src/engine/config.ts';
import { listModels, type ProviderModels } from '../../../src/engine/providers/models.ts';

describe('the models to choose from', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** Answers every request with `body`; returns its base URL and the requests as they come. */
  async function serve(body: string, status = 200): Promise<{ url: string; asked: string[] }> {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization ?? 'no key'}`);
      response.writeHead(status).end(body);
    });
    servers.push(server);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
  }

  const config = (env: Record<string, string>): Config =>
    loadConfig({
      env: { OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1', ...env },
      home: '/nowhere',
      cwd: '/nowhere',
    });

  const find = (all: readonly ProviderModels[], name: string): ProviderModels | undefined =>
    all.find(provider => provider.name === name);

  it('are those with known prices where a key is set, and nobody is asked', async () => {
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
    assert.deepEqual(find(all, 'ollama'), { name: 'ollama', ready: true, models: ['llama3.1', 'qwen3'] });
    assert.deepEqual(find(all, 'openai'), { name: 'openai', ready: true, models: ['own'] });
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
      assert.deepEqual(ollama, { name: 'ollama', ready: false, models: [] }, body);
    }
  });
});
