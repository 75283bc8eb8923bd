/** Runs all evals of skills: from their recordings, or with models, within one budget. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { pricedModels } from '../providers/models.ts';
import type { Provider, TokenCount } from '../providers/provider.ts';
import type { EvalCase } from './evalFile.ts';
import { type Configuration, configurations, type EvaluatedSkill } from './evalWorld.ts';
import { liveJudge, noJudge, recordedJudge } from './judge.ts';
import { forgetRuns, judgeFileOf, keepRecording, recordedRuns } from './recordings.ts';
import { type EvalResult, type EvalRun, liveEval, nothing, type OpenEngine, replayEval } from './runEval.ts';

/** A skill with its evals. */
export interface SkillEvals {
  one: EvaluatedSkill;
  evals: readonly EvalCase[];
}

export interface SuiteParts {
  config: Config;
  open: OpenEngine;
}

/** Yields the result of each recorded run. An eval that nothing is recorded of is stale. Throws the abort reason on abort. */
export async function* replaySuite(
  all: readonly SkillEvals[],
  parts: SuiteParts,
  signal: AbortSignal,
): AsyncGenerator<EvalResult> {
  for (const { one, evals } of all) {
    const recorded = recordedRuns(one, evals);
    for (const each of evals) {
      const own = recorded.filter(({ run }) => run.eval === each);
      for (const { run, file } of own) {
        const judge = recordedJudge(judgeFileOf(file));
        yield await replayEval(run, file, { ...parts, judge }, signal);
      }
      if (own.some(({ run }) => run.configuration === 'with_skill')) continue;
      const run: EvalRun = { one, eval: each, configuration: 'with_skill', run: 1, model: '' };
      yield { ...nothing(run), status: 'stale', stale: { reason: 'none' } };
    }
  }
}

/** A model with what an answer of it costs in US dollars. */
export interface EvalModel {
  provider: Provider;
  priceOf(tokens: TokenCount): number | 'unknown';
}

export interface LiveOptions {
  /** The models that run the evals, in their order. */
  models: readonly EvalModel[];
  /** The model that grades what no check does. Undefined grades nothing. */
  judge: EvalModel | undefined;
  /** How often each eval is run, where it does not say it itself. */
  runs: number;
  withBaseline: boolean;
  /** In US dollars, over all runs. */
  maxCost: number | undefined;
  /** Keeps the recordings in the skills' folders. */
  keeps: boolean;
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
  all.flatMap(({ one, evals }) =>
    evals.flatMap(each =>
      models.flatMap(answers =>
        configurationsFor(withBaseline).flatMap(configuration =>
          Array.from({ length: each.runs ?? runs }, (_, index) => ({
            ...{ one, eval: each, configuration, answers },
            ...{ run: index + 1, model: answers.provider.model },
          })),
        ),
      ),
    ),
  );

const configurationsFor = (withBaseline: boolean): readonly Configuration[] =>
  withBaseline ? configurations : ['with_skill'];

/**
 * Runs the evals with models. Yields each result. The last one is unfinished where the budget or a model ends it. Throws errors of the
 * file system, and the abort reason on abort.
 */
export async function* liveSuite(
  all: readonly SkillEvals[],
  options: LiveOptions,
  parts: SuiteParts,
  signal: AbortSignal,
): AsyncGenerator<EvalResult> {
  const budget = new SuiteBudget(options.maxCost);
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'telos-eval-')));
  const { judge } = options;
  const grader = judge && budget.over(judge);
  try {
    for (const [index, { answers, ...run }] of plannedRuns(all, options).entries()) {
      const file = join(folder, `${index}.jsonl`);
      const judged = judgeFileOf(file);
      const judging = grader ? liveJudge(grader, judged) : noJudge;
      const result = await liveEval(run, budget.over(answers), file, { ...parts, judge: judging }, signal);
      if (options.keeps && result.status === 'graded') {
        await keepRecording(run, { file, judged }, result.durationMs);
        const runs = run.eval.runs ?? options.runs;
        if (run.run === runs) await forgetRuns(run.one, run.eval, { ...run, runs });
      }
      yield result;
      if (result.status === 'unfinished') return;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What all runs have spent. A call is refused with TelosError `budget` once that has reached the limit. */
class SuiteBudget {
  readonly #limit: number | undefined;
  #spent = 0;

  /** `limit` is in US dollars. */
  constructor(limit: number | undefined) {
    this.#limit = limit;
  }

  /** Returns the model's provider, whose calls count. A call of unknown cost counts nothing. */
  over({ provider, priceOf }: EvalModel): Provider {
    const add = (tokens: TokenCount | undefined): void => {
      const cost = tokens ? priceOf(tokens) : 'unknown';
      if (cost !== 'unknown') this.#spent += cost;
    };
    const check = (): void => {
      if (this.#limit === undefined || this.#spent < this.#limit) return;
      throw new TelosError('budget', `The limit of $${this.#limit} for all runs is reached.`);
    };
    return {
      ...provider,
      async *streamCompletion(request, signal) {
        check();
        for await (const event of provider.streamCompletion(request, signal)) {
          if (event.type === 'done') add(event.usage);
          yield event;
        }
      },
    };
  }
}
