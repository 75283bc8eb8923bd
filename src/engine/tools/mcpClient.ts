/** Speaks with one MCP server, and is the only file that knows the protocol's SDK; it loads with the first server. */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import {
  auth,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ErrorCode,
  McpError,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject, ToolResult } from '../../protocol/run.ts';
import { TelosError } from '../errors.ts';
import { mapStrings } from '../redact.ts';
import { settledWithin } from './command.ts';
import type { McpServer, RemoteServer, StdioServer } from './mcpConfig.ts';
import { listingOf, progressText, toolResultOf } from './mcpResult.ts';
import type { McpToolListing, McpToolSource } from './mcpTools.ts';
import { guardOrphans } from './orphanGuard.ts';
import { endProcessTree, type ProcessTree, processTree } from './processTree.ts';
import { toolError } from './tool.ts';

/** In milliseconds. */
export interface McpLimits {
  /** From the start of a server to the list of its tools. */
  connectMs: number;
  callMs: number;
}

export interface McpConnection extends McpToolSource {
  /** As the server calls itself; empty where it does not. */
  name: string;
  version: string;
  /** True once its server is gone. */
  readonly ended: boolean;
  /** What the server wrote to its output that is no message, as far as it is known now: the first of it, with the reason. */
  readonly noise: string | undefined;
  /** Is called when the server's tools are others than before; `tools` has them already. */
  onToolsChanged: (() => void) | undefined;
  /** Ends the session, and the server's whole process tree if we have started it. Never throws. */
  close(): Promise<void>;
}

/** Where and with what a stdio server runs; `env` is its whole environment, its own variables excepted. */
export interface McpSurroundings {
  env: Readonly<Record<string, string>>;
  /** The agent's own folder, absolute. */
  cwd: string;
  /** How a remote server is reached, where that takes a sign-in. */
  fetch?: ((input: string | URL, init?: RequestInit) => Promise<Response>) | undefined;
  /** Takes what must not be shown out of what the server says. */
  redact(text: string): string;
}

/** For a sign-in; this file alone imports the SDK. */
export const oauth = { auth, discoverOAuthServerInfo, extractWWWAuthenticateParams };

/** More pages or tools than this come from no sane server. */
const maxPages = 50;
const maxTools = 500;
/** Bytes of one message; the SDK's own limit ends a server over a result of ten megabytes. */
const maxMessage = 64 * 1024 * 1024;
/** How long a session's last words may take, in milliseconds. */
const farewell = 250;
/** Characters of its error stream that are kept for the case that a server dies. */
const stderrKept = 4000;

/** Starts or reaches a server and lists its tools. Throws TelosError `mcp` with the reason, and the abort reason on abort; then nothing is left running. */
export async function connectServer(
  label: string,
  server: McpServer,
  surroundings: McpSurroundings,
  limits: McpLimits,
  signal: AbortSignal,
): Promise<McpConnection> {
  signal.throwIfAborted();
  const { redact } = surroundings;
  const link = server.type === 'stdio' ? stdioLink(server, surroundings) : remoteLink(server, surroundings);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), limits.connectMs);
  const stop = AbortSignal.any([signal, deadline.signal]);
  // No validators: the output schema of a hostile server would be compiled, and models read what does not match as well.
  const anything = {
    getValidator: () => (data: unknown) => ({ valid: true, data, errorMessage: undefined }),
  };
  const client = new Client(
    { name: 'telos', title: 'Telos', version: '1' },
    { jsonSchemaValidator: anything as never },
  );
  const session = new Session(label, client, link, limits, redact);
  try {
    const connecting = client.connect(link.transport as Transport, {
      signal: stop,
      timeout: limits.connectMs,
    });
    link.started();
    await orAborted(connecting, stop);
    await orAborted(session.listTools(stop), stop);
    return session;
  } catch (error) {
    await session.close();
    if (signal.aborted) throw signal.reason;
    const reason = deadline.signal.aborted
      ? `it did not answer within ${limits.connectMs / 1000} s${link.lastWords()}`
      : link.explain(error);
    throw new TelosError('mcp', redact(reason), { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

class Session implements McpConnection {
  readonly server: string;
  tools: readonly McpToolListing[] = [];
  onToolsChanged: (() => void) | undefined;
  readonly #client: Client;
  readonly #link: Link;
  readonly #limits: McpLimits;
  readonly #redact: (text: string) => string;
  readonly #closing = new AbortController();
  ended = false;
  noise: string | undefined;

  constructor(
    server: string,
    client: Client,
    link: Link,
    limits: McpLimits,
    redact: (text: string) => string,
  ) {
    this.server = server;
    this.#client = client;
    this.#link = link;
    this.#limits = limits;
    this.#redact = redact;
    client.onclose = () => {
      this.ended = true;
    };
    client.onerror = error => {
      if (error instanceof SyntaxError) this.noise ??= redact(error.message.slice(0, 200));
    };
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.#refresh());
  }

  get name(): string {
    return this.#client.getServerVersion()?.name ?? '';
  }

  get version(): string {
    return this.#client.getServerVersion()?.version ?? '';
  }

  async listTools(signal: AbortSignal): Promise<void> {
    const tools: McpToolListing[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages && tools.length < maxTools; page++) {
      if (!this.#client.getServerCapabilities()?.tools) break;
      const request = { method: 'tools/list' as const, params: cursor ? { cursor } : {} };
      const options = { signal, timeout: this.#limits.connectMs };
      const { tools: listed, nextCursor } = await this.#client.request(request, ResultSchema, options);
      if (Array.isArray(listed)) tools.push(...mapStrings(listed, this.#redact).flatMap(listingOf));
      if (typeof nextCursor !== 'string' || nextCursor === '') break;
      cursor = nextCursor;
    }
    this.tools = tools.slice(0, maxTools);
  }

  async #refresh(): Promise<void> {
    try {
      await this.listTools(this.#closing.signal);
      this.onToolsChanged?.();
    } catch {
      // The tools stay as they were; a server that has ended says so at the next call.
    }
  }

  async call(
    tool: string,
    input: JsonObject,
    signal: AbortSignal,
    onProgress?: (message: string) => void,
  ): Promise<ToolResult> {
    signal.throwIfAborted();
    if (this.ended) return toolError(this.#endedText());
    // A signal of the call's own: the SDK leaves its listener on it, and cancels what has long been answered.
    const own = new AbortController();
    const abort = (): void => own.abort(signal.reason);
    signal.addEventListener('abort', abort);
    try {
      const answer = await this.#client.request(
        { method: 'tools/call', params: { name: tool, arguments: { ...input } } },
        ResultSchema,
        {
          signal: own.signal,
          timeout: this.#limits.callMs,
          ...(onProgress ? { onprogress: progress => onProgress(this.#redact(progressText(progress))) } : {}),
        },
      );
      return mapStrings(toolResultOf(answer), this.#redact);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (this.ended) return toolError(this.#endedText());
      if (error instanceof McpError && error.code === ErrorCode.RequestTimeout)
        return toolError(
          `${tool} of the MCP server '${this.server}' did not answer within ${this.#limits.callMs / 1000} s; the call has been cancelled.`,
        );
      return toolError(
        this.#redact(`${tool} of the MCP server '${this.server}' failed: ${this.#link.explain(error)}`),
      );
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.onToolsChanged = undefined;
    await this.#link.close(() => this.#client.close());
  }

  #endedText(): string {
    return this.#redact(`The MCP server '${this.server}' has ended${this.#link.lastWords()}.`);
  }
}

/** A way to reach a server: what the SDK sends through, and what is known about the server besides. */
interface Link {
  transport: StdioClientTransport | SSEClientTransport | StreamableHTTPClientTransport;
  /** Call it in the turn in which the SDK was told to connect. */
  started(): void;
  explain(error: unknown): string;
  /** What the server wrote before it ended, to be put behind a sentence; may be empty. */
  lastWords(): string;
  close(closeClient: () => Promise<void>): Promise<void>;
}

function stdioLink(server: StdioServer, { env, cwd }: McpSurroundings): Link {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError('mcp', `the folder it would run in does not exist: ${cwd}`);
  const mark = { name: 'TELOS_COMMAND', value: randomUUID() };
  const { command, args } = server;
  const guard = guardOrphans(`${mark.name}=${mark.value}`);
  const transport = new StdioClientTransport({
    command,
    args,
    env: { ...env, ...server.env, [mark.name]: mark.value },
    cwd,
    stderr: 'pipe',
    maxBufferSize: maxMessage,
  });
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
      if (transport.pid !== null) tree = processTree(transport.pid, `${mark.name}=${mark.value}`);
    },
    explain(error) {
      if (codeOf(error) === 'ENOENT') return `there is no program '${command}'`;
      if (error instanceof McpError && error.code === ErrorCode.ConnectionClosed)
        return `it ended before it answered${lastWords()}`;
      return plainReason(error);
    },
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

function remoteLink(server: RemoteServer, surroundings: McpSurroundings): Link {
  const url = new URL(server.url);
  // The SDK follows a redirect only within the origin, so headers with secrets go nowhere else.
  const options = {
    requestInit: { headers: server.headers },
    redirectPolicy: 'same-origin' as const,
    ...(surroundings.fetch ? { fetch: surroundings.fetch } : {}),
  };
  const transport =
    server.type === 'sse'
      ? new SSEClientTransport(url, options)
      : new StreamableHTTPClientTransport(url, options);
  return {
    transport,
    started: () => undefined,
    explain(error) {
      const status = Number((error as { code?: unknown } | null)?.code);
      if (status === 401 || status === 403)
        return `it wants a sign-in at ${url.origin} (HTTP ${status}); Telos in VS Code asks for one, elsewhere put what it accepts into "headers" of its entry`;
      return plainReason(error);
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

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}

async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    // What is left behind may still fail, with nobody listening.
    work.catch(() => undefined);
  }
}
