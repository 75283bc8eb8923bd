/** Reads requests at a prompt: with an editor of lines on a terminal, line by line from a pipe. */
import { createInterface } from 'node:readline';
import { dropLateAnswer, inTurn, isKeyInput } from './keyboard.ts';
import { type Edited, type EditorOptions, edit } from './lineEditor.ts';

export interface Prompt {
  /** Resolves with the words, or with what ended the reading: the end of the input, or Ctrl-C. `draft` is there to begin with. */
  read(prompt: string, draft?: string): Promise<Edited>;
  close(): void;
}

/** The prompt waits for its turn as long as it takes. */
const never = new AbortController().signal;

export function openPrompt(options: EditorOptions): Prompt {
  const { stdin, stderr } = process;
  return stdin.isTTY && stderr.isTTY ? terminalPrompt(options) : pipePrompt();
}

function terminalPrompt({ history, complete }: EditorOptions): Prompt {
  let known = [...history];
  return {
    async read(prompt, draft = '') {
      const { stdin, stderr } = process;
      const result = await inTurn(never, async (): Promise<Edited> => {
        await dropLateAnswer();
        return isKeyInput(stdin) ? edit(prompt, { history: known, complete, draft }, stdin, stderr) : 'end';
      });
      if (typeof result === 'object' && result.text.trim() !== '') {
        const entry = result.text.trim();
        known = [entry, ...known.filter(each => each !== entry)];
      }
      return result ?? 'end';
    },
    close: () => undefined,
  };
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
