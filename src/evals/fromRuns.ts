/** Habits of the user, and a skill written of one. */
export { readHabit } from './habitMaterial.ts';
export { declineHabit, type Habit, habitsIn, latestAsHabit, newHabit } from './habits.ts';
export {
  habitCost,
  habitRequest,
  keepSkill,
  proveSkill,
  type WrittenSkill,
  writeHabitSkill,
} from './skillFromRuns.ts';
