/** Stored runs, the log, spending and transcripts. */
export { LogReader, type LogRecord, type SkillEndRecord } from './records/logFile.ts';
export type { StoredAttachments } from './records/runAttachments.ts';
export { runPath } from './records/runFile.ts';
export { RunHistory } from './records/runHistory.ts';
export {
  type RunSummary,
  readSummary,
  type StoredOutcome,
  type StoredRun,
  titleOf,
} from './records/runSummary.ts';
export {
  type ExportFormat,
  exportedConversation,
  figuresOf,
  inputText,
  outcomeText,
  partsOf,
  type RunPart,
  requestOf,
  skippedText,
  timeText,
} from './records/runText.ts';
export { readSkillUse } from './records/skillUse.ts';
export { readSpending, type Spending, type Spent, type SpentBy } from './records/spending.ts';
export { joinedDeltas, messagesFrom, paced, withoutCutImages } from './records/transcript.ts';

export const importLogFile = () => import('./records/logFile.ts');
export const importRunFile = () => import('./records/runFile.ts');
export const importRunHistory = () => import('./records/runHistory.ts');
export const importRunSummary = () => import('./records/runSummary.ts');
export const importRunText = () => import('./records/runText.ts');
