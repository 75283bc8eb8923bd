/** Reads what workers say of their jobs. Of that, only what such a job can come to gets into a plan's journal. */

import { planEvent, shortened } from '@telos/plans/state';
import type { AttemptStatus, PlanEvent } from '@telos/protocol/plan';
import type { RunError, Usage } from '@telos/protocol/run';
import type { WorkEnd } from './storyJobs.ts';

/** Facts that a worker comes to. All others are the plan's own. */
const ofWork = new Set<PlanEvent['type']>([
  ...(['step_started', 'step_ended', 'snapshot', 'check_ended', 'tamper', 'verdict'] as const),
  ...(['learned', 'advised', 'question_parked'] as const),
]);

export const isFactOfWork = ({ type }: Pick<PlanEvent, 'type'>): boolean => ofWork.has(type);

/** Returns the fact, or undefined if no job of that attempt comes to it. */
export function workFact(given: unknown, story: string, attempt: number): PlanEvent | undefined {
  const fact = planEvent(given);
  if (!fact || !isFactOfWork(fact) || JSON.stringify(fact).length > mostText) return undefined;
  const event = shortened(fact);
  switch (event.type) {
    case 'step_started':
    case 'step_ended': {
      const isOwn = event.story === story && event.key.startsWith(`${story}.a${attempt}.`);
      const usage = 'usage' in event ? event.usage : undefined;
      return isOwn && (usage === undefined || isUsage(usage)) ? event : undefined;
    }
    case 'question_parked':
      return event.question.story === story && event.question.id.startsWith(story) ? event : undefined;
    case 'snapshot':
      return isOf(event, story, attempt) && [event.commit, event.tree].every(isHash) ? event : undefined;
    default:
      return isOf(event, story, attempt) ? event : undefined;
  }
}

/** In characters. */
const mostText = 256 * 1024;

const isOf = (event: PlanEvent, story: string, attempt: number): boolean =>
  'attempt' in event && event.story === story && event.attempt === attempt;

const isHash = (value: unknown): value is string =>
  typeof value === 'string' && /^[\da-f]{40}(?:[\da-f]{24})?$/.test(value);

function isUsage({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, cost }: Usage): boolean {
  const counts = [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens];
  const numbers = cost === 'unknown' ? counts : [...counts, cost];
  return numbers.every(value => Number.isFinite(value) && value >= 0);
}

const statuses = new Set<AttemptStatus>([
  ...(['denied', 'no-verdict', 'error', 'timeout', 'no-change', 'interrupted'] as const),
]);
const codes = new Set<RunError['code']>([
  'rate_limit',
  'budget',
  'auth',
  'config',
  'provider',
  'no_answer',
  'internal',
]);

/** Returns what a worker says at the end, or undefined if it is nothing that one says. */
export function workEnd(given: unknown): WorkEnd | undefined {
  const { status, details, fatal, left } = Object(given) as Partial<WorkEnd>;
  const isWhole =
    (status === undefined || statuses.has(status)) &&
    typeof details === 'string' &&
    (left === undefined || isHash(left)) &&
    (fatal === undefined ||
      (status !== undefined && codes.has(fatal?.code) && typeof fatal.message === 'string'));
  if (!isWhole) return undefined;
  const wait = fatal?.retryAfterMs;
  return shortened({
    details,
    ...(status !== undefined && { status }),
    ...(left !== undefined && { left }),
    ...(fatal && {
      fatal: {
        code: fatal.code,
        message: fatal.message,
        ...(typeof wait === 'number' && wait >= 0 && wait < 86_400_000 && { retryAfterMs: wait }),
      },
    }),
  });
}
