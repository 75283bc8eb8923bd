/** Says which files of a repository a command may change by itself: those that only say what is recorded, and where it stands. */
import { addsOnlyPlainSettings } from './text/repositoryFiles.ts';

/** A file of a repository as a command leaves it. */
export interface GitFile {
  /** Below the folder of the repository, with `/`. */
  inner: string;
  /** Its bytes before the command; undefined if there was none, or if it was not read. */
  before: Buffer | undefined;
  /** Its bytes now. Null if it is removed, undefined if they were not read. */
  after: Buffer | null | undefined;
  isLink: boolean;
  isProgram: boolean;
  /** Whether a path, as the settings of this file name it, is a folder of the working folder. */
  isInWork(path: string): boolean;
}

/** What by its name starts no program and leads nowhere: history, branches, the index, and what commands of Git leave for the next one. */
const recordOnly =
  /^(?:objects\/.+|refs\/.+|reftable\/.+|logs\/.+|packed-refs|index|sharedindex\..+|HEAD|[A-Z_]+_HEAD|MERGE_(?:MSG|MODE|RR|AUTOSTASH)|AUTO_MERGE|SQUASH_MSG|\w*EDITMSG|BISECT_\w+|shallow|description|gc\.(?:log|pid)|info\/(?:exclude|refs|sparse-checkout)|rr-cache\/.+|lfs\/(?!config).+|(?:[\w-]+\/)*[\w.-]+\.lock)$/;

/** What a rebase, a row of commits or of patches has still to do. Only some of it can start a program. */
const unfinished = /^(?:rebase-merge|rebase-apply|sequencer)\/(.+)$/;
/** Lines that start a program, in a list of what is to be done. */
const startsProgram = /^[ \t]*(?:x|exec)\b/m;
const isList = /^(?:git-rebase-todo|todo)(?:\.backup)?$/;
/** A way to merge is the name of a program, but for those that Git has itself. */
const namesProgram = /^(?:strategy.*|gpg_sign_opt)$/;
const ownStrategy = /^(?:ort|recursive|resolve|octopus|ours|subtree)?\s*$/;
const programInOptions = /\b(?:strategy|gpg)/i;

/** Names by which Git starts programs or reads settings. */
const isObeyed =
  /^(?:config|config\.worktree|commondir|gitdir|hooks\/.+|info\/attributes|info\/grafts|objects\/info\/(?:http-)?alternates)$/;
const isSample = /^hooks\/[^/]+\.sample$/;
/** Folders in which other repositories lie: of submodules, and what is known of further work trees. */
const nested = /^(?:modules|worktrees)\/(.+)$/;

/** Whether a change of a repository lands without a question. */
export function landsInRepository(file: GitFile): boolean {
  const { inner, isLink, after } = file;
  if (isLink) return false;
  const parts = inner.split('/');
  // A repository can be made to begin at each part of the path, so the strictest reading counts.
  if (parts.some((_part, at) => actsAt({ ...file, inner: parts.slice(at).join('/') }, inner))) return false;
  if (nested.test(inner)) return true;
  return (
    isSample.test(inner) ||
    isConfig.test(inner) ||
    unfinished.test(inner) ||
    (recordOnly.test(inner) && !(inner === 'HEAD' && after === null))
  );
}

const isConfig = /^config(?:\.worktree)?$/;

/** Whether Git would start a program or be led elsewhere by the file, if a repository began where `inner` does. */
function actsAt(file: GitFile, whole: string): boolean {
  const { inner, after } = file;
  const step = unfinished.exec(inner)?.[1];
  if (step !== undefined) return stepActs(step, after);
  if (!isObeyed.test(inner) || isSample.test(inner) || onlyRecords(file, whole)) return false;
  if (/^worktrees\/[^/]+\/commondir$/.test(whole))
    return after !== null && after?.toString('latin1').trim() !== '../..';
  if (/^worktrees\/[^/]+\/gitdir$/.test(whole)) return false;
  if (isConfig.test(inner)) return !isPlainConfig(file, /^modules\/.+\/config$/.test(whole));
  return true;
}

function stepActs(step: string, after: GitFile['after']): boolean {
  if (after === null) return false;
  const text = after?.toString('latin1');
  if (namesProgram.test(step)) return text === undefined || step !== 'strategy' || !ownStrategy.test(text);
  if (isList.test(step)) return text === undefined || startsProgram.test(text);
  return step === 'opts' && (text === undefined || programInOptions.test(text));
}

/** Whether a branch or its log has a name that means more elsewhere, and is what it says. */
function onlyRecords({ after, isProgram }: GitFile, whole: string): boolean {
  if (!/^(?:modules\/.+\/|worktrees\/[^/]+\/)?(?:refs|logs)\//.test(whole) || isProgram) return false;
  if (after === null) return true;
  const lines = after?.toString('latin1').replace(/\n$/, '').split('\n') ?? ['?'];
  return lines.every(line => /^(?:[\da-f]{40,64}(?: [\da-f]{40,64} .*)?|ref: refs\/[\w./-]+)$/.test(line));
}

function isPlainConfig({ before, after, isInWork }: GitFile, isOfModule: boolean): boolean {
  if (!after) return false;
  const text = after.toString('latin1');
  const [line, tree] = /^\tworktree = ((?:\.\.\/)+[\w./-]+)\n/m.exec(text) ?? [];
  if (line === undefined || tree === undefined || !isOfModule)
    return addsOnlyPlainSettings(before?.toString('latin1') ?? '', text);
  // Where the files of a submodule are. Git writes that itself.
  return (
    isInWork(tree) &&
    addsOnlyPlainSettings((before?.toString('latin1') ?? '').replace(line, ''), text.replace(line, ''))
  );
}

/** A stored object, or a pack of them. */
const isStored = /^(?:modules\/.+\/)?objects\/(?:[\da-f]{2}\/[\da-f]{38,62}|pack\/pack-[\da-f]+\.\w+)$/;

/**
 * Whether a change of what is recorded never lands: an object has its content's name, so it neither changes nor is it missed by being there
 * twice. `isThere` says whether there was one, and `isLeft` whether the command left one.
 */
export const keepsRecorded = (inner: string, isThere: boolean, isLeft: boolean): boolean =>
  isStored.test(inner) && (isThere || !isLeft);
