/** What the user has granted, to whom and when, and the way to take it back. */
import { createHash } from 'node:crypto';
import type { Config } from '../config.ts';
import type { Review } from './agentReviews.ts';
import { removeRule } from './policyEdit.ts';
import type { PolicyRule } from './policyFile.ts';
import { openPolicyFile, openReviews } from './runPolicy.ts';

export type Permission = { kind: 'rule'; rule: PolicyRule } | { kind: 'card'; review: Review };

type Places = Pick<Config, 'configDir' | 'home'>;

/** Accepted cards, then the rules of policy.toml in the file's order. `problems` are sentences that name file and line; also those about rules that are wider than they look. */
export async function listPermissions(
  places: Places,
): Promise<{ file: string; permissions: readonly Permission[]; problems: readonly string[] }> {
  const { file, allow, deny, problems, warnings } = openPolicyFile(places).read();
  const rules = [...allow, ...deny].sort((a, b) => a.line - b.line);
  const reviews = await openReviews(places).list();
  const permissions: Permission[] = [
    ...reviews.map(review => ({ kind: 'card' as const, review })),
    ...rules.map(rule => ({ kind: 'rule' as const, rule })),
  ];
  return { file, permissions, problems: [...problems, ...warnings] };
}

/** False when it is not there any more. Throws TelosError `config` when the file cannot be changed safely. */
export async function revokePermission(permission: Permission, places: Places): Promise<boolean> {
  if (permission.kind === 'card') return openReviews(places).revoke(permission.review);
  return removeRule(openPolicyFile(places).file, permission.rule, places.home);
}

/**
 * A short name that stays with a permission wherever in the file it comes to stand, and whatever is granted beside it. Two of the same content
 * share it, since they grant the same. It begins with a letter, so that it is never taken for a place in a list.
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

/** What a permission is about, on one line. */
export function describePermission(permission: Permission): string {
  if (permission.kind === 'card') {
    const { hosts, scripts, variables, servers, folders } = permission.review;
    const parts = [
      `${scripts.length} scripts`,
      `${hosts.length} hosts`,
      `${variables.length} variables`,
      `${servers.length} MCP servers`,
      ...folders.map(({ path }) => path),
    ];
    return `its card: ${parts.join(', ')}`;
  }
  const { effect, tool, argv, command, host, path, server, folder } = permission.rule;
  const subject = argv ? JSON.stringify(argv) : (command ?? host ?? path ?? server ?? 'everything');
  return `${effect} ${tool}: ${subject}${folder ? ` in ${folder}` : ''}`;
}
