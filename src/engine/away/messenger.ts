/** Defines how a question reaches a user who is elsewhere, and what comes back. Discord, ntfy, a webhook and Telegram are such ways. */
import { describeWhole } from '@telos/protocol/describe';
import type { ApprovalDecision, ApprovalRequest } from '@telos/protocol/run';
import { exactText } from '@telos/protocol/text';
import { escapeInvisible } from '../files/plainText.ts';

/** Never `always`: that is a choice for the machine itself. */
export type AwayAnswer = 'once' | 'run' | 'no';

export interface AwayQuestion {
  /** Without the values of secrets. */
  request: ApprovalRequest;
  /** What may be answered besides no. */
  scopes: readonly Exclude<AwayAnswer, 'no'>[];
}

export interface Messenger {
  /** Names it in a sentence. */
  readonly name: string;
  /**
   * Puts the question, calls `sent` once the wire has accepted it, and resolves to the answer; undefined if there was none while it held. A
   * second answer, a stranger's and one to a question that has changed count for nothing. Throws if the wire does not take it.
   */
  ask(question: AwayQuestion, signal: AbortSignal, sent?: () => void): Promise<AwayAnswer | undefined>;
}

/** Returns the decision for an answer that came by this way. */
export const decisionOf = (answer: AwayAnswer, refusal: string): ApprovalDecision =>
  answer === 'no' ? { allow: false, reason: refusal } : { allow: true, scope: answer };

/** Returns true for a question that a yes or a no answers. A form and a question of the skill need words, which no messenger takes. */
export const isYesOrNo = ({ form, choices, scopes }: ApprovalRequest): boolean =>
  !form && !choices && scopes.includes('once');

/** Begins each line of what is shown letter by letter, so that no command can pose as words of ours. */
const bar = '│ ';

/** Returns all that the user decides about, exactly. */
export const wordsOf = (request: ApprovalRequest): string =>
  describeWhole(request, text => exactText(text).replace(/^/gm, bar))
    .map(part => (part.startsWith(bar) ? part : escapeInvisible(part)))
    .join('\n');
