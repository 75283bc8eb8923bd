/** Binds lasting permissions of the user to the files that an agent had when they were given. */
import type { AgentFiles } from './agentFiles.ts';
import type { ReviewState } from './agentReviews.ts';
import type { Ask, PolicyContext } from './decision.ts';
import { reviewOf } from './defaults.ts';
import type { PolicyRule } from './policyFile.ts';

/**
 * Returns the first of these allow rules that counts for the agent as its files are now. A rule that Telos wrote counts only for
 * the files that it was written about. A rule for every agent counts only if this agent has been reviewed. A rule that the user
 * wrote for the agent by name always counts.
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

/** Returns the digest; undefined if it does not cover the whole agent. */
const wholeDigest = ({ digest, tooLarge }: AgentFiles): string | undefined => (tooLarge ? undefined : digest);

/**
 * Returns the question. If it offers to store a rule, the rule names the agent's files as they are now. If the files cannot be
 * named, the offer is removed.
 */
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
