import assert from 'node:assert/strict';
import { mapStrings, redactor, secretFinder, secretsIn, streamRedactor } from '../../src/engine/redact.ts';
import type { RunEvent } from '../../src/protocol/run.ts';

const secret = 'sk-ant/"quo+ted"=41% Ünïcode';

describe('redact', () => {
  it('hides a secret in every usual spelling, and leaves the rest alone', () => {
    const redact = redactor([secret]).text;
    const spellings = [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      encodeURIComponent(secret).toLowerCase(),
      new URLSearchParams({ key: secret }).toString().slice('key='.length),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('base64url'),
    ];
    for (const spelling of spellings) {
      assert.equal(redact(`before ${spelling} after`), 'before [redacted] after', spelling);
    }
    assert.equal(redact('sk-ant is only a beginning'), 'sk-ant is only a beginning');
  });

  it('finds a secret inside a longer base64 text at each alignment', () => {
    const redact = redactor([secret]).text;
    for (const before of ['', 'u', 'us', 'use', 'user:']) {
      for (const after of ['', ':', ':x', ':xy']) {
        const encoded = Buffer.from(before + secret + after).toString('base64');
        assert.match(redact(encoded), /\[redacted\]/, `${before}|${after}`);
      }
    }
  });

  it('finds it also where it is broken into lines, as it is or encoded, and leaves other lines alone', () => {
    const secret = 'tok-abcdefghijklmnopqrstuvwxyz+/0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZ-9876543210';
    const { text } = redactor([secret, 'other-secret-value']);
    for (const encoding of ['base64', 'hex', 'utf8'] as const) {
      for (const before of ['', 'x', 'xx ']) {
        const lines =
          Buffer.from(`${before}${secret} end`)
            .toString(encoding)
            .match(/.{1,32}/g) ?? [];
        for (const end of ['\n', '\r\n', '\n  ', '\\n']) {
          const shown = text(`It is:\n${lines.join(end)}.\nBye.`);
          const [head = '', tail = '', ...more] = shown.split('[redacted]');
          assert.deepEqual(more, [], shown);
          assert.ok(head.startsWith('It is:\n') && tail.endsWith('.\nBye.'), shown);
          assert.ok(head.length < 14 && tail.length < 24, shown);
        }
      }
    }
    assert.equal(text('a\n  b\r\nother-\n secret-value c\n\td\\n'), 'a\n  b\r\n[redacted] c\n\td\\n');
    const other = `${'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo'.repeat(2)}\n${'YWJj'.repeat(9)}\nwords of others\n`;
    assert.equal(text(other), other);
    for (const long of ['a'.repeat(9_000_000), ' '.repeat(1_000_000), `${'YWJj'.repeat(19)}\n`.repeat(5_000)])
      assert.equal(text(long).length, long.length);
  });

  it('finds in an address also pieces of a long one, what stands between its letters, and base64 of base64', () => {
    const secret = 'tok-abcdefghijklmnopqrstuvwxyz+/0123456789';
    const finds = secretFinder([secret, 'https://hooks.test/services/T0123/B4567/abcdefgh', 'short-key']);
    const base64 = Buffer.from(secret).toString('base64');
    const held = [
      `?a=${secret.slice(0, 22)}&b=${secret.slice(22)}`,
      `?${[...secret].join('.')}`,
      `?${base64.replace(/.{20}/g, '$&%0A')}`,
      `?${Buffer.from(base64).toString('base64url')}`,
      `?${Buffer.from(base64.slice(4)).toString('base64').slice(4, 40)}`,
      '/services/T0123/B4567/abcdefgh',
      '?short-key',
    ];
    for (const text of held) assert.equal(finds(`https://open.test/${text}`), true, text);
    const free = [
      'https://hooks.test/services/T0123/other',
      'https://open.test/?q=abcdefghijk',
      'https://open.test/?short',
    ];
    for (const text of free) assert.equal(finds(text), false, text);
  });

  it('leaves values of fewer than eight characters alone', () => {
    assert.equal(redactor(['1234567']).text('1234567 12345678'), '1234567 12345678');
    assert.equal(redactor(['12345678']).text('1234567 12345678'), '1234567 [redacted]');
  });

  it('leaves no tail of a longer secret that begins with a shorter one', () => {
    const redact = redactor(['password', 'password-of-the-second']).text;
    assert.equal(redact('password-of-the-second password'), '[redacted] [redacted]');
  });

  it('redacts deep inside values, names of properties included', () => {
    const value = mapStrings({ [secret]: [{ a: `x${secret}` }, 1, null, true] }, redactor([secret]).text);
    assert.deepEqual(value, { '[redacted]': [{ a: 'x[redacted]' }, 1, null, true] });
  });

  describe('of a stream', () => {
    const secrets = ['password', 'password-of-the-second', 'aabaabaac', secret];
    const texts = [
      `so ${secret} it is`,
      'password-of-the-second, password-of-the, password',
      'aabaabaabaac aabaabaacaabaabaac aabaabaa',
      `${Buffer.from(secret).toString('base64')}|${encodeURIComponent(secret)}|sk-a`,
    ];

    it('reads the same as the whole, cut at any one place or into single characters', () => {
      for (const text of texts) {
        const whole = redactor(secrets).text(text);
        for (let at = 0; at <= text.length; at++) {
          const stream = streamRedactor(secrets);
          assert.equal(stream.push(text.slice(0, at)) + stream.push(text.slice(at)) + stream.flush(), whole);
        }
        const stream = streamRedactor(secrets);
        assert.equal([...text].map(character => stream.push(character)).join('') + stream.flush(), whole);
      }
    });

    it('holds back only what could become a secret', () => {
      const stream = streamRedactor(['password']);
      assert.equal(stream.push('Hello, p'), 'Hello, ');
      assert.equal(stream.push('eople'), 'people');
      assert.equal(stream.push(' pass'), ' ');
      assert.equal(stream.flush(), 'pass');
    });
  });

  it('redacts events, a secret split over text deltas included, and keeps their order', async () => {
    async function* events(): AsyncGenerator<RunEvent> {
      yield { type: 'text', text: 'the pass' };
      yield { type: 'text', text: 'word is pass' };
      yield {
        type: 'tool_start',
        call: { id: '1', name: 'run_command', input: { command: 'echo password' } },
      };
    }
    const seen: RunEvent[] = [];
    for await (const event of redactor(['password']).events(events())) seen.push(event);
    assert.deepEqual(seen, [
      { type: 'text', text: 'the ' },
      { type: 'text', text: '[redacted] is ' },
      { type: 'text', text: 'pass' },
      { type: 'tool_start', call: { id: '1', name: 'run_command', input: { command: 'echo [redacted]' } } },
    ]);
  });

  it('hides what it learns while the events go by, also where its beginning is held back already', async () => {
    const redact = redactor(['password']);
    async function* events(): AsyncGenerator<RunEvent> {
      yield { type: 'text', text: 'token-one is pass' };
      redact.learn(['token-one', 'passenger']);
      yield { type: 'text', text: 'enger, token-' };
      yield { type: 'text', text: 'one' };
      yield { type: 'notice', level: 'info', message: 'token-one and password' };
      yield { type: 'text', text: 'tok' };
      redact.learn(['token-two']);
      yield { type: 'notice', level: 'info', message: redact.text('token-two') };
    }
    const seen: RunEvent[] = [];
    for await (const event of redact.events(events())) seen.push(event);
    const text = seen.map(event => (event.type === 'text' ? event.text : '|')).join('');
    assert.equal(text, 'token-one is [redacted], [redacted]|tok|');
    const notices = seen.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    assert.deepEqual(notices, ['[redacted] and [redacted]', '[redacted]']);
  });

  it('finds in an address what it has learned meanwhile, as well as what it knew', () => {
    const redact = redactor(['token-one']);
    const query = `https://x.test/?q=${Buffer.from('pass-of-server').toString('hex')}`;
    assert.deepEqual([redact.finds('x=%2574oken-one'), redact.finds(query)], [true, false]);
    redact.learn(['pass-of-server']);
    assert.deepEqual([redact.finds('x=%2574oken-one'), redact.finds(query)], [true, true]);
  });

  it('takes for secrets what is named like one, and addresses with a password in them', () => {
    const env = {
      GITHUB_PAT: 'pat',
      DB_PASSWD: 'passwd',
      NPM_AUTH: 'auth',
      HOOK_WEBHOOK_URL: 'https://hooks.test/x',
      DATABASE_URL: 'postgres://me:a-long-password@db.test/x',
      LOCAL_URL: 'postgres://postgres:postgres@localhost/x',
      PWD: '/home/me',
      OLDPWD: '/home',
      PATH: '/bin',
      SITE: 'https://example.test:8080/x',
    };
    assert.deepEqual(secretsIn(env), [
      ...['pat', 'passwd', 'auth', 'https://hooks.test/x'],
      ...['postgres://me:a-long-password@db.test/x', 'a-long-password'],
      'postgres://postgres:postgres@localhost/x',
    ]);
  });
});
