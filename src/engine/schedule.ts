/** Runs that start by the clock. */
export {
  type ClockPlaces,
  callerFor,
  clockEntry,
  clockHere,
  keepWithEntry,
  removeEntry,
} from './schedule/clock.ts';
export { type ClockEntry, shownEntry } from './schedule/clockEntry.ts';
export { dueTime, isRunning, runIfDue } from './schedule/due.ts';
export { nextTime, parseRule } from './schedule/rule.ts';
export {
  type ClockKind,
  checkRequest,
  type Missed,
  needsPerson,
  resumed,
  type Schedule,
  Schedules,
} from './schedule/schedules.ts';

export const importDue = () => import('./schedule/due.ts');
export const importRule = () => import('./schedule/rule.ts');
export const importSchedules = () => import('./schedule/schedules.ts');
