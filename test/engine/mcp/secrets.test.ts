import assert from 'node:assert/strict';
import { literalSecrets, secretsInBroken } from '../../../src/engine/mcp/secrets.ts';
import { redactor } from '../../../src/engine/redact.ts';

/** What of a text is left when the secrets of an entry are hidden in it. */
const hiding = (entry: unknown, text: string): string => redactor(literalSecrets(entry)).text(text);

describe('Secrets written into an mcp.json', () => {
  const mark = '[redacted]';

  it('are hidden wherever they stand in an entry', () => {
    const random = 'q7Rw2ZkP9xT4mB6v';
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMiJ9.dBjftJeZ4CVP';
    const found: [object, string][] = [
      [{ headers: { Authorization: `Bearer ${random}` } }, random],
      [{ headers: { Authorization: 'Bearer wordsalone' } }, 'wordsalone'],
      [{ headers: { Authorization: `Basic ${btoa('me:opensesame')}` } }, 'opensesame'],
      [{ headers: { 'X-Api-Key': 'hunter-hunter' } }, 'hunter-hunter'],
      [{ headers: { 'X-Whatever': random } }, random],
      [{ headers: { Cookie: 'theme=dark; session=opensesame' } }, 'opensesame'],
      [{ headers: { Authorization: `Bearer ${jwt}` } }, jwt],
      [{ env: { DB_PASSWORD: 'pa$$,w|rd;x' } }, 'pa$$,w|rd;x'],
      [{ env: { GITHUB_PAT: 'lettersonly' } }, 'lettersonly'],
      [{ env: { PIN_TOKEN: 123456789 } }, '123456789'],
      [{ env: { WHATEVER: 'ghp_abcdefghijk0123456' } }, 'ghp_abcdefghijk0123456'],
      [{ env: { LICENSE: 'AB12-CD34-EF56-GH78' } }, 'AB12-CD34-EF56-GH78'],
      [{ env: { DATABASE: 'postgres://me:pw@db.example.com/x' } }, 'postgres://me:pw@'],
      [{ env: { HOOK: `https://hooks.example.com/s/${random}` } }, random],
      [{ env: { OPTIONS: '{"token": "opensesame", "level": 3}' } }, 'opensesame'],
      [{ env: { MIXED: `\${USER_NAME}:${random}` } }, random],
      [{ args: ['--api-key', 'opensesame'] }, 'opensesame'],
      [{ args: ['--token=opensesame'] }, 'opensesame'],
      [{ args: ['run', '-e', 'API_KEY=opensesame', 'image'] }, 'opensesame'],
      [{ args: ['--header', 'Authorization: Bearer opensesame'] }, 'opensesame'],
      [{ args: ['--header', 'Authorization:opensesame'] }, 'opensesame'],
      [{ args: [`https://h/mcp?access_token=opensesame`] }, 'opensesame'],
      [{ args: ['postgresql://me:opensesame@db/x'] }, 'opensesame'],
      [{ args: ['xoxb-1234567890-abcdef'] }, 'xoxb-1234567890-abcdef'],
      [{ url: 'https://me:open%21sesame@h/mcp' }, 'open!sesame'],
      [{ url: 'https://h/mcp?api_key=opensesame&x=1' }, 'opensesame'],
      [{ url: `https://h/s/${random}/mcp` }, random],
      [{ oauth: { clientSecret: 'opensesame' } }, 'opensesame'],
      [{ disabled: true, headers: { token: 'opensesame' } }, 'opensesame'],
    ];
    for (const [entry, secret] of found)
      assert.doesNotMatch(
        hiding({ mcpServers: { one: entry } }, `It said ${secret}.`),
        new RegExp(secret.replace(/[^\w]/g, '\\$&')),
        JSON.stringify(entry),
      );
  });

  it('are not mistaken for words, numbers, paths, hosts, packages and names of models', () => {
    const plain = {
      command: 'npx',
      args: [
        ...['-y', '@modelcontextprotocol/server-everything@2025.12.18', 'streamableHttp', '--verbose=true'],
        ...['/srv/projects/2024-review/notes', '~/notes', './sub/server.js', '--model', 'claude-sonnet-4-6'],
        ...['https://example.com/documents/page?version=2025-06-18', '--name', 'production', 'node:fs'],
      ],
      env: {
        ...{
          NODE_ENV: 'production',
          VERBOSE: 'true',
          PORT: '8080',
          REGION: 'eu-central-1',
          LOCALE: 'de_DE.UTF-8',
        },
        PATH: '/usr/local/bin:/usr/bin',
        SORT_KEY: 'created_at',
        MODEL: 'gpt-5.4-mini-2026-03-05',
        HOST: 'api.example.com:8443',
        TOKEN_TYPE: 'application',
        TOKEN_FILE: '/run/secrets/token',
        ...{
          CREDENTIALS: 'secrets/credentials.json',
          KEYS: '~/.keys/one.txt',
          BASE: 'https://api.example.com/v1',
        },
        NODE_OPTIONS: '--max-old-space-size=4096',
        GREETING: 'Good morning, everybody!',
      },
      headers: {
        Accept: 'application/json, text/event-stream',
        'User-Agent': 'Telos/1.2.3',
        'X-Team': 'research',
      },
      url: 'https://example.com/mcp/documents?version=2025-06-18',
    };
    const long = literalSecrets({ mcpServers: { plain } }).filter(secret => secret.length >= 8);
    assert.deepEqual(long, []);
  });

  it('do not let a file blot out a command or a host that a person is asked about', () => {
    const hidden = [
      'rm -rf notes',
      'collect.example.com',
      'collect.example.com/x7f3a9d2e1',
      'me@collect.example.com',
      'https://collect.example.com/',
      '/home/me/notes',
      '.ssh/id_rsa',
      'work/secret-plans',
    ];
    const env = Object.fromEntries(hidden.map((value, index) => [`N${index}_TOKEN`, value]));
    for (const said of hidden) assert.equal(hiding({ env }, said), said);
    const withPassword = { env: { BASE: 'https://me:opensesame@collect.example.com/x' } };
    assert.equal(hiding(withPassword, withPassword.env.BASE), `${mark}collect.example.com/x`);
  });

  it('are found in a file that is no JSON', () => {
    const broken = '{"mcpServers": {"a": {"env": {"API_TOKEN": "opensesame", "NODE_ENV": "production",}';
    assert.equal(redactor(secretsInBroken(broken)).text(broken), broken.replace('opensesame', mark));
  });

  it('looks once at each place of a file, whatever is written there to keep it busy', () => {
    const texts = ['\\"', '"a":"\\"', '"a', 'a=', '":', '${', 'a:', '/a1', 'x '].map(part =>
      part.repeat(100_000),
    );
    const started = process.cpuUsage();
    for (const text of texts) {
      secretsInBroken(`{"env":"${text}`);
      literalSecrets({ env: { API_TOKEN: text, args: [text] } });
    }
    const { user } = process.cpuUsage(started);
    assert.ok(user < 10_000_000, `it took ${Math.round(user / 1000)} ms of the processor`);
  });
});
