/** Connects to one MCP server, lists its tools and calls them. This file is loaded with the first server. */
import type { JsonObject, ToolResult } from '../../protocol/run.ts';
import { TelosError } from '../errors.ts';
import { mapStrings } from '../redact.ts';
import { toolError } from '../tools/tool.ts';
import type { McpServer } from './config.ts';
import { type Link, type McpSurroundings, mayBeOlder, remoteLink, stdioLink } from './link.ts';
import { listingOf, progressText, tooDeepTools, toolResultOf } from './result.ts';
import {
  Client,
  ErrorCode,
  McpError,
  ResultSchema,
  ToolListChangedNotificationSchema,
  type Transport,
} from './sdk.ts';
import type { McpToolListing, McpToolSource } from './tools.ts';

/** Time limits, in milliseconds. */
export interface McpLimits {
  /** From a server's start to the list of its tools. */
  connectMs: number;
  /** How long a call may take without a progress message. */
  callMs: number;
  /** How long a call may take that reports its progress. */
  longestCallMs: number;
}

export interface McpConnection extends McpToolSource {
  /** The server's own name; empty if it gives none. */
  name: string;
  version: string;
  /** True once the session has ended. */
  readonly ended: boolean;
  /** True once the server no longer knows the session. The call that revealed this was not carried out. */
  readonly forgotten: boolean;
  /** The first output of the server so far that is not a message, with the reason. */
  readonly noise: string | undefined;
  /** True if the server has more tools than a run takes; `tools` holds the first of them. */
  readonly hasMoreTools: boolean;
  /** Names of tools that are not in `tools`, because their schemas are nested too deeply. */
  readonly tooDeepTools: readonly string[];
  /** Called when the server's tools have changed; `tools` is already up to date. */
  onToolsChanged: (() => void) | undefined;
  /** Ends the session, and the server's whole process tree if Telos has started it. Never throws. */
  close(): Promise<void>;
}

const tooLong = new Error('The call took too long.');
/** Upper bounds of a tool listing, which no sensible server exceeds. */
const maxPages = 50;
const maxTools = 500;

/**
 * Starts or reaches a server and lists its tools. If an address does not know the current transport, the previous one is
 * tried, as the specification requires. Throws TelosError `mcp` with the reason, and the abort reason on abort. In both
 * cases nothing is left running.
 */
export async function connectServer(
  label: string,
  server: McpServer,
  surroundings: McpSurroundings,
  limits: McpLimits,
  signal: AbortSignal,
): Promise<McpConnection> {
  try {
    return await connect(label, server, surroundings, limits, signal);
  } catch (error) {
    if (server.type !== 'streamable-http' || !mayBeOlder(error)) throw error;
    const older = connect(label, { ...server, type: 'sse' }, surroundings, limits, signal);
    return await older.catch(() => {
      // The answer to the transport that the entry names is the helpful one.
      throw signal.aborted ? signal.reason : error;
    });
  }
}

async function connect(
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
  // No validators: they would compile the output schema of a hostile server. Models can read output that does not match.
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
  forgotten = false;
  noise: string | undefined;
  hasMoreTools = false;
  tooDeepTools: readonly string[] = [];
  #isListing = false;
  #hasChanged = false;

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
    let tooDeep: string[] = [];
    let cursor: string | undefined;
    this.#hasChanged = false;
    for (let page = 0; page < maxPages && tools.length < maxTools; page++) {
      if (!this.#client.getServerCapabilities()?.tools) break;
      const request = { method: 'tools/list' as const, params: cursor ? { cursor } : {} };
      const options = { signal, timeout: this.#limits.connectMs };
      const { tools: listed, nextCursor } = await this.#client.request(request, ResultSchema, options);
      if (Array.isArray(listed)) {
        for (const listing of mapStrings(listed.flatMap(listingOf), this.#redact)) tools.push(listing);
        tooDeep = [...tooDeep, ...mapStrings(tooDeepTools(listed), this.#redact)];
      }
      cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined;
      if (cursor === undefined) break;
    }
    this.tools = tools.slice(0, maxTools);
    this.tooDeepTools = tooDeep;
    this.hasMoreTools = tools.length > maxTools || cursor !== undefined;
  }

  /** Lists the tools again, one listing at a time, however often the server reports a change. */
  async #refresh(): Promise<void> {
    this.#hasChanged = true;
    if (this.#isListing) return;
    this.#isListing = true;
    try {
      while (this.#hasChanged) await this.listTools(this.#closing.signal);
      this.onToolsChanged?.();
    } catch {
      // The tools stay as they were. If the server has ended, the next call reports it.
    } finally {
      this.#isListing = false;
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
    // The call gets its own signal. The SDK leaves its listener on it, and would cancel calls that were answered long ago.
    const own = new AbortController();
    const abort = (): void => own.abort(signal.reason);
    signal.addEventListener('abort', abort);
    let comesOn = false;
    // With the SDK's own limit, the server would go on working.
    const { longestCallMs } = this.#limits;
    const timer = setTimeout(() => own.abort(tooLong), longestCallMs);
    try {
      const answer = await this.#client.request(
        { method: 'tools/call', params: { name: tool, arguments: { ...input } } },
        ResultSchema,
        {
          signal: own.signal,
          timeout: this.#limits.callMs,
          resetTimeoutOnProgress: true,
          onprogress: progress => {
            comesOn = true;
            onProgress?.(this.#redact(progressText(progress)));
          },
        },
      );
      return mapStrings(toolResultOf(answer), this.#redact);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (this.#link.hasForgotten(error)) this.ended = this.forgotten = true;
      if (this.ended) return toolError(this.#endedText());
      if (own.signal.reason === tooLong)
        return toolError(
          `${tool} of the MCP server '${this.server}' did not finish within ${longestCallMs / 1000} s; the call was cancelled.`,
        );
      if (error instanceof McpError && error.code === ErrorCode.RequestTimeout)
        return toolError(
          `${tool} of the MCP server '${this.server}' ${comesOn ? 'reported no progress for' : 'did not answer within'} ${this.#limits.callMs / 1000} s; the call was cancelled.`,
        );
      return toolError(
        this.#redact(`${tool} of the MCP server '${this.server}' failed: ${this.#link.explain(error)}`),
      );
    } finally {
      clearTimeout(timer);
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
    // The abandoned work may still fail; that must not become an unhandled rejection.
    work.catch(() => undefined);
  }
}
