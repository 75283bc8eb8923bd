/** Decides on a command by default: which ones need no question, and the question about all others. */

import { relative } from 'node:path';
import { type AgentCard, describeFlag } from '../../protocol/agentCard.ts';
import { type Sentence, sentence, shortened, spoken } from '../../protocol/text.ts';
import { globMatcher, longestGlob } from '../files/globPattern.ts';
import { folderHolding, PathProblem, realPlace, resolvePath } from '../files/paths.ts';
import { isSensitive, obeyedAt, secretFolderNames } from '../files/sensitiveNames.ts';
import { isOffered } from './agentCard.ts';
import type { Review } from './agentReviews.ts';
import { commandReach } from './commandReach.ts';
import { checkedLine } from './commandStages.ts';
import {
  type Allow,
  allow,
  type Decision,
  type Deny,
  deny,
  type PolicyContext,
  reviewOf,
} from './decision.ts';
import { acceptedFolders, unacceptedFolders } from './fileDefaults.ts';
import { ask, withCard } from './question.ts';
import { parseReadOnlyCommand } from './readOnlyCommand.ts';
import { piecesOf, wordsMatch } from './shellCommands.ts';
import { lineOf } from './shellPlan.ts';
import type { PolicySubjectOf } from './subject.ts';
import { ofCard } from './workerRole.ts';

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

export async function decideOnCommand(
  wanted: PolicySubjectOf<'command'>,
  context: PolicyContext,
): Promise<Decision> {
  const looking = await readOnlyCommand(wanted, context);
  if (looking.action === 'allow') return looking;
  const promised = await ofCard(wanted, context);
  if (promised && promised.changed === undefined) return allow('workflow.card', wanted.subject);
  const review = await reviewOf(context);
  const line = await checkedLine(wanted, context, review?.files);
  const secrets = sensitiveWords(wanted.subject, wanted.folder, context.home);
  const escapes = review?.files.escapes ?? [];
  const scripts = line?.scripts ?? [];
  const isAccepted = review?.state === 'reviewed' && escapes.length === 0;
  // Who has accepted a plan has agreed to programs that only compute in its folder.
  const accepted = isAccepted ? review.review?.scripts : context.role === 'worker' ? [] : undefined;
  const isCovered = scripts.every(script => accepted?.includes(script));
  // The review covers the script, not what it does with a file of secrets that a model passes to it.
  const isCalm = wanted.dangers.length === 0;
  if (isCalm && line && accepted && isCovered && secrets.length === 0) {
    const rule = scripts.length > 0 ? 'card.script' : 'run.compute';
    return { ...allow(rule, wanted.subject), ...(line.stages && { line: lineOf(line.stages) }) };
  }
  const granted = review?.state === 'reviewed' && escapes.length === 0 ? review.review : undefined;
  if (isCalm && granted && secrets.length === 0 && (await isPreApproved(wanted, granted, context)))
    return allow('card.command', wanted.subject);
  const program = networkProgramIn(wanted.subject);
  const always = sentence('A command can do whatever you can do on this machine.');
  const special: Sentence[] = [];
  if (promised?.changed !== undefined)
    special.push(sentence("It is on the plan's card, but {0} has changed what it does.", promised.changed));
  if (program !== undefined) special.push(sentence('It names {0}, which can reach the network.', program));
  if (secrets.length > 0)
    special.push(sentence('It names {0}, which looks like a place of secrets.', someOf(secrets)));
  if (escapes[0] !== undefined)
    special.push(
      sentence("The agent's card does not cover all that it can run: {0}.", describeFlag(escapes[0])),
    );
  const reason = spoken([always, ...special]);
  const sentences = special.length > 0 ? special : [always];
  const never = escapes.length > 0 ? ({ never: 'always' } as const) : {};
  const question = ask(wanted, { rule: 'run.command', reason, sentences, ...never }, context);
  const answers = async (card: AgentCard): Promise<boolean> =>
    // For a program that only computes, a rule of the user does as well.
    (scripts.length > 0 && scripts.every(script => card.scripts.includes(script))) ||
    (await isPreApproved(wanted, card, context));
  return withCard(question, context, review, answers);
}

/** Words that make a usual program destroy or publish. */
const drasticWords =
  /^(?:push|publish|unpublish|deploy|yank|filter-branch|filter-repo|reflog|gc|clean|--force\S*|--hard|--mirror|--delete|--prune|-delete|-exec\S*|--no-verify)$/i;

/**
 * Returns true if the running skill names the command and the accepted card says so. It must be one simple command whose words stay
 * in the run's folders, away from files that others obey, and say nothing drastic.
 */
async function isPreApproved(
  { words, folder }: PolicySubjectOf<'command'>,
  { commands = [] }: Partial<Pick<Review, 'commands'>>,
  context: PolicyContext,
): Promise<boolean> {
  const [program = '', ...others] = words ?? [];
  const patterns = context.namedCommands?.filter(pattern => commands.includes(pattern.join(' '))) ?? [];
  if (!words || !patterns.some(pattern => wordsMatch(pattern, words))) return false;
  if (!isOffered(program) || others.some(word => drasticWords.test(word))) return false;
  const places = others.flatMap(word => [word, word.replace(/^-[\w-]*=?/, '')]).filter(Boolean);
  const stays = await Promise.all(places.map(place => staysInside(place, folder, context)));
  return stays.every(Boolean);
}

/** Returns true for a word that is not a path, or is that of an ordinary file in a folder of the run. */
async function staysInside(word: string, folder: string, context: PolicyContext): Promise<boolean> {
  if (/^[a-z][\w+.-]*:\/\//i.test(word)) return !/^file:/i.test(word);
  const { workingDir, packDir, skillDir, home } = context;
  try {
    const path = await resolvePath(word, folder, home);
    const holding = await folderHolding(path, [workingDir, packDir, skillDir, folder], home);
    return (
      holding !== undefined && obeyedAt(path, relative(realPlace(holding) ?? holding, path)) === undefined
    );
  } catch (error) {
    if (error instanceof PathProblem) return false;
    throw error;
  }
}

/** Returns as many names as a person reads. The command itself shows them all. */
function someOf(names: readonly string[]): string {
  const few = names.slice(0, 3).map(name => shortened(name, 200));
  return [...few, ...(names.length > 3 ? [`${names.length - 3} more`] : [])].join(' and ');
}

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
