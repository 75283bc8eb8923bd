import assert from 'node:assert/strict';
import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { connectServers } from '../../../src/engine/mcp/servers.ts';
import { guardedFetch } from '../../../src/engine/mcp/signInState.ts';
import { checkedFetch, withinBytes } from '../../../src/engine/tools/checkedFetch.ts';
import { spoken } from '../../../src/protocol/text.ts';
import { listen, type ReceivedRequest } from '../../fakes/loopback.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

/** A server of this machine under names that a name server of the test's own gives out. */
describe('a request to an MCP server', () => {
  const systemLookup = dns.lookup;
  let server: Awaited<ReturnType<typeof listen>>;
  let requests: ReceivedRequest[];
  /** By name: one answer after the other, the last of them for good. */
  let answers: Record<string, string[][]>;
  let lookups: number;
  beforeEach(async () => {
    requests = [];
    answers = {};
    lookups = 0;
    server = await listen(async (request, response) => {
      requests.push(request);
      if (request.path === '/away') response.writeHead(302, { location: '/' }).end();
      else if (request.path === '/packed')
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('packed'));
      else if (request.path === '/none') response.writeHead(204).end();
      else response.writeHead(200, { 'content-type': 'text/plain', 'x-a': '1' }).end('hello');
    });
    dns.lookup = (async (name: string) => {
      lookups++;
      const rounds = answers[name] ?? [];
      const addresses = rounds.length > 1 ? rounds.shift()! : (rounds[0] ?? []);
      return addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }));
    }) as unknown as typeof dns.lookup;
    syncBuiltinESMExports();
  });
  afterEach(async () => {
    dns.lookup = systemLookup;
    syncBuiltinESMExports();
    await server.close();
  });
  const at = (name: string, path = '/'): string => `http://${name}:${new URL(server.address).port}${path}`;

  it('goes to this machine and its network by name, with all that belongs to it', async () => {
    answers['here.test'] = [['127.0.0.1']];
    const body = JSON.stringify({ a: 'b c' });
    const response = await checkedFetch(at('here.test', '/x?y'), {
      method: 'POST',
      body,
      headers: { 'x-b': '2' },
    });
    assert.deepEqual(
      [response.status, response.headers.get('x-a'), await response.text()],
      [200, '1', 'hello'],
    );
    const [request] = requests;
    assert.deepEqual([request?.method, request?.path, request?.body], ['POST', '/x?y', { a: 'b c' }]);
    assert.equal(request?.headers['x-b'], '2');
    assert.equal(await (await checkedFetch(at('here.test', '/packed'))).text(), 'packed');
    assert.equal((await checkedFetch(at('here.test', '/none'))).status, 204);
    assert.equal((await checkedFetch(at('here.test', '/away'))).status, 302);
    await assert.rejects(checkedFetch(at('here.test', '/away'), { redirect: 'error' }), /fetch failed/);
    await assert.rejects(checkedFetch(at('here.test'), { signal: AbortSignal.abort() }));
  });

  it('reaches no link-local, metadata or reserved address behind a name, not even beside another one', async () => {
    const places = [
      '169.254.1.1',
      '169.254.169.254',
      '100.100.100.200',
      'fe80::1',
      'fd00:ec2::254',
      '0.0.0.0',
    ];
    for (const place of [...places, '::ffff:169.254.169.254']) {
      answers['there.test'] = [['127.0.0.1', place]];
      await assert.rejects(
        checkedFetch(at('there.test')),
        new RegExp(`there\\.test leads to ${place}, which is a`),
      );
    }
    for (const literal of [
      'http://169.254.169.254/',
      'http://0xa9fe0101/',
      'http://metadata.google.internal/',
    ])
      await assert.rejects(checkedFetch(literal), /never reached \(floor\.fetch-address\)/);
    assert.deepEqual(requests, []);
  });

  it('dials what was checked: one look-up for each connection, and a changed answer is checked again', async () => {
    answers['turns.test'] = [['127.0.0.1'], ['169.254.169.254']];
    assert.equal((await checkedFetch(at('turns.test'))).status, 200);
    assert.equal(lookups, 1);
    await assert.rejects(checkedFetch(at('turns.test')), /metadata address/);
    assert.equal(requests.length, 1);
  });

  it('is the same for a server of mcp.json and for its sign-in', async () => {
    const folder = tempFolder({});
    answers['there.test'] = [['169.254.1.1']];
    const mcpServers = { one: { url: at('there.test') }, two: { type: 'sse', url: at('there.test') } };
    folder.add({ 'mcp.json': JSON.stringify({ mcpServers }) });
    const agent = { name: 'a', packDir: folder.path, mcpConfig: `${folder.path}/mcp.json` };
    const signal = new AbortController().signal;
    try {
      const config = { env: {}, home: folder.path, dataDir: folder.path };
      const { problems, close } = await connectServers(config, agent, [], {}, signal);
      await close();
      assert.equal(problems.length, 2);
      for (const problem of problems)
        assert.match(spoken([problem]), /leads to 169\.254\.1\.1, which is a link-local address/);
      const signIn = guardedFetch(new URL('https://mcp.test/'), undefined, signal);
      await assert.rejects(signIn('https://there.test/token'), /link-local address/);
    } finally {
      folder.remove();
    }
  });
});

describe('withinBytes', () => {
  const answer = (pieces: readonly string[], type: string): Response => {
    const body = Readable.toWeb(Readable.from(pieces.map(piece => Buffer.from(piece))));
    return withinBytes(new Response(body as ReadableStream, { headers: { 'content-type': type } }), 1024);
  };

  it('fails an answer that is larger, and a single event of a stream, but no long stream', async () => {
    const small = 'x'.repeat(600);
    assert.equal(await answer([small], 'application/json').text(), small);
    await assert.rejects(answer([small, small], 'application/json').text(), { code: 'mcp' });
    for (const end of ['\n\n', '\r\n\r\n']) {
      const events = Array.from({ length: 10 }, () => [`data: ${small}`, ...end]).flat();
      const read = await answer(events, 'text/event-stream').text();
      assert.equal(read, events.join(''));
    }
    for (const line of ['\n', '\n:\n', '\r\n'])
      await assert.rejects(answer([`data: ${small}${line}`, `data: ${small}`], 'text/event-stream').text(), {
        code: 'mcp',
      });
  });

  it('fails an event of very many short lines, which would take many times their bytes', async () => {
    const event = (lines: number): Response => answer(['data:\n'.repeat(lines), '\n'], 'text/event-stream');
    assert.equal((await event(5).text()).length, 31);
    await assert.rejects(event(20).text(), { code: 'mcp' });
  });
});
