/** The bytes before each write, and the way back. */
export { hashOf } from './changes/changeFile.ts';
export { type ChangedFile, hasUndo, isBlocked, type RunChanges } from './changes/changeHistory.ts';
export { ChangeStore, type UndoResult } from './changes/changeStore.ts';
export type { RunBytes } from './changes/landingRecord.ts';
export { unifiedDiff } from './changes/lineDiff.ts';
export type { RestorePlan } from './changes/restore.ts';
export {
  contentsOf,
  type FolderContents,
  type FolderDifference,
  type FolderRecord,
  fileText,
  listFolder,
} from './files/folderRecord.ts';
export { type FolderState, keptDays, ReplacedFolders } from './files/replacedFolders.ts';
export { putAlong, recoverFolders, swapFolder } from './files/swapFolder.ts';
