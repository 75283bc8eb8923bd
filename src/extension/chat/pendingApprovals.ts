/** Implements the Human of the chat view: a question is a card that waits for its button. */

import type { Human } from '../../engine/human.ts';
import type { ApprovalDecision, ApprovalRequest } from '../../protocol/run.ts';

interface Card {
  request: ApprovalRequest;
  settle(decision: ApprovalDecision): void;
}

export class PendingApprovals implements Human {
  /** The waiting cards, by the token of the question. */
  readonly #cards = new Map<string, Card>();
  readonly #onAsked: (request: ApprovalRequest) => void;

  readonly #onChanged: () => void;

  /**
   * `onAsked` is called for each new question, before its event reaches the view. `onChanged` is called whenever the
   * number of waiting questions changes.
   */
  constructor(onAsked: (request: ApprovalRequest) => void, onChanged: () => void = () => {}) {
    this.#onAsked = onAsked;
    this.#onChanged = onChanged;
  }

  /** The number of cards that wait for an answer. */
  get count(): number {
    return this.#cards.size;
  }

  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    if (signal.aborted) return Promise.resolve(stopped);
    // A question that is asked again is a new one. The older one is denied.
    this.#cards.get(request.token)?.settle({ allow: false, reason: 'A later call took its place.' });
    return new Promise(resolve => {
      const onAbort = (): void => card.settle(stopped);
      const card: Card = {
        request,
        settle: decision => {
          signal.removeEventListener('abort', onAbort);
          this.#cards.delete(request.token);
          resolve(decision);
          this.#onChanged();
        },
      };
      signal.addEventListener('abort', onAbort);
      this.#cards.set(request.token, card);
      this.#onAsked(request);
      this.#onChanged();
    });
  }

  /** Settles a card. Returns false and does nothing if no such card waits or it did not offer this scope. */
  answer(token: string, decision: ApprovalDecision): boolean {
    const card = this.#cards.get(token);
    if (!card) return false;
    if (decision.allow && !card.request.scopes.includes(decision.scope)) return false;
    card.settle(decision);
    return true;
  }

  /** Leaves the questions unanswered, because the chat view has no form for them yet. */
  async ask(questions: readonly string[]): Promise<readonly string[]> {
    return questions.map(() => '');
  }
}

const stopped: ApprovalDecision = { allow: false, reason: 'The run was stopped before an answer came.' };
