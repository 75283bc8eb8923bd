/** Words the question about a call, and binds what an answer grants to the files that the agent has now. */

import type { ApprovalScope, Remedy } from '@telos/protocol/run';
import { beginningOf, type Sentence, sentence, spoken } from '@telos/protocol/text';

import { escapeInvisible } from '../files/plainText.ts';
import { tomlString } from '../files/settingsFile.ts';
import type { AgentFiles } from './agentFiles.ts';
import type { ReviewState } from './agentReviews.ts';
import { type Ask, type Decision, type PolicyContext, reviewOf } from './decision.ts';
import rules from './defaults.json' with { type: 'json' };
import type { RuleDraft } from './policyEdit.ts';
import type { PolicyRule } from './policyFile.ts';
import { draftFor } from './ruleMatch.ts';
import { grantName, type PolicySubject } from './subject.ts';

export type Question = Pick<Ask, 'rule'> & {
  /** Why a person is asked: what is read first. */
  sentences: readonly Sentence[];
  /** All of it, if there is more. */
  reason?: string;
  /** Set if a lasting yes would be too wide, although the rule allows one. */
  never?: 'always';
};

/** A rule that holds if none of the user's does. */
export interface DefaultRule {
  action: Decision['action'];
  /** How long a yes holds at most. A longer one would be too wide, or is seldom meant. */
  yes?: ApprovalScope;
  /** When it applies, in a sentence. */
  when: string;
}

/** The default rules by name, in the order in which they are listed. */
export const defaultRules = rules as Readonly<Record<string, DefaultRule>>;

/** Returns the default rule of this name; undefined for a rule of the user. */
export const defaultRule = (name: string): DefaultRule | undefined =>
  Object.hasOwn(defaultRules, name) ? defaultRules[name] : undefined;

/** Length of the description that a server gives of its tool, in characters. A longer one would hide the rest of the question. */
const longestDescription = 1000;

/** Returns the description that a server gives of its tool, for every question about it. Empty for other calls. */
export function ownWords(wanted: PolicySubject): readonly Sentence[] {
  const { description = '' } = wanted.kind === 'mcp' ? wanted.facts : {};
  if (description === '') return [];
  const cut = description.length - longestDescription;
  const said = escapeInvisible(JSON.stringify(beginningOf(description, longestDescription)));
  return cut > 0
    ? [sentence('Its description: {0} and {1} more characters', said, cut)]
    : [sentence('Its description: {0}', said)];
}

/** Returns the question about a call. */
export function ask(wanted: PolicySubject, question: Question, context: PolicyContext): Ask {
  const { never, rule, sentences, reason = spoken(sentences) } = question;
  const longest = defaultRule(rule)?.yes ?? 'once';
  const draft = never || longest !== 'always' ? undefined : draftFor(wanted, context);
  const danger = wanted.kind === 'command' && wanted.dangers.length > 0 ? wanted.dangers : undefined;
  const isOffered = draft && context.rules && !danger;
  const scopes: Ask['scopes'] = longest === 'once' ? ['once'] : ['once', 'run'];
  return {
    action: 'ask',
    rule,
    reason,
    subject: wanted.subject,
    ...(wanted.kind === 'command' ? { folder: wanted.folder } : {}),
    ...(wanted.kind === 'mcp' ? { grant: grantName(wanted) } : {}),
    scopes: isOffered ? [...scopes, 'always'] : scopes,
    ...(isOffered ? { lasting: { rule: draft } } : {}),
    ...(danger ? { danger } : {}),
    sentences,
    ...(draft ? { toAllow: howToAllow(draft, context) } : {}),
  };
}

function howToAllow(draft: RuleDraft, context: PolicyContext): Remedy {
  const { pack: _pack, ...shown } = draft;
  const lines = Object.entries(shown).map(([key, value]) => `${key} = ${tomlString(String(value))}`);
  return { kind: 'allow_rule', file: context.rules?.file ?? 'policy.toml', lines };
}

/**
 * Replaces a question by the whole card if the agent is new or has changed. This happens at its first call that needs a question,
 * and at each call that accepting the card would answer.
 */
export async function withCard(
  question: Ask,
  context: PolicyContext,
  review: ReviewState | undefined,
  covers: (card: NonNullable<Ask['card']>) => boolean | Promise<boolean>,
): Promise<Ask> {
  const { agent, reviews, memory } = context;
  // What is dangerous is asked about by itself, never beside a card.
  if (question.danger) return question;
  // The mode was chosen in place of it.
  if (context.mode === 'sandbox' && context.isOwn) return question;
  if (!agent || !reviews || !review || review.state === 'reviewed' || review.files.tooLarge) return question;
  const card = await reviews.cardOf(agent).catch(() => undefined);
  if (!card || card.state === 'reviewed') return question;
  const isCovered = await covers(card);
  if (!isCovered && memory?.cardShown) return question;
  const changed = card.changes.map(({ path }) => path);
  const [few, more] = [changed.slice(0, 3).join(', '), changed.length - 3];
  const why =
    card.state !== 'changed'
      ? sentence('You have not approved {0} yet.', agent.name)
      : more > 0
        ? sentence(
            "The files of agent '{0}' have changed since you reviewed it ({1}, {2} more).",
            agent.name,
            few,
            more,
          )
        : sentence("The files of agent '{0}' have changed since you reviewed it ({1}).", agent.name, few);
  const rule = isCovered ? undefined : question.lasting?.rule;
  // About a command the card itself says as much.
  const isCommand = question.rule === 'run.command';
  return {
    ...question,
    rule: `card.${card.state}`,
    reason: `${question.reason} ${spoken([why])}`,
    ...(question.sentences && !isCommand ? { sentences: [...question.sentences, why] } : {}),
    scopes: ['once', 'run', 'always'],
    card,
    lasting: { card, ...(rule ? { rule } : {}) },
    ...(isCovered ? { toAllow: { kind: 'review_agent' as const, agent: agent.name } } : {}),
  };
}

/** Returns the question with the agent's card, whose acceptance would answer it. Unchanged if there is no card to accept. */
export async function askWithCard(question: Ask, context: PolicyContext): Promise<Ask> {
  return question.card ? question : withCard(question, context, await reviewOf(context), () => true);
}

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

const isAlwaysMeant = (
  { agent, pack, granted, agent_digest }: PolicyRule,
  context: PolicyContext,
): boolean => {
  if (agent_digest !== undefined) return false;
  if (agent === '*') return context.agent === undefined;
  return granted === undefined || (isOfTelos(context) && pack !== undefined);
};

/** A run without a skill has no files that could change what was granted. */
const isOfTelos = ({ agent, isTelos }: PolicyContext): boolean => agent === undefined && isTelos === true;

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
  if (!rule || isOfTelos(context)) return question;
  const files = (await reviewOf(context))?.files;
  const digest = files && wholeDigest(files);
  if (digest !== undefined)
    return { ...question, lasting: { ...rest, rule: { ...rule, agent_digest: digest } } };
  const { lasting: _none, ...unbound } = question;
  if (rest.card) return { ...unbound, lasting: rest };
  return { ...unbound, scopes: question.scopes.filter(scope => scope !== 'always') };
}
