/**
 * Decides what a step that does a plan's work never does, even after a yes: it writes in its own folder, not in plans, and
 * leaves Git to the engine.
 */
import { isAbsolute } from 'node:path';
import { isInside, realPlace, resolvePath } from '../files/paths.ts';
import { folded, isInsideFolded } from '../files/sensitiveNames.ts';
import { commandReach, linesThatRun } from './commandReach.ts';
import { behindCarriers, programName } from './danger.ts';
import { type Deny, deny, type PolicyContext } from './decision.ts';
import { gitProblem, mentionsGit, steersGit, writesRepositories } from './gitCommands.ts';
import { type FoldedPath, foldedPath, type NamedPath, relationOf, writtenSegments } from './reach.ts';
import { signs } from './shellSigns.ts';
import type { PolicySubject, PolicySubjectOf } from './subject.ts';

/** Texts within texts that are read. */
const deepestText = 4;

/** Returns why a worker does not make the call; undefined for a call that is decided on like any other. Looks at names on the disk. */
export async function beyondWorker(wanted: PolicySubject, context: PolicyContext): Promise<Deny | undefined> {
  switch (wanted.kind) {
    case 'write':
      return beyondFiles([wanted.subject, wanted.named ?? wanted.subject], await placesOf(context));
    case 'mcp':
      return beyondPaths(wanted.reach.paths, false, await placesOf(context));
    case 'command':
      return beyondCommand(wanted, context);
    default:
      return undefined;
  }
}

/** Returns something if the command is one of the accepted card; `changed` is the file that has changed what it does, if any. */
export async function ofCard(
  { subject, folder }: PolicySubjectOf<'command'>,
  { cardCommands, workingDir }: PolicyContext,
): Promise<{ changed: string | undefined } | undefined> {
  const isNamed = cardCommands?.commands.includes(subject) === true;
  if (!isNamed || folder !== (realPlace(workingDir) ?? workingDir)) return undefined;
  return { changed: await cardCommands.changed?.(subject) };
}

/** The folders that decide. All real and absolute. */
interface Places {
  work: string;
  closed: readonly string[];
}

async function placesOf({ workingDir, closed = [], home }: PolicyContext): Promise<Places> {
  const real = (path: string): Promise<string> => resolvePath(path, path, home).catch(() => path);
  return { work: await real(workingDir), closed: await Promise.all(closed.map(real)) };
}

const planFiles = (): Deny =>
  deny(
    'workflow.plan-files',
    'The files of a plan are written by the engine and by people only. Do the work itself; what is done is ticked when it has passed.',
  );

const outside = (path: string, work: string): Deny =>
  deny('workflow.slot', `This step writes only below ${work}, and ${path} is not.`);

const repositoryFiles = (): Deny =>
  deny(
    'workflow.git',
    'The files of Git itself are left to the engine, which commits what has passed. Change the project’s own files.',
  );

function beyondFiles(paths: readonly string[], { work, closed }: Places): Deny | undefined {
  const names = paths.flatMap(path => folded(path).split('/'));
  const [subject = ''] = paths;
  if (names.includes('.telos')) return planFiles();
  if (names.some(name => name === '.git' || name === 'git~1')) return repositoryFiles();
  const inWork = isInside(work, subject);
  // Of two folders, the inner one counts.
  const isClosed = closed.some(
    place => isInsideFolded(place, subject) && !(inWork && isInsideFolded(place, work)),
  );
  if (isClosed && inWork) return planFiles();
  return inWork ? undefined : outside(subject, work);
}

/** Checks the paths that a call names. Only what is certain counts: the rest is asked about like any other call. */
function beyondPaths(paths: readonly NamedPath[], dots: boolean, { work, closed }: Places): Deny | undefined {
  const workPath = foldedPath(writtenSegments(work));
  const places = closed.map(place => foldedPath(writtenSegments(place)));
  const isBelow = (path: FoldedPath, place: FoldedPath): boolean => relationOf(path, place, dots) === 'below';
  const isClosed = (path: FoldedPath): boolean =>
    places.some(place => isBelow(path, place) && !(isBelow(workPath, place) && isBelow(path, workPath)));
  const has = (path: FoldedPath, name: string): boolean =>
    path.split('/').some(part => part !== '' && relationOf(`/${part}/`, `/${name}/`, dots) === 'below');
  for (const { meanings, isWritten } of paths) {
    if (meanings.some(path => has(path, '.telos'))) return planFiles();
    if (meanings.some(path => has(path, '.git'))) return repositoryFiles();
    // A folder of the slot can be a link into the checkout, as one of dependencies is.
    const [plain = ''] = meanings;
    if (isClosed(plain) && isBelow(plain, workPath)) return planFiles();
    if (isClosed(plain)) return outside(plain.slice(0, -1), work);
    const elsewhere = (path: FoldedPath): boolean =>
      !path.includes(signs.any) && !isBelow(path, workPath) && !/^\/dev\//.test(path);
    if (isWritten && meanings.some(elsewhere)) return outside(plain.slice(0, -1), work);
  }
  return undefined;
}

async function beyondCommand(
  wanted: PolicySubjectOf<'command'>,
  context: PolicyContext,
): Promise<Deny | undefined> {
  const { subject, folder, dangers } = wanted;
  if (await ofCard(wanted, context)) return undefined;
  const { home } = context;
  const published = dangers.find(({ kind }) => kind === 'publishes');
  if (published)
    return deny(
      'workflow.git',
      `${published.values[0] ?? 'It'} publishes, which no step of a plan does. Publishing is left to the person.`,
    );
  const reach = commandReach(subject, folder, home);
  const problem =
    gitIn(subject, folder, home, 0) ??
    (steersGit(subject) || (reach.unread.length > 0 && mentionsGit(subject)) ? hidden : undefined);
  if (problem !== undefined) return deny('workflow.git', problem);
  return beyondPaths(reach.paths, reach.dots === true, await placesOf(context));
}

const hidden =
  'It names Git where not all that runs can be read. The engine commits what has passed; look at the repository with plain commands such as `git diff`.';

const unread =
  'It cannot be read which program runs. Write the name of the program itself, without a variable or a substitution.';

/** Returns why a line must not run for what it does with Git; undefined if it only looks, or uses none. */
function gitIn(line: string, folder: string, home: string, depth: number): string | undefined {
  const lines = depth > deepestText ? undefined : linesThatRun(line, folder, home);
  if (!lines) return 'It is too long to be read. Use shorter commands.';
  for (const { commands } of lines)
    for (const { words } of commands)
      for (const [at, command] of behindCarriers(words).entries()) {
        const [program, ...operands] = command;
        const names = (program?.values ?? []).map(programName);
        if (at === 0 && names.some(name => name.includes(signs.any))) return unread;
        const writing = names.find(name => writesRepositories(name));
        if (writing !== undefined) return gitProblem(writing, operands);
        const own = [names[0] ?? '', ...operands.flatMap(({ values }) => values)];
        const found = indirect(own, line) ?? textsIn(own, folder, home, depth);
        if (found !== undefined) return found;
      }
  return undefined;
}

/** Finds Git among the operands of another program: by its path, under another name, or by a variable of its own. */
function indirect([program = '', ...operands]: readonly string[], line: string): string | undefined {
  const isPath = (word: string): boolean => isAbsolute(word) && writesRepositories(programName(word));
  if (operands.some(isPath) || operands.some(word => /^GIT_\w+=/.test(word))) return hidden;
  const renames = /^(?:alias|function|hash|enable|ln|cp|install)$/.test(program);
  const isGit = (word: string): boolean =>
    /(?:^|[=/])git(?:\s|$)/i.test(word) || (word.includes(signs.any) && mentionsGit(line));
  return renames && operands.some(isGit) ? hidden : undefined;
}

/** Programs that show or search a text, and run none. */
const showsText = /^(?:echo|printf|test|\[|\[\[|:|true|(?:[efz]|rip)?grep|rg|ag|sed)$/;

/** Reads the texts among the operands as lines, since many programs run such a text. */
function textsIn(
  [program = '', ...operands]: readonly string[],
  folder: string,
  home: string,
  depth: number,
): string | undefined {
  if (showsText.test(program)) return undefined;
  const texts = operands.filter(word => /\s/.test(word) && mentionsGit(word));
  return texts.map(text => gitIn(text, folder, home, depth + 1)).find(found => found !== undefined);
}
