/** Requests that a skill must or must not answer. */
export { type ColumnFigures, figuresOf } from './benchmark.ts';
export { draftTriggers } from './draftTriggers.ts';
export {
  type MeasuredSkill,
  runTriggers,
  type Share,
  type TriggerFigures,
  type TriggerOptions,
  type TriggerResult,
} from './runTriggers.ts';
export {
  readTriggers,
  refuseLinkOut,
  splitText,
  type Trigger,
  triggerFileOf,
  triggerText,
} from './triggerFile.ts';
