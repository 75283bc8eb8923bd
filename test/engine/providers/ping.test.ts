/** Whether a provider is there is asked in its own wire format, and costs nothing. */
import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/engine/config.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import { pingProvider } from '../../../src/engine/providers/keys.ts';
import { listen, type ReceivedRequest } from '../../fakes/loopback.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('pingProvider', () => {
  const requests: ReceivedRequest[] = [];
  let answer = { status: 200, body: '', headers: {} };
  let server: Awaited<ReturnType<typeof listen>>;
  const temp = tempFolder();
  before(async () => {
    server = await listen(async (request, response) => {
      requests.push(request);
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });
  beforeEach(() => {
    requests.length = 0;
    answer = { status: 200, body: JSON.stringify({ data: [{ id: 'm-1' }, {}, null] }), headers: {} };
  });
  after(async () => {
    temp.remove();
    await server.close();
  });

  async function ping(env: Record<string, string>, signal = new AbortController().signal) {
    const config = loadConfig({ env, home: temp.path, cwd: temp.path });
    return pingProvider(config, await chooseProvider(config), signal);
  }
  const anthropic = () => ({ ANTHROPIC_API_KEY: 'key-1', ANTHROPIC_BASE_URL: server.address });

  it('asks Anthropic for its models, with the key where Anthropic wants it', async () => {
    const answered = await ping(anthropic());
    assert.ok(answered?.ok);
    assert.deepEqual(answered.models, ['m-1']);
    const [{ method, path, headers } = {} as ReceivedRequest] = requests;
    assert.deepEqual([method, path, headers['x-api-key']], ['GET', '/v1/models?limit=1000', 'key-1']);
    assert.ok(headers['anthropic-version']);
  });

  it('keeps what the list says of the model for the runs, but no answer that is no list', async () => {
    const env = { ...anthropic(), TELOS_MODEL: 'm-2' };
    const config = loadConfig({ env, home: temp.path, cwd: temp.path });
    const window = async () => (await createProvider(config, await chooseProvider(config))).contextWindow;
    assert.equal(await window(), undefined);
    answer.body = JSON.stringify({ data: [{ id: 'm-2', max_input_tokens: 64_000 }] });
    await ping(env);
    assert.equal(await window(), 64_000);
    for (const body of ['<html>', '{"data":[]}', '']) {
      answer.body = body;
      await ping(env);
    }
    assert.equal(await window(), 64_000);
    const elsewhere = { ...config, env: { ...env, ANTHROPIC_BASE_URL: `${server.address}/other` } };
    const other = await createProvider(elsewhere, await chooseProvider(elsewhere));
    assert.equal(other.contextWindow, undefined, 'another server may have other models of this name');
  });

  it('asks the others as OpenAI is asked', async () => {
    for (const name of ['OPENAI', 'GEMINI', 'OPENROUTER'])
      await ping({
        TELOS_PROVIDER: name.toLowerCase(),
        [`${name}_API_KEY`]: 'key-2',
        [`${name}_BASE_URL`]: `${server.address}/v1`,
      });
    await ping({ TELOS_PROVIDER: 'ollama', TELOS_MODEL: 'q', OLLAMA_BASE_URL: `${server.address}/v1` });
    assert.deepEqual(
      requests.map(({ path, headers }) => [path, headers['authorization']]),
      [...Array(3).fill(['/v1/models', 'Bearer key-2']), ['/v1/models', undefined]],
    );
  });

  it('says which variable to look at when the key is refused or nobody answers', async () => {
    answer.status = 401;
    assert.deepEqual(await ping(anthropic()), {
      ok: false,
      problem: 'anthropic refused the key (401). Check ANTHROPIC_API_KEY.',
      isRefused: true,
    });
    answer = { status: 403, body: '{"error":"Your country is not supported"}', headers: {} };
    assert.match(JSON.stringify(await ping(anthropic())), /refused the request \(403\).*country is not supp/);
    answer.status = 500;
    assert.match(JSON.stringify(await ping(anthropic())), /answered with status 500/);
    const gone = await ping({ ...anthropic(), ANTHROPIC_BASE_URL: 'http://127.0.0.1:2' });
    assert.match(
      JSON.stringify(gone),
      /did not answer at http:\/\/127\.0\.0\.1:2 \(ECONNREFUSED\).*ANTHROPIC_BASE_URL/,
    );
  });

  it('says of an address that is none what a run would say', async () => {
    for (const address of ['localhost:1234', 'http://me:hidden@h']) {
      const said = JSON.stringify(await ping({ ...anthropic(), ANTHROPIC_BASE_URL: address }));
      assert.match(
        said,
        /ANTHROPIC_BASE_URL (is 'localhost:1234', which is not an address|contains a user name or password)/,
      );
      assert.doesNotMatch(said, /hidden/);
    }
  });

  it('takes a gateway without a list for one that answers, and carries the key nowhere else', async () => {
    Object.assign(answer, { status: 404, body: 'none' });
    assert.deepEqual((await ping(anthropic()))?.ok, true);
    requests.length = 0;
    Object.assign(answer, { status: 302, headers: { location: `${server.address}/elsewhere` } });
    assert.equal((await ping(anthropic()))?.ok, false);
    assert.equal(requests.length, 1);
  });

  it('takes a page for no answer, whatever its status', async () => {
    for (const [status, body] of [
      [200, '<html>Sign in to the network'],
      [200, 'It works!'],
      [200, ''],
      [404, '<!DOCTYPE html><title>Not found'],
    ] as const) {
      Object.assign(answer, { status, body });
      assert.match(
        JSON.stringify(await ping(anthropic())),
        /did not answer like a model's server .*ANTHROPIC_BASE_URL/,
      );
    }
    Object.assign(answer, { status: 200, body: '{"models":[]}' });
    assert.equal((await ping(anthropic()))?.ok, true);
  });

  it('has nothing to ask of a recording, and stops with its signal', async () => {
    assert.equal(await ping({ TELOS_PROVIDER: 'replay' }), undefined);
    await assert.rejects(ping(anthropic(), AbortSignal.abort(new Error('enough'))), /enough/);
  });
});
