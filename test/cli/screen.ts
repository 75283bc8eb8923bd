/** Runs the built command line on a real terminal, which `script` opens, and keeps what a person would see on it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { columnsOf } from '../../src/protocol/text.ts';
import { until } from '../eventually.ts';

const [usualWidth, height] = [100, 40];

/** Puts the output of a program on a screen, as far as programs of ours and Node's line editor use one. */
export class Screen {
  readonly #width: number;
  #rows: string[][] = [[]];
  #row = 0;
  #column = 0;
  /** Times that the bell rang. */
  bells = 0;

  constructor(width = usualWidth) {
    this.#width = width;
  }

  write(text: string): void {
    const parts = text.matchAll(
      /\x1b\[([?\d;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78]|\x1b\][^\x07]*\x07|([\s\S])/gu,
    );
    for (const [, given = '', command, character] of parts) {
      if (character !== undefined) this.#put(character);
      else if (command !== undefined) this.#move(command, Number(given.split(';')[0]) || 0);
    }
  }

  #put(character: string): void {
    if (character === '\n') this.#row++;
    else if (character === '\r') this.#column = 0;
    else if (character === '\b') this.#column = Math.max(0, this.#column - 1);
    else if (character === '\x07') this.bells++;
    else {
      const columns = columnsOf(character);
      if (this.#column + columns > this.#width) {
        this.#row++;
        this.#column = 0;
      }
      const row = this.#at(this.#row);
      while (row.length < this.#column) row.push(' ');
      row[this.#column] = character;
      if (columns === 2) row[this.#column + 1] = '';
      this.#column += columns;
    }
    this.#at(this.#row);
  }

  #move(command: string, given: number): void {
    const count = given || 1;
    if (command === 'A') this.#row = Math.max(0, this.#row - count);
    else if (command === 'B') this.#row += count;
    else if (command === 'C') this.#column += count;
    else if (command === 'D') this.#column = Math.max(0, this.#column - count);
    else if (command === 'G') this.#column = count - 1;
    else if (command === 'J') {
      this.#at(this.#row).length = Math.min(this.#at(this.#row).length, this.#column);
      this.#rows.length = this.#row + 1;
    } else if (command === 'K')
      this.#at(this.#row).length = Math.min(this.#at(this.#row).length, this.#column);
  }

  #at(row: number): string[] {
    while (this.#rows.length <= row) this.#rows.push([]);
    return this.#rows[row]!;
  }

  /** Returns every line, also those that have left the top of the screen. */
  get text(): string {
    return this.#rows.map(row => row.join('').trimEnd()).join('\n');
  }
}

export interface TerminalSession {
  readonly child: ChildProcess;
  readonly screen: Screen;
  /** Everything that was written, with its escape sequences. */
  readonly raw: string;
  type(text: string): void;
  /** Resolves when the screen matches. */
  shows(pattern: RegExp | string): Promise<void>;
  /** Types again and again until the screen matches: what comes before a question could be read is dropped. */
  answers(text: string, pattern: RegExp): Promise<void>;
  /** Resolves with the exit code once the program has ended. */
  ended(): Promise<number | null>;
}

/** Starts a line of the shell on a terminal of its own. */
export function openTerminalSession(
  line: string,
  { cwd, env, width = usualWidth }: { cwd: string; env: Readonly<Record<string, string>>; width?: number },
): TerminalSession {
  const child = spawn('script', ['-qfec', `stty cols ${width} rows ${height}; ${line}`, '/dev/null'], {
    cwd,
    env: { TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const screen = new Screen(width);
  let raw = '';
  let isOver = false;
  child.stdin.on('error', () => undefined);
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text;
    screen.write(text);
  });
  child.once('close', () => {
    isOver = true;
  });
  const fits = (pattern: RegExp | string): boolean =>
    typeof pattern === 'string' ? screen.text.includes(pattern) : pattern.test(screen.text);
  const shows = async (pattern: RegExp | string): Promise<void> => {
    await until(() => fits(pattern) || isOver, `${pattern} was not shown:\n${screen.text}`);
    if (!fits(pattern)) throw new Error(`It ended without showing ${pattern}:\n${screen.text}`);
    // A person reads before the next key, while the program gets ready for it.
    await wait(200);
  };
  return {
    child,
    screen,
    get raw() {
      return raw;
    },
    type: text => void child.stdin.write(text),
    shows,
    async answers(text, pattern) {
      const typing = setInterval(() => child.stdin.write(text), 500);
      try {
        await shows(pattern);
      } finally {
        clearInterval(typing);
      }
    },
    async ended() {
      await until(() => isOver, `It never ended:\n${screen.text}`);
      return child.exitCode;
    },
  };
}
