/** Fetches one page from an address that was checked first, and from no other, whatever names and redirects say. */

import { lookup as systemLookup } from 'node:dns/promises';
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import type { ToolResult } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import { addressKind, hostKind, isNeverReached, parseWebAddress } from '../addresses.ts';
import { untilAborted } from '../cancellation.ts';
import { describeBinary, looksBinary } from '../files/plainText.ts';
import { proxyFor } from './wayOut.ts';

/** Bytes of a page after decompression. Nothing beyond is read. */
const bodyLimit = 1024 * 1024;
const maximumRedirects = 5;
/** Highest ratio of unpacked to packed size. No honest page is packed more tightly. */
const mostUnpacked = 100;

export interface Address {
  address: string;
  family: number;
}

/** Finds all addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly Address[]>;

export const resolveName: Resolve = hostname => systemLookup(hostname, { all: true });

/** Thrown to end a fetch with a sentence for the model in place of a page. */
export class FetchProblem extends Error {}

/**
 * Fetches the text of an address. `approved` is the address that was decided on; any other is refused. Throws Error with a
 * sentence for the model, or the abort reason on abort.
 */
export async function fetchPage(
  given: string,
  approved: string | undefined,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<ToolResult> {
  let url = webAddress(given);
  if (approved !== undefined && approved !== url.href)
    throw new FetchProblem(`it means ${url.href}, but ${approved} was checked. Nothing was sent.`);
  for (let redirects = 0; redirects <= maximumRedirects; redirects++) {
    const addresses = await checkedAddresses(url, approved, resolve, signal, 'proxy');
    const response = await get(url, addresses, signal);
    const location = redirectTarget(response);
    if (location === undefined) return await readAnswer(response, url, redirects > 0);
    response.destroy();
    const next = webAddress(location, url);
    // Approval of one host does not cover the host that it redirects to. The next call is decided on separately.
    if (!staysAt(url, next) && !isNeverReached(hostKind(next.hostname))) return elsewhere(url, next);
    url = next;
  }
  throw new FetchProblem(
    `It redirects more than ${maximumRedirects} times. The last address was ${url.href}.`,
  );
}

function webAddress(given: string, base?: URL): URL {
  const parsed = parseWebAddress(given, base);
  if ('url' in parsed) return parsed.url;
  throw new FetchProblem(
    base === undefined ? parsed.problem : `It redirects to a refused address. ${parsed.problem}`,
  );
}

/**
 * Resolves the host once. Every address must be allowed, since any of them may be dialled. A host on this machine or its
 * network is allowed only if the person saw and approved it as such. A public-looking name that leads there is a trap. Returns none for a
 * name that only the proxy of this address can resolve.
 */
export async function checkedAddresses(
  url: URL,
  approved: string | undefined,
  resolve: Resolve,
  signal: AbortSignal,
  dials: 'itself' | 'proxy' = 'itself',
): Promise<readonly Address[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const named = hostKind(host);
  if (isNeverReached(named))
    throw new FetchProblem(`${url.host} is a ${named} address, which is never fetched.`);
  const mayBePrivate =
    named !== 'public' && approved !== undefined && new URL(approved).origin === url.origin;
  if (named !== 'public' && !mayBePrivate)
    throw new FetchProblem(
      `${url.host} is on this machine or its network (${named}) and has not been approved.`,
    );
  const family = isIP(host);
  // A name's resolution itself cannot be cancelled.
  const isProxied = dials === 'proxy' && proxyFor(url) !== undefined;
  const resolved = isProxied ? resolve(host).catch(() => []) : resolve(host);
  const addresses = family === 0 ? await untilAborted(resolved, signal) : [{ address: host, family }];
  if (addresses.length === 0 && !isProxied) throw new FetchProblem(`${host} has no address.`);
  for (const { address } of addresses) {
    const kind = addressKind(address);
    if (kind !== 'public' && (isNeverReached(kind) || !mayBePrivate))
      throw new FetchProblem(`${host} leads to the ${kind} address ${address}, which is not fetched.`);
  }
  return addresses;
}

/**
 * Sends a request to these addresses and to no other, unless a proxy dials. Rejects with the errors of the network or of the proxy, or the
 * abort reason on abort.
 */
export async function get(
  url: URL,
  addresses: readonly Address[],
  signal: AbortSignal,
  more: { method?: string; headers?: Readonly<Record<string, string>>; body?: string } = {},
): Promise<IncomingMessage> {
  const method = more.method ?? 'GET';
  const headers = {
    accept: 'text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5',
    'accept-encoding': 'gzip, br',
    'user-agent': 'Telos',
    ...more.headers,
  };
  const proxy = proxyFor(url);
  if (proxy) {
    const { requestThrough } = await import('./proxyTunnel.ts');
    return requestThrough(url, proxy, { method, headers, body: more.body, signal });
  }
  // Only the checked addresses are dialled, even if the name resolves differently by now.
  const lookup: LookupFunction = (_hostname, options, callback) => {
    if (options.all) callback(null, [...addresses]);
    else callback(null, addresses[0]!.address, addresses[0]!.family);
  };
  const secure = url.protocol === 'https:';
  return new Promise((settle, fail) => {
    // A separate agent: the shared one may send everything through a proxy that the environment names.
    const request = (secure ? requestHttps : requestHttp)({
      ...urlToHttpOptions(url),
      agent: secure ? new HttpsAgent() : new HttpAgent(),
      lookup,
      signal,
      method,
      headers,
    });
    request.once('response', settle).once('error', fail).end(more.body);
  });
}

/**
 * Returns true for a redirect within what was approved. Approval of https does not cover plain http, which others can read
 * in transit.
 */
export const staysAt = (from: URL, to: URL): boolean =>
  siteOf(from) === siteOf(to) && !(from.protocol === 'https:' && to.protocol === 'http:');

/** Returns what identifies a site. `www.` and the scheme do not matter, but another port is another server. */
const siteOf = ({ hostname, port }: URL): string =>
  `${hostname.replace(/^www\./, '').replace(/\.$/, '')}:${port}`;

function elsewhere(from: URL, to: URL): ToolResult {
  const where = siteOf(from) === siteOf(to) ? 'plain http' : 'another host';
  const content = `${from.href} redirects to ${where}, which was not contacted: ${to.href}\nFetch that address if you need it.`;
  return { content, isError: false };
}

function redirectTarget(response: IncomingMessage): string | undefined {
  const redirects = [301, 302, 303, 307, 308].includes(response.statusCode ?? 0);
  return redirects ? response.headers.location : undefined;
}

async function readAnswer(response: IncomingMessage, url: URL, redirected: boolean): Promise<ToolResult> {
  const { bytes, cut } = await readBody(response);
  const stated = response.headers['content-encoding'] ? 0 : Number(response.headers['content-length'] ?? 0);
  const type = response.headers['content-type'] ?? '';
  const notes = [await bodyText(bytes, type, url)];
  if (cut)
    notes.push(
      `[Cut: these are the first ${grouped(bytes.length)} bytes of the answer${stated > bytes.length ? `, which has ${grouped(stated)}` : ''}; the rest was not read.]`,
    );
  if (redirected) notes.push(`[Redirected to ${url.href}]`);
  const status = response.statusCode ?? 0;
  const failed = status < 200 || status >= 300;
  if (failed) notes.unshift(`HTTP ${status} ${response.statusMessage ?? ''}`.trim());
  const content = notes.filter(note => note !== '').join('\n\n');
  return { content: content === '' ? '(empty answer)' : content, isError: failed };
}

async function readBody(response: IncomingMessage): Promise<{ bytes: Buffer; cut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  const body = decompressed(response);
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk.subarray(0, bodyLimit - size));
    size += chunk.length;
    if (size > bodyLimit) break;
  }
  const packed = body === response ? size : (body as { bytesWritten?: number }).bytesWritten || size;
  response.destroy();
  if (size > bodyLimit && size > packed * mostUnpacked)
    throw new FetchProblem(
      `The answer unpacks to more than ${mostUnpacked} times its size and beyond ${grouped(bodyLimit)} bytes; it was discarded.`,
    );
  return { bytes: Buffer.concat(chunks), cut: size > bodyLimit };
}

function decompressed(response: IncomingMessage): Readable {
  const encoding = (response.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  // The callback only prevents a second throw of the same error, which the reader of the last stream also gets.
  if (encoding === 'gzip' || encoding === 'x-gzip')
    return pipeline(response, createGunzip(), () => undefined);
  if (encoding === 'br') return pipeline(response, createBrotliDecompress(), () => undefined);
  if (encoding === 'identity') return response;
  throw new FetchProblem(`The server answered in the encoding ${encoding}, which was not requested.`);
}

async function bodyText(bytes: Buffer, contentType: string, url: URL): Promise<string> {
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase();
  const charset = markedCharset(bytes) ?? /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1];
  const wide = charset?.toLowerCase().startsWith('utf-16') ?? false;
  const picture = /^(image|audio|video|font)\//.test(type) && !type.endsWith('+xml');
  if (picture || type === 'application/pdf' || (!wide && looksBinary(bytes)))
    return describeBinary(type === '' ? 'answer' : type, bytes, bytes.length);
  const isPage = type === 'text/html' || type === 'application/xhtml+xml';
  const text = decoded(bytes, charset ?? (isPage ? charsetInPage(bytes) : undefined) ?? 'utf-8');
  return isPage ? (await import('./htmlText.ts')).htmlToText(text, url) : text;
}

/** Returns the encoding that a byte order mark names. */
function markedCharset(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined;
}

const charsetInPage = (bytes: Buffer): string | undefined =>
  /<meta[^>]{1,200}?charset\s*=\s*["']?([\w.:-]+)/i.exec(bytes.toString('latin1', 0, 1024))?.[1];

function decoded(bytes: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder('utf-8').decode(bytes);
  }
}
