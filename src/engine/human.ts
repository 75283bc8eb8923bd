/** The port through which the engine asks a person; each frontend brings its own. */
import type { ApprovalDecision, ApprovalRequest } from '../protocol/run.ts';

/** Both calls settle when the signal aborts: `approve` with a denial, `ask` with empty answers. */
export interface Human {
  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision>;
  ask(questions: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
}

/** Nobody is there to ask: every question is answered with a no that names the rule. */
export const nobody: Human = {
  approve: async request => ({
    allow: false,
    reason: `Nobody can be asked here (rule ${request.rule}: ${request.reason}). Run it in a terminal, or allow everything with --yes.`,
  }),
  ask: async questions => questions.map(() => ''),
};

/** Says yes to everything that may be asked at all; denials by policy never reach a Human. */
export const yesToAll: Human = {
  approve: async () => ({ allow: true, scope: 'once' }),
  ask: async questions => questions.map(() => ''),
};

/**
 * Remembers "for this run": the same tool and exactly the same subject in the same folder are asked once, or what the request says
 * that a yes covers. A yes to one command is never a yes to another.
 */
export function rememberingForRun(human: Human): Human {
  const granted = new Set<string>();
  return {
    async approve(request, signal) {
      const { tool, subject, folder = '', grant } = request;
      const key = JSON.stringify(grant === undefined ? [tool, subject, folder] : [tool, grant]);
      if (granted.has(key)) return { allow: true, scope: 'run' };
      const decision = await human.approve(request, signal);
      if (decision.allow && decision.scope !== 'once') granted.add(key);
      return decision;
    },
    ask: (questions, signal) => human.ask(questions, signal),
  };
}
