/**
 * Implements `telos` alone on a terminal: choose an agent and a skill from numbered lists, then dry-run or run it. Words are a
 * request at each question.
 */

import type { RunRequest } from '@telos/engine/run';
import type { Agent, Skill } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import type { SkillRef } from '@telos/protocol/run';
import { columnsOf } from '@telos/protocol/text';
import { configFor } from './cliConfig.ts';
import { readLine } from './keyboard.ts';
import { wantedAgents } from './listCommands.ts';
import { carryOut, type RequestOptions } from './requestCommand.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { pick, type ReadAnswer } from './terminalHuman.ts';
import { terminalLine } from './terminalText.ts';

interface Dialog {
  terminal: Terminal;
  /** Resolves to undefined at the end of the input, or at Ctrl-C. */
  ask(prompt: string): Promise<string | undefined>;
}

/** Returns the exit code: that of the run, or 0 if there was none. */
export async function interactiveCommand(options: RequestOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  return config ? chooseAndRun(Telos.open(config), options, terminal) : 2;
}

/**
 * Lets the person choose a skill and runs it. With `options.agent`, the skills are listed at once. `readAnswer` is for
 * tests; the default reads a line from stdin.
 */
export async function chooseAndRun(
  telos: Telos,
  options: RequestOptions,
  terminal: Terminal,
  readAnswer: ReadAnswer = readLine,
): Promise<number> {
  const agents = await wantedAgents(telos, options, terminal);
  if (!agents) return 1;
  // Ends the line on which a terminal shows ^C.
  const interrupts = abortOnInterrupt(terminal, () => terminal.say(''));
  const { signal } = interrupts;
  const dialog: Dialog = {
    terminal,
    async ask(prompt) {
      terminal.flush();
      const answer = await readAnswer(prompt, signal);
      // The end of the input leaves the cursor after the question.
      if (answer === undefined && !signal.aborted) terminal.say('');
      return answer;
    },
  };
  let wanted: RunRequest | undefined;
  try {
    wanted = await requestFrom(agents, telos, options, dialog);
    if (signal.aborted) return cancelledExitCode;
  } finally {
    interrupts.release();
  }
  return wanted ? carryOut(telos, wanted, options, terminal) : 0;
}

/** Returns what the person wants to run: a skill, or words. Undefined if nothing. */
async function requestFrom(
  agents: readonly Agent[],
  telos: Telos,
  options: RequestOptions,
  dialog: Dialog,
): Promise<RunRequest | undefined> {
  const usual = await telos.defaultAgent();
  const agent = options.agent === undefined ? await chooseAgent(agents, usual, dialog) : agents[0];
  if (!agent || 'words' in agent) return agent && { text: agent.words };
  const skill = await chooseSkill(agent, dialog);
  if (!skill || 'words' in skill) return skill && { text: skill.words, agent: agent.name };
  const ref = { agent: agent.name, skill: skill.id };
  const text = await wordsForRun(ref, telos, options, dialog);
  return text === undefined ? undefined : { text, skill: ref };
}

/** The answer that a person typed instead of a number or a name. */
interface Words {
  words: string;
}

const isOffered = ({ userInvocable, isDisabled }: Skill): boolean => userInvocable && !isDisabled;

async function chooseAgent(
  agents: readonly Agent[],
  usual: string | undefined,
  dialog: Dialog,
): Promise<Agent | Words | undefined> {
  // An agent without a skill to start has nothing to offer.
  const usable = agents.filter(({ skills }) => skills.some(isOffered));
  const offered = usable.length > 0 ? usable : agents;
  const entries = offered.map(({ name, description, skills }) => ({
    name,
    description: description || (skills.length === 1 ? '1 skill' : `${skills.length} skills`),
  }));
  const name = await chooseName('agent', entries, dialog, usual);
  if (typeof name === 'object') return name;
  return agents.find(agent => agent.name === name);
}

async function chooseSkill(agent: Agent, dialog: Dialog): Promise<Skill | Words | undefined> {
  const skills = agent.skills.filter(isOffered);
  if (skills.length === 0) {
    dialog.terminal.say(terminalLine(`No skill of ${agent.name} is meant to be started by hand.`));
    return undefined;
  }
  const entries = skills.map(({ id, synopsis, description }) => ({
    name: id,
    description: synopsis ?? description,
  }));
  const name = await chooseName('skill', entries, dialog);
  if (typeof name === 'object') return name;
  return skills.find(skill => skill.id === name);
}

interface Entry {
  name: string;
  description: string;
}

/**
 * Asks until the answer matches an entry, or has words. Enter alone takes `usual` if it is an entry. Returns undefined for q and at
 * the end of the input.
 */
async function chooseName(
  what: 'agent' | 'skill',
  entries: readonly Entry[],
  { terminal, ask }: Dialog,
  usual?: string,
): Promise<string | Words | undefined> {
  const names = entries.map(entry => entry.name);
  const first = names.find(name => name === usual);
  const keys = first === undefined ? '' : `Enter = ${terminalLine(first)}, `;
  terminal.say(numbered(entries, terminal.sayWidth));
  for (;;) {
    const answer = await ask(`Which ${what}? [number or name, or what you want to do; ${keys}q = quit] `);
    if (answer === undefined) return undefined;
    if (answer.trim() === '' && first !== undefined) return first;
    const name = pick(answer, names);
    if (name !== undefined || isQuit(answer)) return name;
    if (isWords(answer)) return { words: answer.trim() };
    if (answer.trim() !== '') {
      const range = names.length === 1 ? '1' : `1 to ${names.length}`;
      terminal.say(
        terminalLine(
          `There is no ${what} '${answer.trim()}'; enter ${range}, a name, or at least two words of what you want to do.`,
        ),
      );
    }
  }
}

/** Returns the words for the run, which y leaves out. Undefined for no. On d it says what would run, and asks again. */
async function wordsForRun(
  ref: SkillRef,
  telos: Telos,
  options: RequestOptions,
  { terminal, ask }: Dialog,
): Promise<string | undefined> {
  for (;;) {
    const question = `Run ${terminalLine(ref.skill)} of ${terminalLine(ref.agent)}?`;
    const answer = await ask(`${question} [y = run, d = dry run, q = quit, or what you want it to do] `);
    const word = answer?.trim().toLowerCase();
    if (word === 'y' || word === 'yes') return '';
    if (answer === undefined || isQuit(answer) || word === 'n' || word === 'no') return undefined;
    if (word === 'd') await carryOut(telos, { text: '', skill: ref }, { ...options, dryRun: true }, terminal);
    else if (isWords(answer)) return answer.trim();
  }
}

/** One word is more often a slip than a request. */
const isWords = (answer: string): boolean => /\S\s+\S/.test(answer.trim());

function isQuit(answer: string): boolean {
  return ['q', 'quit'].includes(answer.trim().toLowerCase());
}

function numbered(entries: readonly Entry[], width: number): string {
  const digits = String(entries.length).length;
  const names = entries.map(({ name }) => terminalLine(name));
  const longest = names.reduce((widest, name) => Math.max(widest, columnsOf(name)), 0);
  const room = Math.max(20, width - digits - longest - 6);
  return entries
    .map(({ description }, index) => {
      const name = names[index] ?? '';
      const padding = ' '.repeat(longest - columnsOf(name));
      const line = `${String(index + 1).padStart(digits + 1)}. ${name}${padding}  ${terminalLine(description, room)}`;
      return line.trimEnd();
    })
    .join('\n');
}
