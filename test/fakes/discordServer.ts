/**
 * Fakes Discord on a loopback server, as strict as Discord is: REST and gateway of version 10, acknowledgements within three seconds,
 * tokens that end, limits of messages and rates, permissions. What a person does there are its methods; it keeps all that was sent.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DiscordGateway, type Fields } from './discordGateway.ts';

export const ids = {
  application: '100000000000000001',
  owner: '200000000000000001',
  stranger: '200000000000000002',
  user: '200000000000000003',
  otherBot: '200000000000000004',
  guild: '300000000000000001',
  telos: '400000000000000001',
  general: '400000000000000002',
} as const;

export const botToken = 'MTAwMDAw.test-token.0123456789abcdef';

/** What differs from a Discord that is in order. Tests change it while it runs. */
interface Behaviour {
  /** How long an interaction waits for its acknowledgement, and how long its token lasts. In milliseconds. */
  ackMs: number;
  tokenMs: number;
  allowedIntents: number;
  /** Requests in a bucket, and the seconds after which it is full again. */
  bucket: { limit: number; seconds: number };
  /** Permissions that the bot lacks, by channel. */
  denied: Record<string, readonly ('send' | 'thread' | 'view')[]>;
  /** So many new messages are refused as too many, each for so long. */
  refusals: { left: number; seconds: number };
  /** Answers each REST request with 503. */
  isDown: boolean;
  /** Addresses of the gateway that it gives out: for new sessions, and for those that go on. Its own if missing. */
  gateways?: readonly [string, string];
}

export interface SentMessage {
  id: string;
  channel_id: string;
  content: string;
  flags: number;
  author: { id: string };
  components: { components: { custom_id: string; label: string; style: number }[] }[];
  attachments: { filename: string; size: number; url: string }[];
  /** The text of its files. */
  files: string[];
  /** `performance.now()` when it was made and at each edit. */
  times: number[];
  /** Whether it could have notified anyone. */
  pings: boolean;
  isDeleted: boolean;
}

interface Interaction {
  id: string;
  token: string;
  type: number;
  channel: string;
  user: Fields;
  at: number;
  ackedAfter?: number;
  answer?: Fields;
  message?: SentMessage & Fields;
  /** Of a click: the message with the button. */
  on?: string;
}

class DiscordError extends Error {
  readonly code: number;
  readonly status: number;
  constructor(code: number, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const ephemeral = 1 << 6;
const suppressEmbeds = 1 << 2;
const allPermissions = 0x1ffffffffffffn;
const permissionBits = { view: 1n << 10n, send: (1n << 11n) | (1n << 38n), thread: 1n << 35n } as const;

let snowflakes = 0n;
const snowflake = (): string =>
  String(((BigInt(Date.now()) - 1_420_070_400_000n) << 22n) | (snowflakes++ & 0xfffn));

const person = (id: string, username: string, more: Fields = {}): Fields => ({
  id,
  username,
  discriminator: '0',
  avatar: null,
  global_name: username,
  ...more,
});

export class DiscordServer {
  readonly behaviour: Behaviour = {
    ackMs: 3000,
    tokenMs: 900_000,
    allowedIntents: 0xffff_ffff,
    bucket: { limit: 5, seconds: 5 },
    denied: {},
    refusals: { left: 0, seconds: 0 },
    isDown: false,
  };
  readonly messages = new Map<string, SentMessage & Fields>();
  readonly channels = new Map<string, Fields>();
  readonly interactions = new Map<string, Interaction>();
  readonly requests: { request: string; body: Fields; status: number }[] = [];
  readonly gateway: DiscordGateway;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #users: Readonly<Record<string, Fields>> = {
    [ids.owner]: person(ids.owner, 'owner'),
    [ids.stranger]: person(ids.stranger, 'owner ', { global_name: ids.owner }),
    [ids.user]: person(ids.user, 'user'),
    [ids.otherBot]: person(ids.otherBot, 'another', { bot: true }),
  };
  readonly #bot = person(ids.application, 'telos', { bot: true });
  readonly #buckets = new Map<string, { left: number; until: number }>();
  readonly #files = new Map<string, Buffer>();
  readonly #nonces = new Map<string, SentMessage & Fields>();
  #commands: Fields[] = [];

  private constructor() {
    this.#addChannel(ids.telos, 'telos', 0);
    this.#addChannel(ids.general, 'general', 0);
    const application = { id: ids.application, flags: 0 };
    const server = this;
    this.gateway = new DiscordGateway(this.#server, {
      token: botToken,
      application,
      bot: this.#bot,
      guild: () => this.#guild(),
      resumeUrl: () => this.behaviour.gateways?.[1],
      get allowedIntents() {
        return server.behaviour.allowedIntents;
      },
    });
  }

  static async start(port = 0): Promise<DiscordServer> {
    const discord = new DiscordServer();
    await new Promise<void>(resolve => discord.#server.listen(port, '127.0.0.1', resolve));
    return discord;
  }

  /** For `TELOS_DISCORD_API`. */
  get url(): string {
    return `${this.#address}/api`;
  }

  get #address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get commands(): readonly Fields[] {
    return this.#commands;
  }

  close(): Promise<void> {
    this.gateway.close();
    return new Promise(resolve => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Returns the messages of the bot in a channel, the oldest first. */
  said(channel: string): (SentMessage & Fields)[] {
    return [...this.messages.values()].filter(
      ({ channel_id, author, isDeleted }) =>
        channel_id === channel && author.id === ids.application && !isDeleted,
    );
  }

  /** Returns the latest thread, if there is one. */
  get thread(): string | undefined {
    return [...this.channels.values()].findLast(({ type }) => type === 11)?.['id'];
  }

  // ---- What people do ----

  /** `/telos <name>`. Returns the interaction, which the bot fills in. */
  slash(name: string, options: Readonly<Record<string, string>> = {}, where: Where = {}): Interaction {
    return this.#interact(2, { data: this.#slashData(name, options) }, where);
  }

  /** `/telos run` with a file. `more` is what Discord says of it besides. */
  slashWithFile(request: string, name: string, bytes: Buffer, more: Fields = {}): Interaction {
    const id = snowflake();
    this.#files.set(id, bytes);
    const data = this.#slashData('run', { request });
    data['options'][0].options.push({ name: 'file', type: 11, value: id });
    const url = `${this.#address}/files/${id}/${name}`;
    const attachment = { id, filename: name, size: bytes.length, url, proxy_url: url, ...more };
    return this.#interact(2, { data: { ...data, resolved: { attachments: { [id]: attachment } } } }, {});
  }

  /** Types into an option of `/telos <name>`. */
  type(
    name: string,
    focused: string,
    options: Readonly<Record<string, string>>,
    where: Where = {},
  ): Interaction {
    return this.#interact(4, { data: this.#slashData(name, options, focused) }, where);
  }

  click(message: SentMessage, label: string, where: Where = {}): Interaction {
    const buttons = message.components.flatMap(({ components }) => components);
    const button = buttons.find(one => one.label === label);
    if (!button) throw new Error(`No button ${label}: ${buttons.map(one => one.label).join(', ')}`);
    return this.press(message, button.custom_id, where);
  }

  /** Sends a click with any id, as a program could. */
  press(message: SentMessage, customId: string, where: Where = {}): Interaction {
    const data = { custom_id: customId, component_type: 2 };
    const place = { channel: message.channel_id, ...where };
    const interaction = this.#interact(3, { data, message: wire(message) }, place);
    interaction.on = message.id;
    return interaction;
  }

  /** Fills in the form that answered an interaction. */
  submit(opened: Interaction, text: string): Interaction {
    const { custom_id, components } = opened.answer!['data'] as Fields;
    const field = components[0].components?.[0] ?? components[0].component;
    const input = { type: 4, id: 2, custom_id: field.custom_id, value: text };
    const data = { custom_id, components: [{ type: 1, id: 1, components: [input] }] };
    const on = opened.on === undefined ? undefined : this.messages.get(opened.on);
    const where = { by: opened.user['id'] as string, channel: opened.channel };
    return this.#interact(5, { data, ...(on && { message: wire(on) }) }, where);
  }

  /** Writes a message. A mention is written `<@id>`. */
  say(content: string, where: Where = {}): SentMessage {
    const { by = ids.owner, channel = ids.telos, guild, direct = false } = where;
    const mentions = content.includes(`<@${ids.application}>`) ? [this.#bot] : [];
    const author = this.#users[by]!;
    const message = this.#newMessage(channel, { content, mentions, author, member: this.#member(author) });
    const { guild_id, ...rest } = wire(message);
    this.gateway.emit('MESSAGE_CREATE', direct ? rest : { ...rest, guild_id: guild ?? guild_id });
    return message;
  }

  /** Lets the bot into another server. Returns its channel, which is called telos too. */
  otherServer(guild: string): string {
    const channel = this.#addChannel(snowflake(), 'telos', 0, { guild_id: guild });
    const own = this.#guild();
    const channels = [{ ...channel, permission_overwrites: [] }];
    this.gateway.emit('GUILD_CREATE', { ...own, id: guild, channels, threads: [] });
    return channel['id'];
  }

  react(message: SentMessage, by: string = ids.stranger): void {
    this.gateway.emit('MESSAGE_REACTION_ADD', {
      user_id: by,
      message_id: message.id,
      channel_id: message.channel_id,
      guild_id: ids.guild,
      emoji: { id: null, name: '✅' },
    });
  }

  #slashData(name: string, options: Readonly<Record<string, string>>, focused?: string): Fields {
    const listed = Object.entries(options).map(([option, value]) => ({
      name: option,
      type: 3,
      value,
      ...(option === focused && { focused: true }),
    }));
    const id = this.#commands[0]?.['id'] ?? snowflake();
    return { id, name: 'telos', type: 1, options: [{ type: 1, name, options: listed }] };
  }

  #interact(type: number, more: Fields, { by = ids.owner, channel = ids.telos, guild }: Where): Interaction {
    const user = this.#users[by]!;
    const [id, token] = [snowflake(), `interaction${snowflake()}`];
    const interaction: Interaction = { id, token, type, channel, user, at: performance.now() };
    this.interactions.set(id, interaction);
    const guildId = guild ?? ids.guild;
    this.gateway.emit('INTERACTION_CREATE', {
      id,
      token,
      type,
      application_id: ids.application,
      version: 1,
      context: 0,
      entitlements: [],
      guild_id: guildId,
      guild: { id: guildId, locale: 'en-US', features: [] },
      channel_id: channel,
      channel: this.channels.get(channel),
      member: this.#member(user),
      locale: 'en-US',
      guild_locale: 'en-US',
      app_permissions: String(this.#permissions(channel)),
      authorizing_integration_owners: { 0: guildId },
      attachment_size_limit: 10_485_760,
      ...more,
    });
    return interaction;
  }

  // ---- What it is made of ----

  #permissions(channel: string): bigint {
    const parent = this.channels.get(channel)?.['parent_id'];
    const denied = [...(this.behaviour.denied[channel] ?? []), ...(this.behaviour.denied[parent] ?? [])];
    return denied.reduce((left, name) => left & ~permissionBits[name], allPermissions);
  }

  #member(user: Fields): Fields {
    const times = { joined_at: '2026-01-01T00:00:00.000Z', deaf: false, mute: false, flags: 0 };
    return { user, roles: [], ...times, permissions: String(allPermissions) };
  }

  #addChannel(id: string, name: string, type: number, more: Fields = {}): Fields {
    const channel = {
      id,
      name,
      type,
      guild_id: ids.guild,
      position: 0,
      permission_overwrites: [],
      parent_id: null,
      topic: null,
      nsfw: false,
      last_message_id: null,
      rate_limit_per_user: 0,
      ...more,
    };
    this.channels.set(id, channel);
    return channel;
  }

  #guild(): Fields {
    const role = { id: ids.guild, name: '@everyone', permissions: String(allPermissions), position: 0 };
    const look = { color: 0, hoist: false, managed: false, mentionable: false, flags: 0 };
    const all = [...this.channels.values()];
    return {
      id: ids.guild,
      name: 'test',
      unavailable: false,
      owner_id: ids.owner,
      icon: null,
      features: [],
      ...{
        member_count: 5,
        large: false,
        joined_at: new Date().toISOString(),
        roles: [{ ...role, ...look }],
      },
      members: [this.#bot, ...Object.values(this.#users)].map(user => this.#member(user)),
      channels: all
        .filter(({ type, guild_id: guild }) => type === 0 && guild === ids.guild)
        .map(channel => {
          const denied = allPermissions & ~this.#permissions(channel['id']);
          const overwrite = { id: ids.guild, type: 0, allow: '0', deny: String(denied) };
          return { ...channel, permission_overwrites: [overwrite] };
        }),
      threads: all.filter(({ type }) => type === 11),
      emojis: [],
      stickers: [],
      presences: [],
      voice_states: [],
      stage_instances: [],
      guild_scheduled_events: [],
      soundboard_sounds: [],
      afk_timeout: 0,
      verification_level: 0,
      default_message_notifications: 0,
      explicit_content_filter: 0,
      mfa_level: 0,
      nsfw_level: 0,
      system_channel_flags: 0,
      preferred_locale: 'en-US',
      premium_tier: 0,
      premium_progress_bar_enabled: false,
    };
  }

  #newMessage(
    channel: string,
    body: Fields,
    files: readonly File[] = [],
    more: Fields = {},
  ): SentMessage & Fields {
    checkMessage(body, files.length);
    const known =
      body['nonce'] && body['enforce_nonce'] ? this.#nonces.get(String(body['nonce'])) : undefined;
    if (known) return known;
    const attachments = files.map(file => {
      const id = snowflake();
      return { id, filename: file.name, size: file.size, url: `${this.#address}/files/${id}/${file.name}` };
    });
    const message = {
      id: snowflake(),
      channel_id: channel,
      guild_id: ids.guild,
      author: this.#bot,
      content: '',
      embeds: [],
      components: [],
      mentions: [],
      mention_roles: [],
      mention_everyone: false,
      type: 0,
      pinned: false,
      tts: false,
      flags: 0,
      timestamp: new Date().toISOString(),
      edited_timestamp: null,
      ...body,
      ...more,
      attachments,
      files: [] as string[],
      times: [performance.now()],
      pings: pings(body),
      isDeleted: false,
    } as unknown as SentMessage & Fields;
    this.messages.set(message.id, message);
    if (body['nonce']) this.#nonces.set(String(body['nonce']), message);
    for (const [at, file] of files.entries())
      void file.arrayBuffer().then(bytes => {
        this.#files.set(attachments[at]!.id, Buffer.from(bytes));
        message.files[at] = Buffer.from(bytes).toString('utf8');
      });
    return message;
  }

  #edit(message: SentMessage & Fields, body: Fields, files: readonly File[] = []): Fields {
    checkMessage({ ...message, ...body }, files.length + message.attachments.length);
    const { attachments: _, ...rest } = body;
    Object.assign(message, rest, { edited_timestamp: new Date().toISOString() });
    message.times.push(performance.now());
    message.pings ||= pings(body);
    this.gateway.emit('MESSAGE_UPDATE', wire(message));
    return wire(message);
  }

  // ---- REST ----

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', 'http://discord');
    const path = decodeURIComponent(url.pathname).replace(/^\/api(\/v10)?/, '');
    const [body, files] = await bodyOf(incoming);
    const request = `${incoming.method} ${path}`;
    let [status, answer]: [number, unknown] = [200, undefined];
    try {
      if (this.behaviour.isDown) throw new DiscordError(0, 'Service Unavailable', 503);
      const isOpen = /^\/(webhooks|interactions|files)\//.test(path);
      if (!isOpen && incoming.headers.authorization !== `Bot ${botToken}`)
        throw new DiscordError(0, '401: Unauthorized', 401);
      this.#spend(request, response);
      const file = /^GET \/files\/(\d+)\//.exec(request);
      if (file) {
        response.writeHead(200).end(this.#files.get(file[1]!));
        return;
      }
      answer = this.#route(request, body, files, url.searchParams);
      if (answer === undefined) status = 204;
    } catch (error) {
      if (!(error instanceof DiscordError)) throw error;
      status = error.status;
      const { message, code } = error;
      const wait = Number(response.getHeader('x-ratelimit-reset-after') ?? 0);
      answer = { message, code, ...(status === 429 && { retry_after: wait, global: false }) };
    }
    this.requests.push({ request, body, status });
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(answer === undefined ? undefined : JSON.stringify(answer));
  }

  /** One bucket for each route and channel, as the headers say. */
  #spend(request: string, response: ServerResponse): void {
    const [, method, major] = /^(\w+) (\/(?:channels|webhooks)\/\d+)/.exec(request) ?? [];
    if (!major || method === 'GET') return;
    const { limit, seconds } = this.behaviour.bucket;
    const key = `${method} ${major} ${/messages|threads/.exec(request)?.[0]}`;
    const now = Date.now();
    const before = this.#buckets.get(key);
    const bucket = before && now < before.until ? before : { left: limit, until: now + seconds * 1000 };
    this.#buckets.set(key, bucket);
    const after = (bucket.until - now) / 1000;
    bucket.left--;
    const headers = {
      'x-ratelimit-limit': limit,
      'x-ratelimit-remaining': Math.max(0, bucket.left),
      'x-ratelimit-reset': bucket.until / 1000,
      'x-ratelimit-reset-after': after.toFixed(3),
      'x-ratelimit-bucket': Buffer.from(key.slice(0, 16)).toString('hex'),
    };
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    const isRefused = /^POST .*messages$/.test(request) && this.behaviour.refusals.left-- > 0;
    if (isRefused) response.setHeader('x-ratelimit-reset-after', this.behaviour.refusals.seconds);
    if (bucket.left >= 0 && !isRefused) return;
    response.setHeader('retry-after', isRefused ? this.behaviour.refusals.seconds : Math.ceil(after));
    response.setHeader('x-ratelimit-scope', 'user');
    throw new DiscordError(0, 'You are being rate limited.', 429);
  }

  #route(request: string, body: Fields, files: readonly File[], query: URLSearchParams): unknown {
    for (const [pattern, answer] of this.#routes) {
      const found = pattern.exec(request);
      if (found) return answer(found.slice(1), body, files, query);
    }
    throw new DiscordError(0, '404: Not Found', 404);
  }

  readonly #routes: readonly (readonly [RegExp, Route])[] = [
    [/^GET \/gateway\/bot$/, () => this.#gatewayAddress()],
    [/^GET \/users\/@me$/, () => this.#bot],
    [
      /^GET \/(?:oauth2\/)?applications\/@me$/,
      () => ({ id: ids.application, name: 'telos', flags: 0, description: '', verify_key: '0' }),
    ],
    [/^GET \/applications\/\d+\/guilds\/\d+\/commands$/, () => this.#commands],
    [/^PUT \/applications\/\d+\/guilds\/\d+\/commands$/, (_, body) => this.#register(body as Fields[])],
    [
      /^POST \/interactions\/(\d+)\/([^/]+)\/callback$/,
      ([id = '', token = ''], body, files, query) =>
        this.#acknowledge(id, token, body, files, query.get('with_response') === 'true'),
    ],
    [
      /^PATCH \/webhooks\/\d+\/([^/]+)\/messages\/@original$/,
      ([token = ''], body, files) => {
        const { message } = this.#live(token);
        if (!message) throw new DiscordError(10008, 'Unknown Message', 404);
        message.flags &= ~128;
        return this.#edit(message, body, files);
      },
    ],
    [
      /^POST \/webhooks\/\d+\/([^/]+)$/,
      ([token = ''], body, files) => {
        const message = this.#newMessage(this.#live(token).channel, body, files);
        return wire(message);
      },
    ],
    [/^POST \/channels\/\d+\/typing$/, () => undefined],
    [/^GET \/channels\/(\d+)$/, ([id = '']) => this.#channel(id)],
    [
      /^POST \/channels\/(\d+)\/messages$/,
      ([id = ''], body, files) => {
        this.#mustHave(id, 'send');
        const before = this.messages.size;
        const message = this.#newMessage(id, body, files);
        if (this.messages.size > before) this.gateway.emit('MESSAGE_CREATE', wire(message));
        return wire(message);
      },
    ],
    [
      /^PATCH \/channels\/\d+\/messages\/(\d+)$/,
      ([id = ''], body, files) => {
        const message = this.messages.get(id);
        if (!message || message.isDeleted) throw new DiscordError(10008, 'Unknown Message', 404);
        if (message.author.id !== ids.application)
          throw new DiscordError(50005, 'Cannot edit a message authored by another user', 403);
        return this.#edit(message, body, files);
      },
    ],
    [
      /^POST \/channels\/(\d+)\/messages\/(\d+)\/threads$/,
      ([channel = '', message = ''], body) => this.#startThread(channel, message, body),
    ],
  ];

  #gatewayAddress(): Fields {
    const limit = { total: 1000, remaining: 999, reset_after: 0, max_concurrency: 1 };
    const url = this.behaviour.gateways?.[0] ?? this.#address.replace('http', 'ws');
    return { url, shards: 1, session_start_limit: limit };
  }

  #channel(id: string): Fields {
    const channel = this.channels.get(id);
    if (!channel) throw new DiscordError(10003, 'Unknown Channel', 404);
    return channel;
  }

  #mustHave(channel: string, name: keyof typeof permissionBits): void {
    this.#channel(channel);
    const has = this.#permissions(channel);
    if (!(has & permissionBits.view)) throw new DiscordError(50001, 'Missing Access', 403);
    if ((has & permissionBits[name]) !== permissionBits[name])
      throw new DiscordError(50013, 'Missing Permissions', 403);
  }

  #register(commands: readonly Fields[]): Fields[] {
    for (const command of commands) checkCommand(command);
    this.#commands = commands.map(command => ({
      id: snowflake(),
      application_id: ids.application,
      version: snowflake(),
      type: 1,
      nsfw: false,
      default_member_permissions: null,
      guild_id: ids.guild,
      ...command,
    }));
    return this.#commands;
  }

  #startThread(parent: string, message: string, { name, auto_archive_duration: duration }: Fields): Fields {
    this.#mustHave(parent, 'thread');
    if (!name || name.length > 100) throw new DiscordError(50035, 'Invalid Form Body: name');
    if (this.channels.has(message)) throw new DiscordError(160004, 'A thread has already been created');
    if (this.#channel(parent)['type'] === 11) throw new DiscordError(50024, 'Cannot execute action here');
    const thread = this.#addChannel(message, name, 11, {
      parent_id: parent,
      owner_id: ids.application,
      message_count: 0,
      member_count: 1,
      thread_metadata: {
        archived: false,
        locked: false,
        auto_archive_duration: duration ?? 1440,
        archive_timestamp: new Date().toISOString(),
      },
    });
    this.gateway.emit('THREAD_CREATE', { ...thread, newly_created: true });
    return thread;
  }

  #live(token: string): Interaction {
    const found = [...this.interactions.values()].find(one => one.token === token);
    if (!found) throw new DiscordError(10015, 'Unknown Webhook', 404);
    if (performance.now() - found.at > this.behaviour.tokenMs)
      throw new DiscordError(50027, 'Invalid Webhook Token', 401);
    if (found.answer === undefined) throw new DiscordError(10008, 'Unknown Message', 404);
    return found;
  }

  #acknowledge(
    id: string,
    token: string,
    body: Fields,
    files: readonly File[],
    withResponse: boolean,
  ): Fields | undefined {
    const found = this.interactions.get(id);
    const isLate = found && performance.now() - found.at > this.behaviour.ackMs;
    if (found?.token !== token || isLate) throw new DiscordError(10062, 'Unknown interaction', 404);
    if (found.answer) throw new DiscordError(40060, 'Interaction has already been acknowledged.');
    const { type, data = {} } = body as { type: number; data?: Fields };
    if ((type === 8) !== (found.type === 4)) throw new DiscordError(50035, 'Invalid Form Body: type');
    if (type === 8) checkChoices(data['choices']);
    if (type === 9) checkModal(data);
    if (type === 4 || type === 5) {
      const content = type === 5 ? { ...data, content: '…' } : data;
      const { user } = found;
      const metadata = { id, type: found.type, user, authorizing_integration_owners: { 0: ids.guild } };
      const message = this.#newMessage(found.channel, content, files, { interaction_metadata: metadata });
      found.message = message;
      if (!((data['flags'] ?? 0) & ephemeral)) this.gateway.emit('MESSAGE_CREATE', wire(message));
    }
    if (type === 7) this.#edit(this.messages.get(found.on ?? '')!, data, files);
    found.answer = body;
    found.ackedAfter = performance.now() - found.at;
    const { message } = found;
    if (!withResponse) return undefined;
    return {
      interaction: { id, type: found.type },
      resource: { type, ...(message && { message: wire(message) }) },
    };
  }
}

/** Who does it, and where: by default the owner in #telos. */
interface Where {
  by?: string;
  channel?: string;
  guild?: string;
  direct?: boolean;
}

type Route = (found: string[], body: Fields, files: readonly File[], query: URLSearchParams) => unknown;

async function bodyOf(incoming: IncomingMessage): Promise<[Fields, File[]]> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  const raw = Buffer.concat(pieces);
  const type = incoming.headers['content-type'] ?? '';
  if (raw.length === 0) return [{}, []];
  if (!type.includes('multipart')) return [JSON.parse(raw.toString('utf8')), []];
  const form = await new Response(raw, { headers: { 'content-type': type } }).formData();
  const files = [...form.values()].filter(value => value instanceof File);
  return [JSON.parse(String(form.get('payload_json') ?? '{}')), files];
}

/** The message as Discord sends it. */
function wire({ times: _t, pings: _p, files: _f, isDeleted: _d, ...message }: SentMessage & Fields): Fields {
  return message;
}

const pings = ({ allowed_mentions: allowed, content = '' }: Fields): boolean =>
  allowed ? (allowed['parse'] ?? []).length > 0 : /@everyone|@here|<@/.test(content);

const refuse = (what: string): never => {
  throw new DiscordError(50035, `Invalid Form Body: ${what}`);
};

function checkMessage(
  { content = '', embeds = [], components = [], flags = 0 }: Fields,
  files: number,
): void {
  if (content.length > 2000) refuse('content: Must be 2000 or fewer in length.');
  if (!content.isWellFormed()) refuse('content: not Unicode');
  if (embeds.length > 10) refuse('embeds');
  if (!content && embeds.length === 0 && components.length === 0 && files === 0)
    throw new DiscordError(50006, 'Cannot send an empty message');
  if (components.length > 5) refuse('components');
  const seen = new Set<string>();
  for (const row of components) {
    if (row.components.length < 1 || row.components.length > 5) refuse('components');
    for (const { custom_id: id, label } of row.components) {
      if (!id || id.length > 100 || seen.has(id)) refuse('custom_id');
      if (!label || label.length > 80) refuse('label');
      seen.add(id);
    }
  }
  if (flags & ~(ephemeral | suppressEmbeds | 128)) refuse('flags');
}

function checkCommand({ name, description, options = [] }: Fields): void {
  if (!/^[-_\p{Ll}\p{N}]{1,32}$/u.test(name)) refuse('name');
  if (!description || description.length > 100) refuse('description');
  if (options.length > 25) refuse('options');
  for (const option of options) checkCommand(option);
  const firstOptional = options.findIndex((option: Fields) => !option['required']);
  const isSorted = options.every(
    (option: Fields, at: number) => !option['required'] || at < firstOptional || firstOptional < 0,
  );
  if (!isSorted) refuse('Required options must be placed before non-required options');
}

function checkChoices(choices: readonly Fields[]): void {
  if (choices.length > 25) refuse('choices');
  for (const { name, value } of choices)
    if (!name || name.length > 100 || !value || value.length > 100) refuse('choices');
}

function checkModal({ title, custom_id: id, components }: Fields): void {
  if (!title || title.length > 45 || !id || id.length > 100 || components?.length !== 1) refuse('modal');
}
