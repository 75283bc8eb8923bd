/** Answers JSON-RPC 2.0 in lines, as MCP over stdio and the clients of other languages speak it. */
import type { Readable, Writable } from 'node:stream';
import type { JsonObject } from '@telos/protocol/run';

/** Refusals that the protocol has numbers for. */
export class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const unknownMethod = (method: string): RpcError =>
  new RpcError(-32601, `There is no method ${method}.`);

export interface RpcPeer {
  /** Sends a message that wants no answer. */
  notify(method: string, params: object): void;
  /** Asks the other side. Rejects if it answers with an error, or is gone. */
  request(method: string, params: object): Promise<unknown>;
}

/** Returns the result of a call. What it throws is the error that is sent. Notifications have no result. */
export type RpcHandler = (
  method: string,
  params: JsonObject,
  call: { peer: RpcPeer; signal: AbortSignal },
) => Promise<unknown>;

/** Characters of one line. */
const longestLine = 32 * 1024 * 1024;

type Id = string | number | null;

/**
 * Serves until the input ends or `signal` aborts. Calls run side by side; those that are still running then are aborted. A call that
 * a notification `notifications/cancelled` names is aborted and gets no answer.
 */
export async function serveLines(
  input: Readable,
  output: Writable,
  handle: RpcHandler,
  signal: AbortSignal,
): Promise<void> {
  const session = new Session(output, handle);
  const stop = (): void => void input.destroy();
  signal.addEventListener('abort', stop, { once: true });
  // Pieces of the line that is not complete yet. Joining them with each new one would take the square of its length.
  let pieces: string[] = [];
  let length = 0;
  try {
    for await (const chunk of input.setEncoding('utf8')) {
      const [rest = '', ...begun] = String(chunk).split('\n');
      for (const [at, piece] of [rest, ...begun].entries()) {
        if (at > 0) {
          const line = pieces.join('');
          [pieces, length] = [[], 0];
          if (line.trim() !== '') session.take(line);
        }
        length += piece.length;
        if (length > longestLine) throw new Error('A line is too long.');
        pieces.push(piece);
      }
    }
  } catch (error) {
    if (!signal.aborted) session.fail(error);
  } finally {
    signal.removeEventListener('abort', stop);
    await session.end();
  }
}

class Session implements RpcPeer {
  readonly #output: Writable;
  readonly #handle: RpcHandler;
  readonly #running = new Map<Id, { abort: AbortController; done: Promise<void> }>();
  readonly #asked = new Map<string, { resolve(value: unknown): void; reject(error: Error): void }>();
  #count = 0;

  constructor(output: Writable, handle: RpcHandler) {
    this.#output = output;
    this.#handle = handle;
  }

  take(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.#refuse(null, new RpcError(-32700, 'The line is not JSON.'));
      return;
    }
    if (!isObject(message)) {
      this.#refuse(null, new RpcError(-32600, 'A message is one JSON object.'));
      return;
    }
    const { id, method, params } = message;
    if (typeof method !== 'string') this.#answered(message);
    else if (typeof id === 'string' || typeof id === 'number') this.#start(id, method, paramsOf(params));
    else this.#noted(method, paramsOf(params));
  }

  notify(method: string, params: object): void {
    this.#write({ method, params });
  }

  request(method: string, params: object): Promise<unknown> {
    const id = `s${++this.#count}`;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#write({ id, method, params });
    });
  }

  fail(error: unknown): void {
    this.#refuse(null, error);
  }

  async end(): Promise<void> {
    for (const { reject } of this.#asked.values()) reject(new Error('The client is gone.'));
    for (const { abort } of this.#running.values()) abort.abort();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #start(id: string | number, method: string, params: JsonObject): void {
    if (this.#running.has(id)) {
      this.#refuse(id, new RpcError(-32600, `A call with the id ${id} is still running.`));
      return;
    }
    const abort = new AbortController();
    const done = this.#handle(method, params, { peer: this, signal: abort.signal })
      .then(
        result => abort.signal.aborted || this.#write({ id, result: result ?? null }),
        error => abort.signal.aborted || this.#refuse(id, error),
      )
      .then(() => void this.#running.delete(id));
    this.#running.set(id, { abort, done });
  }

  #noted(method: string, params: JsonObject): void {
    if (method === 'notifications/cancelled') this.#running.get(params['requestId'] as Id)?.abort.abort();
    // Other notifications tell nothing that changes an answer.
  }

  #answered({ id, result, error }: JsonObject): void {
    const waiting = this.#asked.get(String(id));
    this.#asked.delete(String(id));
    if (isObject(error)) waiting?.reject(new Error(String(error['message'] ?? 'The client refused.')));
    else waiting?.resolve(result);
  }

  #refuse(id: Id, error: unknown): void {
    const code = error instanceof RpcError ? error.code : -32000;
    const message = error instanceof Error ? error.message : String(error);
    const kind =
      isObject(error) && typeof error['code'] === 'string' ? { data: { code: error['code'] } } : {};
    this.#write({ id, error: { code, message, ...kind } });
  }

  #write(message: object): void {
    if (this.#output.writable) this.#output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const paramsOf = (params: unknown): JsonObject => (isObject(params) ? params : {});
