/** Reads from the variables which messengers are set up. Their keys are in `.env`, as those of providers are. */
import { randomBytes } from 'node:crypto';
import { type Sentence, sentence } from '@telos/protocol/text';
import { hostKind } from '../addresses.ts';
import { amountIn, type Config } from '../config.ts';
import type { NtfyPlace } from './ntfy.ts';
import type { TelegramPlace } from './telegram.ts';
import type { WebhookPlace } from './webhook.ts';

export const messengerKinds = ['ntfy', 'webhook', 'telegram'] as const;
export type MessengerKind = (typeof messengerKinds)[number];

/** The variables of each. The first says whether it is set up. */
export const messengerVariables = {
  ntfy: ['TELOS_NTFY_TOPIC', 'TELOS_NTFY_SERVER', 'TELOS_NTFY_TOKEN'],
  webhook: ['TELOS_WEBHOOK_URL', 'TELOS_WEBHOOK_SECRET', 'TELOS_WEBHOOK_PORT'],
  telegram: ['TELOS_TELEGRAM_TOKEN', 'TELOS_TELEGRAM_USERS', 'TELOS_TELEGRAM_API'],
} as const satisfies Record<MessengerKind, readonly string[]>;

export type MessengerPlace =
  | { kind: 'ntfy'; place: NtfyPlace }
  | { kind: 'webhook'; place: WebhookPlace }
  | { kind: 'telegram'; place: TelegramPlace };

export interface AwaySettings {
  places: readonly MessengerPlace[];
  /** How long a question waits for an answer here before it is sent, in milliseconds. */
  afterMs: number;
  /** Why something is not used, each with what to do. */
  problems: readonly Sentence[];
}

const publicNtfy = 'https://ntfy.sh';
const publicTelegram = 'https://api.telegram.org';
const usualMinutes = 2;

/** Returns true if a messenger may be set up. Reads nothing else, so that no run pays for it. */
export const hasMessengers = ({ env }: Pick<Config, 'env'>): boolean =>
  messengerKinds.some(kind => Boolean(env[messengerVariables[kind][0]]));

/** Returns the messengers that are set up as they can be used. */
export function readAwaySettings({ env }: Pick<Config, 'env'>): AwaySettings {
  const problems: Sentence[] = [];
  const places = messengerKinds.flatMap(kind => {
    if (!env[messengerVariables[kind][0]]) return [];
    const read = readers[kind](env);
    if ('place' in read) return [read];
    problems.push(read);
    return [];
  });
  const written = env['TELOS_NOTIFY_AFTER'];
  const minutes = written ? amountIn(written) : usualMinutes;
  if (Number.isNaN(minutes))
    problems.push(sentence('TELOS_NOTIFY_AFTER is not a number of minutes, so {0} is used.', usualMinutes));
  return { places, afterMs: (Number.isNaN(minutes) ? usualMinutes : minutes) * 60_000, problems };
}

type Env = Config['env'];

const readers: Readonly<Record<MessengerKind, (env: Env) => MessengerPlace | Sentence>> = {
  ntfy: env => {
    const topic = env['TELOS_NTFY_TOPIC'] ?? '';
    const server = safeAddress(env['TELOS_NTFY_SERVER'] || publicNtfy);
    if (!isTopic(topic))
      return sentence('TELOS_NTFY_TOPIC is not a topic: write at most 50 letters, digits, - and _.');
    if (server === undefined) return unsafe('TELOS_NTFY_SERVER');
    return { kind: 'ntfy', place: { server, topic, token: env['TELOS_NTFY_TOKEN'] || undefined } };
  },
  webhook: env => {
    const url = safeAddress(env['TELOS_WEBHOOK_URL'] ?? '');
    const secret = env['TELOS_WEBHOOK_SECRET'] ?? '';
    const port = portIn(env['TELOS_WEBHOOK_PORT']);
    if (url === undefined) return unsafe('TELOS_WEBHOOK_URL');
    if (secret.length < shortestKey)
      return sentence(
        'TELOS_WEBHOOK_SECRET has fewer than {0} characters. Set it again: telos notify add webhook',
        shortestKey,
      );
    if (port === 'unknown') return sentence('TELOS_WEBHOOK_PORT is not a port from 1024 to 65535.');
    return { kind: 'webhook', place: { url, secret, port } };
  },
  telegram: env => {
    const api = safeAddress(env['TELOS_TELEGRAM_API'] || publicTelegram);
    const users = (env['TELOS_TELEGRAM_USERS'] ?? '').split(/[\s,]+/).filter(Boolean);
    if (api === undefined) return unsafe('TELOS_TELEGRAM_API');
    if (users.length === 0 || !users.every(isTelegramUser))
      return sentence('TELOS_TELEGRAM_USERS has no ids of users: numbers, each after a comma.');
    return { kind: 'telegram', place: { api, token: env['TELOS_TELEGRAM_TOKEN'] ?? '', users } };
  },
};

/** In characters. */
const shortestKey = 16;

const unsafe = (variable: string): Sentence =>
  sentence('{0} is not an https address, or an http address of this machine.', variable);

/** Returns the address without a slash at its end. Undefined unless what is sent there is read on no way. */
export function safeAddress(written: string): string | undefined {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && hostKind(url.hostname) === 'loopback');
  return url && isSafe && !url.username && !url.password ? written.replace(/\/+$/, '') : undefined;
}

/** A server takes 64 characters; the topic for answers has a longer name. */
export const isTopic = (text: string): boolean => /^[\w-]{1,50}$/.test(text);
/** Ids of groups are negative: everybody in a group could answer. */
export const isTelegramUser = (text: string): boolean => /^[1-9]\d{0,18}$/.test(text);

export function portIn(written: string | undefined): number | undefined | 'unknown' {
  if (!written) return undefined;
  const port = /^\d{4,5}$/.test(written) ? Number(written) : Number.NaN;
  return port >= 1024 && port <= 65_535 ? port : 'unknown';
}

/** Returns a topic that nobody guesses: on a public server, its name is all that protects it. */
export const newTopic = (): string => `telos-${randomBytes(15).toString('base64url')}`;
/** Returns a secret for a webhook. */
export const newSecret = (): string => randomBytes(32).toString('base64url');
