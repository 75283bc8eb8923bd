/** Adds up the usage of runs from the log: by day, agent, skill and model. */
import {
  dayOf,
  eachRecord,
  figureIn,
  type LogRecord,
  logDays,
  type SkillEndRecord,
  type WrittenUsage,
} from './logFile.ts';

export interface Spent {
  runs: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** In US dollars. `unknown` if the cost of any run is unknown. */
  cost: number | 'unknown';
  /** The part that is known. In US dollars. */
  knownCost: number;
  /** Number of runs with an unknown cost. */
  unknownRuns: number;
}

export interface SpentBy extends Spent {
  /**
   * A day as `2026-01-31`, an agent, a skill as `agent:skill`, or a model as `provider model`. `(context)` for questions about a
   * project's context.
   */
  name: string;
}

export interface Spending {
  /** First and last day of the period. */
  from: string;
  to: string;
  total: Spent;
  /** The last day first. */
  byDay: readonly SpentBy[];
  /** The highest cost first. Among unknown costs, the highest usage first. */
  byAgent: readonly SpentBy[];
  bySkill: readonly SpentBy[];
  byModel: readonly SpentBy[];
  /** Number of lines that are not records. */
  skippedLines: number;
}

/**
 * Sums up the last `days` days, including today, by the local calendar. Runs that asked no model are left out. A question about
 * which skill would be chosen counts as a run. Throws the error of the file system.
 */
export async function readSpending(dataDir: string, days: number, now = new Date()): Promise<Spending> {
  const dayBefore = (count: number): string =>
    dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - count));
  const [from, to] = [dayBefore(days - 1), dayBefore(0)];
  const tables = { day: new Table(), agent: new Table(), skill: new Table(), model: new Table() };
  const total = newSpent();
  const models = new Map<string, string>();
  let skippedLines = 0;
  for (const { day, file } of logDays(dataDir)) {
    // A run that ends after midnight has begun in the log of the day before.
    if (day < dayBefore(days) || day > to) continue;
    const skipped = await eachRecord(file, record => {
      noteModel(record, models);
      if (day < from || record.event !== 'skill_end' || !asksModel(record)) return;
      const agent = record.agent || (record.call ? `(${record.call.door})` : '-');
      add(total, record);
      add(tables.day.row(day), record);
      add(tables.agent.row(agent), record);
      add(tables.skill.row(record.skill ? `${agent}:${record.skill}` : agent), record);
      const { routing } = record;
      if (routing) add(tables.model.row(`${routing.provider} ${routing.model}`), routing);
      if (record.rounds > 0)
        add(tables.model.row(models.get(record.run_id) ?? '-'), routing ? without(record, routing) : record);
    });
    if (day >= from) skippedLines += skipped;
  }
  return {
    from,
    to,
    total,
    byDay: tables.day.rows().sort((one, other) => (one.name < other.name ? 1 : -1)),
    byAgent: tables.agent.rows().sort(dearestFirst),
    bySkill: tables.skill.rows().sort(dearestFirst),
    byModel: tables.model.rows().sort(dearestFirst),
    skippedLines,
  };
}

class Table {
  readonly #rows = new Map<string, SpentBy>();

  row(name: string): SpentBy {
    const row = this.#rows.get(name) ?? { name, ...newSpent() };
    this.#rows.set(name, row);
    return row;
  }

  rows(): SpentBy[] {
    return [...this.#rows.values()];
  }
}

const newSpent = (): Spent => ({
  runs: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cost: 0,
  knownCost: 0,
  unknownRuns: 0,
});

function noteModel(record: LogRecord, models: Map<string, string>): void {
  const asked = record.event === 'skill_start' ? record : record.event === 'skill_end' && record.call;
  if (asked) models.set(record.run_id, `${asked.provider} ${asked.model}`);
}

const asksModel = ({ rounds, routing }: SkillEndRecord): boolean => rounds > 0 || routing !== undefined;

/** Returns the usage of the run's own model. */
function without(record: WrittenUsage, routing: WrittenUsage): WrittenUsage {
  const known = typeof record.cost === 'number' && typeof routing.cost === 'number';
  return {
    input_tokens: figureIn(record.input_tokens) - figureIn(routing.input_tokens),
    output_tokens: figureIn(record.output_tokens) - figureIn(routing.output_tokens),
    cache_read_tokens: figureIn(record.cache_read_tokens) - figureIn(routing.cache_read_tokens),
    cache_write_tokens: figureIn(record.cache_write_tokens) - figureIn(routing.cache_write_tokens),
    cost: known ? figureIn(record.cost) - figureIn(routing.cost) : 'unknown',
  };
}

function add(sum: Spent, record: WrittenUsage): void {
  sum.runs++;
  sum.inputTokens += figureIn(record.input_tokens);
  sum.outputTokens += figureIn(record.output_tokens);
  sum.cacheReadTokens += figureIn(record.cache_read_tokens);
  sum.cacheWriteTokens += figureIn(record.cache_write_tokens);
  if (typeof record.cost === 'number') sum.knownCost += figureIn(record.cost);
  else sum.unknownRuns++;
  sum.cost = sum.unknownRuns > 0 ? 'unknown' : sum.knownCost;
}

const tokensOf = (spent: Spent): number =>
  spent.inputTokens + spent.outputTokens + spent.cacheReadTokens + spent.cacheWriteTokens;

const dearestFirst = (one: SpentBy, other: SpentBy): number =>
  other.knownCost - one.knownCost || tokensOf(other) - tokensOf(one) || (one.name < other.name ? -1 : 1);
