/** Keeps a plan within its limits, over all of its steps and restarts. */

import { TelosError } from '@telos/engine/errors';
import { hasPrice, type NamedModel, unpriced } from '@telos/engine/providers';
import type { Budget } from '@telos/engine/run';
import type { PlanLimits } from '@telos/protocol/plan';
import type { Usage } from '@telos/protocol/run';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import { addedUsage } from '@telos/protocol/usage';
import type { PlanState } from './planState.ts';

/** What a plan has used, as its journal has it, and what a person added to its limits. */
export type Spent = Pick<PlanState, 'usage' | 'workedMs' | 'added'>;

/** Returns why no further model call may be made, as sentences; undefined while the plan is within its limits. */
export function overLimit(
  limits: PlanLimits,
  spent: Spent,
  running: readonly Usage[] = [],
): Sentence[] | undefined {
  const usage = running.reduce<Usage | undefined>((sum, one) => addedUsage(sum, one), spent.usage);
  const cost = usage === undefined || usage.cost === 'unknown' ? 0 : usage.cost;
  const tokens = usage
    ? usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
    : 0;
  const rows = [
    [
      'maxCost',
      cost,
      (used: number, most: number) => sentence('{0} of {1}', `$${used.toFixed(4)}`, `$${most}`),
    ],
    ['maxTokens', tokens, (used: number, most: number) => sentence('{0} of {1} tokens', used, most)],
    [
      'maxMinutes',
      spent.workedMs / 60_000,
      (used: number, most: number) => sentence('{0} of {1} minutes', used.toFixed(1), most),
    ],
  ] as const;
  for (const [name, used, said] of rows) {
    const set = limits[name];
    if (set === undefined) continue;
    const most = set + (spent.added[name] ?? 0);
    if (used < most) continue;
    return [
      sentence('The budget of this plan is used up: {0}.', said(used, most)),
      sentence('Add to it to go on with the same plan.'),
    ];
  }
  return undefined;
}

const limitOfCost = sentence('{0} in the plan', 'limits.maxCost');

/** The budget of a step. `close` is called once the journal has what the step has used. */
export interface StepBudget extends Budget {
  close(): void;
}

/** Gives each step a budget that also knows what the others use at the same time. */
export class PlanBudget {
  readonly #limits: () => PlanLimits;
  readonly #spent: () => Spent;
  readonly #running = new Set<{ usage?: Usage }>();

  /** Both functions return what holds now. */
  constructor(limits: () => PlanLimits, spent: () => Spent) {
    this.#limits = limits;
    this.#spent = spent;
  }

  /** `storyOver` returns why the step's story may not go on, given what the step has used and the next model; undefined while it may. */
  step(storyOver?: (used: Usage | undefined, next: NamedModel) => Sentence[] | undefined): StepBudget {
    const own: { usage?: Usage } = {};
    this.#running.add(own);
    return {
      check: async next => {
        const isPriced = hasPrice(next) && own.usage?.cost !== 'unknown';
        const isBlind = this.#limits().maxCost !== undefined && !isPriced;
        const over = isBlind ? unpriced(next, limitOfCost) : (this.over() ?? storyOver?.(own.usage, next));
        if (over) throw new TelosError('budget', over);
        return [];
      },
      add: usage => {
        if (usage) own.usage = addedUsage(own.usage, usage);
        return [];
      },
      close: () => void this.#running.delete(own),
    };
  }

  /** Returns why no further model call may be made; undefined while the plan is within its limits. */
  over(): Sentence[] | undefined {
    const running = [...this.#running].flatMap(({ usage }) => usage ?? []);
    return overLimit(this.#limits(), this.#spent(), running);
  }

  /** The same as one text. */
  get overText(): string | undefined {
    const over = this.over();
    return over && spoken(over);
  }
}
