/** Reads and writes the disk: atomic writes, real paths, names of secrets, lines of JSON. */
export {
  createWhole,
  isLink,
  makeOwnFolders,
  replaceFile,
  type WriteKeeper,
  writeNew,
  writeOwn,
  writeWhole,
} from './files/atomicWrite.ts';
export { attachmentOf, type Handed, mediaTypeOf, mostBytes } from './files/attachedFile.ts';
export { globMatcher, isSkippedFolder, temporaryPrefix } from './files/globPattern.ts';
export { hooksInManifest, inPlugin } from './files/hostPlugin.ts';
export { jsonLine, linesFrom, readLines } from './files/jsonLines.ts';
export { isStillRunning, type ProcessIdentity, type ProcessRow, thisProcess } from './files/liveProcess.ts';
export { lockName } from './files/lockText.ts';
export { openRegularFile } from './files/openFile.ts';
export {
  describeFileError,
  errorCode,
  fileProblem,
  isInside,
  PathProblem,
  realIfThere,
  realPlace,
  repositoryAbove,
  statsAt,
} from './files/paths.ts';
export { escapeInvisible, looksBinary, shellWord } from './files/plainText.ts';
export { loadRegularFile, loadText, readGiven, readRegularFile, readText } from './files/regularFile.ts';
export { folded, isCode, isSensitive, obeyedAt } from './files/sensitiveNames.ts';
export {
  type Diagnostic,
  fileState,
  lockFile,
  readSettings,
  readToml,
  type TomlTable,
} from './files/settingsFile.ts';
export { decodeText, formOf } from './files/textEncoding.ts';

export const importAtomicWrite = () => import('./files/atomicWrite.ts');
export const importAttachedFile = () => import('./files/attachedFile.ts');
export const importSensitiveNames = () => import('./files/sensitiveNames.ts');
