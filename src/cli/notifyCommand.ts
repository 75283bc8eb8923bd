/** Implements `telos notify`: sets up, lists, tests and removes the messengers by which questions reach a phone. */

import { setTimeout as delay } from 'node:timers/promises';
import {
  answersTopic,
  hasMessengers,
  importAskAway,
  isTelegramUser,
  isTopic,
  type MessengerKind,
  messengerKinds,
  messengerVariables,
  newSecret,
  newTopic,
  portIn,
  readAwaySettings,
  safeAddress,
} from '@telos/engine/away';
import type { Config } from '@telos/engine/config';
import { reasonOf } from '@telos/engine/errors';
import { importKeys } from '@telos/engine/providers';
import { newToken } from '@telos/engine/run';
import type { ApprovalRequest } from '@telos/protocol/run';
import { spoken } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readKeyText } from './keyCommand.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { table, terminalJson, terminalText } from './terminalText.ts';

export interface NotifyOptions extends ConfigOptions {
  server?: string;
  port?: string;
  wait?: string;
  json?: boolean;
}

const exitCodes = { done: 0, failed: 1, usage: 2 } as const;
/** How long an answer to a test is waited for in a terminal, in seconds. */
const usualWait = 120;

interface Added {
  variables: Readonly<Record<string, string | undefined>>;
  /** What to do next. */
  next: string;
}

interface Asked {
  words: readonly string[];
  options: NotifyOptions;
  /** Reads a key without showing it. */
  key(prompt: string): Promise<string>;
}

/** Returns what is kept, or why nothing is. */
const adders: Readonly<Record<MessengerKind, (asked: Asked) => Promise<Added | string>>> = {
  ntfy: async ({ words: [topic = newTopic()], options: { server }, key }) => {
    if (!isTopic(topic)) return 'A topic has at most 50 letters, digits, - and _.';
    if (server !== undefined && safeAddress(server) === undefined)
      return 'The server is not an https address, or an http address of this machine.';
    // On the public server, a name that nobody guesses is enough.
    const token = server === undefined ? '' : await key('Access token of ntfy, if it needs one: ');
    return {
      variables: {
        TELOS_NTFY_TOPIC: topic,
        TELOS_NTFY_SERVER: server,
        TELOS_NTFY_TOKEN: token || undefined,
      },
      next: `Subscribe to ${topic} in the ntfy app${server ? ` at ${server}` : ''}. Whoever knows the topic can read the questions and answer them.${
        token
          ? ` The app's buttons write to ${answersTopic(topic)}, which everyone must be allowed to write to.`
          : ''
      }`,
    };
  },
  webhook: async ({ words: [url], options: { port }, key }) => {
    if (url === undefined || safeAddress(url) === undefined)
      return 'Name an https address, or an http address of this machine: telos notify add webhook https://…';
    if (portIn(port) === 'unknown') return 'A port is a number from 1024 to 65535.';
    const given = await key('Secret of the webhook, at least 16 characters; empty for a new one: ');
    if (given !== '' && given.length < 16) return 'A secret has at least 16 characters.';
    const secret = given || newSecret();
    return {
      variables: { TELOS_WEBHOOK_URL: url, TELOS_WEBHOOK_SECRET: secret, TELOS_WEBHOOK_PORT: port },
      next: given
        ? 'Each message is signed with this secret.'
        : `Each message is signed with this secret, which is shown only now: ${secret}`,
    };
  },
  telegram: async ({ words: users, options: { server }, key }) => {
    if (users.length === 0 || !users.every(isTelegramUser))
      return 'Name the ids of those who may answer, such as 123456789. @userinfobot on Telegram says yours.';
    if (server !== undefined && safeAddress(server) === undefined)
      return 'The server is not an https address, or an http address of this machine.';
    const token = await key('Token of the bot, from @BotFather: ');
    if (!/^\d+:[\w-]{3,}$/.test(token)) return 'That is not the token of a bot.';
    return {
      variables: {
        TELOS_TELEGRAM_TOKEN: token,
        TELOS_TELEGRAM_USERS: users.join(','),
        TELOS_TELEGRAM_API: server,
      },
      next: 'Write a word to the bot first: Telegram lets no bot begin a chat.',
    };
  },
};

/** Sets a messenger up. Returns the exit code, as all commands here. */
export async function notifyAddCommand(
  [kind, ...words]: readonly string[],
  options: NotifyOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  if (!isKind(kind)) return sayKinds(kind, terminal);
  const { signal, release } = abortOnInterrupt(terminal, () => terminal.say(''));
  try {
    const key = async (prompt: string): Promise<string> =>
      (await readKeyText(prompt, terminal, signal)).trim();
    const added = await adders[kind]({ words, options, key });
    if (signal.aborted) return cancelledExitCode;
    if (typeof added === 'string') {
      terminal.say(terminalText(`${added} Nothing was saved.`));
      return exitCodes.usage;
    }
    const file = await (await importKeys()).keepInEnvFile(config, added.variables);
    terminal.out(terminalText(`${kind} was saved in ${file}. ${added.next}\nTry it: telos notify test\n`));
    sayExported(kind, terminal);
    return exitCodes.done;
  } finally {
    release();
  }
}

const isKind = (word: string | undefined): word is MessengerKind => messengerKinds.some(one => one === word);

function sayKinds(word: string | undefined, terminal: Terminal): number {
  const which = messengerKinds.join(', ');
  terminal.say(
    terminalText(word === undefined ? `Which one: ${which}?` : `'${word}' is not one of ${which}.`),
  );
  return exitCodes.usage;
}

/** What is exported in the shell wins over the file. */
function sayExported(kind: MessengerKind, { say, style, surroundings: { env } }: Terminal): void {
  const exported = messengerVariables[kind].filter(name => env[name]);
  if (exported.length > 0)
    say(style.yellow(`${exported.join(', ')}: also set in the environment, which takes precedence.`));
}

/** Removes a messenger. */
export async function notifyRemoveCommand(
  kind: string,
  options: NotifyOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  if (!isKind(kind)) return sayKinds(kind, terminal);
  if (!messengerVariables[kind].some(name => config.env[name])) {
    terminal.say(`${kind} is not set up.`);
    return exitCodes.failed;
  }
  const gone = Object.fromEntries(messengerVariables[kind].map(name => [name, undefined]));
  const file = await (await importKeys()).keepInEnvFile(config, gone);
  terminal.out(terminalText(`${kind} was removed from ${file}.\n`));
  sayExported(kind, terminal);
  return exitCodes.done;
}

/** Lists the messengers, without their secrets. */
export async function notifyListCommand(options: NotifyOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const { places, problems, afterMs } = readAwaySettings(config);
  for (const problem of problems) terminal.say(terminal.style.yellow(terminalText(spoken([problem]))));
  const rows = places.map(one => [one.kind, placeText(one)]);
  if (options.json) terminal.out(`${terminalJson(rows.map(([kind, place]) => ({ kind, place })))}\n`);
  else if (rows.length === 0) sayNone(config, terminal);
  else {
    terminal.out(`${table(['Messenger', 'Where'], rows, terminal.outWidth)}\n`);
    terminal.say(
      `A question that nobody answers here is sent after ${afterMs / 60_000} minutes, or at once if nobody is here.`,
    );
  }
  return problems.length > 0 ? exitCodes.failed : exitCodes.done;
}

function placeText(one: ReturnType<typeof readAwaySettings>['places'][number]): string {
  switch (one.kind) {
    case 'ntfy':
      return `${one.place.server}, a topic`;
    case 'webhook':
      return new URL(one.place.url).origin;
    case 'telegram':
      return `to ${one.place.users.join(', ')}`;
  }
}

function sayNone(config: Config, terminal: Terminal): void {
  if (!hasMessengers(config))
    terminal.say('No messenger is set up. `telos notify add ntfy` sends questions to your phone.');
}

/** Sends a question that decides nothing by each messenger, and says what was accepted and answered. */
export async function notifyTestCommand(options: NotifyOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return exitCodes.usage;
  const { problems } = readAwaySettings(config);
  for (const problem of problems) terminal.say(terminal.style.red(terminalText(spoken([problem]))));
  const { openMessengers } = await importAskAway();
  const messengers = openMessengers(config);
  if (messengers.length === 0) {
    sayNone(config, terminal);
    return exitCodes.failed;
  }
  const seconds = options.wait === undefined ? (terminal.canAsk ? usualWait : 0) : Number(options.wait);
  const { signal, release } = abortOnInterrupt(terminal, () => terminal.say(''));
  let code: number = problems.length > 0 ? exitCodes.failed : exitCodes.done;
  const tests = messengers.map(async messenger => {
    const over = new AbortController();
    const open = AbortSignal.any([signal, over.signal]);
    const sent = (): void => {
      terminal.out(`${messenger.name}: sent.${seconds > 0 ? ' Answer it there.' : ''}\n`);
      void delay(seconds * 1000, undefined, { signal: open }).then(
        () => over.abort(),
        () => undefined,
      );
    };
    try {
      const answer = await messenger.ask({ request: testRequest(), scopes: ['once'] }, open, sent);
      if (answer) terminal.out(`${messenger.name}: answered, ${answer}.\n`);
      else if (seconds > 0 && !signal.aborted) terminal.say(`${messenger.name}: no answer came.`);
    } catch (error) {
      code = exitCodes.failed;
      terminal.say(terminal.style.red(terminalText(`${messenger.name}: not sent. ${reasonOf(error)}`)));
    } finally {
      over.abort();
    }
  });
  await Promise.all(tests).finally(release);
  return signal.aborted ? cancelledExitCode : code;
}

const testRequest = (): ApprovalRequest => ({
  ...{ callId: 'test', token: newToken(), tool: 'run_command', subject: 'echo "Hello from Telos"' },
  ...{ rule: 'notify.test', reason: 'This is a test: nothing runs, whatever you answer.', scopes: ['once'] },
});
