/**
 * The only way from the box to the network: a proxy for HTTP and SOCKS that lets a command reach the hosts that it may, by name and
 * port. It listens on a Unix socket or a port of this machine, finds the addresses of names itself, and dials only those that were
 * checked.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, isIP, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sentence } from '@telos/protocol/text';
import { reasonOf, TelosError } from '../core/errors.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { checkedAddresses, FetchProblem, type Resolve, resolveName } from '../tools/fetchPage.ts';
import { openTunnel } from '../tools/proxyTunnel.ts';
import type { AskHost } from '../tools/tool.ts';
import { proxyFor } from '../tools/wayOut.ts';
import { openingOf, socksAnswers, socksGreeting, socksLogin, socksRequest, socksVersion } from './opening.ts';
import {
  answer,
  type Destination,
  type Door,
  destinationOf,
  joined,
  loginHeader,
  lookupIn,
  unknownClient,
  type Way,
  WebRelay,
} from './webRelay.ts';

/** Of one command. */
const mostConnections = 256;
const mostHosts = 40;
const mostNotes = 10;
/** In bytes. */
const headerLimit = 16 * 1024;
const openingLimit = 64 * 1024;
/** A path of a Unix socket has room for this many bytes. */
const longestSocketPath = 100;

/** How long the proxy waits, in milliseconds. */
export interface ProxyTimes {
  /** For the first words of a client, and for each part of a greeting. */
  opening: number;
  /** For a server. */
  connect: number;
  /** For the next byte of a connection. */
  idle: number;
}

const usualTimes: ProxyTimes = { opening: 15_000, connect: 30_000, idle: 300_000 };

export interface ProxyOptions {
  /** Returns true for a text that holds a loaded secret. */
  holdsSecret?: ((text: string) => boolean) | undefined;
  resolve?: Resolve;
  times?: Partial<ProxyTimes>;
  /** `name:password` that each connection must bring. Without it, anyone who can open the socket is served. */
  login?: string;
}

/** Where every user of this machine can connect, so that each connection must bring `login`. */
export type PortOptions = ProxyOptions & { login: string };

/** The proxy of one command. */
export interface CommandProxy {
  /** Path of the Unix socket that it listens on. */
  socket: string;
  /** Ends every connection and withdraws open questions. Returns sentences about what was refused. Never throws. */
  end(): Promise<readonly string[]>;
}

/**
 * Starts the proxy of one command, in a folder that only this user can open. Throws TelosError `config` if nothing can listen here.
 */
export async function openProxy(
  program: string,
  ask: AskHost,
  options: ProxyOptions = {},
): Promise<CommandProxy> {
  try {
    // Node makes it with the rights 0700.
    const folder = await mkdtemp(join(shortFolder(), 'telos-'));
    const socket = join(folder, 'proxy');
    const door = new CommandDoor(program, ask, options);
    await door.listen(socket);
    const end = async (): Promise<readonly string[]> => {
      const notes = await door.end();
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      return notes;
    };
    return { socket, end };
  } catch (error) {
    throw notStarted(error);
  }
}

/**
 * Starts the proxy of one command at a port that the kernel chooses, for a box in which nothing can lead to a socket. Throws
 * TelosError `config` if nothing can listen here.
 */
export async function openProxyAtPort(
  program: string,
  ask: AskHost,
  options: PortOptions,
): Promise<{ port: number; end: CommandProxy['end'] }> {
  try {
    const door = new CommandDoor(program, ask, options);
    return { port: await door.listenAtPort(), end: () => door.end() };
  } catch (error) {
    throw notStarted(error);
  }
}

const notStarted = (cause: unknown): TelosError =>
  new TelosError('config', [sentence('The proxy of the sandbox cannot be started: {0}', reasonOf(cause))], {
    cause,
  });

const shortFolder = (): string => (tmpdir().length > longestSocketPath - 30 ? '/tmp' : tmpdir());

/** The side of one command that faces the network. */
class CommandDoor implements Door {
  readonly holdsSecret: (text: string) => boolean;
  readonly #program: string;
  readonly #ask: AskHost;
  readonly #resolve: Resolve;
  readonly #times: ProxyTimes;
  readonly #login: string | undefined;
  readonly #server: Server;
  readonly #relay: WebRelay;
  readonly #ended = new AbortController();
  readonly #sockets = new Set<Socket>();
  readonly #answers = new Map<string, Promise<string | undefined>>();
  readonly #notes = new Set<string>();
  #http: HttpServer | undefined;

  constructor(program: string, ask: AskHost, { holdsSecret, resolve, times, login }: ProxyOptions) {
    this.#program = program;
    this.#ask = ask;
    this.holdsSecret = holdsSecret ?? (() => false);
    this.#resolve = resolve ?? resolveName;
    this.#times = { ...usualTimes, ...times };
    this.#login = login;
    this.#relay = new WebRelay(this);
    this.#server = createServer({ allowHalfOpen: true }, socket => this.#accept(socket));
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  listen(path: string): Promise<void> {
    return new Promise((settle, fail) => {
      this.#server.once('error', fail).listen(path, settle);
    });
  }

  listenAtPort(): Promise<number> {
    return new Promise((settle, fail) => {
      const listening = (): void => settle((this.#server.address() as AddressInfo).port);
      this.#server.once('error', fail).listen(0, '127.0.0.1', listening);
    });
  }

  async end(): Promise<readonly string[]> {
    this.#ended.abort();
    const closed = new Promise<void>(settle => {
      this.#server.close(() => settle());
    });
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all([closed, ...this.#answers.values()]);
    return [...this.#notes];
  }

  note(text: string): void {
    if (this.#notes.size < mostNotes) this.#notes.add(text);
  }

  /** Keeps a socket until it closes, and ends it when nothing has come for too long. */
  keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    // Its end says enough, and an error without a listener would end the process.
    socket.on('error', () => socket.destroy());
    socket.setTimeout(this.#times.idle, () => socket.destroy());
    if (this.signal.aborted) socket.destroy();
  }

  #accept(socket: Socket): void {
    this.keep(socket);
    if (this.#sockets.size > mostConnections) {
      this.note(`A connection was refused, as there were more than ${mostConnections} at once.`);
      socket.destroy();
      return;
    }
    this.#serve(socket).catch(() => socket.destroy());
  }

  async #serve(socket: Socket): Promise<void> {
    const { bytes } = await this.#gather(socket, Buffer.alloc(0), begun =>
      begun.length > 0 ? true : undefined,
    );
    if (bytes[0] === socksVersion) return this.#serveSocks(socket, bytes);
    this.#serveHttp(socket, bytes);
  }

  async #serveSocks(socket: Socket, begun: Buffer): Promise<void> {
    const greeted = await this.#greetSocks(socket, begun);
    if (!greeted) return;
    const request = await this.#gather(socket, greeted, socksRequest);
    const { authority, length } = request.value;
    if (authority === undefined) return void socket.end(socksAnswers.unsupported);
    const place = destinationOf(authority);
    const way = place && (await this.wayTo(place, socket));
    if (!way || 'status' in way)
      return void socket.end(way?.status === 502 ? socksAnswers.unreachable : socksAnswers.refused);
    socket.write(socksAnswers.connected);
    await this.#tunnel(socket, way, request.bytes.subarray(length));
  }

  /** Returns what came after the greeting and the login, or undefined if the client was sent away. */
  async #greetSocks(socket: Socket, begun: Buffer): Promise<Buffer | undefined> {
    const { value, bytes } = await this.#gather(socket, begun, socksGreeting);
    const rest = bytes.subarray(value.length);
    const needsLogin = this.#login !== undefined;
    if (!(needsLogin ? value.login : value.noLogin)) return void socket.end(socksAnswers.noCommonLogin);
    socket.write(needsLogin ? socksAnswers.login : socksAnswers.noLogin);
    if (!needsLogin) return rest;
    const given = await this.#gather(socket, rest, socksLogin);
    if (given.value.login !== this.#login) return void socket.end(socksAnswers.wrongLogin);
    socket.write(socksAnswers.loggedIn);
    return given.bytes.subarray(given.value.length);
  }

  /** Returns whether a request comes from a program that was given the login. */
  isKnown({ headers: { 'proxy-authorization': given = '' } }: IncomingMessage): boolean {
    if (this.#login === undefined) return true;
    const [, encoded = ''] = /^basic +(\S+)$/i.exec(given) ?? [];
    return Buffer.from(encoded, 'base64').toString('latin1') === this.#login;
  }

  /** Lets Node's own parser read it: it refuses what two parsers could read in two ways. */
  #serveHttp(socket: Socket, begun: Buffer): void {
    this.#http ??= this.#httpServer();
    socket.unshift(begun);
    this.#http.emit('connection', socket);
    socket.resume();
  }

  #httpServer(): HttpServer {
    const server = createHttpServer({ maxHeaderSize: headerLimit, keepAliveTimeout: this.#times.idle });
    // A client may end its side and still wait for the answer.
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on('request', (request, response) => {
      this.#relay.onRequest(request, response).catch(() => response.destroy());
    });
    server.on('upgrade', (request, socket, head) => {
      // It fails behind a request on the same connection that has no answer yet.
      this.#relay.onUpgrade(request, socket as Socket, head).catch(() => socket.destroy());
    });
    server.on('connect', (request, socket, head) => {
      this.#onConnect(request, socket as Socket, head).catch(() => socket.destroy());
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
      socket.end(answer(status, 'The proxy of the sandbox cannot read this request.'), () =>
        socket.destroy(),
      );
    });
    return server;
  }

  async #onConnect(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    if (!this.isKnown(request)) return void socket.end(answer(407, unknownClient, [loginHeader]));
    const place = destinationOf(request.url ?? '');
    if (!place) return void socket.end(answer(400, 'CONNECT needs a host and its port.'));
    const way = await this.wayTo(place, socket);
    if ('status' in way) return void socket.end(answer(way.status, way.problem));
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    await this.#tunnel(socket, way, head);
  }

  /**
   * Returns the checked addresses of a place, or why it is not reached. The connection is held while a person is asked. An answer
   * counts for all connections of the command to this place.
   */
  async wayTo(place: Destination, socket: Socket): Promise<Way> {
    socket.setTimeout(0);
    const refusal = await this.#refusalOf(place);
    socket.setTimeout(this.#times.idle);
    if (refusal !== undefined) return this.refused(place, refusal);
    try {
      const { url } = place;
      return { place, addresses: await checkedAddresses(url, url.href, this.#resolve, this.signal, 'proxy') };
    } catch (error) {
      if (error instanceof FetchProblem) return this.refused(place, error.message);
      return this.unreached(place, error);
    }
  }

  #refusalOf({ name, host, port }: Destination): Promise<string | undefined> {
    const known = this.#answers.get(name);
    if (known) return known;
    const program = this.#program;
    const asked =
      this.#answers.size >= mostHosts
        ? Promise.resolve(`The command has wanted more than ${mostHosts} hosts.`)
        : this.#ask({ host, port, program }, this.signal).catch(reasonOf);
    if (this.#answers.size < mostHosts) this.#answers.set(name, asked);
    return asked;
  }

  refused({ name }: Destination, reason: string): { status: number; problem: string } {
    const problem = `The sandbox let nothing through to ${name}: ${escapeInvisible(reason)}`;
    this.note(problem);
    return { status: 403, problem };
  }

  unreached({ name }: Destination, error: unknown): { status: number; problem: string } {
    const why =
      error instanceof TelosError
        ? error.message
        : `${(error as NodeJS.ErrnoException).code ?? reasonOf(error)}.`;
    const problem = `${name} could not be reached: ${why}`;
    this.note(problem);
    return { status: 502, problem };
  }

  /** Passes bytes on if they begin as they should. A server is dialled only then. */
  async #tunnel(
    socket: Socket,
    { place, addresses }: Exclude<Way, { status: number }>,
    begun: Buffer,
  ): Promise<void> {
    const { value: opening, bytes } = await this.#gather(socket, begun, openingOf);
    if (opening.speaks === 'http') {
      this.#relay.bind(socket, place);
      return this.#serveHttp(socket, bytes);
    }
    const problem = opening.speaks === 'tls' ? wrongName(place, opening.names) : wrongSpeech(place);
    if (problem !== undefined) {
      this.refused(place, problem);
      return void socket.destroy();
    }
    const tunnelled = new URL(`https://${place.name}`);
    const proxy = proxyFor(tunnelled);
    if (proxy) return this.#tunnelThrough(socket, place, openTunnel(tunnelled, proxy, this.signal), bytes);
    const { port } = place;
    const upstream = connect({ host: place.bare, port, lookup: lookupIn(addresses), allowHalfOpen: true });
    this.keep(upstream);
    upstream.setTimeout(this.#times.connect);
    upstream.once('error', error => {
      if (upstream.connecting || upstream.bytesRead === 0) this.unreached(place, error);
      socket.destroy();
    });
    upstream.once('connect', () => {
      upstream.setTimeout(this.#times.idle);
      upstream.write(bytes);
      joined(socket, upstream);
    });
  }

  /** Passes bytes on through the proxy that this machine has for the place. */
  async #tunnelThrough(
    socket: Socket,
    place: Destination,
    opening: Promise<Socket>,
    bytes: Buffer,
  ): Promise<void> {
    try {
      const upstream = await opening;
      this.keep(upstream);
      upstream.once('error', () => socket.destroy());
      upstream.setTimeout(this.#times.idle);
      upstream.write(bytes);
      joined(socket, upstream);
    } catch (error) {
      this.unreached(place, error);
      socket.destroy();
    }
  }

  /** Reads until `read` has found something in the bytes. Rejects if the client ends, says too much or is too slow. */
  #gather<Found>(
    socket: Socket,
    begun: Buffer,
    read: (bytes: Buffer) => Found | undefined,
  ): Promise<{ value: Found; bytes: Buffer }> {
    const early = read(begun);
    if (early !== undefined) return Promise.resolve({ value: early, bytes: begun });
    let bytes = begun;
    return new Promise((settle, fail) => {
      const timer = setTimeout(() => fail(new Error('The client is too slow.')), this.#times.opening);
      const onEnd = (): void => fail(new Error('The client has ended.'));
      const onData = (chunk: Buffer): void => {
        bytes = Buffer.concat([bytes, chunk]);
        const value = read(bytes);
        if (value !== undefined) settle({ value, bytes });
        else if (bytes.length > openingLimit) fail(new Error('The client says too much.'));
        else return;
        socket.pause();
        release();
      };
      const release = (): void => {
        clearTimeout(timer);
        socket.off('data', onData).off('end', onEnd).off('close', onEnd);
      };
      socket.on('data', onData).on('end', onEnd).on('close', onEnd).resume();
    });
  }
}

/** Returns why a TLS greeting is refused. Its name leads the server to the host, so it must be the one that was decided on. */
function wrongName({ bare }: Destination, names: readonly string[] | undefined): string | undefined {
  if (!names) return 'its TLS greeting cannot be read.';
  const isAddress = isIP(bare) !== 0;
  if (isAddress && names.length === 0) return undefined;
  const [name] = names;
  if (!isAddress && names.length === 1 && name?.replace(/\.$/, '') === bare) return undefined;
  return names.length === 0
    ? 'its TLS greeting names no host.'
    : `its TLS greeting names another host (${names.slice(0, 3).join(', ').slice(0, 200)}).`;
}

const wrongSpeech = ({ port }: Destination): string | undefined =>
  port === 443 ? 'what was sent is not TLS.' : undefined;
