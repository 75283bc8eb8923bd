/** Passes plain HTTP requests of a boxed command on, each to the host that it names and that was decided on. */
import { Agent, type IncomingMessage, request as requestHttp, ServerResponse, STATUS_CODES } from 'node:http';
import type { LookupFunction, Socket } from 'node:net';
import { pipeline, Transform } from 'node:stream';
import type { Address } from '../tools/fetchPage.ts';
import { plainRequest, refused, unreachable } from '../tools/proxyTunnel.ts';
import { type NamedProxy, proxyFor } from '../tools/wayOut.ts';

/** A host and port that a command names. */
export interface Destination {
  /** As the host of a URL has it, without a dot at its end. */
  host: string;
  /** The host without brackets. */
  bare: string;
  port: number;
  /** `host:port`. */
  name: string;
  url: URL;
}

/** The addresses that may be dialled for a place, or why none may. */
export type Way = { place: Destination; addresses: readonly Address[] } | { status: number; problem: string };

/** What the relay needs of the proxy that it belongs to. */
export interface Door {
  signal: AbortSignal;
  isKnown(request: IncomingMessage): boolean;
  holdsSecret(text: string): boolean;
  wayTo(place: Destination, socket: Socket): Promise<Way>;
  refused(place: Destination, reason: string): { status: number; problem: string };
  unreached(place: Destination, error: unknown): { status: number; problem: string };
  keep(socket: Socket): void;
}

/** Returns the place that `host:port` names, in the one spelling that all others are brought to; undefined if it is none. */
export function destinationOf(authority: string): Destination | undefined {
  const [, name = '', digits = ''] = /^(\[[\da-f:.]{2,64}\]|[\w.-]{1,254}):(\d{1,5})$/i.exec(authority) ?? [];
  const port = Number(digits);
  if (name === '' || port < 1 || port > 65535) return undefined;
  const address = `${port === 80 ? 'http' : 'https'}://${name.replace(/\.$/, '')}:${port}/`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const host = url.hostname;
  return { host, bare: host.replace(/^\[|\]$/g, ''), port, name: `${host}:${port}`, url };
}

/** Returns a lookup that knows these addresses only. */
export const lookupIn =
  (addresses: readonly Address[]): LookupFunction =>
  (_hostname, options, callback) => {
    if (options.all) callback(null, [...addresses]);
    else callback(null, addresses[0]!.address, addresses[0]!.family);
  };

/** Passes bytes on in both directions until both have ended. */
export function joined(one: Socket, other: Socket): void {
  one.pipe(other);
  other.pipe(one);
  // What is still to be written is written first.
  one.on('close', () => other.end(() => other.destroy()));
  other.on('close', () => one.end(() => one.destroy()));
}

export const unknownClient =
  'The proxy of the sandbox serves the programs of its own command only: the password in http_proxy is missing.';
/** Some programs send their password only after they have read this. */
export const loginHeader = 'proxy-authenticate: Basic realm="box"';

/** Returns a whole answer with one sentence. */
export const answer = (status: number, text: string, headers: readonly string[] = []): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.map(each => `${each}\r\n`).join('')}content-type: text/plain; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(text) + 1}\r\nconnection: close\r\n\r\n${text}\n`;

/** Headers that are for the next hop alone. `host` is replaced. */
const ofHop =
  /^(?:connection|proxy-[\w-]+|keep-alive|te|trailer|upgrade|expect|host|transfer-encoding|http2-settings)$/;

/** Returns names and values in turn without those that are for this hop. How long a body is stays, even if a header says that it is for this hop. */
function endToEnd(raw: readonly string[]): string[] {
  const pairs = raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]!] as const] : []));
  const named = pairs
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map(name => name.trim());
  const isDropped = (name: string): boolean =>
    ofHop.test(name) || (named.includes(name) && name !== 'content-length');
  return pairs.filter(([name]) => !isDropped(name.toLowerCase())).flat();
}

export class WebRelay {
  readonly #door: Door;
  /** Connections within a tunnel, which lead to one place. */
  readonly #bound = new WeakMap<Socket, Destination>();

  constructor(door: Door) {
    this.#door = door;
  }

  bind(socket: Socket, place: Destination): void {
    this.#bound.set(socket, place);
  }

  /** Answers one request. A second one on the same connection is decided on by itself. Never throws. */
  async onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const found = await this.#wayOf(request);
      if ('status' in found) return refuse(response, found);
      const upstream = this.#send(request, found);
      upstream.once('response', incoming => this.#answered(found.place, incoming, response));
      upstream.once('error', error => this.#fail(found.place, error, response));
      response.once('close', () => upstream.destroy());
      const guard = this.#guard(found.place, problem => {
        upstream.destroy();
        refuse(response, problem);
      });
      pipeline(request, guard, upstream, () => undefined);
    } catch (error) {
      refuse(response, {
        status: 400,
        problem: `The proxy of the sandbox cannot pass this request on: ${error}`,
      });
    }
  }

  /** Answers a request to change the protocol. Only WebSockets are known; others go on in HTTP, as a server may have them. */
  async onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.end());
    const { upgrade = '', 'content-length': length, 'transfer-encoding': coding } = request.headers;
    if (length !== undefined || coding !== undefined)
      return refuse(response, {
        status: 400,
        problem: 'The proxy of the sandbox changes no protocol after a body.',
      });
    if (!/^websocket$/i.test(upgrade)) return this.onRequest(request, response);
    try {
      const found = await this.#wayOf(request);
      if ('status' in found) return refuse(response, found);
      const upstream = this.#send(request, found, ['connection', 'Upgrade', 'upgrade', 'websocket']);
      upstream.once('response', incoming => this.#answered(found.place, incoming, response));
      upstream.once('error', error => this.#fail(found.place, error, response));
      upstream.once('upgrade', (incoming, other: Socket, first) => {
        this.#door.keep(other);
        response.detachSocket(socket);
        const headers = [...endToEnd(incoming.rawHeaders), 'connection', 'Upgrade', 'upgrade', 'websocket'];
        const lines = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : []));
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1');
        socket.write(first);
        other.write(head);
        joined(socket, other);
      });
      upstream.end();
    } catch {
      socket.destroy();
    }
  }

  /** Returns the way to the host of a request with the path that it wants there, or why it is not passed on. */
  async #wayOf(request: IncomingMessage): Promise<Way & { path?: string }> {
    // A tunnel was opened by one that is known.
    if (!this.#bound.has(request.socket) && !this.#door.isKnown(request))
      return { status: 407, problem: unknownClient };
    const target = this.#targetOf(request);
    if (typeof target === 'string') return { status: 400, problem: target };
    const { place, path } = target;
    // The answer to a question about the host is not one about what would be sent there unprotected.
    if (this.#door.holdsSecret(`${path}\n${request.rawHeaders.join('\n')}`))
      return this.#door.refused(place, withSecret);
    const way = await this.#door.wayTo(place, request.socket);
    return 'status' in way ? way : { ...way, path };
  }

  /** Returns the place and the path of a request, or what is wrong with it. */
  #targetOf({
    url = '',
    rawHeaders,
    socket,
  }: IncomingMessage): { place: Destination; path: string } | string {
    const bound = this.#bound.get(socket);
    const [, authority, rest = ''] = /^http:\/\/([^/?#]+)([/?][^#]*)?$/i.exec(url) ?? [];
    if (authority !== undefined) {
      const place = destinationOf(withPort(authority, 80));
      if (!place) return 'The address has no host that the proxy of the sandbox can reach.';
      if (bound && bound.name !== place.name) return `This connection leads to ${bound.name} only.`;
      return { place, path: rest.startsWith('/') ? rest : `/${rest}` };
    }
    if (!bound || !/^(?:\/|\*$)/.test(url))
      return 'The proxy of the sandbox needs a whole address that begins with http://.';
    const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]!.toLowerCase() === 'host');
    const [host = ''] = hosts;
    if (
      hosts.length !== 1 ||
      destinationOf(withPort(host, bound.port === 443 ? 443 : 80))?.name !== bound.name
    )
      return `This connection leads to ${bound.name} only.`;
    return { place: bound, path: url };
  }

  #send(
    { method = 'GET', rawHeaders, headers }: IncomingMessage,
    { place, addresses, path = '/' }: Exclude<Way, { status: number }> & { path?: string },
    more: readonly string[] = [],
  ) {
    const coding = headers['transfer-encoding'] === undefined ? [] : ['transfer-encoding', 'chunked'];
    const host = hostIn(place);
    const { signal } = this.#door;
    const sent = [...endToEnd(rawHeaders), ...coding, ...more];
    const proxy = proxyOf(place);
    const upstream = proxy
      ? plainRequest({ host, pathname: path, search: '' }, proxy, {
          method,
          signal,
          headers: ['host', host, ...sent],
        })
      : requestHttp({
          host: place.bare,
          port: place.port,
          method,
          path,
          // One that is used by nothing else: a shared one may send everything through another proxy.
          agent: new Agent(),
          lookup: lookupIn(addresses),
          signal,
          headers: ['host', host, ...sent],
        });
    upstream.on('socket', socket => this.#door.keep(socket));
    return upstream;
  }

  /** Returns a stream that ends before any byte of a loaded secret has gone through it. */
  #guard(place: Destination, onSecret: (problem: { status: number; problem: string }) => void): Transform {
    const { holdsSecret } = this.#door;
    const refused = (): void => onSecret(this.#door.refused(place, withSecret));
    let held = Buffer.alloc(0);
    return new Transform({
      transform(chunk: Buffer, _encoding, callback) {
        held = Buffer.concat([held, chunk]);
        if (holdsSecret(held.toString('latin1'))) return refused();
        const ready = Math.max(0, held.length - longestSecretForm);
        callback(null, held.subarray(0, ready));
        held = held.subarray(ready);
      },
      flush(callback) {
        callback(null, held);
      },
    });
  }

  #answered(place: Destination, incoming: IncomingMessage, response: ServerResponse): void {
    const proxy = proxyOf(place);
    if (!proxy || incoming.statusCode !== 407) return void passOn(incoming, response);
    // The command would take it for an answer of the sandbox, whose password is another.
    incoming.resume();
    refuse(response, this.#door.unreached(place, refused(proxy, place.name, 407)));
  }

  #fail(place: Destination, error: unknown, response: ServerResponse): void {
    if (response.headersSent || this.#door.signal.aborted) return void response.destroy();
    const proxy = proxyOf(place);
    refuse(response, this.#door.unreached(place, proxy ? unreachable(proxy, error) : error));
  }
}

const hostIn = (place: Destination): string => (place.port === 80 ? place.host : place.name);

/** Returns the proxy through which this machine reaches a place over plain http. */
const proxyOf = (place: Destination): NamedProxy | undefined => proxyFor(new URL(`http://${hostIn(place)}`));

/** In bytes. Longer forms of a secret are not known to be sent. */
const longestSecretForm = 8192;

const withSecret = 'the request holds a secret that is loaded here, and would be sent without encryption.';

const withPort = (authority: string, port: number): string =>
  /:\d+$/.test(authority) ? authority : `${authority}:${port}`;

function refuse(response: ServerResponse, { status, problem }: { status: number; problem: string }): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const [name, value] = loginHeader.split(': ') as [string, string];
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    connection: 'close',
    ...(status === 407 && { [name]: value }),
  });
  response.end(`${problem}\n`);
}

function passOn(incoming: IncomingMessage, response: ServerResponse): void {
  if (response.destroyed) return void incoming.destroy();
  try {
    response.writeHead(
      incoming.statusCode ?? 502,
      incoming.statusMessage ?? '',
      endToEnd(incoming.rawHeaders),
    );
    pipeline(incoming, response, () => undefined);
  } catch {
    incoming.destroy();
    refuse(response, {
      status: 502,
      problem: 'The server answered with headers that cannot be passed on.',
    });
  }
}
