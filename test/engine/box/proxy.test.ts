import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcp,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { dirname } from 'node:path';
import { connect as connectTls, createServer as createTls } from 'node:tls';
import { type CommandProxy, openProxy, type ProxyOptions } from '../../../src/engine/box/proxy.ts';
import type { AskHost } from '../../../src/engine/tools/tool.ts';
import { followProxies } from '../../../src/engine/tools/wayOut.ts';
import { eventually } from '../../eventually.ts';
import { type FakeProxy, startProxy } from '../../fakes/proxyServer.ts';

/** What the local server was sent. */
interface Received {
  method: string;
  url: string;
  headers: string[];
  body: string;
}

/** A key that both ends of a test know, so that TLS needs no certificate. */
const shared = {
  ciphers: 'PSK-AES128-GCM-SHA256',
  maxVersion: 'TLSv1.2',
} as const;

describe('the proxy of the box', () => {
  let web: Server;
  let port: number;
  let received: Received[];
  let proxies: CommandProxy[];
  let asked: string[];
  /** What a person says of a host. Every other one is refused. */
  let answers: Record<string, string | undefined | Promise<string | undefined>>;
  let others: (TcpServer | Socket)[];

  beforeEach(async () => {
    received = [];
    proxies = [];
    asked = [];
    others = [];
    web = createServer((request, response) => {
      let body = '';
      request.on('data', chunk => {
        body += chunk;
      });
      request.on('end', () => {
        received.push({ method: request.method!, url: request.url!, headers: request.rawHeaders, body });
        if (request.url === '/cut') request.socket.destroy();
        else if (request.url === '/part')
          response.write('part', () => setTimeout(() => request.socket.resetAndDestroy(), 2));
        else if (request.url === '/away')
          response.writeHead(302, { location: 'http://elsewhere.internal:81/' }).end();
        else response.writeHead(200, { 'x-a': '1' }).end(`hello ${request.url}`);
      });
    });
    web.on('upgrade', (_request, socket, head) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n');
      socket.write(head);
      socket.pipe(socket);
    });
    web.listen(0, '127.0.0.1');
    await once(web, 'listening');
    port = (web.address() as AddressInfo).port;
    answers = { [`localhost:${port}`]: undefined, [`127.0.0.1:${port}`]: undefined };
  });
  afterEach(async () => {
    await Promise.all(proxies.map(proxy => proxy.end()));
    for (const other of others) 'close' in other ? other.close() : other.destroy();
    web.closeAllConnections();
    web.close();
  });

  const open = async (options: ProxyOptions = {}): Promise<CommandProxy> => {
    const ask: AskHost = async ({ host, port: at, program }) => {
      asked.push(`${program} ${host}:${at}`);
      const name = `${host}:${at}`;
      return name in answers ? answers[name] : 'Denied: no.';
    };
    const proxy = await openProxy('npm', ask, options);
    proxies.push(proxy);
    return proxy;
  };
  const dial = async ({ socket }: CommandProxy, allowHalfOpen = true): Promise<Socket> => {
    const client = connect({ path: socket, allowHalfOpen });
    client.on('error', () => undefined);
    others.push(client);
    await once(client, 'connect');
    return client;
  };
  /** Everything that comes until the proxy ends the connection. */
  const rest = async (client: Socket): Promise<string> => {
    let text = '';
    client.on('data', chunk => {
      text += chunk.toString('latin1');
    });
    await Promise.race([once(client, 'end'), once(client, 'close')]);
    return text;
  };
  const say = async (proxy: CommandProxy, text: string): Promise<string> => {
    const client = await dial(proxy);
    client.write(text, 'latin1');
    return rest(client);
  };
  /** Opens a tunnel, and returns it with the first line of the answer. */
  const tunnel = async (
    proxy: CommandProxy,
    authority: string,
  ): Promise<{ client: Socket; line: string }> => {
    const client = await dial(proxy, false);
    client.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    const [chunk] = (await once(client, 'data')) as [Buffer];
    return { client, line: chunk.toString().split('\r\n')[0]! };
  };
  const withTls = async (): Promise<number> => {
    const server = createTls({ ...shared, pskCallback: () => Buffer.from('00112233', 'hex') }, socket =>
      socket.end('secret hello'),
    );
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    others.push(server);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  /** What a TLS server says through a tunnel if the client greets it by this name. */
  const greet = async (client: Socket, servername: string): Promise<string> => {
    const secure = connectTls({
      ...shared,
      socket: client,
      ...(servername && { servername }),
      checkServerIdentity: () => undefined,
      pskCallback: () => ({ psk: Buffer.from('00112233', 'hex'), identity: 'test' }),
    });
    let text = '';
    secure.on('data', chunk => {
      text += chunk;
    });
    return new Promise(settle => {
      secure.on('error', () => settle('ended'));
      secure.on('close', () => settle(text || 'ended'));
    });
  };

  it('listens where only this user can connect, and leaves nothing behind', async () => {
    const { socket } = await open();
    assert.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
    await proxies[0]!.end();
    assert.equal(statSync(dirname(socket), { throwIfNoEntry: false }), undefined);
  });

  it('passes a plain request on, whole, and without what is meant for the proxy', async () => {
    const proxy = await open();
    const text = await say(
      proxy,
      `POST http://localhost:${port}/a/../b?c=%20d HTTP/1.1\r\nHost: other.example\r\nX-B: 2\r\nProxy-Authorization: Basic eA==\r\nConnection: close, x-drop\r\nX-Drop: 1\r\nContent-Length: 5\r\n\r\nabcde`,
    );
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(text, /x-a: 1/);
    const [{ method, url, headers, body }] = received as [Received];
    assert.deepEqual([method, url, body], ['POST', '/a/../b?c=%20d', 'abcde']);
    assert.deepEqual(
      headers.filter((_, at) => at % 2 === 0).map(name => name.toLowerCase()),
      ['host', 'x-b', 'content-length', 'connection'],
    );
    assert.equal(headers[1], `localhost:${port}`);
    assert.deepEqual(asked, [`npm localhost:${port}`]);
    assert.deepEqual(await proxy.end(), []);
  });

  describe('where this machine reaches the network through a proxy of its own', () => {
    let way: FakeProxy;
    const unknown = async (): Promise<never> => {
      throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
    };
    const lead = (address: string): void => followProxies({ HTTP_PROXY: address, HTTPS_PROXY: address });
    const withLogin = (login: string): string => way.url.replace('://', `://${login}@`);
    beforeEach(async () => {
      way = await startProxy({
        ports: { 'plain.test': port, 'secret.test': await withTls() },
        login: 'me:pass',
      });
      answers = { 'plain.test:80': undefined, 'secret.test:443': undefined };
      lead(withLogin('me:pass'));
    });
    afterEach(async () => {
      followProxies({});
      await way.close();
    });

    const ask = (proxy: CommandProxy): Promise<string> =>
      say(proxy, 'GET http://plain.test/a?b HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n\r\n');

    it('goes on through that, by names that only it can resolve', async () => {
      const proxy = await open({ resolve: unknown });
      assert.match(await ask(proxy), /^HTTP\/1\.1 200 OK[\s\S]*hello \/a\?b/);
      assert.ok(!received[0]?.headers.join().includes('Basic'));
      const { client, line } = await tunnel(proxy, 'secret.test:443');
      assert.match(line, /200/);
      assert.equal(await greet(client, 'secret.test'), 'secret hello');
      assert.deepEqual(way.asked, ['GET http://plain.test/a?b', 'CONNECT secret.test:443']);
      assert.deepEqual(asked, ['npm plain.test:80', 'npm secret.test:443']);
      assert.deepEqual(await proxy.end(), []);
    });

    it('says what is wrong with that, and asks the command for no other password', async () => {
      lead(withLogin('me:wrong'));
      const proxy = await open({ resolve: unknown });
      assert.match(await ask(proxy), /^HTTP\/1\.1 502 [\s\S]*wants a name and a password/);
      const { client } = await tunnel(proxy, 'secret.test:443');
      assert.equal(await greet(client, 'secret.test'), 'ended');
      lead('http://127.0.0.1:9');
      assert.match(await ask(proxy), /^HTTP\/1\.1 502 [\s\S]*The proxy 127\.0\.0\.1:9 cannot be reached/);
      const notes = (await proxy.end()).join('\n');
      assert.match(notes, /secret\.test:443 could not be reached: The proxy .* wants a name and a password/);
      assert.ok(!notes.includes('wrong'), notes);
    });

    it('refuses what is refused without it', async () => {
      const proxy = await open({ resolve: async () => [{ address: '169.254.169.254', family: 4 }] });
      assert.match(await ask(proxy), /^HTTP\/1\.1 403 /);
      answers = {};
      const other = await open({ resolve: unknown });
      assert.match(await ask(other), /^HTTP\/1\.1 403 /);
      assert.deepEqual(way.asked, []);
    });
  });

  it('refuses a host that is not granted with a sentence, and names it in its notes', async () => {
    const proxy = await open();
    const text = await say(proxy, 'GET http://evil.example/?key=abc HTTP/1.1\r\nHost: evil.example\r\n\r\n');
    assert.match(text, /^HTTP\/1\.1 403 Forbidden\r\n/);
    assert.match(text, /nothing through to evil\.example:80: Denied: no\./);
    assert.match((await tunnel(proxy, 'evil.example:443')).line, /403/);
    const notes = await proxy.end();
    assert.deepEqual(
      notes.map(note => /evil\.example:\d+/.exec(note)?.[0]),
      ['evil.example:80', 'evil.example:443'],
    );
    assert.ok(!notes.join().includes('abc'));
  });

  it('holds the connections to a host while a person is asked about it once', async () => {
    let answer: (reason: string | undefined) => void = () => undefined;
    answers[`localhost:${port}`] = new Promise(settle => {
      answer = settle;
    });
    const proxy = await open({ times: { idle: 100 } });
    const texts = [1, 2, 3].map(at =>
      say(proxy, `GET http://localhost:${port}/${at} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
    );
    await eventually(() => assert.equal(asked.length, 1));
    await new Promise(settle => setTimeout(settle, 250));
    assert.equal(received.length, 0);
    answer(undefined);
    for (const text of await Promise.all(texts)) assert.match(text, /^HTTP\/1\.1 200/);
    assert.equal(asked.length, 1);
  });

  it('decides on each request of a connection by itself', async () => {
    const proxy = await open();
    const text = await say(
      proxy,
      `GET http://localhost:${port}/1 HTTP/1.1\r\nHost: a\r\n\r\nGET http://evil.example/2 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    assert.match(text, /200 OK[\s\S]*hello \/1[\s\S]*403 Forbidden/);
    assert.deepEqual(asked, [`npm localhost:${port}`, 'npm evil.example:80']);
  });

  it('leaves redirects to the client, whose next request is decided on', async () => {
    const proxy = await open();
    const text = await say(
      proxy,
      `GET http://localhost:${port}/away HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    );
    assert.match(text, /302 Found[\s\S]*location: http:\/\/elsewhere\.internal:81\//);
    assert.deepEqual(asked, [`npm localhost:${port}`]);
  });

  for (const [what, request] of [
    [
      'two lengths of a body',
      'POST http://HOST/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x',
    ],
    ['a length with a sign', 'POST http://HOST/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde'],
    [
      'an unknown coding',
      'POST http://HOST/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
    ],
    ['a name with a blank', 'POST http://HOST/ HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nabcde'],
    [
      'lines that go on',
      'GET http://HOST/ HTTP/1.1\r\nHost: a\r\nX: 1\r\n Transfer-Encoding: chunked\r\n\r\n',
    ],
    ['a bare line break', 'GET http://HOST/ HTTP/1.1\nHost: a\n\n'],
    ['a path without a host', 'GET /x HTTP/1.1\r\nHost: HOST\r\n\r\n'],
    ['a login in the address', 'GET http://u:p@HOST/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a backslash in the host', 'GET http://HOST\\@evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['another scheme', 'GET ftp://HOST/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a CONNECT without a port', 'CONNECT localhost HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a CONNECT to a path', 'CONNECT http://HOST/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['headers that do not end', `GET http://HOST/ HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ] as const)
    it(`sends nothing on for a request with ${what}`, async () => {
      const proxy = await open({ times: { opening: 500, idle: 500 } });
      const text = await say(proxy, request.replaceAll('HOST', `localhost:${port}`));
      assert.match(text, /^(?:HTTP\/1\.1 (?:400|431) |$)/);
      assert.deepEqual(received, []);
    });

  it('sends a body on in the one length that it has', async () => {
    const proxy = await open();
    await say(
      proxy,
      `POST http://localhost:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close, content-length, transfer-encoding\r\nContent-Length: 28\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n\r\n`,
    );
    assert.deepEqual(
      received.map(({ url, body }) => [url, body.length]),
      [['/', 28]],
    );
  });

  it('lets TLS through to the host that its greeting names', async () => {
    const at = await withTls();
    answers[`localhost:${at}`] = undefined;
    const proxy = await open();
    const { client, line } = await tunnel(proxy, `localhost:${at}`);
    assert.match(line, /200/);
    assert.equal(await greet(client, 'localhost'), 'secret hello');
    assert.deepEqual(await proxy.end(), []);
  });

  it('dials no server for a greeting that names another host, or none', async () => {
    const at = await withTls();
    let dialled = 0;
    (others[0] as TcpServer).on('connection', () => dialled++);
    for (const host of ['localhost', '127.0.0.1']) answers[`${host}:${at}`] = undefined;
    const proxy = await open();
    for (const [host, name] of [
      ['localhost', 'evil.example'],
      ['localhost', ''],
      ['127.0.0.1', 'evil.example'],
    ] as const) {
      const { client, line } = await tunnel(proxy, `${host}:${at}`);
      assert.match(line, /200/);
      assert.equal(await greet(client, name), 'ended', `${host} ${name}`);
    }
    assert.equal(dialled, 0);
    const { client } = await tunnel(proxy, `127.0.0.1:${at}`);
    assert.equal(await greet(client, ''), 'secret hello');
    assert.match((await proxy.end()).join('\n'), /names another host \(evil\.example\)[\s\S]*names no host/);
  });

  it('checks plain requests in a tunnel too, and their host', async () => {
    const proxy = await open();
    const good = await tunnel(proxy, `localhost:${port}`);
    good.client.write(`GET /in HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`);
    assert.match(await rest(good.client), /hello \/in/);
    for (const head of ['Host: evil.example', `Host: localhost:${port}\r\nHost: evil.example`, 'X: 1']) {
      const { client } = await tunnel(proxy, `localhost:${port}`);
      client.write(`GET /other HTTP/1.1\r\n${head}\r\n\r\n`);
      assert.match(await rest(client), /^HTTP\/1\.1 400/);
    }
    const { client } = await tunnel(proxy, `localhost:${port}`);
    client.write(`CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n`);
    assert.match(await rest(client), /^HTTP\/1\.1 403/);
    assert.deepEqual(
      received.map(({ url }) => url),
      ['/in'],
    );
  });

  it('knows an address in every spelling, and reaches none that nobody reaches', async () => {
    const proxy = await open();
    for (const spelling of ['2130706433', '0x7f.1', '0177.0.0.1', '127.1', '127.0.0.1.'])
      assert.match(
        await say(proxy, `GET http://${spelling}:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
        /^HTTP\/1\.1 200/,
        spelling,
      );
    assert.deepEqual(asked, [`npm 127.0.0.1:${port}`]);
    answers = new Proxy({}, { has: () => true, get: () => undefined });
    for (const never of [
      '169.254.169.254',
      '[fe80::1]',
      '0.0.0.0',
      '2852039166',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::a9fe:a9fe]',
      'metadata.google.internal',
      '[::]',
    ])
      assert.match((await tunnel(proxy, `${never}:80`)).line, /403/, never);
  });

  it('reaches this machine only by the name that was granted as such', async () => {
    let round = 0;
    const loopback = { address: '127.0.0.1', family: 4 };
    const proxy = await open({
      resolve: async name =>
        name === 'rebound.example' && round++ === 0
          ? [{ address: '192.0.32.8', family: 4 }, loopback]
          : [loopback],
    });
    for (const name of ['trap.example', 'rebound.example']) answers[`${name}:${port}`] = undefined;
    for (const name of ['trap.example', 'rebound.example', 'rebound.example'])
      assert.match((await tunnel(proxy, `${name}:${port}`)).line, /403/);
    answers[`registry.internal:${port}`] = undefined;
    assert.match(
      await say(
        proxy,
        `GET http://registry.internal:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      ),
      /^HTTP\/1\.1 200/,
    );
    assert.match((await proxy.end()).join('\n'), /leads to the loopback address 127\.0\.0\.1/);
  });

  it('speaks SOCKS by name and by address, and checks them alike', async () => {
    const proxy = await open();
    const byName = (host: string): Buffer =>
      Buffer.from([5, 1, 0, 3, host.length, ...Buffer.from(host), port >> 8, port & 255]);
    const request = `GET /socks HTTP/1.1\r\nHost: HOST:${port}\r\nConnection: close\r\n\r\n`;
    for (const [host, words] of [
      ['localhost', byName('localhost')],
      ['127.0.0.1', Buffer.from([5, 1, 0, 1, 127, 0, 0, 1, port >> 8, port & 255])],
    ] as const) {
      const client = await dial(proxy);
      client.write(Buffer.concat([Buffer.from([5, 2, 2, 0]), words]));
      const text = rest(client);
      client.write(request.replace('HOST', host));
      assert.match(await text, /^\x05\0\x05\0\0\x01[\s\S]{6}HTTP\/1\.1 200/);
    }
    for (const [words, code] of [
      [byName('evil.example'), 2],
      [Buffer.from([5, 1, 0, 1, 169, 254, 169, 254, 0, 80]), 2],
      [Buffer.from([5, 1, 0, 4, ...Buffer.alloc(15), 1, port >> 8, port & 255]), 2],
      [Buffer.from([5, 2, 0, 1, 127, 0, 0, 1, 0, 80]), 7],
      [Buffer.from([5, 3, 0, 1, 127, 0, 0, 1, 0, 80]), 7],
    ] as const) {
      const text = await say(proxy, `\x05\x01\0${words.toString('latin1')}`);
      assert.equal(text.charCodeAt(3), code, words.toString('hex'));
    }
    assert.equal(await say(proxy, '\x05\x01\x02'), '\x05\xff');
  });

  it('serves only who has the password, where there is one', async () => {
    const proxy = await open({ login: 'box:open' });
    const [right, wrong] = ['box:open', 'box:shut'].map(
      each => `Proxy-Authorization: Basic ${Buffer.from(each).toString('base64')}\r\n`,
    );
    const wanted = `localhost:${port}`;
    const plain = (header = ''): string =>
      `GET http://${wanted}/a HTTP/1.1\r\nHost: ${wanted}\r\n${header}Connection: close\r\n\r\n`;
    const connecting = (header = ''): string =>
      `CONNECT ${wanted} HTTP/1.1\r\nHost: ${wanted}\r\n${header}\r\n`;
    for (const request of [plain(), plain(wrong), connecting(), connecting(wrong)]) {
      const refusal = await say(proxy, request);
      assert.match(refusal, /^HTTP\/1\.1 407 .*\r\n/);
      assert.match(refusal, /proxy-authenticate: Basic/i);
    }
    assert.match(await say(proxy, plain(right)), /^HTTP\/1\.1 200 [\s\S]*hello \/a/);
    const socks = async (password: string): Promise<string> => {
      const login = `\x01\x03box${String.fromCharCode(password.length)}${password}`;
      const to = `\x05\x01\x00\x03\x09localhost${String.fromCharCode(port >> 8, port & 255)}`;
      return say(
        proxy,
        `\x05\x02\x00\x02${login}${to}GET /b HTTP/1.1\r\nHost: ${wanted}\r\nConnection: close\r\n\r\n`,
      );
    };
    assert.equal(await say(proxy, '\x05\x01\x00'), '\x05\xff');
    assert.equal(await socks('shut'), '\x05\x02\x01\x01');
    assert.match(await socks('open'), /^\x05\x02\x01\x00\x05[\s\S]*hello \/b/);
    assert.deepEqual(
      received.map(({ url }) => url),
      ['/a', '/b'],
    );
    assert.ok(!received.some(({ headers }) => headers.join().includes('Basic')));
  });

  it('carries WebSockets', async () => {
    const proxy = await open();
    const client = await dial(proxy);
    client.write(
      `GET http://localhost:${port}/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n`,
    );
    const [head] = (await once(client, 'data')) as [Buffer];
    assert.match(head.toString(), /^HTTP\/1\.1 101 /);
    client.write('ping');
    assert.equal(String((await once(client, 'data'))[0]), 'ping');
    const refused = await say(
      proxy,
      'GET http://evil.example/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    assert.match(refused, /^HTTP\/1\.1 403/);
    const plain = await say(
      proxy,
      `GET http://localhost:${port}/h2c HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
    );
    assert.match(plain, /^HTTP\/1\.1 200/);
  });

  it('sends no loaded secret without encryption, wherever in the request it is', async () => {
    const secret = 'abcdefgh-0123456789';
    const proxy = await open({ holdsSecret: text => text.includes(secret) });
    const line = `http://localhost:${port}/`;
    for (const text of [
      `GET ${line}?k=${secret} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `GET ${line} HTTP/1.1\r\nHost: a\r\nX: ${secret}\r\n\r\n`,
    ])
      assert.match(await say(proxy, text), /^HTTP\/1\.1 403[\s\S]*holds a secret/);
    const client = await dial(proxy);
    client.write(`POST ${line} HTTP/1.1\r\nHost: a\r\nContent-Length: ${secret.length}\r\n\r\n`);
    const answer = rest(client);
    for (const letter of secret) {
      client.write(letter);
      await new Promise(setImmediate);
    }
    assert.match(await answer, /^HTTP\/1\.1 403/);
    assert.ok(!JSON.stringify(received).includes(secret.slice(0, -1)));
    assert.ok(!(await proxy.end()).join().includes(secret));
  });

  it('ends clients that say nothing, stop in the middle, or say too much', async () => {
    const proxy = await open({ times: { opening: 100, idle: 100 } });
    assert.equal(await say(proxy, ''), '');
    assert.equal(await say(proxy, 'GET http://localhost'), '');
    assert.equal(await say(proxy, '\x05'), '');
    const { client } = await tunnel(proxy, `localhost:${port}`);
    client.write(Buffer.from([22, 3, 1, 2, 0, 1]));
    assert.equal(await rest(client), '');
    const half = await dial(proxy);
    half.end(`GET http://localhost:${port}/half HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.match(await rest(half), /hello \/half/);
  });

  it('ends a connection that changes its protocol before its last request is answered', async () => {
    const proxy = await open();
    let answer: (reason: string | undefined) => void = () => undefined;
    answers['held.example:80'] = new Promise(settle => {
      answer = settle;
    });
    const change = `GET http://localhost:${port}/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    const held = (name: string): string => `GET http://${name}.example/ HTTP/1.1\r\nHost: a\r\n\r\n`;
    const text = await say(proxy, held('held') + change);
    answer('Denied: no.');
    assert.equal(text, '');
    // The same words are answered where nothing is held.
    assert.match(await say(proxy, held('evil')), /^HTTP\/1\.1 403 /);
    await new Promise(setImmediate);
  });

  it('goes on when clients and servers break off anywhere', async () => {
    const proxy = await open({ holdsSecret: text => text.includes('hidden-value') });
    const at = `localhost:${port}`;
    const head = 'HTTP/1.1\r\nHost: a\r\n';
    const words = [
      ...['', '/cut', '/part'].map(path => `GET http://${at}${path} ${head}\r\n`),
      `POST http://${at}/ ${head}Content-Length: 12\r\n\r\nhidden-value`,
      `POST http://${at}/ ${head}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n`,
      `POST http://${at}/cut ${head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`,
      `CONNECT ${at} ${head}\r\n`,
      ...['websocket', 'h2c'].map(
        name => `GET http://${at}/ ${head}Connection: upgrade\r\nUpgrade: ${name}\r\n\r\n`,
      ),
      `HEAD http://${at}/ HTTP/1.0\r\n\r\n`,
      `GET http://evil.example/ ${head}\r\n`,
      '\x05\x01\0',
      '\x16\x03\x01\0\x40\x01\0\0\x3c\x03\x03',
      'CONNECT x',
    ];
    const orders = words.flatMap((first, at) =>
      words.map((second, other) => ({ first, second, ends: (at + other) % 3 })),
    );
    for (const { first, second, ends } of orders) {
      const client = await dial(proxy, ends === 1);
      client.resume();
      client.write(first + second, 'latin1');
      if (ends === 0) client.end();
      else setTimeout(() => client.destroy(), ends * 10);
    }
    await new Promise(settle => setTimeout(settle, 100));
    const text = await say(proxy, `GET http://${at}/last ${head}Connection: close\r\n\r\n`);
    assert.match(text, /hello \/last/);
  });

  it('serves fifty connections at once, and refuses more than it has room for', async () => {
    const proxy = await open();
    const texts = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        say(proxy, `GET http://localhost:${port}/${at} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
      ),
    );
    assert.ok(texts.every((text, at) => text.includes(`hello /${at}`)));
    const idle = await Promise.all(Array.from({ length: 257 }, () => dial(proxy)));
    await Promise.race(idle.map(rest));
  });

  it('ends every connection and question with the command', async () => {
    const silent = createTcp(() => undefined).listen(0, '127.0.0.1');
    others.push(silent);
    await once(silent, 'listening');
    const at = (silent.address() as AddressInfo).port;
    answers[`localhost:${at}`] = undefined;
    let withdrawn = false;
    const proxy = await openProxy('npm', ({ port: wanted }, signal) =>
      wanted === at
        ? Promise.resolve(undefined)
        : new Promise(settle => {
            signal.addEventListener('abort', () => {
              withdrawn = true;
              settle('Denied: the run ended.');
            });
          }),
    );
    const waiting = [
      say(proxy, `GET http://localhost:${at}/ HTTP/1.1\r\nHost: a\r\n\r\n`),
      say(proxy, 'GET http://held.example/ HTTP/1.1\r\nHost: a\r\n\r\n'),
    ];
    const { client } = await tunnel(proxy, `localhost:${at}`);
    waiting.push(rest(client));
    await new Promise(settle => setTimeout(settle, 50));
    await proxy.end();
    await Promise.all(waiting);
    assert.ok(withdrawn);
    const late = connect(proxy.socket);
    const [error] = await once(late, 'error');
    assert.match((error as NodeJS.ErrnoException).code!, /^(?:ENOENT|ECONNREFUSED)$/);
  });

  it('says so if a server cannot be reached', async () => {
    const proxy = await open();
    answers['localhost:1'] = undefined;
    assert.match(
      await say(proxy, 'GET http://localhost:1/ HTTP/1.1\r\nHost: a\r\n\r\n'),
      /^HTTP\/1\.1 502[\s\S]*ECONNREFUSED/,
    );
    assert.match((await proxy.end()).join(), /localhost:1 could not be reached/);
  });
});
