/** Asks the person at the terminal, on stderr, so that stdout contains only requested output. */

import { denyAll, type Human } from '@telos/engine/run';
import { type AgentCard, describeCard, switchableLines } from '@telos/protocol/agentCard';
import { describeDanger, describeQuestion } from '@telos/protocol/describe';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type ApprovalScope,
  leaveBox,
  skipped,
} from '@telos/protocol/run';
import { beginningOf, endOf } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import { inTurn, readShown } from './keyboard.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { exactText, remedyText, terminalText } from './terminalText.ts';

/** Most that is shown of a subject, half of it from the beginning. The part between is counted, and shown on request. */
const shownCharacters = 4000;
const shownLines = 40;

/** A permanent choice takes a whole word, since a single letter is easily mistyped. */
const keys: Record<ApprovalScope, { key: string; label: string; help: string }> = {
  once: { key: 'y', label: 'y = once', help: 'allow it this once' },
  run: { key: 'r', label: 'r = this run', help: 'allow it for the rest of this run' },
  always: { key: 'always', label: 'always', help: 'allow it from now on' },
};

/** `run` if it holds for later runs of the conversation too. */
const forAllOfIt = {
  key: 'r',
  label: 'r = this conversation',
  help: 'allow it for the rest of this conversation',
};

/** `always` if the question includes a card. */
const accepting = {
  label: 'always = approve the permissions',
  help: 'approve the permissions, until a file of the agent changes; always without NAME leaves a line out',
};

/** Resolves to undefined at the end of the input, or when the signal aborts. */
export type ReadAnswer = (prompt: string, signal: AbortSignal) => Promise<string | undefined>;

const cancelled: ApprovalDecision = { allow: false, reason: 'The run was cancelled.' };

/**
 * Returns the person at the terminal. All such people of the process are one: their questions are shown one after the other.
 * `readAnswer` is for tests; the default reads a line from stdin.
 */
export function terminalHuman(terminal: Terminal, readAnswer: ReadAnswer = readShown): Human {
  const { approve, ask } = shownHuman(terminal, readAnswer);
  return {
    approve: async (request, signal) => (await inTurn(signal, () => approve(request, signal))) ?? cancelled,
    ask: async (questions, signal) =>
      (await inTurn(signal, () => ask(questions, signal))) ?? questions.map(() => ''),
  };
}

/** Returns the person for questions that have their turn. */
function shownHuman(terminal: Terminal, readAnswer: ReadAnswer): Human {
  return {
    async approve(request, signal) {
      if (request.choices) return answered(request.subject, request.choices, terminal, readAnswer, signal);
      for (let [whole, isHelp, strange] = [request.showsWhole === true, false, '']; ; ) {
        const { text, isCut } = approvalText(request, terminal, whole);
        terminal.say(strange ? notUnderstood(strange) : isHelp ? approvalHelp(request) : text);
        terminal.ring?.();
        const answer = await readAnswer(approvalPrompt(request, isCut), signal);
        if (signal.aborted) return cancelled;
        const word = answer?.trim().toLowerCase() ?? '';
        isHelp = word === '?';
        strange = '';
        whole ||= isCut && word === 's';
        if (isHelp || (isCut && word === 's')) continue;
        if (request.form && decisionOf(word, request)?.allow) {
          const { fillIn } = await import('./terminalForm.ts');
          return (await fillIn(request.form, terminal, prompt => readAnswer(prompt, signal))) ?? skipped;
        }
        if (word === 'a' && request.scopes.includes('always'))
          terminal.say("Taken as a no: 'always' has to be written out.");
        if (word === 'o' && request.mayLeave) return leaveBox;
        const decision = decided(answer ?? '', request);
        if (decision) return decision;
        strange = word;
      }
    },
    async ask(questions, signal) {
      const answers: string[] = [];
      for (const question of questions) {
        terminal.say(terminal.style.bold(`? ${terminalText(question)}`));
        terminal.ring?.();
        answers.push((await readAnswer('> ', signal)) ?? '');
      }
      return answers;
    },
  };
}

/** Asks a question of the skill. A number chooses an answer, other words are one, and Enter skips it. */
async function answered(
  question: string,
  choices: readonly string[],
  terminal: Terminal,
  readAnswer: ReadAnswer,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  const rows = choices.map((choice, index) => `  ${index + 1}. ${exactText(choice)}`);
  terminal.say([terminal.style.bold(`? ${terminalText(question)}`), ...rows].join('\n'));
  terminal.ring?.();
  const numbers = choices.length === 0 ? '' : `${choices.length === 1 ? '1' : `1 to ${choices.length}`}, `;
  const said =
    (await readAnswer(`  Answer? [${numbers}your own words, Enter = skip] `, signal))?.trim() ?? '';
  if (signal.aborted) return cancelled;
  if (said === '') return skipped;
  return { allow: true, scope: 'once', answer: pick(said, choices) ?? said };
}

/** Denies every question because there is no person to ask, and says what would allow it. The model reads the reason too. */
export const unattended: Human = {
  ...denyAll,
  async approve(request, signal) {
    const decision = await denyAll.approve(request, signal);
    if (decision.allow) return decision;
    const remedy = request.toAllow ? ` ${remedyText(request.toAllow)}` : '';
    return {
      ...decision,
      reason: `${decision.reason} Use --yes to allow it, or a terminal to be asked.${remedy}`,
    };
  },
};

/** Words the question. It follows the card, so that the end of a command is next to where the answer is typed. */
function approvalText(
  request: ApprovalRequest,
  { style }: Terminal,
  whole: boolean,
): { text: string; isCut: boolean } {
  const folder = request.folder ? `  in ${exactText(request.folder)}` : '';
  const [subject, diff] = [request.subject, request.diff ?? ''].map(text => excerpt(exactText(text), whole));
  const lines = [
    ...(request.card ? cardLines(request.card) : []),
    style.bold(`? ${exactText(describeQuestion(request))}`) + style.dim(folder),
    ...shown(subject, '    ', style),
    ...(request.diff === undefined ? [] : shown(diff, '  | ', style)),
    ...(request.danger ?? []).map(danger => style.red(`  ! ${exactText(describeDanger(danger))}.`)),
    ...(request.inBackground ? [style.dim('  It goes on in the background until it is stopped.')] : []),
    ...(request.timeLimit === undefined
      ? []
      : [style.dim(`  It may take up to ${formatDuration(request.timeLimit * 1000)}.`)]),
    style.dim(`  ${terminalText(request.reason)} (rule ${terminalText(request.rule)})`),
  ];
  return {
    text: lines.join('\n'),
    isCut: [subject, diff].some(part => part !== undefined && part.hidden > 0),
  };
}

interface Excerpt {
  head: string;
  /** Characters between the two. */
  hidden: number;
  tail: string;
}

function excerpt(text: string, whole: boolean): Excerpt {
  const lines = text.split('\n');
  if (whole || (text.length <= shownCharacters && lines.length <= shownLines))
    return { head: text, hidden: 0, tail: '' };
  const head = beginningOf(lines.slice(0, shownLines / 2).join('\n'), shownCharacters / 2);
  const rest = text.slice(head.length).split('\n');
  const tail = endOf(rest.slice(-shownLines / 2).join('\n'), shownCharacters / 2);
  return { head, hidden: text.length - head.length - tail.length, tail };
}

function shown(part: Excerpt | undefined, indent: string, style: Terminal['style']): string[] {
  if (!part) return [];
  const indented = (text: string): string[] => text.split('\n').map(line => indent + line);
  if (part.hidden === 0) return indented(part.head + part.tail);
  const note = `${indent}... ${part.hidden} characters between are not shown ...`;
  return [...indented(part.head), style.red(note), ...indented(part.tail)];
}

/** Returns the whole card, since `always` accepts all of it. */
function cardLines(card: AgentCard): string[] {
  return describeCard(card).map(line => `  | ${exactText(line.replaceAll('\n', ' '))}`);
}

function wordsOf(scope: ApprovalScope, { card, forConversation }: ApprovalRequest) {
  if (scope === 'run' && forConversation) return forAllOfIt;
  return card && scope === 'always' ? { ...keys[scope], ...accepting } : keys[scope];
}

function approvalPrompt(request: ApprovalRequest, isCut: boolean): string {
  const { scopes, isEditable, mayLeave } = request;
  const labels = scopes.map(scope => wordsOf(scope, request).label);
  const more = [
    ...(isEditable ? ['e COMMAND'] : []),
    ...(mayLeave ? ['o = outside the sandbox'] : []),
    ...(isCut ? ['s = show all of it'] : []),
  ];
  return `  Allow? [${[...labels, ...more, 'N = no', '? = help'].join(', ')}] `;
}

/** Returns what each answer means. */
function approvalHelp(request: ApprovalRequest): string {
  const { scopes, isEditable, mayLeave } = request;
  const rows = [
    ...scopes.map(scope => [wordsOf(scope, request).key, wordsOf(scope, request).help]),
    ...(isEditable ? [['e COMMAND', 'run that command instead, if it may run']] : []),
    ...(mayLeave ? [['o', 'deny the host; you are asked to run the command outside the sandbox']] : []),
    ['n, Enter', 'deny it'],
    ['n WHY', 'deny it and tell the model why'],
  ];
  return rows.map(([key = '', help = '']) => `  ${key.padEnd(10)} ${help}`).join('\n');
}

const saidNo: ApprovalDecision = { allow: false, reason: 'The user denied this.' };

const notUnderstood = (word: string): string =>
  `  '${exactText(word)}' is not one of the answers; nothing was allowed. Please answer again.`;

/** Returns what an answer decides. The end of the input and no words are a no. Undefined for an answer that is not understood. */
function decided(answer: string, request: ApprovalRequest): ApprovalDecision | undefined {
  const word = answer.trim().toLowerCase();
  const isNo = ['', 'n', 'no'].includes(word) || (word === 'a' && request.scopes.includes('always'));
  return isNo
    ? saidNo
    : (decisionOf(word, request) ??
        withoutLines(answer, request) ??
        changed(answer, request) ??
        saidWhy(answer));
}

/** Returns the yes to another command, such as `e npm ci`. Undefined for another answer, and if the command cannot be changed. */
function changed(answer: string, { isEditable }: ApprovalRequest): ApprovalDecision | undefined {
  const command = isEditable ? /^\s*e\s+(\S.*?)\s*$/i.exec(answer)?.[1] : undefined;
  return command === undefined ? undefined : { allow: true, scope: 'once', command };
}

/** Returns the denial with what the person says to the model, such as `n use npm ci`. Undefined for another answer. */
function saidWhy(answer: string): ApprovalDecision | undefined {
  const why = /^\s*no?[\s,:]+(\S.*?)\s*$/i.exec(answer)?.[1];
  return why === undefined ? undefined : { allow: false, reason: `The user denied this: ${why}` };
}

/** Returns the acceptance of a card without some of its lines. Undefined for another answer, and if the card has no such line. */
function withoutLines(answer: string, { scopes, card }: ApprovalRequest): ApprovalDecision | undefined {
  const [, said = ''] = /^\s*always\s+without\s+(.+)$/i.exec(answer) ?? [];
  if (!card || said.trim() === '' || !scopes.includes('always')) return undefined;
  const { lines, strange } = linesNamed(said, card);
  return strange.length === 0 ? { allow: true, scope: 'always', without: lines } : undefined;
}

/**
 * Returns the lines of the card that a person names, with commas or blanks between them, and the words that are not one of its lines. A
 * shell has already put the home folder in place of `~`.
 */
export function linesNamed(
  said: string,
  card: AgentCard,
  home = '~',
): { lines: string[]; strange: string[] } {
  const all = switchableLines(card);
  const lineOf = (name: string): string | undefined =>
    all.find(line => line === name || line.replace(/^~(?=\/)/, home) === name);
  // A hook can have commas.
  const whole = lineOf(said.trim());
  if (whole !== undefined) return { lines: [whole], strange: [] };
  const named = said
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
    // A command has blanks.
    .flatMap(part => (lineOf(part) === undefined ? part.split(/\s+/) : [part]));
  return {
    lines: named.flatMap(name => lineOf(name) ?? []),
    strange: named.filter(name => lineOf(name) === undefined),
  };
}

/** Returns undefined for anything but the word of an offered scope, and for the end of the input. */
function decisionOf(word: string, { scopes }: ApprovalRequest): ApprovalDecision | undefined {
  const scope = scopes.find(
    candidate => keys[candidate].key === word || (candidate === 'once' && word === 'yes'),
  );
  return scope && { allow: true, scope };
}

/**
 * Asks a yes-or-no question. `about` says what would happen, `question` asks. `unattended` is shown if there is no person
 * to ask. Any answer but yes is a no, and is confirmed as one with `declined`.
 */
export async function agrees(
  about: string,
  question: string,
  unattended: string,
  terminal: Terminal,
  declined = 'Nothing was changed.',
): Promise<boolean> {
  if (!terminal.canAsk) {
    terminal.say(unattended);
    return false;
  }
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  try {
    const answer = await inTurn(signal, () => {
      terminal.say(about);
      return readShown(`${question} [y/N] `, signal);
    });
    // The end of the input and Ctrl-C leave the cursor after the question.
    if (answer === undefined) terminal.say('');
    if (['y', 'yes'].includes(answer?.trim().toLowerCase() ?? '')) return true;
    terminal.say(declined);
    return false;
  } finally {
    release();
  }
}

/**
 * Returns the name that the answer means: by its number, counted from 1, or by name in any case. Returns undefined for
 * anything else.
 */
export function pick(answer: string, names: readonly string[]): string | undefined {
  const wanted = answer.trim();
  if (/^\d+$/.test(wanted)) return names[Number(wanted) - 1];
  const lowered = wanted.toLowerCase();
  return names.find(name => name === wanted) ?? names.find(name => name.toLowerCase() === lowered);
}
