/** Defines the one error type that the engine throws on purpose. `startRun` turns it into the run's end. */
import type { ErrorCode, SkillRef } from '../protocol/run.ts';

/** The abort reason of a run whose process ends. No person stopped the run, and it can be continued. */
export class Interruption extends Error {}

/** An error of the engine. `message` states what happened, to what, and what to do next. It contains no secret. */
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
