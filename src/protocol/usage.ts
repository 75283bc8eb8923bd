/** Describes what today's runs have used and what is left of the day's budget, in numbers and in words. */
import type { Usage } from './run.ts';
import { english, grouped, type Say } from './text.ts';

export interface DaySpending {
  /** In US dollars, as far as known. */
  cost: number;
  /** Number of runs with an unknown cost. */
  unknownRuns: number;
  tokens: number;
  minutes: number;
  /** The day's limits that are set, in US dollars, tokens and minutes. */
  limits: { cost?: number; tokens?: number; minutes?: number };
}

/** Returns for example `today $0.1200` and `$4.88 left today`. Each is left out if nothing was used or nothing is limited. */
export const describeDay = (day: DaySpending, say: Say = english): string[] => [
  ...describeUsed(day, say),
  ...describeLeft(day, say),
];

function describeUsed({ cost, unknownRuns }: DaySpending, say: Say): string[] {
  const known = cost > 0 ? [formatCost(cost)] : [];
  const unknown =
    unknownRuns > 0
      ? [unknownRuns === 1 ? say('1 run of unknown cost') : say('{0} runs of unknown cost', unknownRuns)]
      : [];
  const used =
    known.length > 0 && unknown.length > 0
      ? say('{0} and {1}', ...known, ...unknown)
      : [...known, ...unknown].join('');
  return used ? [say('today {0}', used)] : [];
}

/** Returns an empty list if the day has no limit. */
export function describeLeft({ cost, tokens, minutes, limits }: DaySpending, say: Say = english): string[] {
  const left: string[] = [];
  if (limits.cost !== undefined) left.push(formatCost(Math.max(0, limits.cost - cost)));
  if (limits.tokens !== undefined) left.push(say('{0} tokens', grouped(Math.max(0, limits.tokens - tokens))));
  if (limits.minutes !== undefined) {
    const rest = Math.max(0, Math.floor((limits.minutes - minutes) * 10) / 10);
    left.push(rest === 1 ? say('1 minute') : say('{0} minutes', rest));
  }
  return left.length > 0 ? [say('{0} left today', left.join(', '))] : [];
}

/** Formats US dollars as people read them: small amounts with the digits that matter. */
export function formatCost(dollars: number): string {
  if (dollars > 0 && dollars < 0.0001) return 'under $0.0001';
  return `$${dollars.toFixed(dollars > 0 && dollars < 1 ? 4 : 2)}`;
}

/** Formats an estimate in US dollars, in whole cents: "about $0.02", "under $0.01". */
export function roughCost(dollars: number, say: Say = english): string {
  if (dollars === 0) return say('nothing');
  return dollars < 0.01 ? say('less than {0}', '$0.01') : say('about {0}', `$${dollars.toFixed(2)}`);
}

/** Returns milliseconds as short words: "0.4 s", "12 s", "3 min 5 s". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 9_950) return `${Number((milliseconds / 1000).toFixed(1))} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const rest = seconds % 60;
  return rest ? `${Math.floor(seconds / 60)} min ${rest} s` : `${seconds / 60} min`;
}

export const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Returns the sum of both. The cost is unknown if a part of it is unknown. */
export function addedUsage(sum: Usage | undefined, usage: Usage): Usage {
  if (!sum) return usage;
  const known = sum.cost !== 'unknown' && usage.cost !== 'unknown';
  return {
    inputTokens: sum.inputTokens + usage.inputTokens,
    outputTokens: sum.outputTokens + usage.outputTokens,
    cacheReadTokens: sum.cacheReadTokens + usage.cacheReadTokens,
    cacheWriteTokens: sum.cacheWriteTokens + usage.cacheWriteTokens,
    cost: known ? Number(sum.cost) + Number(usage.cost) : 'unknown',
  };
}
