/** Stops a run before its next model call if the run or the day has reached a limit. */

import type { Usage } from '@telos/protocol/run';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import type { DaySpending } from '@telos/protocol/usage';
import { type BudgetName, budgetVariables, type Config } from '../config.ts';
import { reasonOf, TelosError } from '../core/errors.ts';
import type { Budget } from '../core/ports.ts';
import { hasPrice, type NamedModel, unpriced } from '../providers/models.ts';
import {
  figureIn,
  LogReader,
  type LogRecord,
  type ModelCallRecord,
  type SkillEndRecord,
} from '../records/logFile.ts';

interface Amounts {
  /** In US dollars, as far as known. */
  cost: number;
  /** All tokens that a model has read and written. */
  tokens: number;
  minutes: number;
}

type BudgetConfig = Pick<Config, 'budget' | 'origins' | 'dataDir'>;

/** The run whose budget it is. */
interface BudgetOwner {
  /** Under which its use is logged while it goes on. */
  readonly id: string;
  /** How long a person was waited for, in milliseconds. It is not the run's time. */
  readonly waited: { readonly ms: number };
}

/** Returns the budget of one run, which starts now. Undefined if nothing is limited. */
export function openBudget(config: BudgetConfig, owner?: BudgetOwner): Budget | undefined {
  return Object.keys(config.budget).length > 0 ? new RunBudget(config, owner) : undefined;
}

/** Returns one budget that keeps to all of them. Undefined if nothing is limited. */
export function joinedBudget(budgets: readonly (Budget | undefined)[]): Budget | undefined {
  const [first, ...others] = budgets.filter(budget => budget !== undefined);
  if (!first || others.length === 0) return first;
  const all = [first, ...others];
  return {
    check: async next => (await Promise.all(all.map(budget => budget.check(next)))).flat(),
    add: usage => all.flatMap(budget => budget.add(usage)),
  };
}

const limits: readonly { name: BudgetName; amount: keyof Amounts; perDay: boolean }[] = [
  { name: 'maxCost', amount: 'cost', perDay: false },
  { name: 'maxTokens', amount: 'tokens', perDay: false },
  { name: 'maxMinutes', amount: 'minutes', perDay: false },
  { name: 'maxCostPerDay', amount: 'cost', perDay: true },
  { name: 'maxTokensPerDay', amount: 'tokens', perDay: true },
  { name: 'maxMinutesPerDay', amount: 'minutes', perDay: true },
];

class RunBudget implements Budget {
  readonly #config: BudgetConfig;
  readonly #owner: BudgetOwner | undefined;
  readonly #started = performance.now();
  readonly #today: DayUse | undefined;
  readonly #said = new Set<string>();
  #cost = 0;
  #tokens = 0;
  /** True once an answer has cost an amount that is not known. */
  #isUnpriced = false;

  constructor(config: BudgetConfig, owner: BudgetOwner | undefined) {
    this.#config = config;
    this.#owner = owner;
    const wantsDay = limits.some(({ name, perDay }) => perDay && config.budget[name] !== undefined);
    this.#today = wantsDay ? dayUseOf(config.dataDir) : undefined;
  }

  async check(next: NamedModel): Promise<Sentence[]> {
    const { budget, origins } = this.#config;
    const byCost = limits.find(({ name, amount }) => amount === 'cost' && budget[name] !== undefined);
    if (byCost && !Number.isNaN(budget[byCost.name]) && (this.#isUnpriced || !hasPrice(next)))
      throw new TelosError('budget', unpriced(next, placeOf(byCost.name, origins)));
    const minutes = (performance.now() - this.#started - (this.#owner?.waited.ms ?? 0)) / 60_000;
    const run: Amounts = { cost: this.#cost, tokens: this.#tokens, minutes };
    const { use, unknown, problem } = (await this.#today?.read(this.#owner?.id)) ?? nothingYet;
    for (const { name, amount, perDay } of limits) {
      const limit = budget[name];
      if (limit === undefined) continue;
      if (Number.isNaN(limit)) throw unreadable(name, origins);
      const used = run[amount] + (perDay ? use[amount] : 0);
      if (used >= limit) throw reached(name, amount, perDay, used, limit, origins);
    }
    if (problem) return this.#once(problem);
    if (unknown === 0 || budget.maxCostPerDay === undefined) return [];
    return this.#once(
      unknown === 1
        ? sentence('The cost of 1 run of today is unknown and does not count towards the budget of the day.')
        : sentence(
            'The cost of {0} runs of today is unknown and does not count towards the budget of the day.',
            unknown,
          ),
    );
  }

  add(usage: Usage | undefined): Sentence[] {
    const { maxCost, maxCostPerDay, maxTokens, maxTokensPerDay } = this.#config.budget;
    if (!usage) {
      const limited = [maxCost, maxCostPerDay, maxTokens, maxTokensPerDay].some(limit => limit !== undefined);
      return limited
        ? this.#once(sentence('The model does not report its tokens, so only the limit of minutes applies.'))
        : [];
    }
    this.#tokens += usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    if (usage.cost !== 'unknown') this.#cost += usage.cost;
    else {
      this.#isUnpriced = true;
      if (maxCost !== undefined || maxCostPerDay !== undefined)
        return this.#once(
          sentence('The cost of this model is unknown, so only the limits of tokens and minutes apply.'),
        );
    }
    return [];
  }

  #once(said: Sentence): Sentence[] {
    const text = spoken([said]);
    if (this.#said.has(text)) return [];
    this.#said.add(text);
    return [said];
  }
}

interface DaySoFar {
  use: Amounts;
  /** Number of runs with an unknown cost. */
  unknown: number;
  problem?: Sentence;
}

const nothingYet: DaySoFar = { use: { cost: 0, tokens: 0, minutes: 0 }, unknown: 0 };

/** Runs of one process share what was read of a log, which may be long. */
const days = new Map<string, DayUse>();
const mostDays = 16;

/** Returns the use of the day, by the logs of this data folder. */
function dayUseOf(dataDir: string): DayUse {
  const day = days.get(dataDir) ?? new DayUse(dataDir);
  days.delete(dataDir);
  days.set(dataDir, day);
  if (days.size > mostDays) days.delete(days.keys().next().value ?? '');
  return day;
}

/** Usage of the runs of today, including those of other processes. Of a run in progress, what it has used so far. */
export class DayUse {
  readonly #dataDir: string;
  #reader: LogReader | undefined;
  #sum: DaySoFar = nothingYet;
  /** Runs without an end in the log, by their id. */
  readonly #open = new Map<string, DaySoFar>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** Returns the usage and the limits of a day that are set, for a person. Throws errors of the file system. */
  async spending({
    maxCostPerDay,
    maxTokensPerDay,
    maxMinutesPerDay,
  }: Config['budget']): Promise<DaySpending> {
    const { use, unknown, problem } = await this.read();
    if (problem) throw new Error(spoken([problem]));
    const isSet = (limit: number | undefined): limit is number => limit !== undefined && !Number.isNaN(limit);
    return {
      ...use,
      unknownRuns: unknown,
      limits: {
        ...(isSet(maxCostPerDay) && { cost: maxCostPerDay }),
        ...(isSet(maxTokensPerDay) && { tokens: maxTokensPerDay }),
        ...(isSet(maxMinutesPerDay) && { minutes: maxMinutesPerDay }),
      },
    };
  }

  /** Leaves the run `except` out, as far as it goes on. Waits for a read in progress: two at once would add up the same lines. */
  read(except?: string): Promise<DaySoFar> {
    const reading = this.#last.then(() => this.#readOn(except));
    this.#last = reading;
    return reading;
  }

  /** Never rejects. */
  async #readOn(except: string | undefined): Promise<DaySoFar> {
    try {
      this.#reader ??= new LogReader(this.#dataDir, 'start');
      for await (const { records, isNew } of this.#reader.readOn()) {
        if (isNew) this.#sum = nothingYet;
        if (isNew) this.#open.clear();
        for (const record of records) this.#add(record);
      }
      return this.#sumWithout(except);
    } catch (error) {
      const why = reasonOf(error);
      return {
        ...this.#sumWithout(except),
        problem: sentence(
          "Today's log could not be read ({0}), so the budget of the day only counts this run.",
          why,
        ),
      };
    }
  }

  #sumWithout(except: string | undefined): DaySoFar {
    let sum = this.#sum;
    for (const [id, use] of this.#open) if (id !== except) sum = bothUses(sum, use);
    return sum;
  }

  #add(record: LogRecord): void {
    if (record.event !== 'model_call' && record.event !== 'skill_end') return;
    const { run_id: id } = record;
    const before = this.#open.get(id) ?? nothingYet;
    const { cost, minutes } = before.use;
    const now = useIn(record);
    if (record.event === 'model_call') {
      // Each record has the time of the run up to then.
      const sum = bothUses({ ...before, use: { ...before.use, minutes: 0 } }, now);
      this.#open.set(id, { ...sum, unknown: Math.min(sum.unknown, 1) });
      return;
    }
    this.#open.delete(id);
    // An unknown part does not hide what is known of the rest.
    const known = Math.max(now.use.cost, now.unknown > 0 ? cost : 0);
    this.#sum = bothUses(this.#sum, {
      ...now,
      use: { ...now.use, cost: known, minutes: now.use.minutes || minutes },
    });
  }
}

function useIn(record: ModelCallRecord | SkillEndRecord): DaySoFar {
  const isKnown = typeof record.cost === 'number';
  const read = figureIn(record.input_tokens) + figureIn(record.cache_read_tokens);
  const written = figureIn(record.output_tokens) + figureIn(record.cache_write_tokens);
  return {
    use: {
      cost: figureIn(record.cost),
      tokens: read + written,
      minutes: figureIn(record.duration_s) / 60,
    },
    unknown: isKnown ? 0 : 1,
  };
}

const bothUses = (one: DaySoFar, other: DaySoFar): DaySoFar => ({
  use: {
    cost: one.use.cost + other.use.cost,
    tokens: one.use.tokens + other.use.tokens,
    minutes: one.use.minutes + other.use.minutes,
  },
  unknown: one.unknown + other.unknown,
});

function unreadable(name: BudgetName, origins: Config['origins']): TelosError {
  return new TelosError('config', [
    sentence(
      "The limit {0} is '{1}', which is not a number.",
      placeOf(name, origins),
      origins[name]?.value ?? '',
    ),
    sentence('Set it to a number such as 5, or remove it.'),
  ]);
}

function reached(
  name: BudgetName,
  amount: keyof Amounts,
  perDay: boolean,
  used: number,
  limit: number,
  origins: Config['origins'],
): TelosError {
  const place = placeOf(name, origins);
  const said = shown(used, limit, amount);
  return new TelosError(
    'budget',
    perDay
      ? [
          sentence('The budget of the day is used up: {0}.', said),
          sentence('Raise or remove the limit ({0}), or continue tomorrow.', place),
        ]
      : [
          sentence('The budget of this run is used up: {0}.', said),
          sentence('Raise or remove the limit ({0}), then ask again.', place),
        ],
  );
}

function shown(used: number, limit: number, amount: keyof Amounts): Sentence {
  switch (amount) {
    case 'cost':
      return sentence('{0} of {1}', `$${used.toFixed(4)}`, `$${limit}`);
    case 'tokens':
      return sentence('{0} of {1} tokens', used, limit);
    case 'minutes':
      return sentence('{0} of {1} minutes', used.toFixed(1), limit);
  }
}

/** Returns the place where a person changes the limit that is in force. */
function placeOf(name: BudgetName, origins: Config['origins']): string | Sentence {
  const { origin = 'default', file = '' } = origins[name] ?? {};
  switch (origin) {
    case 'flag':
      return `--${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;
    case 'setting':
      return sentence('the setting {0}', `telos.budget.${name}`);
    case '.env':
      return sentence('{0} in {1}', budgetVariables[name], file);
    default:
      return file || budgetVariables[name];
  }
}
