/** The two ways to an MCP server: a program that is started here, and an address that is reached. */

import { statSync } from 'node:fs';
import { TelosError } from '../errors.ts';
import { checkedFetch } from '../tools/checkedFetch.ts';
import { settledWithin } from '../tools/command.ts';
import { marked, newMark } from '../tools/processTable.ts';
import { endProcessTree, guardOrphans, type ProcessTree, processTree } from '../tools/processTree.ts';
import { findProgram, programEndings, sentencesAbout, trustedPath, withPath } from '../tools/programPath.ts';
import type { RemoteServer, StdioServer } from './config.ts';
import {
  deserializeMessage,
  ErrorCode,
  McpError,
  SSEClientTransport,
  StdioClientTransport,
  StreamableHTTPClientTransport,
} from './sdk.ts';

/** Where and with what a stdio server runs; `env` is its whole environment, its own variables excepted. */
export interface McpSurroundings {
  env: Readonly<Record<string, string>>;
  /** The agent's own folder, absolute. */
  cwd: string;
  /** As of `RunFolders`. */
  workFolders?: readonly string[] | undefined;
  /** Sends what goes to a remote server, with what a sign-in has given out. */
  fetch?: ((input: string | URL, init?: RequestInit) => Promise<Response>) | undefined;
  /** Takes what must not be shown out of what the server says. */
  redact(text: string): string;
}

/** Bytes of one message; the SDK's own limit ends a server over a result of ten megabytes. */
const maxMessage = 64 * 1024 * 1024;
/** How long a session's last words may take, in milliseconds. */
const farewell = 250;
/** Characters of its error stream that are kept for the case that a server dies. */
const stderrKept = 4000;

/** A way to reach a server: what the SDK sends through, and what is known about the server besides. */
export interface Link {
  transport: StdioClientTransport | SSEClientTransport | StreamableHTTPClientTransport;
  /** Call it in the turn in which the SDK was told to connect. */
  started(): void;
  explain(error: unknown): string;
  /** True for the refusal of a server that does not know the session any more: it has carried out nothing. */
  hasForgotten(error: unknown): boolean;
  /** What the server wrote before it ended, to be put behind a sentence; may be empty. */
  lastWords(): string;
  close(closeClient: () => Promise<void>): Promise<void>;
}

export function stdioLink(server: StdioServer, { env, cwd, workFolders }: McpSurroundings): Link {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError('mcp', `the folder it would run in does not exist: ${cwd}`);
  const mark = newMark();
  const { command, env: ownEnvironment } = serverProgram(server, env, workFolders);
  const start = marked(mark, command, server.args);
  const guard = guardOrphans(mark);
  const transport = new StdioClientTransport({
    command: start.program,
    args: start.args,
    env: { ...ownEnvironment, [mark.name]: mark.value },
    cwd,
    stderr: 'pipe',
    maxBufferSize: maxMessage,
  });
  // There is no other way in for a better buffer; a line is read as the SDK reads it.
  Object.assign(transport, { _readBuffer: new MessageBuffer(deserializeMessage, maxMessage) });
  let stderr = '';
  transport.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-stderrKept);
  });
  let tree: ProcessTree | undefined;
  const lastWords = (): string => {
    const lines = stderr.split(/\r?\n/).filter(line => line.trim() !== '');
    return lines.length > 0 ? `; its last words: ${lines.slice(-5).join(' | ')}` : '';
  };
  return {
    transport,
    started() {
      // The SDK starts it in our own group, so it is guarded by its mark alone.
      if (transport.pid !== null) tree = processTree(transport.pid, mark);
    },
    explain(error) {
      const isMissing = stderr.trim() === `there is no program '${command}'`;
      if (codeOf(error) === 'ENOENT' || isMissing) return `there is no program '${server.command}'`;
      if (error instanceof McpError && error.code === ErrorCode.ConnectionClosed)
        return `it ended before it answered${lastWords()}`;
      return plainReason(error);
    },
    hasForgotten: () => false,
    lastWords,
    async close(closeClient) {
      // The end of its input is how a server learns that it may go; what stays is ended with all that it has started.
      const closed = closeClient().catch(() => undefined);
      await settledWithin(closed, farewell);
      if (tree) await endProcessTree(tree);
      guard.release();
    },
  };
}

/** The program that a server's command means, as a path, and its whole environment. Throws TelosError `mcp` where there is none. */
export function serverProgram(
  server: StdioServer,
  env: Readonly<Record<string, string>>,
  workFolders: readonly string[] = [],
): { command: string; env: Record<string, string> } {
  const places = { env: { ...env, ...server.env }, workFolders };
  const trusted = trustedPath(places);
  const own = withPath(places.env, trusted.folders);
  if (/[\\/]/.test(server.command)) return { command: server.command, env: own };
  const command = findProgram(server.command, places, programEndings(places.env));
  if (command !== undefined) return { command, env: own };
  const [why] = sentencesAbout([server.command], trusted);
  throw new TelosError('mcp', `there is no program '${server.command}'${why ? `; ${why}` : ''}`);
}

export function remoteLink(server: RemoteServer, { fetch }: McpSurroundings): Link {
  const url = new URL(server.url);
  // The SDK follows a redirect only within the origin, so headers with secrets go nowhere else.
  const options = {
    requestInit: { headers: server.headers },
    redirectPolicy: 'same-origin' as const,
    fetch: fetch ?? checkedFetch,
  };
  const transport =
    server.type === 'sse'
      ? new SSEClientTransport(url, options)
      : new StreamableHTTPClientTransport(url, options);
  return {
    transport,
    started: () => undefined,
    explain(error) {
      const status = statusOf(error);
      if (status === 401)
        return `it wants a sign-in at ${url.origin} (HTTP 401); ${fetch ? 'the next run asks for it' : signInElsewhere}`;
      if (status === 403)
        return `it refuses this at ${url.origin} (HTTP 403): the sign-in, or what stands in "headers" of its entry, does not cover it`;
      return plainReason(error);
    },
    hasForgotten(error) {
      if (!(transport instanceof StreamableHTTPClientTransport) || !transport.sessionId) return false;
      const status = statusOf(error);
      // The specification wants 404; servers that are modelled on the SDK's examples say it in words.
      return status === 404 || (status === 400 && /session/i.test(plainReason(error)));
    },
    lastWords: () => '',
    async close(closeClient) {
      // A cancellation that was just sent has this time, too, to get there.
      if (transport instanceof StreamableHTTPClientTransport)
        await settledWithin(
          transport.terminateSession().catch(() => undefined),
          farewell,
        );
      await closeClient().catch(() => undefined);
    },
  };
}

const signInElsewhere =
  'the Telos extension of VS Code can ask for it, and anywhere else what it accepts goes into "headers" of its entry';

/** An error's message and those of its causes, of which the last says why a connection failed. */
function plainReason(error: unknown): string {
  const reasons: string[] = [];
  for (let at: unknown = error; at instanceof Error && reasons.length < 4; at = at.cause) {
    const inner = at instanceof AggregateError ? at.errors.map(one => plainReason(one)) : [];
    const text = [at.message, ...inner].filter(Boolean).join(': ');
    if (text && !reasons.includes(text)) reasons.push(text);
  }
  return (reasons.join(': ') || String(error)).slice(0, 600);
}

/** Is this failure to connect the refusal of a server that knows the transport of before 2025 alone? So says the specification, under backwards compatibility. */
export function mayBeOlder(failure: unknown): boolean {
  return [400, 404, 405].includes(statusOf(failure instanceof TelosError ? failure.cause : undefined) ?? 0);
}

/** The SDK puts it into a property, or for the older way over HTTP into the text. */
function statusOf(error: unknown): number | undefined {
  const [, written] = /\(HTTP (\d{3})\)/.exec(plainReason(error)) ?? [];
  return Number(written ?? codeOf(error)) || undefined;
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}

export class MessageBuffer<Message> {
  readonly #read: (line: string) => Message;
  readonly #maxBytes: number;
  /** Pieces of the line that has no end yet, and then, in `#lines`, whole lines. */
  #pieces: Buffer[] = [];
  #size = 0;
  #lines: string[] = [];

  /** `read` makes a message of a line, and may throw; a line that is longer than `maxBytes` is an error. */
  constructor(read: (line: string) => Message, maxBytes: number) {
    this.#read = read;
    this.#maxBytes = maxBytes;
  }

  /** Throws when the line that is being written has become too long; then all is forgotten. */
  append(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      this.#keep(chunk.subarray(from, end));
      this.#lines.push(Buffer.concat(this.#pieces).toString('utf8').replace(/\r$/, ''));
      this.#pieces = [];
      this.#size = 0;
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  /** The next message, or null while there is none. Throws what `read` throws; that line is gone then. */
  readMessage(): Message | null {
    const line = this.#lines.shift();
    return line === undefined ? null : this.#read(line);
  }

  clear(): void {
    this.#pieces = [];
    this.#size = 0;
    this.#lines = [];
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size > this.#maxBytes) {
      this.clear();
      throw new Error(`one message has more than ${this.#maxBytes} bytes`);
    }
    this.#pieces.push(piece);
  }
}
