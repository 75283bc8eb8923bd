/** Azure OpenAI, asked by its SDK: a deployment in the address, a key in a header of its own, and a version. */
import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/engine/config.ts';
import type { TelosError } from '../../../src/engine/core/errors.ts';
import type { CompletionRequest, StreamEvent } from '../../../src/engine/core/ports.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import { pingProvider } from '../../../src/engine/providers/keys.ts';
import { listModels } from '../../../src/engine/providers/modelList.ts';
import { hasPrice } from '../../../src/engine/providers/models.ts';
import { listen, type ReceivedRequest, sendJson } from '../../fakes/loopback.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('Azure OpenAI', () => {
  const temp = tempFolder();
  const requests: ReceivedRequest[] = [];
  let server: Awaited<ReturnType<typeof listen>>;
  before(async () => {
    server = await listen(async (request, response) => {
      requests.push(request);
      if (request.headers['api-key'] !== 'azure-key-1')
        return sendJson(response, 401, {
          error: { code: '401', message: 'Access denied due to invalid key.' },
        });
      if (request.method === 'GET') return sendJson(response, 200, { data: [{ id: 'gpt-4o' }] });
      if (request.path.includes('/missing/'))
        return sendJson(response, 404, {
          error: { code: 'DeploymentNotFound', message: 'No such deployment.' },
        });
      // Azure begins with a piece about its filter, which has no choice.
      const pieces = [
        { choices: [], prompt_filter_results: [{}] },
        { choices: [{ index: 0, delta: { content: 'Hello' } }] },
        { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        { choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } },
      ];
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(
        [...pieces.map(piece => JSON.stringify(piece)), '[DONE]'].map(data => `data: ${data}\n\n`).join(''),
      );
    });
  });
  beforeEach(() => {
    requests.length = 0;
  });
  after(async () => {
    temp.remove();
    await server.close();
  });

  const config = (more: Record<string, string> = {}) =>
    loadConfig({
      env: { AZURE_OPENAI_API_KEY: 'azure-key-1', AZURE_OPENAI_ENDPOINT: server.address, ...more },
      home: temp.path,
      cwd: temp.path,
    });

  async function answer(
    more: Record<string, string>,
    part: Partial<CompletionRequest> = {},
  ): Promise<StreamEvent[]> {
    const set = config(more);
    const provider = await createProvider(set, await chooseProvider(set));
    assert.equal(provider.name, 'azure');
    const request = {
      system: 'S',
      messages: [{ role: 'user', content: 'hi' } as const],
      tools: [],
      maxTokens: 1_024,
    };
    const events: StreamEvent[] = [];
    for await (const event of provider.streamCompletion(
      { ...request, ...part },
      new AbortController().signal,
    ))
      events.push(event);
    return events;
  }

  it('is asked at the deployment, with its key and a version, and answers', async () => {
    const events = await answer({ TELOS_MODEL: 'my gpt' });
    assert.deepEqual(
      events.map(event => (event.type === 'text' ? event.text : event.type)),
      ['Hello', 'done'],
    );
    const done = events.at(-1);
    assert.deepEqual(done?.type === 'done' && [done.usage?.inputTokens, done.usage?.outputTokens], [7, 2]);
    const [{ path, headers, body } = {} as ReceivedRequest] = requests;
    assert.equal(path, '/openai/deployments/my%20gpt/chat/completions?api-version=2025-04-01-preview');
    assert.equal(headers['authorization'], undefined);
    assert.equal(body.max_completion_tokens, 1_024);
    assert.equal(body.max_tokens, undefined);
  });

  it('takes the version and the forms of address that people have, and efforts', async () => {
    for (const ending of ['/', '/openai', '/openai/v1/']) {
      const more = { AZURE_OPENAI_ENDPOINT: `${server.address}${ending}`, OPENAI_API_VERSION: '2024-10-21' };
      await answer({ ...more, TELOS_MODEL: 'gpt-6.1-sol' }, { effort: 'off' });
      const { path, body } = requests.at(-1)!;
      assert.equal(path, '/openai/deployments/gpt-6.1-sol/chat/completions?api-version=2024-10-21', ending);
      assert.equal(body.reasoning_effort, 'low');
    }
  });

  it('is chosen with key and address, not with one alone', async () => {
    assert.equal((await chooseProvider(config())).name, 'azure');
    const other = { OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1' };
    assert.equal((await chooseProvider(config({ ...other, AZURE_OPENAI_ENDPOINT: '' }))).name, 'replay');
    const set = config({ ...other, TELOS_PROVIDER: 'azure', AZURE_OPENAI_ENDPOINT: '' });
    await assert.rejects(createProvider(set, await chooseProvider(set)), (error: TelosError) => {
      assert.match(error.message, /^AZURE_OPENAI_ENDPOINT is not set\. Set it to an address/);
      return error.code === 'config';
    });
    const keyless = config({ TELOS_PROVIDER: 'azure', AZURE_OPENAI_API_KEY: '' });
    await assert.rejects(chooseProvider(keyless), (error: TelosError) => error.code === 'auth');
  });

  it('says what is wrong with the key or the deployment', async () => {
    await assert.rejects(answer({ AZURE_OPENAI_API_KEY: 'wrong-key-123' }), (error: TelosError) => {
      assert.match(error.message, /^Azure OpenAI refused the key/);
      assert.ok(!error.message.includes('wrong-key-123'));
      return error.code === 'auth';
    });
    await assert.rejects(answer({ TELOS_MODEL: 'missing' }), /No such deployment/);
  });

  it('answers doctor and telos key without naming models that are not deployed, and has no price by itself', async () => {
    const set = config();
    const ping = async (env: typeof set.env) =>
      pingProvider({ ...set, env }, await chooseProvider(set), new AbortController().signal);
    const good = await ping(set.env);
    assert.ok(good?.ok && good.models.length === 0);
    assert.match(requests.at(-1)!.path, /^\/openai\/models\?api-version=/);
    assert.deepEqual(await ping({ ...set.env, AZURE_OPENAI_API_KEY: 'other' }), {
      ok: false,
      problem: 'azure refused the key (401). Check AZURE_OPENAI_API_KEY.',
      isRefused: true,
    });
    const listed = (await listModels(set)).find(({ name }) => name === 'azure');
    assert.deepEqual([listed?.ready, listed?.models], [true, []]);
    assert.ok(!hasPrice({ name: 'azure', model: 'gpt-6-luna' }));
    assert.match(JSON.stringify(set.origins['AZURE_OPENAI_API_KEY']), /\(set\)/);
    assert.equal(set.origins['AZURE_OPENAI_ENDPOINT']?.value, server.address);
  });
});
