/** Processes of git that answer one question after the other: starting one for each question would take longer than the answers. */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { TelosError } from '@telos/engine/errors';
import { shellWord } from '@telos/engine/files';
import { endOf, sentence } from '@telos/protocol/text';

/** Says whether the parts printed so far are a whole answer. */
type IsWhole = (parts: readonly Buffer[], length: number) => boolean;

/** In milliseconds. A process that no one asks any more ends by itself; between two steps of a story it stays. */
const idleLimit = 10_000;

export class GitTalk {
  readonly #start: () => ChildProcessWithoutNullStreams;
  #child: ChildProcessWithoutNullStreams | undefined;
  #ended: Promise<void> = Promise.resolve();
  #said = '';
  #last: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(start: () => ChildProcessWithoutNullStreams) {
    this.#start = start;
  }

  /**
   * Resolves with what is printed in answer. Questions are answered in the order of the calls. Throws TelosError `config` if the process
   * ends before; the next question then starts another.
   */
  async ask(question: string, isWhole: IsWhole): Promise<Buffer> {
    return (await this.askBoth(question, isWhole, () => true)).stdout;
  }

  /** Does the same where an answer has two parts. `isSaid` says whether the part on standard error, of which the end is kept, is whole. */
  askBoth(
    question: string,
    isWhole: IsWhole,
    isSaid: (stderr: string) => boolean,
  ): Promise<{ stdout: Buffer; stderr: string }> {
    const answered = this.#last.then(() => this.#ask(question, isWhole, isSaid));
    this.#last = answered.catch(() => undefined).then(() => this.#rest());
    return answered;
  }

  /** Ends the process at once. Who waits for its answer gets the error of `ask`. */
  kill(): void {
    this.#child?.kill();
  }

  /** Resolves when the process has answered and ended. A later question starts another. */
  async close(): Promise<void> {
    await this.#last;
    clearTimeout(this.#idle);
    if (!this.#child) return;
    hold(this.#child, true);
    this.#child.stdin.end();
    await this.#ended;
  }

  /** Nothing waits for a process that waits for questions. */
  #rest(): void {
    const child = this.#child;
    if (!child) return;
    hold(child, false);
    this.#idle = setTimeout(() => child.stdin.end(), idleLimit).unref();
  }

  #ask(
    question: string,
    isWhole: IsWhole,
    isSaid: (stderr: string) => boolean,
  ): Promise<{ stdout: Buffer; stderr: string }> {
    clearTimeout(this.#idle);
    const child = this.#child?.stdin.writable ? this.#child : this.#begin();
    hold(child, true);
    this.#said = '';
    const parts: Buffer[] = [];
    let length = 0;
    return new Promise((done, failed) => {
      const stop = (): void => {
        child.stdout.off('data', onData);
        child.stderr.off('data', onPart);
        child.off('close', onClose);
        child.off('error', onError);
      };
      const onPart = (): void => {
        if (!isSaid(this.#said) || !isWhole(parts, length)) return;
        stop();
        done({ stdout: Buffer.concat(parts), stderr: this.#said });
      };
      const onData = (part: Buffer): void => {
        parts.push(part);
        length += part.length;
        onPart();
      };
      const onClose = (code: number | null): void => {
        stop();
        const [, reason = this.#said.trim().split('\n').at(-1)] =
          /^(?:fatal|error): (.+)/m.exec(this.#said) ?? [];
        failed(new TelosError('config', [sentence('git failed: {0}', reason || `it ended with ${code}`)]));
      };
      const onError = (error: Error): void => {
        stop();
        failed(error);
      };
      child.stdout.on('data', onData);
      child.stderr.on('data', onPart);
      child.once('close', onClose);
      child.once('error', onError);
      child.stdin.write(question);
    });
  }

  #begin(): ChildProcessWithoutNullStreams {
    const child = this.#start();
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      this.#said = endOf(`${this.#said}${part}`, 4000);
    });
    // It may end before it has read all of it.
    child.stdin.on('error', () => undefined);
    this.#ended = new Promise(done => {
      const over = (): void => {
        if (this.#child === child) this.#child = undefined;
        done();
      };
      child.once('close', over);
      child.once('error', over);
    });
    return child;
  }
}

/** Says whether this process stays for the other one. */
function hold(child: ChildProcessWithoutNullStreams, stays: boolean): void {
  for (const handle of [
    child,
    child.stdin,
    child.stdout,
    child.stderr,
  ] as unknown as readonly NodeJS.Timeout[])
    stays ? handle.ref() : handle.unref();
}

/** Where a shell is that starts git, or undefined. */
export const gitShell: string | undefined = process.platform === 'win32' ? undefined : '/bin/sh';

/**
 * Returns what a shell reads to run git in a folder, without input. `program` is its absolute path, and `command` means the file, whatever
 * function has its name. The answer is what git prints, then the mark, the exit code and the mark again; and what git says besides, then
 * the mark.
 */
export function shellLine(program: string, dir: string, args: readonly string[], mark: string): string {
  const git = `cd ${shellWord(dir)} && command ${[program, ...args].map(shellWord).join(' ')} </dev/null`;
  return `${git}; printf '%s %s %s\\n' ${mark} $? ${mark}; printf '%s\\n' ${mark} >&2\n`;
}

/** Returns whether what git said besides has come to the mark. */
export const saidUntil =
  (mark: string) =>
  (stderr: string): boolean =>
    stderr.endsWith(`${mark}\n`);

/** Reads the answer to a `shellLine`. */
export function shellAnswer(
  printed: string,
  said: string,
  mark: string,
): { stdout: string; stderr: string; code: number } {
  const start = printed.lastIndexOf(mark, printed.length - mark.length - 2);
  const code = Number(printed.slice(start + mark.length, -mark.length - 1));
  return { stdout: printed.slice(0, start), stderr: said.slice(0, -mark.length - 1), code };
}

export const isLine: IsWhole = parts => parts.at(-1)?.at(-1) === 0x0a;

/** Returns whether an answer has come to the mark, which stands in a line of its own at its end. */
export const endsWith =
  (mark: string): IsWhole =>
  parts => {
    const end = Buffer.from(`${mark}\n`);
    const tail = Buffer.concat(parts.slice(-2)).subarray(-end.length);
    return tail.equals(end);
  };

/** An answer of `cat-file` to `contents`: a line `ID TYPE SIZE`, so many bytes and an end of line; or a line that says why not. */
export const isContents: IsWhole = (parts, length) => {
  const start = (parts[0]?.length ?? 0) > 300 ? parts[0] : Buffer.concat(parts);
  const end = start?.indexOf(0x0a) ?? -1;
  if (!start || end < 0) return false;
  const size = sizeIn(start.toString('utf8', 0, end));
  return size === undefined || length >= end + 1 + size + 1;
};

/** Returns the last field of a line `ID TYPE SIZE`; undefined if it is another line. */
export function sizeIn(line: string): number | undefined {
  const [, size] = /^[0-9a-f]{40,64} \w+ (\d+)$/.exec(line) ?? [];
  return size === undefined ? undefined : Number(size);
}
