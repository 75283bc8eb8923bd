/** Implements `telos chat`: requests one after the other in one conversation, and commands that begin with a slash. */
import { setTimeout as wait } from 'node:timers/promises';
import { TelosError } from '../engine/errors.ts';
import { isOneEditAway } from '../engine/routing/language.ts';
import type { RunRequest } from '../engine/run/request.ts';
import { Telos } from '../engine/telos.ts';
import { type RunEvent, type RunMode, runModes } from '../protocol/run.ts';
import { configFor } from './cliConfig.ts';
import { Conversation, earlierRequests, goOn } from './conversation.ts';
import { carryOut, continued, type RequestOptions } from './requestCommand.ts';
import { openPrompt, type Prompt } from './requestPrompt.ts';
import type { Terminal } from './terminal.ts';
import { errorText, terminalLine, terminalText } from './terminalText.ts';

/** The state of a chat between two requests. */
interface ChatState {
  telos: Telos;
  options: RequestOptions;
  conversation: Conversation;
  terminal: Terminal;
}

/** Talks until the person leaves. Returns the exit code. */
export async function chatCommand(first: string, given: RequestOptions, terminal: Terminal): Promise<number> {
  const { continue: goesOn, ...options } = given;
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const conversation = goesOn ? await continued(telos, terminal) : new Conversation();
  if (!conversation) return 1;
  const state: ChatState = { telos, options, conversation, terminal };
  const known = earlierRequests(config);
  if (terminal.canAsk) terminal.say(await greeting(telos, terminal));
  const prompt = openPrompt({
    history: await Promise.race([known, wait(patience, [])]),
    complete: line => completed(line, state),
  });
  try {
    if (first !== '') await send(first, state);
    await talk(prompt, state);
  } finally {
    prompt.close();
  }
  return 0;
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
    const answer = await prompt.read(terminal.style.bold(`${before}› `));
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
    state.terminal.say(state.terminal.style.red(errorText(error)));
  }
}

async function send(
  text: string,
  { telos, options, conversation, terminal }: ChatState,
  more: Pick<RunRequest, 'withoutSkill'> = {},
): Promise<void> {
  telos.refresh();
  const { agent } = options;
  const request = conversation.next({ text, ...more, ...(agent === undefined ? {} : { agent }) });
  const note = (event: RunEvent): void => conversation.note(event);
  await carryOut(telos, request, options, terminal, { note, inChat: true });
  terminal.say('');
}

/** Returns false, and says so, if neither a command nor a skill has this name: no model is asked about a slip. */
async function mayBeSkill(name: string, { telos, terminal }: ChatState): Promise<boolean> {
  const skills = (await telos.agents()).flatMap(agent => [agent.name, ...agent.skills.map(({ id }) => id)]);
  if (skills.some(skill => skill.toLowerCase() === name)) return true;
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
    run(_words, state) {
      state.conversation = new Conversation();
      state.terminal.say('A new conversation: the model has forgotten the old one.');
    },
  },
  continue: {
    description: 'let the model go on, for example after 20 rounds',
    run(words, state) {
      if (!state.conversation.isEmpty) return send(words || goOn, state);
      state.terminal.say('There is nothing to continue yet.');
      return undefined;
    },
  },
  ask: {
    description: 'ask without a skill: Telos looks, and changes nothing',
    run(words, state) {
      if (words !== '') return send(words, state, { withoutSkill: true });
      state.terminal.say('Say what you want to know: /ask WORDS');
      return undefined;
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
    ([name, { description }]) => `  /${name.padEnd(10)}${description}`,
  );
  return [
    'Type what you want to do. /NAME runs the skill of that name.',
    ...rows,
    `  /${'quit'.padEnd(10)}leave, as Ctrl-D does`,
    'Up brings earlier requests back, and Tab completes. A line that ends in \\ goes on in the next one.',
    'Ctrl-C stops a run. `telos --help` lists what works outside of a chat.',
  ].join('\n');
}

/** Models of a provider that are listed. */
const mostListed = 8;

const someOf = (models: readonly string[]): string =>
  models.length === 0
    ? 'any'
    : models.slice(0, mostListed).join(', ') + (models.length > mostListed ? ', …' : '');

async function listModelsOf({ telos, terminal }: ChatState): Promise<void> {
  const { listModels } = await import('../engine/providers/models.ts');
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
  const { listModels } = await import('../engine/providers/models.ts');
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

async function undoLast({ conversation, options, terminal }: ChatState): Promise<void> {
  const runId = conversation.changedBy.at(-1);
  if (runId === undefined) return terminal.say('This conversation has changed no files.');
  const { undoCommand } = await import('./undoCommand.ts');
  const { yes: _yes, ...rest } = options;
  const code = await undoCommand(runId, rest, terminal);
  if (code === 0) conversation.changedBy.pop();
}

/** Returns what Tab offers: commands and skills behind a slash, and modes. */
async function completed(line: string, { telos }: ChatState): Promise<string[]> {
  if (/^\/mode\s+\S*$/.test(line)) return runModes.map(mode => `/mode ${mode}`);
  if (!/^\/\S*$/.test(line)) return [];
  const skills = (await telos.agents()).flatMap(({ skills }) =>
    skills.filter(({ userInvocable, isDisabled }) => userInvocable && !isDisabled).map(({ id }) => id),
  );
  return [...Object.keys(commands), 'quit', ...skills].map(name => terminalText(`/${name}`));
}
