/** Has the questions of a run reach the user elsewhere too: at once if nobody is here, or once nobody has answered here for a while. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ApprovalDecision, ApprovalRequest, RunEvent } from '@telos/protocol/run';
import { asMessage } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import type { Human } from '../core/ports.ts';
import { QuestionOver } from '../human.ts';
import { askAway, openMessengers, type Tell } from './askAway.ts';
import { readAwaySettings } from './settings.ts';

export interface Reachable {
  human: Human;
  /** Passes the events of the run on, with what is to be said of the messengers. */
  events(events: AsyncIterable<RunEvent>): AsyncGenerator<RunEvent, void>;
}

/** Returns the user with the messengers that are set up. */
export function reachable(human: Human, config: Pick<Config, 'env' | 'dataDir'>): Reachable {
  const news: RunEvent[] = [];
  const told = new Set<string>();
  const tell: Tell = (level, ...sentences) => {
    const said = asMessage(...sentences);
    if (level === 'warning' && told.has(said.message)) return;
    told.add(said.message);
    news.push({ type: 'notice', level, ...said });
  };
  const { afterMs } = readAwaySettings(config);
  const ask = (request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision | undefined> =>
    askAway(request, openMessengers(config), signal, tell);
  return {
    human: {
      ...human,
      approve: (request, signal) =>
        human.isAway
          ? askIfAlone(human, request, signal, ask)
          : askBoth(human, request, signal, afterMs, ask),
      ask: (questions, signal) => human.ask(questions, signal),
    },
    async *events(events) {
      for await (const event of events) {
        yield* news.splice(0);
        yield event;
      }
    },
  };
}

type AskElsewhere = (request: ApprovalRequest, signal: AbortSignal) => Promise<ApprovalDecision | undefined>;

/** Asks elsewhere what nobody was here to answer. */
async function askIfAlone(
  human: Human,
  request: ApprovalRequest,
  signal: AbortSignal,
  ask: AskElsewhere,
): Promise<ApprovalDecision> {
  const decision = await human.approve(request, signal);
  if (decision.allow || !decision.isAway) return decision;
  return (await ask(request, signal)) ?? decision;
}

/** Asks here, and elsewhere once it has waited. The first answer counts, and the other question is over. */
async function askBoth(
  human: Human,
  request: ApprovalRequest,
  signal: AbortSignal,
  afterMs: number,
  ask: AskElsewhere,
): Promise<ApprovalDecision> {
  const over = new AbortController();
  const open = AbortSignal.any([signal, over.signal]);
  const here = human.approve(request, open);
  const there = delay(afterMs, undefined, { signal: open })
    .then(() => ask(request, open))
    .catch(() => undefined);
  const elsewhere = there.then(answer => answer ?? here);
  try {
    return await Promise.race([here, elsewhere]);
  } finally {
    over.abort(new QuestionOver('The question was answered elsewhere.', true));
    elsewhere.catch(() => undefined);
    here.catch(() => undefined);
  }
}
