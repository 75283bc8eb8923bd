/** Speaks to Discord. The one file that knows discord.js. */

import { randomBytes } from 'node:crypto';
import { TelosError } from '@telos/engine/errors';
import { fetchOut, proxyFor } from '@telos/engine/tools';
import { maxTextBytes } from '@telos/protocol/attachment';
import { grouped } from '@telos/protocol/text';
import {
  type AutocompleteInteraction,
  type ButtonInteraction,
  ButtonStyle,
  ChannelType,
  type ChatInputCommandInteraction,
  Client,
  ComponentType,
  DefaultRestOptions,
  DiscordAPIError,
  Events,
  GatewayIntentBits,
  type Interaction,
  type Message,
  MessageFlags,
  type ModalSubmitInteraction,
  PermissionFlagsBits,
  type RawFile,
  Routes,
  SimpleShardingStrategy,
  TextInputStyle,
} from 'discord.js';
import { type GatewayRelay, startRelay } from './gatewayRelay.ts';
import type {
  Call,
  Click,
  Handlers,
  Post,
  Said,
  SentFile,
  SlashCall,
  Submission,
  Typing,
} from './handlers.ts';
import type { BotSettings, Doing } from './settings.ts';

/** Discord has refused this for good; to try it again changes nothing. */
export class Refused extends Error {}

const buttonStyles = { primary: ButtonStyle.Primary, danger: ButtonStyle.Danger } as const;

/** What an invited bot may do: what it needs, and no more. */
const permissions =
  PermissionFlagsBits.ViewChannel |
  PermissionFlagsBits.SendMessages |
  PermissionFlagsBits.SendMessagesInThreads |
  PermissionFlagsBits.CreatePublicThreads |
  PermissionFlagsBits.AttachFiles |
  PermissionFlagsBits.ReadMessageHistory;

const discordFiles = ['cdn.discordapp.com', 'media.discordapp.net'];
/** In milliseconds. */
const downloadTime = 10_000;

/** No one is notified, and no page is fetched for a preview. */
const quiet = { allowed_mentions: { parse: [] }, flags: MessageFlags.SuppressEmbeds } as const;

/** discord.js has another of this name. */
type Connections = ConstructorParameters<typeof SimpleShardingStrategy>[0];

export class Gateway {
  readonly #client: Client;
  readonly #handlers: Handlers;
  /** Where Discord keeps the files that people send. */
  readonly #fileHosts: readonly string[];
  /** The address of Discord's API. */
  readonly #api: string;
  #relay: GatewayRelay | undefined;

  constructor(settings: Pick<BotSettings, 'api' | 'readsMessages'>, handlers: Handlers) {
    this.#handlers = handlers;
    const { api } = settings;
    this.#api = api ?? DefaultRestOptions.api;
    this.#fileHosts = api === undefined ? discordFiles : [...discordFiles, new URL(api).hostname];
    this.#client = new Client({
      intents: [
        GatewayIntentBits.Guilds,
        GatewayIntentBits.GuildMessages,
        ...(settings.readsMessages ? [GatewayIntentBits.MessageContent] : []),
      ],
      allowedMentions: { parse: [] },
      rest: { api: this.#api, makeRequest: (url, init) => fetchOut(url, init as object) as never },
      ws: { buildStrategy: manager => this.#throughRelay(manager) },
    });
    this.#listen();
  }

  /** Resolves once Discord lets the bot in. Throws TelosError `auth` if it refuses, and another error if it cannot be reached. */
  async connect(token: string): Promise<void> {
    if (proxyFor(new URL(this.#api))) this.#relay = await startRelay();
    const isReady = new Promise<void>(resolve => this.#client.once(Events.ClientReady, () => resolve()));
    try {
      await this.#client.login(token);
      await isReady;
    } catch (error) {
      await this.close();
      throw refusalOf(error) ?? new Error(`Discord cannot be reached: ${wordsOf(error)}`, { cause: error });
    }
  }

  get name(): string {
    return this.#client.user?.username ?? '';
  }

  /** Ids of the servers that the bot is in. */
  get guilds(): readonly string[] {
    return [...this.#client.guilds.cache.keys()];
  }

  /** Returns the ids of the text channels of this name in which the bot may answer. */
  channelsNamed(name: string, { guilds, channels }: Pick<BotSettings, 'guilds' | 'channels'>): string[] {
    const all = [...this.#client.channels.cache.values()];
    return all.flatMap(one => {
      if (one.type !== ChannelType.GuildText || one.name !== name) return [];
      if (guilds && !guilds.includes(one.guildId)) return [];
      return channels && !channels.includes(one.id) ? [] : [one.id];
    });
  }

  /** The address at which a person lets the bot into a server. */
  get invite(): string {
    return this.#client.generateInvite({
      scopes: ['bot', 'applications.commands'] as never,
      permissions,
    });
  }

  /** Returns the message's id. Throws `Refused`, or another error if Discord cannot be reached. */
  async post(channel: string, { replyTo, ...post }: Post): Promise<string> {
    const body = {
      ...payload(post),
      // Makes a repeated request harmless.
      nonce: randomBytes(12).toString('hex'),
      enforce_nonce: true,
      ...(replyTo !== undefined && { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
    };
    const sent = await asked(() =>
      this.#client.rest.post(Routes.channelMessages(channel), { body, files: filesOf(post) }),
    );
    return (sent as { id: string }).id;
  }

  /** Throws the same errors. */
  async edit(channel: string, message: string, post: Partial<Post>): Promise<void> {
    await asked(() =>
      this.#client.rest.patch(Routes.channelMessage(channel, message), { body: payload(post) }),
    );
  }

  /** Returns the thread's id. Throws the same errors. */
  async startThread(channel: string, message: string, name: string): Promise<string> {
    const body = { name, auto_archive_duration: 1440 };
    const thread = await asked(() => this.#client.rest.post(Routes.threads(channel, message), { body }));
    return (thread as { id: string }).id;
  }

  /** Makes these the commands of a server, unless they are. Throws the same errors. */
  async register(guild: string, commands: readonly object[]): Promise<void> {
    const route = Routes.applicationGuildCommands(this.#client.application?.id ?? '', guild);
    const there = (await asked(() => this.#client.rest.get(route))) as object[];
    const isSame = there.length === commands.length && commands.every((one, at) => holds(there[at], one));
    if (!isSame) await asked(() => this.#client.rest.put(route, { body: commands }));
  }

  /** Returns the bytes of a file. Throws if it is too large, or lies elsewhere than Discord keeps files. */
  async download({ name, url, size }: SentFile): Promise<Buffer> {
    const { hostname } = new URL(url);
    if (!this.#fileHosts.includes(hostname)) throw new Error(`${name} is not hosted on Discord.`);
    if (size > maxTextBytes)
      throw new Error(`${name} is too large: only ${grouped(maxTextBytes)} bytes are read.`);
    const response = await fetchOut(url, { redirect: 'error', signal: AbortSignal.timeout(downloadTime) });
    if (!response.ok) throw new Error(`${name} could not be read: Discord answers ${response.status}.`);
    const pieces: Uint8Array[] = [];
    let left = maxTextBytes;
    for await (const piece of response.body ?? []) {
      left -= piece.length;
      if (left < 0) throw new Error(`${name} is larger than Discord says.`);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  async close(): Promise<void> {
    await this.#client.destroy();
    this.#relay?.close();
  }

  /** Has the library connect to the relay, if there is one, wherever Discord tells it to. */
  #throughRelay(manager: Connections): SimpleShardingStrategy {
    const led = (address: string): string => this.#relay?.addressFor(address) ?? address;
    const { options } = manager;
    const fetchInformation = manager.fetchGatewayInformation.bind(manager);
    manager.fetchGatewayInformation = async force => {
      const told = await fetchInformation(force);
      return { ...told, url: led(told.url) };
    };
    const retrieve = options.retrieveSessionInfo;
    options.retrieveSessionInfo = async shard => {
      const session = await retrieve(shard);
      return session && { ...session, resumeURL: led(session.resumeURL) };
    };
    return new SimpleShardingStrategy(manager);
  }

  #listen(): void {
    const { failed, said, joined, closed } = this.#handlers;
    const guard = (done: Promise<void>): void => {
      done.catch(error => failed(error instanceof Error ? error.message : String(error)));
    };
    this.#client.on(Events.InteractionCreate, one => guard(this.#route(one)));
    this.#client.on(Events.MessageCreate, one => {
      const self = this.#client.user?.id ?? '';
      if (one.author.id !== self) guard(said(saidOf(one, self)));
    });
    this.#client.on(Events.GuildCreate, ({ id }) => guard(joined(id)));
    this.#client.on(Events.Error, error => failed(error.message));
    this.#client.on(Events.ShardDisconnect, ({ code }) =>
      closed(`Discord has ended the connection for good (${code}).`),
    );
  }

  async #route(one: Interaction): Promise<void> {
    const { slash, click, submitted, typing } = this.#handlers;
    if (one.isChatInputCommand()) await slash(slashOf(one));
    else if (one.isAutocomplete()) await typing(typingOf(one));
    else if (one.isButton()) await click(clickOf(one));
    else if (one.isModalSubmit()) await submitted(submissionOf(one));
  }
}

/** Some errors of the network have their words in what caused them. */
function wordsOf(error: unknown): string {
  const { message, cause, code } = error as { message?: string; cause?: unknown; code?: unknown };
  return message || (cause === undefined ? String(code ?? error) : wordsOf(cause));
}

/** Returns what a person can mend, in words. */
function refusalOf(error: unknown): TelosError | undefined {
  const { message, code } = error as { message?: string; code?: unknown };
  if (code === 'TokenInvalid' || (error instanceof DiscordAPIError && error.status === 401))
    return new TelosError(
      'auth',
      'Discord rejected the token in DISCORD_BOT_TOKEN. Set the one that the page of the bot shows after Reset Token.',
    );
  if (/disallowed intent/i.test(message ?? ''))
    return new TelosError(
      'auth',
      'Discord does not let the bot read messages. Switch on Message Content Intent at https://discord.com/developers/applications, under Bot, or remove message_content from config.toml.',
    );
  return undefined;
}

function payload({ content, buttons, mentions }: Partial<Post>): object {
  const rows = Array.from({ length: Math.ceil((buttons?.length ?? 0) / 5) }, (_, row) => ({
    type: ComponentType.ActionRow,
    components: buttons?.slice(row * 5, row * 5 + 5).map(({ id, label, style }) => ({
      type: ComponentType.Button,
      custom_id: id,
      label,
      style: style ? buttonStyles[style] : ButtonStyle.Secondary,
    })),
  }));
  const notified = mentions && { allowed_mentions: { parse: [], users: mentions } };
  return { ...quiet, ...notified, content, ...(buttons && { components: rows }) };
}

const filesOf = ({ files = [] }: Post): RawFile[] =>
  files.map(({ name, data }) => ({ name, data: Buffer.from(data) }));

/** Returns the answer. discord.js itself waits where Discord says so, and repeats what fails on the way. */
async function asked(request: () => Promise<unknown>): Promise<unknown> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof DiscordAPIError && error.status < 500 && error.status !== 429)
      throw new Refused(error.message, { cause: error });
    throw error;
  }
}

/** Returns true if `there` has everything that `wanted` has. Discord adds fields of its own, and leaves empty ones out. */
function holds(there: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted))
    return (
      (Array.isArray(there) ? there : []).length === wanted.length &&
      wanted.every((one, at) => holds((there as unknown[] | undefined)?.[at], one))
    );
  if (typeof wanted !== 'object' || wanted === null) return there === wanted || (wanted === false && !there);
  const has = (there ?? {}) as Record<string, unknown>;
  return Object.entries(wanted).every(([name, value]) => holds(has[name], value));
}

function doingOf({ user, guildId, channelId, channel }: Interaction): Doing {
  const parent = channel?.isThread() ? (channel.parentId ?? undefined) : undefined;
  return { user: user.id, isBot: user.bot, guild: guildId ?? undefined, channel: channelId ?? '', parent };
}

type Answerable = ChatInputCommandInteraction | ButtonInteraction | ModalSubmitInteraction;

function callOf(one: Answerable): Call {
  const answer = async (post: Post, flags: number) => {
    const sent = await one.reply({
      ...(payload(post) as { content: string }),
      flags,
      files: filesOf(post).map(({ name, data }) => ({ name, attachment: data as Buffer })),
      allowedMentions: { parse: [] },
      withResponse: true as const,
    });
    return sent.resource?.message?.id ?? '';
  };
  return {
    ...doingOf(one),
    reply: post => answer(post, MessageFlags.SuppressEmbeds),
    whisper: async post => {
      await answer(post, MessageFlags.SuppressEmbeds | MessageFlags.Ephemeral);
    },
  };
}

const optionsOf = (one: ChatInputCommandInteraction | AutocompleteInteraction): Record<string, string> =>
  Object.fromEntries(
    one.options.data
      .flatMap(({ options = [] }) => options)
      .map(({ name, value }) => [name, String(value ?? '')]),
  );

function slashOf(one: ChatInputCommandInteraction): SlashCall {
  const { name = '', url = '', size = 0 } = one.options.getAttachment('file') ?? {};
  return {
    ...callOf(one),
    name: one.options.getSubcommand(),
    options: optionsOf(one),
    ...(url !== '' && { file: { name, url, size } }),
  };
}

const updateOf = (one: ButtonInteraction | ModalSubmitInteraction) => async (post: Post) => {
  if (one.isModalSubmit() && !one.isFromMessage()) return;
  await one.update({ ...(payload(post) as { content: string }), allowedMentions: { parse: [] } });
};

const clickOf = (one: ButtonInteraction): Click => ({
  ...callOf(one),
  button: one.customId,
  message: one.message.id,
  update: updateOf(one),
  openForm: (id, title, label) =>
    one.showModal({
      customId: id,
      title,
      components: [
        {
          type: ComponentType.ActionRow,
          components: [
            {
              type: ComponentType.TextInput,
              customId: 'text',
              label,
              style: TextInputStyle.Paragraph,
              maxLength: 4000,
              required: true,
            },
          ],
        },
      ],
    }),
});

const submissionOf = (one: ModalSubmitInteraction): Submission => ({
  ...callOf(one),
  form: one.customId,
  text: one.fields.getTextInputValue('text'),
  update: updateOf(one),
});

const typingOf = (one: AutocompleteInteraction): Typing => ({
  ...doingOf(one),
  name: one.options.getSubcommand(),
  option: one.options.getFocused(true).name,
  options: optionsOf(one),
  offer: choices => one.respond(choices),
});

function saidOf(message: Message, self: string): Said {
  const { id, author, guildId, channelId, channel, content } = message;
  const mention = new RegExp(`<@!?${self}>`, 'g');
  return {
    id,
    user: author.id,
    isBot: author.bot || message.webhookId !== null || message.system,
    guild: guildId ?? undefined,
    channel: channelId,
    parent: channel.isThread() ? (channel.parentId ?? undefined) : undefined,
    text: content.replace(mention, ' ').trim(),
    isMention: message.mentions.users.has(self),
    channelName: 'name' in channel ? (channel.name ?? '') : '',
  };
}
