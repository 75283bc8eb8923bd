/** Keeps the runs of a suite within one limit of money. */

import { TelosError } from '@telos/engine/errors';
import { hasPrice, type Provider, type TokenCount, unpriced } from '@telos/engine/providers';

/** A model with what an answer of it costs in US dollars. */
export interface EvalModel {
  provider: Provider;
  priceOf(tokens: TokenCount): number | 'unknown';
}

/** What all runs have spent. A call is refused with TelosError `budget` once that has reached the limit. */
export class SuiteBudget {
  readonly #limit: number | undefined;
  #spent = 0;

  /** `limit` is in US dollars. */
  constructor(limit: number | undefined) {
    this.#limit = limit;
  }

  /** In US dollars, as far as it is known. */
  get spent(): number {
    return this.#spent;
  }

  get isReached(): boolean {
    return this.#limit !== undefined && this.#spent >= this.#limit;
  }

  add(cost: number): void {
    this.#spent += cost;
  }

  /** Throws TelosError `budget` if the limit is reached. */
  check(): void {
    if (this.isReached)
      throw new TelosError('budget', `The limit of $${this.#limit} for all runs is reached.`);
  }

  /** Returns the model's provider, whose calls count. A call of unknown cost counts nothing. */
  over({ provider, priceOf }: EvalModel): Provider {
    const count = (tokens: TokenCount | undefined): void => {
      const cost = tokens ? priceOf(tokens) : 'unknown';
      if (cost !== 'unknown') this.add(cost);
    };
    const check = (): void => {
      if (this.#limit !== undefined && !hasPrice(provider))
        throw new TelosError('budget', unpriced(provider, '--max-cost'));
      this.check();
    };
    return {
      ...provider,
      async *streamCompletion(request, signal) {
        check();
        for await (const event of provider.streamCompletion(request, signal)) {
          if (event.type === 'done' || event.type === 'spent') count(event.usage);
          yield event;
        }
      },
    };
  }
}
