/** Decides by default, if no rule of the user applies: which calls need no question, and the question for all others. */

import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import { type CardFolder, describeFlag } from '../../protocol/agentCard.ts';
import { globMatcher, longestGlob } from '../files/globPattern.ts';
import { folderHolding, isInside, realPlace, resolvePath } from '../files/paths.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { isCode, isSensitive, obeyedAt, secretFolderNames } from '../files/sensitiveNames.ts';
import { tomlString } from '../files/settingsFile.ts';
import { readableFolders } from '../tools/targets.ts';
import { namesHost, scriptIn } from './agentCard.ts';
import { type AgentFiles, ownFolders } from './agentFiles.ts';
import type { ReviewState } from './agentReviews.ts';
import { chosenFolders } from './chosenFolders.ts';
import { commandReach } from './commandReach.ts';
import {
  type Allow,
  type Ask,
  allow,
  type Decision,
  type Deny,
  deny,
  type PolicyContext,
} from './decision.ts';
import { programProblem } from './executables.ts';
import type { RuleDraft } from './policyEdit.ts';
import { parseReadOnlyCommand } from './readOnlyCommand.ts';
import { draftFor } from './ruleMatch.ts';
import { writtenServer } from './serverPrograms.ts';
import { piecesOf } from './shellCommands.ts';
import { grantName, hostAndPort, type PolicySubject, type PolicySubjectOf } from './subject.ts';

type Question = Pick<Ask, 'rule' | 'reason'> & {
  /** Set if no rule is stored for it, because a lasting yes would be too wide or is seldom meant. */
  never?: 'always' | 'run and always';
};

/** Length of the description that a server gives of its tool, in characters. A longer one would hide the rest of the question. */
const longestDescription = 1000;

export async function defaultDecision(wanted: PolicySubject, context: PolicyContext): Promise<Decision> {
  switch (wanted.kind) {
    case 'read':
      return decideOnRead(wanted, context);
    case 'write':
      return decideOnWrite(wanted, context);
    case 'command':
      return decideOnCommand(wanted, context);
    case 'fetch':
      return decideOnFetch(wanted, context);
    case 'mcp': {
      const { server, tool } = wanted.facts;
      const reason = `${JSON.stringify(tool)} of the MCP server ${JSON.stringify(server)} can do whatever that server can. A yes for the run, or for always, is for this tool with any input, as long as its description stays.${ownWords(wanted)}`;
      return ask(wanted, { rule: 'mcp.first-use', reason }, context);
    }
  }
}

/** Returns the description that a server gives of its tool, for every question about it. Empty for other calls. */
export function ownWords(wanted: PolicySubject): string {
  const { description = '' } = wanted.kind === 'mcp' ? wanted.facts : {};
  if (description === '') return '';
  const cut = description.length - longestDescription;
  const more = cut > 0 ? ` and ${cut} more characters` : '';
  return ` It says of itself: ${escapeInvisible(JSON.stringify(description.slice(0, longestDescription)))}${more}`;
}

/** Returns the question about a call. */
export function ask(wanted: PolicySubject, question: Question, context: PolicyContext): Ask {
  const { never, rule, reason } = question;
  const draft = never ? undefined : draftFor(wanted, context);
  const scopes = ['once', ...(never === 'run and always' ? [] : ['run'])] as Ask['scopes'];
  return {
    action: 'ask',
    rule,
    reason,
    subject: wanted.subject,
    ...(wanted.kind === 'command' ? { folder: wanted.folder } : {}),
    ...(wanted.kind === 'mcp' ? { grant: grantName(wanted) } : {}),
    scopes: draft && context.rules ? [...scopes, 'always'] : scopes,
    ...(draft && context.rules ? { lasting: { rule: draft } } : {}),
    ...(draft ? { toAllow: howToAllow(draft, context) } : {}),
  };
}

function howToAllow(draft: RuleDraft, context: PolicyContext): string {
  const { pack: _pack, ...shown } = draft;
  const lines = Object.entries(shown).map(([key, value]) => `${key} = ${tomlString(String(value))}`);
  return `A rule in ${context.rules?.file ?? 'policy.toml'} allows it: [[allow]] with ${lines.join(', ')}.`;
}

async function decideOnRead(
  wanted: PolicySubjectOf<'read' | 'write'>,
  context: PolicyContext,
): Promise<Decision> {
  const path = wanted.subject;
  const { workingDir, home } = context;
  const unaccepted = await unacceptedFolders(context);
  const secret = [path, wanted.named ?? path].find(isSensitive);
  if (secret !== undefined) {
    const reason = `${secret} looks like it holds keys, passwords or other secrets.`;
    return ask(wanted, { rule: 'read.sensitive', reason, never: 'always' }, context);
  }
  if ((await folderHolding(path, acceptedFolders(context, unaccepted), home)) !== undefined)
    return allow('read.own-folders', path);
  const chosen = unaccepted.find(folder => isInside(folder.path, path));
  if (chosen) return askAboutFolder(wanted, chosen, context);
  const reason = `${path} is outside working_dir (${workingDir}) and the agent's own folder.`;
  return ask(wanted, { rule: 'read.outside', reason }, context);
}

/** Returns the folders that the agent's files chose and that no accepted card covers now. */
async function unacceptedFolders(context: PolicyContext): Promise<readonly CardFolder[]> {
  const chosen = context.agent ? chosenFolders(context.agent) : [];
  if (chosen.length === 0) return chosen;
  const review = await reviewOf(context);
  const accepted = review?.state === 'reviewed' ? review.files.folders : [];
  return chosen.filter(
    ({ path, access }) => !accepted.some(each => each.path === path && each.access === access),
  );
}

/** Returns the folders read without a question. A folder that the agent's files chose counts only once its card is accepted. */
function acceptedFolders(context: PolicyContext, unaccepted: readonly CardFolder[]): string[] {
  const chosen = new Set(unaccepted.map(({ path }) => path));
  return readableFolders(context).filter(folder => !chosen.has(realPlace(folder) ?? folder));
}

async function askAboutFolder(
  wanted: PolicySubject,
  { path }: CardFolder,
  context: PolicyContext,
): Promise<Ask> {
  const does = wanted.kind === 'write' ? 'write' : 'read';
  const reason = `The agent's own files chose the folder ${path}, and you have not accepted that.`;
  const question = ask(wanted, { rule: `${does}.outside`, reason }, context);
  return withCard(question, context, await reviewOf(context), card =>
    card.folders.some(folder => folder.path === path && (does === 'read' || folder.access === 'write')),
  );
}

async function decideOnWrite(
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
  if (isStricter) return { ...written, reason: `${written.reason} ${read.reason}` };
  return read.rule === 'read.outside' && written.action === 'ask' ? written : read;
}

async function decideOnPlace(
  wanted: PolicySubjectOf<'read' | 'write'>,
  context: PolicyContext,
): Promise<Decision> {
  const path = wanted.subject;
  const { agent, workingDir, packDir, skillDir, home } = context;
  const work = await resolvePath(workingDir, workingDir, home);
  const inWork = isInside(work, path);
  const ownFolder = await folderHolding(path, [packDir, skillDir], home);
  const whose = ownFolder === undefined ? 'another agent' : 'this agent';
  // If the agent's files chose to work inside such a folder, the user did not choose it. So the name of that folder counts too.
  const around = agent?.unaskedWithin === undefined ? [] : [dirname(agent.unaskedWithin), packDir];
  const bases = [...around.flatMap(each => [realPlace(each) ?? each, each]), work, workingDir];
  const below = (file: string): string => {
    const folder = bases.find(each => isInside(each, file));
    return folder === undefined ? file : relative(folder, file);
  };
  const reason = [path, wanted.named ?? path]
    .map(file => obeyedReason(file, below(file), whose))
    .concat(programProblem(wanted, context))
    .find(each => each !== undefined);
  if (reason !== undefined) {
    return ask(
      wanted,
      { rule: 'write.executed', reason: `${reason} ${whateverIsWritten}`, never: 'always' },
      context,
    );
  }
  // A working folder inside the pack is for work. A pack inside the working folder is still the pack.
  const worksInside = ownFolder !== undefined && (await folderHolding(work, [ownFolder], home)) !== undefined;
  const isWork = inWork && worksInside && (await isNoPartOf(path, context));
  if (isWork && isCode(path) && (await reviewOf(context))?.files.work?.state === 'left out') {
    const reason = `${path} is code in the agent's own folder, which the agent's scripts may load by its name. ${whateverIsWritten}`;
    return ask(wanted, { rule: 'write.pack', reason, never: 'always' }, context);
  }
  if (ownFolder !== undefined && !isWork) {
    const reason = `${path} is part of the agent itself, which may work differently afterwards. ${whateverIsWritten}`;
    const question = ask(wanted, { rule: 'write.pack', reason, never: 'always' }, context);
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
  const outside = `${path} is outside working_dir (${workingDir}).`;
  return ask(wanted, { rule: 'write.outside', reason: outside }, context);
}

function obeyedReason(path: string, inWork: string, whose: string): string | undefined {
  const obeyed = obeyedAt(path, inWork);
  if (obeyed === undefined) return undefined;
  return obeyed.kind === 'agent'
    ? `${path} instructs an agent: writing it changes what ${whose} does.`
    : `Other programs (${obeyed.by}) run or obey ${path}: what is written there can act later.`;
}

/** Returns true for a file in the agent's folder that is not a part of the agent: the user's own, or the agent's work. */
async function isNoPartOf(path: string, context: PolicyContext): Promise<boolean> {
  const { agent } = context;
  if (!agent) return true;
  if (!(await ownFolders(agent)).some(folder => isInside(folder, path))) return true;
  const files = (await reviewOf(context))?.files;
  if (files?.work?.state !== 'left out' || !isInside(files.work.path, path)) return false;
  return [...files.files.values()].every(file => file.path !== path);
}

const whateverIsWritten = 'A yes for the run is for this file, whatever is written to it.';

/** Programs that can reach the network. Interpreters are among them, because their programs can do it as well. */
const networkPrograms =
  /(^|[\s;&|(`/>])(dev\/(?:tcp|udp)|(?:curl|wget|aria2c|https?|xh|lynx|w3m|ssh|scp|sftp|rsync|nc|ncat|netcat|socat|telnet|ftp|openssl|dig|nslookup|ping6?|git|gh|npm|npx|pnpm|yarn|bun|bunx|deno|node|python[\d.]*|perl|ruby|php|pip3?|pipx|uvx?|cargo|go|gem|brew|apt(-get)?|docker|podman)(?=$|[\s;&|)`]))/;

/** Returns a network program that a command names, also with quotes and escapes within its name. */
const networkProgramIn = (command: string): string | undefined =>
  networkPrograms.exec(command.replace(/["'\\]/g, ''))?.[2];

/**
 * Returns the places of secrets that a command names, as it names them. Includes those that its quotes, patterns, variables and
 * links lead to.
 */
export function sensitiveWords(command: string, folder: string, home: string): string[] {
  const words = piecesOf(command).filter(holdsSecrets);
  if (words.length > 0) return words;
  // Alternatives in braces have commas between them.
  const plain = command.replace(/["'\\]/g, '');
  const alternatives = plain.split(/[\s;&|<>()`]+/).filter(word => word.includes('{') && holdsSecrets(word));
  if (alternatives.length > 0) return alternatives;
  // If a folder is secret by its own name, that says nothing about each name in it.
  const first = isSensitive(folder) ? 1 : 0;
  const meant = commandReach(command, folder, home).paths.flatMap(({ meanings }) => meanings.slice(first));
  return [...new Set(meant.map(path => path.slice(0, -1)))].filter(isSensitive);
}

function holdsSecrets(word: string): boolean {
  if (isSensitive(word)) return true;
  if (!/[*?[{]/.test(word)) return false;
  const folders = word.split('/');
  const name = folders.pop() ?? '';
  return (
    isPatternFor(name, ['.env', '.npmrc', '.netrc', '.git-credentials', 'id_rsa', 'id_ed25519']) ||
    // A pattern for all hidden folders more often excludes them from a search than looks for them.
    folders.some(folder => !/^\.[*?]+$/.test(folder) && isPatternFor(folder, hiddenSecretFolders))
  );
}

const hiddenSecretFolders = secretFolderNames.filter(name => name.startsWith('.'));

/**
 * Returns true if the pattern fits one of the names. A pattern that matches everything does not count. One that is too long to be
 * read may match anything.
 */
function isPatternFor(pattern: string, names: readonly string[]): boolean {
  if (!/[*?[{]/.test(pattern) || /^[*?]+$/.test(pattern)) return false;
  return pattern.length > longestGlob || names.some(globMatcher(pattern));
}

/** Allows a command that only looks into the agent's own folders. The denial is for a step that may do nothing else. */
export async function readOnlyCommand(
  wanted: PolicySubjectOf<'command'>,
  context: PolicyContext,
): Promise<Allow | Deny> {
  const { home, protectedDirs } = context;
  const roots = acceptedFolders(context, await unacceptedFolders(context));
  const scope = { roots, cwd: wanted.folder, home, protectedDirs };
  const verdict = await parseReadOnlyCommand(wanted.subject, scope);
  return verdict.allowed
    ? { ...allow('run.read-only', wanted.subject), readOnly: verdict.command }
    : deny('role.read-only', `This step only looks at files. ${verdict.reason}`);
}

async function decideOnCommand(
  wanted: PolicySubjectOf<'command'>,
  context: PolicyContext,
): Promise<Decision> {
  const looking = await readOnlyCommand(wanted, context);
  if (looking.action === 'allow') return looking;
  const review = await reviewOf(context);
  const script = await ownScript(wanted, context, review?.files);
  const secrets = sensitiveWords(wanted.subject, wanted.folder, context.home);
  const escapes = review?.files.escapes ?? [];
  const isReviewed =
    review?.state === 'reviewed' && escapes.length === 0 && review.review?.scripts.includes(script ?? '');
  // The review covers the script, not what it does with a file of secrets that a model passes to it.
  if (isReviewed && secrets.length === 0) return allow('card.script', wanted.subject);
  const program = networkProgramIn(wanted.subject);
  const reasons = ['A command can do whatever you can do on this machine.'];
  if (program !== undefined) reasons.push(`It names ${program}, which can reach the network.`);
  if (secrets.length > 0) reasons.push(`It names ${someOf(secrets)}, which looks like a place of secrets.`);
  if (escapes[0] !== undefined)
    reasons.push(`The agent's card does not cover all that it can run: ${describeFlag(escapes[0])}.`);
  const never = escapes.length > 0 ? ({ never: 'always' } as const) : {};
  const question = ask(wanted, { rule: 'run.command', reason: reasons.join(' '), ...never }, context);
  return withCard(question, context, review, card => script !== undefined && card.scripts.includes(script));
}

/**
 * Returns the label of the agent's own file that the command runs, directly or by its interpreter; otherwise undefined. The words
 * after it are arguments of the script, whatever they are.
 */
async function ownScript(
  { words, folder }: PolicySubjectOf<'command'>,
  { packDir }: PolicyContext,
  files: AgentFiles | undefined,
): Promise<string | undefined> {
  const written = words && scriptIn(words);
  if (written === undefined || !files) return undefined;
  // The path is not normalized as text, because the system goes up from the target of a link.
  const way = isAbsolute(written) ? written : folder + sep + written;
  const path = await realpath(way).catch(() => undefined);
  if (path === undefined) return undefined;
  const pack = await realpath(packDir).catch(() => packDir);
  const below = relative(pack, path);
  const label = isInside(pack, path) && !isAbsolute(below) ? below.split(sep).join('/') : path;
  const found = files.files.get(label);
  return found && !found.isLink ? label : undefined;
}

/** Returns as many names as a person reads. The command itself shows them all. */
function someOf(names: readonly string[]): string {
  const few = names.slice(0, 3).map(name => (name.length > 200 ? `${name.slice(0, 200)}…` : name));
  return [...few, ...(names.length > 3 ? [`${names.length - 3} more`] : [])].join(' and ');
}

/** Decides by the address alone. Resolving its name would itself leave the machine before a person has agreed. */
async function decideOnFetch(wanted: PolicySubjectOf<'fetch'>, context: PolicyContext): Promise<Decision> {
  const { url, host } = wanted;
  if (host !== 'public') {
    const place = host === 'loopback' ? 'on this machine' : 'in your private network';
    const [, port] = /:(\d+)$/.exec(hostAndPort(url)) ?? [];
    const reason = `The agent wants to contact ${url.hostname}, port ${port}, ${place}.`;
    return ask(wanted, { rule: 'fetch.private', reason }, context);
  }
  const review = await reviewOf(context);
  const usualPort = url.port === '';
  const isNamed = (hosts: readonly string[]): boolean => namesHost(hosts, url);
  const granted = review?.state === 'reviewed' && isNamed(review.review?.hosts ?? []);
  if (granted && usualPort) return allow('card.host', wanted.subject);
  const reason = `The agent wants to contact ${url.host}.`;
  const question = ask(wanted, { rule: 'fetch.public', reason }, context);
  return withCard(question, context, review, card => usualPort && isNamed(card.hosts));
}

/** Returns the state of the agent; undefined if it cannot be known, and then nothing is granted for the agent. */
export async function reviewOf({ agent, reviews }: PolicyContext): Promise<ReviewState | undefined> {
  if (!agent || !reviews) return undefined;
  return reviews.stateOf(agent).catch(() => undefined);
}

/**
 * Replaces a question by the whole card if the agent is new or has changed. This happens at its first call that needs a question,
 * and at each call that accepting the card would answer.
 */
async function withCard(
  question: Ask,
  context: PolicyContext,
  review: ReviewState | undefined,
  covers: (card: NonNullable<Ask['card']>) => boolean,
): Promise<Ask> {
  const { agent, reviews, memory } = context;
  if (!agent || !reviews || !review || review.state === 'reviewed' || review.files.tooLarge) return question;
  const card = await reviews.cardOf(agent).catch(() => undefined);
  if (!card || card.state === 'reviewed') return question;
  const isCovered = covers(card);
  if (!isCovered && memory?.cardShown) return question;
  const changed = card.changes.map(({ path }) => path);
  const named = changed.length > 3 ? [...changed.slice(0, 3), `${changed.length - 3} more`] : changed;
  const why =
    card.state === 'changed'
      ? `The files of agent '${agent.name}' have changed since you reviewed it (${named.join(', ')}).`
      : `Agent '${agent.name}' has not been reviewed yet.`;
  const rule = isCovered ? undefined : question.lasting?.rule;
  const always = rule ? ' An answer of always accepts its card, and allows just this from then on.' : '';
  return {
    ...question,
    rule: `card.${card.state}`,
    reason: `${question.reason} ${why}${always}`,
    scopes: ['once', 'run', 'always'],
    card,
    lasting: { card, ...(rule ? { rule } : {}) },
    ...(isCovered ? { toAllow: `Look at it and accept it: telos trust ${agent.name}` } : {}),
  };
}

/** Returns the question with the agent's card, whose acceptance would answer it. Unchanged if there is no card to accept. */
export async function askWithCard(question: Ask, context: PolicyContext): Promise<Ask> {
  return question.card ? question : withCard(question, context, await reviewOf(context), () => true);
}

/** Decides whether the servers of an agent may be started or reached. Its card lists them. */
export async function decideOnServers(context: PolicyContext): Promise<Allow | Ask> {
  const { agent } = context;
  const subject = agent?.mcpConfig ?? '';
  const review = await reviewOf(context);
  const written = await writtenServer(context);
  if (review?.state === 'reviewed' && review.files.escapes.length === 0 && written === undefined)
    return allow('card.servers', subject);
  const changeable =
    written === undefined
      ? ''
      : ` The MCP server ${JSON.stringify(written.server)} runs or loads ${written.path}, which lies where runs can write, so its card does not cover it.`;
  const question: Ask = {
    action: 'ask',
    rule: 'mcp.connect',
    reason: `Its MCP servers are programs that are started, or places that are told what the agent does.${changeable}`,
    subject,
    scopes: ['once'],
    ...(written === undefined && { toAllow: `Look at it and accept it: telos trust ${agent?.name ?? ''}` }),
  };
  return withCard(question, context, review, () => written === undefined);
}
