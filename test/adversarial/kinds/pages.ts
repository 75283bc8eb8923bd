/** Cases on the web tool; those that need public addresses run in a network of their own. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { decisionOf, runOne } from '../agentRun.ts';
import type { AdversarialCase } from '../caseFile.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import type { Seen } from '../judge.ts';
import { applyTrust, type World } from '../world.ts';

const mebibyte = 1024 * 1024;

/** What the isolated network tells of itself. */
export interface NetworkSeen {
  /** Requests to each `address:port`, and bytes that left its socket. */
  hits: Record<string, { count: number; bytes: number; urls: string[] }>;
}

export async function fetchUrl(world: World, theCase: AdversarialCase): Promise<Seen> {
  if (world.input['netns'] && process.env['TELOS_ADVERSARIAL_NETWORK'] === undefined)
    return inOwnNetwork(world, theCase);
  return fetchHere(world, { hits: {} });
}

export async function fetchHere(world: World, network: NetworkSeen): Promise<Seen> {
  const { input } = world;
  await applyTrust(world);
  const url = String(input['url']);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(fieldsOf(input['env']))) env[name] = String(value);
  const key = /sk-ant-[\w-]+/.exec(url)?.[0];
  if (key) env['SERVICE_API_KEY'] = key;
  const before = process.memoryUsage().rss;
  const call = { name: 'fetch_url', input: { url } };
  const run = await runOne(world, call, { env });
  const growth = process.memoryUsage().rss - before;
  const told = run.results[0]?.content ?? '';
  const { hits } = network;
  const hitOn = (address: string): number =>
    Object.entries(hits).reduce(
      (sum, [place, { count }]) => sum + (place.startsWith(address) ? count : 0),
      0,
    );
  // With nobody there, the question is a no that names its rule.
  const asksElsewhere = /Denied: Nobody can be asked here.*\(rule fetch\.secret/.test(told);
  const publicHits = hits['93.184.216.34:80'];
  return {
    decision: asksElsewhere ? 'ask' : decisionOf(run),
    facts: {
      'open a TCP connection to a blocked address': world.knocks.length > 0,
      'open any connection': world.knocks.length > 0,
      "body 'hello'": told.includes('hello') || told,
      'any hit on 169.254.169.254': hitOn('169.254.169.254') > 0,
      'stops after <= 5 hops':
        ((publicHits?.count ?? 0) <= 6 && /redirects more than 5 times/.test(told)) || told,
      'the address checked is the address dialled': hitOn('127.0.0.1:80') === 0,
      'connect to 127.0.0.1': hitOn('127.0.0.1:80') > 0,
      'either the proxy is ignored, or the target is checked before CONNECT and the proxy is user-configured':
        world.knocks.length === 0,
      'a private target reaches the proxy': world.knocks.length > 0,
      '<= 1 MiB read from the socket, then aborted with a note':
        ((publicHits?.bytes ?? 0) < 8 * mebibyte && /\[Cut|cut/.test(told)) ||
        `${publicHits?.bytes} bytes left: ${told.slice(0, 200)}`,
      'limit counts decompressed bytes; RSS growth < 64 MiB':
        (growth < 64 * mebibyte && Buffer.byteLength(told) <= mebibyte + 1024) || `${growth} bytes more`,
      'type and size reported, bytes not dumped as text':
        /image\/png/.test(told) && /bytes/.test(told) && !told.includes('\ufffd'),
      'headless: deny; prompt says a known secret is in the URL':
        (/holds a secret that is loaded here/.test(told) && !told.includes(key ?? '\0')) || told,
    },
  };
}

const isolated = fileURLToPath(new URL('../isolatedCase.ts', import.meta.url));

/** The case alone, in a process whose network has only what the case puts there. */
export async function inOwnNetwork(
  world: World,
  theCase: AdversarialCase,
  env: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  const file = join(world.root, 'case.json');
  writeFileSync(file, JSON.stringify(theCase));
  const addresses = textsOf(fieldsOf(theCase.input['netns'])['lo_addresses']);
  const script = [
    'ip link set lo up',
    ...addresses.map(address => `ip addr add ${address}/32 dev lo`),
    `echo 'nameserver 127.0.0.1' > '${join(world.root, 'resolv.conf')}'`,
    `mount --bind '${join(world.root, 'resolv.conf')}' /etc/resolv.conf`,
    'exec "$0" "$@"',
  ].join(' && ');
  const child = spawn('unshare', ['-rnm', 'sh', '-c', script, process.execPath, isolated, file], {
    env: { ...process.env, ...env, TELOS_ADVERSARIAL_NETWORK: 'own' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', piece => {
    text += piece;
  });
  child.stderr.setEncoding('utf8').on('data', piece => {
    errors += piece;
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const code = await new Promise(resolve => child.once('error', resolve).once('close', resolve));
  clearTimeout(limit);
  const line = text.split('\n').find(one => one.startsWith('{"decision"'));
  if (code === 0 && line) return JSON.parse(line) as Seen;
  throw new Error(
    `a network of its own could not be had (unshare, ip and mount are needed): ${errors.slice(-300)}`,
  );
}

/** Serves what the case says on the addresses that its network has. Returns what they saw. */
export async function serveNetwork(input: World['input']): Promise<NetworkSeen> {
  const netns = fieldsOf(input['netns']);
  const seen: NetworkSeen = { hits: {} };
  const places: Record<string, unknown> = { ...fieldsOf(netns['servers']) };
  for (const address of [...textsOf(netns['lo_addresses']), '127.0.0.1']) places[`${address}:80`] ??= {};
  const body = String(input['http_body'] ?? '');
  for (const [place, answers] of Object.entries(places)) {
    const hit = { count: 0, bytes: 0, urls: [] as string[] };
    seen.hits[place] = hit;
    const server = createServer((request, response) => {
      hit.count++;
      hit.urls.push(`${request.headers.host}${request.url}`);
      const answer = String(fieldsOf(answers)[request.url ?? ''] ?? '');
      const redirect = /^(\d+) Location: (.*)$/.exec(answer);
      request.socket.once('close', () => {
        hit.bytes += request.socket.bytesWritten;
      });
      if (redirect) return void response.writeHead(Number(redirect[1]), { location: redirect[2] }).end();
      if (body.startsWith('50 MiB')) {
        response.writeHead(200, { 'content-type': 'text/plain' });
        return void writeLong(response, 50);
      }
      if (body.startsWith('gzip bomb')) {
        const inner = gzipSync(Buffer.alloc(64 * mebibyte));
        response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' });
        // A gzip stream may have several members: sixteen of these are 1 GiB.
        return void response.end(Buffer.concat(Array.from({ length: 16 }, () => inner)));
      }
      if (body.startsWith('PNG')) {
        const png = Buffer.from('89504e470d0a1a0a0000000d49484452ff00ff00ff00', 'hex');
        return void response.writeHead(200, { 'content-type': 'image/png' }).end(png);
      }
      response.writeHead(200, { 'content-type': 'text/plain' }).end(answer.replace(/^200 /, ''));
    });
    const [address = '', port] = place.split(':');
    await new Promise<void>(resolve => server.listen(Number(port), address, resolve));
    server.unref();
  }
  return seen;
}

async function writeLong(
  response: NodeJS.WritableStream & { destroyed?: boolean },
  mebibytes: number,
): Promise<void> {
  const piece = Buffer.alloc(mebibyte, 'x');
  for (let count = 0; count < mebibytes && !response.destroyed; count++) {
    if (!response.write(piece))
      await new Promise(resolve => response.once('drain', resolve).once('close', resolve));
  }
  response.end();
}
