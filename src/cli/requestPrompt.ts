/** Reads requests at a prompt: with history and completion on a terminal, line by line from a pipe. */
import { createInterface } from 'node:readline';
import { dropLateAnswer, inTurn } from './keyboard.ts';

export interface PromptOptions {
  /** The newest first. */
  history: readonly string[];
  /** Returns the lines that one may have in mind. */
  complete(line: string): Promise<string[]>;
}

export interface Prompt {
  /** Resolves with the words, or with what ended the reading: the end of the input, or Ctrl-C. */
  read(prompt: string): Promise<{ text: string } | 'end' | 'interrupt'>;
  close(): void;
}

/** The prompt waits for its turn as long as it takes. */
const never = new AbortController().signal;

/** Lines that are pasted arrive at once, sooner than a person types the next one. In milliseconds. */
const pasted = 30;

export function openPrompt(options: PromptOptions): Prompt {
  const { stdin, stderr } = process;
  return stdin.isTTY && stderr.isTTY ? terminalPrompt(options) : pipePrompt();
}

function terminalPrompt({ history, complete }: PromptOptions): Prompt {
  let known = [...history];
  return {
    async read(prompt) {
      let text = '';
      for (let again = prompt; ; again = '… ') {
        const edit = () => readEdited(again, known, complete);
        const line = (await inTurn(never, edit)) ?? { ended: 'end' as const };
        if (typeof line !== 'string') return line.ended;
        text += line;
        if (!text.endsWith('\\')) break;
        text = `${text.slice(0, -1)}\n`;
      }
      const entry = text.replaceAll('\n', ' ').trim();
      if (entry !== '') known = [entry, ...known.filter(each => each !== entry)];
      return { text };
    },
    close: () => undefined,
  };
}

/** Reads one line, or several that were pasted. The terminal is as before between two lines, so that Ctrl-C stops a run. */
async function readEdited(
  prompt: string,
  history: readonly string[],
  complete: PromptOptions['complete'],
): Promise<string | { ended: 'end' | 'interrupt' }> {
  await dropLateAnswer();
  const reader = createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal: true,
    prompt,
    history: [...history],
    historySize: 500,
    completer: (line: string, done: (error: null, result: [string[], string]) => void) =>
      void complete(line).then(
        offered => done(null, [offered.filter(each => each.startsWith(line)), line]),
        () => done(null, [[], line]),
      ),
  });
  return new Promise(resolve => {
    const lines: string[] = [];
    let timer: NodeJS.Timeout | undefined;
    const finish = (result: string | { ended: 'end' | 'interrupt' }): void => {
      resolve(result); // Before closing, which ends the reading too.
      clearTimeout(timer);
      reader.close();
    };
    reader.on('line', line => {
      lines.push(line);
      clearTimeout(timer);
      timer = setTimeout(() => {
        const begun = reader.line;
        if (begun !== '') process.stderr.write('\n');
        finish([...lines, ...(begun === '' ? [] : [begun])].join('\n'));
      }, pasted);
    });
    reader.on('SIGINT', () => {
      const isEmpty = reader.line === '';
      process.stderr.write('^C\n');
      if (isEmpty) return finish({ ended: 'interrupt' });
      // What was typed is given up, as in a shell.
      finish('');
    });
    reader.once('close', () => finish({ ended: 'end' }));
    reader.prompt();
  });
}

function pipePrompt(): Prompt {
  const reader = createInterface({
    input: process.stdin,
    terminal: false,
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  const lines = reader[Symbol.asyncIterator]();
  return {
    async read() {
      const next = await lines.next();
      return next.done ? 'end' : { text: next.value };
    },
    close: () => reader.close(),
  };
}
