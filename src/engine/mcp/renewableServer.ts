/** Wraps a connected MCP server for a run. Restarts it once after it has ended, and signs in again for further rights. */

import type { ToolResult } from '@telos/protocol/run';
import { asOne, asSaid, type Sentence, sentencesOf } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { toolError, type WantedSignIn } from '../tools/tool.ts';
import type { McpConnection } from './connection.ts';
import type { McpSignIn } from './signIn.ts';
import type { McpServerPlace, McpToolSource } from './tools.ts';

/** The result of trying to reach a server. */
export type Attempt =
  | ({
      server: string;
      connection: McpConnection;
      place: string;
      signIn?: McpSignIn | undefined;
      /** Resolves once its prompts and resources are listed, if someone wants them. */
      listed?: Promise<void> | undefined;
    } & McpServerPlace)
  | { server: string; error: Sentence; signIn?: McpSignIn | undefined };

const plainReason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the reason as a phrase. What is not of the engine is the same in every language. */
export const phraseOf = (error: unknown): Sentence =>
  error instanceof TelosError ? asOne(sentencesOf(error)) : asSaid(plainReason(error));

/** Returns the further rights that a server wants, for people. Characters that such names cannot contain are removed. */
export const moreOf = ({ wantsMore }: McpSignIn): { more?: string } =>
  wantsMore === undefined ? {} : { more: wantsMore.replace(/[^\x21-\x7e ]+/g, '').slice(0, 200) };

/** A server that is restarted once after it has ended. The call during which it ended is lost. */
export class RenewableServer implements McpToolSource {
  readonly server: string;
  readonly folders: readonly string[];
  readonly isRemote: boolean;
  #connection: McpConnection;
  #renew: ((server: string) => Promise<Attempt>) | undefined;
  readonly #again: (server: string) => Promise<Attempt>;
  #isClosed = false;
  #renewing: Promise<void> | undefined;
  #onToolsChanged: (() => void) | undefined;
  readonly #place: string;
  #access: McpSignIn | undefined;
  /** The person is asked once per run. */
  #asked: Promise<string> | undefined;

  constructor(
    {
      server,
      connection,
      place,
      signIn,
      folders = [],
      isRemote = false,
    }: Extract<Attempt, { connection: McpConnection }>,
    renew: (server: string) => Promise<Attempt>,
  ) {
    this.server = server;
    this.folders = folders;
    this.isRemote = isRemote;
    this.#connection = connection;
    this.#renew = renew;
    this.#again = renew;
    this.#place = place;
    this.#access = signIn;
  }

  get tools(): McpToolSource['tools'] {
    return this.#connection.tools;
  }

  offers(what: 'prompts' | 'resources'): boolean {
    return this.#connection.offers(what);
  }

  /** Sends a request that changes nothing, and starts the server again for it if it has ended. See `McpConnection.ask`. */
  async ask(...[method, params, signal]: Parameters<McpConnection['ask']>): ReturnType<McpConnection['ask']> {
    if (this.#connection.ended && this.#renew) this.#renewing = this.#start(this.#renew);
    await this.#renewing;
    try {
      return await this.#connection.ask(method, params, signal);
    } catch (error) {
      if (!this.#connection.forgotten || !this.#renew) throw error;
      return this.ask(method, params, signal);
    }
  }

  set onToolsChanged(listener: () => void) {
    this.#onToolsChanged = listener;
    this.#connection.onToolsChanged = listener;
  }

  async call(
    ...[tool, input, signal, onProgress, askSignIn, askServer]: Parameters<McpToolSource['call']>
  ): Promise<ToolResult> {
    const agreed = this.#listing(tool);
    if (this.#connection.ended && this.#renew) this.#renewing = this.#start(this.#renew);
    await this.#renewing;
    // The decision was made about the tool as it was listed before.
    if (this.#listing(tool) !== agreed)
      return toolError(
        `The MCP server '${this.server}' exited and was started again, and ${tool} has changed. Nothing was called.`,
      );
    const once = (): Promise<ToolResult> =>
      this.#connection.call(tool, input, signal, onProgress, undefined, askServer);
    let result = await once();
    if (this.#connection.forgotten && this.#renew)
      return this.call(tool, input, signal, onProgress, askSignIn, askServer);
    if (result.isError && askSignIn && this.#access?.wantsMore !== undefined) {
      this.#asked ??= this.#askForMore(this.#access, askSignIn, signal);
      const refusal = await this.#asked;
      // A request that was refused for missing rights was not carried out, so it can be sent again.
      if (this.#access.wantsMore === undefined) result = await once();
      else if (refusal) result = { ...result, content: `${result.content} ${refusal}` };
    }
    if (!this.#connection.ended || !result.isError) return result;
    const next = this.#renew
      ? 'The next call of one of its tools starts it again.'
      : 'Its tools are unavailable for the rest of this run.';
    return { ...result, content: `${result.content} ${next}` };
  }

  /** Starts it again, also if it works. A call that waits for its answer fails, and says that the server has ended. */
  async restart(): Promise<void> {
    await this.#renewing;
    if (this.#isClosed) return;
    this.#renewing = this.#start(this.#again);
    await this.#renewing;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#renew = undefined;
    await this.#renewing;
    await this.#connection.close();
  }

  /** Asks for a sign-in with more rights. Resolves with a sentence that says why there was none, or with an empty text. */
  async #askForMore(
    access: McpSignIn,
    askSignIn: (wanted: WantedSignIn) => Promise<string | undefined>,
    signal: AbortSignal,
  ): Promise<string> {
    const { server } = this;
    const wanted: WantedSignIn = {
      server,
      place: this.#place,
      ...moreOf(access),
      origins: stop => access.origins(stop),
      signIn: stop => access.signIn(stop),
    };
    try {
      return (await askSignIn(wanted)) ?? '';
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      return `The sign-in for more rights failed: ${plainReason(error)}.`;
    }
  }

  async #start(renew: (server: string) => Promise<Attempt>): Promise<void> {
    this.#renew = undefined;
    const attempt = await renew(this.server);
    if ('error' in attempt) return;
    await this.#connection.close();
    this.#connection = attempt.connection;
    this.#access = attempt.signIn;
    attempt.connection.onToolsChanged = this.#onToolsChanged;
    this.#onToolsChanged?.();
  }

  #listing(tool: string): string {
    return JSON.stringify(this.tools.find(({ name }) => name === tool));
  }
}
