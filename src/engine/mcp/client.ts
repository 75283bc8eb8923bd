/** Connects to one MCP server, lists its tools and calls them. This file is loaded with the first server. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { JsonObject, ToolResult } from '@telos/protocol/run';
import { beginningOf, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { untilAborted } from '../cancellation.ts';
import { TelosError } from '../core/errors.ts';
import { QuestionOver } from '../human.ts';
import { withinDepth } from '../jsonDepth.ts';
import { mapStrings } from '../redact.ts';
import { type ServerAnswer, type ServerWish, type ToolContext, toolError } from '../tools/tool.ts';
import type { McpServer } from './config.ts';
import { type Link, type McpSurroundings, mayBeOlder, remoteLink, stdioLink } from './link.ts';
import { listed, mostListed, type OfferMethod } from './offers.ts';
import { listingOf, progressOf, tooDeepTools, toolResultOf } from './result.ts';
import {
  Client,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ErrorCode,
  ListRootsRequestSchema,
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
  /** Returns true if the server says that it has such offers. */
  offers(what: 'prompts' | 'resources'): boolean;
  /** Resolves with the unchecked result, without secrets. Throws TelosError `mcp` with the reason, and the abort reason on abort. */
  ask(method: OfferMethod, params: Fields, signal: AbortSignal): Promise<Fields>;
  /** Called when the server's tools have changed; `tools` is already up to date. */
  onToolsChanged: (() => void) | undefined;
  /** Ends the session, and the server's whole process tree if Telos has started it. Never throws. */
  close(): Promise<void>;
}

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
  // Not `AbortSignal.any`: the SDK leaves its listeners, with which Node would hold the session as long as the process lives.
  const stopping = new AbortController();
  const stop = stopping.signal;
  const abort = (): void => stopping.abort();
  for (const one of [signal, deadline.signal]) one.addEventListener('abort', abort);
  // No validators: they would compile the output schema of a hostile server. Models can read output that does not match.
  const anything = {
    getValidator: () => (data: unknown) => ({ valid: true, data, errorMessage: undefined }),
  };
  const client = new Client(
    { name: 'telos', title: 'Telos', version: '1' },
    {
      jsonSchemaValidator: anything as never,
      capabilities: {
        ...(surroundings.canAsk && { elicitation: { form: {}, url: {} }, sampling: {} }),
        ...(surroundings.root !== undefined && { roots: {} }),
      },
    },
  );
  const session = new Session(label, client, link, limits, surroundings);
  try {
    const connecting = client.connect(link.transport as Transport, {
      signal: stop,
      timeout: limits.connectMs,
    });
    link.started();
    await untilAborted(connecting, stop);
    await untilAborted(session.listTools(stop), stop);
    return session;
  } catch (error) {
    await session.close();
    if (signal.aborted) throw signal.reason;
    const seconds = limits.connectMs / 1000;
    const said = link.firstError();
    const reason = !deadline.signal.aborted
      ? link.explain(error)
      : said === undefined
        ? sentence('it did not answer within {0} s', seconds)
        : sentence('it did not answer within {0} s; it said: {1}', seconds, said);
    throw new TelosError('mcp', [mapStrings(reason, redact)], { cause: error });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
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
  readonly #openUrl: McpSurroundings['openUrl'];
  /** The calls that run and may ask the person. */
  readonly #asking = new Set<AskingCall>();
  readonly #closing = new AbortController();
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

  constructor(
    server: string,
    client: Client,
    link: Link,
    limits: McpLimits,
    { redact, openUrl, canAsk, root }: McpSurroundings,
  ) {
    this.server = server;
    this.#client = client;
    this.#link = link;
    this.#limits = limits;
    this.#redact = redact;
    this.#openUrl = openUrl;
    if (canAsk) {
      client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => this.#elicit(params, signal));
      client.setRequestHandler(CreateMessageRequestSchema, ({ params }, { signal }) =>
        this.#sample(params, signal),
      );
    }
    if (root !== undefined) {
      const roots = [{ uri: pathToFileURL(root).href, name: basename(root) }];
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));
    }
    client.onclose = () => {
      this.ended = true;
    };
    client.onerror = error => {
      if (error instanceof SyntaxError) this.noise ??= redact(beginningOf(error.message, 200));
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
    this.#hasChanged = false;
    const ask = (params: Fields) =>
      withOwnSignal(signal, own => {
        const options = { signal: own, timeout: this.#limits.connectMs };
        return this.#client.request({ method: 'tools/list', params }, ResultSchema, options);
      });
    const pages = listed(ask, 'tools');
    let hasMore = false;
    while (this.#client.getServerCapabilities()?.tools) {
      const { value, done } = await pages.next();
      if (done) {
        hasMore = value;
        break;
      }
      for (const listing of mapStrings(value.flatMap(listingOf), this.#redact)) tools.push(listing);
      tooDeep = [...tooDeep, ...mapStrings(tooDeepTools(value), this.#redact)];
    }
    this.tools = tools.slice(0, mostListed);
    this.tooDeepTools = tooDeep;
    this.hasMoreTools = hasMore;
  }

  offers(what: 'prompts' | 'resources'): boolean {
    return this.#client.getServerCapabilities()?.[what] !== undefined;
  }

  async ask(method: OfferMethod, params: Fields, signal: AbortSignal): Promise<Fields> {
    signal.throwIfAborted();
    try {
      const answer = await withOwnSignal(signal, own => {
        const options = { signal: own, timeout: this.#limits.callMs };
        return this.#client.request({ method, params }, ResultSchema, options);
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
      session: this,
      ask: askServer,
      clock,
      over: over.signal,
      open: new Set<Promise<unknown>>(),
    };
    if (asking) this.#asking.add(asking);
    const request: Client['request'] = (...words) =>
      asking
        ? callOfAnswer.run(asking, () => this.#client.request(...words))
        : this.#client.request(...words);
    try {
      const answer = await request(
        { method: 'tools/call', params: { name: tool, arguments: { ...input } } },
        ResultSchema,
        {
          signal: own.signal,
          // The clock ends a call. With the SDK's own limit, the server would go on working, and a person would be hurried.
          timeout: longestTimer,
          onprogress: progress => {
            clock.heard();
            onProgress?.(...progressOf(mapStrings(progress, this.#redact)));
          },
        },
      );
      return mapStrings(toolResultOf(answer), this.#redact);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (this.#link.hasForgotten(error)) this.ended = this.forgotten = true;
      if (this.ended) return toolError(this.#endedText());
      if (own.signal.aborted)
        return toolError(
          `${tool} of the MCP server '${this.server}' ${clock.overText}; the call was cancelled.`,
        );
      if (error instanceof McpError && error.code === ErrorCode.UrlElicitationRequired && askServer)
        return await this.#visitFirst(tool, error, wish => askServer(wish, over.signal));
      return toolError(
        this.#redact(
          `${tool} of the MCP server '${this.server}' failed: ${spoken([this.#link.explain(error)])}`,
        ),
      );
    } finally {
      clock.stop();
      if (asking) this.#asking.delete(asking);
      over.abort(new QuestionOver(`The question is over: ${tool} of '${this.server}' has ended.`));
      signal.removeEventListener('abort', abort);
      // Its questions end before it does, so that none of them outlives the run.
      await Promise.all(asking?.open ?? []);
    }
  }

  /** Has the person answer what the server asks, until the server takes it back. */
  async #elicit(
    params: unknown,
    signal: AbortSignal,
  ): Promise<{ action: 'accept' | 'decline' | 'cancel'; content?: Content }> {
    const isUrl = (params as { mode?: unknown } | null)?.mode === 'url';
    const answer = await this.#duringCall(signal, ask =>
      isUrl ? this.#visit(params, ask) : ask({ kind: 'form', server: this.server, params }),
    );
    if (answer.action === 'decline' && answer.problem !== undefined)
      throw new McpError(ErrorCode.InvalidParams, answer.problem);
    if (answer.action !== 'accept') return { action: answer.action };
    const content = Object.entries(answer.content ?? {}).map(([name, value]) => [name, value] as const);
    return isUrl
      ? { action: 'accept' }
      : { action: 'accept', content: Object.fromEntries(content) as Content };
  }

  /** Has the model answer what the server asks it, after the person's yes. Throws what the protocol wants to be answered after a no. */
  async #sample(params: unknown, signal: AbortSignal) {
    if (this.#asking.size === 0) throw new McpError(rejected, 'The user is asked only during a call.');
    const wish = { kind: 'sampling' as const, server: this.server, params: withinDepth(params) };
    const answer = await this.#duringCall(signal, ask => ask(mapStrings(wish, this.#redact)));
    const { sampled } = answer.action === 'accept' ? answer : {};
    if (!sampled) {
      const { problem = 'The user rejected the request.' } = answer.action === 'accept' ? {} : answer;
      throw new McpError(rejected, problem);
    }
    const { text, model, stopReason } = sampled;
    return { role: 'assistant' as const, content: { type: 'text' as const, text }, model, stopReason };
  }

  /**
   * Has `put` ask the person during the call that the question belongs to. The answer is `cancel` once that has ended, or `signal` aborts.
   * Over HTTP, a question comes with the answer to its call. A program does not say which of its calls asks: the question then is put
   * during the oldest one that runs, and again during the next, until all that ran have ended.
   */
  async #duringCall(
    signal: AbortSignal,
    put: (ask: AskPerson) => Promise<ServerAnswer>,
  ): Promise<ServerAnswer> {
    const own = callOfAnswer.getStore();
    const isKnown = own?.session === this;
    const calls = [...this.#asking].filter(call => !isKnown || call === own);
    const takenBack = new AbortController();
    const takeBack = (): void =>
      takenBack.abort(
        new QuestionOver(`The question is over: the MCP server '${this.server}' no longer waits.`),
      );
    signal.addEventListener('abort', takeBack);
    for (const { clock } of calls) clock.pause();
    try {
      for (const call of calls) {
        if (call.over.aborted) continue;
        const over = AbortSignal.any([takenBack.signal, call.over]);
        const question = put(wish => call.ask(wish, over));
        call.open.add(question);
        const answer = await question.finally(() => call.open.delete(question));
        if (!call.over.aborted || signal.aborted) return answer;
      }
      return { action: 'cancel' };
    } finally {
      for (const { clock } of calls) clock.resume();
    }
  }

  /** Asks the person, and opens the address after a yes. */
  async #visit(params: unknown, ask: AskPerson): Promise<ServerAnswer> {
    const answer = await ask({
      kind: 'url',
      server: this.server,
      params,
      opens: this.#openUrl !== undefined,
    });
    if (answer.action === 'accept' && this.#openUrl)
      await this.#openUrl(String((params as { url?: unknown }).url)).catch(() => false);
    return answer;
  }

  /** Has the person open the pages that a server wants visited before it carries out a call. */
  async #visitFirst(tool: string, { data }: McpError, ask: AskPerson): Promise<ToolResult> {
    const { elicitations } = (data ?? {}) as { elicitations?: unknown };
    const pages = Array.isArray(elicitations) ? elicitations.slice(0, mostPages) : [];
    const answers: ServerAnswer[] = [];
    for (const params of pages) answers.push(await this.#visit(params, ask));
    const isDone = answers.length > 0 && answers.every(({ action }) => action === 'accept');
    return toolError(
      `${tool} of the MCP server '${this.server}' was not carried out: the server wants the user to visit a page first. ${
        isDone
          ? 'It was opened. Ask the user to say when they are done there, then call the tool again.'
          : 'The user did not open it.'
      }`,
    );
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
type AskPerson = (wish: ServerWish) => Promise<ServerAnswer>;
type Content = Record<string, string | number | boolean | string[]>;

/** A call that runs, as far as its server may ask the person meanwhile. */
interface AskingCall {
  session: McpConnection;
  ask: AskServer;
  /** Stands still while a question is open. */
  clock: CallClock;
  /** Aborts when the call has ended. */
  over: AbortSignal;
  /** Its questions that wait. */
  open: Set<Promise<unknown>>;
}

/** The call whose answer is read, where the transport tells the answers of calls apart. */
const callOfAnswer = new AsyncLocalStorage<AskingCall>();

/** Pauses between listings of a server that reports change after change, in milliseconds. After the longest without a report they begin anew. */
const firstPause = 250;
const longestPause = 30_000;

/** What the protocol answers a server whose question the person has rejected. */
const rejected = -1;
/** Pages of one refusal that a person is asked about. */
const mostPages = 3;
/** The longest time that a timer takes, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

/** Ends a call that takes too long, or that reports no progress. Stands still while a person is asked. */
class CallClock {
  readonly #limits: McpLimits;
  readonly #over: (reason: Error) => void;
  #comesOn = false;
  #asked = 0;
  /** What the whole call still has, and since when that runs. */
  #left: number;
  #since = performance.now();
  #whole: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;
  /** Says why the call was ended. */
  overText = '';

  constructor(limits: McpLimits, over: (reason: Error) => void) {
    this.#limits = limits;
    this.#over = over;
    this.#left = limits.longestCallMs;
    this.#start();
  }

  heard(): void {
    this.#comesOn = true;
    if (this.#asked === 0) this.#listen();
  }

  pause(): void {
    if (this.#asked++ > 0) return;
    this.#left -= performance.now() - this.#since;
    this.#clear();
  }

  resume(): void {
    if (--this.#asked === 0) this.#start();
  }

  stop(): void {
    this.#clear();
    this.#asked = Number.POSITIVE_INFINITY;
  }

  #start(): void {
    this.#since = performance.now();
    const { longestCallMs } = this.#limits;
    this.#whole = setTimeout(
      () => this.#end(`did not finish within ${longestCallMs / 1000} s`),
      Math.max(0, this.#left),
    );
    this.#listen();
  }

  #listen(): void {
    const { callMs } = this.#limits;
    const what = this.#comesOn ? 'reported no progress for' : 'did not answer within';
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#end(`${what} ${callMs / 1000} s`), callMs);
  }

  #end(text: string): void {
    this.overText = text;
    this.#over(new Error('The call took too long.'));
  }

  #clear(): void {
    clearTimeout(this.#whole);
    clearTimeout(this.#silence);
  }
}
