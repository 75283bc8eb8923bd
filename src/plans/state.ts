/** The files of a plan and the state that they give. */
export { checkFile } from './attemptWords.ts';
export { answeredIds } from './inbox.ts';
export { followJournal, linesOf, planEvent, readJournal, shortened } from './journal.ts';
export { withChoices } from './parkedQuestions.ts';
export { PlanBudget } from './planBudget.ts';
export { boundLines, describeBound, digestOf, ownName, printCard } from './planCard.ts';
export { isPlanName, PlanFolder } from './planFolder.ts';
export { lookAt, type PlanLook } from './planLook.ts';
export { reportOf } from './planReport.ts';
export { type PlanSettings, parseSettings } from './planSettings.ts';
export { foldPlan, interruptedWhy, type PlanState } from './planState.ts';
export { boxLines, isStoryId, parsePrd } from './prdFile.ts';
export { foldStory, noProgress, type OpenAttempt, type StoryState } from './storyState.ts';

export const importJournal = () => import('./journal.ts');
