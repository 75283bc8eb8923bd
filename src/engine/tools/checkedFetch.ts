/** Sends the requests for MCP servers and their sign-ins, only to addresses that were checked. */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { constants, createBrotliDecompress, createGunzip } from 'node:zlib';
import { sentence } from '@telos/protocol/text';
import { type AddressKind, addressKind, hostKind, isNeverReached } from '../addresses.ts';
import { TelosError } from '../core/errors.ts';
import { type Resolve, resolveName } from './fetchPage.ts';
import { proxyFor } from './wayOut.ts';

/**
 * Behaves like the global `fetch`, but follows no redirect and reaches no link-local, metadata or reserved address. Such a
 * literal address is refused. A name is resolved once, and only the addresses that were checked are dialled, unless a proxy dials. Addresses of
 * this machine and its network are reached, because the user's configuration asks for them. Rejects with TelosError `mcp`
 * for an address that is never reached.
 */
export async function checkedFetch(input: string | URL, init: RequestInit = {}): Promise<Response> {
  const url = new URL(input);
  const kind = hostKind(url.hostname);
  if (isNeverReached(kind)) throw neverReached(url.hostname, kind);
  // `Request` accepts every form in which a body and headers can be given.
  const request = new Request(url, { ...init, redirect: 'manual' });
  const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
  const answer = await send(url, request, body, init.signal ?? undefined);
  if (init.redirect === 'error' && isRedirect(answer)) {
    answer.destroy();
    throw new TypeError('fetch failed', { cause: new Error('unexpected redirect') });
  }
  return responseOf(answer);
}

const neverReached = (place: string, kind: AddressKind): TelosError =>
  new TelosError('mcp', `${place} is a ${kind} address, which is never reached (floor.fetch-address)`);

const isRedirect = ({ statusCode = 0, headers }: IncomingMessage): boolean =>
  statusCode >= 300 && statusCode < 400 && headers.location !== undefined;

/** Resolves and checks a name once for each connection: a later, second answer would bypass the check. */
const lookupWith =
  (resolve: Resolve): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname).then(
      addresses => {
        const refused = addresses.find(({ address }) => isNeverReached(addressKind(address)));
        const [first] = addresses;
        if (refused) {
          const place = `${hostname} leads to ${refused.address}, which`;
          callback(neverReached(place, addressKind(refused.address)), '', 0);
        } else if (!first) callback(new Error(`${hostname} has no address.`), '', 0);
        else if (options.all) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      },
      error => callback(error, '', 0),
    );
  };

async function send(
  url: URL,
  { method, headers: given }: Request,
  body: Buffer | undefined,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  const isSecure = url.protocol === 'https:';
  const headers = {
    accept: '*/*',
    'accept-encoding': 'identity',
    'user-agent': 'Telos',
    ...Object.fromEntries(given),
    ...(body ? { 'content-length': body.length } : {}),
  };
  const proxy = proxyFor(url);
  if (proxy) {
    const { requestThrough } = await import('./proxyTunnel.ts');
    return requestThrough(url, proxy, { method, headers, body, signal });
  }
  return new Promise((settle, fail) => {
    const request = (isSecure ? requestHttps : requestHttp)({
      ...urlToHttpOptions(url),
      method,
      // A separate agent: a connection that others have opened to the name was not checked.
      agent: isSecure ? new HttpsAgent() : new HttpAgent(),
      lookup: lookupWith(resolveName),
      ...(signal ? { signal } : {}),
      headers,
    });
    request.once('response', settle).once('error', fail).end(body);
  });
}

/** Returns an answer of Node's own client as `fetch` would. */
export function responseOf(answer: IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText = '' } = answer;
  const headers = new Headers();
  for (let at = 0; at + 1 < answer.rawHeaders.length; at += 2)
    headers.append(answer.rawHeaders[at]!, answer.rawHeaders[at + 1]!);
  if ([204, 205, 304].includes(status)) {
    answer.resume();
    return new Response(null, { status, statusText, headers });
  }
  const stream = unpacked(answer, headers.get('content-encoding'));
  return new Response(Readable.toWeb(stream) as ReadableStream, { status, statusText, headers });
}

/** What a line takes in memory besides its text, in bytes. An event may have many that are empty but for their name. */
const lineCost = 64;

/**
 * Returns the answer, whose body fails with TelosError `mcp` once it is larger than `most` bytes. Of a stream of events, which may go on
 * for ever, no single event may be larger.
 */
export function withinBytes(response: Response, most: number): Response {
  if (!response.body) return response;
  const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '');
  let count = 0;
  // Of the line that is read, without its end.
  let lineLength = 0;
  let last: number | undefined;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      let from = 0;
      for (let end = isStream ? chunk.indexOf(10) : -1; end >= 0; end = chunk.indexOf(10, from)) {
        const isReturn = (end > from ? chunk[end - 1] : last) === 13;
        lineLength += end - from;
        // An empty line ends an event.
        count = lineLength <= (isReturn ? 1 : 0) ? 0 : count + (end - from) + lineCost;
        lineLength = 0;
        from = end + 1;
      }
      last = chunk.at(-1) ?? last;
      lineLength += chunk.length - from;
      count += chunk.length - from;
      if (count <= most) return controller.enqueue(chunk);
      controller.error(
        new TelosError('mcp', [sentence('an answer is larger than {0} MB', most / 1024 / 1024)]),
      );
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}

/** Decompresses the answer. Some servers compress it although `identity` was requested. */
function unpacked(answer: IncomingMessage, encoding: string | null): Readable {
  if (!encoding || encoding === 'identity') return answer;
  const flush = { finishFlush: constants.Z_SYNC_FLUSH };
  const unpacking = encoding === 'br' ? createBrotliDecompress() : createGunzip(flush);
  answer.once('error', error => unpacking.destroy(error));
  return answer.pipe(unpacking);
}
