/** Binds what the user has allowed for good to the files that an agent had then. */
import type { AgentFiles } from './agentFiles.ts';
import type { ReviewState } from './agentReviews.ts';
import type { Ask, PolicyContext } from './decision.ts';
import { reviewOf } from './defaults.ts';
import type { PolicyRule } from './policyFile.ts';

/**
 * The first of these allow rules that counts for the agent as its files are now: one that Telos wrote only for the files that it was written about, and one
 * for every agent only where this one has been reviewed. A rule that the user wrote for the agent by name counts always.
 */
export async function firstThatCounts(
  rules: readonly PolicyRule[],
  context: PolicyContext,
): Promise<PolicyRule | undefined> {
  const plain = rules.find(rule => isAlwaysMeant(rule, context));
  if (plain || rules.length === 0) return plain;
  const review = await reviewOf(context);
  return review && rules.find(rule => countsFor(rule, review));
}

const isAlwaysMeant = ({ agent, granted, agent_digest }: PolicyRule, context: PolicyContext): boolean =>
  agent_digest === undefined && (agent === '*' ? context.agent === undefined : granted === undefined);

function countsFor({ agent, granted, agent_digest }: PolicyRule, { state, files }: ReviewState): boolean {
  if (agent === '*' && state !== 'reviewed') return false;
  return agent_digest === undefined ? granted === undefined : agent_digest === wholeDigest(files);
}

/** Undefined where the digest does not cover all that the agent is. */
const wholeDigest = ({ digest, tooLarge }: AgentFiles): string | undefined => (tooLarge ? undefined : digest);

/** The question whose rule, if it offers to write one down, names the agent's files as they are now; without that offer where they cannot be named. */
export async function bound(question: Ask, context: PolicyContext): Promise<Ask> {
  const { rule, ...rest } = question.lasting ?? {};
  if (!rule) return question;
  const files = (await reviewOf(context))?.files;
  const digest = files && wholeDigest(files);
  if (digest !== undefined)
    return { ...question, lasting: { ...rest, rule: { ...rule, agent_digest: digest } } };
  const { lasting: _none, ...unbound } = question;
  if (rest.card) return { ...unbound, lasting: rest };
  return { ...unbound, scopes: question.scopes.filter(scope => scope !== 'always') };
}
