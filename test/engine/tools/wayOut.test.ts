/** Requests leave through the proxy of the environment, and a bad proxy or certificate is said as such, once. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { loadConfig } from '../../../src/engine/config.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import type { StreamEvent } from '../../../src/engine/core/ports.ts';
import { createProvider, Models } from '../../../src/engine/providers/create.ts';
import { fetchOut } from '../../../src/engine/tools/fetchOut.ts';
import { fetchPage } from '../../../src/engine/tools/fetchPage.ts';
import { runGit, serverEnvironment } from '../../../src/engine/tools/gitStart.ts';
import { followProxies, proxyFor } from '../../../src/engine/tools/wayOut.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { listen } from '../../fakes/loopback.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { type FakeProxy, type ProxyOptions, startProxy } from '../../fakes/proxyServer.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

const never = new AbortController().signal;
const portOf = (url: string): number => Number(new URL(url).port);

describe('the way out', () => {
  const temp = tempFolder();
  after(() => temp.remove());
  const open: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    followProxies({});
    await Promise.all(open.splice(0).map(one => one.close()));
  });

  const kept = <One extends { close(): Promise<unknown> }>(one: One): One => {
    open.push(one);
    return one;
  };

  const proxyTo = async (
    ports: ProxyOptions['ports'],
    more: Partial<ProxyOptions> = {},
  ): Promise<FakeProxy> => kept(await startProxy({ ports, ...more }));

  /** Returns the events of one answer with these variables. */
  async function ask(env: Record<string, string>): Promise<StreamEvent[]> {
    const config = loadConfig({ env, home: temp.path, cwd: temp.path });
    const models = new Models(config);
    const provider = await createProvider(config, await models.choice());
    const events: StreamEvent[] = [];
    const request = {
      system: '',
      messages: [{ role: 'user' as const, content: 'hello' }],
      tools: [],
      maxTokens: 100,
    };
    for await (const event of provider.streamCompletion(request, never)) events.push(event);
    return events;
  }

  it('waits for a silent model as long as it may, and not as long as Node’s own client does', async () => {
    const answer = async (_: unknown, response: ServerResponse): Promise<void> => {
      await delay(1_700);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"choices":[{"index":0,"delta":{"content":"slow "}}]}\n\n');
      await delay(1_700);
      response.end(
        'data: {"choices":[{"index":0,"delta":{"content":"but right"},"finish_reason":"stop"}]}\n\n',
      );
    };
    const { address } = kept(await listen(answer));
    await fetch(address.replace(/\d+$/, '9')).catch(() => undefined); // makes Node load its client
    const place = globalThis as unknown as Record<symbol, { constructor: new (options: object) => never }>;
    const usual = Symbol.for('undici.globalDispatcher.1');
    const { [usual]: before } = place;
    assert.ok(before, 'Node keeps what sends its requests elsewhere by now');
    // In place of five minutes.
    place[usual] = new before.constructor({ headersTimeout: 300, bodyTimeout: 300 });
    try {
      await assert.rejects(fetch(address), { message: 'fetch failed' });
      const env = { OPENAI_BASE_URL: address, TELOS_PROVIDER: 'openai', TELOS_MODEL: 'm' };
      assert.equal(textOf(await ask(env)), 'slow but right');
      const brief = await ask({ ...env, TELOS_PATIENCE: '0.01' }).catch((error: Error) => error.message);
      assert.match(String(brief), /^The model did not answer within 1 seconds\./);
      await assert.rejects(
        ask({ ...env, TELOS_PATIENCE: 'long' }),
        /TELOS_PATIENCE is 'long', which is not a number of minutes/,
      );
    } finally {
      place[usual] = before;
    }
  });

  const textOf = (events: readonly StreamEvent[]): string =>
    events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('');

  /** Returns the error of an answer, and how often it was tried again. */
  async function problemOf(env: Record<string, string>): Promise<string> {
    return ask(env).then(
      events => assert.fail(`it answered: ${textOf(events)}`),
      error => {
        assert.ok(error instanceof TelosError);
        return error.message;
      },
    );
  }

  it('of every provider is the proxy, by the whole address for plain http', async () => {
    const chat = kept(await startOpenaiServer({ turns: [{ text: ['by chat'] }] }));
    const messages = kept(await startAnthropicServer({ turns: [{ text: ['by messages'] }] }));
    const proxy = await proxyTo({ 'chat.test': portOf(chat.url), 'messages.test': portOf(messages.url) });
    const env = { HTTP_PROXY: proxy.url, no_proxy: 'other.test' };
    assert.equal(
      textOf(await ask({ ...env, OPENAI_BASE_URL: 'http://chat.test/v1', TELOS_MODEL: 'm' })),
      'by chat',
    );
    const anthropic = { ANTHROPIC_BASE_URL: 'http://messages.test', ANTHROPIC_API_KEY: 'k' };
    assert.equal(textOf(await ask({ ...env, ...anthropic })), 'by messages');
    assert.deepEqual(proxy.asked, [
      'POST http://chat.test/v1/chat/completions',
      'POST http://messages.test/v1/messages',
    ]);
  });

  it('of pages is the proxy, also for a name that this machine cannot resolve', async () => {
    const page = kept(await startOpenaiServer({ turns: [], other: () => ({ said: 'a page' }) }));
    const proxy = await proxyTo({ 'pages.test': portOf(page.url) });
    followProxies({ http_proxy: proxy.url.replace('http://', '') });
    const unresolved = () => Promise.reject(new Error('ENOTFOUND'));
    const { content } = await fetchPage('http://pages.test/one', undefined, unresolved, never);
    assert.match(String(content), /a page/);
    assert.deepEqual(proxy.asked, ['GET http://pages.test/one']);
    const inward = () => Promise.resolve([{ address: '169.254.169.254', family: 4 }]);
    await assert.rejects(fetchPage('http://pages.test/two', undefined, inward, never), /metadata/);
  });

  it('of git is the proxy, in whatever letters its variable is written', async () => {
    const page = kept(await startOpenaiServer({ turns: [], other: () => ({ said: 'no repository' }) }));
    const proxy = await proxyTo({ 'git.test': portOf(page.url) });
    for (const [name, host] of [
      ['HTTP_PROXY', 'git.test'],
      ['http_proxy', 'git.test'],
      ['https_proxy', 'secure.test'],
      ['HTTPS_PROXY', 'secure.test'],
    ] as const) {
      const env = serverEnvironment({ PATH: process.env['PATH'], HOME: temp.path, [name]: proxy.url });
      const scheme = /s_/i.test(name) ? 'https' : 'http';
      await runGit('git', ['ls-remote', `${scheme}://${host}/a.git`], { cwd: temp.path, env });
    }
    const refs = 'GET http://git.test/a.git/info/refs?service=git-upload-pack';
    const asked = proxy.asked.filter(one => !one.endsWith('/HEAD'));
    assert.deepEqual(asked, [refs, refs, 'CONNECT secure.test:443', 'CONNECT secure.test:443']);
  });

  it('brings the login of its address, and a proxy that wants another is said once, with what to set', async () => {
    const chat = kept(await startOpenaiServer({ turns: [{ text: ['in'] }] }));
    const proxy = await proxyTo({ 'chat.test': portOf(chat.url) }, { login: 'me:p@ss' });
    const env = { OPENAI_BASE_URL: 'http://chat.test/v1', TELOS_MODEL: 'm' };
    const known = proxy.url.replace('//', '//me:p%40ss@');
    assert.equal(textOf(await ask({ ...env, HTTP_PROXY: known })), 'in');
    const problem = await problemOf({ ...env, HTTP_PROXY: proxy.url.replace('//', '//me:secret@') });
    assert.match(problem, /^The proxy 127\.0\.0\.1:\d+ wants a name and a password.*HTTP_PROXY \(407\)/);
    assert.doesNotMatch(problem, /secret/);
    const secure = { OPENAI_BASE_URL: 'https://chat.test/v1', TELOS_MODEL: 'm', HTTPS_PROXY: proxy.url };
    assert.match(await problemOf(secure), /name and a password.*HTTPS_PROXY \(407\)/);
    assert.equal(proxy.asked.length, 3, 'no second try');
  });

  it('that is no proxy, or opens no way, is said by its variable', async () => {
    const env = { OPENAI_BASE_URL: 'https://chat.test/v1', TELOS_MODEL: 'm' };
    const socks = 'socks5://me:secret@127.0.0.1:9';
    assert.match(
      await problemOf({ ...env, HTTPS_PROXY: socks }),
      /^HTTPS_PROXY is 'socks5:\/\/127\.0\.0\.1:9', which is no proxy over http or https\./,
    );
    followProxies({ https_proxy: 'http://127.0.0.1:9' });
    await assert.rejects(
      fetchOut('https://chat.test/'),
      /^TelosError: The proxy 127\.0\.0\.1:9 cannot be reached/,
    );
    const proxy = await proxyTo({});
    followProxies({ https_proxy: proxy.url });
    await assert.rejects(fetchOut('https://chat.test/'), /opens no way to chat\.test:443 \(502\)/);
  });

  it('that breaks off in the middle of an answer is a lost connection', async () => {
    const hold = { behind: 'one', until: new Promise(() => undefined) };
    const chat = kept(await startOpenaiServer({ turns: [{ text: ['one ', 'two ', 'three'], hold }] }));
    const proxy = await proxyTo({ 'chat.test': portOf(chat.url) }, { cutAfterBytes: 100 });
    const env = { HTTP_PROXY: proxy.url, OPENAI_BASE_URL: 'http://chat.test/v1', TELOS_MODEL: 'm' };
    assert.match(await problemOf(env), /was lost in the middle of an answer/);
  });

  it('leaves out this machine and what NO_PROXY names', () => {
    const isOut = (list: string, address: string): boolean => {
      followProxies({ HTTP_PROXY: 'http://p:1', HTTPS_PROXY: 'http://p:1', NO_PROXY: list });
      return proxyFor(new URL(address)) === undefined;
    };
    for (const [list, address, isLeftOut] of [
      ['', 'http://localhost:11434/v1', true],
      ['', 'https://api.example.com', false],
      ['*', 'https://api.example.com', true],
      ['example.com', 'https://api.example.com', true],
      ['.example.com', 'https://example.com', true],
      ['*.example.com, b.org', 'https://b.org', true],
      ['ample.com', 'https://example.com', false],
      ['example.com:8443', 'https://example.com', false],
      ['example.com:8443', 'https://example.com:8443', true],
      ['10.0.0.0/8', 'http://10.1.2.3', true],
      ['10.0.0.0/8', 'http://11.1.2.3', false],
      ['[fd00::1]', 'http://[fd00::1]:80', true],
    ] as const)
      assert.equal(isOut(list, address), isLeftOut, `${list} ${address}`);
  });

  it('is the one of ALL_PROXY where no other is named, unless that is of another kind', () => {
    const at = (env: Record<string, string>): string | undefined => {
      followProxies(env);
      return proxyFor(new URL('https://api.example.com'))?.url.host;
    };
    assert.equal(at({ ALL_PROXY: 'http://all:1' }), 'all:1');
    assert.equal(at({ all_proxy: 'http://all:1', HTTPS_PROXY: 'http://own:1' }), 'own:1');
    assert.equal(at({ ALL_PROXY: 'socks5://all:1' }), undefined);
  });

  it('is shown without its login', () => {
    const env = {
      HTTPS_PROXY: 'http://me:p@ss@proxy.test:3128',
      http_proxy: 'me:word@proxy.test:1',
      NO_PROXY: 'a.test',
    };
    const { origins } = loadConfig({ env, home: temp.path, cwd: temp.path });
    assert.deepEqual(
      ['HTTPS_PROXY', 'http_proxy', 'NO_PROXY'].map(name => origins[name]?.value),
      ['http://proxy.test:3128', 'proxy.test:1', 'a.test'],
    );
  });

  describe('over https', () => {
    /** Starts a server with a certificate for `secure.test` that nobody knows. */
    async function startSecure(): Promise<{ port: number; cert: string; count: () => number }> {
      const [cert, key] = [join(temp.path, 'server.pem'), join(temp.path, 'server.key')];
      const args = [
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=secure.test',
      ];
      const files = ['-addext', 'subjectAltName=DNS:secure.test,IP:127.0.0.1', '-keyout', key, '-out', cert];
      execFileSync('openssl', [...args, ...files], { stdio: 'ignore' });
      let count = 0;
      const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) =>
        response.end('safe'),
      );
      server.on('connection', () => count++);
      await new Promise<void>(settle => server.listen(0, '127.0.0.1', settle));
      kept({
        close: () =>
          new Promise(settle => {
            server.closeAllConnections();
            server.close(settle);
          }),
      });
      return { port: (server.address() as AddressInfo).port, cert, count: () => count };
    }

    it('is a tunnel, in which the certificate of the server counts', async () => {
      const { port, cert } = await startSecure();
      const proxy = await proxyTo({ 'secure.test': port });
      const modules = ['wayOut', 'fetchOut', 'checkedFetch'].map(
        name => new URL(`../../../src/engine/tools/${name}.ts`, import.meta.url),
      );
      const script = `
        const [{ followProxies }, { fetchOut }, { checkedFetch }] = await Promise.all(${JSON.stringify(modules)}.map(one => import(one)));
        followProxies(process.env);
        for (const get of [fetchOut, checkedFetch]) console.log(await (await get('https://secure.test/x')).text());`;
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
        env: { PATH: process.env['PATH'], HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: cert },
      });
      assert.deepEqual(stdout.split('\n'), ['safe', 'safe', '']);
      assert.deepEqual(proxy.asked, ['CONNECT secure.test:443', 'CONNECT secure.test:443']);
    });

    it('ends at once at a certificate that has expired meanwhile, trusted or not', async () => {
      const [request, key, cert, names] = ['old.csr', 'old.key', 'old.pem', 'old.cnf'].map(name =>
        join(temp.path, name),
      ) as [string, string, string, string];
      writeFileSync(names, 'subjectAltName=IP:127.0.0.1\n');
      const openssl = (...args: string[]): Buffer => execFileSync('openssl', args, { stdio: 'ignore' });
      openssl(
        'req',
        '-new',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-subj',
        '/CN=old',
        '-keyout',
        key,
        '-out',
        request,
      );
      const days = ['-days', '-1', '-extfile', names];
      openssl('x509', '-req', '-in', request, '-signkey', key, ...days, '-out', cert);
      let count = 0;
      const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) });
      server.on('connection', () => count++).on('tlsClientError', () => undefined);
      await new Promise<void>(settle => server.listen(0, '127.0.0.1', settle));
      kept({ close: () => new Promise(settle => server.close(settle)) });
      const at = (path: string): string =>
        JSON.stringify(new URL(`../../../src/engine/${path}.ts`, import.meta.url));
      const script = `
        const { loadConfig } = await import(${at('config')});
        const { createProvider, Models } = await import(${at('providers/create')});
        const config = loadConfig();
        const provider = await createProvider(config, await new Models(config).choice());
        const request = { system: '', messages: [{ role: 'user', content: 'x' }], tools: [], maxTokens: 10 };
        try {
          for await (const event of provider.streamCompletion(request, AbortSignal.timeout(20_000))) console.log(event.type);
        } catch (error) {
          console.log(error.message);
        }`;
      const { port } = server.address() as AddressInfo;
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
        cwd: temp.path,
        env: {
          PATH: process.env['PATH'],
          HOME: temp.path,
          OPENAI_BASE_URL: `https://127.0.0.1:${port}/v1`,
          TELOS_MODEL: 'm',
          NODE_EXTRA_CA_CERTS: cert,
        },
      });
      assert.match(
        stdout,
        /^The certificate of 127\.0\.0\.1:\d+ is not valid at this time \(CERT_HAS_EXPIRED\)\. Check the clock/,
      );
      assert.equal(count, 1, 'asked once');
    });

    it('ends at once at a certificate that is not trusted, and says what to set', async () => {
      const { port, count } = await startSecure();
      const address = `https://127.0.0.1:${port}`;
      for (const env of [
        { OPENAI_BASE_URL: `${address}/v1`, TELOS_MODEL: 'm' },
        { ANTHROPIC_BASE_URL: address, ANTHROPIC_API_KEY: 'k' },
        { OPENAI_BASE_URL: `${address}/v1`, TELOS_MODEL: 'm', TELOS_PROTOCOL: 'native' },
      ]) {
        const before = count();
        const problem = await problemOf(env);
        assert.match(
          problem,
          /^The certificate of 127\.0\.0\.1:\d+ is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)\./,
        );
        assert.match(problem, /NODE_EXTRA_CA_CERTS/);
        assert.doesNotMatch(problem, /Tried/);
        assert.equal(count(), before + 1);
      }
    });
  });
});
