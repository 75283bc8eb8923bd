/** The session with one MCP server: lists its tools and calls them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject, ToolResult } from '@telos/protocol/run';
import { beginningOf, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { QuestionOver } from '../human.ts';
import { withinDepth } from '../jsonDepth.ts';
import { mapStrings } from '../redact.ts';
import { type ToolContext, toolError } from '../tools/tool.ts';
import { CallClock, type McpLimits } from './callClock.ts';
import type { McpConnection } from './connection.ts';
import type { Link, McpSurroundings } from './link.ts';
import { listed, mostListed, type OfferMethod } from './offers.ts';
import { paramHeaders, paramHeadersOf } from './paramHeaders.ts';
import { type AskingCall, ServerQuestions } from './questions.ts';
import { listingOf, progressOf, tooDeepTools, toolResultOf } from './result.ts';
import { anyResult, type Client, isInputRequiredResult, ProtocolError, ProtocolErrorCode } from './sdk.ts';
import { ServerSkills } from './serverSkills.ts';
import type { McpToolListing } from './tools.ts';

export class Session implements McpConnection {
  readonly server: string;
  tools: readonly McpToolListing[] = [];
  onToolsChanged: (() => void) | undefined;
  readonly #client: Client;
  readonly #link: Link;
  readonly #limits: McpLimits;
  readonly #redact: (text: string) => string;
  readonly #questions: ServerQuestions;
  readonly #closing = new AbortController();
  readonly skills: ServerSkills;
  ended = false;
  forgotten = false;
  noise: string | undefined;
  hasMoreTools = false;
  tooDeepTools: readonly string[] = [];
  #isListing = false;
  #hasChanged = false;
  /** When the tools were listed again last, and how long the next listing waits after that. In milliseconds. */
  #listedAt = Number.NEGATIVE_INFINITY;
  #pause = firstPause;

  /** The headers that calls of tools have. */
  #headers = new Map<string, ReturnType<typeof paramHeadersOf>>();
  /** When the list of tools is no longer fresh, as the server says. In milliseconds. */
  #freshUntil = Number.POSITIVE_INFINITY;

  constructor(server: string, client: Client, link: Link, limits: McpLimits, surroundings: McpSurroundings) {
    this.server = server;
    this.#client = client;
    this.#link = link;
    this.#limits = limits;
    this.#redact = surroundings.redact;
    this.#questions = new ServerQuestions(server, surroundings);
    this.skills = new ServerSkills(client, limits.callMs);
    this.#questions.serve(client, surroundings.canAsk === true);
    client.onclose = () => {
      this.ended = true;
    };
    const hear = (error: Error): void => {
      if (error instanceof SyntaxError) this.noise ??= this.#redact(beginningOf(error.message, 200));
    };
    client.onerror = hear;
    // The client listens only once it knows what the server speaks.
    link.transport.onerror = hear;
    client.setNotificationHandler('notifications/tools/list_changed', () => this.#refresh());
  }

  get name(): string {
    return this.#client.getServerVersion()?.name ?? '';
  }

  get version(): string {
    return this.#client.getServerVersion()?.version ?? '';
  }

  async listTools(signal: AbortSignal): Promise<void> {
    // A server may list a tool twice, on pages that repeat.
    const tools = new Map<string, McpToolListing>();
    let tooDeep: string[] = [];
    let freshFor: unknown;
    this.#hasChanged = false;
    const ask = (params: Fields) =>
      withOwnSignal(signal, async own => {
        const options = { signal: own, timeout: this.#limits.connectMs };
        const answer = await this.#client.request({ method: 'tools/list', params }, anyResult, options);
        freshFor ??= answer['ttlMs'];
        return answer;
      });
    const pages = listed(ask, 'tools');
    let hasMore = false;
    while (this.#client.getServerCapabilities()?.tools) {
      const { value, done } = await pages.next();
      if (done) {
        hasMore = value;
        break;
      }
      for (const listing of mapStrings(value.flatMap(listingOf), this.#redact))
        tools.set(listing.name, listing);
      tooDeep = [...tooDeep, ...mapStrings(tooDeepTools(value), this.#redact)];
    }
    this.#headers = new Map([...tools.values()].map(tool => [tool.name, paramHeadersOf(tool.inputSchema)]));
    const isCallable = ({ name }: McpToolListing): boolean =>
      !this.#sendsHeaders || !!this.#headers.get(name);
    this.tools = [...tools.values()].filter(isCallable).slice(0, mostListed);
    const isTold = this.#client.getServerCapabilities()?.tools?.listChanged === true;
    this.#freshUntil =
      typeof freshFor === 'number' && !isTold
        ? performance.now() + Math.max(freshFor, longestPause)
        : Number.POSITIVE_INFINITY;
    this.tooDeepTools = tooDeep;
    this.hasMoreTools = hasMore;
  }

  get #isModern(): boolean {
    return this.#client.getProtocolEra() === 'modern';
  }

  get #sendsHeaders(): boolean {
    return this.#isModern && this.#link.isRemote;
  }

  /** Has the server say when its tools change, also after it has ended a subscription. In older revisions, servers say it unasked. */
  async subscribe(): Promise<void> {
    if (!this.#isModern || this.#client.getServerCapabilities()?.tools?.listChanged !== true) return;
    const { signal } = this.#closing;
    for (let pause = firstPause; pause <= longestPause && !this.ended; pause *= 2) {
      try {
        const subscription = await this.#client.listen({ toolsListChanged: true }, { signal });
        if ((await subscription.closed) === 'local') return;
        await delay(pause, undefined, { signal, ref: false });
        this.#refresh();
      } catch {
        // Without a subscription the tools stay as they are listed.
        return;
      }
    }
  }

  offers(what: 'prompts' | 'resources'): boolean {
    return this.#client.getServerCapabilities()?.[what] !== undefined;
  }

  async ask(method: OfferMethod, params: Fields, signal: AbortSignal): Promise<Fields> {
    signal.throwIfAborted();
    try {
      const answer = await withOwnSignal(signal, own => {
        const options = { signal: own, timeout: this.#limits.callMs };
        return this.#client.request({ method, params }, anyResult, options);
      });
      return mapStrings(withinDepth(answer as Fields), this.#redact);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (this.#link.hasForgotten(error)) this.ended = this.forgotten = true;
      const reason = this.ended ? this.#endedWhy() : this.#link.explain(error);
      throw new TelosError('mcp', [mapStrings(reason, this.#redact)], { cause: error });
    }
  }

  /** Lists the tools again, one listing at a time and ever more seldom, however often the server reports a change. */
  async #refresh(): Promise<void> {
    this.#hasChanged = true;
    if (this.#isListing) return;
    this.#isListing = true;
    const { signal } = this.#closing;
    try {
      while (this.#hasChanged) {
        const since = performance.now() - this.#listedAt;
        if (since >= longestPause) this.#pause = firstPause;
        else await delay(Math.max(0, this.#pause - since), undefined, { signal, ref: false });
        await this.listTools(signal);
        if (since < longestPause) this.#pause = Math.min(2 * this.#pause, longestPause);
        this.#listedAt = performance.now();
        this.onToolsChanged?.();
      }
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
    onProgress?: ToolContext['onProgress'],
    _askSignIn?: ToolContext['askSignIn'],
    askServer?: AskServer,
  ): Promise<ToolResult> {
    signal.throwIfAborted();
    if (this.ended) return toolError(this.#endedText());
    // The call gets its own signal. The SDK leaves its listener on it, and would cancel calls that were answered long ago.
    const own = new AbortController();
    const over = new AbortController();
    const abort = (): void => {
      own.abort(signal.reason);
      over.abort(signal.reason);
    };
    signal.addEventListener('abort', abort);
    const clock = new CallClock(this.#limits, why => own.abort(why));
    const asking = askServer && {
      ask: askServer,
      clock,
      over: over.signal,
      open: new Set<Promise<unknown>>(),
    };
    if (performance.now() > this.#freshUntil) void this.#refresh();
    try {
      const options = {
        signal: own.signal,
        // The clock ends a call. With the SDK's own limit, the server would go on working, and a person would be hurried.
        timeout: longestTimer,
        onprogress: (progress: Progress) => {
          clock.heard();
          onProgress?.(...progressOf(mapStrings(progress, this.#redact)));
        },
      };
      const work = () => this.#answered(tool, input, options, asking);
      const answer = await (asking ? this.#questions.during(asking, work) : work());
      return mapStrings(toolResultOf(answer), this.#redact);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (this.#link.hasForgotten(error)) this.ended = this.forgotten = true;
      if (this.ended) return toolError(this.#endedText());
      if (own.signal.aborted)
        return toolError(
          `${tool} of the MCP server '${this.server}' ${clock.overText}; the call was cancelled.`,
        );
      if (error instanceof ProtocolError && error.code === ProtocolErrorCode.UrlElicitationRequired && asking)
        return await this.#questions.visitFirst(tool, error, asking);
      return toolError(
        this.#redact(
          `${tool} of the MCP server '${this.server}' failed: ${spoken([this.#link.explain(error)])}`,
        ),
      );
    } finally {
      clock.stop();
      over.abort(new QuestionOver(`The question is over: ${tool} of '${this.server}' has ended.`));
      signal.removeEventListener('abort', abort);
      if (asking) await this.#questions.end(asking);
    }
  }

  /** Sends a call, and again with the answers to what the server asks before it carries it out. */
  async #answered(
    tool: string,
    input: JsonObject,
    options: { signal: AbortSignal; timeout: number; onprogress: (progress: Progress) => void },
    asking: AskingCall | undefined,
  ): Promise<Fields> {
    const headers = this.#sendsHeaders ? paramHeaders(this.#headers.get(tool) ?? [], input) : {};
    let given: Fields = {};
    for (let round = 0; round <= mostRounds; round++) {
      const params = { name: tool, arguments: { ...input }, ...given };
      const answer = await this.#client.request({ method: 'tools/call', params }, anyResult, {
        ...options,
        headers,
        allowInputRequired: true,
      });
      if (!isInputRequiredResult(answer)) return answer;
      const { inputRequests = {}, requestState } = answer;
      const inputResponses = await this.#questions.answer(inputRequests, asking, options.signal);
      // A server that only asks for another try is working on it.
      if (Object.keys(inputRequests).length === 0)
        await delay(firstPause, undefined, { signal: options.signal });
      given = { inputResponses, ...(requestState !== undefined && { requestState }) };
    }
    throw new TelosError('mcp', [sentence('it asked {0} times and then did not answer', mostRounds + 1)]);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.onToolsChanged = undefined;
    await this.#link.close(() => this.#client.close());
  }

  #endedWhy(): Sentence {
    return sentence("The MCP server '{0}' has ended{1}.", this.server, this.#link.lastWords());
  }

  #endedText(): string {
    return this.#redact(spoken([this.#endedWhy()]));
  }
}

/** Calls `work` with a signal of its own, which aborts with `signal`: the SDK leaves its listeners, and would cancel what was answered long ago. */
async function withOwnSignal<Result>(
  signal: AbortSignal,
  work: (own: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const own = new AbortController();
  const abort = (): void => own.abort(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await work(own.signal);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

type Fields = Readonly<Record<string, unknown>>;
type AskServer = NonNullable<ToolContext['askServer']>;
interface Progress {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}

/** Pauses between listings of a server that reports change after change, in milliseconds. After the longest without a report they begin anew. */
const firstPause = 250;
const longestPause = 30_000;

/** How often a server may ask before it carries out one call. */
const mostRounds = 10;
/** The longest time that a timer takes, in milliseconds. */
const longestTimer = 2 ** 31 - 1;
