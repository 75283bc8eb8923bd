/** Implements `telos chat`: requests one after the other in one conversation, and commands that begin with a slash. */

import { setTimeout as wait } from 'node:timers/promises';
import { TelosError } from '@telos/engine/errors';
import { importModelList } from '@telos/engine/providers';
import { isOneEditAway } from '@telos/engine/routing';
import { Conversation, type RunRequest } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import { hasUndo } from '@telos/engine/undo';
import { type RunEvent, type RunMode, runModes } from '@telos/protocol/run';
import { counted } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import { configFor, mayWrite } from './cliConfig.ts';
import { earlierRequests } from './conversation.ts';
import { carryOut, continued, type RequestOptions } from './requestCommand.ts';
import { openPrompt, type Prompt } from './requestPrompt.ts';
import { RunInput } from './runInput.ts';
import { typedPath } from './surroundings.ts';
import type { Terminal } from './terminal.ts';
import { errorText, terminalLine, terminalText } from './terminalText.ts';

/** The state of a chat between two requests. */
interface ChatState {
  telos: Telos;
  options: RequestOptions;
  conversation: Conversation;
  terminal: Terminal;
  /** The latest restore, until the next request: its id, and the conversation before it. */
  restored?: { id: string; before: Conversation } | undefined;
  /** Requests that were typed while another one ran, and what was begun of the next one. */
  queue: string[];
  draft: string;
  /** Of the first request that failed, 0 if none did. */
  code: number;
}

/** Talks until the person leaves. Returns the exit code: who pipes requests in sees by it that one failed. */
export async function chatCommand(first: string, given: RequestOptions, terminal: Terminal): Promise<number> {
  const { continue: goesOn, ...options } = given;
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { record, force } = options;
  if (record !== undefined && !mayWrite(typedPath(record, terminal.surroundings), force, terminal)) return 1;
  const telos = Telos.open(config);
  telos.book.wantsOffers = terminal.canAsk;
  const conversation = goesOn ? await continued(telos, terminal) : new Conversation();
  if (!conversation) return 1;
  const state: ChatState = { telos, options, conversation, terminal, queue: [], draft: '', code: 0 };
  const known = earlierRequests(config);
  if (terminal.canAsk) terminal.say(await greeting(telos, terminal));
  const prompt = openPrompt({
    history: await Promise.race([known, wait(patience, [])]),
    complete: before => completed(before, state),
  });
  try {
    if (first !== '') await send(first, state);
    await talk(prompt, state);
  } finally {
    prompt.close();
    await endCommands(state);
  }
  return terminal.canAsk ? 0 : state.code;
}

/** Ends what runs in the background of the conversation, and names it. */
async function endCommands({ telos, conversation, terminal }: ChatState): Promise<void> {
  for (const command of await telos.endCommands(conversation.id))
    terminal.say(terminal.style.dim(terminalLine(`Ended: ${command}`, terminal.sayWidth)));
}

/** How long the first prompt waits for the requests of earlier days, in milliseconds. */
const patience = 200;

async function greeting(telos: Telos, { style }: Terminal): Promise<string> {
  const hint = style.dim('/help lists the commands; Ctrl-D leaves.');
  try {
    const { name, model } = await telos.provider();
    return `${style.bold('Telos')} ${style.dim(terminalLine(`${model} (${name})`))}\n${hint}`;
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    return `${style.yellow(errorText(error))}\n${hint}`;
  }
}

async function talk(prompt: Prompt, state: ChatState): Promise<void> {
  const { terminal } = state;
  for (let interrupts = 0; interrupts < 2; ) {
    terminal.flush();
    const { mode = 'default' } = state.options;
    const before = mode === 'default' ? '' : `${mode} `;
    const sign = terminal.style.bold(`${before}› `);
    const waiting = state.queue.shift();
    if (waiting !== undefined) terminal.say(`${sign}${terminalText(waiting)}`);
    const { draft } = state;
    if (waiting === undefined) state.draft = '';
    const answer = waiting === undefined ? await prompt.read(sign, draft) : { text: waiting };
    if (answer === 'end') return terminal.canAsk ? terminal.say('') : undefined;
    if (answer === 'interrupt') {
      interrupts++;
      if (interrupts < 2) terminal.say(terminal.style.dim('Ctrl-C again leaves.'));
      continue;
    }
    interrupts = 0;
    const text = answer.text.trim();
    if (/^\/?(?:quit|exit)$/.test(text)) return;
    if (text !== '') await carryOutLine(text, state);
  }
}

/** Sends the words, or does what a command says. An error of the engine is shown, and the chat goes on. */
async function carryOutLine(text: string, state: ChatState): Promise<void> {
  const [, name, rest = ''] = /^\/([a-z]+)(?:\s+(.*))?$/s.exec(text) ?? [];
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
  try {
    if (command) await command.run(rest.trim(), state);
    else if (name === undefined || (await mayBeSkill(name, state))) await send(text, state);
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    state.code ||= 1;
    state.terminal.say(state.terminal.style.red(errorText(error)));
  }
}

async function send(
  text: string,
  state: ChatState,
  more: Pick<RunRequest, 'withoutSkill' | 'change'> = {},
): Promise<void> {
  const { telos, options, conversation, terminal } = state;
  telos.refresh();
  state.restored = undefined;
  const { agent, file: _sent, ...later } = options;
  // Files go with one request.
  state.options = { ...later, ...(agent === undefined ? {} : { agent }) };
  const request = conversation.next({
    text,
    answersAnyway: true,
    ...more,
    ...(agent === undefined ? {} : { agent }),
  });
  const note = (event: RunEvent): void => conversation.note(event);
  const input = terminal.canAsk && !options.json ? new RunInput(terminal) : undefined;
  input?.begin();
  try {
    const place = input?.terminal ?? terminal;
    const code = await carryOut(telos, request, options, place, { note, inChat: true, input });
    state.code ||= code;
  } finally {
    input?.end();
  }
  state.queue.push(...(input?.queue ?? []));
  state.draft = input?.draft || state.draft;
  const { length } = telos.commandsOf(conversation.id).running;
  if (length > 0)
    terminal.say(
      terminal.style.dim(`${counted(length, 'command')} in the background; /commands lists them.`),
    );
  terminal.say('');
}

/** Returns false, and says so, if neither a command nor a skill has this name: no model is asked about a slip. */
async function mayBeSkill(name: string, state: ChatState): Promise<boolean> {
  const { telos, terminal } = state;
  const skills = (await telos.agents()).flatMap(agent => [agent.name, ...agent.skills.map(({ id }) => id)]);
  if (skills.some(skill => skill.toLowerCase() === name)) return true;
  state.code ||= 1;
  const near = [...Object.keys(commands), 'quit', ...skills].find(each => isOneEditAway(name, each));
  const hint = near === undefined ? '/help lists the commands.' : `Did you mean /${near}?`;
  terminal.say(terminalLine(`'/${name}' is not a command or a skill. ${hint}`));
  return false;
}

interface ChatCommand {
  description: string;
  run(words: string, state: ChatState): Promise<void> | void;
}

const commands: Readonly<Record<string, ChatCommand>> = {
  new: {
    description: 'begin a new conversation',
    async run(_words, state) {
      await endCommands(state);
      state.conversation = new Conversation();
      state.restored = undefined;
      state.terminal.say('A new conversation: the model has forgotten the old one.');
    },
  },
  continue: {
    description: 'let the model go on, for example after 20 steps',
    run(words, state) {
      if (!state.conversation.isEmpty) return send(words, state);
      state.terminal.say('There is nothing to continue yet.');
      return undefined;
    },
  },
  ask: {
    description: 'have Telos do it without a skill',
    run(words, state) {
      if (words !== '') return send(words, state, { withoutSkill: true });
      state.terminal.say('Say what you want: /ask WORDS');
      return undefined;
    },
  },
  compact: {
    description: 'summarize the conversation to save room: /compact [WHAT TO DWELL ON]',
    run(focus, state) {
      if (!state.conversation.isEmpty)
        return send(`/compact ${focus}`.trim(), state, { change: { kind: 'compact', focus } });
      state.terminal.say('There is nothing to compact yet.');
      return undefined;
    },
  },
  uncompact: {
    description: 'undo the latest /compact: the model is sent everything again',
    run: (_words, state) => send('/uncompact', state, { change: { kind: 'restore' } }),
  },
  context: {
    description: 'read your notes.md with each request, or not: /context on, off',
    run(words, { options, terminal }) {
      if (words === 'on' || words === 'off') options.contextFiles = words === 'on';
      const isOff = options.contextFiles === false;
      terminal.say(`notes.md of your configuration is ${isOff ? 'not ' : ''}read with each request.`);
    },
  },
  model: {
    description: 'list the models, or use another one: /model NAME',
    run: (words, state) => (words === '' ? listModelsOf(state) : useModel(words, state)),
  },
  mode: {
    description: `see or change the mode: /mode ${runModes.join(', ')}`,
    run: (words, state) => useMode(words, state),
  },
  commands: {
    description: 'list what runs in the background; /commands stop NAME ends one',
    run: (words, state) => showCommands(words, state),
  },
  restore: {
    description: 'list the requests, or go back to before one, with the files: /restore NUMBER',
    run: (words, state) => restoreTo(words, state),
  },
  branch: {
    description: 'go on in a new conversation from before a request: /branch NUMBER',
    run: (words, state) => branchAt(words, state),
  },
  undo: {
    description: 'put the files back as they were before the last change',
    run: (_words, state) => undoLast(state),
  },
  help: {
    description: 'show this',
    run: (_words, { terminal }) => terminal.say(helpText()),
  },
};

function helpText(): string {
  const rows = Object.entries(commands).map(
    ([name, { description }]) => `  /${name.padEnd(11)}${description}`,
  );
  return [
    'Type what you want to do. /NAME runs the skill of that name.',
    ...rows,
    `  /${'quit'.padEnd(11)}leave, as Ctrl-D does`,
    'Tab completes @files, /skills and commands. Up and Ctrl-R bring earlier requests back; Ctrl-G opens your editor.',
    'Alt-Enter begins a new line, as does \\ at the end of one. A request that you type during a run waits for its end.',
    'Esc stops a run, and Ctrl-B sends its command to the background. `telos --help` lists what works outside of a chat.',
  ].join('\n');
}

/** Models of a provider that are listed. */
const mostListed = 8;

const someOf = (models: readonly string[]): string =>
  models.length === 0
    ? 'any'
    : models.slice(0, mostListed).join(', ') + (models.length > mostListed ? ', …' : '');

async function listModelsOf({ telos, terminal }: ChatState): Promise<void> {
  const { listModels } = await importModelList();
  const [inForce, providers] = await Promise.all([
    telos.provider().catch(() => undefined),
    listModels(telos.config),
  ]);
  if (inForce) terminal.say(terminalLine(`In use: ${inForce.model} (${inForce.name})`));
  for (const { name, models, ready } of providers)
    if (ready) terminal.say(`  ${terminalLine(`${name}: ${someOf(models)}`, terminal.sayWidth - 2)}`);
  const missing = providers.filter(({ ready }) => !ready).map(({ name }) => name);
  if (missing.length > 0) terminal.say(`  Not set up: ${missing.join(', ')}`);
  terminal.say('To change: /model NAME, or /model PROVIDER NAME');
}

async function useModel(words: string, state: ChatState): Promise<void> {
  const { listModels } = await importModelList();
  const { terminal, telos } = state;
  const [first = '', second] = words.split(/\s+/);
  const providers = await listModels(telos.config);
  const named = [...providers.map(({ name }) => name as string), 'replay'].find(
    name => name === first.toLowerCase(),
  );
  const serving = providers.find(({ ready, models }) => ready && models.includes(first))?.name;
  const provider = named ?? serving ?? (await telos.provider()).name;
  const { model: _old, ...kept } = state.options;
  const model = named === undefined ? first : second;
  const options = { ...kept, provider, ...(model === undefined ? {} : { model }) };
  const config = configFor(options, terminal);
  if (!config) return;
  const next = Telos.open(config);
  const inForce = await next.provider();
  Object.assign(state, { telos: next, options });
  terminal.say(terminalLine(`Now: ${inForce.model} (${inForce.name})`));
}

const modeTexts: Readonly<Record<RunMode, string>> = {
  sandbox: 'asks about nothing that the sandbox holds; the network still asks',
  default: 'as your rules say',
  review: 'asks before each change of a file, with its lines',
  plan: 'only reads, and answers with a plan',
};

function useMode(words: string, state: ChatState): void {
  const { terminal, options } = state;
  const mode = runModes.find(each => each === words.toLowerCase());
  if (words !== '' && !mode) terminal.say(terminalLine(`There is no mode '${words}'.`));
  if (mode) state.options = { ...options, mode };
  const { mode: inForce = 'default' } = state.options;
  for (const each of mode ? [mode] : runModes)
    terminal.say(`${each === inForce ? '›' : ' '} ${each}: ${modeTexts[each]}`);
}

async function showCommands(words: string, { telos, conversation, terminal }: ChatState): Promise<void> {
  const commands = telos.commandsOf(conversation.id);
  const [, id] = /^stop\s+(\S+)$/.exec(words) ?? [];
  const stopped = id === undefined ? undefined : commands.running.find(command => command.id === id);
  if (stopped) {
    await stopped.stop();
    return terminal.say(terminalLine(`Ended: ${stopped.command}`, terminal.sayWidth));
  }
  if (words !== '') return terminal.say(terminalLine(`No command '${id ?? words}' runs in the background.`));
  const running = commands.list();
  if (running.length === 0) return terminal.say('Nothing runs in the background.');
  for (const { id: name, command, startedAt } of running) {
    const age = formatDuration(Date.now() - Date.parse(startedAt));
    terminal.say(terminalLine(`${name}  ${age}  ${command}`, terminal.sayWidth));
  }
}

async function undoLast(state: ChatState): Promise<void> {
  const { conversation, options, terminal, restored } = state;
  const id = restored?.id ?? (await lastToUndo(state));
  if (id === undefined) return terminal.say('This conversation has changed no files.');
  const { undoCommand } = await import('./undoCommand.ts');
  const { yes: _yes, ...rest } = options;
  const code = await undoCommand(id, rest, terminal);
  if (code !== 0) return;
  if (!restored) conversation.changedBy.splice(conversation.changedBy.indexOf(id));
  else Object.assign(state, { conversation: restored.before, restored: undefined });
}

/** Returns the last run of the conversation that has something to undo; its last one if none has, undefined if it has none. */
async function lastToUndo({ conversation: { changedBy }, telos }: ChatState): Promise<string | undefined> {
  for (const id of [...changedBy].reverse()) {
    // Changes that are too old are no longer stored.
    const changes = await telos.changes.of(id).catch(() => undefined);
    if (changes && hasUndo(changes)) return id;
  }
  return changedBy.at(-1);
}

async function restoreTo(words: string, state: ChatState): Promise<void> {
  const { restoreConversation } = await import('./chatRestore.ts');
  const restored = await restoreConversation(words, state);
  if (!restored) return;
  state.restored = { id: restored.id, before: state.conversation };
  state.conversation = restored.conversation;
}

async function branchAt(words: string, state: ChatState): Promise<void> {
  const { branchOf } = await import('./chatRestore.ts');
  const branch = branchOf(words, state);
  if (!branch) return;
  await endCommands(state);
  Object.assign(state, { conversation: branch, restored: undefined });
}

/** Returns what the word before the cursor may become: a command, a skill or a prompt behind a slash, a file or a resource behind an @, or a mode. */
async function completed(before: string, { telos }: ChatState): Promise<readonly string[]> {
  if (/^\/mode\s+\S*$/.test(before)) return runModes;
  const [, sign, word = ''] = /(?:^|\s)([@/])(\S*)$/.exec(before) ?? [];
  const { resources, prompts } = telos.book.offers();
  if (sign === '@') {
    const { filesBeginning } = await import('./fileNames.ts');
    const files = await filesBeginning(word, telos.config.cwd);
    return [...resources.map(each => each.word), ...files].map(name => terminalText(`@${name}`));
  }
  if (sign !== '/') return [];
  const skills = (await telos.agents()).flatMap(({ skills }) =>
    skills.filter(({ userInvocable, isDisabled }) => userInvocable && !isDisabled).map(({ id }) => id),
  );
  const isFirst = before === `/${word}`;
  const own = isFirst ? [...Object.keys(commands), 'quit'] : [];
  return [...own, ...skills, ...prompts.map(each => each.word)].map(name => terminalText(`/${name}`));
}
