/** The gateway of the fake Discord: hello, heartbeats, identify, resume with what was missed, and the three ways to be thrown out. */
import type { Server } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';

// biome-ignore lint/suspicious/noExplicitAny: what Discord sends is looked into as it comes
export type Fields = Record<string, any>;

export interface GatewayOptions {
  token: string;
  /** The intents that are switched on at Discord's page. Others close the connection with 4014. */
  allowedIntents: number;
  /** The user of the bot, and the server that it is in. */
  bot: Fields;
  application: Fields;
  guild(): Fields;
  /** Where a session goes on; this server by itself. */
  resumeUrl(): string | undefined;
}

interface Session {
  id: string;
  socket: WebSocket | undefined;
  sequence: number;
  intents: number;
  sent: Fields[];
}

/** Bits of the intents for the content of messages, and for direct messages. */
const messageContent = 1 << 15;
const directMessages = 1 << 12;

/** Intents by the event that needs one. */
const neededIntents: Readonly<Record<string, number>> = {
  MESSAGE_CREATE: 1 << 9,
  MESSAGE_UPDATE: 1 << 9,
  MESSAGE_REACTION_ADD: 1 << 10,
  THREAD_CREATE: 1,
  GUILD_CREATE: 1,
};

export class DiscordGateway {
  readonly #sockets = new Set<WebSocket>();
  readonly #sessions = new Map<string, Session>();
  readonly #server: WebSocketServer;
  readonly #options: GatewayOptions;
  /** Operations that were received, in their order. */
  readonly received: { op: number; d: Fields }[] = [];

  constructor(server: Server, options: GatewayOptions) {
    this.#options = options;
    this.#server = new WebSocketServer({ server });
    this.#server.on('connection', socket => this.#accept(socket));
  }

  /** Sends an event to each session that has the intent for it. One without a connection gets it when it resumes. */
  emit(type: string, data: Fields): void {
    const isDirect = type === 'MESSAGE_CREATE' && data['guild_id'] === undefined;
    const needed = isDirect ? directMessages : (neededIntents[type] ?? 0);
    for (const session of this.#sessions.values()) {
      if ((session.intents & needed) !== needed) continue;
      const payload = { op: 0, t: type, s: ++session.sequence, d: this.#seenBy(session, type, data) };
      session.sent.push(payload);
      session.socket?.send(JSON.stringify(payload));
    }
  }

  /** Without the intent, only messages that mention the bot, and its own, have a content. */
  #seenBy({ intents }: Session, type: string, data: Fields): Fields {
    const { id } = this.#options.bot as { id: string };
    const isSeen =
      !type.startsWith('MESSAGE_') ||
      (intents & messageContent) !== 0 ||
      data['author']?.id === id ||
      data['mentions']?.some((user: Fields) => user['id'] === id);
    return isSeen ? data : { ...data, content: '', attachments: [], components: [], embeds: [] };
  }

  #accept(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      for (const session of this.#sessions.values())
        if (session.socket === socket) session.socket = undefined;
    });
    socket.on('message', raw => this.#answer(socket, JSON.parse(String(raw))));
    socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: 41_250 } }));
  }

  #answer(socket: WebSocket, { op, d }: Fields): void {
    this.received.push({ op, d });
    if (op === 1) socket.send(JSON.stringify({ op: 11 }));
    if (op === 2) this.#identify(socket, d);
    if (op === 6) this.#resume(socket, d);
  }

  #identify(socket: WebSocket, { token, intents }: Fields): void {
    const { allowedIntents, bot, application, guild } = this.#options;
    if (token !== this.#options.token) {
      socket.close(4004, 'Authentication failed.');
      return;
    }
    if (intents & ~allowedIntents) {
      socket.close(4014, 'Disallowed intent(s).');
      return;
    }
    const id = `session${this.#sessions.size + 1}-${this.received.length}`;
    this.#sessions.clear();
    const session: Session = { id, socket, sequence: 0, intents, sent: [] };
    this.#sessions.set(id, session);
    const { port } = this.#server.address() as { port: number };
    this.emit('READY', {
      v: 10,
      user: bot,
      session_id: id,
      shard: [0, 1],
      application,
      guilds: [{ id: guild()['id'], unavailable: true }],
      resume_gateway_url: this.#options.resumeUrl() ?? `ws://127.0.0.1:${port}`,
    });
    this.emit('GUILD_CREATE', guild());
  }

  #resume(socket: WebSocket, { token, session_id, seq }: Fields): void {
    const session = this.#sessions.get(session_id);
    if (token !== this.#options.token || !session) {
      socket.send(JSON.stringify({ op: 9, d: false }));
      return;
    }
    session.socket = socket;
    for (const payload of session.sent) if (payload['s'] > seq) socket.send(JSON.stringify(payload));
    socket.send(JSON.stringify({ op: 0, t: 'RESUMED', s: session.sequence, d: {} }));
  }

  /** Sends the latest event of a kind again, as a resumed session may. */
  repeat(type: string): void {
    for (const { sent, socket } of this.#sessions.values()) {
      const latest = sent.findLast(({ t }) => t === type);
      if (latest) socket?.send(JSON.stringify(latest));
    }
  }

  /** `reconnect` asks for a new connection, `invalidate` forgets the session, `drop` cuts the connection. */
  disturb(how: 'reconnect' | 'invalidate' | 'drop'): void {
    if (how === 'invalidate') this.#sessions.clear();
    for (const socket of this.#sockets) {
      if (how === 'drop') socket.terminate();
      else socket.send(JSON.stringify(how === 'reconnect' ? { op: 7, d: null } : { op: 9, d: false }));
    }
  }

  get isConnected(): boolean {
    return [...this.#sessions.values()].some(({ socket }) => socket !== undefined);
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate();
    this.#server.close();
  }
}
