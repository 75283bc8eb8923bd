/** Defines the ports through which the engine asks a person and has them sign in. Each frontend brings its own. */
import type { Human } from './core/ports.ts';
import { mapStrings } from './redact.ts';

/** The abort reason of a question whose asker no longer waits for the answer. Its message says so to the person. */
export class QuestionOver extends Error {
  /** The person has answered it, somewhere else. */
  readonly isAnswered: boolean;

  constructor(message = 'The question is over: who asked no longer waits.', isAnswered = false) {
    super(message);
    this.isAnswered = isAnswered;
  }
}

/** A store for secrets. Writing undefined removes a value. */
export interface SecretPlace {
  read(name: string): Promise<string | undefined>;
  write(name: string, value: string | undefined): Promise<void>;
}

/** The frontend's part of a sign-in. Without it, a server that needs a sign-in is reported as not available. */
export interface SignInPort extends SecretPlace {
  /** Resolves with the address that the browser returns to. It leads only to this frontend. */
  redirectUrl(): Promise<string>;
  /** Resolves with the address of the person's client id metadata document, unchecked; undefined without one that fits `redirectUrl`. */
  clientDocument?(): Promise<string | undefined>;
  /** Opens the page and waits until the browser returns with this `state`. Rejects on abort or if the person takes too long. */
  visit(url: string, state: string, signal: AbortSignal): Promise<URLSearchParams>;
}

/** Used if no person can be asked: every question is answered with a no that names the rule. */
export const denyAll: Human = {
  isAway: true,
  approve: async request => ({
    allow: false,
    isAway: true,
    reason: `No one can be asked here (rule ${request.rule}: ${request.reason}).`,
  }),
  ask: async questions => questions.map(() => ''),
};

/** Answers yes to every question. Denials by policy never reach a Human. */
export const allowAll: Human = {
  isAway: true,
  approve: async () => ({ allow: true, scope: 'once' }),
  ask: async questions => questions.map(() => ''),
};

/**
 * Returns a Human whose questions are shown without the values of secrets, like every event.
 * The call itself stays as it was decided on.
 */
export function withoutSecrets(human: Human, redact: (text: string) => string): Human {
  return {
    ...(human.isAway && { isAway: true }),
    approve: (request, signal) =>
      human.approve({ ...mapStrings(request, redact), callId: request.callId, token: request.token }, signal),
    ask: (questions, signal) => human.ask(questions.map(redact), signal),
  };
}
