/** Records answers for later decisions of one run or of all runs. */

import { createHash } from 'node:crypto';
import type { ApprovalScope, ToolCall } from '@telos/protocol/run';
import { counted } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { reasonOf } from '../core/errors.ts';
import { isTelosKey } from '../mcp/config.ts';
import { secretsIn } from '../redact.ts';
import type { Review } from './agentReviews.ts';
import { type Ask, openPolicyFile, openReviews, type PolicyContext, reviewOf } from './decision.ts';
import { addRule, removeRule } from './policyEdit.ts';
import type { PolicyRule } from './policyFile.ts';
import { grantName, hostCall, subjectOf } from './subject.ts';

/**
 * Stores a yes for as long as its scope says, without the lines of a card that the person left out. `notice` informs the person that it could not be stored. `refusal` informs the
 * model that the call must not run after all: the agent's files differ from those on the answered card.
 */
export async function recordAnswer(
  call: ToolCall,
  question: Ask,
  scope: ApprovalScope,
  context: PolicyContext,
  without: readonly string[] = [],
): Promise<{ notice?: string; refusal?: string }> {
  const { card, lasting } = question;
  if (card && (await reviewOf(context))?.files.digest !== card.digest) {
    const refusal = `The files of agent '${card.agent}' changed while its permissions were shown, so nothing was done. Call again to show them as they are now.`;
    return { refusal };
  }
  if (scope === 'once' || !question.scopes.includes(scope)) return {};
  if (scope === 'run' && call.name === hostCall) {
    context.memory?.hosts.set(question.subject, (await reviewOf(context))?.files.digest);
    return {};
  }
  if (scope === 'run') {
    const wanted = await subjectOf(call, context);
    if (!('action' in wanted) && wanted.subject === question.subject)
      context.memory?.grants.add(grantName(wanted));
    return {};
  }
  if (!lasting) return {};
  try {
    const now = new Date();
    if (lasting.card && context.agent)
      await context.reviews?.accept(context.agent, lasting.card, now, without);
    if (!lasting.rule || !context.rules) return {};
    const { agent_digest: asked } = lasting.rule;
    if (asked !== (await reviewOf(context))?.files.digest) return { notice: changedMeanwhile };
    await addRule(context.rules.file, lasting.rule, now);
    return {};
  } catch (error) {
    const notice = `Your answer holds for this call only: ${reasonOf(error)}`;
    return { notice };
  }
}

const changedMeanwhile =
  'Your answer holds for this call only: the files of the agent changed while the question was open.';

/**
 * Returns the variables that the agent's accepted card names and the user has set. The agent's commands see them, but for the secret
 * ones in a command that no one was asked about.
 */
export async function grantedVariables(
  context: PolicyContext,
  { withSecrets = true } = {},
): Promise<Record<string, string>> {
  const review = await reviewOf(context);
  const names = review?.state === 'reviewed' ? (review.review?.variables ?? []) : [];
  const { env = {} } = context;
  return Object.fromEntries(
    names
      .filter(
        name =>
          Object.hasOwn(env, name) &&
          !isTelosKey(name) &&
          (withSecrets || secretsIn({ [name]: env[name]! }).length === 0),
      )
      .map(name => [name, env[name]!]),
  );
}

export type Permission = { kind: 'rule'; rule: PolicyRule } | { kind: 'card'; review: Review };

type Places = Pick<Config, 'configDir' | 'home'>;

/**
 * Returns the accepted cards, then the rules of policy.toml in the order of the file. `problems` are sentences that name file and
 * line, including those about rules that are wider than they look.
 */
export async function listPermissions(places: Places): Promise<{
  file: string;
  permissions: readonly Permission[];
  /** Why rules cannot be read. */
  problems: readonly string[];
  warnings: readonly string[];
}> {
  const { file, allow, deny, problems, warnings } = openPolicyFile(places).read();
  const rules = [...allow, ...deny].sort((a, b) => a.line - b.line);
  const reviews = await openReviews(places).list();
  const permissions: Permission[] = [
    ...reviews.map(review => ({ kind: 'card' as const, review })),
    ...rules.map(rule => ({ kind: 'rule' as const, rule })),
  ];
  return { file, permissions, problems, warnings };
}

/** Returns false if the permission no longer exists. Throws TelosError `config` if the file cannot be changed safely. */
export async function revokePermission(permission: Permission, places: Places): Promise<boolean> {
  if (permission.kind === 'card') return openReviews(places).revoke(permission.review);
  return removeRule(openPolicyFile(places).file, permission.rule, places.home);
}

/**
 * Returns a short name that stays the same wherever the permission is in the file. Other permissions do not affect it. Two
 * permissions with the same content share it, since they grant the same. It begins with a letter, so that it is never taken for a
 * position in a list.
 */
export function permissionId(permission: Permission): string {
  const parts =
    permission.kind === 'card'
      ? [permission.review.agent, permission.review.folder]
      : ruleParts.map(part => permission.rule[part] ?? null);
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 7);
  return `${permission.kind === 'card' ? 'c' : 'r'}${digest}`;
}

const ruleParts = [
  ...(['effect', 'agent', 'pack', 'tool', 'argv', 'command'] as const),
  ...(['folder', 'host', 'path', 'server', 'digest'] as const),
];

/** Describes a permission on one line. */
export function describePermission(permission: Permission): string {
  if (permission.kind === 'card') {
    const {
      hosts,
      scripts,
      commands = [],
      variables,
      writes = [],
      servers,
      folders,
      hooks = [],
    } = permission.review;
    const parts = [
      `${scripts.length} scripts`,
      ...(commands.length > 0 ? [`${commands.length} commands`] : []),
      `${hosts.length} hosts`,
      `${variables.length} variables`,
      ...(writes.length > 0 ? [`writes ${writes.join(' and ')}`] : []),
      `${servers.length} MCP servers`,
      ...(hooks.length > 0 ? [counted(hooks.length, 'hook')] : []),
      ...folders.map(({ path }) => path),
    ];
    return `its permissions: ${parts.join(', ')}`;
  }
  const { effect, tool, argv, command, host, path, server, folder } = permission.rule;
  const subject = argv ? JSON.stringify(argv) : (command ?? host ?? path ?? server ?? 'everything');
  return `${effect} ${tool}: ${subject}${folder ? ` in ${folder}` : ''}`;
}
