/** Commands that go on in the background: those of one conversation, what they print, and their end. */
import { randomUUID } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import type { RunningCommand, ToolResult } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import { escapeInvisible } from '../files/plainText.ts';
import { forgetStarted, rememberStarted } from './startedCommands.ts';

/** Commands of a conversation that run at once. */
const mostRunning = 8;
/** Ended commands whose end may still be read. */
const mostEnded = 20;
/** In characters. What was not read of an output. The oldest goes first. */
const mostUnread = 64 * 1024;

/** A command that was started elsewhere and is handed over. */
export interface LeftCommand {
  /** Its line, without secrets. */
  command: string;
  /** Resolves with what is said of its end. Never rejects. */
  ended: Promise<string>;
  stop(): void;
  output: UnreadOutput;
}

/** The end of what a command has printed since it was last read. */
export class UnreadOutput {
  readonly #decoder = new StringDecoder('utf8');
  #text = '';
  #leftOut = 0;
  #wake: () => void = () => undefined;

  add(chunk: Buffer): void {
    this.#text += this.#decoder.write(chunk);
    const over = this.#text.length - mostUnread;
    if (over > 0) {
      this.#leftOut += over;
      this.#text = this.#text.slice(over);
    }
    this.#wake();
  }

  /** Returns it, and what was left out of it. */
  take(): string {
    const note = this.#leftOut > 0 ? `[Cut: ${grouped(this.#leftOut)} characters are left out here.]\n` : '';
    const text = note + this.#text;
    this.#text = '';
    this.#leftOut = 0;
    return text;
  }

  /** Resolves when there is something to read, or when the signal aborts. */
  async some(signal: AbortSignal): Promise<void> {
    while (this.#text === '' && !signal.aborted)
      await new Promise<void>(resolve => {
        this.#wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
  }
}

export class BackgroundCommand {
  readonly id: string;
  readonly command: string;
  readonly startedAt = new Date();
  readonly output: UnreadOutput;
  /** How it ended. Undefined while it runs. */
  end: string | undefined;
  /** Sentences about its end, for the model. */
  notes: readonly string[] = [];
  /** Looks at what it has changed, right after its end, and returns sentences for the model. Never rejects. */
  lookAtEnd: (() => Promise<readonly string[]>) | undefined;
  readonly #stop: () => void;
  /** Resolves when it has ended and what it changed was looked at. */
  over: Promise<void> = Promise.resolve();

  constructor(id: string, { command, output, stop }: LeftCommand) {
    this.id = id;
    this.command = command;
    this.output = output;
    this.#stop = stop;
  }

  async stop(): Promise<void> {
    this.#stop();
    await this.over;
  }

  /** Returns what it has printed since the last call, and how it is doing. */
  report(): string {
    const age = formatDuration(Date.now() - this.startedAt.getTime());
    const state =
      this.end === undefined ? `[${this.id} is running, for ${age}]` : `[${this.id}: ${this.end}]`;
    const text = this.output.take().trimEnd();
    return [text === '' ? '(no new output)' : text, state, ...this.notes.map(note => `[${note}]`)].join(
      '\n\n',
    );
  }
}

export class BackgroundCommands {
  readonly #all = new Map<string, BackgroundCommand>();
  readonly #listeners = new Set<() => void>();
  readonly #dataDir: string | undefined;
  #count = 0;
  #foreground: { callId: string; move: () => void } | undefined;

  constructor(dataDir?: string) {
    this.#dataDir = dataDir;
  }

  /** True once one has run. */
  get hasBegun(): boolean {
    return this.#all.size > 0;
  }

  /** The commands that run. */
  get running(): readonly BackgroundCommand[] {
    return [...this.#all.values()].filter(({ end }) => end === undefined);
  }

  /** Returns what a person sees of the commands that run. */
  list(): RunningCommand[] {
    return this.running.map(({ id, command, startedAt }) => ({
      id,
      command,
      startedAt: startedAt.toISOString(),
    }));
  }

  /** Returns why no further command may start. */
  refusal(): string | undefined {
    if (this.running.length < mostRunning) return undefined;
    const ids = this.running.map(({ id }) => id).join(', ');
    return `${mostRunning} commands run in the background already (${ids}). Stop one with stop_command first.`;
  }

  named(id: string): BackgroundCommand | undefined {
    return this.#all.get(id);
  }

  /** Returns why a call cannot mean a command, with those that it could mean. */
  unknown(id: string): string {
    const ids = [...this.#all.keys()].join(', ');
    return `There is no background command ${escapeInvisible(id)}. ${ids === '' ? 'None was started.' : `The commands are ${ids}.`}`;
  }

  /** Takes over a command that goes on. */
  take(left: LeftCommand): BackgroundCommand {
    const command = new BackgroundCommand(`cmd-${++this.#count}`, left);
    this.#all.set(command.id, command);
    const file = this.#dataDir && rememberStarted(this.#dataDir, randomUUID(), left.command);
    command.over = left.ended.then(async end => {
      command.notes = (await command.lookAtEnd?.()) ?? [];
      command.end = end;
      if (file !== undefined && !isClosing) forgetStarted(file);
      this.#forgetOld();
      this.#changed();
    });
    this.#changed();
    return command;
  }

  /** Notes the command of a call that runs now, which `move` sends to the background. Returns what ends that. */
  runs(callId: string, move: () => void): () => void {
    const own = { callId, move };
    this.#foreground = own;
    return () => {
      if (this.#foreground === own) this.#foreground = undefined;
    };
  }

  /** Sends the command of a call to the background, because the person wants it. Returns false if it does not run. */
  move(callId: string): boolean {
    if (this.#foreground?.callId !== callId || this.refusal() !== undefined) return false;
    this.#foreground.move();
    return true;
  }

  /** Calls `listener` whenever a command starts or ends. Returns what ends that. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ends all commands. Resolves with those that ran. */
  async stop(): Promise<readonly BackgroundCommand[]> {
    const { running } = this;
    await Promise.all(running.map(command => command.stop()));
    return running;
  }

  #forgetOld(): void {
    const ended = [...this.#all.values()].filter(({ end }) => end !== undefined);
    for (const { id } of ended.slice(0, Math.max(0, ended.length - mostEnded))) this.#all.delete(id);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

const conversations = new Map<string, BackgroundCommands>();
let isClosing = false;

/** Returns the commands of a conversation. What runs is remembered in `dataDir` until it ends. */
export function backgroundOf(conversation: string, dataDir?: string): BackgroundCommands {
  const known = conversations.get(conversation) ?? new BackgroundCommands(dataDir);
  conversations.set(conversation, known);
  return known;
}

/** Ends the commands of a conversation that is over, or of all. Returns their lines. */
export async function endBackground(conversation?: string): Promise<string[]> {
  const over = conversation === undefined ? [...conversations.keys()] : [conversation];
  const ended = await Promise.all(over.map(id => conversations.get(id)?.stop() ?? []));
  for (const id of over) conversations.delete(id);
  return ended.flat().map(({ command }) => command);
}

/** As `endBackground`, since the program that they run in closes. The next one says so. */
export async function closeBackground(): Promise<void> {
  isClosing = true;
  await endBackground();
  isClosing = false;
}

/** Returns how a command ended, without what it printed. */
export function endOf(result: ToolResult): string {
  const [, code] = /\n?\[exit code: (\d+)\]$/.exec(result.content) ?? [];
  if (!result.isError) return 'ended with exit code 0';
  if (code !== undefined) return `ended with exit code ${code}`;
  return (
    result.content
      .split('\n')
      .at(-1)
      ?.replace(/^\[|\]$/g, '') ?? 'ended'
  );
}
