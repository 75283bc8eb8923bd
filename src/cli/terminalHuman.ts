/** Asks the person at the terminal, on stderr, so that stdout stays what was asked for. */

import { createInterface } from 'node:readline';
import type { Human } from '../engine/human.ts';
import { type AgentCard, describeCard } from '../protocol/agentCard.ts';
import type { ApprovalDecision, ApprovalRequest, ApprovalScope } from '../protocol/run.ts';
import { abortOnInterrupt, dropTypedAhead, isKeyInput, type Terminal } from './terminal.ts';
import { exactText, terminalText } from './terminalText.ts';

/** How much of what is to be approved is shown, half of it from the beginning; what is between is counted, and shown when asked for. */
const shownCharacters = 4000;
const shownLines = 40;

/** What is kept for good takes a word: a letter slips. */
const keys: Record<ApprovalScope, { key: string; label: string }> = {
  once: { key: 'y', label: 'y = yes, once' },
  run: { key: 'r', label: 'r = for this run' },
  always: { key: 'always', label: 'always = do not ask again' },
};

/** What `always` means where the question is a card. */
const acceptLabel = 'always = accept the card, as long as no file of the agent changes';

/** Undefined at the end of the input, or when the signal aborts. */
export type ReadAnswer = (prompt: string, signal: AbortSignal) => Promise<string | undefined>;

/** `readAnswer` is for tests; the default reads a line from stdin. */
export function terminalHuman(terminal: Terminal, readAnswer: ReadAnswer = readLine): Human {
  return {
    async approve(request, signal) {
      for (let whole = false; ; whole = true) {
        const { text, isCut } = approvalText(request, terminal, whole);
        terminal.say(text);
        const answer = await readAnswer(approvalPrompt(request, isCut), signal);
        if (signal.aborted) return { allow: false, reason: 'The run was cancelled.' };
        const word = answer?.trim().toLowerCase() ?? '';
        if (isCut && word === 's') continue;
        if (word === 'a' && request.scopes.includes('always'))
          terminal.say("Taken as a no: 'always' has to be written out.");
        return decisionOf(word, request.scopes);
      }
    },
    async ask(questions, signal) {
      const answers: string[] = [];
      for (const question of questions) {
        terminal.say(terminal.style.bold(`? ${terminalText(question)}`));
        answers.push((await readAnswer('> ', signal)) ?? '');
      }
      return answers;
    },
  };
}

/** The question comes behind the card, so that the end of a command stands where the answer is typed. */
function approvalText(
  request: ApprovalRequest,
  { style }: Terminal,
  whole: boolean,
): { text: string; isCut: boolean } {
  const folder = request.folder ? ` in ${exactText(request.folder)}` : '';
  const [subject, diff] = [request.subject, request.diff ?? ''].map(text => excerpt(exactText(text), whole));
  const lines = [
    ...(request.card ? cardLines(request.card) : []),
    style.bold(`? ${exactText(request.tool)} asks${folder}:`),
    ...shown(subject, '    ', style),
    ...(request.diff === undefined ? [] : shown(diff, '  | ', style)),
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
  const head = lines
    .slice(0, shownLines / 2)
    .join('\n')
    .slice(0, shownCharacters / 2);
  const rest = text.slice(head.length).split('\n');
  const tail = rest
    .slice(-shownLines / 2)
    .join('\n')
    .slice(-shownCharacters / 2);
  return { head, hidden: text.length - head.length - tail.length, tail };
}

function shown(part: Excerpt | undefined, indent: string, style: Terminal['style']): string[] {
  if (!part) return [];
  const indented = (text: string): string[] => text.split('\n').map(line => indent + line);
  if (part.hidden === 0) return indented(part.head + part.tail);
  const note = `${indent}... ${part.hidden} characters between are not shown ...`;
  return [...indented(part.head), style.red(note), ...indented(part.tail)];
}

/** The whole card, since `always` accepts all of it. */
function cardLines(card: AgentCard): string[] {
  return describeCard(card).map(line => `  | ${exactText(line.replaceAll('\n', ' '))}`);
}

function approvalPrompt({ scopes, card }: ApprovalRequest, isCut: boolean): string {
  const labels = scopes.map(scope => (card && scope === 'always' ? acceptLabel : keys[scope].label));
  return `  Allow? [${[...labels, ...(isCut ? ['s = show all of it'] : []), 'N = no'].join(', ')}] `;
}

/** Anything but the word of an offered scope is a no; so is the end of the input. */
function decisionOf(word: string, scopes: readonly ApprovalScope[]): ApprovalDecision {
  const scope = scopes.find(
    candidate => keys[candidate].key === word || (candidate === 'once' && word === 'yes'),
  );
  return scope ? { allow: true, scope } : { allow: false, reason: 'The person at the terminal said no.' };
}

/** One line of input; undefined at its end, or when the signal aborts. On a terminal only what is typed behind the question counts. */
export async function readLine(
  prompt: string,
  signal: AbortSignal,
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<string | undefined> {
  if (signal.aborted) return undefined;
  output.write(prompt);
  let isBegun = isKeyInput(input) && (await dropTypedAhead(input, signal));
  if (signal.aborted || hasEnded(input)) return undefined;
  // Not `terminal: true`: raw mode would swallow Ctrl-C, which has to reach the run.
  const reader = createInterface({ input, output, terminal: false });
  return new Promise(resolve => {
    const finish = (answer: string | undefined): void => {
      resolve(answer); // before closing, which ends here again without an answer
      signal.removeEventListener('abort', stop);
      reader.close();
    };
    const stop = (): void => finish(undefined);
    signal.addEventListener('abort', stop, { once: true });
    reader.on('line', line => {
      if (!isBegun) return finish(line);
      isBegun = false;
      output.write(`  That line was begun before the question. Please answer again.\n${prompt}`);
    });
    reader.once('close', stop);
  });
}

const hasEnded = (input: NodeJS.ReadableStream): boolean =>
  'readableEnded' in input && input.readableEnded === true;

/** `about` says what would happen, `question` asks; `unattended` is said where nobody sits. Anything but a yes is a no, and is said to be one. */
export async function agrees(
  about: string,
  question: string,
  unattended: string,
  terminal: Terminal,
): Promise<boolean> {
  if (!terminal.canAsk) {
    terminal.say(unattended);
    return false;
  }
  const { signal, release } = abortOnInterrupt(() => {});
  try {
    terminal.say(about);
    const answer = await readLine(`${question} [y/N] `, signal);
    // The end of the input, and Ctrl-C, leave the cursor behind the question.
    if (answer === undefined) terminal.say('');
    if (['y', 'yes'].includes(answer?.trim().toLowerCase() ?? '')) return true;
    terminal.say('Nothing was changed.');
    return false;
  } finally {
    release();
  }
}

/** By its number, counted from 1, or by its name in any case; undefined for anything else. */
export function pick(answer: string, names: readonly string[]): string | undefined {
  const wanted = answer.trim();
  if (/^\d+$/.test(wanted)) return names[Number(wanted) - 1];
  const lowered = wanted.toLowerCase();
  return names.find(name => name === wanted) ?? names.find(name => name.toLowerCase() === lowered);
}
