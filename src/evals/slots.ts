/** The places in which the runs of a suite are made. Here: on this machine, one after the other. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { liveJudge, noJudge, recordedJudge } from './judge.ts';
import { forgetRuns, judgeFileOf, keepRecording } from './recordings.ts';
import { type EvalResult, type EvalRun, liveEval, type OpenEngine, replayEval } from './runEval.ts';
import { type EvalModel, SuiteBudget } from './suiteBudget.ts';

/** One run that is to be made: its recording is played, or a model answers. */
export interface EvalJob {
  /** Where it is in the suite, from 0. */
  place: number;
  run: EvalRun;
  from: { recording: string } | { answers: EvalModel; runs: number };
}

/** What holds for all jobs of a suite. */
export interface SuiteTerms {
  /** The model that grades what no check does. Undefined grades nothing. */
  judge: EvalModel | undefined;
  /** In US dollars, over all runs. */
  maxCost: number | undefined;
  /** Keeps the recordings in the skills' folders. */
  keeps: boolean;
}

export interface JobResult {
  place: number;
  result: EvalResult;
}

/** All that a suite knows of where its jobs are done. */
export interface Slots {
  /**
   * Yields what came of each job, in the order in which they end. Ends after a result that is unfinished: what a model or the budget
   * refuses once, it refuses again. Throws errors of the file system, and the abort reason on abort.
   */
  run(jobs: readonly EvalJob[], terms: SuiteTerms, signal: AbortSignal): AsyncIterable<JobResult>;
}

export interface LocalParts {
  config: Config;
  open: OpenEngine;
}

/** Returns the slots of this machine. */
export const localSlots = (parts: LocalParts): Slots => ({
  async *run(jobs, terms, signal) {
    const budget = new SuiteBudget(terms.maxCost);
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'telos-eval-')));
    try {
      for (const job of jobs) {
        const file = join(folder, `${job.place}.jsonl`);
        const result = await runJob(job, { ...parts, ...terms, budget, file }, signal);
        yield { place: job.place, result };
        if (result.status === 'unfinished') return;
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
});

/** What one job needs where it is done. */
export interface JobParts extends LocalParts, Pick<SuiteTerms, 'judge' | 'keeps'> {
  budget: SuiteBudget;
  /** Where a model's answers are recorded. */
  file: string;
}

/** Returns what came of a job. Throws errors of the file system, and the abort reason on abort. */
export async function runJob(
  { run, from }: EvalJob,
  { config, open, budget, judge, keeps, file }: JobParts,
  signal: AbortSignal,
): Promise<EvalResult> {
  if ('recording' in from) {
    const recorded = recordedJudge(judgeFileOf(from.recording));
    return replayEval(run, from.recording, { config, open, judge: recorded }, signal);
  }
  const judged = judgeFileOf(file);
  const judging = judge ? liveJudge(budget.over(judge), judged) : noJudge;
  const result = await liveEval(
    run,
    budget.over(from.answers),
    file,
    { config, open, judge: judging },
    signal,
  );
  if (keeps && result.status === 'graded') {
    await keepRecording(run, { file, judged }, result.durationMs);
    if (run.run === from.runs) await forgetRuns(run.one, run.eval, { ...run, runs: from.runs });
  }
  return result;
}
