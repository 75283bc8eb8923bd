/**
 * Keeps of a conversation the thoughts that still follow what the model had read when it wrote them. Newer models seal a thought with
 * the instructions, the tools and all messages before it, and refuse it after anything else: after results that were left out, or a summary.
 */
import { createHash } from 'node:crypto';
import type { ContentBlock, Message } from '@telos/protocol/run';
import type { CompletionRequest } from '../core/ports.ts';

type Messages = readonly Message[];

/** One request to a model, and its answer. */
export interface Exchange {
  /**
   * Sends the messages that fit. Sends them once more, without any thought, if the server refuses one; `refusalOf` returns the words in
   * which a server refuses a request, or undefined for any other error.
   */
  send<Answer>(
    post: (messages: Messages) => Promise<Answer>,
    refusalOf: (error: unknown) => string | undefined,
  ): Promise<Answer>;
  /** Binds a thought of the answer to what was sent. */
  note(thought: ContentBlock): void;
}

/** The words in which servers refuse a thought where it stands. Which one they mean is not always said. */
const refused = /\bsignature\b|\bthinking\b.*\bblock/is;

export class BoundThoughts {
  /** What came before each thought, as a digest. Empty for one that is sent no more. */
  readonly #before = new WeakMap<ContentBlock, string>();
  readonly #isThought: (block: ContentBlock) => boolean;
  #keepsAll: boolean;

  /** With `keepsAll`, every thought is sent again as long as the server takes it. */
  constructor(isThought: (block: ContentBlock) => boolean, keepsAll: boolean) {
    this.#isThought = isThought;
    this.#keepsAll = keepsAll;
  }

  exchange(request: CompletionRequest): Exchange {
    let sent = this.#fit(request);
    return {
      send: async (post, refusalOf) => {
        try {
          return await post(sent.messages);
        } catch (error) {
          if (!sent.messages.some(this.#hasThought) || !refused.test(refusalOf(error) ?? '')) throw error;
          this.#forget(request.messages);
          sent = this.#fit(request);
          return post(sent.messages);
        }
      },
      note: thought => {
        if (!this.#keepsAll) this.#before.set(thought, sent.digest());
      },
    };
  }

  /** Returns the messages without the thoughts that followed something else. One of another provider is sent as it is. */
  #fit({ system, tools, messages }: CompletionRequest): { messages: Messages; digest: () => string } {
    const sent: Message[] = [];
    const read = createHash('sha256');
    let isBegun = false;
    let count = 0;
    const digest = (): string => {
      if (!isBegun) read.update(JSON.stringify([system, tools]));
      isBegun = true;
      for (; count < sent.length; count++)
        read.update(JSON.stringify([sent[count]!.role, sent[count]!.content]));
      return read.copy().digest('hex');
    };
    for (const message of messages) {
      const kept = this.#hasThought(message) ? this.#fitting(message, digest) : message;
      // An empty message would be refused.
      if (kept === message || kept.content.length > 0) sent.push(kept);
    }
    return { messages: sent, digest };
  }

  #fitting(message: Message, digest: () => string): Message {
    if (this.#keepsAll || typeof message.content === 'string') return message;
    const now = digest();
    const { role, content } = message;
    const kept = content.filter(block => !this.#isThought(block) || (this.#before.get(block) ?? now) === now);
    return kept.length === content.length ? message : { role, content: kept };
  }

  readonly #hasThought = ({ content }: Message): boolean =>
    typeof content !== 'string' && content.some(this.#isThought);

  #forget(messages: Messages): void {
    this.#keepsAll = false;
    for (const { content } of messages)
      for (const block of typeof content === 'string' ? [] : content.filter(this.#isThought))
        this.#before.set(block, '');
  }
}
