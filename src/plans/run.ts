/** Makes, runs, steers and ends a plan. */
export { type Adopted, adopt, adoptedName, makeAdopted } from './adopt.ts';
export { type RunAnswer, type RunnerLine, type RunOrder, readOrder, runDetached } from './detachedRun.ts';
export { checkedOutBranch } from './finishPlan.ts';
export { notRunning } from './inbox.ts';
export { isUnanswered, mostRounds } from './interview.ts';
export { MachineSeal } from './machineSeal.ts';
export {
  type DemoFact,
  demoGoal,
  isDemoProject,
  makeDemoPlan,
  makeDemoProject,
  playingDemo,
} from './planDemo.ts';
export type { PlanRunEnd, PlanRunOptions, PlanWorkers } from './planRun.ts';
export { type RunnerLock, readRunner, takeRunner } from './runnerLock.ts';
export { wantedMarks, writeMarks } from './writeBack.ts';

export const importMachineSeal = () => import('./machineSeal.ts');
