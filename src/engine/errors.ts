/** The one error type that the engine throws on purpose; `framed` in telos.ts turns it into the run's end. */
import type { ErrorCode, SkillRef } from '../protocol/run.ts';

/** The reason for aborting a run whose process ends: nobody wanted it to stop, and it can be gone on with. */
export class Interruption extends Error {}

/** `message` says what happened, to what, and what to do next, and holds no secret. */
export class TelosError extends Error {
  readonly code: ErrorCode;
  readonly suggestions: readonly SkillRef[] | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options?: ErrorOptions & { suggestions?: readonly SkillRef[] },
  ) {
    super(message, options);
    this.name = 'TelosError';
    this.code = code;
    this.suggestions = options?.suggestions;
  }
}
