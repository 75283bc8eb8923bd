/** Claude at Amazon Bedrock: asked in Anthropic's format, opened by a signature, by Bedrock's own key or by what the AWS CLI has. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { TelosError } from '../../../src/engine/core/errors.ts';
import type { CompletionRequest, StreamEvent } from '../../../src/engine/core/ports.ts';
import { signedHeaders } from '../../../src/engine/providers/bedrock.ts';
import { windowOf } from '../../../src/engine/providers/contextWindow.ts';
import { chooseProvider, createProvider } from '../../../src/engine/providers/create.ts';
import { pingProvider } from '../../../src/engine/providers/keys.ts';
import { listModels } from '../../../src/engine/providers/modelList.ts';
import { hasPrice } from '../../../src/engine/providers/models.ts';
import { type CloudServer, startBedrock } from '../../fakes/cloudServers.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const model = 'eu.anthropic.claude-sonnet-5-5';

describe('Amazon Bedrock', () => {
  const temp = tempFolder();
  let server: CloudServer;
  beforeEach(async () => {
    server = await startBedrock({
      keys: {
        AKIDEXAMPLE: { secret },
        ASIAEXAMPLE: { secret: 'short-lived/secret', session: 'a+session/token==' },
      },
      token: 'bedrock-key-1',
      region: 'eu-central-1',
      turns: [
        {
          thinking: [{ thinking: 'hm', signature: 's' }],
          toolCalls: [{ id: 'c1', name: 'look', input: { at: 'ä' } }],
        },
        { text: ['Hello'] },
      ],
    });
  });
  afterEach(() => server.close());
  after(() => temp.remove());

  const config = (more: Record<string, string> = {}) =>
    loadConfig({
      env: {
        TELOS_PROVIDER: 'bedrock',
        TELOS_MODEL: model,
        AWS_REGION: 'eu-central-1',
        AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
        AWS_SECRET_ACCESS_KEY: secret,
        AWS_ENDPOINT_URL_BEDROCK_RUNTIME: server.url,
        AWS_ENDPOINT_URL_BEDROCK: server.url,
        ...more,
      },
      home: temp.path,
      cwd: join(temp.path, 'work'),
    });

  async function answer(
    more: Record<string, string> = {},
    part: Partial<CompletionRequest> = {},
  ): Promise<StreamEvent[]> {
    const set = config(more);
    const provider = await createProvider(set, await chooseProvider(set));
    const messages = [{ role: 'user', content: 'hi €' } as const];
    const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' } }];
    const request = { system: 'S', messages, tools, maxTokens: 1_024, ...part };
    const events: StreamEvent[] = [];
    for await (const event of provider.streamCompletion(request, new AbortController().signal))
      events.push(event);
    return events;
  }

  it('signs as the published example of AWS is signed', () => {
    const request = { method: 'GET', url: new URL('https://example.amazonaws.com/'), headers: {}, body: '' };
    const keys = { id: 'AKIDEXAMPLE', secret };
    const where = { region: 'us-east-1', service: 'service' };
    const { authorization } = signedHeaders(request, keys, where, new Date('2015-08-30T12:36:00Z'));
    assert.match(
      authorization!,
      /Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31$/,
    );
  });

  it('answers signed requests, with calls, thoughts and efforts, over two rounds', async () => {
    const first = await answer({}, { effort: 'high' });
    assert.deepEqual(
      first.map(({ type }) => type),
      ['reasoning', 'thinking', 'tool_call', 'done'],
    );
    const blocks = first.flatMap(event => (event.type === 'thinking' ? [event.block] : []));
    const messages = [
      { role: 'user' as const, content: 'hi €' },
      {
        role: 'assistant' as const,
        content: [...blocks, { type: 'tool_use' as const, id: 'c1', name: 'look', input: { at: 'ä' } }],
      },
      {
        role: 'user' as const,
        content: [{ type: 'tool_result' as const, tool_use_id: 'c1', content: 'seen', is_error: false }],
      },
    ];
    const second = await answer({}, { messages, effort: 'off' });
    assert.ok(second.some(event => event.type === 'text' && event.text === 'Hello'));
    const [one, two] = server.asked;
    assert.deepEqual(
      [one.model, one.thinking, one.output_config],
      [model, { type: 'adaptive', display: 'summarized' }, { effort: 'high' }],
    );
    assert.deepEqual(two.thinking, { type: 'between_tools' });
    assert.equal(server.requests[0]?.headers['x-api-key'], undefined);
  });

  it('takes keys that end, and its own key before all others', async () => {
    await answer({
      AWS_ACCESS_KEY_ID: 'ASIAEXAMPLE',
      AWS_SECRET_ACCESS_KEY: 'short-lived/secret',
      AWS_SESSION_TOKEN: 'a+session/token==',
    });
    await answer({ AWS_BEARER_TOKEN_BEDROCK: 'bedrock-key-1', AWS_SECRET_ACCESS_KEY: 'wrong' });
    assert.equal(server.requests.at(-1)?.headers['authorization'], 'Bearer bedrock-key-1');
    assert.equal(server.asked.length, 2);
  });

  it('asks the AWS CLI once where no key is set, and says what it says', async () => {
    const program = join(temp.path, 'aws');
    const keys = {
      Version: 1,
      AccessKeyId: 'AKIDEXAMPLE',
      SecretAccessKey: secret,
      Expiration: '2099-01-01T00:00:00Z',
    };
    writeFileSync(
      program,
      `#!/bin/sh\necho "$@" >> '${temp.path}/calls'\n[ "$6" = work ] || { echo 'Error when retrieving token from sso: Token has expired' >&2; exit 255; }\necho '${JSON.stringify(keys)}'\n`,
    );
    chmodSync(program, 0o755);
    const none = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', PATH: `${temp.path}:/usr/bin:/bin` };
    await answer({ ...none, AWS_PROFILE: 'work' });
    await answer({ ...none, AWS_PROFILE: 'work' });
    assert.equal(server.asked.length, 2);
    await assert.rejects(answer({ ...none, AWS_PROFILE: 'other' }), (error: TelosError) => {
      assert.match(error.message, /Token has expired\)\. Set AWS_BEARER_TOKEN_BEDROCK, or sign in/);
      return error.code === 'auth';
    });
    await assert.rejects(answer({ ...none, AWS_PROFILE: 'third', PATH: '/nowhere' }), /aws is not installed/);
    // A run may have written that one.
    temp.add({ 'work/bin/aws': readFileSync(program, 'utf8') });
    chmodSync(join(temp.path, 'work/bin/aws'), 0o755);
    const planted = { ...none, AWS_PROFILE: 'work', HOME: '/other', PATH: join(temp.path, 'work/bin') };
    await assert.rejects(answer(planted), /aws is not installed/);
  });

  it('says what is wrong with a key, a region or a model, and never shows a key', async () => {
    await assert.rejects(
      answer({ AWS_SECRET_ACCESS_KEY: 'wrong-secret-123' }),
      /^TelosError: Amazon Bedrock refused the request \(403\): The request signature we calculated/,
    );
    await assert.rejects(
      answer({ AWS_ACCESS_KEY_ID: 'AKIDOTHER' }),
      (error: TelosError) => error.code === 'auth' && /refused the key/.test(error.message),
    );
    await assert.rejects(
      answer({ AWS_BEARER_TOKEN_BEDROCK: 'old-key-of-ours' }),
      (error: TelosError) => error.code === 'auth' && !error.message.includes('old-key'),
    );
    await assert.rejects(answer({ TELOS_MODEL: 'claude-haiku-5-5' }), /model identifier is invalid/);
    await assert.rejects(
      answer({ AWS_REGION: '' }),
      /^TelosError: AWS_REGION is not set\. Set it, for example to us-east-1\./,
    );
    const elsewhere = answer({ AWS_REGION: '', AWS_DEFAULT_REGION: 'us-east-1' });
    await assert.rejects(elsewhere, /scoped to a valid region/);
    assert.equal(server.asked.length, 0);
  });

  it('is chosen with its key and a region, and never by keys of AWS alone', async () => {
    const other = { TELOS_PROVIDER: '', OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1' };
    assert.equal((await chooseProvider(config(other))).name, 'replay');
    assert.equal((await chooseProvider(config({ ...other, AWS_BEARER_TOKEN_BEDROCK: 'k' }))).name, 'bedrock');
    assert.equal(
      (await chooseProvider(config({ ...other, AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: '' }))).name,
      'replay',
    );
    const choice = await chooseProvider(config({ TELOS_MODEL: '', AWS_ENDPOINT_URL_BEDROCK_RUNTIME: '' }));
    assert.deepEqual(
      [choice.model, choice.baseUrl],
      ['global.anthropic.claude-haiku-5-5', 'https://bedrock-runtime.eu-central-1.amazonaws.com/anthropic'],
    );
    const specified = await chooseProvider(config({ TELOS_MODEL: '', TELOS_DEFAULTS: 'specified' }));
    assert.equal(specified.model, 'global.anthropic.claude-haiku-4-5-20251001-v1:0');
  });

  it('answers doctor and telos key, knows the window, and has no price by itself', async () => {
    const ping = async (more: Record<string, string>) => {
      const set = config(more);
      return pingProvider(set, await chooseProvider(set), new AbortController().signal);
    };
    assert.ok((await ping({}))?.ok);
    const refused = await ping({ AWS_BEARER_TOKEN_BEDROCK: 'other' });
    assert.deepEqual(refused, {
      ok: false,
      problem: 'bedrock refused the key (403). Check AWS_BEARER_TOKEN_BEDROCK.',
      isRefused: true,
    });
    const listed = (await listModels(config())).find(({ name }) => name === 'bedrock');
    assert.deepEqual([listed?.ready, listed?.models], [true, ['global.anthropic.claude-haiku-5-5']]);
    assert.equal(windowOf(config(), { name: 'bedrock', model }), 1_000_000);
    assert.equal(
      windowOf(config(), { name: 'bedrock', model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0' }),
      200_000,
    );
    assert.ok(!hasPrice({ name: 'bedrock', model }));
    const { origins } = config({ AWS_BEARER_TOKEN_BEDROCK: 'bedrock-key-1' });
    assert.equal(origins['AWS_BEARER_TOKEN_BEDROCK']?.value, '(set)');
  });
});
