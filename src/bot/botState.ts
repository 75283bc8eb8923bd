/** Keeps, in a file, what a start after a crash must know: conversations of threads, runs in progress, and messages with open buttons. */

import { join } from 'node:path';
import { readText, realPlace, writeOwn } from '@telos/engine/files';

/** Where a conversation goes on. */
export interface KeptThread {
  channel: string;
  /** Its latest run. */
  run: string;
}

interface Kept {
  threads: KeptThread[];
  /** Channels in which a run is in progress. */
  running: string[];
  /** Messages with buttons. */
  questions: { channel: string; message: string }[];
}

/** Threads that are remembered; in older ones a reply begins again. */
const mostThreads = 500;

export class BotState {
  readonly #file: string;
  readonly #kept: Kept;
  #writing: Promise<unknown> = Promise.resolve();
  readonly #failed: (why: string) => void;

  constructor(dataDir: string, failed: (why: string) => void) {
    // The data folder itself may be a link.
    this.#file = join(realPlace(dataDir) ?? dataDir, 'discord.json');
    this.#kept = readKept(this.#file);
    this.#failed = failed;
  }

  /** Returns what the process before has left open, and forgets it. */
  takeLeftovers(): Pick<Kept, 'running' | 'questions'> {
    const { running, questions } = this.#kept;
    this.#kept.running = [];
    this.#kept.questions = [];
    this.#write();
    return { running, questions };
  }

  /** Returns the latest run of the conversation in a thread. */
  runIn(channel: string): string | undefined {
    return this.#kept.threads.find(thread => thread.channel === channel)?.run;
  }

  /** Notes that a request is carried out in a channel; `ended` takes one such note back. */
  began(channel: string): void {
    this.#kept.running.push(channel);
    this.#write();
  }

  /** Notes the latest run of the conversation in a channel. */
  goesOn(channel: string, run: string): void {
    const others = this.#kept.threads.filter(thread => thread.channel !== channel);
    this.#kept.threads = [...others, { channel, run }].slice(-mostThreads);
    this.#write();
  }

  ended(channel: string): void {
    const at = this.#kept.running.indexOf(channel);
    if (at >= 0) this.#kept.running.splice(at, 1);
    this.#write();
  }

  open(channel: string, message: string): void {
    this.#kept.questions.push({ channel, message });
    this.#write();
  }

  over(message: string): void {
    this.#kept.questions = this.#kept.questions.filter(one => one.message !== message);
    this.#write();
  }

  /** Resolves when the file has everything. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  #write(): void {
    this.#writing = this.#writing
      .then(() => writeOwn(this.#file, `${JSON.stringify(this.#kept)}\n`))
      .catch((error: Error) => this.#failed(`The state of the bot could not be saved: ${error.message}`));
  }
}

/** A file that cannot be read counts as empty: what it held is only needed for words of comfort. */
function readKept(file: string): Kept {
  const empty: Kept = { threads: [], running: [], questions: [] };
  try {
    const read = JSON.parse(readText(file)) as Partial<Kept>;
    const lists = [read.threads, read.running, read.questions];
    return lists.every(Array.isArray) ? { ...empty, ...read } : empty;
  } catch {
    return empty;
  }
}
