/** Downloads the files of a source: over https, from addresses that were checked, up to a limit, and with a token for its own origin alone. */

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { errorCode } from '@telos/engine/files';
import {
  certificateProblem,
  checkedAddresses,
  FetchProblem,
  get,
  hostKind,
  parseWebAddress,
  resolveName,
} from '@telos/engine/tools';
import { asSaid, beginningOf, type Sentence, sentence } from '@telos/protocol/text';
import type { Reach } from './sourceText.ts';

export interface Download {
  /** Address of the answer, after redirects. */
  url: string;
  status: number;
  type: string;
  bytes: Buffer;
  sha256: string;
  headers: IncomingMessage['headers'];
}

export interface DownloadOptions {
  reach: Reach;
  accept?: string;
  /** Sent to the origin of the first address, and to no other. */
  token?: string | undefined;
  /** JSON that is posted. */
  body?: unknown;
  /** Statuses beside 2xx that the caller reads itself. */
  allow?: readonly number[];
  /** In bytes. */
  limit?: number;
}

/** Packed bytes of an archive; unpacked there are at most 100 MiB of a pack. */
const archiveLimit = 64 * 1024 * 1024;
export const textLimit = 8 * 1024 * 1024;

const mostRedirects = 5;
/** Longest wait that a server may ask for. In seconds. */
const longestWait = 60;

/**
 * Returns the answer. Throws TelosError `pack` with a sentence for an address that is refused, a server that does not answer, a
 * status that is not allowed, or too many bytes. Throws the abort reason on abort.
 */
export async function download(address: string, options: DownloadOptions): Promise<Download> {
  const { reach, allow = [] } = options;
  for (let waited = 0; ; ) {
    const answer = await once(address, options);
    if (answer.status === 429 && waited === 0) {
      const seconds = waitOf(answer.headers['retry-after']);
      if (seconds <= longestWait) {
        reach.progress?.({ kind: 'waiting', seconds, host: new URL(answer.url).host });
        await pause(seconds * 1000, undefined, { signal: reach.signal });
        waited = seconds;
        continue;
      }
    }
    if ((answer.status >= 200 && answer.status < 300) || allow.includes(answer.status)) return answer;
    throw failure(answer);
  }
}

/** Returns the value in the JSON of an answer. Throws TelosError `pack` as `download` does, and if it is not a JSON object. */
export async function downloadJson(
  address: string,
  options: DownloadOptions,
): Promise<Record<string, unknown>> {
  const answer = await download(address, { accept: 'application/json', limit: textLimit, ...options });
  return jsonOf(answer);
}

export function jsonOf({ bytes, url }: Pick<Download, 'bytes' | 'url'>): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, ''));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new TelosError('pack', [sentence('{0} did not answer with JSON.', url), nothingInstalled]);
}

async function once(address: string, options: DownloadOptions): Promise<Download> {
  const { reach, token, accept = '*/*', body } = options;
  let url = checkedUrl(address, reach);
  const first = url.origin;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    reach.signal.throwIfAborted();
    const response = await answered(url, reach, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept,
        'accept-encoding': 'identity',
        ...(token !== undefined && url.origin === first && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const location = isRedirect(response) ? response.headers.location : undefined;
    if (location === undefined) return await read(response, url, options);
    response.destroy();
    url = checkedUrl(location, reach, url);
  }
  throw new TelosError('pack', [
    sentence('{0} redirects more than {1} times.', address, mostRedirects),
    nothingInstalled,
  ]);
}

export const nothingInstalled = sentence('Nothing was installed.');

const isRedirect = ({ statusCode = 0 }: IncomingMessage): boolean =>
  [301, 302, 303, 307, 308].includes(statusCode);

/** Plain http only to this machine, where no one listens in between, and only if the person named exactly that origin. */
function checkedUrl(address: string, { origins }: Reach, base?: URL): URL {
  const parsed = parseWebAddress(address, base);
  const from = base === undefined ? [] : [sentence('{0} redirects to a refused address.', base.host)];
  if (!('url' in parsed)) throw new TelosError('pack', [...from, asSaid(parsed.problem), nothingInstalled]);
  const { url } = parsed;
  const isOwnLoopback = hostKind(url.hostname) === 'loopback' && origins.has(url.origin);
  if (url.protocol !== 'https:' && !isOwnLoopback)
    throw new TelosError('pack', [
      ...from,
      sentence('{0} is not https, so others could change what comes.', url.href),
      sentence('Give an https address.'),
      nothingInstalled,
    ]);
  return url;
}

async function answered(
  url: URL,
  { origins, signal }: Reach,
  request: Parameters<typeof get>[3],
): Promise<IncomingMessage> {
  try {
    const approved = origins.has(url.origin) ? url.href : undefined;
    const addresses = await checkedAddresses(url, approved, resolveName, signal, 'proxy');
    return await get(url, addresses, signal, request);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof FetchProblem)
      throw new TelosError('pack', [asSaid(error.message), nothingInstalled], { cause: error });
    if (error instanceof TelosError && error.sentences)
      throw new TelosError('pack', [...error.sentences, nothingInstalled], { cause: error });
    throw offline(url, error);
  }
}

function offline({ origin, host, pathname }: URL, cause: unknown): TelosError {
  const certificate = certificateProblem(host, cause);
  if (certificate) return new TelosError('pack', [...certificate, nothingInstalled], { cause });
  const why = [
    sentence('{0} cannot be reached: {1}.', `${origin}${pathname}`, whyOffline(cause)),
    sentence('Check the address and the network, then try again.'),
    nothingInstalled,
  ];
  return new TelosError('pack', why, { cause });
}

function whyOffline(cause: unknown): Sentence {
  switch (errorCode(cause)) {
    case 'ECONNREFUSED':
      return sentence('nothing answers there');
    case 'ENOTFOUND':
      return sentence('no server has this name');
    case 'EAI_AGAIN':
      return sentence('its name cannot be looked up');
    case 'ETIMEDOUT':
      return sentence('it does not answer');
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return sentence('no network leads there');
    case 'ECONNRESET':
    case 'EPIPE':
      return sentence('the connection was cut off');
    default:
      return asSaid(reasonOf(cause));
  }
}

async function read(
  response: IncomingMessage,
  url: URL,
  { reach, limit = archiveLimit }: DownloadOptions,
): Promise<Download> {
  const [pieces, hash] = [[] as Buffer[], createHash('sha256')];
  const stated = Number(response.headers['content-length'] ?? 0);
  let size = 0;
  try {
    if (stated > limit) throw tooLarge(url, limit);
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > limit) throw tooLarge(url, limit);
      pieces.push(piece);
      hash.update(piece);
      reach.progress?.({
        kind: 'downloading',
        host: url.host,
        bytes: size,
        ...(stated > 0 && { of: stated }),
      });
    }
  } catch (error) {
    reach.signal.throwIfAborted();
    throw error instanceof TelosError ? error : offline(url, error);
  } finally {
    response.destroy();
  }
  return {
    url: url.href,
    status: response.statusCode ?? 0,
    type: (response.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase(),
    bytes: Buffer.concat(pieces),
    sha256: hash.digest('hex'),
    headers: response.headers,
  };
}

const tooLarge = (url: URL, limit: number): TelosError =>
  new TelosError('pack', [
    sentence(
      '{0} is larger than {1} MiB, which is more than a pack may have.',
      url.href,
      limit / 1024 / 1024,
    ),
    nothingInstalled,
  ]);

/** Reads seconds or a date. */
function waitOf(header: string | undefined): number {
  const seconds = Number(header ?? 1);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const until = (Date.parse(header ?? '') - Date.now()) / 1000;
  return Number.isFinite(until) ? Math.max(0, Math.ceil(until)) : 1;
}

/** Returns the error for a status, with the server's own sentence where it has one. */
function failure({ status, url, bytes, type, headers }: Download): TelosError {
  const text = type === 'text/plain' ? beginningOf(bytes.toString('utf8').trim(), 300) : '';
  const said = text === '' ? [] : [sentence('It says: {0}', text)];
  if (status === 429)
    return new TelosError('pack', [
      sentence(
        '{0} asks to wait {1} seconds before the next request.',
        new URL(url).host,
        waitOf(headers['retry-after']),
      ),
      sentence('Try again then.'),
      nothingInstalled,
    ]);
  if (status === 404)
    return new TelosError('pack', [sentence('{0} was not found.', url), ...said, nothingInstalled]);
  return new TelosError('pack', [sentence('{0} answered with {1}.', url, status), ...said, nothingInstalled]);
}
