/** Asks the user by all messengers at once. The first answer counts, and the other messages are closed. */
import type { ApprovalDecision, ApprovalRequest } from '@telos/protocol/run';
import { asSaid, type Sentence, sentence, sentencesOf } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { reasonOf, TelosError } from '../core/errors.ts';
import { AnswerBox } from './answerBox.ts';
import { decisionOf, type Messenger } from './messenger.ts';
import { ntfyWire } from './ntfy.ts';
import { phone } from './phone.ts';
import { type MessengerPlace, readAwaySettings } from './settings.ts';
import { telegramWire } from './telegram.ts';
import { webhookWire } from './webhook.ts';

/** Says something to the user of this machine. */
export type Tell = (level: 'info' | 'warning', ...sentences: readonly Sentence[]) => void;

/** A messenger that has failed is left alone for this long, so that it holds up one question and not each. In milliseconds. */
const restTime = 60_000;
/** When a messenger has failed last, by the clock that nobody sets. */
const failedAt = new WeakMap<Messenger, number>();

/** A service of a process has one listener, whoever opens it. */
const opened = new Map<string, Messenger>();

/** Returns the messengers that are set up. */
export function openMessengers(config: Pick<Config, 'env' | 'dataDir'>): readonly Messenger[] {
  return readAwaySettings(config).places.map(one => {
    const key = JSON.stringify([config.dataDir, one]);
    const messenger = opened.get(key) ?? phone(wireOf(one, config.dataDir));
    opened.set(key, messenger);
    return messenger;
  });
}

function wireOf({ kind, place }: MessengerPlace, dataDir: string) {
  switch (kind) {
    case 'ntfy':
      return ntfyWire(place);
    case 'webhook':
      return webhookWire(place, new AnswerBox(dataDir));
    case 'telegram':
      return telegramWire(place, new AnswerBox(dataDir));
  }
}

/**
 * Returns the user's decision; undefined if no messenger took the question, or if nobody answered while it held. A question that needs more
 * than a yes or a no is sent to say so, and answered elsewhere.
 */
export async function askAway(
  request: ApprovalRequest,
  messengers: readonly Messenger[],
  signal: AbortSignal,
  tell: Tell = () => undefined,
): Promise<ApprovalDecision | undefined> {
  const over = new AbortController();
  const open = AbortSignal.any([signal, over.signal]);
  const question = { request, scopes: ['once' as const] };
  const asked = messengers.filter(isRested).map(async messenger => {
    const { name } = messenger;
    try {
      const answer = await messenger.ask(question, open);
      if (answer === undefined) return undefined;
      over.abort();
      const said =
        answer === 'no' ? sentence('You said no by {0}.', name) : sentence('You said once by {0}.', name);
      tell('info', said);
      return decisionOf(answer, `The user said no by ${name}.`);
    } catch (error) {
      if (open.aborted) return undefined;
      failedAt.set(messenger, performance.now());
      const why = error instanceof TelosError ? sentencesOf(error.runError) : [asSaid(reasonOf(error))];
      tell('warning', sentence('A question could not be sent to your phone.'), ...why);
      return undefined;
    }
  });
  const answers = await Promise.all(asked);
  return answers.find(answer => answer !== undefined);
}

const isRested = (messenger: Messenger): boolean =>
  performance.now() - (failedAt.get(messenger) ?? Number.NEGATIVE_INFINITY) > restTime;
