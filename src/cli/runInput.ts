/** Takes what a user types while a run of a chat works, and shows that it works: for how long, and with how many tokens. */
import type { RunEvent } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import { hasQuestion, isKeyInput, onQuestion } from './keyboard.ts';
import { type Key, KeyParser, marksNoPastes, marksPastes } from './keys.ts';
import type { Terminal } from './terminal.ts';
import { terminalLine, terminalText } from './terminalText.ts';

/** The line is drawn anew this often, and not sooner after other text. In milliseconds. */
const interval = 250;

export class RunInput {
  /** The terminal of the run: the line goes away before anything else is shown. */
  readonly terminal: Terminal;
  /** Requests that were sent meanwhile. */
  readonly queue: string[] = [];
  /** What is typed and not sent. */
  draft = '';
  readonly #outer: Terminal;
  readonly #parser = new KeyParser(key => this.#take(key));
  readonly #began = performance.now();
  #move: (callId: string) => boolean = () => false;
  /** The call whose command runs. */
  #callId: string | undefined;
  #tokens = 0;
  #isShown = false;
  #isOpen = false;
  #isReading = false;
  #isStopping = false;
  #wasAsked = false;
  #timer: NodeJS.Timeout | undefined;
  #ignoreQuestions = (): void => undefined;

  constructor(terminal: Terminal) {
    this.#outer = terminal;
    const shown = <Args extends unknown[]>(write: (...args: Args) => void) => {
      return (...args: Args): void => {
        this.#erase();
        write(...args);
      };
    };
    this.terminal = {
      ...terminal,
      out: shown(text => {
        if (text !== '') this.#isOpen = !text.endsWith('\n');
        terminal.out(text);
      }),
      say: shown(line => {
        this.#isOpen = false;
        terminal.say(line);
      }),
      endLine: shown(leaving => {
        this.#isOpen = false;
        terminal.endLine(leaving);
      }),
    };
  }

  /** Begins to read keys. A question gets them all. */
  begin(): void {
    this.#ignoreQuestions = onQuestion(isTaken => {
      this.#wasAsked ||= isTaken;
      if (isTaken) this.#rest();
      else this.#listen();
    });
    if (!hasQuestion()) this.#listen();
    this.#timer = setInterval(() => this.#draw(), interval);
    this.#timer.unref();
  }

  /** `move` sends the command of a call to the background, and returns false if it does not run. */
  set moves(move: (callId: string) => boolean) {
    this.#move = move;
  }

  /** Call it with each event of the run. */
  note(event: RunEvent): void {
    if (event.type === 'tool_start' && event.call.name === 'run_command') this.#callId = event.call.id;
    if (event.type === 'tool_end' && event.callId === this.#callId) this.#callId = undefined;
    if (event.type === 'usage') {
      const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = event.usage;
      this.#tokens += inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
    }
  }

  /** Reads no keys any more. A run that was stopped leaves what waited to be looked at. */
  end(): void {
    clearInterval(this.#timer);
    this.#ignoreQuestions();
    this.#rest();
    this.#parser.end();
    if (!this.#isStopping) return;
    this.draft = [...this.queue.splice(0), this.draft].filter(Boolean).join('\n');
  }

  #listen(): void {
    const { stdin, stderr } = process;
    if (this.#isReading || !isKeyInput(stdin)) return;
    this.#isReading = true;
    stdin.on('error', ignored);
    stdin.on('data', this.#feed);
    stdin.setRawMode(true);
    stdin.resume();
    stderr.write(marksPastes);
  }

  #rest(): void {
    this.#erase();
    const { stdin, stderr } = process;
    if (!this.#isReading || !isKeyInput(stdin)) return;
    this.#isReading = false;
    stdin.off('data', this.#feed);
    stdin.off('error', ignored);
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write(marksNoPastes);
  }

  readonly #feed = (typed: Buffer | string): void => {
    this.#parser.feed(typed);
    if (this.#isReading) this.#draw();
  };

  #take(key: Key): void {
    if (key.kind === 'text') this.draft += key.text;
    else if (key.kind === 'paste') this.draft += key.text.replace(/\r\n?/g, '\n');
    else if (key.name === 'newline') this.draft += '\n';
    else if (key.name === 'backspace') this.draft = [...this.draft].slice(0, -1).join('');
    else if (key.name === 'cut to start') this.draft = '';
    else if (key.name === 'cut word') this.draft = this.draft.replace(/\S*\s*$/, '');
    else if (key.name === 'enter') this.#send();
    else if (key.name === 'move') this.#toBackground();
    else if (key.name === 'escape' || key.name === 'interrupt') this.#stop();
    else if (key.name === 'quit') process.kill(process.pid, 'SIGQUIT');
    else if (key.name === 'suspend') this.#suspend();
  }

  #send(): void {
    const text = this.draft.trim();
    this.draft = '';
    if (text === '' || (this.#wasAsked && lateAnswer.test(text))) return;
    this.queue.push(text);
    const { style, sayWidth } = this.#outer;
    this.terminal.say(style.dim(terminalLine(`queued: ${text}`, sayWidth)));
  }

  #stop(): void {
    this.#isStopping = true;
    this.#erase();
    process.kill(process.pid, 'SIGINT');
  }

  #toBackground(): void {
    if (this.#callId === undefined || this.#move(this.#callId)) return;
    this.terminal.say(this.#outer.style.dim('  The command cannot go on in the background now.'));
  }

  /** The shell gets the terminal as it was. */
  #suspend(): void {
    this.#rest();
    process.once('SIGCONT', () => this.#listen());
    process.kill(process.pid, 'SIGTSTP');
  }

  #draw(): void {
    if (!this.#isReading || this.#isOpen || hasQuestion()) return;
    this.#outer.flush();
    const parts = [
      formatDuration(performance.now() - this.#began),
      ...(this.#tokens > 0 ? [`${grouped(this.#tokens)} tokens`] : []),
      this.#isStopping ? 'stopping' : 'Esc stops',
      ...(this.#callId === undefined ? [] : ['Ctrl-B moves the command to the background']),
    ];
    const width = Math.max(10, (process.stderr.columns || 80) - 1);
    // The end of a long draft is where it is typed.
    const typed = terminalText(this.draft.slice(-width).replaceAll('\n', '⏎'));
    const line = typed === '' ? terminalLine(`· ${parts.join(' · ')}`, width) : endOf(`› ${typed}`, width);
    process.stderr.write(`\r\x1b[K${this.#outer.style.dim(line)}`);
    this.#isShown = true;
  }

  #erase(): void {
    if (this.#isShown) process.stderr.write('\r\x1b[K');
    this.#isShown = false;
  }
}

/** What is meant for a question that is over is no request. */
const lateAnswer = /^(?:y|n|r|yes|no|run|always)$/i;

const endOf = (text: string, width: number): string => {
  const characters = [...text];
  return characters.length > width ? `…${characters.slice(1 - width).join('')}` : text;
};

/** A lost terminal is the end of the input, which the next reader notices. */
const ignored = (): void => undefined;
