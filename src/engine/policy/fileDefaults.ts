/** Decides on reads and writes by default: which ones need no question, and the question about all others. */
import { lstatSync, readlinkSync, statfsSync } from 'node:fs';
import { basename, delimiter, dirname, extname, isAbsolute, join, relative, resolve } from 'node:path';
import type { CardFolder } from '@telos/protocol/agentCard';
import { type Sentence, sentence } from '@telos/protocol/text';
import { folderHolding, isInside, realIfThere, realPlace, resolvePath, statsAt } from '../files/paths.ts';
import { folded, isCode, isSensitive, obeyedAt } from '../files/sensitiveNames.ts';
import { pathIn, programEndings } from '../tools/programPath.ts';
import { readableFolders } from '../tools/tool.ts';
import { chosenFolders, ownFolders } from './agentFiles.ts';
import { type Ask, allow, type Decision, type PolicyContext, reviewOf } from './decision.ts';
import { isPromised } from './promisedFiles.ts';
import { ask, withCard } from './question.ts';
import { isInPluginData, isInStandIn, type PolicySubject, type PolicySubjectOf } from './subject.ts';

export async function decideOnRead(
  wanted: PolicySubjectOf<'read' | 'write'>,
  context: PolicyContext,
): Promise<Decision> {
  const path = wanted.subject;
  const { workingDir, home } = context;
  const unaccepted = await unacceptedFolders(context);
  const { named = path } = wanted;
  const secret = (named === path ? [path] : [path, named]).find(isSensitive);
  if (secret !== undefined) {
    const sentences = [sentence('{0} looks like it holds keys, passwords or other secrets.', secret)];
    return ask(wanted, { rule: 'read.sensitive', sentences }, context);
  }
  if ((await folderHolding(path, acceptedFolders(context, unaccepted), home)) !== undefined)
    return allow('read.own-folders', path);
  if (isInStandIn(path, context)) return allow('read.sandbox', path);
  if (isInPluginData(path, context)) return allow('read.plugin-data', path);
  const chosen = unaccepted.find(folder => isInside(folder.path, path));
  if (chosen) return askAboutFolder(wanted, chosen, context);
  const sentences = [
    sentence("{0} is outside this workspace ({1}) and the agent's own folder.", path, workingDir),
  ];
  return unlessPromised(ask(wanted, { rule: 'read.outside', sentences }, context), context);
}

/** Allows what the accepted card names among the files that the agent writes. Asks with the card if its acceptance would do so. */
async function unlessPromised(question: Ask, context: PolicyContext): Promise<Decision> {
  const review = await reviewOf(context);
  const { workingDir, home, memory } = context;
  const places = { workingDir, home, ...(memory ? { made: memory.made } : {}) };
  const covers = (writes: readonly string[] = []): boolean => isPromised(question.subject, writes, places);
  if (review?.state === 'reviewed')
    return covers(review.review?.writes) ? allow('card.file', question.subject) : question;
  let isCovered = false;
  const withIt = await withCard(question, context, review, card => {
    isCovered = covers(card.writes);
    return isCovered;
  });
  return isCovered ? withIt : question;
}

/** Returns the folders that the agent's files chose and that no accepted card covers now. */
export async function unacceptedFolders(context: PolicyContext): Promise<readonly CardFolder[]> {
  const chosen = context.agent ? chosenFolders(context.agent) : [];
  if (chosen.length === 0) return chosen;
  // Who writes a skill has chosen its folders.
  if (context.mode === 'sandbox' && context.isOwn) return [];
  const review = await reviewOf(context);
  const accepted = review?.state === 'reviewed' ? review.files.folders : [];
  return chosen.filter(
    ({ path, access }) => !accepted.some(each => each.path === path && each.access === access),
  );
}

/** Returns the folders read without a question. A folder that the agent's files chose counts only once its card is accepted. */
export function acceptedFolders(context: PolicyContext, unaccepted: readonly CardFolder[]): string[] {
  if (unaccepted.length === 0) return readableFolders(context);
  const chosen = new Set(unaccepted.map(({ path }) => path));
  // The current folder was chosen by the person, whatever the files say.
  return readableFolders(context).filter(
    folder => folder === context.personDir || !chosen.has(realPlace(folder) ?? folder),
  );
}

async function askAboutFolder(
  wanted: PolicySubject,
  { path }: CardFolder,
  context: PolicyContext,
): Promise<Ask> {
  const does = wanted.kind === 'write' ? 'write' : 'read';
  const { projectDir } = context.agent ?? {};
  const why =
    projectDir !== undefined && realPlace(projectDir) === path
      ? sentence('The skill comes with the project {0}, and you have not approved its permissions.', path)
      : sentence("The agent's files use the folder {0}, which you have not approved.", path);
  const question = ask(wanted, { rule: `${does}.outside`, sentences: [why] }, context);
  return withCard(question, context, await reviewOf(context), card =>
    card.folders.some(folder => folder.path === path && (does === 'read' || folder.access === 'write')),
  );
}

export async function decideOnWrite(
  wanted: PolicySubjectOf<'read' | 'write'>,
  context: PolicyContext,
): Promise<Decision> {
  const written = await decideOnPlace(wanted, context);
  if (wanted.tool !== 'edit_file') return written;
  // The success of an edit shows what the file contains, so the file has to be readable as well.
  const read = await decideOnRead(wanted, context);
  if (read.action !== 'ask' || written.action === 'deny') return written;
  // If there are two questions, the one that fewer rules answer is asked. It includes the reason of the other one.
  const isStricter = written.action === 'ask' && !/^(read|write)\.outside$/.test(written.rule);
  if (isStricter) {
    const sentences = [...(written.sentences ?? []), ...(read.sentences ?? [])];
    return { ...written, reason: `${written.reason} ${read.reason}`, sentences };
  }
  return read.rule === 'read.outside' && written.action === 'ask' ? written : read;
}

export async function decideOnPlace(
  wanted: PolicySubjectOf<'read' | 'write'>,
  context: PolicyContext,
): Promise<Decision> {
  const path = wanted.subject;
  const { agent, workingDir, packDir, skillDir, home } = context;
  const work = await resolvePath(workingDir, workingDir, home);
  const inWork = isInside(work, path);
  const ownFolder = await folderHolding(path, [packDir, skillDir], home);
  // If the agent's files chose to work inside such a folder, the user did not choose it. So the name of that folder counts too.
  const around = agent?.unaskedWithin === undefined ? [] : [dirname(agent.unaskedWithin), packDir];
  const bases = [...around.flatMap(each => [realPlace(each) ?? each, each]), work, workingDir];
  const below = (file: string): string => {
    const folder = bases.find(each => isInside(each, file));
    return folder === undefined ? file : relative(folder, file);
  };
  const isBuilding = context.role === 'worker' && inWork;
  const obeyed = [path, wanted.named ?? path]
    .filter(file => !(isBuilding && describesBuild(file, below(file))))
    .map(file => obeyedReason(file, below(file), ownFolder !== undefined))
    .find(each => each !== undefined);
  const asProgram = programProblem(wanted, context);
  const reason = obeyed ?? asProgram;
  if (reason !== undefined) {
    const sentences = [reason, whateverIsWritten];
    const question = ask(wanted, { rule: 'write.executed', sentences }, context);
    return asProgram === undefined && ownFolder === undefined ? unlessPromised(question, context) : question;
  }
  // A working folder inside the pack is for work. A pack inside the working folder is still the pack.
  const worksInside = ownFolder !== undefined && (await folderHolding(work, [ownFolder], home)) !== undefined;
  const isWork = inWork && worksInside && (await isNoPartOf(path, context));
  if (isWork && isCode(path) && (await reviewOf(context))?.files.work?.state === 'left out') {
    const why = sentence(
      "{0} is code in the agent's own folder, which the agent's scripts may load by its name.",
      path,
    );
    return ask(wanted, { rule: 'write.pack', sentences: [why, whateverIsWritten] }, context);
  }
  if (ownFolder !== undefined && !isWork) {
    const why = sentence('{0} is part of the agent itself, which may work differently afterwards.', path);
    const question = ask(wanted, { rule: 'write.pack', sentences: [why, whateverIsWritten] }, context);
    const review = await reviewOf(context);
    const { work: inner } = review?.files ?? {};
    if (inner?.state !== 'empty' || !isInside(inner.path, path)) return question;
    return withCard(question, context, review, ({ leftOut = [] }) =>
      leftOut.some(({ path: label }) => label === inner.label),
    );
  }
  const chosen = (await unacceptedFolders(context)).find(
    folder => folder.access === 'write' && isInside(folder.path, path),
  );
  if (chosen) return askAboutFolder(wanted, chosen, context);
  if (inWork) return allow('write.working-dir', path);
  if (isInPluginData(path, context)) return allow('write.plugin-data', path);
  const sentences = [sentence('{0} is outside this workspace ({1}).', path, workingDir)];
  return unlessPromised(ask(wanted, { rule: 'write.outside', sentences }, context), context);
}

/** Who reads the files that say how a project is built and tested. */
const builders = new Set(['package managers', 'builds, tests and linters']);

/**
 * Returns true for a file such as package.json, which a story of a plan changes like any other: its checks run what is written there
 * as they run its tests, the guard looks at it, and a reviewer sees it. False for what lies where packages are installed.
 */
export function describesBuild(path: string, inWork: string): boolean {
  const by = obeyedAt(path, inWork)?.by;
  const beside = (file: string): string => join(dirname(file), 'a file');
  return by !== undefined && builders.has(by) && obeyedAt(beside(path), beside(inWork)) === undefined;
}

function obeyedReason(path: string, inWork: string, isOwn: boolean): Sentence | undefined {
  const obeyed = obeyedAt(path, inWork);
  if (obeyed === undefined) return undefined;
  if (obeyed.kind !== 'agent')
    return sentence(
      'Other programs ({0}) run or obey {1}: what is written there can act later.',
      obeyed.by,
      path,
    );
  return isOwn
    ? sentence('{0} instructs an agent: writing it changes what this agent does.', path)
    : sentence('{0} instructs an agent: writing it changes what another agent does.', path);
}

/** Returns true for a file in the agent's folder that is not a part of the agent: the user's own, or the agent's work. */
async function isNoPartOf(path: string, context: PolicyContext): Promise<boolean> {
  const { agent } = context;
  if (!agent) return true;
  if (!ownFolders(agent).some(folder => isInside(folder, path))) return true;
  const files = (await reviewOf(context))?.files;
  if (files?.work?.state !== 'left out' || !isInside(files.work.path, path)) return false;
  return [...files.files.values()].every(file => file.path !== path);
}

const whateverIsWritten = sentence('Allowing it for this run covers every change of this file.');

/** A write of a file. A person who agreed to file writes has not agreed to one that makes or changes a program. */
interface Write {
  tool: string;
  /** The real path. */
  subject: string;
  /** The whole new content; undefined if the call does not contain it. */
  content?: string;
}

/** Returns a sentence on why the write is one of a program; undefined for a write of an ordinary file. */
function programProblem(
  { subject, content, tool }: Write,
  { env = {} }: PolicyContext,
): Sentence | undefined {
  const endsAsProgram =
    process.platform === 'win32' && programEndings(env).includes(extname(subject).toLowerCase());
  if (isExecutable(subject, endsAsProgram))
    return sentence(
      '{0} is a program that can be executed: what is written there runs in its place.',
      subject,
    );
  // The result of an edit is known only after it is done.
  const begins = tool === 'edit_file' || content === undefined || /^\uFEFF?#!/.test(content);
  if (!begins && !endsAsProgram) return undefined;
  return isOnPath(dirname(subject), env) ? onYourPath(dirname(subject)) : undefined;
}

/** File systems of other systems, by the kernel's number for them. They store no execute bit, and show one for every file. */
const withoutModes = new Set([
  0x4d44, 0x2011bab0, 0x5346544e, 0x65735546, 0x01021997, 0xff534d42, 0xfe534d42, 0x517b, 0x53464846,
]);

function isExecutable(path: string, endsAsProgram: boolean): boolean {
  try {
    const stats = lstatSync(path);
    if (!stats.isFile() || process.platform === 'win32') return stats.isFile() && endsAsProgram;
    const mode = stats.mode & 0o111;
    const isOfAll = mode === 0o111 && process.platform === 'linux' && withoutModes.has(statfsSync(path).type);
    return mode !== 0 && !isOfAll;
  } catch {
    // The file is missing, or cannot be written.
    return false;
  }
}

function isOnPath(folder: string, env: Readonly<Record<string, string>>): boolean {
  const wanted = folded(folder);
  const folders = (pathIn(env) ?? '').split(delimiter).filter(isAbsolute);
  return folders.some(
    each =>
      folded(each.replace(/(?<=.)[\\/]$/, '')) === wanted || folded(realIfThere(each) ?? each) === wanted,
  );
}

/** What makes a file a program that is run by its name. */
export interface ProgramFolders {
  /** The folders of the PATH. */
  folders: ReadonlySet<string>;
  /** Every name on the way to one: a link there can lead to other programs. */
  ways: ReadonlySet<string>;
}

/** Returns the folders of the PATH, and the names on the way to them. All are folded, and real as far as they are there. */
export function programFolders(env: Readonly<Record<string, string>> = {}): ProgramFolders {
  const [folders, ways] = [new Set<string>(), new Set<string>()];
  for (const each of (pathIn(env) ?? '').split(delimiter).filter(isAbsolute)) {
    folders.add(folded(realPlace(each) ?? each));
    addWays(each, ways);
  }
  return { folders, ways };
}

/** Adds each name of the path, and what links among them lead through. */
function addWays(path: string, ways: Set<string>): void {
  for (let at = path; dirname(at) !== at; at = dirname(at)) {
    const place = join(realPlace(dirname(at)) ?? dirname(at), basename(at));
    if (ways.has(folded(place))) continue;
    ways.add(folded(place));
    const target = linkTarget(place);
    if (target !== undefined) addWays(resolve(dirname(place), target), ways);
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return statsAt(path)?.isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/** Says that a script in a folder of the PATH is a program. */
export const onYourPath = (folder: string): Sentence =>
  sentence('{0} is on your PATH: a script that is written there can be run by its name.', folder);
