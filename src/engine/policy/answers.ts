/** What follows from an answer, and from a call that is let through: later decisions of the run, or of all runs, know of it. */
import type { ApprovalScope, ToolCall } from '../../protocol/run.ts';
import { isTelosKey } from '../tools/mcpConfig.ts';
import { isSensitive } from '../tools/secretNames.ts';
import type { Ask, PolicyContext } from './decision.ts';
import { reviewOf, sensitiveWords } from './defaults.ts';
import { addRule } from './policyEdit.ts';
import { grantName, whatItWants } from './wanted.ts';

/**
 * Keeps a yes as long as its scope says. `notice` tells the person that it could not be written down, and `refusal` the model that the call
 * must not run after all: the agent's files are others than those on the card that was answered.
 */
export async function keepAnswer(
  call: ToolCall,
  question: Ask,
  scope: ApprovalScope,
  context: PolicyContext,
): Promise<{ notice?: string; refusal?: string }> {
  const { card, lasting } = question;
  if (card && (await reviewOf(context))?.files.digest !== card.digest) {
    const refusal = `The files of agent '${card.agent}' changed while its card was open, so nothing was done. Call again to show the card as it is now.`;
    return { refusal };
  }
  if (scope === 'once' || !question.scopes.includes(scope)) return {};
  if (scope === 'run') {
    const wanted = await whatItWants(call, context);
    if (!('action' in wanted) && wanted.subject === question.subject)
      context.memory?.grants.add(grantName(wanted));
    return {};
  }
  if (!lasting) return {};
  try {
    const now = new Date();
    if (lasting.card && context.agent) await context.reviews?.accept(context.agent, lasting.card, now);
    if (lasting.rule && context.rules) await addRule(context.rules.file, lasting.rule, now);
    return {};
  } catch (error) {
    const notice = `Your answer holds for this call only: ${error instanceof Error ? error.message : String(error)}`;
    return { notice };
  }
}

/** Call it when a call is let through, before it runs. */
export function noteGranted(call: ToolCall, subject: string, { memory }: PolicyContext): void {
  if (!memory) return;
  if (call.name === 'read_file' && isSensitive(subject)) memory.sensitive = subject;
  if (call.name === 'run_command') memory.sensitive = sensitiveWords(subject)[0] ?? memory.sensitive;
}

/** The variables that the agent's accepted card names and the user has set: its commands see them. */
export async function grantedVariables(context: PolicyContext): Promise<Record<string, string>> {
  const review = await reviewOf(context);
  const names = review?.state === 'reviewed' ? (review.review?.variables ?? []) : [];
  const { env = {} } = context;
  return Object.fromEntries(
    names.filter(name => Object.hasOwn(env, name) && !isTelosKey(name)).map(name => [name, env[name]!]),
  );
}
