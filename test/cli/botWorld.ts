/**
 * A `telos bot`, in this process or as the built command line in one of its own; a Discord and a model on loopback, and a home folder with
 * one skill.
 */
import assert from 'node:assert/strict';
import { eventually } from '../eventually.ts';
import { type AnthropicServerOptions, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { Fields } from '../fakes/discordGateway.ts';
import { botToken, DiscordServer, ids, type SentMessage } from '../fakes/discordServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome, type OngoingCli, type RunningCli } from './cliProcess.ts';

export interface BotWorld {
  home: CliHome;
  discord: DiscordServer;
  model: FakeServer;
  env: Record<string, string>;
  bot: OngoingCli;
  close(): Promise<void>;
}

/** The bot has a process of its own, to be killed. */
export interface BotProcess extends BotWorld {
  bot: RunningCli;
  /** Starts the bot anew, after the one before has ended. */
  restart(): Promise<void>;
}

export const ownerOnly = `[discord]\nowners = ["${ids.owner}"]\n`;

const skill = '---\nname: go\ndescription: Tells what is new\n---\nGo.\n';

export interface BotWorldOptions extends Partial<AnthropicServerOptions> {
  config?: string;
  files?: Readonly<Record<string, string>>;
  more?: Readonly<Record<string, string>>;
  /** Called before the bot starts. */
  prepare?: (discord: DiscordServer) => void;
}

/** Opens a world whose bot runs in this process. */
export async function botWorld(options: BotWorldOptions = {}): Promise<BotWorld> {
  const world = await botlessWorld(options);
  const bot = world.home.call(['bot'], { env: world.env });
  await bot.says('is ready');
  return {
    ...world,
    bot,
    async close() {
      bot.stop();
      await bot.result;
      await world.close();
    },
  };
}

/** Opens a world whose bot is started as a process of its own. */
export async function botProcess(options: BotWorldOptions = {}): Promise<BotProcess> {
  const world = await botlessWorld(options);
  const started = async (): Promise<RunningCli> => {
    const bot = world.home.start(['bot'], { env: world.env });
    await bot.says('is ready');
    return bot;
  };
  const opened: BotProcess = {
    ...world,
    bot: await started(),
    async restart() {
      opened.bot = await started();
    },
    async close() {
      if (opened.bot.child.exitCode === null) opened.bot.child.kill('SIGKILL');
      await opened.bot.result;
      await world.close();
    },
  };
  return opened;
}

async function botlessWorld({
  config = ownerOnly,
  files = {},
  more = {},
  prepare,
  turns = [{ text: ['Done.'] }],
  ...options
}: BotWorldOptions): Promise<Omit<BotWorld, 'bot'>> {
  const home = cliHome({ 'skills/one/skills/go/SKILL.md': skill, 'config/config.toml': config, ...files });
  const [discord, model] = await Promise.all([
    DiscordServer.start(),
    startAnthropicServer({ turns, ...options }),
  ]);
  prepare?.(discord);
  const env = {
    TELOS_DEFAULTS: 'specified',
    ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
    ANTHROPIC_BASE_URL: model.url,
    TELOS_ROUTING_MODE: 'local',
    DISCORD_BOT_TOKEN: botToken,
    TELOS_DISCORD_API: discord.url,
    ...more,
  };
  return {
    home,
    discord,
    model,
    env,
    async close() {
      await Promise.all([discord.close(), model.close()]);
      home.remove();
    },
  };
}

/** Resolves with the thread of the latest request. */
export const threadIn = (discord: DiscordServer): Promise<string> =>
  eventually(() => discord.thread ?? assert.fail('no thread'));

/** Resolves with the bot's message that has this text. */
export const saying = (
  discord: DiscordServer,
  channel: string,
  words: RegExp,
  limitMs?: number,
): Promise<SentMessage & Fields> =>
  eventually(() => {
    const said = discord.said(channel);
    return (
      said.find(({ content }) => words.test(content)) ??
      assert.fail(`${words} is not among: ${JSON.stringify(said.map(({ content }) => content.slice(-200)))}`)
    );
  }, limitMs);

/** The last line of an answer that has ended: the skill and what it came to. */
const closing = /\n?-# one(?:\\)?:go(?: · [^\n]*)?$/;

/** Returns the text over all messages of an answer, without what belongs to messages. Fails unless it is a piece of `whole` each. */
export function joined(parts: readonly string[], whole: string): string {
  let rest = whole;
  for (const part of parts) {
    const bare = part.replace(closing, '');
    if (rest.startsWith('\n') && !bare.startsWith('\n')) rest = rest.slice(1);
    assert.ok(rest.startsWith(bare), `not what comes next: ${JSON.stringify(bare.slice(0, 60))}`);
    rest = rest.slice(bare.length);
  }
  return whole.slice(0, whole.length - rest.length);
}
