/** Serves the Agent Client Protocol, version 1: an editor starts Telos and talks to it in sessions over two streams. */
import { statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { TelosError } from '@telos/engine/errors';
import { PathProblem } from '@telos/engine/files';
import { importRunHistory, importRunSummary } from '@telos/engine/records';
import { Conversation, storedConversation } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import type { ClientCapabilities, InitializeResponse, McpServer, NewSessionResponse } from './protocol.ts';
import { type AgentContext, agent, methods, ndJsonStream, RequestError } from './protocol.ts';
import { Session, type SessionChoices } from './session.ts';
import { replayed } from './updates.ts';

export interface AcpParts {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  /** The version of Telos. */
  version: string;
  /** Opens the engine for a folder, an absolute path. Throws a TelosError that says why if that is not possible. */
  open(cwd: string, choices: SessionChoices): Telos;
}

/** Version of the protocol that is spoken. Source: agentclientprotocol.com, version 1. */
const protocolVersion = 1;

/** Serves until the client closes the connection or the signal aborts. Then all runs are stopped, with their commands. */
export async function serveAcp(parts: AcpParts, signal: AbortSignal): Promise<void> {
  const desk = new Desk(parts);
  const stream = ndJsonStream(
    Writable.toWeb(parts.output as Writable) as WritableStream<Uint8Array>,
    Readable.toWeb(parts.input as Readable) as ReadableStream<Uint8Array>,
  );
  const connection = wired(desk).connect(stream);
  const close = (): void => connection.close();
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  await connection.closed;
  signal.removeEventListener('abort', close);
  await desk.close();
}

/** Returns the agent with a handler for each method of the protocol. */
function wired(desk: Desk): ReturnType<typeof agent> {
  const { session } = methods.agent;
  return agent({ name: 'telos' })
    .onRequest(methods.agent.initialize, ({ params }) => desk.initialize(params.clientCapabilities))
    .onRequest(session.new, ({ params: { cwd, mcpServers }, client }) => desk.begin(cwd, mcpServers, client))
    .onRequest(session.load, ({ params: { cwd, mcpServers, sessionId }, client }) =>
      desk.resume(sessionId, cwd, mcpServers, client, true),
    )
    .onRequest(session.resume, ({ params: { cwd, mcpServers = [], sessionId }, client }) =>
      desk.resume(sessionId, cwd, mcpServers, client, false),
    )
    .onRequest(session.list, ({ params }) => desk.list(params.cwd ?? undefined))
    .onRequest(session.close, ({ params }) => desk.end(params.sessionId))
    .onRequest(session.delete, ({ params }) => desk.delete(params.sessionId))
    .onRequest(session.setMode, async ({ params: { sessionId, modeId } }) => {
      desk.of(sessionId).setMode(modeId);
      return {};
    })
    .onRequest(session.setConfigOption, async ({ params }) => ({
      configOptions: await desk.of(params.sessionId).setOption(params.configId, params.value),
    }))
    .onRequest(session.prompt, ({ params: { sessionId, prompt }, client, signal }) =>
      said(desk.of(sessionId).prompt(prompt, client, signal)),
    )
    .onNotification(session.cancel, ({ params }) => desk.find(params.sessionId)?.cancel());
}

/** Resolves as the work does. An error of the engine reaches the client with its sentence. */
async function said<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TelosError) throw new RequestError(-32603, error.message, { code: error.code });
    if (error instanceof PathProblem) throw RequestError.invalidParams(undefined, error.message);
    throw error;
  }
}

/** The sessions of one connection. */
class Desk {
  readonly #parts: AcpParts;
  readonly #sessions = new Map<string, Session>();
  #client: ClientCapabilities = {};

  constructor(parts: AcpParts) {
    this.#parts = parts;
  }

  initialize(client: ClientCapabilities = {}): InitializeResponse {
    this.#client = client;
    return {
      protocolVersion,
      agentInfo: { name: 'telos', title: 'Telos', version: this.#parts.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
      },
      authMethods: [],
    };
  }

  find(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  /** Throws RequestError for a session that is not open here. */
  of(id: string): Session {
    const session = this.#sessions.get(id);
    if (session) return session;
    throw RequestError.sessionNotFound(id);
  }

  begin(cwd: string, servers: readonly McpServer[], client: AgentContext): Promise<NewSessionResponse> {
    return said(this.#opened(new Conversation(), cwd, servers, client));
  }

  async #opened(
    conversation: Conversation,
    cwd: string,
    servers: readonly McpServer[],
    client: AgentContext,
  ): Promise<NewSessionResponse> {
    if (!isAbsolute(cwd) || !statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
      throw RequestError.invalidParams({ cwd }, `cwd is not the absolute path of a folder: ${cwd}`);
    const { open } = this.#parts;
    const session = new Session(conversation, choices => open(cwd, choices), this.#client);
    this.#sessions.set(session.id, session);
    const state = await session.state();
    // The client knows the session once it has the answer. Where this fails, the client is gone.
    setImmediate(() => void session.introduce(client, servers).catch(() => {}));
    return { sessionId: session.id, ...state };
  }

  /** Opens a stored session, and with `replays` sends all that was said. Throws RequestError if it is not stored. */
  async resume(
    id: string,
    cwd: string,
    servers: readonly McpServer[],
    client: AgentContext,
    replays: boolean,
  ): Promise<Omit<NewSessionResponse, 'sessionId'>> {
    const { dataDir } = this.#parts.open(cwd, {}).config;
    const { RunHistory } = await importRunHistory();
    const history = new RunHistory(dataDir);
    const latest = (await history.shown()).find(({ conversation }) => conversation === id);
    const stored = latest && (await said(storedConversation(latest.runId, dataDir)));
    if (!latest || !stored) throw RequestError.sessionNotFound(id);
    await this.#sessions.get(id)?.close();
    const { sessionId: _known, ...state } = await said(
      this.#opened(stored.conversation, cwd, servers, client),
    );
    if (!replays) return state;
    const { runs } = await history.conversation(latest.runId, latest.runId);
    for (const update of replayed(runs))
      await client.notify(methods.client.session.update, { sessionId: id, update });
    return state;
  }

  /** Returns the stored sessions, the latest first, of one folder if it is named. */
  async list(cwd: string | undefined) {
    const { config } = this.#parts.open(cwd ?? process.cwd(), {});
    const { RunHistory } = await importRunHistory();
    const { titleOf } = await importRunSummary();
    const sessions = new Map<string, { sessionId: string; cwd: string; title: string; updatedAt: string }>();
    for (const run of await new RunHistory(config.dataDir).shown()) {
      const { conversation, folder, plan, startedAt } = run;
      if (folder === undefined || plan !== undefined || (cwd !== undefined && folder !== cwd)) continue;
      const known = sessions.get(conversation);
      // The first request is the title.
      sessions.set(conversation, {
        sessionId: conversation,
        cwd: folder,
        title: titleOf(run),
        updatedAt: known?.updatedAt ?? startedAt,
      });
    }
    return { sessions: [...sessions.values()] };
  }

  async end(id: string): Promise<object> {
    await this.of(id).close();
    this.#sessions.delete(id);
    return {};
  }

  /** Deletes the stored runs of a session, which is closed first. */
  async delete(id: string): Promise<object> {
    const telos = this.#parts.open(process.cwd(), {});
    await this.#sessions.get(id)?.close();
    this.#sessions.delete(id);
    const { RunHistory } = await importRunHistory();
    const runs = await new RunHistory(telos.config.dataDir).list();
    const own = runs.filter(({ conversation }) => conversation === id);
    if (own.length === 0) throw RequestError.sessionNotFound(id);
    for (const { runId } of own) await said(telos.deleteRun(runId));
    return {};
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(session => session.close()));
    this.#sessions.clear();
  }
}
