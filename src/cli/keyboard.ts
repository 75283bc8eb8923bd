/**
 * Reads what a person types at the terminal of the process. One question at a time is shown and has the keys, and only what was typed
 * while it was shown answers it.
 */

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { QuestionOver } from '@telos/engine/run';

/** The questions of the process that want the keys, each as what begins it. The first is shown. */
const questions: (() => void)[] = [];
/** Called when a question takes the keys, and when none wants them any more. */
const listeners = new Set<(isTaken: boolean) => void>();
/** True once a question was over before its answer, part of which may still be typed. */
let isAnswerLate = false;
/** What was dropped of a line whose end is still to come. The rest of it answers nothing either, whichever question is shown by then. */
let begunLine = '';

/** Returns true while a question has the keys. */
export const hasQuestion = (): boolean => questions.length > 0;

/** Calls `listener` when a question takes the keys, and when none wants them any more, until the returned function is called. */
export function onQuestion(listener: (isTaken: boolean) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Calls `ask` once no other question of the process is shown, in the order of the calls. `ask` shows its question and reads the answer
 * with `readShown`. Resolves to its result, or to undefined if the signal aborts before its turn.
 */
export async function inTurn<Result>(
  signal: AbortSignal,
  ask: () => Promise<Result>,
): Promise<Result | undefined> {
  if (signal.aborted) return undefined;
  if (!(await turn(signal))) return undefined;
  try {
    return await ask();
  } finally {
    isAnswerLate ||= signal.aborted;
    questions.shift();
    if (questions[0]) questions[0]();
    else for (const listener of [...listeners]) listener(false);
  }
}

/** Resolves to true when the question may be shown, and to false if the signal aborts before that. */
function turn(signal: AbortSignal): Promise<boolean> {
  return new Promise(resolve => {
    const begin = (): void => {
      signal.removeEventListener('abort', leave);
      resolve(true);
    };
    const leave = (): void => {
      questions.splice(questions.indexOf(begin), 1);
      resolve(false);
    };
    questions.push(begin);
    if (questions[0] !== begin) return signal.addEventListener('abort', leave, { once: true });
    for (const listener of [...listeners]) listener(true);
    begin();
  });
}

/** Drops what may have been typed for a question that was over before its answer. Resolves at once if there was none. */
export async function dropLateAnswer(): Promise<void> {
  if (!isAnswerLate || !isKeyInput(process.stdin)) return;
  await dropTypedAhead(process.stdin, new AbortController().signal);
  begunLine = '';
}

/** Notes what is read of a line that has not ended, until the returned function is called: its reader may be closed before the end comes. */
function noteBegun(input: NodeJS.ReadableStream): () => void {
  const note = (typed: Buffer | string): void => {
    begunLine = lastLine(begunLine + typed);
  };
  if (isKeyInput(input)) input.on('data', note);
  return () => void input.off('data', note);
}

const lastLine = (text: string): string => text.split(/[\r\n]/).at(-1)!;

/** A terminal as an input that can be read key by key. */
export interface KeyInput extends NodeJS.ReadableStream {
  isTTY: true;
  setRawMode(raw: boolean): unknown;
}

/**
 * How long a question is shown before an answer counts, in milliseconds. A pause of this length also ends text that is
 * typed without reading.
 */
const readingTime = 200;

/** Keys that the terminal turns into signals when it is read line by line. */
export const signalKeys: readonly (readonly [key: string, signal: NodeJS.Signals])[] = [
  ['\x03', 'SIGINT'],
  ['\x1c', 'SIGQUIT'],
];

export function isKeyInput(input: NodeJS.ReadableStream): input is KeyInput {
  return 'isTTY' in input && input.isTTY === true && 'setRawMode' in input;
}

/**
 * Drops text typed before the question could be read. Must be called when the question is shown. Drops what the terminal
 * holds and what comes within the first moment. Reads key by key, since a begun line is otherwise delivered only when it
 * ends. Resolves when an answer counts, or the signal aborts. Returns true if a line was begun whose end is still to come.
 */
async function dropTypedAhead(input: KeyInput, signal: AbortSignal, staysRaw = false): Promise<boolean> {
  isAnswerLate = false;
  let line = begunLine;
  let until = performance.now() + readingTime;
  const drop = (typed: Buffer | string): void => {
    until = Math.max(until, performance.now() + readingTime);
    line = lastLine(line + typed);
    for (const [key, name] of signalKeys) if (typed.includes(key)) process.kill(process.pid, name);
  };
  // A lost terminal is the end of the input, which the next reader notices.
  const ignore = (): void => undefined;
  input.on('error', ignore);
  input.on('data', drop);
  input.setRawMode(true);
  input.resume();
  try {
    for (let left = readingTime; left > 0; left = until - performance.now())
      await delay(left, undefined, { signal });
  } catch {
    // Cancelled.
  } finally {
    if (!staysRaw) input.setRawMode(false);
    input.off('data', drop);
    input.pause();
    input.off('error', ignore);
  }
  // A terminal may send control sequences by itself.
  const isBegun = /\P{Cc}/u.test(stripVTControlCharacters(line));
  begunLine = isBegun ? line : '';
  return isBegun;
}

const tooEarly = 'That was typed before the question. Please answer again.';

/** Asks one line in its turn. See `readShown`. */
export const readLine: typeof readShown = (prompt, signal, ...streams) =>
  inTurn(signal, () => readShown(prompt, signal, ...streams));

/**
 * Reads one line of input, for a question that has its turn. Returns undefined at the end of the input, or when the signal aborts. On a
 * terminal, only text typed after the question counts.
 */
export async function readShown(
  prompt: string,
  signal: AbortSignal,
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<string | undefined> {
  if (signal.aborted) return undefined;
  output.write(prompt);
  let isBegun = isKeyInput(input) && (await dropTypedAhead(input, signal));
  if (signal.aborted) sayOver(signal, output);
  if (signal.aborted || hasEnded(input)) return undefined;
  // Not `terminal: true`: raw mode would swallow Ctrl-C, which has to reach the run.
  const endNote = noteBegun(input);
  const reader = createInterface({ input, output, terminal: false });
  return new Promise(resolve => {
    const finish = (answer: string | undefined): void => {
      resolve(answer); // Before closing, which calls `finish` again without an answer.
      signal.removeEventListener('abort', stop);
      reader.close();
      endNote();
    };
    const stop = (): void => {
      if (signal.aborted) sayOver(signal, output);
      finish(undefined);
    };
    signal.addEventListener('abort', stop, { once: true });
    reader.on('line', line => {
      if (!isBegun) return finish(line);
      isBegun = false;
      output.write(`  ${tooEarly}\n${prompt}`);
    });
    reader.once('close', () => finish(undefined));
  });
}

/** Says that a question is over that the person sees, if it ends for another reason than the end of the run. */
function sayOver({ reason }: AbortSignal, output: NodeJS.WritableStream): void {
  if (!(reason instanceof QuestionOver)) return;
  output.write(`\n  ${reason.message}${reason.isAnswered ? '' : ' No answer was given.'}\n`);
}

const hasEnded = (input: NodeJS.ReadableStream): boolean =>
  'readableEnded' in input && input.readableEnded === true;

/**
 * Asks for one key in its turn and returns it. Returns undefined at the end of the input, or when the signal aborts. Only a key that is
 * pressed after the question counts; the Enter that ends a line from before it does not.
 */
export function readKey(prompt: string, signal: AbortSignal): Promise<string | undefined> {
  const { stdin, stderr } = process;
  if (!isKeyInput(stdin)) return Promise.resolve(undefined);
  return inTurn(signal, async () => {
    stderr.write(prompt);
    const isBegun = await dropTypedAhead(stdin, signal);
    let key = signal.aborted ? undefined : await pressed(stdin, signal);
    if (key !== undefined) begunLine = '';
    if (isBegun && (key === '\r' || key === '\n')) {
      stderr.write(`\n${tooEarly}\n${prompt}`);
      key = await pressed(stdin, signal);
    }
    stderr.write('\n');
    for (const [typed, name] of signalKeys) if (key === typed) process.kill(process.pid, name);
    return key;
  });
}

/** Resolves to the next key, or to undefined at the end of the input or when the signal aborts. */
async function pressed(input: KeyInput, signal: AbortSignal): Promise<string | undefined> {
  let stop = (): void => undefined;
  let take = (_typed: Buffer | string): void => undefined;
  const key = await new Promise<string | undefined>(resolve => {
    take = typed => resolve(String(typed));
    stop = () => resolve(undefined);
    input.on('data', take);
    for (const end of ['end', 'error'] as const) input.on(end, stop);
    signal.addEventListener('abort', stop);
    input.setRawMode(true);
    input.resume();
  });
  input.off('data', take);
  for (const end of ['end', 'error'] as const) input.off(end, stop);
  signal.removeEventListener('abort', stop);
  input.setRawMode(false);
  input.pause();
  return key;
}

/**
 * Asks for one line in its turn that is not shown as it is typed. Resolves to an empty text at the end of the input, or when the signal
 * aborts.
 */
export async function readSecret(prompt: string, signal: AbortSignal): Promise<string> {
  const secret = await inTurn(signal, async () => {
    const { stdin } = process;
    const isTerminal = isKeyInput(stdin);
    // A terminal shows what comes before this, and a pasted secret can come at once.
    if (isTerminal) stdin.setRawMode(true);
    process.stderr.write(prompt);
    let isBegun = isTerminal && (await dropTypedAhead(stdin, signal, true));
    if (signal.aborted) {
      if (isTerminal) stdin.setRawMode(false);
      return '';
    }
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
    const endNote = noteBegun(process.stdin);
    const reader = createInterface({ input: process.stdin, output: silent, terminal: true });
    const stop = (): void => reader.close();
    signal.addEventListener('abort', stop, { once: true });
    const line = await new Promise<string>(resolve => {
      reader.on('line', typed => {
        if (!isBegun) return resolve(typed);
        isBegun = false;
        process.stderr.write(`\n${tooEarly}\n${prompt}`);
      });
      reader.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
      reader.once('close', () => resolve(''));
    });
    process.stderr.write('\n');
    signal.removeEventListener('abort', stop);
    reader.close();
    endNote();
    return line;
  });
  return secret ?? '';
}
