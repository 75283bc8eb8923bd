/**
 * Looks at what a command has changed, right after it. Files that other programs run or obey, and programs on the PATH, are put back at
 * once, unless the person wants to keep them: a command in the box could plant what runs outside of it.
 */

import { readlinkSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { RunEvent, ToolCall } from '../../protocol/run.ts';
import { type Sentence, sentence, spoken } from '../../protocol/text.ts';
import { hashOf } from '../changes/changeFile.ts';
import type { CommandWatch, KeptChange } from '../changes/commandWatch.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { isInside, realPlace, statsAt } from '../files/paths.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { folded, obeyedAt } from '../files/sensitiveNames.ts';
import type { Ask } from '../policy/decision.ts';
import { describesBuild, onYourPath, type ProgramFolders, programFolders } from '../policy/fileDefaults.ts';
import { addsOnlyPlainSettings, describesOnly } from '../scan/repositoryFiles.ts';
import { type ApprovalContext, askPerson } from './approval.ts';

export interface LookedAfter {
  /** Files that the command created, changed or removed. Absolute paths. */
  changedFiles: string[];
  /** What the model must know. */
  notes: string[];
}

export interface LookOptions {
  /** Changes that the person has kept, by `keptName`. No one is asked about them again, and those of this look are added. */
  kept?: Set<string> | undefined;
  /** Set while the command runs. What it changed is then recorded at its end. */
  goesOn?: boolean;
}

/** Returns the name of what is left in a file: its hash, the target of a link, or nothing. */
export const keptName = (path: string, left: string | null): string => JSON.stringify([path, left]);

const nameOf = (change: KeptChange): string => {
  const { path, after } = change;
  if (isUnread(change)) return keptName(path, stampOf(path) ?? null);
  return keptName(path, after && (after.link ?? after.sha256 ?? String(after.size)));
};

/** Whether a file is left whose content is not known: it is too large, or cannot be read. */
const isUnread = ({ after }: KeptChange): boolean =>
  after !== null && after.sha256 === undefined && after.link === undefined && !after.isFolder;

/** Returns what tells a file from another one in its place; undefined where there is none. */
function stampOf(path: string): string | undefined {
  const stats = statsAt(path);
  return stats && [stats.ino, stats.ctimeMs, stats.size].join();
}

interface Obeyed extends KeptChange {
  /** Who runs or obeys it, in a few words. */
  by: string;
  /** The folder of the PATH in which it is a program, or which it leads elsewhere. */
  onPath?: string;
}

/** Maximum number of files that are put back while the person is asked. More of them, and large ones, are put back after a no. */
const mostAtOnce = 500;
/** Maximum size of such a file. In bytes. */
const largestAtOnce = 4 * 1024 * 1024;
/** Whether what is left can be kept aside while the person is asked. */
const isSmall = (change: KeptChange): boolean =>
  (change.after?.size ?? 0) <= largestAtOnce && !isUnread(change);
/** Maximum number of files that a result names, and of those that a question names. */
const mostReported = 500;
const mostNamed = 5;

/**
 * Records what the command changed. `boxed` has its changes to files that others run or obey put back, unless the person agrees. Call
 * it when no process of the command lives any more.
 */
export async function* lookAfter(
  call: ToolCall,
  watch: CommandWatch,
  boxed: boolean,
  context: Pick<ApprovalContext, 'human' | 'policy'>,
  signal: AbortSignal,
  { kept, goesOn = false }: LookOptions = {},
): AsyncGenerator<RunEvent, LookedAfter> {
  const changes = await watch.end({ goesOn });
  if (!changes) return { changedFiles: [], notes: boxed ? [unchecked] : [] };
  const recorded = (except: ReadonlySet<string>): string[] =>
    goesOn ? [] : watch.record(except).slice(0, mostReported);
  const outside = boxed ? await withoutBorrowing(changes, watch.root) : [];
  const places = programFolders(context.policy.env);
  const all = outside.flatMap(change => obeyedBy(change, watch.root, context.policy, places));
  const obeyed = all.filter(change => !kept?.has(nameOf(change)));
  const seen = boxed ? yield* sightOf(watch) : [];
  if (obeyed.length === 0) return { changedFiles: recorded(new Set()), notes: seen };
  const names = namesOf(obeyed, watch.root);
  const soon = obeyed.length <= mostAtOnce ? obeyed.filter(isSmall) : [];
  const late = obeyed.filter(change => !soon.includes(change));
  await watch.keepNew(soon);
  const stuck = soon.length > 0 ? yield* putBack(soon, watch) : [];
  const question = questionAbout(obeyed, names);
  const asked: ToolCall = { id: `keep-${call.id}`, name: 'keep_changes', input: {} };
  const refusal = signal.aborted
    ? 'The run was cancelled.'
    : (yield* askPerson(asked, question, context, signal)).refusal;
  if (refusal === undefined) {
    const problems = await watch.putAgain(soon.filter(change => !stuck.includes(change)));
    yield* warnings('Not all that the command did was kept', problems);
    for (const change of obeyed) kept?.add(nameOf(change));
    return { changedFiles: recorded(new Set()), notes: seen };
  }
  if (late.length > 0) stuck.push(...(yield* putBack(late, watch)));
  const isStuck = new Set(stuck);
  const back = obeyed.filter(change => !isStuck.has(change));
  const changedFiles = recorded(new Set(back.map(({ path }) => path)));
  return { changedFiles, notes: [...notesOn({ back, stuck }, refusal, watch.root), ...seen] };
}

/** Warns of folders that could not be looked at. Returns what the model must know of these, and of those that were opened again. */
async function* sightOf({ unlooked, reopened, root }: CommandWatch): AsyncGenerator<RunEvent, string[]> {
  const named = (folders: readonly string[]): string =>
    namesOf(
      folders.map(path => ({ path })),
      root,
    );
  yield* warnings(
    'It is not known whether the command changed files there that other programs run',
    unlooked.map(path => `${path} could not be looked at.`),
  );
  return [
    ...(unlooked.length === 0 ? [] : [`${unchecked} This concerns ${named(unlooked)}.`]),
    ...(reopened.length === 0
      ? []
      : [`The command had closed ${named(reopened)}. It was opened again, to be looked at.`]),
  ];
}

/** Returns what the model must know after a no. It says of no file that it is as before unless that is so. */
function notesOn(
  { back, stuck }: { back: readonly Obeyed[]; stuck: readonly Obeyed[] },
  refusal: string,
  root: string,
): string[] {
  const left = namesOf(stuck, root);
  if (back.length === 0)
    return [
      `What the command did to ${left} could not be taken back, although ${byOf(stuck)} run or obey such files. The user has seen that. ${refusal}`,
    ];
  const note = `What the command did to ${namesOf(back, root)} was taken back: ${byOf(back)} run or obey such files. ${refusal}`;
  if (stuck.length === 0) return [note];
  return [note, `Not all of it could be taken back: ${left} is still changed. The user has seen that.`];
}

/** What the model must know of a command in the box that was not looked at. */
export const unchecked =
  'What the command changed could not be looked at, so it is not known whether it changed files that other programs run.';

/** Puts files back. Returns those that are not as before. */
async function* putBack(obeyed: readonly Obeyed[], watch: CommandWatch): AsyncGenerator<RunEvent, Obeyed[]> {
  const problems = await watch.putBack(obeyed);
  const isExact = problems.length > 0;
  const stuck = obeyed.filter(change => !isAsBefore(change, isExact));
  const [first] = stuck;
  if (first && problems.length === 0) problems.push(`${first.path} could not be restored.`);
  yield* warnings('Not every file that other programs run or obey is as it was before the command', problems);
  return stuck;
}

/** Whether what was there is there again. The bytes count only if `isExact`: to read many takes long. */
function isAsBefore({ path, before }: KeptChange, isExact: boolean): boolean {
  try {
    const stats = statsAt(path);
    if (!before || !stats) return !before && !stats;
    if (before.link !== undefined) return stats.isSymbolicLink() && readlinkSync(path) === before.link;
    const isOther =
      !stats.isFile() || stats.size !== before.size || ((stats.mode ^ before.mode) & 0o111) !== 0;
    return !isOther && (!isExact || hashOf(readRegularFile(path)) === before.sha256);
  } catch {
    return false;
  }
}

/** Yields at most one warning, with the first of the problems. */
function* warnings(what: string, [first, ...others]: readonly string[]): Generator<RunEvent, void> {
  if (first === undefined) return;
  const more = others.length > 0 ? ` (+${others.length})` : '';
  yield { type: 'notice', level: 'warning', message: `${what}: ${escapeInvisible(first)}${more}` };
}

/** Returns the changes but for clones that borrow from a repository of the folder: those are named where it is outside of the box. */
async function withoutBorrowing(changes: readonly KeptChange[], root: string): Promise<KeptChange[]> {
  const left: KeptChange[] = [];
  for (const change of changes) {
    const { path, before, after, bytes, isGit } = change;
    const isNew = isGit && before === null && after?.link === undefined;
    const text = isNew && path.endsWith('/objects/info/alternates') ? bytes?.toString('latin1') : undefined;
    if (text === undefined || !(await pointOutside(path, text, root))) left.push(change);
  }
  return left;
}

async function pointOutside(path: string, text: string, root: string): Promise<boolean> {
  const { outsideAlternates } = await import('../box/repositoryObjects.ts');
  const paths = outsideAlternates(Buffer.from(text, 'latin1').toString());
  if (!paths?.every(each => isInside(root, each)) || realPlace(path) !== path) return false;
  await writeWhole(path, paths.map(each => `${each}\n`).join(''));
  return true;
}

function obeyedBy(
  change: KeptChange,
  root: string,
  { role }: Pick<ApprovalContext['policy'], 'role'>,
  places: ProgramFolders,
): Obeyed[] {
  if (change.isGit) return isPlainSetting(change) ? [] : [{ ...change, by: 'Git' }];
  const inWork = relative(root, change.path);
  const onPath = programFolder(change, places);
  const isProgram = onPath === undefined ? {} : { onPath };
  const isOrdinary =
    (role === 'worker' && describesBuild(change.path, inWork)) || isPlainPackage(change, inWork);
  const obeyed = isOrdinary ? undefined : obeyedAt(change.path, inWork);
  if (obeyed) return [{ ...change, by: obeyed.kind === 'agent' ? 'agents' : obeyed.by, ...isProgram }];
  return onPath === undefined ? [] : [{ ...change, by: 'shells', onPath }];
}

/**
 * Returns the folder of the PATH in which the change leaves a program, or which it leads elsewhere by a link; undefined for any other
 * change. An executable file elsewhere is what every build makes.
 */
function programFolder({ path, after }: KeptChange, { folders, ways }: ProgramFolders): string | undefined {
  const isLink = after?.link !== undefined;
  if (isLink && ways.has(folded(path))) return path;
  if (!folders.has(folded(dirname(path)))) return undefined;
  if (isLink) return dirname(path);
  // What is too large to be looked at may run as well.
  const stats = after ? undefined : statsAt(path);
  const mode = after?.mode ?? (stats?.isFile() ? stats.mode : 0);
  return (mode & 0o111) === 0 ? undefined : dirname(path);
}

/** In bytes. */
const largestPackage = 64 * 1024;

/** Whether the command made a package.json in which nothing is run or fetched, and not among installed packages. */
function isPlainPackage({ path, before, after }: KeptChange, inWork: string): boolean {
  if (before || after?.sha256 === undefined || basename(path) !== 'package.json') return false;
  if (obeyedAt(join(dirname(path), 'a file'), join(dirname(inWork), 'a file'))) return false;
  if (after.size > largestPackage || realPlace(path) !== path) return false;
  const bytes = readRegularFile(path);
  // Only what was looked at is judged.
  return hashOf(bytes) === after.sha256 && describesOnly(bytes.toString());
}

const isRebaseList = /^(?:worktrees\/[^/]+\/)?rebase-merge\/git-rebase-todo$/;

/** Whether a change to a repository's settings starts no program and leads nowhere else, as `git init` makes them. */
function isPlainSetting({ path, after, bytes, oldBytes }: KeptChange): boolean {
  const inner = path.split(sep).join('/').toLowerCase().split('/.git/').at(-1) ?? '';
  // What a rebase has still to do is the work of each: only lines that start a program are not.
  if (isRebaseList.test(inner)) return !/^[ \t]*(?:x|exec)\b/m.test(bytes?.toString('latin1') ?? '');
  if (path.toLowerCase().endsWith(`${sep}.git`)) return after === null;
  // Nothing obeys what is left of a repository that is gone.
  const gitDir = path.slice(0, path.toLowerCase().lastIndexOf(`${sep}.git${sep}`) + 5);
  if (!after) return !statsAt(gitDir)?.isDirectory();
  if (/(?:^|\/)hooks\/[^/]+\.sample$/.test(inner)) return after.link === undefined;
  if (!bytes) return false;
  const text = bytes.toString('latin1');
  if (/^worktrees\/[^/]+\/commondir$/.test(inner)) return text.trim() === '../..';
  if (/^worktrees\/[^/]+\/gitdir$/.test(inner)) return true;
  if (/(?:^|\/)config$/.test(inner)) return addsOnlyPlainSettings(oldBytes?.toString('latin1') ?? '', text);
  return false;
}

/** Returns the paths below the working folder, of which a few are named. */
function namesOf(changes: readonly { path: string }[], root: string): string {
  const names = changes.map(({ path }) => escapeInvisible(relative(root, path) || '.'));
  if (names.length <= mostNamed) return names.join(', ');
  return `${names.slice(0, mostNamed).join(', ')} (+${names.length - mostNamed})`;
}

const byOf = (obeyed: readonly Obeyed[]): string => [...new Set(obeyed.map(({ by }) => by))].join(', ');

function questionAbout(obeyed: readonly Obeyed[], names: string): Ask {
  const [only] = obeyed;
  const by = byOf(obeyed);
  const said: Sentence =
    obeyed.length > 1 || !only
      ? sentence('The command changed files that {0} run or obey: {1}. Keep the changes?', by, names)
      : only.before === null
        ? sentence('The command made {0}, which {1} run or obey. Keep it?', names, by)
        : sentence('The command changed {0}, which {1} run or obey. Keep the change?', names, by);
  const folders = new Set(obeyed.flatMap(({ onPath }) => onPath ?? []));
  const sentences = [
    said,
    ...[...folders].slice(0, mostNamed).map(folder => onYourPath(escapeInvisible(folder))),
  ];
  return {
    action: 'ask',
    rule: 'box.obeyed',
    reason: spoken(sentences),
    sentences,
    subject: names,
    scopes: ['once'],
  };
}
