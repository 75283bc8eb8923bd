import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Config, type ConfigOverrides, loadConfig } from '../../../src/engine/config.ts';
import {
  chooseProvider,
  createProvider,
  type FrontendProvider,
} from '../../../src/engine/providers/create.ts';
import { limitsAt, standardLimits } from '../../../src/engine/providers/failures.ts';
import { pingProvider } from '../../../src/engine/providers/keys.ts';
import { hasPrice } from '../../../src/engine/providers/models.ts';
import { callExtrasBlock } from '../../../src/engine/providers/provider.ts';
import type { Message } from '../../../src/protocol/run.ts';
import { listen } from '../../fakes/loopback.ts';
import { scriptedProvider } from '../../fakes/scriptedProvider.ts';

/** Nothing listens on the discard port, so that an Ollama of the machine is never asked. */
const noOllama = { OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1' };

function config(env: Record<string, string>, overrides: ConfigOverrides = {}): Config {
  return loadConfig({ env: { ...noOllama, ...env }, home: '/nowhere', cwd: '/nowhere', ...overrides });
}

describe('choosing a provider', () => {
  it('takes the first key there is', async () => {
    const keys = {
      ANTHROPIC_API_KEY: 'a',
      OPENAI_API_KEY: 'b',
      GEMINI_API_KEY: 'c',
      OPENROUTER_API_KEY: 'd',
    };
    const order: string[] = [];
    for (const variable of Object.keys(keys)) {
      const choice = await chooseProvider(config(keys));
      order.push(choice.name);
      assert.ok(choice.why.includes(variable), choice.why);
      assert.equal(choice.recording, false);
      delete (keys as Record<string, string>)[variable];
    }
    assert.deepEqual(order, ['anthropic', 'openai', 'gemini', 'openrouter']);
  });

  it('uses a current model, or the one that the specification names, unless another is named', async () => {
    assert.equal((await chooseProvider(config({ ANTHROPIC_API_KEY: 'k', TELOS_MODEL: 'm' }))).model, 'm');
    for (const [variable, current, specified] of [
      ['ANTHROPIC_API_KEY', 'claude-haiku-5-5', 'claude-haiku-4-5'],
      ['OPENAI_API_KEY', 'gpt-6-luna', 'gpt-5.4-mini'],
      ['GEMINI_API_KEY', 'gemini-3.8-flash', 'gemini-flash-latest'],
    ] as const) {
      const { name, model } = await chooseProvider(config({ [variable]: 'k' }));
      assert.equal(model, current);
      assert.ok(hasPrice({ name, model }), model);
      const older = await chooseProvider(config({ [variable]: 'k', TELOS_DEFAULTS: 'specified' }));
      assert.equal(older.model, specified);
    }
    const wrong = config({ TELOS_DEFAULTS: 'newest' });
    assert.equal(wrong.defaults, 'current');
    assert.match(wrong.problems[0]?.message ?? '', /defaults 'newest' are unknown/);
  });

  it('takes the first model of an Ollama that calls tools, and none that runs elsewhere', async () => {
    const abilities: Readonly<Record<string, unknown>> = {
      'llava:7b': ['completion', 'vision'],
      'odd:1b': 'tools',
      'qwen3:8b': ['completion', 'tools'],
      'mistral:7b': ['completion', 'tools'],
    };
    let tags: unknown = ['big:cloud', 'qwen3:telos-16k', ...Object.keys(abilities)].map(name => ({ name }));
    const server = await listen(async ({ path, body }, response) => {
      const { model } = (body ?? {}) as { model?: string };
      const answer = path === '/api/tags' ? { models: tags } : { capabilities: abilities[model ?? ''] };
      response.end(JSON.stringify(answer));
    });
    try {
      const choose = async (more: Record<string, string> = {}) =>
        (await chooseProvider(config({ OLLAMA_BASE_URL: `${server.address}/v1`, ...more }))).model;
      assert.equal(await choose(), 'qwen3:8b');
      assert.equal(await choose({ TELOS_PROVIDER: 'ollama' }), 'qwen3:8b');
      assert.equal(await choose({ TELOS_MODEL: 'llava:7b' }), 'llava:7b');
      assert.equal(await choose({ TELOS_DEFAULTS: 'specified' }), 'llama3.1');
      for (const none of [[], [{ name: 'llava:7b' }], [null, 7, {}], 'x', null]) {
        tags = none;
        assert.equal(await choose(), 'llama3.1', JSON.stringify(none));
      }
    } finally {
      await server.close();
    }
  });

  it('obeys an explicit name, also without asking whether anybody is there', async () => {
    const choice = await chooseProvider(
      config({ TELOS_PROVIDER: 'ollama', ANTHROPIC_API_KEY: 'k', TELOS_MODEL: 'q' }),
    );
    assert.equal(choice.name, 'ollama');
    assert.equal(choice.model, 'q');
    assert.equal(choice.baseUrl, noOllama.OLLAMA_BASE_URL);
    const usual = await chooseProvider(loadConfig({ env: { TELOS_PROVIDER: 'ollama' } }));
    assert.equal(usual.model, 'llama3.1');
    assert.equal(usual.baseUrl, 'http://localhost:11434/v1');
    assert.equal(
      (await chooseProvider(config({ TELOS_PROVIDER: 'replay', ANTHROPIC_API_KEY: 'k' }))).recording,
      true,
    );
  });

  it('lists the names when it does not know one', async () => {
    await assert.rejects(chooseProvider(config({ TELOS_PROVIDER: 'claude' })), {
      code: 'config',
      message: /'claude'.*anthropic, openai, gemini, openrouter, azure, bedrock, vertex, ollama, replay/,
    });
  });

  it('names the variable when a chosen provider has no key', async () => {
    for (const [name, variable] of [
      ['anthropic', 'ANTHROPIC_API_KEY'],
      ['openai', 'OPENAI_API_KEY'],
      ['gemini', 'GEMINI_API_KEY'],
      ['openrouter', 'OPENROUTER_API_KEY'],
    ] as const) {
      const remedy = { kind: 'set_key', variable };
      await assert.rejects(chooseProvider(config({ TELOS_PROVIDER: name })), { code: 'auth', remedy });
      const choice = { name, model: 'm', why: '', recording: false };
      await assert.rejects(createProvider(config({}), choice), { code: 'auth', remedy });
    }
  });

  it('takes an Ollama that answers, and the recordings when none does', async () => {
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/v1/models' ? 200 : 404).end('{"data":[]}');
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    assert.equal((await chooseProvider(config({ OLLAMA_BASE_URL: `${url}/` }))).name, 'ollama');
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
    const choice = await chooseProvider(config({ OLLAMA_BASE_URL: url }));
    assert.equal(choice.name, 'replay');
    assert.equal(choice.recording, true);
    assert.match(choice.why, /No key is set/);
  });

  it('does not wait for an Ollama that keeps silent', async () => {
    const server = createServer(() => {});
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    try {
      assert.equal((await chooseProvider(config({ OLLAMA_BASE_URL: url }))).name, 'replay');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('asks another server than OpenAI’s own without a key', async () => {
    const own = config({ OPENAI_BASE_URL: 'http://127.0.0.1:9/v1/', TELOS_MODEL: 'local' });
    const choice = await chooseProvider(own);
    assert.deepEqual(
      [choice.name, choice.model, choice.baseUrl],
      ['openai', 'local', 'http://127.0.0.1:9/v1'],
    );
    assert.match(choice.why, /OPENAI_BASE_URL/);
    assert.equal((await createProvider(own, choice)).model, 'local');
  });

  it('sends the token of a gateway to Anthropic’s models as such, unless a key is set', async () => {
    const sent: unknown[] = [];
    const gateway = await listen(async ({ headers, path }, response) => {
      sent.push([path, headers['authorization'], headers['x-api-key']]);
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}');
    });
    try {
      const env = { ANTHROPIC_AUTH_TOKEN: 'token-of-it', ANTHROPIC_BASE_URL: gateway.address };
      const ask = async (set: Config): Promise<void> => {
        const choice = await chooseProvider(set);
        const request = {
          system: '',
          messages: [{ role: 'user' as const, content: 'x' }],
          tools: [],
          maxTokens: 1,
        };
        const asked = (await createProvider(set, choice)).streamCompletion(
          request,
          new AbortController().signal,
        );
        await assert.rejects(async () => {
          for await (const _ of asked);
        }, /refused the request/);
        await pingProvider(set, choice, new AbortController().signal);
      };
      assert.match((await chooseProvider(config(env))).why, /ANTHROPIC_AUTH_TOKEN is set/);
      await ask(config(env));
      await ask(config({ ...env, ANTHROPIC_API_KEY: 'key-of-it' }));
      assert.deepEqual(sent, [
        ['/v1/messages', 'Bearer token-of-it', undefined],
        ['/v1/models?limit=1000', 'Bearer token-of-it', undefined],
        ['/v1/messages', undefined, 'key-of-it'],
        ['/v1/models?limit=1000', undefined, 'key-of-it'],
      ]);
    } finally {
      await gateway.close();
    }
  });

  it('takes an address with or without the /v1 that belongs to it', async () => {
    const addressOf = async (provider: string, variable: string, value: string) =>
      (await chooseProvider(config({ ANTHROPIC_API_KEY: 'k', [variable]: value }, { provider }))).baseUrl;
    for (const value of ['http://h:1', 'http://h:1/', 'http://h:1/v1', ' http://h:1/v1/ ']) {
      assert.equal(await addressOf('ollama', 'OLLAMA_BASE_URL', value), 'http://h:1/v1');
      assert.equal(await addressOf('anthropic', 'ANTHROPIC_BASE_URL', value), 'http://h:1');
    }
    assert.equal(await addressOf('ollama', 'OLLAMA_BASE_URL', 'http://h/proxy'), 'http://h/proxy');
    for (const value of [
      'http://h:1',
      'http://h:1/v1',
      'http://h:1/v1/chat/completions',
      'http://h:1/v1/responses/',
    ])
      assert.equal(await addressOf('openai', 'OPENAI_BASE_URL', value), 'http://h:1/v1', value);
    assert.equal(await addressOf('openai', 'OPENAI_BASE_URL', 'http://h/api/openai'), 'http://h/api/openai');
    assert.equal(await addressOf('anthropic', 'ANTHROPIC_BASE_URL', 'http://h:1/v1/messages'), 'http://h:1');
  });

  it('gives a model on this machine or in this network ten minutes, once, and any other the usual time', () => {
    for (const address of [
      'http://localhost:1234/v1',
      'http://127.0.0.1:8080',
      'http://192.168.1.20:8000/v1',
      'http://gpu-box:11434/v1',
    ])
      assert.deepEqual(
        [limitsAt(address).firstByteMs, limitsAt(address).waitsOnce],
        [600_000, true],
        address,
      );
    assert.deepEqual(limitsAt('https://api.openai.com/v1'), standardLimits);
  });

  it('says of an address that is none which variable to set, and no password', async () => {
    const values = [
      'localhost:1234/v1',
      'nonsense',
      'ftp://h/v1',
      'http://',
      'https://me:hidden@h/v1',
      'me:hidden@h',
    ];
    for (const value of values) {
      for (const [provider, variable] of [
        ['anthropic', 'ANTHROPIC_BASE_URL'],
        ['openai', 'OPENAI_BASE_URL'],
      ] as const) {
        const set = config({ ANTHROPIC_API_KEY: 'k', [variable]: value }, { provider });
        const choice = await chooseProvider(set);
        await assert.rejects(createProvider(set, choice), (error: Error) => {
          assert.match(error.message, new RegExp(`^${variable} `), value);
          assert.doesNotMatch(error.message, /hidden/);
          return true;
        });
      }
    }
  });

  it('makes the provider that was chosen', async () => {
    for (const name of ['openai', 'gemini', 'openrouter', 'ollama']) {
      const keys = { OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k', OPENROUTER_API_KEY: 'k' };
      const chosen = config(keys, { provider: name, model: 'm' });
      const made = await createProvider(chosen, await chooseProvider(chosen));
      assert.deepEqual([made.name, made.model], [name, 'm']);
    }
    const anthropic = config({ ANTHROPIC_API_KEY: 'k' });
    const provider = await createProvider(anthropic, await chooseProvider(anthropic));
    assert.deepEqual([provider.name, provider.model], ['anthropic', 'claude-haiku-5-5']);

    const recording = fileURLToPath(
      new URL('../../../media/demo/skills/kairos/skills/kickoff/recording.jsonl', import.meta.url),
    );
    const replay = config({}, { replayFile: recording });
    const played = await createProvider(replay, await chooseProvider(replay));
    assert.equal(played.recording?.model, played.model);
  });
});

describe('a provider that the frontend brings', () => {
  const editor = (model: string | undefined): FrontendProvider => ({
    model: async () => model,
    create: async named => ({ ...scriptedProvider([]), name: 'vscode', model: named ?? 'none named' }),
  });

  it('comes behind keys and before the recordings, where it has a model', async () => {
    const keyed = config({ GEMINI_API_KEY: 'k' });
    assert.equal((await chooseProvider(keyed, { vscode: editor('copilot/auto') })).name, 'gemini');
    const choice = await chooseProvider(config({}), { vscode: editor('copilot/auto') });
    assert.deepEqual([choice.name, choice.model, choice.recording], ['vscode', 'copilot/auto', false]);
    assert.equal((await chooseProvider(config({}), { vscode: editor(undefined) })).name, 'replay');
  });

  it('answers under its name with the model that is set', async () => {
    const set = config({ TELOS_PROVIDER: 'vscode', TELOS_MODEL: 'copilot/fast', OPENAI_API_KEY: 'k' });
    const choice = await chooseProvider(set, { vscode: editor('copilot/auto') });
    const provider = await createProvider(set, choice);
    assert.deepEqual([provider.name, provider.model], ['vscode', 'copilot/fast']);
  });

  it('says so when it has no model, and when it is not there', async () => {
    const set = config({ TELOS_PROVIDER: 'vscode' });
    await assert.rejects(chooseProvider(set, { vscode: editor(undefined) }), {
      code: 'config',
      message: /vscode has no model/,
    });
    await assert.rejects(chooseProvider(set), {
      code: 'config',
      message:
        /only available in VS Code.*anthropic, openai, gemini, openrouter, azure, bedrock, vertex, ollama, replay\./,
    });
    await assert.rejects(chooseProvider(config({ TELOS_PROVIDER: 'x' }), { vscode: editor('m') }), {
      message: /replay, vscode\./,
    });
  });
});

describe('the format in which a provider is spoken to', () => {
  const keys = { OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k' };

  /** The addresses that a request goes to, which nothing answers. */
  async function asked(name: string, env: Record<string, string>, model: string): Promise<string> {
    const realFetch = globalThis.fetch;
    const addresses: string[] = [];
    globalThis.fetch = async url => {
      addresses.push(String(url));
      return new Response('{"error":{"message":"no"}}', { status: 400 });
    };
    try {
      const set = config({ ...keys, ...env, TELOS_PROVIDER: name, TELOS_MODEL: model });
      const provider = await createProvider(set, await chooseProvider(set));
      const request = {
        system: '',
        messages: [{ role: 'user' as const, content: 'hi' }],
        tools: [],
        maxTokens: 9,
      };
      for await (const _ of provider.streamCompletion(request, new AbortController().signal));
    } catch {
      // The answer is a refusal.
    } finally {
      globalThis.fetch = realFetch;
    }
    return addresses.join(' ');
  }

  it('is that of its maker at the address of the maker, and that of chat completions elsewhere', async () => {
    assert.equal(await asked('openai', {}, 'gpt-5.4'), 'https://api.openai.com/v1/responses');
    const eu = { OPENAI_BASE_URL: 'https://eu.api.openai.com/v1' };
    assert.equal(await asked('openai', eu, 'gpt-4o'), 'https://eu.api.openai.com/v1/responses');
    const chat = '/chat/completions';
    assert.equal(await asked('openai', {}, 'gpt-4o-search-preview'), `https://api.openai.com/v1${chat}`);
    for (const address of ['https://llm.test/v1', 'https://api.openai.com.llm.test/v1'])
      assert.equal(await asked('openai', { OPENAI_BASE_URL: address }, 'gpt-5.4'), address + chat);
    const gemini = 'https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse';
    assert.equal(await asked('gemini', {}, 'm'), gemini);
    const gateway = { GEMINI_BASE_URL: 'https://llm.test/openai' };
    assert.equal(await asked('gemini', gateway, 'm'), `https://llm.test/openai${chat}`);
  });

  it('is the one of the settings, whatever the address', async () => {
    const native = { TELOS_PROTOCOL: 'native', OPENAI_BASE_URL: 'https://llm.test/v1' };
    assert.equal(await asked('openai', native, 'm'), 'https://llm.test/v1/responses');
    const chat = { TELOS_PROTOCOL: 'chat' };
    assert.equal(await asked('openai', chat, 'gpt-5.4'), 'https://api.openai.com/v1/chat/completions');
    assert.match(await asked('gemini', chat, 'm'), /\/v1beta\/openai\/chat\/completions$/);
  });
});

describe('a half of a character', () => {
  const half = 'sown \ud83d';
  const id = 'call_1';
  const input = { [half]: [half] };
  const messages: Message[] = [
    { role: 'user', content: half },
    {
      role: 'assistant',
      content: [
        callExtrasBlock(id, { extra: half }, 'openrouter'),
        { type: 'text', text: half },
        { type: 'tool_use', id, name: 'sow', input },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: half, is_error: false }] },
    { role: 'user', content: [{ type: 'text', text: '🌱 is whole' }] },
  ];
  const inputSchema = { type: 'object', properties: { [half]: { type: 'string', description: half } } };
  const tools = [{ name: 'sow', description: half, inputSchema }];
  const request = { system: half, messages, tools, maxTokens: 9 };

  it('reaches no server, in whatever format, and nothing else is changed', async () => {
    const bodies: string[] = [];
    const server = createServer((asked, answer) => {
      const parts: Buffer[] = [];
      asked
        .on('data', part => parts.push(part))
        .on('end', () => {
          if (asked.method === 'POST') bodies.push(`${asked.url} ${Buffer.concat(parts)}`);
          answer.writeHead(400).end('{"error":{"message":"no"}}');
        });
    });
    await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const names = ['anthropic', 'openai', 'gemini', 'openrouter', 'ollama'];
    const env = Object.fromEntries(
      names.flatMap(name => [
        [`${name.toUpperCase()}_API_KEY`, 'k'],
        [`${name.toUpperCase()}_BASE_URL`, url],
      ]),
    );
    try {
      for (const name of names)
        for (const protocol of ['native', 'chat']) {
          const set = config({ ...env, TELOS_PROTOCOL: protocol }, { provider: name, model: 'm' });
          const provider = await createProvider(set, await chooseProvider(set));
          const before = structuredClone(request);
          const read = async (): Promise<void> => {
            for await (const _ of provider.streamCompletion(request, new AbortController().signal));
          };
          await assert.rejects(read());
          assert.deepEqual(request, before);
        }
    } finally {
      server.close();
    }
    const sent = bodies.filter(body => body.includes('sown'));
    const paths = new Set(sent.map(body => body.split(/[ ?]/)[0]));
    assert.ok(paths.size >= 5, [...paths].join(' '));
    for (const body of sent) {
      assert.doesNotMatch(body, /\\ud[89a-f]/i);
      assert.ok(body.includes('sown \ufffd') && body.includes('🌱 is whole'), body.slice(0, 40));
    }
  });
});
