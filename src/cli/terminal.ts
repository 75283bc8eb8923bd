/** The three standard streams as the commands see them: answers go out, everything else to the side, colours only where they can be seen. */
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';

export interface Terminal {
  /** To stdout: what was asked for. */
  out(text: string): void;
  /** To stderr: everything that is said about it. A line that stdout left open on the same screen is ended first. */
  say(line: string): void;
  /** Ends an open line on stdout. */
  endLine(): void;
  /** Writes what `out` still holds. */
  flush(): void;
  /** A person sits there: stdin and stderr are terminals. */
  readonly canAsk: boolean;
  /** Width of what stdout is shown on, in characters; undefined when it is no terminal. */
  readonly outWidth: number | undefined;
  /** Width for lines on stderr, in characters. */
  readonly sayWidth: number;
  readonly style: Style;
}

/** For our own words only, on stderr. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
}

const plain: Style = { dim: same, bold: same, red: same, yellow: same };

const coloured: Style = {
  dim: text => `\x1b[2m${text}\x1b[22m`,
  bold: text => `\x1b[1m${text}\x1b[22m`,
  red: text => `\x1b[31m${text}\x1b[39m`,
  yellow: text => `\x1b[33m${text}\x1b[39m`,
};

function same(text: string): string {
  return text;
}

/**
 * A reader that has gone (`| head`) is no reason to stop half-way through a run: what would be written is dropped, quietly. A disk that is
 * full drops it too, but whoever counts on the file has to hear of it.
 */
function droppingBrokenPipe(stream: NodeJS.WriteStream): (text: string) => void {
  let broken = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!broken && error.code !== 'EPIPE' && error.code !== 'EIO') {
      process.exitCode = 1;
      if (stream !== process.stderr)
        process.stderr.write(`telos: the output is not whole, it cannot be written: ${error.message}\n`);
    }
    broken = true;
  });
  return text => {
    if (!broken) stream.write(text);
  };
}

/** Memory for text that waits, in characters. */
const collectedCharacters = 64 * 1024;

/**
 * What comes in one go is written in one go: a network packet holds hundreds of tokens, and a system call for each would cost more
 * than reading them. Written before anything else is waited for, and at the end of the process.
 */
function collecting(write: (text: string) => void): { add(text: string): void; flush(): void } {
  let waiting = '';
  const flush = (): void => {
    const text = waiting;
    waiting = '';
    if (text !== '') write(text);
  };
  process.once('exit', flush);
  return {
    add(text) {
      if (waiting === '') setImmediate(flush);
      waiting += text;
      if (waiting.length > collectedCharacters) flush();
    },
    flush,
  };
}

/** For terminals that do not say how wide they are. */
const usualWidth = 80;

export function openTerminal(): Terminal {
  const { stdin, stdout, stderr, env } = process;
  const writeOut = droppingBrokenPipe(stdout);
  const writeSide = droppingBrokenPipe(stderr);
  const oneScreen = stdout.isTTY && stderr.isTTY;
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
      writeSide(`${oneScreen && open ? '\n' : ''}${line}\n`);
      // Only the screen's line is ended: what stdout receives is the same whether or not somebody watches stderr.
      if (oneScreen) open = false;
    },
    endLine() {
      if (open) collected.add('\n');
      open = false;
    },
    flush: collected.flush,
    canAsk: stdin.isTTY && stderr.isTTY,
    outWidth: stdout.isTTY ? stdout.columns || usualWidth : undefined,
    sayWidth: stderr.isTTY ? stderr.columns || usualWidth : 120,
    style: stderr.isTTY && !env['NO_COLOR'] && env['TERM'] !== 'dumb' ? coloured : plain,
  };
}

export const cancelledExitCode = 130;

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** `signal` aborts at the first interrupt, after `onFirst`; `release` gives the signals back to the process. */
export function abortOnInterrupt(onFirst: () => void): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(cancelledExitCode);
    onFirst();
    controller.abort();
  };
  for (const name of endingSignals) process.on(name, interrupt);
  return {
    signal: controller.signal,
    release() {
      for (const name of endingSignals) process.off(name, interrupt);
    },
  };
}

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
