/** Git as plans start it. */
export { Git, runnerMark } from './git.ts';
export { problemsOf, problemsOfPlan } from './gitProblems.ts';
export { personPlaces } from './gitProgram.ts';

export const importGitProblems = () => import('./gitProblems.ts');
