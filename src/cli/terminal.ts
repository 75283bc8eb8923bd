/**
 * Wraps the three standard streams. Answers go to stdout, everything else to stderr; colors are used only where they can
 * be seen.
 */

import { fstatSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { reasonOf, TelosError } from '@telos/engine/errors';
import type { EndingSignal, Output, Surroundings } from './surroundings.ts';

export interface Terminal {
  /** Writes requested output to stdout. */
  out(text: string): void;
  /** Writes everything else to stderr. First ends a line that stdout left open on the same screen, or in the same file or pipe. */
  say(line: string): void;
  /** Ends an open line on stdout. With `leaving` a blank line follows it. */
  endLine(leaving?: 'blank line'): void;
  /** Writes what `out` still holds. */
  flush(): void;
  /** True if there is a person to ask: stdin and stderr are terminals. */
  readonly canAsk: boolean;
  /** Width of the terminal behind stdout, in characters. Undefined if stdout is not a terminal. */
  readonly outWidth: number | undefined;
  /** How Markdown is shown on stdout: undefined as it is, `plain` without an escape sequence. */
  readonly markdown?: 'plain' | 'styled' | undefined;
  /** Width for lines on stderr, in characters. */
  readonly sayWidth: number;
  readonly style: Style;
  /** Questions are put to the terminal of the process alone, whose keys are its signals. */
  readonly surroundings: Surroundings;
  /** Lets the terminal say that a question waits. Missing if no one would hear it. */
  ring?(): void;
}

/** For our own words only, on stderr. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
}

const plain: Style = { dim: same, bold: same, red: same, yellow: same };

const colored: Style = {
  dim: text => `\x1b[2m${text}\x1b[22m`,
  bold: text => `\x1b[1m${text}\x1b[22m`,
  red: text => `\x1b[31m${text}\x1b[39m`,
  yellow: text => `\x1b[33m${text}\x1b[39m`,
};

function same(text: string): string {
  return text;
}

/**
 * Returns a writer that drops text once the stream is broken. A closed reader (`| head`) does not stop a run half-way; the
 * rest is dropped silently. A full disk drops it too, but that is reported, since the file may be needed.
 */
function droppingBrokenPipe(stream: Output, surroundings: Surroundings): (text: string) => void {
  let broken = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!broken && error.code !== 'EPIPE' && error.code !== 'EIO') {
      surroundings.exitCode = 1;
      if (stream !== surroundings.stderr)
        surroundings.stderr.write(
          `telos: the output is incomplete because it cannot be written: ${reasonOf(error)}.\n`,
        );
    }
    broken = true;
  });
  return text => {
    if (!broken) stream.write(text);
  };
}

/** Most text that is held back, in characters. */
const collectedCharacters = 64 * 1024;

/**
 * Collects text that arrives together and writes it at once. A network packet contains hundreds of tokens, and a system
 * call for each would cost more than reading them. Writes before anything else is waited for, and when the process exits.
 */
function collecting(write: (text: string) => void): { add(text: string): void; flush(): void } {
  let waiting = '';
  const flush = (): void => {
    process.off('exit', flush);
    const text = waiting;
    waiting = '';
    if (text !== '') write(text);
  };
  return {
    add(text) {
      if (waiting === '') {
        setImmediate(flush);
        process.once('exit', flush);
      }
      waiting += text;
      if (waiting.length > collectedCharacters) flush();
    },
    flush,
  };
}

/**
 * Breaks long lines of a text between words, where a terminal would break within them. Lines that are indented are exact, such as a
 * command, and stay as they are.
 */
function wrapped(text: string, width: number): string {
  return text
    .split('\n')
    .map(line => (/^ {4}|^ *\|/.test(stripVTControlCharacters(line)) ? line : wrappedLine(line, width)))
    .join('\n');
}

function wrappedLine(line: string, width: number): string {
  if (stripVTControlCharacters(line).length <= width) return line;
  const [indent = ''] = /^ */.exec(stripVTControlCharacters(line)) ?? [];
  let [done, row] = ['', ''];
  for (const word of line.split(' ')) {
    const longer = row === '' ? word : `${row} ${word}`;
    if (row.trim() === '' || stripVTControlCharacters(longer).length <= width) row = longer;
    else {
      done += `${row}\n`;
      row = indent + word;
    }
  }
  return done + row;
}

/** For terminals that do not report their width. */
const usualWidth = 80;

export function openTerminal(surroundings: Surroundings): Terminal {
  const { stdout, stderr, env } = surroundings;
  const writeOut = droppingBrokenPipe(stdout, surroundings);
  const writeSide = droppingBrokenPipe(stderr, surroundings);
  const isOneScreen = stdout.isTTY && stderr.isTTY;
  const isOnePlace = isOneScreen || isSameFile(stdout, stderr);
  const isDumb = env['TERM'] === 'dumb';
  const isColored = !env['NO_COLOR'] && !isDumb;
  const collected = collecting(writeOut);
  let open = false;
  return {
    out(text) {
      if (text === '') return;
      collected.add(text);
      open = !text.endsWith('\n');
    },
    say(line) {
      collected.flush();
      const shown = stderr.isTTY ? wrapped(line, stderr.columns || usualWidth) : line;
      writeSide(`${isOnePlace && open ? '\n' : ''}${shown}\n`);
      // Only the line of the same place is ended. Stdout receives the same text whether or not stderr is a terminal.
      if (isOnePlace) open = false;
    },
    endLine(leaving) {
      if (open) collected.add(leaving ? '\n\n' : '\n');
      open = false;
    },
    flush: collected.flush,
    // Opening stdin takes as long as reading a hundred skills.
    canAsk: stderr.isTTY === true && surroundings.stdin.isTTY === true,
    outWidth: stdout.isTTY ? stdout.columns || usualWidth : undefined,
    sayWidth: stderr.isTTY ? stderr.columns || usualWidth : 120,
    markdown: stdout.isTTY && !isDumb ? (isColored ? 'styled' : 'plain') : undefined,
    style: stderr.isTTY && isColored ? colored : plain,
    surroundings,
    ...(stderr.isTTY && { ring: () => writeSide('\x07') }),
  };
}

/** Returns true if both are the same file or pipe, as behind `2>&1`. */
function isSameFile(stdout: Output, stderr: Output): boolean {
  if (stdout.fd === undefined || stderr.fd === undefined) return false;
  try {
    const [out, side] = [fstatSync(stdout.fd), fstatSync(stderr.fd)];
    return out.ino === side.ino && out.dev === side.dev;
  } catch {
    return false;
  }
}

export const cancelledExitCode = 130;

const endingSignals: readonly EndingSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Turns signals into an abort. `signal` aborts at the first interrupt, after `onFirst`. `release` gives the signals back to
 * what surrounds the call.
 */
export function abortOnInterrupt(
  { surroundings }: Pick<Terminal, 'surroundings'>,
  onFirst: () => void,
): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) surroundings.exit(cancelledExitCode);
    onFirst();
    controller.abort();
  };
  for (const name of endingSignals) surroundings.on(name, interrupt);
  return {
    signal: controller.signal,
    release() {
      for (const name of endingSignals) surroundings.off(name, interrupt);
    },
  };
}

/** What an interrupt says at once, and the exit code for an error; without it, the error is thrown. */
interface Interruptible {
  onFirst?: () => void;
  refused?: (error: TelosError) => number;
}

/** Calls `use` with a signal that an interrupt aborts. Returns its exit code, or that of the interrupt that made it throw. */
export async function interruptible(
  terminal: Pick<Terminal, 'surroundings'>,
  use: (signal: AbortSignal) => Promise<number>,
  { onFirst = () => {}, refused }: Interruptible = {},
): Promise<number> {
  const { signal, release } = abortOnInterrupt(terminal, onFirst);
  try {
    return await use(signal);
  } catch (error) {
    if (signal.aborted) return cancelledExitCode;
    if (!refused || !(error instanceof TelosError)) throw error;
    return refused(error);
  } finally {
    release();
  }
}
