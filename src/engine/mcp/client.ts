/** Speaks with one MCP server; it loads with the first of them. */
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

/** In milliseconds. */
export interface McpLimits {
  /** From the start of a server to the list of its tools. */
  connectMs: number;
  /** How long a call may say nothing. */
  callMs: number;
  /** How long one may take that tells how far it is. */
  longestCallMs: number;
}

export interface McpConnection extends McpToolSource {
  /** As the server calls itself; empty where it does not. */
  name: string;
  version: string;
  /** True once its server is gone. */
  readonly ended: boolean;
  /** True once it has ended for the server alone: the call that has shown it was not carried out. */
  readonly forgotten: boolean;
  /** What the server wrote to its output that is no message, as far as it is known now: the first of it, with the reason. */
  readonly noise: string | undefined;
  /** True when it has more tools than a run takes; `tools` are the first of them. */
  readonly hasMoreTools: boolean;
  /** Names of tools that are not among `tools`, since nothing can be done with their schemas. */
  readonly tooDeepTools: readonly string[];
  /** Is called when the server's tools are others than before; `tools` has them already. */
  onToolsChanged: (() => void) | undefined;
  /** Ends the session, and the server's whole process tree if we have started it. Never throws. */
  close(): Promise<void>;
}

const tooLong = new Error('The call takes too long.');
/** More pages or tools than this come from no sane server. */
const maxPages = 50;
const maxTools = 500;

/**
 * Starts or reaches a server and lists its tools. An address that does not know today's transport is asked for the one of before, as the
 * specification has it. Throws TelosError `mcp` with the reason, and the abort reason on abort; then nothing is left running.
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
      // What the server said to what was written down is what helps.
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

  /** One list at a time, however often the server says that there is another. */
  async #refresh(): Promise<void> {
    this.#hasChanged = true;
    if (this.#isListing) return;
    this.#isListing = true;
    try {
      while (this.#hasChanged) await this.listTools(this.#closing.signal);
      this.onToolsChanged?.();
    } catch {
      // The tools stay as they were; a server that has ended says so at the next call.
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
    // A signal of the call's own: the SDK leaves its listener on it, and cancels what has long been answered.
    const own = new AbortController();
    const abort = (): void => own.abort(signal.reason);
    signal.addEventListener('abort', abort);
    let comesOn = false;
    // The SDK's own limit would leave the server at work.
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
          `${tool} of the MCP server '${this.server}' was not done within ${longestCallMs / 1000} s; the call has been cancelled.`,
        );
      if (error instanceof McpError && error.code === ErrorCode.RequestTimeout)
        return toolError(
          `${tool} of the MCP server '${this.server}' ${comesOn ? 'stopped telling how far it is for' : 'did not answer within'} ${this.#limits.callMs / 1000} s; the call has been cancelled.`,
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
    // What is left behind may still fail, with nobody listening.
    work.catch(() => undefined);
  }
}
