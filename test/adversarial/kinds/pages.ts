/** Cases on the web tool; those that need public addresses run in a network of their own. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { decisionOf, runOne, wasQuestion } from '../agentRun.ts';
import { type CaseInput, fieldsOf, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { applyTrust, type World } from '../world.ts';

const mebibyte = 1024 * 1024;

/** What the isolated network tells of itself. */
export interface NetworkSeen {
  /** Requests to each `address:port`, and bytes that left its socket. */
  hits: Record<string, { count: number; bytes: number; urls: string[] }>;
}

export async function fetchUrl(world: World, theCase: CaseInput): Promise<Seen> {
  if (world.input['netns'] && process.env['TELOS_ADVERSARIAL_NETWORK'] === undefined)
    return inOwnNetwork(world, theCase);
  return fetchHere(world, { hits: {} });
}

/** Returns the key in an address, if there is one. */
const keyIn = (url: string): string | undefined =>
  /(sk-[\w-]{12,}|gh[pousr]_\w{12,}|AIza[\w-]{20,})/.exec(url)?.[0];

export async function fetchHere(world: World, network: NetworkSeen): Promise<Seen> {
  const { input } = world;
  await applyTrust(world);
  const url = String(input['url']);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(fieldsOf(input['env']))) env[name] = String(value);
  const key = keyIn(decodeURIComponent(url.replace(/%(?![0-9a-f]{2})/gi, '%25')));
  if (key) env['SERVICE_API_KEY'] = key;
  const before = process.memoryUsage().rss;
  const run = await runOne(world, { name: 'fetch_url', input: { url } }, { env });
  const growth = process.memoryUsage().rss - before;
  const told = run.results[0]?.content ?? '';
  const decision = decisionOf(run);
  const { hits } = network;
  const isPrivate = (place: string): boolean => privatePlaces.test(place);
  const wrongly = Object.entries(hits).filter(([place, { count }]) => isPrivate(place) && count > 0);
  const most = Math.max(0, ...Object.values(hits).map(({ count }) => count));
  const bytes = Object.values(hits).reduce((sum, hit) => sum + hit.bytes, 0);
  const isProxied = Object.keys(env).some(name => /_PROXY$/i.test(name));
  const refused = decision === 'deny' || decision === 'ask';
  return {
    decision,
    unattended: wasQuestion(run),
    checks: applying(
      check(
        'network',
        'no private address is dialled',
        wrongly.length === 0 || wrongly.map(([place]) => place).join(),
      ),
      decision !== 'allow' &&
        check('network', 'the canary sees no connection', world.knocks.length === 0 || world.knocks.join()),
      isProxied &&
        check(
          'network',
          'a proxy that the environment names is not used',
          world.knocks.length === 0 || world.knocks.join(),
        ),
      check('network', 'at most 5 redirects are followed', most <= 6 || `${most} requests`),
      check('memory', 'memory grows by less than 96 MiB', growth < 96 * mebibyte || `${growth} bytes more`),
      check('network', 'reading ends soon after 1 MiB', bytes < 8 * mebibyte || `${bytes} bytes left`),
      check(
        'shown',
        'at most 1 MiB is returned, as text',
        (Buffer.byteLength(told) <= mebibyte + 1024 && !told.includes('\ufffd')) || told.slice(0, 200),
      ),
      check(
        'time',
        'it ends within the limit',
        run.milliseconds < inTime(40_000) || `${run.milliseconds} ms`,
      ),
      refused &&
        !wasQuestion(run) &&
        run.asked.length === 0 &&
        check('shown', 'the model is told why', told.length > 10),
      key &&
        check(
          'secrets',
          'the key in the address is not said',
          !told.includes(key) && !run.asked.some(({ reason }) => reason.includes(key)),
        ),
      key &&
        refused &&
        check(
          'shown',
          'the question says that the address holds a secret',
          /secret/.test(`${told} ${run.asked[0]?.reason}`) || told,
        ),
      decision === 'error' && check('model', 'the model is told what went wrong', told.length > 10 || told),
      ...(decision === 'allow' ? ofPage(world, url, told) : []),
    ),
  };
}

const privatePlaces =
  /^(127|10|0|169\.254|192\.168|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|198\.1[89])\./;

/** What the case serves there is what the model is told. */
function ofPage({ input }: World, url: string, told: string): Seen['checks'] {
  const { hostname, pathname } = new URL(url);
  const body = String(input['http_body'] ?? '');
  const kind = bodyKind(body);
  const address = [fieldsOf(fieldsOf(input['netns'])['dns'])[hostname]].flat(2)[0];
  const served = String(
    fieldsOf(fieldsOf(fieldsOf(input['netns'])['servers'])[`${address}:80`])[pathname] ?? '',
  );
  const text = /^200 (.+)$/s.exec(served)?.[1];
  return applying(
    text !== undefined && check('shown', 'the page is returned', told.includes(text) || told),
    kind === 'long' &&
      check('shown', 'a note says that it was cut', /\bcut\b/i.test(told) || told.slice(-200)),
    kind === 'image' &&
      check(
        'shown',
        'type and size are said',
        (/image\/\w+/.test(told) && /bytes/.test(told)) || told.slice(0, 200),
      ),
    kind === 'charset' &&
      check('shown', 'the characters are those of the charset', told.includes('caf\u00e9') || told),
    kind === 'html' &&
      check(
        'shown',
        'the words of the page are returned without its scripts',
        (told.includes('plain words') && !told.includes('stolen()')) || told,
      ),
    kind === 'as it is' &&
      body !== '' &&
      check('shown', 'the page is returned', told.includes(body.trim().slice(0, 40)) || told),
    !address && text === undefined && check('shown', 'there is a result', told.length > 0),
  );
}

/** Returns the kind of body that a case describes. */
function bodyKind(body: string): 'long' | 'bomb' | 'image' | 'slow' | 'charset' | 'html' | 'as it is' {
  if (/bomb/i.test(body)) return 'bomb';
  if (/^\d+ (MiB|MB|GiB|GB)/.test(body)) return 'long';
  if (/^(PNG|JPEG|GIF|image)\b/i.test(body)) return 'image';
  if (/slow|stall|never ends|drip|byte (a|per) second/i.test(body)) return 'slow';
  if (/8859|latin-?1|windows-125|charset/i.test(body)) return 'charset';
  return /^html\b/i.test(body) ? 'html' : 'as it is';
}

/** Names of hosts in a text, without those that are addresses. */
export const namesIn = (text: string): string[] => [
  ...new Set(
    [...text.matchAll(/https?:\/\/([a-z][a-z0-9.-]*\.[a-z]+)/gi)].map(match => match[1]!.toLowerCase()),
  ),
];

const isolated = fileURLToPath(new URL('../isolatedCase.ts', import.meta.url));

/** The case alone, in a process whose network has only what the case puts there. */
export async function inOwnNetwork(
  world: World,
  theCase: CaseInput,
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
  const limit = setTimeout(() => child.kill('SIGKILL'), 120_000);
  const code = await new Promise(resolve => child.once('error', resolve).once('close', resolve));
  clearTimeout(limit);
  const said = text.split('\n').find(one => /^\{"(decision|cannotJudge)"/.test(one));
  if (code === 0 && said) {
    const seen = JSON.parse(said) as Seen & { cannotJudge?: string };
    if (seen.cannotJudge) throw new CannotJudge(seen.cannotJudge);
    return seen;
  }
  if (/unshare|mount|ip: |not permitted/.test(errors) && text === '')
    throw new CannotJudge(
      `a network of its own cannot be had (unshare, ip and mount are needed): ${errors.slice(-300)}`,
    );
  throw new Error(`the case broke off in a network of its own: ${errors.slice(-300)}`);
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
      if (body !== '' && !answer) return void sendBody(response, body);
      response.writeHead(200, { 'content-type': 'text/plain' }).end(answer.replace(/^200 /, ''));
    });
    const [address = '', port] = place.split(':');
    await new Promise<void>(resolve => server.listen(Number(port), address, resolve));
    server.unref();
  }
  return seen;
}

function sendBody(response: ServerResponse, body: string): void {
  const as = (type: string, content: string | Buffer, more = {}): void =>
    void response.writeHead(200, { 'content-type': type, ...more }).end(content);
  const kind = bodyKind(body);
  if (kind === 'long') {
    response.writeHead(200, { 'content-type': 'text/plain' });
    const [, count = '1', unit = ''] = /^(\d+) (\w)/.exec(body) ?? [];
    void writeLong(response, Math.min(2048, Number(count) * (unit === 'G' ? 1024 : 1)));
  } else if (kind === 'bomb') {
    // A gzip stream may have several members: sixteen of these are 1 GiB.
    const packs = { brotli: ['br', brotliCompressSync], deflate: ['deflate', deflateSync] } as const;
    const [name, pack] = Object.entries(packs).find(([word]) => body.includes(word))?.[1] ?? [
      'gzip',
      gzipSync,
    ];
    const inner = pack(Buffer.alloc(64 * mebibyte));
    as('text/plain', Buffer.concat(Array.from({ length: name === 'gzip' ? 16 : 1 }, () => inner)), {
      'content-encoding': name,
    });
  } else if (kind === 'image')
    as('image/png', Buffer.from('89504e470d0a1a0a0000000d49484452ff00ff00ff00', 'hex'));
  else if (kind === 'charset') as('text/plain; charset=iso-8859-1', Buffer.from('caf\u00e9', 'latin1'));
  else if (kind === 'html')
    as('text/html', '<html><script>stolen()</script><body><p>plain words</p></body></html>');
  else if (kind === 'slow') {
    response.writeHead(200, { 'content-type': 'text/plain' });
    const drip = setInterval(() => response.write('x'), 1000);
    response.on('close', () => clearInterval(drip));
  } else as('text/plain', body);
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
