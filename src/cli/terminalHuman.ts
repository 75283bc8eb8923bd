/** Asks the person at the terminal, on stderr, so that stdout stays what was asked for. */
import { createInterface } from 'node:readline';
import type { Human } from '../engine/human.ts';
import { type AgentCard, describeCard } from '../protocol/agentCard.ts';
import type { ApprovalDecision, ApprovalRequest, ApprovalScope } from '../protocol/run.ts';
import type { Terminal } from './terminal.ts';
import { exactText, terminalText } from './terminalText.ts';

/** How much of what is to be approved is shown, in characters; the rest is counted. */
const shownCharacters = 4000;

const keys: Record<ApprovalScope, { key: string; label: string }> = {
  once: { key: 'y', label: 'y = yes, once' },
  run: { key: 'r', label: 'r = for this run' },
  always: { key: 'a', label: 'a = always' },
};

/** What `always` means where the question is a card. */
const acceptLabel = 'a = accept the card, as long as no file of the agent changes';

/** Undefined at the end of the input, or when the signal aborts. */
export type ReadAnswer = (prompt: string, signal: AbortSignal) => Promise<string | undefined>;

/** `readAnswer` is for tests; the default reads a line from stdin. */
export function terminalHuman(terminal: Terminal, readAnswer: ReadAnswer = readLine): Human {
  return {
    async approve(request, signal) {
      terminal.say(approvalText(request, terminal));
      const answer = await readAnswer(approvalPrompt(request), signal);
      if (signal.aborted) return { allow: false, reason: 'The run was cancelled.' };
      return decisionOf(answer, request.scopes);
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

function approvalText(request: ApprovalRequest, { style }: Terminal): string {
  const folder = request.folder ? ` in ${exactText(request.folder)}` : '';
  const exact = exactText(request.subject);
  const hidden = exact.length - shownCharacters;
  const shown = exact.slice(0, shownCharacters).split('\n');
  return [
    style.bold(`? ${exactText(request.tool)} asks${folder}:`),
    ...shown.map(line => `    ${line}`),
    ...(hidden > 0 ? [style.red(`    ... and ${hidden} more characters that are not shown`)] : []),
    ...(request.diff === undefined ? [] : diffLines(request.diff, style)),
    ...(request.card ? cardLines(request.card) : []),
    style.dim(`  ${terminalText(request.reason)} (rule ${terminalText(request.rule)})`),
  ].join('\n');
}

function diffLines(diff: string, style: Terminal['style']): string[] {
  const exact = exactText(diff);
  const hidden = exact.length - shownCharacters;
  const lines = exact.slice(0, shownCharacters).split('\n');
  const note = hidden > 0 ? [style.red(`  | ... and ${hidden} more characters that are not shown`)] : [];
  return [...lines.map(line => `  | ${line}`), ...note];
}

/** The whole card, since `always` accepts all of it. */
function cardLines(card: AgentCard): string[] {
  return describeCard(card).map(line => `  | ${exactText(line.replaceAll('\n', ' '))}`);
}

function approvalPrompt({ scopes, card }: ApprovalRequest): string {
  const labels = scopes.map(scope => (card && scope === 'always' ? acceptLabel : keys[scope].label));
  return `  Allow? [${[...labels, 'N = no'].join(', ')}] `;
}

/** Anything but the letter of an offered scope is a no; so is the end of the input. */
function decisionOf(answer: string | undefined, scopes: readonly ApprovalScope[]): ApprovalDecision {
  const word = answer?.trim().toLowerCase() ?? '';
  const scope = scopes.find(
    candidate => keys[candidate].key === word || (candidate === 'once' && word === 'yes'),
  );
  return scope ? { allow: true, scope } : { allow: false, reason: 'The person at the terminal said no.' };
}

/** One line of input; undefined at its end, or when the signal aborts. */
export function readLine(
  prompt: string,
  signal: AbortSignal,
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<string | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
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
    reader.once('line', finish);
    reader.once('close', stop);
    reader.setPrompt(prompt);
    reader.prompt();
  });
}
