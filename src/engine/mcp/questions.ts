/** Has the person answer what an MCP server asks during its calls. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ToolResult } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { QuestionOver } from '../human.ts';
import { withinDepth } from '../jsonDepth.ts';
import { mapStrings } from '../redact.ts';
import { type ServerAnswer, type ServerWish, type ToolContext, toolError } from '../tools/tool.ts';
import type { CallClock } from './callClock.ts';
import type { McpSurroundings } from './link.ts';
import { type Client, ProtocolError, ProtocolErrorCode } from './sdk.ts';

type Fields = Readonly<Record<string, unknown>>;
type AskPerson = (wish: ServerWish) => Promise<ServerAnswer>;
type Content = Record<string, string | number | boolean | string[]>;

/** A call that runs, as far as its server may ask the person meanwhile. */
export interface AskingCall {
  ask: NonNullable<ToolContext['askServer']>;
  /** Stands still while a question is open. */
  clock: CallClock;
  /** Aborts when the call has ended. */
  over: AbortSignal;
  /** Its questions that wait. */
  open: Set<Promise<unknown>>;
}

/** What the protocol answers a server whose question the person has rejected. */
const rejected = -1;
/** Pages or questions of one answer that a person is asked about. */
const mostPages = 3;
const mostQuestions = 8;

/** The call whose answer is read, where the transport tells the answers of calls apart. */
const callOfAnswer = new AsyncLocalStorage<{ of: ServerQuestions; call: AskingCall }>();

/** The questions of one session. */
export class ServerQuestions {
  readonly #server: string;
  readonly #redact: (text: string) => string;
  readonly #openUrl: McpSurroundings['openUrl'];
  readonly #roots: { uri: string; name: string }[] | undefined;
  /** The calls that run and may ask the person. */
  readonly #asking = new Set<AskingCall>();

  constructor(server: string, { redact, openUrl, root }: McpSurroundings) {
    this.#server = server;
    this.#redact = redact;
    this.#openUrl = openUrl;
    this.#roots = root === undefined ? undefined : [{ uri: pathToFileURL(root).href, name: basename(root) }];
  }

  /** Answers the requests of a server that speaks a revision in which servers send some. */
  serve(client: Client, canAsk: boolean): void {
    if (canAsk) {
      client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) =>
        this.#elicit(params, mcpReq.signal),
      );
      client.setRequestHandler('sampling/createMessage', ({ params }, { mcpReq }) =>
        this.#sample(params, mcpReq.signal),
      );
    }
    const roots = this.#roots;
    if (roots) client.setRequestHandler('roots/list', () => ({ roots }));
  }

  /** Does `work`, during which the server may ask within `call`. Resolves once no question of the call is open. */
  async during<Result>(call: AskingCall, work: () => Promise<Result>): Promise<Result> {
    this.#asking.add(call);
    return await callOfAnswer.run({ of: this, call }, work);
  }

  /** The call asks no more. */
  async end(call: AskingCall): Promise<void> {
    this.#asking.delete(call);
    // Its questions end before it does, so that none of them outlives the run.
    await Promise.all(call.open);
  }

  /**
   * Answers what a server needs before it carries out `call`, by the keys of its questions. Throws TelosError `mcp` for a question that
   * gets no answer, and ProtocolError for one that the person rejects.
   */
  async answer(
    wanted: Fields,
    call: AskingCall | undefined,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const questions = Object.entries(wanted);
    if (questions.length > mostQuestions)
      throw new TelosError('mcp', [sentence('it asks {0} questions at once', questions.length)]);
    const answers: [string, unknown][] = [];
    // One after the other: a person answers one at a time.
    for (const [key, question] of questions)
      answers.push([key, await this.#answerOf(fieldsOf(question), call, signal)]);
    return Object.fromEntries(answers);
  }

  async #answerOf(
    { method, params }: Fields,
    call: AskingCall | undefined,
    signal: AbortSignal,
  ): Promise<unknown> {
    if (method === 'roots/list' && this.#roots) return { roots: this.#roots };
    if (method === 'elicitation/create')
      return call ? this.#elicit(params, signal, call) : { action: 'cancel' };
    if (method === 'sampling/createMessage' && call) return this.#sample(params, signal, call);
    throw new TelosError('mcp', [sentence('it asks for something that it was not offered')]);
  }

  /** Has the person answer what the server asks, until the server takes it back. */
  async #elicit(
    params: unknown,
    signal: AbortSignal,
    during?: AskingCall,
  ): Promise<{ action: 'accept' | 'decline' | 'cancel'; content?: Content }> {
    const isUrl = fieldsOf(params)['mode'] === 'url';
    const put = (ask: AskPerson): Promise<ServerAnswer> =>
      isUrl ? this.#visit(params, ask) : ask({ kind: 'form', server: this.#server, params });
    const answer = await this.#duringCall(signal, put, during);
    if (answer.action === 'decline' && answer.problem !== undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, answer.problem);
    if (answer.action !== 'accept' || isUrl) return { action: answer.action };
    const content = Object.entries(answer.content ?? {}).map(([name, value]) => [name, value] as const);
    return { action: 'accept', content: Object.fromEntries(content) as Content };
  }

  /** Has the model answer what the server asks it, after the person's yes. Throws what the protocol wants to be answered after a no. */
  async #sample(params: unknown, signal: AbortSignal, during?: AskingCall) {
    if (this.#asking.size === 0) throw new ProtocolError(rejected, 'The user is asked only during a call.');
    const wish = { kind: 'sampling' as const, server: this.#server, params: withinDepth(params as Fields) };
    const put = (ask: AskPerson) => ask(mapStrings(wish, this.#redact));
    const answer = await this.#duringCall(signal, put, during);
    const { sampled } = answer.action === 'accept' ? answer : {};
    if (!sampled) {
      const { problem = 'The user rejected the request.' } = answer.action === 'accept' ? {} : answer;
      throw new ProtocolError(rejected, problem);
    }
    const { text, model, stopReason } = sampled;
    return { role: 'assistant' as const, content: { type: 'text' as const, text }, model, stopReason };
  }

  /**
   * Has `put` ask the person during the call that the question belongs to. The answer is `cancel` once that has ended, or `signal` aborts.
   * Over HTTP, and in the revisions without requests of servers, a question comes with the answer to its call. A program of an older one
   * does not say which of its calls asks: the question then is put during the oldest one that runs, and again during the next, until all
   * that ran have ended.
   */
  async #duringCall(
    signal: AbortSignal,
    put: (ask: AskPerson) => Promise<ServerAnswer>,
    during: AskingCall | undefined,
  ): Promise<ServerAnswer> {
    const read = callOfAnswer.getStore();
    const own = during ?? (read?.of === this ? read.call : undefined);
    const calls = [...this.#asking].filter(call => own === undefined || call === own);
    const takenBack = new AbortController();
    const takeBack = (): void =>
      takenBack.abort(
        new QuestionOver(`The question is over: the MCP server '${this.#server}' no longer waits.`),
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
      signal.removeEventListener('abort', takeBack);
      for (const { clock } of calls) clock.resume();
    }
  }

  /** Asks the person, and opens the address after a yes. */
  async #visit(params: unknown, ask: AskPerson): Promise<ServerAnswer> {
    const opens = this.#openUrl !== undefined;
    const answer = await ask({ kind: 'url', server: this.#server, params, opens });
    if (answer.action === 'accept' && this.#openUrl)
      await this.#openUrl(String(fieldsOf(params)['url'])).catch(() => false);
    return answer;
  }

  /** Has the person open the pages that a server wants visited before it carries out a call. */
  async visitFirst(tool: string, { data }: ProtocolError, { ask, over }: AskingCall): Promise<ToolResult> {
    const { elicitations } = fieldsOf(data);
    const pages = Array.isArray(elicitations) ? elicitations.slice(0, mostPages) : [];
    const answers: ServerAnswer[] = [];
    for (const params of pages) answers.push(await this.#visit(params, wish => ask(wish, over)));
    const isDone = answers.length > 0 && answers.every(({ action }) => action === 'accept');
    return toolError(
      `${tool} of the MCP server '${this.#server}' was not carried out: the server wants the user to visit a page first. ${
        isDone
          ? 'It was opened. Ask the user to say when they are done there, then call the tool again.'
          : 'The user did not open it.'
      }`,
    );
  }
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};
