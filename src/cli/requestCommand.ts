/** Implements `telos "<request>"`: one run from words to exit code. */

import { realpath } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { importAttachedFile, importSensitiveNames } from '@telos/engine/files';
import { importRunText } from '@telos/engine/records';
import { importLanguage } from '@telos/engine/routing';
import { allowAll, type Conversation, type Human, type RunRequest } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import type { Attachment } from '@telos/protocol/attachment';
import { describeRoute } from '@telos/protocol/describe';
import type { RouteChoice, RouteReason, RunEvent, RunMode, RunOutcome, SkillRef } from '@telos/protocol/run';
import { type ConfigOptions, configFor, mayWrite } from './cliConfig.ts';
import { readKey } from './keyboard.ts';
import type { MoveKey } from './moveKey.ts';
import type { RunInput } from './runInput.ts';
import { jsonPrinter, noMatchText, openTextPrinter } from './runPrinter.ts';
import type { Slip } from './slips.ts';
import { typedPath } from './surroundings.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { agrees, terminalHuman, unattended } from './terminalHuman.ts';
import { errorText, exactText, sayError, terminalJson, terminalLine, terminalText } from './terminalText.ts';

/** Options of the command line, as they were given. Paths may be relative to the folder of the call. */
export interface RequestOptions extends ConfigOptions {
  agent?: string;
  dryRun?: boolean;
  verbose?: boolean;
  json?: boolean;
  yes?: boolean;
  record?: string;
  /** The file of `record` is replaced if it is there. */
  force?: boolean;
  mode?: RunMode;
  /** Files that go with the request, as the person wrote them. */
  file?: readonly string[];
  /** False if no notes of the person are read as context. */
  contextFiles?: boolean;
  /** Goes on with the latest conversation of this folder. */
  continue?: boolean;
}

/**
 * Runs the request and returns the exit code. If it may be a `slip`, it runs only if a skill or an agent has its name. Unless it
 * `isTyped` by a user, a slash at its beginning means nothing.
 */
export async function requestCommand(
  text: string,
  options: RequestOptions,
  terminal: Terminal,
  {
    isTyped,
    slip,
    ...more
  }: Pick<RunRequest, 'withoutSkill'> & { isTyped?: boolean; slip?: Slip | undefined } = {},
): Promise<number> {
  if (text === '' && !options.continue) {
    terminal.say(
      'Say what you want to do, for example: telos run daily kickoff (telos --help shows the rest)',
    );
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const request = { text, ...more, ...(options.agent === undefined ? {} : { agent: options.agent }) };
  const telos = Telos.open(config);
  if (isTyped && (await isUnknownName(text, telos, terminal))) return 1;
  if (options.continue) return continueLatest(telos, request, options, terminal);
  if (slip && !(await isName(text, telos))) {
    const literal = `(To send it as a request, type: telos -- ${terminalLine(text)})`;
    terminal.say(`'${terminalLine(slip.typed)}' is not a command. ${didYouMean(slip)} ${literal}`);
    return 2;
  }
  return carryOut(telos, request, options, terminal);
}

export const didYouMean = ({ meant }: Slip): string => `Did you mean: telos ${meant.join(' or telos ')}?`;

/** Returns true, and says so, if the words begin with `/` and a name that no skill and no agent has: no model is asked about a slip. */
async function isUnknownName(text: string, telos: Telos, terminal: Terminal): Promise<boolean> {
  const [, name] = /^\/([a-z][\w-]*)(?:\s|$)/i.exec(text) ?? [];
  if (name === undefined || (await isName(name, telos))) return false;
  const near = await nearName(name, telos);
  const hint = near === undefined ? '`telos list-skills` lists the skills.' : `Did you mean /${near}?`;
  const literal = `(To send it as a request, type: telos -- "${text}")`;
  terminal.say(terminalLine(`There is no skill and no agent '${name}'. ${hint} ${literal}`));
  return true;
}

/** Returns the name of a skill or an agent for which this may be a slip. */
async function nearName(name: string, telos: Telos): Promise<string | undefined> {
  const { isOneEditAway } = await importLanguage();
  return (await namesOf(telos)).find(each => isOneEditAway(name, each));
}

/**
 * Asks before a file leaves the machine that holds secrets by its name. Returns false, and says so, if it may not. `--yes` is a yes to
 * all of them.
 */
async function mayAttach(
  { file: files = [], cwd = '.', yes }: RequestOptions,
  terminal: Terminal,
): Promise<boolean> {
  if (files.length === 0 || yes) return true;
  const { isSensitive } = await importSensitiveNames();
  for (const file of files) {
    const path = resolve(typedPath(cwd, terminal.surroundings), file);
    const real = await realpath(path).catch(() => undefined);
    // Reading it says that it is missing.
    if (real === undefined || ![path, real].some(isSensitive)) continue;
    const why = 'By its name it holds secrets. The provider of the model can read all of it.';
    const alone = `${exactText(file)} was not attached, and nothing was sent. ${why} Name another file, or use --yes, which also allows the run everything else.`;
    const question = `Attach ${exactText(basename(path))}?`;
    const about = `${exactText(path)}\n${why}`;
    if (!(await agrees(about, question, alone, terminal, 'Nothing was sent.'))) return false;
  }
  return true;
}

/** Returns the files of `--file`. Returns undefined if one cannot be read, and says why. */
async function attachedBy(
  { file: files = [], cwd = '.' }: RequestOptions,
  terminal: Terminal,
): Promise<readonly Attachment[] | undefined> {
  if (files.length === 0) return [];
  const folder = typedPath(cwd, terminal.surroundings);
  const { readAttachment } = await importAttachedFile();
  try {
    return await Promise.all(files.map(file => readAttachment(resolve(folder, file), file)));
  } catch (error) {
    terminal.say(errorText(error));
    return undefined;
  }
}

/** Goes on with the latest conversation of the folder, in the person's words or in none. */
async function continueLatest(
  telos: Telos,
  request: RunRequest,
  options: RequestOptions,
  terminal: Terminal,
): Promise<number> {
  const conversation = await continued(telos, terminal);
  if (!conversation) return 1;
  const next = conversation.next(request);
  return carryOut(telos, next, options, terminal);
}

/** Returns the latest conversation of the folder, and names it. Says that there is none. */
export async function continued({ config }: Telos, terminal: Terminal): Promise<Conversation | undefined> {
  const { latestConversation } = await import('./conversation.ts');
  const found = await latestConversation(config);
  if (!found) {
    terminal.say('This folder has no conversation to continue. `telos runs` lists the runs of all folders.');
    return undefined;
  }
  const { conversation, title, startedAt } = found;
  const { timeText } = await importRunText();
  const about = terminalLine(`Continuing “${title}” of ${timeText(startedAt)}`, terminal.sayWidth);
  terminal.say(terminal.style.dim(about));
  return conversation;
}

async function isName(text: string, telos: Telos): Promise<boolean> {
  const word = text.toLowerCase();
  return (await namesOf(telos)).some(name => name.toLowerCase() === word);
}

/** Returns the names of all agents and skills. */
const namesOf = async (telos: Telos): Promise<string[]> =>
  (await telos.agents()).flatMap(({ name, skills }) => [name, ...skills.flatMap(one => [one.id, one.name])]);

/** Who runs a request, if it is not the command line itself. */
interface Caller {
  /** Receives each event. */
  note: (event: RunEvent) => void;
  inChat: true;
  /** Reads keys in the run's place. */
  input?: RunInput | undefined;
}

/** Runs a request, or says what would run. Returns the exit code. */
export async function carryOut(
  telos: Telos,
  wanted: RunRequest,
  options: RequestOptions,
  terminal: Terminal,
  caller?: Caller,
): Promise<number> {
  const recordTo =
    options.record === undefined ? undefined : typedPath(options.record, terminal.surroundings);
  const { mode } = options;
  // A chat has looked before its first request, and records each one there.
  const records = recordTo !== undefined && !options.dryRun && !caller;
  if (records && !mayWrite(recordTo, options.force, terminal)) return 1;
  if (!(await mayAttach(options, terminal))) return 1;
  const files = await attachedBy(options, terminal);
  if (!files) return 2;
  const piped =
    caller || options.dryRun ? undefined : await (await import('./pipedText.ts')).pipedText(terminal);
  const attachments = piped ? [...files, piped] : files;
  const request: RunRequest = {
    ...wanted,
    origin: 'cli',
    ...(attachments.length > 0 && { attachments }),
    ...(recordTo === undefined ? {} : { recordTo }),
    ...(mode === undefined ? {} : { mode }),
    ...(options.contextFiles === false && { withoutContextFiles: true }),
  };
  const interrupts = abortOnInterrupt(terminal, () => {
    // The newline ends the line on which a terminal shows ^C.
    terminal.say(
      `${terminal.canAsk ? '\n' : ''}${terminal.style.dim('Stopping; Ctrl-C again ends at once.')}`,
    );
  });
  try {
    if (options.dryRun) return await dryRun(telos, request, options, terminal, interrupts.signal);
    const run = { options, terminal, caller, signal: interrupts.signal };
    const outcome = await runOnce(telos, request, run);
    return exitCodes[outcome];
  } finally {
    interrupts.release();
    if (!caller && request.conversationId !== undefined) await telos.endCommands(request.conversationId);
  }
}

/** Runs the request. If no skill is sure, the person at a terminal chooses one of the likely ones, which then runs. */
async function runOnce(telos: Telos, request: RunRequest, frame: RunFrame): Promise<RunOutcome> {
  const { options, terminal, caller, signal } = frame;
  const print = options.json
    ? jsonPrinter(terminal)
    : await openTextPrinter(terminal, { verbose: options.verbose ?? false, inChat: caller?.inChat ?? false });
  let outcome: RunOutcome = 'failed';
  let choices: readonly RouteChoice[] = [];
  let runId = '';
  let hasSkill = true;
  const person = await humanFor(options, terminal);
  const move = (callId: string): boolean => telos.commandsOf(request.conversationId ?? runId).move(callId);
  if (caller?.input) caller.input.moves = move;
  const reader =
    caller?.input ?? (terminal.canAsk && !options.json ? await openMoveKey(terminal, move) : undefined);
  for await (const event of telos.run(request, person, signal)) {
    if (event.type === 'run_start') runId = event.runId;
    if (event.type === 'routed') hasSkill = event.skill !== '';
    reader?.note(event);
    if (event.type === 'run_end') {
      outcome = event.outcome;
      choices = event.error?.choices ?? [];
    }
    if (event.type === 'usage' && event.round === manyRounds) await stayingSmall();
    caller?.note(event);
    print(event);
  }
  if (outcome === 'completed' && !hasSkill && !options.json) await offerHabit(runId, telos, terminal);
  if (outcome !== 'no_match' || options.json || !terminal.canAsk) return outcome;
  terminal.ring?.();
  const chosen = await chooseLikely(choices, signal);
  if (chosen === undefined) return outcome;
  const how = chosen === 'none' ? { withoutSkill: true } : { skill: chosen, isChoice: true };
  return runOnce(telos, { ...request, ...how }, frame);
}

/** Says below an answer without a skill that it was the third of its kind. */
async function offerHabit(runId: string, telos: Telos, terminal: Terminal): Promise<void> {
  if (!telos.config.suggestsSkills) return;
  const line = await (await import('./fromRunsCommand.ts')).habitLine(runId, telos);
  if (line !== undefined) terminal.say(terminal.style.dim(line));
}

async function openMoveKey(terminal: Terminal, move: (callId: string) => boolean): Promise<MoveKey> {
  const { MoveKey } = await import('./moveKey.ts');
  return new MoveKey(terminal, move);
}

/** Rounds from which a run counts as one that goes far. */
const manyRounds = 20;

/** A whole prompt becomes garbage in each round, for which V8 would take ever more room that it does not give back. */
async function stayingSmall(): Promise<void> {
  const { setFlagsFromString } = await import('node:v8');
  setFlagsFromString('--semi-space-growth-factor=1');
  // Compiled code is kept at the end for starts with V8's own value, and read by none with another.
  process.prependOnceListener('exit', () => setFlagsFromString('--semi-space-growth-factor=2'));
}

interface RunFrame {
  options: RequestOptions;
  terminal: Terminal;
  caller: Caller | undefined;
  signal: AbortSignal;
}

/**
 * Returns the skill whose number the user presses, or that Enter means: the first, or `none` if none is likely. Returns undefined for any
 * other key.
 */
async function chooseLikely(
  choices: readonly RouteChoice[],
  signal: AbortSignal,
): Promise<SkillRef | 'none' | undefined> {
  const numbers = choices.length === 1 ? '1' : `1 to ${choices.length}`;
  const question =
    choices.length === 0
      ? 'No skill fits. Answer without one? [Enter, any other key = no] '
      : `Run which? [${numbers}, Enter = 1, a = answer without a skill, any other key = nothing] `;
  const key = await readKey(question, signal);
  const isEnter = key === '\r' || key === '\n';
  if (key === 'a' || (isEnter && choices.length === 0)) return 'none';
  const chosen = choices[isEnter ? 0 : Number(key) - 1];
  return chosen && { agent: chosen.agent, skill: chosen.skill };
}

const exitCodes: Record<RunOutcome, number> = {
  completed: 0,
  no_match: 1,
  round_limit: 1,
  budget: 1,
  failed: 1,
  cancelled: cancelledExitCode,
};

async function humanFor(options: RequestOptions, terminal: Terminal): Promise<Human> {
  if (options.yes) return allowAll;
  if (!terminal.canAsk) return unattended;
  return terminalHuman(terminal);
}

async function dryRun(
  telos: Telos,
  request: RunRequest,
  options: RequestOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  try {
    if (request.withoutSkill) {
      const reason: RouteReason = { rule: 'without_skill' };
      const json = { agent: null, skill: null, reason };
      terminal.out(options.json ? `${terminalJson(json)}\n` : `Would run ${describeRoute('', '', reason)}\n`);
      return 0;
    }
    const match = await telos.route(request, signal);
    if (match.notice) terminal.say(terminal.style.yellow(terminalText(match.notice)));
    if (options.json) terminal.out(`${terminalJson(dryRunJson(match))}\n`);
    if (!match.skill && telos.config.answerWithoutSkill === 'always') {
      const reason: RouteReason = { rule: 'without_skill' };
      if (!options.json) terminal.out(`Would run ${terminalLine(describeRoute('', '', reason))}\n`);
      return 0;
    }
    if (!match.skill) {
      const sentence = terminalText(`No matching skill found for: '${request.text}'`);
      if (!options.json) terminal.say(noMatchText(sentence, match, terminal.style.bold));
      return 1;
    }
    if (!options.json) {
      const { agent, skill, reason } = match;
      terminal.out(`Would run ${terminalLine(describeRoute(agent.name, skill.id, reason))}\n`);
    }
    return 0;
  } catch (error) {
    if (signal.aborted) return cancelledExitCode;
    if (!(error instanceof TelosError)) throw error;
    return sayError(error, terminal);
  }
}

function dryRunJson(match: Awaited<ReturnType<Telos['route']>>): object {
  if (!match.skill) {
    const { choices, suggestions } = match;
    return { agent: null, skill: null, choices, suggestions };
  }
  const { agent, skill, reason } = match;
  return { agent: agent.name, skill: skill.id, description: skill.description, reason };
}
