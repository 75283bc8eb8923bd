import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import {
  hiddenIn,
  interpolate,
  placeOf,
  readMcpConfig,
  resolveServer,
  serverOf,
} from '../../../src/engine/mcp/config.ts';
import { spoken } from '../../../src/protocol/text.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('mcp.json', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const read = (content: string) => {
    folder.add({ 'mcp.json': content });
    return readMcpConfig(join(folder.path, 'mcp.json'));
  };
  const refusalOf = (entry: object, env: Record<string, string> = {}): string => {
    const server = serverOf(entry);
    assert.ok(typeof server !== 'string', String(server));
    const resolved = resolveServer(server, env);
    return 'refusal' in resolved ? spoken([resolved.refusal]) : '';
  };

  it('refuses a header whose value would begin another, and names the variable but not its value', () => {
    const server = serverOf({ url: 'https://m.test/mcp', headers: { Plain: 'ok', A: `Bearer \${V}` } });
    assert.ok(typeof server !== 'string');
    for (const value of ['x\r\nX-Evil: 1', 'x\nX-Evil: 1', 'x\r', 'x\0y', 'x\u2028y']) {
      const resolved = resolveServer(server, { V: value });
      assert.ok('refusal' in resolved, JSON.stringify(value));
      assert.match(spoken([resolved.refusal]), /^its header "A", filled in from V, contains a line break/);
      assert.ok(!spoken([resolved.refusal]).includes('Evil'));
    }
    const literal = serverOf({ url: 'https://m.test/mcp', headers: { A: 'x\r\nX-Evil: 1' } });
    assert.ok(typeof literal !== 'string' && 'refusal' in resolveServer(literal, {}));
    assert.ok('server' in resolveServer(server, { V: 'tök\ten 123' }));
  });

  it('gives servers of all kinds, and leaves alone what it does not know', () => {
    const { servers, problems } = read(
      JSON.stringify({
        mcpServers: {
          a: { command: 'npx', args: ['-y', 'x', 1], env: { PORT: 80, ON: true }, cwd: 'sub', timeout: 5 },
          b: { type: 'sse', url: 'https://h/sse', headers: { Authorization: `Bearer \${T}` } },
          c: { url: 'https://h/mcp' },
          d: { type: 'http', url: 'https://h/mcp', disabled: true },
          e: { type: 'streamable-http', url: 'https://h/mcp' },
        },
        inputs: [],
      }),
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(Object.fromEntries(servers), {
      a: {
        timeoutMs: 5000,
        type: 'stdio',
        command: 'npx',
        args: ['-y', 'x', '1'],
        env: { PORT: '80', ON: 'true' },
        cwd: 'sub',
      },
      b: { type: 'sse', url: 'https://h/sse', headers: { Authorization: `Bearer \${T}` } },
      c: { type: 'streamable-http', url: 'https://h/mcp', headers: {} },
      e: { type: 'streamable-http', url: 'https://h/mcp', headers: {} },
    });
  });

  it('says of a broken file what is wrong with it', () => {
    for (const [content, problem] of [
      ['{"mcpServers":\n {', /mcp\.json:2:3 is not JSON .*missing/],
      ['{"mcpServers": {},\n}', /mcp\.json:2:1 is not JSON/],
      ['{"mcpServers": {"a": {"command": "x\ny"}}}', /mcp\.json:1:34 is not JSON/],
      ['', /mcp\.json:1:1 is not JSON/],
      ['['.repeat(200_000), /nested too deeply/],
      ['[]', /mcp\.json has no server in "mcpServers"/],
      ['{"mcpServers": []}', /has no server in "mcpServers"/],
    ] as const) {
      const { servers, problems } = read(content);
      assert.equal(servers.size, 0);
      assert.match(problems.join(), problem);
    }
    assert.match(
      readMcpConfig(join(folder.path, 'none.json')).problems.join(),
      /none\.json could not be read/,
    );
    symlinkSync('/dev/zero', join(folder.path, 'endless.json'));
    assert.match(readMcpConfig(join(folder.path, 'endless.json')).problems.join(), /a device, not a file/);
  });

  it('takes comments, but nothing that only a comment says', () => {
    const { servers, problems } = read(`{
      // "mcpServers": {"a": {"command": "a"}},
      "mcpServers": { /* "b": {"command": "b"}, */ "c": {"command": "c", "args": ["http://h//x /* y */"]} }
    }`);
    assert.deepEqual(problems, []);
    assert.deepEqual([...servers.keys()], ['c']);
    const server = servers.get('c');
    assert.deepEqual(server?.type === 'stdio' && server.args, ['http://h//x /* y */']);
  });

  it('leaves out a broken entry with its name, and keeps the others', () => {
    const broken: [unknown, RegExp][] = [
      [{}, /needs a "command" or a "url"/],
      ['text', /is not an object/],
      [{ command: '' }, /needs a "command"/],
      [{ command: 'x', args: 'y' }, /"args" must be a list/],
      [{ command: 'x', env: { A: {} } }, /"env" must be/],
      [{ command: 'x', cwd: 1 }, /"cwd" must be/],
      [{ url: 'https://h', headers: ['a'] }, /"headers" must be/],
      [{ url: 'https://h', oauth: 'id' }, /"oauth" must be an object with a "clientId"/],
      [{ url: 'https://h', oauth: { clientId: '' } }, /"oauth" must be an object with a "clientId"/],
      [
        { url: 'https://h', oauth: { clientId: 'a', clientSecret: 'in-clear' } },
        /"clientSecret" of its "oauth" must be a variable such as \$\{NAME\}/,
      ],
      [{ type: 'carrier-pigeon', url: 'https://h' }, /"carrier-pigeon"; known are stdio, sse/],
    ];
    for (const [entry, problem] of broken) {
      const { servers, problems } = read(
        JSON.stringify({ mcpServers: { bad: entry, good: { command: 'x' } } }),
      );
      assert.deepEqual([...servers.keys()], ['good']);
      assert.match(problems.join(), /mcp\.json: the MCP server 'bad' is ignored/);
      assert.match(problems.join(), problem);
    }
  });

  it('puts variables in, and nothing where there is none', () => {
    const env = { U: 'a', P: 'b' };
    for (const [text, expected] of [
      [`\${U}:\${P}`, 'a:b'],
      [`Bearer \${MISSING}`, 'Bearer '],
      ['plain', 'plain'],
      ['$U', '$U'],
      [`\${u}`, ''],
      [`$\${U}`, '$a'],
      [`\${toString}`, ''],
    ] as const) {
      assert.equal(interpolate(text, env), expected);
    }
  });

  it('fills in a server from the environment given', () => {
    const env = { T: 'secret', A: 'arg' };
    const remote = { type: 'sse', url: 'https://h/x', headers: { 'x-t': `\${T}` } } as const;
    assert.deepEqual(resolveServer(remote, env), {
      server: { type: 'sse', url: 'https://h/x', headers: { 'x-t': 'secret' } },
    });
    const local = { type: 'stdio', command: `\${T}`, args: [`\${A}`], env: { K: `\${T}` } } as const;
    assert.deepEqual(resolveServer({ ...local, args: [...local.args] }, env), {
      server: { type: 'stdio', command: `\${T}`, args: ['arg'], env: { K: 'secret' } },
    });
  });

  it('fills in the secret of a client that is known beforehand, and misses it where it is not set', () => {
    const oauth = { clientId: 'desk', clientSecret: `\${S}` };
    const server = { type: 'sse', url: 'https://h/x', headers: {}, oauth } as const;
    assert.deepEqual(serverOf({ ...server, oauth: { ...oauth, more: 1 } }), server);
    assert.deepEqual(resolveServer(server, { S: 'secret' }), {
      server: { ...server, oauth: { clientId: 'desk', clientSecret: 'secret' } },
    });
    assert.match(refusalOf(server), /^S is not set/);
    assert.match(
      refusalOf({ ...server, oauth: { clientId: 'a', clientSecret: `\${OPENAI_API_KEY}` } }),
      /floor\.mcp-key/,
    );
  });

  it('names the variables that are missing', () => {
    assert.match(
      refusalOf({ url: 'https://h/', headers: { x: `\${A} \${B} \${A}` } }),
      /^A, B are not set; set it in the environment/,
    );
    assert.match(refusalOf({ command: 'x', args: [`\${ONE}`] }), /^ONE is not set/);
    assert.match(
      refusalOf({ command: 'x', args: [`\${ONE} \${TWO}`] }, { TWO: ' ' }),
      /^ONE is not set, TWO is empty; set it in the environment/,
    );
  });

  it('fills in no address', () => {
    assert.match(
      refusalOf({ url: `https://h/?k=\${T}` }, { T: 'x' }),
      /url contains a variable.*only filled into values of "headers"/,
    );
  });

  it('gives no server a key of a model provider or of the bot', () => {
    const keys = [
      'ANTHROPIC_API_KEY',
      'OPENAI_API_KEY',
      'GEMINI_API_KEY',
      'OPENROUTER_API_KEY',
      'AZURE_OPENAI_API_KEY',
      'DISCORD_TOKEN',
    ];
    for (const key of keys) {
      const wanted = `\${${key}}`;
      for (const entry of [
        { url: 'https://h', headers: { x: wanted } },
        { url: `https://h/?k=${wanted}` },
        { command: 'x', args: [wanted] },
        { command: 'x', env: { OTHER: wanted } },
      ]) {
        assert.match(refusalOf(entry, { [key]: 'value' }), new RegExp(`asks for ${key}.*floor\\.mcp-key`));
      }
    }
    assert.equal(
      refusalOf({ command: 'x', env: { K: `\${GOOGLE_MAPS_API_KEY}` } }, { GOOGLE_MAPS_API_KEY: 'k' }),
      '',
    );
  });

  it('refuses addresses that are none, that hold a password, or that hand out credentials', () => {
    assert.match(refusalOf({ url: 'not an address' }), /is not an address/);
    assert.match(refusalOf({ url: 'ftp://h/x' }), /does not start with http:/);
    assert.match(refusalOf({ url: 'https://me:pw@h/x' }), /user name or password/);
    assert.match(refusalOf({ url: 'http://169.254.169.254/latest' }), /metadata address/);
    assert.equal(refusalOf({ url: 'http://127.0.0.1:3001/mcp' }), '');
  });

  it('hides whatever its variables hold but folders that are there and hosts', () => {
    const env = {
      TOKEN: 'note-0123456789',
      DATABASE: 'postgres://me:pw@host/db',
      HOOK: 'https://host/services/T0/B0/x',
      BASIC: 'admin:hunter22',
      BASE64: '/Zm9vYmFyYmF6',
      HERE: folder.path,
      HOST: 'https://host:8443/',
      BELOW: '~/notes',
      OTHER: 'not named',
    };
    const args = Object.keys(env).flatMap(name => (name === 'OTHER' ? [] : [`--x=\${${name}}`]));
    const headers = { authorization: `Bearer \${TOKEN}`, x: `\${UNSET}` };
    folder.add({
      'mcp.json': JSON.stringify({
        mcpServers: { a: { command: 'x', args }, b: { url: 'https://h', headers } },
      }),
    });
    const hidden = hiddenIn(join(folder.path, 'mcp.json'), env).filter(value => value !== '');
    assert.deepEqual([...new Set(hidden)], [env.TOKEN, env.DATABASE, env.HOOK, env.BASIC, env.BASE64]);
  });

  it('tells where a server is without what variables hold', () => {
    const remote = { type: 'sse', url: `https://\${U}@h/x?key=\${K}`, headers: {} } as const;
    assert.equal(placeOf(remote), 'https://h/x');
    assert.equal(placeOf({ type: 'stdio', command: 'npx', args: ['a', `\${K}`], env: {} }), `npx a \${K}`);
  });
});
