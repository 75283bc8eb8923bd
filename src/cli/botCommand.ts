/** Implements `telos bot`: answers on Discord until it is stopped. `--setup` says what that needs. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { botApi, botFile, botToken, readBotSettings } from '@telos/bot/settings';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { lockFile } from '@telos/engine/files';
import { redactor, secretsIn } from '@telos/engine/policy';
import { followProxies } from '@telos/engine/tools';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { errorText, sayError, terminalLine, terminalText } from './terminalText.ts';

export interface BotOptions extends ConfigOptions {
  setup?: boolean;
}

/** Returns the exit code: 0 when it was stopped, 1 if the connection ended for good, 2 if it cannot start as it is set up. */
export async function botCommand(options: BotOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  try {
    return options.setup ? await setUp(config, terminal) : await serve(config, terminal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') {
      terminal.say(
        'This copy of telos, which came with the extension, has no bot. Install it: npm install --global telos',
      );
      return 2;
    }
    const isSetting = error instanceof TelosError && /^(?:auth|config)$/.test(error.code);
    return sayError(error, terminal, isSetting ? 2 : 1);
  }
}

async function serve(config: Config, terminal: Terminal): Promise<number> {
  const settings = readBotSettings(config);
  const redact = redactor(secretsIn(config.env));
  const log = (line: string): void => terminal.say(terminal.style.dim(terminalLine(redact.text(line))));
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const slow = setTimeout(() => log('Waiting for another telos bot with this data folder to end …'), 1_000);
  const lock = await lockFile(join(config.dataDir, 'discord.lock')).finally(() => clearTimeout(slow));
  const interrupts = abortOnInterrupt(terminal, () =>
    log('Stopping; what was done is kept. Ctrl-C again ends at once.'),
  );
  try {
    const { Bot } = await import('@telos/bot/bot');
    const bot = new Bot({ settings, config, env: terminal.surroundings.env, log });
    terminal.say(terminalText(await bot.start()));
    const stopped = new Promise<undefined>(resolve => {
      if (interrupts.signal.aborted) resolve(undefined);
      interrupts.signal.addEventListener('abort', () => resolve(undefined));
    });
    const why = await Promise.race([bot.closed, stopped]);
    await bot.stop();
    if (why !== undefined) terminal.say(terminal.style.red(terminalText(why)));
    return why === undefined ? 0 : 1;
  } finally {
    interrupts.release();
    await lock.release();
  }
}

/** Says what is left to do, in order, with the address that lets the bot into a server once its token is known. */
async function setUp(config: Config, terminal: Terminal): Promise<number> {
  const hasToken = Boolean(config.env['DISCORD_BOT_TOKEN']);
  const owned = readOwned(config);
  const done = (isDone: boolean): string => (isDone ? ' (done)' : '');
  const file = botFile(config);
  const { slashCommands } = await import('@telos/bot/botCommands');
  const names = slashCommands.flatMap(({ options }) => options.map(({ name }) => name));
  const steps = [
    `1. Make an application at https://discord.com/developers/applications. Under Bot, press Reset Token, and write the token into ${join(config.configDir, '.env')}:${done(hasToken)}`,
    '     DISCORD_BOT_TOKEN=…',
    '2. Let the bot into your server:',
    hasToken
      ? `     ${await inviteOf(config)}`
      : '     telos bot --setup shows the address once the token is set.',
    `3. Write into ${file} who owns the bot. Only owners answer its questions:${done(owned === undefined)}`,
    '     [discord]',
    '     owners = ["123456789012345678"]',
    '   Settings > Advanced > Developer Mode in Discord shows ids; then right-click your name and choose Copy User ID.',
    '4. Start it in the folder in which skills are to work: telos bot',
    `   In Discord, type /telos and one of: ${names.join(', ')}.`,
  ];
  terminal.out(`${terminalText(steps.join('\n'))}\n`);
  if (owned !== undefined && hasToken) terminal.say(terminal.style.yellow(owned));
  return 0;
}

/** Returns what is wrong with the settings, or undefined. */
function readOwned(config: Config): string | undefined {
  try {
    readBotSettings({ ...config, env: { ...config.env, DISCORD_BOT_TOKEN: 'set' } });
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

/** Throws TelosError `auth` if Discord rejects the token. */
async function inviteOf(config: Config): Promise<string> {
  const { Gateway } = await import('@telos/bot/gateway');
  followProxies(config.env);
  const ignore = async (): Promise<void> => undefined;
  const gateway = new Gateway(
    { api: botApi(config), readsMessages: false },
    {
      slash: ignore,
      click: ignore,
      submitted: ignore,
      typing: ignore,
      said: ignore,
      joined: ignore,
      failed: () => undefined,
      closed: () => undefined,
    },
  );
  await gateway.connect(botToken(config));
  try {
    return gateway.invite;
  } finally {
    await gateway.close();
  }
}
