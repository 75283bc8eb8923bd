/** Reaches an MCP server in one of two ways: starts a program on this machine, or connects to an address. */

import { statSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { asSaid, beginningOf, endOf, type Sentence, sentence, shortened } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { checkedFetch, withinBytes } from '../tools/checkedFetch.ts';
import { settledWithin } from '../tools/commandEnd.ts';
import { guardOrphans } from '../tools/orphanGuard.ts';
import { marked, newMark } from '../tools/processTable.ts';
import { endProcessTree, type ProcessTree, processTree } from '../tools/processTree.ts';
import { findProgram, programEndings, sentencesAbout, trustedPath, withPath } from '../tools/programPath.ts';
import { certificateProblem, deepestCode } from '../tools/wayOut.ts';
import { type BoxedStart, startProcess } from './boxedServer.ts';
import type { RemoteServer, StdioServer } from './config.ts';
import {
  deserializeMessage,
  InsufficientScopeError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SSEClientTransport,
  StdioClientTransport,
  StreamableHTTPClientTransport,
} from './sdk.ts';

/** The settings for starting or reaching a server. `env` is its whole environment, except its own variables. */
export interface McpSurroundings {
  env: Readonly<Record<string, string>>;
  /** The agent's own folder, absolute. */
  cwd: string;
  /** See `RunFolders`. */
  workFolders?: readonly string[] | undefined;
  /** Sends requests to a remote server, with the token of a sign-in. */
  fetch?: ((input: string | URL, init?: RequestInit) => Promise<Response>) | undefined;
  /** How a started server starts in its box. Missing for one that has the person's rights. */
  boxed?: BoxedStart | undefined;
  /** Removes secrets from the server's texts. */
  redact(text: string): string;
  /** Opens an address in the person's browser after a yes. Missing where the person does it. */
  openUrl?: ((url: string) => Promise<boolean>) | undefined;
  /** True if there is a person whom the server may ask something during a call. */
  canAsk?: boolean | undefined;
  /** The root that a started server gets. Absolute. Missing for one that gets none. */
  root?: string | undefined;
  /** Receives what a started server writes besides its messages, as it is written: secrets are still in it. */
  wrote?: ((text: string) => void) | undefined;
}

/** Upper bound of one message, in bytes. The SDK's own limit ends a server whose result has ten megabytes. */
const maxMessage = 64 * 1024 * 1024;
/** How long ending a session may take, in milliseconds. */
const farewell = 250;
/** Errors of a program that has ended. */
const exits: readonly unknown[] = [SdkErrorCode.ConnectionClosed, SdkErrorCode.EraNegotiationFailed];
/** Number of characters that are kept of the beginning of the error stream, which says why a server does not start, and of its end. */
const stderrKept = 32_000;

/** A way to reach a server: the SDK's transport, and further facts about the server. */
export interface Link {
  transport: StdioClientTransport | SSEClientTransport | StreamableHTTPClientTransport;
  /** True if it is reached over HTTP. */
  isRemote: boolean;
  /** Must be called synchronously after the SDK's `connect`. */
  started(): void;
  /** Returns a phrase for people: "the program 'x' was not found". */
  explain(error: unknown): Sentence;
  /** Returns true if the server refused the call because it no longer knows the session. It has carried out nothing. */
  hasForgotten(error: unknown): boolean;
  /** Returns the server's last error output, to be appended to a sentence; may be empty. */
  lastWords(): string;
  /** Returns the line of its error output that says what went wrong first; undefined if it has written nothing. */
  firstError(): string | undefined;
  close(closeClient: () => Promise<void>): Promise<void>;
}

/** A program that is asked for its revision itself. The SDK's own class starts a second one for that, outside of the sandbox. */
class OneProcess extends StdioClientTransport {}

export function stdioLink(
  server: StdioServer,
  { env, cwd, workFolders, boxed, wrote }: McpSurroundings,
): Link {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError('mcp', [sentence('the folder it would run in does not exist: {0}', cwd)]);
  const mark = newMark();
  const { command, env: ownEnvironment } = boxed
    ? { command: boxed.start.program, env: boxed.start.env }
    : serverProgram(server, env, workFolders);
  const start = marked(mark, command, boxed?.start.args ?? server.args);
  const guard = guardOrphans(mark);
  const transport = new OneProcess({
    command: start.program,
    args: start.args,
    env: { ...ownEnvironment, [mark.name]: mark.value },
    cwd,
    stderr: 'pipe',
    maxBufferSize: maxMessage,
  });
  if (boxed) {
    const env = { ...ownEnvironment, [mark.name]: mark.value };
    Object.assign(transport, {
      start: () => startProcess(transport, { ...start, env, folder: cwd }, boxed.inputs),
    });
  }
  // The SDK offers no other way to replace its buffer. A line is read as the SDK reads it.
  Object.assign(transport, { _readBuffer: new MessageBuffer(deserializeMessage, maxMessage) });
  let head = '';
  let tail = '';
  let isCut = false;
  const decoder = new StringDecoder('utf8');
  transport.stderr?.on('data', (chunk: Buffer) => {
    const text = decoder.write(chunk);
    wrote?.(text);
    const kept = text.slice(0, stderrKept - head.length);
    head += kept;
    const rest = tail + text.slice(kept.length);
    tail = endOf(rest, stderrKept);
    isCut ||= rest.length > stderrKept;
  });
  const log = (): string => (isCut ? `${head}\n[...]\n${tail}` : head + tail);
  let tree: ProcessTree | undefined;
  const lastWords = (): string => {
    const lines = log()
      .slice(-lastKept)
      .split(/\r?\n/)
      .filter(line => line.trim() !== '');
    return lines.length > 0 ? `; last output: ${lines.slice(-5).join(' | ')}` : '';
  };
  return {
    transport,
    isRemote: false,
    started() {
      // The SDK starts it in our own process group, so only its mark identifies it.
      if (transport.pid !== null) tree = processTree(transport.pid, mark);
    },
    explain(error) {
      const isMissing = log().trim() === `the program '${command}' was not found`;
      if (codeOf(error) === 'ENOENT' || isMissing)
        return sentence("the program '{0}' was not found", server.command);
      if (error instanceof SdkError && exits.includes(error.code)) {
        const why = firstErrorIn(head);
        return why === undefined
          ? sentence('it exited before it answered')
          : sentence('it exited before it answered: {0}', why);
      }
      return asSaid(plainReason(error));
    },
    hasForgotten: () => false,
    lastWords,
    firstError: () => firstErrorIn(head),
    async close(closeClient) {
      // The end of its input tells a server to exit. If it does not, it is ended with all that it has started.
      const closed = closeClient().catch(() => undefined);
      await settledWithin(closed, farewell);
      if (tree) await endProcessTree(tree);
      guard.release();
      await boxed?.end();
    },
  };
}

/**
 * Returns the path of the program that a server's command names, and its whole environment. Throws TelosError `mcp` if
 * there is no such program.
 */
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
  throw new TelosError('mcp', [
    why
      ? sentence("the program '{0}' was not found; {1}", server.command, why)
      : sentence("the program '{0}' was not found", server.command),
  ]);
}

/** Characters at the end of the error output in which the last words are looked for. */
const lastKept = 4000;
/** Longest line of an error that a person is shown, in characters. */
const longestError = 300;

/** Words with which programs begin to say that something went wrong. */
const errorWords =
  /\b(?:\w*(?:error|exception)|fatal|panic\w*|cannot|can't|could not|failed|not found|no such|denied|missing|invalid|unable)\b/i;

/**
 * Returns the first line that says what went wrong, before the stack that follows it. Without one that says so, the first line at all;
 * undefined for an empty text.
 */
export function firstErrorIn(text: string): string | undefined {
  const lines = text
    .replace(ansi, '')
    .split(/\r?\n/)
    .filter(line => line.trim() !== '');
  // What is indented is source code or a stack.
  const plain = lines.filter(line => !/^\s/.test(line));
  const found = plain.find(line => errorWords.test(line)) ?? plain[0] ?? lines[0];
  return found === undefined ? undefined : shortened(found.trim(), longestError);
}

/** Colors of a terminal. */
const ansi = /\u001b\[[\d;]*[A-Za-z]/g;

export function remoteLink(server: RemoteServer, { fetch }: McpSurroundings): Link {
  const url = new URL(server.url);
  // The SDK follows a redirect only within the origin, so headers with secrets go nowhere else.
  const options = {
    requestInit: { headers: server.headers },
    redirectPolicy: 'same-origin' as const,
    fetch: async (input: string | URL, init?: RequestInit) =>
      withinBytes(await (fetch ?? checkedFetch)(input, init), maxMessage),
  };
  const transport =
    server.type === 'sse'
      ? new SSEClientTransport(url, options)
      : new StreamableHTTPClientTransport(url, options);
  return {
    transport,
    isRemote: true,
    started: () => undefined,
    explain(error) {
      const status = statusOf(error);
      if (status === 401)
        return fetch
          ? sentence('it requires a sign-in at {0} (HTTP 401); the next run asks for it', url.origin)
          : sentence(
              'it requires a sign-in at {0} (HTTP 401); only an editor can ask for it; elsewhere, put what the server accepts into "headers" of its entry',
              url.origin,
            );
      if (status === 403)
        return sentence(
          'it refused this at {0} (HTTP 403): the sign-in or the "headers" of its entry do not allow it',
          url.origin,
        );
      const [problem] = certificateProblem(url.host, error) ?? [];
      if (problem)
        return sentence(
          'its certificate is not accepted ({0}); set NODE_EXTRA_CA_CERTS to the file with the root of your network, if it has one',
          deepestCode(error) ?? '',
        );
      return asSaid(plainReason(error));
    },
    hasForgotten(error) {
      if (!(transport instanceof StreamableHTTPClientTransport) || !transport.sessionId) return false;
      const status = statusOf(error);
      // The specification requires 404. Servers that are modelled on the SDK's examples send 400 and say it in the text.
      return status === 404 || (status === 400 && /session/i.test(plainReason(error)));
    },
    lastWords: () => '',
    firstError: () => undefined,
    async close(closeClient) {
      // This time also lets a cancellation that was just sent arrive.
      if (transport instanceof StreamableHTTPClientTransport)
        await settledWithin(
          transport.terminateSession().catch(() => undefined),
          farewell,
        );
      await closeClient().catch(() => undefined);
    },
  };
}

/** Returns an error's message and those of its causes. The last cause says why a connection failed. */
function plainReason(error: unknown): string {
  const reasons: string[] = [];
  for (let at: unknown = error; at instanceof Error && reasons.length < 4; at = at.cause) {
    const inner = at instanceof AggregateError ? at.errors.map(one => plainReason(one)) : [];
    const text = [at.message, ...inner].filter(Boolean).join(': ');
    if (text && !reasons.includes(text)) reasons.push(text);
  }
  return beginningOf(reasons.join(': ') || String(error), 600);
}

/**
 * Returns true if a connection failed in the way of a server that knows only the transport from before 2025. Source: the
 * specification, under backwards compatibility.
 */
export function mayBeOlder(failure: unknown): boolean {
  return [400, 404, 405].includes(statusOf(failure instanceof TelosError ? failure.cause : undefined) ?? 0);
}

/** Returns the HTTP status of an error. The SDK puts it into a property, or for the older transport into the text. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof SdkHttpError) return error.status;
  if (error instanceof InsufficientScopeError) return 403;
  const [, written] = /\(HTTP (\d{3})\)/.exec(plainReason(error)) ?? [];
  return Number(written ?? codeOf(error)) || undefined;
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}

export class MessageBuffer<Message> {
  readonly #read: (line: string) => Message;
  readonly #maxBytes: number;
  /** Pieces of the line that is not complete yet; `#lines` holds complete lines, of which those before `#next` are read. */
  #pieces: Buffer[] = [];
  #size = 0;
  #lines: string[] = [];
  #next = 0;

  /** `read` converts a line into a message and may throw. A line that is longer than `maxBytes` is an error. */
  constructor(read: (line: string) => Message, maxBytes: number) {
    this.#read = read;
    this.#maxBytes = maxBytes;
  }

  /** Adds bytes. An empty line says nothing. Throws if the current line has become too long, and then discards everything. */
  append(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      if (this.#size === 0) continue;
      this.#lines.push(
        Buffer.concat(this.#pieces)
          .toString('utf8')
          .replace(/^\ufeff|\r$/g, ''),
      );
      this.#pieces = [];
      this.#size = 0;
    }
    this.#keep(chunk.subarray(from));
  }

  /** Returns the next message, or null while there is none. Throws what `read` throws, and then discards that line. */
  readMessage(): Message | null {
    const line = this.#lines[this.#next++];
    if (line !== undefined) return this.#read(line);
    // Taking each from the front would move all the others.
    this.#lines = [];
    this.#next = 0;
    return null;
  }

  clear(): void {
    this.#pieces = [];
    this.#size = 0;
    this.#lines = [];
    this.#next = 0;
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size > this.#maxBytes) {
      this.clear();
      throw new Error(`a message is larger than ${this.#maxBytes} bytes`);
    }
    this.#pieces.push(piece);
  }
}
