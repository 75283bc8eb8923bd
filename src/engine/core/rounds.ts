/** Asks the user before a run asks its model more often than usual. */
import type { ApprovalDecision, ApprovalRequest, RunEvent } from '@telos/protocol/run';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import { mostRounds } from './limits.ts';
import { newToken, type Quota, type RunSpec } from './ports.ts';

type Asking = Pick<RunSpec, 'provider' | 'counts' | 'human'>;

export const isDue = ({ roundsBeforeAsking }: Quota, { counts }: Asking): boolean =>
  roundsBeforeAsking > 0 && counts.rounds > 0 && counts.rounds % roundsBeforeAsking === 0;

/** Asks before further rounds. An unattended loop can use up a month's quota in minutes. */
export function askForMore(
  { whose, roundsBeforeAsking }: Quota,
  limit: number,
  spec: Asking,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalDecision> {
  const { rounds } = spec.counts;
  const sentences = [
    sentence(
      'This run has asked the model {0} times already, and each time counts against the quota of {1}.',
      rounds,
      whose,
    ),
  ];
  const more = Math.min(roundsBeforeAsking, limit - rounds);
  return askAboutRounds(more, 'quota.rounds', sentences, spec, signal);
}

/** Asks at the limit of rounds. A long task needs more of them, and a model that goes in circles must not have them. */
export function askToGoOn(
  atATime: number,
  spec: Asking,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalDecision> {
  const { rounds } = spec.counts;
  const more = Math.min(atATime, mostRounds - rounds);
  const sentences = [
    sentence('This run has asked the model {0} times and is not done.', rounds),
    sentence(
      'If you allow this for the rest of the run, Telos asks again after {0} more requests. max_rounds sets this number.',
      mostRounds,
    ),
  ];
  return askAboutRounds(more, 'run.rounds', sentences, spec, signal);
}

async function* askAboutRounds(
  more: number,
  rule: string,
  sentences: readonly Sentence[],
  { provider, counts, human }: Asking,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalDecision> {
  const request: ApprovalRequest = {
    callId: `more-rounds-${counts.rounds}`,
    token: newToken(),
    tool: 'more_rounds',
    subject: `${more} more ${more === 1 ? 'question' : 'questions'} to ${provider.model}`,
    rule,
    reason: spoken(sentences),
    sentences,
    scopes: ['once', 'run'],
  };
  const answer = human.approve(request, signal);
  yield { type: 'approval_request', request };
  const decision = await answer;
  yield { type: 'approval_response', callId: request.callId, decision };
  signal.throwIfAborted();
  return decision;
}
