/**
 * Looks at what a command has changed, right after it. Files that other programs run or obey are put back at once, unless the person
 * wants to keep them: a command in the box could plant what runs outside of it.
 */
import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { RunEvent, ToolCall } from '../../protocol/run.ts';
import { type Sentence, sentence, spoken } from '../../protocol/text.ts';
import { hashOf } from '../changes/changeFile.ts';
import type { CommandWatch, KeptChange } from '../changes/commandWatch.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { isInside, realPlace, statsAt } from '../files/paths.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { obeyedAt } from '../files/sensitiveNames.ts';
import type { Ask } from '../policy/decision.ts';
import { describesBuild } from '../policy/fileDefaults.ts';
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

const nameOf = ({ path, after }: KeptChange): string =>
  keptName(path, after && (after.link ?? after.sha256 ?? String(after.size)));

interface Obeyed extends KeptChange {
  /** Who runs or obeys it, in a few words. */
  by: string;
}

/** Maximum number of files that are put back while the person is asked. More of them are put back after a no. */
const mostAtOnce = 500;
/** Maximum size of such a file. In bytes. */
const largestAtOnce = 4 * 1024 * 1024;
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
  const isWorker = context.policy.role === 'worker';
  const outside = boxed ? await withoutBorrowing(changes, watch.root) : [];
  const all = boxed ? outside.flatMap(change => obeyedBy(change, watch.root, isWorker)) : [];
  const obeyed = all.filter(change => !kept?.has(nameOf(change)));
  if (obeyed.length === 0) return { changedFiles: recorded(new Set()), notes: [] };
  const names = namesOf(obeyed, watch.root);
  const atOnce =
    obeyed.length <= mostAtOnce && obeyed.every(({ after }) => (after?.size ?? 0) <= largestAtOnce);
  let left: string[] = [];
  if (atOnce) {
    await watch.keepNew(obeyed);
    left = yield* putBack(obeyed, watch);
  }
  const question = questionAbout(obeyed, names);
  const asked: ToolCall = { id: `keep-${call.id}`, name: 'keep_changes', input: {} };
  const refusal = signal.aborted
    ? 'The run was cancelled.'
    : (yield* askPerson(asked, question, context, signal)).refusal;
  if (refusal === undefined) {
    const problems = atOnce ? await watch.putAgain(obeyed) : [];
    yield* warnings('Not all that the command did was kept', problems);
    for (const change of obeyed) kept?.add(nameOf(change));
    return { changedFiles: recorded(new Set()), notes: [] };
  }
  if (!atOnce) left = yield* putBack(obeyed, watch);
  const changedFiles = recorded(new Set(obeyed.map(({ path }) => path)));
  const note = `What the command did to ${names} was taken back: ${byOf(obeyed)} run or obey such files. ${refusal}`;
  return { changedFiles, notes: [note, ...left] };
}

/** What the model must know of a command in the box that was not looked at. */
export const unchecked =
  'What the command changed could not be looked at, so it is not known whether it changed files that other programs run.';

/** Returns what the model must know of files that could not be put back. */
async function* putBack(obeyed: readonly Obeyed[], watch: CommandWatch): AsyncGenerator<RunEvent, string[]> {
  const problems = await watch.putBack(obeyed);
  yield* warnings('Not every file that other programs run or obey is as it was before the command', problems);
  return problems.length > 0 ? ['Not all of it could be taken back; the user has seen what was not.'] : [];
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

function obeyedBy(change: KeptChange, root: string, isWorker: boolean): Obeyed[] {
  if (change.isGit) return isPlainSetting(change) ? [] : [{ ...change, by: 'Git' }];
  const inWork = relative(root, change.path);
  if (isWorker && describesBuild(change.path, inWork)) return [];
  if (isPlainPackage(change, inWork)) return [];
  const obeyed = obeyedAt(change.path, inWork);
  return obeyed ? [{ ...change, by: obeyed.kind === 'agent' ? 'agents' : obeyed.by }] : [];
}

/** In bytes. */
const largestPackage = 64 * 1024;

/** Whether the command made a package.json in which nothing is run or fetched, and not among installed packages. */
function isPlainPackage({ path, before, after }: KeptChange, inWork: string): boolean {
  if (before || after?.sha256 === undefined || basename(path) !== 'package.json') return false;
  if (obeyedAt(join(dirname(path), 'a file'), join(dirname(inWork), 'a file'))) return false;
  if (after.size > largestPackage || realPlace(path) !== path) return false;
  const bytes = readFileSync(path);
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
function namesOf(changes: readonly KeptChange[], root: string): string {
  const names = changes.map(({ path }) => escapeInvisible(relative(root, path)));
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
  const sentences = [said];
  return {
    action: 'ask',
    rule: 'box.obeyed',
    reason: spoken(sentences),
    sentences,
    subject: names,
    scopes: ['once'],
  };
}
