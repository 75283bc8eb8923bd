/** Adds up the results of evals, with how sure the figures are. */
import { type Configuration, configurations } from './evalWorld.ts';
import { type EvalResult, hasPassed } from './runEval.ts';
import { type Share, shareOf } from './runTriggers.ts';

/** The runs of one configuration with one model. */
export interface ColumnFigures {
  /** Runs that passed whole. Undefined if none was graded. */
  runs: Share | undefined;
  /** Evals of which all runs passed. */
  always: Share | undefined;
  /** Means of the graded runs. The cost is undefined if one is not known. */
  tokens: number;
  cost: number | undefined;
  ms: number;
}

export interface ModelFigures extends Partial<Record<Configuration, ColumnFigures>> {
  model: string;
  /** With the skill less without it, from -1 to 1. Undefined if either is missing. */
  gain: number | undefined;
  /** The same less the earlier version. Undefined if either is missing. */
  change?: number | undefined;
}

export interface SuiteFigures {
  models: readonly ModelFigures[];
  /** Expectations that every run meets, with the skill and without it: they say nothing of it. */
  saysNothing: readonly string[];
  /** Expectations that some runs of an eval with the skill meet and some do not. */
  flaky: readonly { text: string; passed: number; n: number }[];
}

/** Returns the figures of one skill's results. */
export function figuresOf(results: readonly EvalResult[]): SuiteFigures {
  const graded = results.filter(({ status }) => status === 'graded');
  const models = [...new Set(graded.map(({ model }) => model))].map((model): ModelFigures => {
    const own = graded.filter(result => result.model === model);
    const columns = Object.fromEntries(
      configurations.flatMap(name => {
        const column = own.filter(({ configuration }) => configuration === name);
        return column.length > 0 ? [[name, columnOf(column)]] : [];
      }),
    ) as Partial<Record<Configuration, ColumnFigures>>;
    const [mine, plain, old] = configurations.map(name => columns[name]?.runs);
    const change = difference(mine, old);
    return { model, ...columns, gain: difference(mine, plain), ...(change !== undefined && { change }) };
  });
  return { models, saysNothing: meaningless(graded), flaky: flakyOf(graded) };
}

const difference = (one: Share | undefined, other: Share | undefined): number | undefined =>
  one && other ? one.passed / one.n - other.passed / other.n : undefined;

function columnOf(results: readonly EvalResult[]): ColumnFigures {
  const evals = [...new Set(results.map(result => result.eval))];
  const costs = results.flatMap(({ cost }) => (cost === undefined ? [] : [cost]));
  return {
    runs: shareOf(results, hasPassed),
    always: shareOf(evals, one => results.every(result => result.eval !== one || hasPassed(result))),
    tokens: mean(results.map(({ tokens }) => tokens)),
    cost: costs.length === results.length ? mean(costs) : undefined,
    ms: mean(results.map(({ durationMs }) => durationMs)),
  };
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** Returns the grades of each expectation of each eval, by configuration and model. */
function gradesBy(
  results: readonly EvalResult[],
  keyOf: (result: EvalResult, text: string) => string,
): Map<string, { text: string; passed: boolean[] }> {
  const all = new Map<string, { text: string; passed: boolean[] }>();
  for (const result of results)
    for (const { text, passed } of result.graded) {
      const key = keyOf(result, text);
      const known = all.get(key) ?? { text, passed: [] };
      known.passed.push(passed === true);
      all.set(key, known);
    }
  return all;
}

function meaningless(results: readonly EvalResult[]): string[] {
  const key = ({ eval: { id } }: EvalResult, text: string): string => JSON.stringify([id, text]);
  const [mine, plain] = configurations.map(name =>
    gradesBy(
      results.filter(({ configuration }) => configuration === name),
      key,
    ),
  );
  return [...(mine ?? [])].flatMap(([name, { text, passed }]) => {
    const other = plain?.get(name);
    return other && [...passed, ...other.passed].every(Boolean) ? [text] : [];
  });
}

function flakyOf(results: readonly EvalResult[]): SuiteFigures['flaky'] {
  const mine = results.filter(({ configuration }) => configuration === 'with_skill');
  const all = gradesBy(mine, ({ eval: { id }, model }, text) => JSON.stringify([id, model, text]));
  return [...all.values()].flatMap(({ text, passed }) => {
    const count = passed.filter(Boolean).length;
    return count > 0 && count < passed.length ? [{ text, passed: count, n: passed.length }] : [];
  });
}
