/** One answer on Discord: a message that grows by edits at a pace that Discord allows, and goes on in the next when it is full. */
import { shortened } from '@telos/protocol/text';
import { type Gateway, Refused } from './gateway.ts';
import { answerText, messageLimit, plainText, splitMessage } from './messageText.ts';

/** Between two edits of a message, in milliseconds. Discord allows about one each second. */
const pace = 1_200;
/** After requests that have failed: the first wait, and the longest. In milliseconds. */
const firstWait = 1_000;
const longestWait = 60_000;
/** How long an answer that has ended is tried to be delivered while Discord cannot be reached. In milliseconds. */
const patience = 60 * 60_000;
/** Longest line of the state, which has its room beside a full message. In characters. */
const mostState = 44;

/** Half of a line's end or of a character, whose rest may come with the next piece. */
const unfinished = /[\r\ud800-\udbff]$/;

/** What an answer needs of the connection. `Refused` is lasting; any other error may pass. */
export type Sender = Pick<Gateway, 'post' | 'edit'>;

/** Where an answer is written. */
export interface AnswerPlace {
  channel: string;
  /** The message that is answered. */
  replyTo?: string;
}

/** Escapes could make it too long; then it loses what would need them. */
function stateText(words: string): string {
  const line = plainText(words, mostState);
  return line.length <= mostState + 8
    ? line
    : shortened(words.replace(/[^\p{L}\p{N} .,·$/]/gu, ' '), mostState);
}

export class GrowingAnswer {
  readonly #sender: Sender;
  readonly #place: AnswerPlace;
  #text = '';
  #state = '';
  /** The messages as Discord has them. */
  readonly #shown: { id: string; content: string }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #next = 0;
  #failures = 0;
  #giveUpAt = Number.POSITIVE_INFINITY;
  #problem: unknown;
  #settle: (() => void) | undefined;

  constructor(sender: Sender, place: AnswerPlace) {
    this.#sender = sender;
    this.#place = place;
  }

  get isEmpty(): boolean {
    return this.#text.trim() === '';
  }

  /** Adds a piece of the model's text. */
  add(text: string): void {
    this.#text += text;
    this.#wake();
  }

  /** Begins a new paragraph, if there is text. */
  pause(): void {
    if (this.#text !== '' && !this.#text.endsWith('\n')) this.#text += '\n\n';
  }

  /** Says what happens now, in a small line below the text. */
  state(words: string): void {
    this.#state = `${words} …`;
    this.#wake();
  }

  /**
   * Writes the last of it, with a last line of the state. Resolves when Discord has everything. Rejects if Discord refuses it for good,
   * or could not be reached for an hour.
   */
  async end(words: string): Promise<void> {
    this.#state = words;
    this.#giveUpAt = performance.now() + patience;
    if (this.#problem === undefined) {
      const settled = new Promise<void>(resolve => {
        this.#settle = resolve;
      });
      this.#wake();
      await settled;
    }
    if (this.#problem !== undefined) throw this.#problem;
  }

  #wake(): void {
    if (this.#timer || this.#isWriting || this.#problem !== undefined) return;
    this.#timer = setTimeout(() => void this.#write(), Math.max(0, this.#next - performance.now()));
  }

  async #write(): Promise<void> {
    this.#timer = undefined;
    this.#isWriting = true;
    try {
      await this.#send(this.#wanted());
      this.#failures = 0;
      this.#next = performance.now() + pace;
    } catch (error) {
      const wait = Math.min(longestWait, firstWait * 2 ** this.#failures++);
      this.#next = performance.now() + wait;
      if (error instanceof Refused || this.#next > this.#giveUpAt) this.#problem = error;
    }
    this.#isWriting = false;
    if (this.#problem === undefined && !this.#isDone()) this.#wake();
    else if (this.#problem !== undefined || this.#giveUpAt < Number.POSITIVE_INFINITY) this.#settle?.();
  }

  #wanted(): string[] {
    const hasEnded = this.#giveUpAt < Number.POSITIVE_INFINITY;
    const text = hasEnded ? this.#text : this.#text.replace(unfinished, '');
    const parts = splitMessage(answerText(text), messageLimit);
    // Discord takes no message of blanks.
    const contents = parts.map(part => (part.trim() === '' ? '\u200b' : part));
    const line = this.#state && `-# ${stateText(this.#state)}`;
    if (this.isEmpty) return [line || '\u200b'];
    const last = contents.pop() ?? '';
    return [...contents, line ? `${last}\n${line}` : last];
  }

  #isDone(): boolean {
    const wanted = this.#wanted();
    return wanted.length <= this.#shown.length && wanted.every((one, at) => one === this.#shown[at]?.content);
  }

  async #send(wanted: readonly string[]): Promise<void> {
    const { channel, replyTo } = this.#place;
    for (const [at, content] of wanted.entries()) {
      const shown = this.#shown[at];
      if (!shown) {
        const answers = at === 0 && replyTo !== undefined ? { replyTo } : {};
        this.#shown.push({ id: await this.#sender.post(channel, { content, ...answers }), content });
      } else if (shown.content !== content) {
        await this.#sender.edit(channel, shown.id, { content });
        shown.content = content;
      }
    }
  }
}
