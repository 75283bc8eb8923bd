/** Shared base of all loopback model servers: listens, keeps the requests, and sends bytes as a test requires. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the body of a request as it came
  body: any;
  /** Length of the body. */
  bytes: number;
  /** `performance.now()` when the request had arrived completely. */
  arrivedAt: number;
  /** Becomes true when the client disconnects before the answer is complete. */
  aborted: boolean;
  /** The client's port, the same for requests over one connection. */
  port: number | undefined;
  /** `performance.now()` when the last byte of the answer was written, or the socket was closed. */
  endedAt?: number;
}

export interface FakeServer {
  /** The provider's base URL, without a slash at the end. */
  url: string;
  /** Requests for completions that the real API would take, in the order of their arrival. */
  requests: ReceivedRequest[];
  /** Why other requests were refused, as the real API would refuse them. A test that expects a refusal takes it out. */
  refused: string[];
  /** Throws if a refusal is left: whoever sent the request may have kept silent about it. */
  close(): Promise<void>;
}

/** Returns `close` as `FakeServer` has it. */
export const closing =
  (close: () => Promise<void>, refused: readonly string[]) => async (): Promise<void> => {
    await close();
    if (refused.length > 0)
      throw new Error(`The real API refuses what was sent here: ${refused.join(' | ')}`);
  };

/** How the server delivers an answer, whatever its content. */
export interface Delivery {
  /** An HTTP status other than 200 sends `errorBody` (or a plausible one) as JSON. */
  status?: number;
  errorBody?: unknown;
  headers?: Record<string, string>;
  /** The socket is destroyed after this many bytes of the body. */
  cutAfterBytes?: number;
  /** Replaces the cut: the body ends as if complete, or no more bytes follow while the socket stays open. */
  cutBy?: 'end' | 'silence';
  /** The connection is reset before any answer. */
  reset?: boolean;
  /** The unchanged body of the stream, in place of the turn's content. */
  rawBody?: Buffer;
  /** Bytes in each write; the whole body is cut into such pieces. Default: one write per event. */
  chunkBytes?: number;
  /** Silence before the headers. In milliseconds. */
  stallMs?: number;
  /** Silence after the second write. In milliseconds. */
  stallAfterStartMs?: number;
  /** Meaningless text that breaks that silence every 10 ms. */
  stallFiller?: string;
  /** After the first write that contains `behind`, nothing is sent until `until` has settled. */
  hold?: { behind: string; until: Promise<unknown> };
}

export async function listen(
  answer: (request: ReceivedRequest, response: ServerResponse) => Promise<void>,
  port = 0,
): Promise<{ address: string; close(): Promise<void> }> {
  const server = createServer((incoming, response) => {
    receive(incoming, response)
      .then(request => answer(request, response))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

async function receive(incoming: IncomingMessage, response: ServerResponse): Promise<ReceivedRequest> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  const text = body.toString('utf8');
  const request: ReceivedRequest = {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    ),
    body: text ? JSON.parse(text) : undefined,
    bytes: body.length,
    arrivedAt: performance.now(),
    aborted: false,
    port: incoming.socket.remotePort,
  };
  response.on('close', () => {
    if (!response.writableFinished) request.aborted = true;
    request.endedAt ??= performance.now();
  });
  response.on('finish', () => {
    request.endedAt = performance.now();
  });
  return request;
}

/** Returns the turn for a request: the next in the list, with the last one repeated, or the function's result. */
export function turnFor<Turn extends object>(
  turns: Turn[] | ((request: ReceivedRequest, index: number) => Turn),
  request: ReceivedRequest,
  index: number,
): Turn | Record<string, never> {
  if (typeof turns === 'function') return turns(request, index);
  return turns[Math.min(index, turns.length - 1)] ?? {};
}

/** Stalls and fails according to the delivery. Returns true if that was the whole answer. */
export async function failed(
  delivery: Delivery,
  response: ServerResponse,
  plausibleError: (status: number) => object,
): Promise<boolean> {
  const { status, errorBody, headers, stallMs, reset } = delivery;
  if (reset) {
    response.socket?.resetAndDestroy();
    return true;
  }
  if (stallMs) await pause(stallMs, response);
  if (response.destroyed) return true;
  if (status === undefined || status === 200) return false;
  sendJson(response, status, errorBody ?? plausibleError(status), headers);
  return true;
}

/** Sends the events of a stream, `delayMs` apart. */
export async function sendEvents(
  response: ServerResponse,
  events: readonly string[],
  delivery: Delivery,
  delayMs: number,
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    ...delivery.headers,
  });
  const { chunkBytes, stallAfterStartMs, rawBody, cutBy } = delivery;
  let { hold } = delivery;
  const pieces = rawBody ? [rawBody] : events.map(event => Buffer.from(event));
  let left = delivery.cutAfterBytes ?? Number.POSITIVE_INFINITY;
  for (const [index, piece] of (chunkBytes ? cut(Buffer.concat(pieces), chunkBytes) : pieces).entries()) {
    if (response.destroyed) return;
    const open = response.write(piece.subarray(0, left));
    left -= piece.length;
    if (left <= 0 && cutBy === 'silence') return;
    if (left <= 0 && cutBy === 'end') break;
    if (left <= 0) {
      await pause(20, response); // lets the bytes leave before the socket closes
      response.destroy();
      return;
    }
    if (hold && piece.includes(hold.behind)) {
      await Promise.race([hold.until, gone(response)]);
      hold = undefined;
    }
    if (stallAfterStartMs && index === 1) await stall(stallAfterStartMs, delivery.stallFiller, response);
    if (delayMs > 0) await pause(delayMs, response);
    else if (chunkBytes) await new Promise(resolve => setImmediate(resolve));
    else if (!open) await drained(response);
  }
  response.end();
}

async function stall(
  milliseconds: number,
  filler: string | undefined,
  response: ServerResponse,
): Promise<void> {
  if (!filler) return pause(milliseconds, response);
  for (let passed = 0; passed < milliseconds && !response.destroyed; passed += 10) {
    await pause(10, response);
    response.write(filler);
  }
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

export function slices(text: string, size: number): string[] {
  const count = Math.ceil(text.length / size);
  return Array.from({ length: count }, (_, at) => text.slice(at * size, (at + 1) * size));
}

function cut(bytes: Buffer, size: number): Buffer[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** Waits, but not for a client that has disconnected. */
function pause(milliseconds: number, response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(finish, milliseconds);
    function finish(): void {
      clearTimeout(timer);
      response.off('close', finish);
      resolve();
    }
    response.on('close', finish);
  });
}

function gone(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    if (response.destroyed) resolve();
    else response.once('close', () => resolve());
  });
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    function finish(): void {
      response.off('drain', finish);
      response.off('close', finish);
      resolve();
    }
    response.on('drain', finish);
    response.on('close', finish);
  });
}
