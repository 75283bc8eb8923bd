/** Claude and Gemini at Google's Vertex AI: opened by a service account, by the sign-in of gcloud, or by a token that gcloud makes. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { TelosError } from '../../../src/engine/core/errors.ts';
import type { CompletionRequest, StreamEvent } from '../../../src/engine/core/ports.ts';
import { windowOf } from '../../../src/engine/providers/contextWindow.ts';
import { chooseProvider, createProvider, providerAddress } from '../../../src/engine/providers/create.ts';
import { pingProvider } from '../../../src/engine/providers/keys.ts';
import { listModels } from '../../../src/engine/providers/modelList.ts';
import { type CloudServer, startVertex } from '../../fakes/cloudServers.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

const email = 'robot@example-project.iam.gserviceaccount.com';
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const others = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const pem = (key: typeof privateKey): string => key.export({ type: 'pkcs8', format: 'pem' }) as string;

describe('Vertex AI', () => {
  const temp = tempFolder();
  let server: CloudServer;
  let count = 0;
  const start = (seconds?: number) =>
    startVertex({
      email,
      publicKey,
      refreshToken: 'refresh-1',
      project: 'my-project',
      turns: [{ text: ['Hello'] }, { text: ['Again'] }],
      ...(seconds && { seconds }),
    });
  beforeEach(async () => {
    server = await start();
  });
  afterEach(() => server.close());
  after(() => temp.remove());

  /** Returns the path of a new file of credentials. */
  const signIn = (fields: object): string => {
    const file = join(temp.path, `sign-in-${count++}.json`);
    writeFileSync(file, JSON.stringify({ token_uri: `${server.url}/token`, ...fields }));
    return file;
  };
  const account = (key = privateKey): string =>
    signIn({ type: 'service_account', client_email: email, private_key: pem(key), private_key_id: 'k1' });

  const config = (file: string, more: Record<string, string> = {}) =>
    loadConfig({
      env: {
        TELOS_PROVIDER: 'vertex',
        ANTHROPIC_VERTEX_PROJECT_ID: 'my-project',
        ANTHROPIC_VERTEX_BASE_URL: `${server.url}/v1`,
        GOOGLE_APPLICATION_CREDENTIALS: file,
        ...more,
      },
      home: temp.path,
      cwd: join(temp.path, 'work'),
    });

  async function answer(
    set: ReturnType<typeof config>,
    part: Partial<CompletionRequest> = {},
  ): Promise<StreamEvent[]> {
    const provider = await createProvider(set, await chooseProvider(set));
    const request = {
      system: 'S',
      messages: [{ role: 'user', content: 'hi' } as const],
      tools: [],
      maxTokens: 1_024,
      ...part,
    };
    const events: StreamEvent[] = [];
    for await (const event of provider.streamCompletion(request, new AbortController().signal))
      events.push(event);
    return events;
  }
  const tokensAsked = (): number => server.requests.filter(({ path }) => path === '/token').length;

  it('answers with the signature of a service account, whose token is kept until it ends', async () => {
    const set = config(account(), { TELOS_MODEL: 'claude-sonnet-5-5' });
    const events = await answer(set, { effort: 'low' });
    assert.ok(events.some(event => event.type === 'text' && event.text === 'Hello'));
    await answer(set);
    assert.equal(tokensAsked(), 1);
    const [{ model, thinking, stream }] = server.asked;
    assert.deepEqual([model, thinking.type, stream], ['claude-sonnet-5-5', 'adaptive', true]);
    await server.close();
    server = await start(200);
    const short = config(account());
    await answer(short);
    await answer(short);
    assert.equal(tokensAsked(), 2, 'a token that ends at once is not used again');
  });

  it('answers with what gcloud keeps of a person, also where it lies by itself, and asks Gemini too', async () => {
    const person = {
      type: 'authorized_user',
      client_id: 'c',
      client_secret: 's',
      refresh_token: 'refresh-1',
    };
    const file = signIn(person);
    const events = await answer(config(file, { TELOS_MODEL: 'gemini-3.8-flash' }));
    assert.ok(events.some(event => event.type === 'text' && event.text === 'Gemini here'));
    assert.equal(server.asked[0].model, 'gemini-3.8-flash');
    writeFileSync(
      join(temp.path, 'application_default_credentials.json'),
      JSON.stringify({ ...person, token_uri: `${server.url}/token` }),
    );
    await answer(config('', { CLOUDSDK_CONFIG: temp.path }));
    assert.equal(server.asked.length, 2);
    await assert.rejects(answer(config(signIn({ ...person, refresh_token: 'old' }))), (error: TelosError) => {
      assert.match(
        error.message,
        /expired or revoked.*\. Sign in with: gcloud auth application-default login/,
      );
      return error.code === 'auth';
    });
  });

  it('asks gcloud for a token where there is no file that it can read itself', async () => {
    const token = await tokenFor();
    const program = join(temp.path, 'gcloud');
    writeFileSync(program, `#!/bin/sh\n[ "$*" = "auth print-access-token" ] && echo '${token}'\n`);
    chmodSync(program, 0o755);
    const set = config(signIn({ type: 'external_account' }), { PATH: `${temp.path}:/usr/bin:/bin` });
    await answer(set);
    assert.equal(server.asked.length, 1);
    await assert.rejects(
      answer(config(signIn({ type: 'external_account' }), { PATH: '/nowhere' })),
      /gcloud is not installed/,
    );
  });

  /** Returns a token that the server has given out. */
  async function tokenFor(): Promise<string> {
    const form = {
      grant_type: 'refresh_token',
      client_id: 'c',
      client_secret: 's',
      refresh_token: 'refresh-1',
    };
    const response = await fetch(`${server.url}/token`, { method: 'POST', body: new URLSearchParams(form) });
    return ((await response.json()) as { access_token: string }).access_token;
  }

  it('says what is wrong with a sign-in or the project', async () => {
    await assert.rejects(answer(config(account(others))), /Invalid JWT Signature/);
    await assert.rejects(
      answer(config(join(temp.path, 'missing.json'))),
      (error: TelosError) => error.code === 'auth' && /missing\.json/.test(error.message),
    );
    const broken = join(temp.path, 'broken.json');
    writeFileSync(broken, '{');
    await assert.rejects(answer(config(broken)), /broken\.json is not JSON/);
    await assert.rejects(
      answer(config(signIn({ type: 'service_account', client_email: email, private_key: 'x' }))),
      /the key in .* cannot be used/,
    );
    await assert.rejects(
      answer(config(account(), { ANTHROPIC_VERTEX_PROJECT_ID: '' })),
      /^TelosError: ANTHROPIC_VERTEX_PROJECT_ID is not set/,
    );
    assert.equal(server.asked.length, 0);
  });

  it('answers doctor, and knows where each place is', async () => {
    const ping = async (set: ReturnType<typeof config>) =>
      pingProvider(set, await chooseProvider(set), new AbortController().signal);
    assert.ok((await ping(config(account())))?.ok);
    const refused = await ping(config(account(others)));
    assert.ok(refused?.ok === false && /Invalid JWT Signature/.test(refused.problem));
    const at = (region: string) =>
      providerAddress(config('', { ANTHROPIC_VERTEX_BASE_URL: '', CLOUD_ML_REGION: region }), 'vertex');
    assert.equal(at(''), 'https://aiplatform.googleapis.com/v1/projects/my-project/locations/global');
    assert.equal(at('eu'), 'https://aiplatform.eu.rep.googleapis.com/v1/projects/my-project/locations/eu');
    assert.equal(
      at('us-east5'),
      'https://us-east5-aiplatform.googleapis.com/v1/projects/my-project/locations/us-east5',
    );
    assert.equal(at('evil.example/'), '');
    const listed = (await listModels(config(account()))).find(({ name }) => name === 'vertex');
    assert.deepEqual([listed?.ready, listed?.models], [true, ['claude-haiku-5-5']]);
    assert.equal(windowOf(config(''), { name: 'vertex', model: 'claude-haiku-4-5@20251001' }), 200_000);
  });
});
