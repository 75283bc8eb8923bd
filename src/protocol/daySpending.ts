/** What the runs of today have used and what is left of the day's budget, in numbers and in words. */

export interface DaySpending {
  /** US dollars, as far as they are known. */
  cost: number;
  /** Runs of which it is not known what they cost. */
  unknownRuns: number;
  tokens: number;
  minutes: number;
  /** The limits of a day that are set: US dollars, tokens, minutes. */
  limits: { cost?: number; tokens?: number; minutes?: number };
}

/** For example `today $0.1200` and `$4.88 left today`; nothing where nothing was used and nothing is limited. */
export const describeDay = (day: DaySpending): string[] => [...describeUsed(day), ...describeLeft(day)];

function describeUsed({ cost, unknownRuns }: DaySpending): string[] {
  const known = cost > 0 ? [formatCost(cost)] : [];
  const unknown = unknownRuns > 0 ? [`${count(unknownRuns, 'run')} of unknown cost`] : [];
  const used = [...known, ...unknown].join(' and ');
  return used ? [`today ${used}`] : [];
}

/** Nothing where the day has no limit. */
export function describeLeft({ cost, tokens, minutes, limits }: DaySpending): string[] {
  const left: string[] = [];
  if (limits.cost !== undefined) left.push(formatCost(Math.max(0, limits.cost - cost)));
  if (limits.tokens !== undefined) left.push(count(Math.max(0, limits.tokens - tokens), 'token'));
  if (limits.minutes !== undefined) {
    left.push(count(Math.max(0, Math.floor((limits.minutes - minutes) * 10) / 10), 'minute'));
  }
  return left.length > 0 ? [`${left.join(', ')} left today`] : [];
}

/** US dollars as people read them: small amounts with the digits that matter. */
export function formatCost(dollars: number): string {
  if (dollars > 0 && dollars < 0.0001) return 'under $0.0001';
  return `$${dollars.toFixed(dollars > 0 && dollars < 1 ? 4 : 2)}`;
}

const count = (value: number, noun: string): string =>
  `${value.toLocaleString('en-US')} ${noun}${value === 1 ? '' : 's'}`;
