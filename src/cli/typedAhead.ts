/** Keeps what was typed before a question could be read from answering it. */
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';

/** A terminal as an input, which can be read key by key. */
export interface KeyInput extends NodeJS.ReadableStream {
  isTTY: true;
  setRawMode(raw: boolean): unknown;
}

/** How long a question stands there before an answer counts, in milliseconds, and how long a pause ends what is typed without a look at it. */
const readingTime = 200;

/** Keys that the terminal turns into signals when it is read line by line. */
const signalKeys: readonly (readonly [key: string, signal: NodeJS.Signals])[] = [
  ['\x03', 'SIGINT'],
  ['\x1c', 'SIGQUIT'],
];

export function isKeyInput(input: NodeJS.ReadableStream): input is KeyInput {
  return 'isTTY' in input && input.isTTY === true && 'setRawMode' in input;
}

/**
 * Drops what the terminal holds and what comes within the first moment; call it when the question is shown. Read key by key, since a line
 * that was begun is given out only then. Returns when an answer counts, or the signal aborts: true when a line was begun whose end is still
 * to come.
 */
export async function dropTypedAhead(input: KeyInput, signal: AbortSignal): Promise<boolean> {
  let line = '';
  let until = performance.now() + readingTime;
  const drop = (typed: Buffer | string): void => {
    until = Math.max(until, performance.now() + readingTime);
    line = (line + typed).split(/[\r\n]/).at(-1)!;
    for (const [key, name] of signalKeys) if (typed.includes(key)) process.kill(process.pid, name);
  };
  // A terminal that is gone is the end of the input, which whoever reads next notices.
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
    input.setRawMode(false);
    input.off('data', drop);
    input.pause();
    input.off('error', ignore);
  }
  // A terminal may report something by itself.
  return /\P{Cc}/u.test(stripVTControlCharacters(line));
}
