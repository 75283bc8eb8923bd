/** Defines the one error type that the engine throws on purpose. `startRun` turns it into the run's end. */
import type { ErrorCode, Remedy, RunError, SkillRef } from '@telos/protocol/run';
import { type Sentence, sentencesOf, spoken } from '@telos/protocol/text';

/** The abort reason of a run whose process ends. No person stopped the run, and it can be continued. */
export class Interruption extends Error {}

/**
 * An error of the engine. `message` states what happened and to what, in English; `remedy` says what to do next, for which
 * each frontend has words. Contains no secret.
 */
export class TelosError extends Error {
  readonly code: ErrorCode;
  readonly sentences: readonly Sentence[] | undefined;
  readonly remedy: Remedy | undefined;
  readonly suggestions: readonly SkillRef[] | undefined;
  /** For `rate_limit`: how long the provider asks to be left alone, if it says so. */
  readonly retryAfterMs: number | undefined;
  /** Skills that a person can choose instead, for `no_match`. */
  readonly offered: Pick<RunError, 'choices' | 'didYouMean'>;

  /** Sentences, unlike a text, can be said in another language. */
  constructor(
    code: ErrorCode,
    message: string | readonly Sentence[],
    options?: ErrorOptions &
      Pick<RunError, 'suggestions' | 'choices' | 'didYouMean'> & {
        remedy?: Remedy | undefined;
        retryAfterMs?: number | undefined;
      },
  ) {
    super(typeof message === 'string' ? message : spoken(message), options);
    this.name = 'TelosError';
    this.code = code;
    this.sentences = typeof message === 'string' ? undefined : message;
    this.remedy = options?.remedy;
    this.suggestions = options?.suggestions;
    this.retryAfterMs = options?.retryAfterMs;
    const { choices, didYouMean } = options ?? {};
    this.offered = { ...(choices && { choices }), ...(didYouMean !== undefined && { didYouMean }) };
  }

  /** Returns the same error with one more sentence at the end of its message. */
  followedBy(more: Sentence): TelosError {
    const { code, remedy, retryAfterMs } = this;
    return new TelosError(code, [...sentencesOf(this), more], { remedy, retryAfterMs, cause: this });
  }

  /** The error as data, for the event that ends a run. */
  get runError(): RunError {
    const { code, message, sentences, remedy, suggestions, retryAfterMs } = this;
    return {
      code,
      message,
      ...(sentences && { sentences }),
      ...(remedy && { remedy }),
      ...(suggestions && { suggestions }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...this.offered,
    };
  }
}

/** The error for a prompt that the model does not take because of its length. */
export class PromptTooLong extends TelosError {}

/** Returns the message of an error. Of one of the system only its reason ("permission denied"), without its call, code and path. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/^E[A-Z0-9]{2,}: (.*?), \w+(?: '.*)?$/s, '$1');
}
