/** Runs all evals of skills: from their recordings, or with models, within one budget. */
import { pricedModels } from '@telos/engine/providers';
import type { EvalCase } from './evalFile.ts';
import { type Configuration, configurations, type EvaluatedSkill } from './evalWorld.ts';
import { recordedRuns } from './recordings.ts';
import { type EvalResult, type EvalRun, nothing } from './runEval.ts';
import type { EvalJob, JobResult, Slots, SuiteTerms } from './slots.ts';
import type { EvalModel } from './suiteBudget.ts';

/** A skill with its evals. */
export interface SkillEvals {
  one: EvaluatedSkill;
  /** A version of it that runs too. Recordings of one are not played without it. */
  earlier?: EvaluatedSkill | undefined;
  evals: readonly EvalCase[];
}

/**
 * Yields the result of each recorded run. An eval that nothing is recorded of, with the skill or with its earlier version, is stale.
 * Throws the errors of `slots`.
 */
export async function* replaySuite(
  all: readonly SkillEvals[],
  slots: Slots,
  signal: AbortSignal,
): AsyncGenerator<EvalResult> {
  const stale: JobResult[] = [];
  const jobs: EvalJob[] = [];
  const next = (): number => stale.length + jobs.length;
  for (const { one, earlier, evals } of all) {
    const played = configurations.filter(name => name !== 'old_skill' || earlier);
    const recorded = recordedRuns(one, evals).filter(({ run }) => played.includes(run.configuration));
    for (const each of evals) {
      const own = recorded.filter(({ run }) => run.eval === each);
      for (const { run, file } of own)
        jobs.push({ place: next(), run: { ...run, earlier }, from: { recording: file } });
      for (const configuration of played) {
        const isKnown = own.some(({ run }) => run.configuration === configuration);
        if (isKnown || configuration === 'without_skill') continue;
        const run: EvalRun = { one, earlier, eval: each, configuration, run: 1, model: '' };
        const result: EvalResult = { ...nothing(run), status: 'stale', stale: { reason: 'none' } };
        stale.push({ place: next(), result });
      }
    }
  }
  const terms: SuiteTerms = { judge: undefined, maxCost: undefined, keeps: false };
  yield* inOrder(slots.run(jobs, terms, signal), stale);
}

export interface LiveOptions extends SuiteTerms {
  /** The models that run the evals, in their order. */
  models: readonly EvalModel[];
  /** How often each eval is run, where it does not say it itself. */
  runs: number;
  withBaseline: boolean;
}

/** Returns the name of a model beside those that run, so that none grades its own work. Undefined if none is known. */
export function judgeBeside(models: readonly EvalModel[]): string | undefined {
  const [first] = models;
  if (!first) return undefined;
  const known = pricedModels(first.provider.name);
  const place = known.indexOf(first.provider.model);
  return [known[place - 1], known[place + 1]].find(
    name => name !== undefined && models.every(({ provider }) => provider.model !== name),
  );
}

/** Returns the runs that are wanted, in their order. */
export const plannedRuns = (
  all: readonly SkillEvals[],
  { models, runs, withBaseline }: Pick<LiveOptions, 'models' | 'runs' | 'withBaseline'>,
): (EvalRun & { answers: EvalModel })[] =>
  all.flatMap(({ one, earlier, evals }) =>
    evals.flatMap(each =>
      models.flatMap(answers =>
        configurationsFor(withBaseline, earlier).flatMap(configuration =>
          Array.from({ length: each.runs ?? runs }, (_, index) => ({
            one,
            earlier,
            eval: each,
            configuration,
            answers,
            run: index + 1,
            model: answers.provider.model,
          })),
        ),
      ),
    ),
  );

const configurationsFor = (
  withBaseline: boolean,
  earlier: EvaluatedSkill | undefined,
): readonly Configuration[] =>
  configurations.filter(
    name => name === 'with_skill' || (name === 'old_skill' ? earlier !== undefined : withBaseline),
  );

/**
 * Runs the evals with models. Yields each result. The last one is unfinished where the budget or a model ends it. Throws the errors of
 * `slots`.
 */
export async function* liveSuite(
  all: readonly SkillEvals[],
  options: LiveOptions,
  slots: Slots,
  signal: AbortSignal,
): AsyncGenerator<EvalResult> {
  const jobs = plannedRuns(all, options).map(
    ({ answers, ...run }, place): EvalJob => ({
      place,
      run,
      from: { answers, runs: run.eval.runs ?? options.runs },
    }),
  );
  yield* inOrder(slots.run(jobs, options, signal));
}

/**
 * Yields results in the order of the suite, each once all before it are there; at the end those that are left, and what is unfinished
 * last. `known` are results that need no slot. On an error, what is done comes before it.
 */
async function* inOrder(
  ended: AsyncIterable<JobResult>,
  known: readonly JobResult[] = [],
): AsyncGenerator<EvalResult> {
  const waiting = new Map(known.map(({ place, result }) => [place, result]));
  const unfinished: EvalResult[] = [];
  let next = 0;
  const ready = function* (): Generator<EvalResult> {
    for (let result = waiting.get(next); result; result = waiting.get(next)) {
      waiting.delete(next++);
      yield result;
    }
  };
  const left = (): EvalResult[] => [
    ...[...waiting].sort(([place], [other]) => place - other).map(([, result]) => result),
    ...unfinished,
  ];
  let failure: { error: unknown } | undefined;
  const results = ended[Symbol.asyncIterator]();
  try {
    for (;;) {
      yield* ready();
      const one = await results.next().catch((error: unknown) => {
        failure = { error };
        return undefined;
      });
      if (!one || one.done) break;
      const { place, result } = one.value;
      if (result.status === 'unfinished') unfinished.push(result);
      else waiting.set(place, result);
    }
    yield* left();
  } finally {
    await results.return?.();
  }
  if (failure) throw failure.error;
}
