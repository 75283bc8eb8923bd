/** Sends requests through a proxy: a tunnel for https, the whole address for plain http. */
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { deepestCode, type NamedProxy } from './wayOut.ts';

/** How long a proxy may take to open a tunnel, in milliseconds. */
const patienceMs = 30_000;

export interface ProxiedRequest {
  method: string;
  headers: OutgoingHttpHeaders;
  body?: string | Buffer | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Sends a request. Rejects with TelosError: `config` if the proxy refuses, `provider` if it cannot be reached. Rejects with the errors of
 * the network beyond the proxy, or the abort reason on abort.
 */
export async function requestThrough(
  url: URL,
  proxy: NamedProxy,
  { body, signal, ...options }: ProxiedRequest,
): Promise<IncomingMessage> {
  if (url.protocol === 'https:') {
    const socket = await openTunnel(url, proxy, signal);
    const servername = isIP(url.hostname) || url.hostname.startsWith('[') ? '' : url.hostname;
    return settled(
      requestHttps({
        ...urlToHttpOptions(url),
        ...options,
        ...(signal && { signal }),
        createConnection: () => connectTls({ socket, servername, host: url.hostname }),
      }),
      body,
    );
  }
  const headers = { ...options.headers, host: url.host };
  const request = plainRequest(url, proxy, { ...options, headers, ...(signal && { signal }) });
  const answer = await settled(request, body).catch(error => {
    throw unreachable(proxy, error);
  });
  if (answer.statusCode !== 407) return answer;
  answer.destroy();
  throw refused(proxy, url.host, 407);
}

/** Returns a request for a plain http address, which the proxy sends on. It is not ended. */
export function plainRequest(
  { host, pathname, search }: Pick<URL, 'host' | 'pathname' | 'search'>,
  proxy: NamedProxy,
  { headers, ...options }: RequestOptions,
): ClientRequest {
  const login = loginOf(proxy);
  return requestAt(proxy)({
    ...placeOf(proxy),
    ...options,
    path: `http://${host}${pathname}${search}`,
    headers: Array.isArray(headers)
      ? [...headers, ...Object.entries(login).flat()]
      : { ...headers, ...login },
  });
}

function settled(request: ReturnType<typeof requestHttp>, body?: string | Buffer): Promise<IncomingMessage> {
  return new Promise((settle, fail) => {
    request.once('response', settle).once('error', fail).end(body);
  });
}

const requestAt = ({ url }: NamedProxy): typeof requestHttp =>
  url.protocol === 'https:' ? requestHttps : requestHttp;

const placeOf = ({ url }: NamedProxy): object => ({
  host: url.hostname.replace(/^\[|\]$/g, ''),
  port: url.port || (url.protocol === 'https:' ? 443 : 80),
  agent: false,
});

function loginOf({ url: { username, password } }: NamedProxy): { 'proxy-authorization'?: string } {
  if (!username && !password) return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}

/** Returns a connection to the host of an address. Rejects as `requestThrough` does. */
export function openTunnel(url: URL, proxy: NamedProxy, signal: AbortSignal | undefined): Promise<Socket> {
  const place = `${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`;
  return new Promise((settle, fail) => {
    const headers = { host: place, ...loginOf(proxy) };
    const request = requestAt(proxy)({
      ...placeOf(proxy),
      method: 'CONNECT',
      path: place,
      headers,
      timeout: patienceMs,
      ...(signal && { signal }),
    });
    request.once('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
      socket.setTimeout(0);
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy();
        return fail(refused(proxy, place, statusCode));
      }
      if (head.length > 0) socket.unshift(head);
      settle(socket);
    });
    request.once('timeout', () =>
      request.destroy(Object.assign(new Error('The proxy is silent.'), { code: 'ETIMEDOUT' })),
    );
    request.once('error', error => fail(unreachable(proxy, error))).end();
  });
}

/** Returns the error for a proxy that answers with this status in place of the server. */
export function refused({ url, variable }: NamedProxy, place: string, status: number): TelosError {
  if (status === 407)
    return new TelosError('config', [
      sentence(
        'The proxy {0} wants a name and a password, or refuses those of {1} (407).',
        url.host,
        variable,
      ),
      sentence('Set {0} to {1}.', variable, `${url.protocol}//name:password@${url.host}`),
    ]);
  return new TelosError(status >= 500 ? 'provider' : 'config', [
    sentence('The proxy {0} opens no way to {1} ({2}).', url.host, place, status),
    sentence('Ask who runs it, or name the host in NO_PROXY if it is reached without a proxy.'),
  ]);
}

/** Returns the error for a proxy that cannot be reached. The error itself if the request was stopped. */
export function unreachable({ url, variable }: NamedProxy, error: unknown): unknown {
  if (error instanceof Error && error.name === 'AbortError') return error;
  const why = deepestCode(error) ?? (error instanceof Error ? error.message : String(error));
  return new TelosError(
    'provider',
    [
      sentence('The proxy {0} cannot be reached ({1}).', url.host, why),
      sentence('Check the network and {0}.', variable),
    ],
    { cause: error },
  );
}
