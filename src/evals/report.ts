/** Stored results of evals. */
export { type Compared, compareResults, escapedMarkup, htmlReport, junitReport } from './reports.ts';
export {
  latestResults,
  readResults,
  resultsName,
  resultsPlace,
  type SkillResults,
  type StoredResults,
  writeResults,
} from './resultFiles.ts';

export const importResultFiles = () => import('./resultFiles.ts');
