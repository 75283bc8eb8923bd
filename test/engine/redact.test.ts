import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
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

  it('hides the new ones of several secrets, of which it knows one', () => {
    const redact = redactor(['known-secret-1']);
    redact.learn(['known-secret-1', 'later-secret-2']);
    assert.equal(redact.text('known-secret-1 later-secret-2'), '[redacted] [redacted]');
    assert.deepEqual([redact.finds('later-secret-2'), redact.finds('other')], [true, false]);
    redact.learn(['third-secret-3', 'known-secret-1']);
    assert.equal(redact.text('a third-secret-3'), 'a [redacted]');
    redact.learn([]);
    assert.equal(redact.text('a third-secret-3'), 'a [redacted]');
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

  describe('of a secret of several lines', () => {
    const key = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    }).privateKey;
    const lines = key.split('\n').filter(line => line.length >= 24);
    const kinds = {
      lines: key,
      'lines with CRLF': key.replaceAll('\n', '\r\n'),
      'one line with \\n': key.replaceAll('\n', '\\n'),
    };

    it('hides each long line alone: indented, in base64 and hexadecimal, cut anew, and in a stream', () => {
      for (const [kind, value] of Object.entries(kinds)) {
        const redact = redactor([value]).text;
        for (const line of lines) {
          assert.equal(redact(`  key: ${line}\r\n`), '  key: [redacted]\r\n', kind);
          for (const before of ['', 'x', 'xx'])
            assert.match(
              redact(Buffer.from(before + line).toString('base64')),
              /^.{0,3}\[redacted\].{0,3}$/,
              kind,
            );
          assert.equal(redact(Buffer.from(line).toString('hex')), '[redacted]', kind);
        }
        const body = lines.slice(1, -1).join('');
        const cutAnew = redact((body.match(/.{1,76}/g) ?? []).join('\n  '));
        for (let at = 0; at + 12 < body.length; at++)
          assert.ok(!cutAnew.includes(body.slice(at, at + 12)), kind);
        const stream = streamRedactor([value]);
        const shown =
          [...`It is ${lines[3]} there.`].map(letter => stream.push(letter)).join('') + stream.flush();
        assert.equal(shown, 'It is [redacted] there.', kind);
      }
    });

    it('finds a line of it in an address, but not what is the same in every key', () => {
      const finds = secretFinder([key.replaceAll(' PRIVATE', ' RSA PRIVATE')]);
      for (const line of lines.slice(1, -1))
        assert.equal(finds(`https://x.test/?q=${encodeURIComponent(line)}`), true);
      assert.equal(finds('https://x.test/?q=-----BEGIN%20RSA%20PRIVATE%20KEY-----'), false);
    });

    it('takes a key of very many lines, and a long text, without delay', () => {
      const many = Array.from({ length: 4_000 }, () => randomBytes(24).toString('hex'));
      const redact = redactor([many.join('\n')]).text;
      const text = `${'QUJDREVG '.repeat(100_000)}${many[3_999]}`;
      assert.ok(redact(text).endsWith(' [redacted]'));
    });
  });

  it('finds in an address also what is backwards, in ROT13, or half of it', () => {
    const secret = 'sk-ant-api03-QwErTyUiOpAsDfGhJkLz0123';
    const finds = secretFinder([
      secret,
      'open-sesame-9',
      'https://hooks.test/services/T0123/B4567/aBcD3fGh1JkLmN0p',
    ]);
    const reversed = (text: string): string => [...text].reverse().join('');
    const rot13 = (text: string): string =>
      text.replace(/[a-z]/gi, letter => {
        const alphabet = letter < 'a' ? 'ABCDEFGHIJKLMNOPQRSTUVWXYZ' : 'abcdefghijklmnopqrstuvwxyz';
        return alphabet[(alphabet.indexOf(letter) + 13) % 26]!;
      });
    const held = [
      ...[
        reversed(secret),
        rot13(secret),
        rot13(reversed(secret)),
        reversed(Buffer.from(secret).toString('base64')),
      ],
      ...[secret.slice(0, 17), secret.slice(-15), secret.slice(10, 25), reversed(secret.slice(-15))],
      ...[reversed('open-sesame-9'), rot13('open-sesame-9'), 'aBcD3fGh1JkLmN0p', rot13('aBcD3fGh1JkLmN0p')],
    ];
    for (const text of held)
      assert.equal(finds(`https://open.test/?q=${encodeURIComponent(text)}`), true, text);
  });

  it('does not take ordinary addresses and random words for pieces of a secret', () => {
    const finds = secretFinder([
      ...['sk-ant-api03-QwErTyUiOpAsDfGhJkLz0123', 'MyStagingPassWord2024', 'correct-horse-battery-staple'],
      ...[
        'postgres://admin:a-long-password@db.internal.test:5432/customers',
        randomBytes(32).toString('hex'),
      ],
    ]);
    const free = [
      'https://docs.test/en/api/getting-started?ref=sk-ant-api03-&utm_source=newsletter&utm_campaign=2024-spring',
      'https://example.test/a/very/long/path/with/many/words/and/numbers/1234567890/customers?page=12&sort=desc#top',
      'https://example.test/staging/password/reset?correct=yes&battery=full',
      'https://cdn.test/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08/app.min.js',
      'https://db.internal.test:5432/customers',
      'The quick brown fox jumps over the lazy dog, and reads the staging password policy of 2024.',
    ];
    for (const text of free) assert.equal(finds(text), false, text);
    for (let count = 0; count < 10_000; count++) {
      const random = randomBytes(30).toString(count % 2 === 0 ? 'base64url' : 'hex');
      assert.equal(finds(`https://example.test/${random}`), false, random);
    }
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
    const shown = redactor(['password']).events();
    for await (const event of events()) seen.push(...shown(event));
    assert.deepEqual(seen, [
      { type: 'text', text: 'the ' },
      { type: 'text', text: '[redacted] is ' },
      { type: 'text', text: 'pass' },
      { type: 'tool_start', call: { id: '1', name: 'run_command', input: { command: 'echo [redacted]' } } },
    ]);
  });

  it('redacts what a model thinks, and gives each piece to the kind that it was written in', () => {
    const shown = redactor(['password']).events();
    const events: RunEvent[] = [
      { type: 'reasoning', text: 'the pass' },
      { type: 'reasoning', text: 'word is pass' },
      { type: 'text', text: 'word, pass' },
      { type: 'reasoning', text: 'password' },
      { type: 'reasoning', text: '', durationMs: 7 },
    ];
    assert.deepEqual(events.flatMap(shown), [
      { type: 'reasoning', text: 'the ' },
      { type: 'reasoning', text: '[redacted] is ' },
      { type: 'reasoning', text: 'pass' },
      { type: 'text', text: 'word, ' },
      { type: 'text', text: 'pass' },
      { type: 'reasoning', text: '[redacted]' },
      { type: 'reasoning', text: '', durationMs: 7 },
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
    const shown = redact.events();
    for await (const event of events()) seen.push(...shown(event));
    const text = seen.map(event => (event.type === 'text' ? event.text : '|')).join('');
    assert.equal(text, 'token-one is [redacted], [redacted]|tok|');
    const notices = seen.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    assert.deepEqual(notices, ['[redacted] and [redacted]', '[redacted]']);
  });

  it('hides what it learns although all of it is held back already', () => {
    const redact = redactor(['password-of-one']);
    const shown = redact.events();
    assert.deepEqual(shown({ type: 'text', text: 'password' }), []);
    redact.learn(['password']);
    const step: RunEvent = { type: 'notice', level: 'info', message: 'on' };
    assert.deepEqual(shown(step), [{ type: 'text', text: '[redacted]' }, step]);
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
