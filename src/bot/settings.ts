/** Reads who may use the bot and where, from `[discord]` in config.toml, and its token. */

import { join } from 'node:path';
import { amountIn, type Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { readToml, type TomlTable } from '@telos/engine/files';
import { hostKind } from '@telos/engine/tools';

export interface BotSettings {
  token: string;
  /** Where Discord's API is. Undefined for Discord itself. */
  api: string | undefined;
  /** Ids of people. Owners decide what is asked; users may only make requests. */
  owners: readonly string[];
  users: readonly string[];
  /** Ids of servers and channels. Undefined if the bot answers in all that it can see. */
  guilds: readonly string[] | undefined;
  channels: readonly string[] | undefined;
  /** Names of the agents that are offered. Undefined for all. */
  agents: readonly string[] | undefined;
  /** Name of the channel in which plain text is a request. */
  textChannel: string;
  /** Runs of a day, of all doors together, may cost this much from Discord. In US dollars. */
  maxCostPerDay: number | undefined;
  /** Commands that no rule names exactly are asked about. Otherwise they are refused. */
  asksCommands: boolean;
  /** The privileged intent is switched on, so that messages without a mention can be read. */
  readsMessages: boolean;
}

/** Who did something, and where. A thread counts as its channel. */
export interface Doing {
  user: string;
  isBot: boolean;
  /** Undefined in a direct message. */
  guild: string | undefined;
  channel: string;
  /** The channel of a thread. */
  parent?: string | undefined;
}

export const botFile = ({ configDir }: Pick<Config, 'configDir'>): string => join(configDir, 'config.toml');

const knownKeys: readonly string[] = [
  ...['owners', 'users', 'guilds', 'channels', 'agents', 'text_channel', 'max_cost_per_day', 'commands'],
  'message_content',
];

/** Returns what makes the bot refuse to start for lack of a token. Throws TelosError `auth`. */
export function botToken({ env, configDir }: Pick<Config, 'env' | 'configDir'>): string {
  const token = env['DISCORD_BOT_TOKEN']?.trim();
  if (token) return token;
  throw new TelosError(
    'auth',
    `DISCORD_BOT_TOKEN is not set. Put the bot's token into ${join(configDir, '.env')}; telos bot --setup says where it comes from.`,
  );
}

/** Returns the address of the API that is set. Throws TelosError `config` unless it is safe to send the token there. */
export function botApi({ env }: Pick<Config, 'env'>): string | undefined {
  const written = env['TELOS_DISCORD_API'];
  if (!written) return undefined;
  const url = URL.canParse(written) ? new URL(written) : undefined;
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && hostKind(url.hostname) === 'loopback');
  if (url && isSafe && !url.username && !url.password) return written.replace(/\/+$/, '');
  throw new TelosError(
    'config',
    'TELOS_DISCORD_API is not an https address, or an http address of this machine. Correct or remove it.',
  );
}

/** Returns the settings. Throws TelosError `config` or `auth`, with the sentence that mends it. */
export function readBotSettings(config: Config): BotSettings {
  const file = botFile(config);
  const { table, diagnostics } = readToml(file, 'config-broken', []);
  const [broken] = diagnostics;
  if (broken) throw new TelosError('config', [broken.message, broken.fix].filter(Boolean).join(' '));
  const read = new Reader(file, table['discord']);
  const owners = read.ids('owners') ?? [];
  if (owners.length === 0)
    throw new TelosError(
      'config',
      `The bot has no owner, so it does not start. Write your Discord user id into ${file}: under [discord], owners = ["123456789012345678"]. In Discord, Settings > Advanced > Developer Mode shows ids.`,
    );
  return {
    token: botToken(config),
    api: botApi(config),
    owners,
    users: read.ids('users') ?? [],
    guilds: read.ids('guilds'),
    channels: read.ids('channels'),
    agents: read.texts('agents'),
    textChannel: read.text('text_channel') ?? 'telos',
    maxCostPerDay: read.amount('max_cost_per_day'),
    asksCommands: read.text('commands', ['ask-owner', 'off']) === 'ask-owner',
    readsMessages: read.flag('message_content'),
  };
}

/** Takes values out of the table. Each method throws TelosError `config` for a value of another kind. */
class Reader {
  readonly #file: string;
  readonly #table: TomlTable;

  constructor(file: string, table: TomlTable[string] | undefined) {
    this.#file = file;
    const isTable = typeof table === 'object' && !Array.isArray(table) && !(table instanceof Date);
    if (table !== undefined && !isTable)
      throw this.#wrong('discord', 'a table: write [discord] above the settings');
    this.#table = (table ?? {}) as TomlTable;
    const unknown = Object.keys(this.#table).find(key => !knownKeys.includes(key));
    if (unknown !== undefined)
      throw new TelosError(
        'config',
        `${file}: ${unknown} is not a setting of [discord]. Known: ${knownKeys.join(', ')}.`,
      );
  }

  #wrong(key: string, kind: string): TelosError {
    return new TelosError('config', `${this.#file}: ${key} is not ${kind}. Correct it.`);
  }

  texts(key: string): readonly string[] | undefined {
    const value = this.#table[key];
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every(one => typeof one === 'string')) return value;
    throw this.#wrong(key, 'a list of texts in double quotes');
  }

  ids(key: string): readonly string[] | undefined {
    const found = this.texts(key);
    if (found?.every(id => /^\d{1,20}$/.test(id)) ?? true) return found;
    throw this.#wrong(key, 'a list of ids. An id is a number in double quotes, not a name');
  }

  text(key: string, known?: readonly string[]): string | undefined {
    const value = this.#table[key];
    if (value === undefined) return undefined;
    if (typeof value === 'string' && (known?.includes(value) ?? true)) return value;
    throw this.#wrong(key, known ? known.map(one => `"${one}"`).join(' or ') : 'a text in double quotes');
  }

  amount(key: string): number | undefined {
    const value = this.#table[key];
    if (value === undefined) return undefined;
    const amount = amountIn(String(value));
    if (Number.isNaN(amount)) throw this.#wrong(key, 'a number such as 5');
    return amount;
  }

  flag(key: string): boolean {
    const value = this.#table[key] ?? false;
    if (typeof value === 'boolean') return value;
    throw this.#wrong(key, 'true or false');
  }
}

/** Returns the configuration with the lower of both limits for a day. */
export function limitedConfig(config: Config, { maxCostPerDay }: BotSettings): Config {
  if (maxCostPerDay === undefined) return config;
  const { maxCostPerDay: usual = maxCostPerDay } = config.budget;
  return { ...config, budget: { ...config.budget, maxCostPerDay: Math.min(usual, maxCostPerDay) } };
}

/** Returns why the bot does not listen here, for its log, or undefined if it does. Never by a name: anyone can take any name. */
export function whyNot(
  { user, isBot, guild, channel, parent }: Doing,
  settings: BotSettings,
): string | undefined {
  const { owners, users, guilds, channels } = settings;
  if (isBot) return 'it is a bot';
  if (guild === undefined) return 'it is a direct message';
  if (guilds && !guilds.includes(guild)) return 'the server is not among guilds';
  if (channels && !channels.includes(channel) && !channels.includes(parent ?? ''))
    return 'the channel is not among channels';
  return owners.includes(user) || users.includes(user) ? undefined : 'the user is not among owners or users';
}
