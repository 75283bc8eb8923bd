/** The parts of an attempt, for who works on stories elsewhere. */
export { noteConflict } from './attempt.ts';
export { putOnBranch } from './attemptBranch.ts';
export { hasTests } from './attemptChanges.ts';
export { endAttempt, failed } from './attemptEnd.ts';
export { type AttemptCall, type AttemptEnd, type AttemptParts, AttemptScene } from './attemptScene.ts';
export { othersText } from './attemptWords.ts';
export {
  buildStoryOn,
  checkAndReview,
  goOnWith,
  joinSides,
  noteStart,
  type Sides,
  takeVerdict,
} from './attemptWork.ts';
export { endMarked } from './recover.ts';
export type { RoleText } from './roles.ts';
export { Slots } from './slots.ts';
export type { Runs } from './steps.ts';
export type { StorySlots } from './storySlots.ts';
