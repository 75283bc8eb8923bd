import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { createFetchTool, type FetchOptions } from '../../../src/engine/tools/builtin.ts';
import { staysAt } from '../../../src/engine/tools/fetchPage.ts';
import type { ToolResult } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

describe('fetch_url', () => {
  let run: TemporaryRun;
  let server: Server;
  let origin: string;
  let port: number;
  let connections: number;
  let answers: Record<string, Answer>;

  before(async () => {
    server = createServer((request, response) => {
      const answer = answers[request.url ?? ''];
      if (answer === undefined) response.writeHead(404).end('nothing here');
      else answer(request, response);
    });
    server.on('connection', () => connections++);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
    origin = `http://127.0.0.1:${port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    run = temporaryRun();
    connections = 0;
    answers = {};
  });
  afterEach(() => run.remove());

  const get = (
    url: string,
    approvedSubject?: string,
    options: Partial<FetchOptions> = {},
  ): Promise<ToolResult> =>
    createFetchTool(options).execute(
      { url },
      approvedSubject === undefined ? run.context : { ...run.context, approvedSubject },
    );
  /** Fetches a path of the test server as if a person had approved it. */
  const approved = (path: string): Promise<ToolResult> => get(origin + path, origin + path);
  const says = (path: string, headers: Record<string, string>, body: string | Buffer): void => {
    answers[path] = (_request, response) => response.writeHead(200, headers).end(body);
  };
  const redirects = (path: string, location: string): void => {
    answers[path] = (_request, response) => response.writeHead(302, { location }).end();
  };
  const resolvesTo =
    (...addresses: string[]): FetchOptions['resolve'] =>
    async () =>
      addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }));

  it('gets text as it is, and pages without their markup', async () => {
    says('/a', { 'content-type': 'application/json' }, '{"a": 1}');
    says(
      '/page',
      { 'content-type': 'text/html; charset=utf-8' },
      '<title>T</title><p>a <a href="/b">b</a></p>',
    );
    says('/none', {}, '');
    assert.deepEqual(await approved('/a'), { content: '{"a": 1}', isError: false });
    assert.equal((await approved('/page')).content, `T\n\na b (${origin}/b)`);
    assert.equal((await approved('/none')).content, '(empty answer)');
  });

  it('follows a redirect to https and to the name with www, but never from https to plain http', () => {
    const rows = [
      ['http://a.test/', 'https://www.a.test/', true],
      ['https://a.test/', 'https://a.test/other', true],
      ['https://a.test/', 'http://a.test/', false],
      ['https://a.test/', 'https://b.test/', false],
      ['https://a.test/', 'https://a.test:8443/', false],
    ] as const;
    for (const [from, to, stays] of rows)
      assert.equal(staysAt(new URL(from), new URL(to)), stays, `${from} ${to}`);
  });

  it('reaches this machine only at exactly the host and port that was approved', async () => {
    says('/', {}, 'hello');
    for (const url of [
      `${origin}/`,
      `http://localhost:${port}/`,
      `http://2130706433:${port}/`,
      `http://[::1]:${port}/`,
    ]) {
      const result = await get(url);
      assert.equal(result.isError, true);
      assert.match(result.content, /has not been approved/, url);
    }
    assert.match((await get(`${origin}/`, 'http://127.0.0.1:1/')).content, /was checked/);
    assert.equal(connections, 0);
    assert.equal((await get(`${origin}/`, `${origin}/`)).content, 'hello');
  });

  it('never reaches metadata, link-local and unspecified addresses, approved or not', async () => {
    for (const url of [
      'http://169.254.169.254/',
      'http://[fe80::1]/',
      `http://0.0.0.0:${port}/`,
      'http://metadata.google.internal/',
    ])
      assert.match((await get(url, url)).content, /never fetched/, url);
    const trap = `http://nas.lan:${port}/`;
    assert.match(
      (await get(trap, trap, { resolve: resolvesTo('169.254.169.254') })).content,
      /metadata address/,
    );
    assert.equal(connections, 0);
  });

  it('refuses a public name that leads to this machine, also beside a public address', async () => {
    const url = `http://public.test:${port}/`;
    for (const addresses of [
      ['127.0.0.1'],
      ['93.184.216.34', '127.0.0.1'],
      ['::ffff:127.0.0.1'],
      ['10.0.0.1'],
    ])
      for (const approval of [undefined, url]) {
        const result = await get(url, approval, { resolve: resolvesTo(...addresses) });
        assert.equal(result.isError, true);
        assert.match(result.content, /which is not fetched/);
      }
    assert.match((await get(url, url, { resolve: resolvesTo() })).content, /has no address/);
    assert.equal(connections, 0);
  });

  it('dials the address that was checked, and asks for it once', async () => {
    let asked = 0;
    answers['/'] = (request, response) => response.end(request.headers.host);
    const url = `http://nas.lan:${port}/`;
    const resolve: FetchOptions['resolve'] = async () => {
      asked++;
      return [{ address: asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }];
    };
    assert.equal((await get(url, url, { resolve })).content, `nas.lan:${port}`);
    assert.equal(asked, 1);
  });

  it('follows redirects and says where it ended', async () => {
    redirects('/1', '/2');
    redirects('/2', `${origin}/3#part`);
    says('/3', {}, 'end');
    assert.equal((await approved('/1')).content, `end\n\n[Redirected to ${origin}/3]`);
  });

  it('checks every redirect again, and stops after five', async () => {
    const other = createServer((_request, response) => response.end('SECRET')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    let hits = 0;
    other.on('connection', () => hits++);
    redirects('/port', `http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    redirects('/metadata', 'http://169.254.169.254/latest/');
    redirects('/file', 'file:///etc/passwd');
    redirects('/user', 'http://a:b@example.com/');
    redirects('/loop', '/loop');
    assert.match((await approved('/port')).content, /another host, which was not contacted/);
    assert.match((await approved('/metadata')).content, /never fetched/);
    assert.match((await approved('/file')).content, /Only http and https/);
    assert.match((await approved('/user')).content, /user name/);
    connections = 0;
    const loop = await approved('/loop');
    assert.deepEqual([loop.isError, connections, hits], [true, 6, 0]);
    assert.match(loop.content, /more than 5 times/);
    other.close();
  });

  it('reads the charset from header, byte order mark or page', async () => {
    says('/header', { 'content-type': 'text/plain; charset=ISO-8859-1' }, Buffer.from('grün', 'latin1'));
    says('/mark', { 'content-type': 'text/plain; charset=latin1' }, Buffer.from('\ufeffgrün', 'utf16le'));
    says(
      '/page',
      { 'content-type': 'text/html' },
      Buffer.from('<meta charset="windows-1252">grün', 'latin1'),
    );
    says('/unknown', { 'content-type': 'text/plain; charset=klingon' }, 'grün');
    for (const path of ['/header', '/mark', '/page', '/unknown'])
      assert.equal((await approved(path)).content, 'grün', path);
  });

  it('does not follow to another host, and says where it would have led', async () => {
    redirects('/away', 'http://other.test/x');
    const { content, isError } = await approved('/away');
    assert.equal(isError, false);
    assert.match(content, /redirects to another host, which was not contacted: http:\/\/other\.test\/x/);
  });

  it('reads 1 MiB after decompression and no more', async () => {
    const packed = { 'content-encoding': 'gzip', 'content-type': 'text/plain' };
    says('/gzip', packed, gzipSync('packed'));
    says('/br', { 'content-encoding': 'br' }, brotliCompressSync('packed'));
    says('/bomb', packed, gzipSync(Buffer.alloc(32 * 1024 ** 2, 'a')));
    const numbers = Array.from({ length: 300_000 }, (_, at) => `line ${at * 7919}`).join('\n');
    says('/long', packed, gzipSync(numbers));
    says('/torn', packed, gzipSync('packed').subarray(0, 12));
    says('/odd', { 'content-encoding': 'zstd' }, 'x');
    answers['/endless'] = (_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write('b'.repeat(65536)));
      };
      response.on('drain', more);
      more();
    };
    assert.equal((await approved('/gzip')).content, 'packed');
    assert.equal((await approved('/br')).content, 'packed');
    const bomb = await approved('/bomb');
    assert.equal(bomb.isError, true);
    assert.match(bomb.content, /unpacks to more than 100 times its size/);
    for (const path of ['/long', '/endless']) {
      const { content, isError } = await approved(path);
      assert.equal(isError, false);
      assert.match(
        content,
        /\[Cut: these are the first 1,048,576 bytes of the answer; the rest was not read\.\]$/,
      );
      assert.ok(content.length < 1024 ** 2 + 100);
    }
    assert.match((await approved('/torn')).content, /^Could not fetch/);
    assert.match((await approved('/odd')).content, /encoding zstd/);
  });

  it('says binary instead of dumping it', async () => {
    says('/png', { 'content-type': 'image/png' }, Buffer.from('89504e470d0a1a0a', 'hex'));
    says('/bytes', { 'content-type': 'application/octet-stream' }, Buffer.from([0, 1, 2]));
    assert.match((await approved('/png')).content, /^\[image\/png: binary, 8 bytes, .* 89 50 4e 47/);
    assert.match((await approved('/bytes')).content, /binary, 3 bytes/);
  });

  it('reports what the server refuses, and what is no address', async () => {
    assert.deepEqual(await approved('/none'), {
      content: 'HTTP 404 Not Found\n\nnothing here',
      isError: true,
    });
    assert.match((await get('notaurl')).content, /not a web address/);
    assert.match((await get('file:///etc/passwd')).content, /Only http and https/);
    const closed = 'http://127.0.0.1:1/';
    assert.match((await get(closed, closed)).content, /^Could not fetch .*ECONNREFUSED/);
  });

  it('gives up at its time limit, before and within an answer', async () => {
    answers['/silent'] = () => undefined;
    answers['/stalls'] = (_request, response) => response.write('begun');
    for (const path of ['/silent', '/stalls']) {
      const { content, isError } = await get(origin + path, origin + path, { timeoutMs: 60 });
      assert.equal(isError, true);
      assert.match(content, /No complete answer arrived within 0\.06 s/);
    }
    const never = { resolve: () => new Promise<never>(() => undefined), timeoutMs: 20 };
    assert.match((await get('http://public.test/', undefined, never)).content, /No complete answer/);
  });

  it('stops on abort, closes the connection and throws the reason', async () => {
    const stop = new AbortController();
    const reason = new Error('stopped');
    let closed: Promise<unknown> = Promise.resolve();
    answers['/silent'] = request => {
      closed = once(request.socket, 'close');
      stop.abort(reason);
    };
    const url = `${origin}/silent`;
    await assert.rejects(
      createFetchTool().execute({ url }, { ...run.context, signal: stop.signal, approvedSubject: url }),
      error => error === reason,
    );
    await closed;
  });
});
