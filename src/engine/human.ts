/** The port through which the engine asks a person; each frontend brings its own. */
import { randomBytes } from 'node:crypto';
import type { ApprovalDecision, ApprovalRequest } from '../protocol/run.ts';
import { mapStrings } from './redact.ts';

/** For a new question, see `ApprovalRequest.token`: 128 bits of chance. */
export const newToken = (): string => randomBytes(16).toString('base64url');

/** Both calls settle when the signal aborts: `approve` with a denial, `ask` with empty answers. */
export interface Human {
  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision>;
  ask(questions: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
}

/** Nobody is there to ask: every question is answered with a no that names the rule. */
export const nobody: Human = {
  approve: async request => ({
    allow: false,
    reason: `Nobody can be asked here; --yes allows it, and a terminal asks (rule ${request.rule}: ${request.reason})${request.toAllow ? ` ${request.toAllow}` : ''}`,
  }),
  ask: async questions => questions.map(() => ''),
};

/** Says yes to everything that may be asked at all; denials by policy never reach a Human. */
export const yesToAll: Human = {
  approve: async () => ({ allow: true, scope: 'once' }),
  ask: async questions => questions.map(() => ''),
};

/** Shows questions without the values of secrets, as every event is shown; what is done stays what was decided on. */
export function withoutSecrets(human: Human, redact: (text: string) => string): Human {
  return {
    approve: (request, signal) =>
      human.approve({ ...mapStrings(request, redact), callId: request.callId, token: request.token }, signal),
    ask: (questions, signal) => human.ask(questions.map(redact), signal),
  };
}
