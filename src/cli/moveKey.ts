/** Lets the person at a terminal send the running command to the background with one key. */
import type { RunEvent } from '@telos/protocol/run';
import { hasQuestion, isKeyInput, onQuestion, signalKeys } from './keyboard.ts';
import type { Terminal } from './terminal.ts';

/** Only a command that takes longer is worth a key. Until then, what is typed waits for the next prompt. In milliseconds. */
const patience = 2000;

export class MoveKey {
  readonly #terminal: Terminal;
  readonly #move: (callId: string) => boolean;
  /** The call whose command runs. */
  #callId: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isReading = false;
  #isTold = false;
  #ignoreQuestions = (): void => undefined;

  /** `move` sends the command of a call to the background, and returns false if it does not run. */
  constructor(terminal: Terminal, move: (callId: string) => boolean) {
    this.#terminal = terminal;
    this.#move = move;
  }

  /** Call it with each event of the run. */
  note(event: RunEvent): void {
    if (event.type === 'tool_start' && event.call.name === 'run_command') {
      this.#callId = event.call.id;
      this.#ignoreQuestions();
      // A question gets all keys.
      this.#ignoreQuestions = onQuestion(isTaken => (isTaken ? this.end() : this.#wait()));
      this.#wait();
    }
    if (event.type === 'tool_end' || event.type === 'run_end') {
      this.#callId = undefined;
      this.end();
      this.#ignoreQuestions();
    }
  }

  /** Reads no keys any more. */
  end(): void {
    clearTimeout(this.#timer);
    if (!this.#isReading) return;
    this.#isReading = false;
    const { stdin } = process;
    stdin.off('data', this.#take);
    stdin.off('error', ignored);
    stdin.setRawMode(false);
    stdin.pause();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#callId === undefined || hasQuestion()) return;
    if (!this.#terminal.canAsk || !isKeyInput(process.stdin)) return;
    this.#timer = setTimeout(() => this.#begin(), patience);
    this.#timer.unref();
  }

  #begin(): void {
    const { stdin } = process;
    this.#isReading = true;
    if (!this.#isTold)
      this.#terminal.say(this.#terminal.style.dim('  b moves the command to the background.'));
    this.#isTold = true;
    stdin.on('error', ignored);
    stdin.on('data', this.#take);
    stdin.setRawMode(true);
    stdin.resume();
  }

  readonly #take = (typed: Buffer | string): void => {
    const keys = String(typed);
    for (const [key, signal] of signalKeys) if (keys.includes(key)) process.kill(process.pid, signal);
    if (keys.includes(suspend)) {
      // The shell gets the terminal as it was, and the key works no more for this command.
      this.end();
      process.kill(process.pid, 'SIGTSTP');
    }
    if (keys !== 'b' && keys !== 'B') return;
    const callId = this.#callId;
    this.end();
    if (callId !== undefined && !this.#move(callId))
      this.#terminal.say(this.#terminal.style.dim('  The command cannot go on in the background now.'));
  };
}

/** Ctrl-Z. */
const suspend = '\x1a';

/** A lost terminal is the end of the input, which the next reader notices. */
const ignored = (): void => undefined;
