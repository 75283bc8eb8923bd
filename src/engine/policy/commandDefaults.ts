/** Decides on a command by default: which ones need no question, and the question about all others. */

import { relative } from 'node:path';
import { type AgentCard, describeFlag } from '@telos/protocol/agentCard';
import { type Sentence, sentence, shortened, spoken } from '@telos/protocol/text';
import { folderHolding, PathProblem, realPlace, resolvePath } from '../files/paths.ts';
import { obeyedAt } from '../files/sensitiveNames.ts';
import type { Review } from './agentReviews.ts';
import { needsOnlyBox, staysInBox, worksDirectly } from './boxedCommand.ts';
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
import { ownScript } from './ownScript.ts';
import { isOffered } from './programHabits.ts';
import { ask, withCard } from './question.ts';
import { parseReadOnlyCommand } from './readOnlyCommand.ts';
import { sensitiveWords } from './secretWords.ts';
import { wordsMatch } from './shellCommands.ts';
import type { PolicySubject, PolicySubjectOf } from './subject.ts';
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

/** Refuses a command that would run outside of a box where the person's setting wants one for each. */
export async function beyondBox(wanted: PolicySubject, context: PolicyContext): Promise<Deny | undefined> {
  const { boxRequired, hasBox, noBox } = context;
  if (wanted.kind !== 'command' || !boxRequired || (hasBox && !wanted.leaving)) return undefined;
  // A command that only reads is run by Telos itself, without a shell.
  if ((await readOnlyCommand(wanted, context)).action === 'allow') return undefined;
  if (!hasBox) {
    const { why = 'The reason is not known.', mend } = noBox ?? {};
    return deny(
      'run.box-required',
      `Commands run in a sandbox only (telos.sandbox is required), and none works here: ${why}${mend === undefined ? '' : ` To fix it: ${mend}`}`,
    );
  }
  return deny(
    'run.box-required',
    'Commands run only in a sandbox (telos.sandbox is required), so this one cannot leave it. Do it another way, or tell the person what is missing.',
  );
}

function inBox(wanted: PolicySubjectOf<'command'>, context: PolicyContext): Sentence {
  if (!worksDirectly(wanted, context))
    return sentence(
      'Runs in a sandbox: it can change only this workspace, and asks before it uses the network.',
    );
  return wanted.goesOn
    ? sentence(
        'Runs in a sandbox, but changes your folder directly until you stop it, and undo does not cover that.',
      )
    : sentence(
        'Runs in a sandbox, but changes your folder directly: nothing here can hold changes back, and undo does not cover them.',
      );
}

export async function decideOnCommand(
  wanted: PolicySubjectOf<'command'>,
  context: PolicyContext,
): Promise<Decision> {
  const looking = await readOnlyCommand(wanted, context);
  if (looking.action === 'allow') return looking;
  const promised = await ofCard(wanted, context);
  if (promised && promised.changed === undefined && !(context.hasBox && wanted.leaving))
    return allow('workflow.card', wanted.subject);
  const review = await reviewOf(context);
  const script = await ownScript(wanted, context, review?.files);
  const secrets = sensitiveWords(wanted.subject, wanted.folder, context.home);
  const escapes = review?.files.escapes ?? [];
  const granted = review?.state === 'reviewed' && escapes.length === 0 ? review.review : undefined;
  // The review covers the script, not what it does with a file of secrets that a model passes to it.
  const isCalm = wanted.dangers.length === 0 && !wanted.leaving;
  const asChecked = script?.line !== undefined && { line: script.line };
  if (isCalm && script && granted?.scripts.includes(script.label) && secrets.length === 0)
    return { ...allow('card.script', wanted.subject), ...asChecked };
  if (isCalm && granted && secrets.length === 0 && (await isPreApproved(wanted, granted, context)))
    return allow('card.command', wanted.subject);
  if (await needsOnlyBox(wanted, context)) return { ...allow('run.box', wanted.subject), ...asChecked };
  const isBoxed = context.boxRequired === true || staysInBox(wanted, context);
  const program = isBoxed ? undefined : networkProgramIn(wanted.subject);
  const always = isBoxed
    ? inBox(wanted, context)
    : sentence('A command can do anything that you can do on this machine, and undo does not cover it.');
  const special: Sentence[] = [];
  if (promised?.changed !== undefined)
    special.push(sentence('The plan may run it, but {0} has changed how it works.', promised.changed));
  if (program !== undefined) special.push(sentence('It names {0}, which can reach the network.', program));
  if (secrets.length > 0)
    special.push(sentence('It names {0}, which looks like a place of secrets.', someOf(secrets)));
  if (escapes[0] !== undefined)
    special.push(
      sentence(
        'The permissions of the agent do not cover all that it can run: {0}.',
        describeFlag(escapes[0]),
      ),
    );
  const reason = spoken([always, ...special]);
  const sentences = special.length > 0 ? special : [always];
  // A rule would allow it outside of the box too.
  const never = escapes.length > 0 || isBoxed ? ({ never: 'always' } as const) : {};
  const question = ask(wanted, { rule: 'run.command', reason, sentences, ...never }, context);
  const answers = async (card: AgentCard): Promise<boolean> =>
    (script !== undefined && card.scripts.includes(script.label)) ||
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
  if (others.some(word => /\bfile:/i.test(word) || (isSentBy(program) && namesFile.test(word)))) return false;
  const stays = await Promise.all(others.flatMap(placesIn).map(place => staysInside(place, folder, context)));
  return stays.every(Boolean);
}

/** A file whose content is sent, as `curl -d @file` and `-F part=@file` name it. */
const namesFile = /^(?:-[\w-]*=?)?@.|[=:,;<]@./;

/** Whether the program sends a file that `@` names. Package managers and Git mean something else by it. */
const isSentBy = (program: string): boolean => {
  const name = program.slice(program.lastIndexOf('/') + 1);
  return networkProgramIn(name) !== undefined && !/^(?:git|npm|npx|pnpm|yarn|bunx?|deno)$/.test(name);
};

const isAddress = /^[a-z][\w+.-]*:\/\//i;

/**
 * Returns what of a word may be a path: the word, what follows an option, and what follows a sign that programs read a file or another
 * place after. Of an address, only what follows `@` or `<` can be one.
 */
function placesIn(word: string): string[] {
  const found = new Set([word, word.replace(/^-[\w-]*=?/, '')]);
  const signs = isAddress.test(word) ? /[@<]/g : /[@=:,<]/g;
  for (const { index } of word.matchAll(signs)) {
    const rest = word.slice(index + 1);
    if (/^(?:[/~]|\.\.)/.test(rest) || isAddress.test(rest) || word[index] === '@') found.add(rest);
    if (isAddress.test(rest)) break;
  }
  return [...found].filter(Boolean);
}

/** Returns true for a word that is not a path, or is that of an ordinary file in a folder of the run. */
async function staysInside(word: string, folder: string, context: PolicyContext): Promise<boolean> {
  if (isAddress.test(word)) return true;
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
