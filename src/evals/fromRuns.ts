/** What the user asks for again and again, and a skill written of it. */
export { type HabitMaterial, readHabit } from './habitMaterial.ts';
export { declineHabit, fewestRuns, type Habit, habitsIn, latestAsHabit, newHabit } from './habits.ts';
export {
  habitCost,
  habitRequest,
  keepSkill,
  proveSkill,
  type WrittenSkill,
  writeHabitSkill,
} from './skillFromRuns.ts';
