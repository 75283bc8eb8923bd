/** Evals of a skill: their files, cases, runs and budget. */
export { addEval, addTrigger } from './addCase.ts';
export { caseFromRun, type RunCase } from './caseFromRun.ts';
export type { Check } from './checks.ts';
export { type EarlierVersion, previousVersion, versionIn } from './earlierVersion.ts';
export { type EvalCase, evalFileOf, inputsDigest, readEval, readEvals } from './evalFile.ts';
export { asInstalled, type Configuration, configurations, type EvaluatedSkill } from './evalWorld.ts';
export { expectedCost } from './expectedCost.ts';
export { judgeFileOf, recordedRuns } from './recordings.ts';
export { type EvalResult, hasPassed, nothing, type OpenEngine, problemsOf } from './runEval.ts';
export {
  judgeBeside,
  type LiveOptions,
  liveSuite,
  plannedRuns,
  replaySuite,
  type SkillEvals,
} from './runSuite.ts';
export {
  type EvalJob,
  type JobResult,
  type LocalParts,
  localSlots,
  runJob,
  type Slots,
  type SuiteTerms,
} from './slots.ts';
export type { StaleReason } from './strictReplay.ts';
export { type EvalModel, SuiteBudget } from './suiteBudget.ts';
