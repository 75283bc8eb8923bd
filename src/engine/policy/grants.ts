/** Records answers, and calls that are let through, for later decisions of one run or of all runs. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ApprovalScope, Message, ToolCall } from '../../protocol/run.ts';
import { type Sentence, sentence } from '../../protocol/text.ts';
import type { Config } from '../config.ts';
import { reasonOf } from '../errors.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import { isTelosKey } from '../mcp/config.ts';
import { originFile } from '../skills/installPlace.ts';
import { skillTools } from '../tools/builtin.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import type { Review, ReviewState } from './agentReviews.ts';
import { sensitiveWords } from './commandDefaults.ts';
import { type Ask, openPolicyFile, openReviews, type PolicyContext } from './decision.ts';
import { placesToldIn } from './mcpReach.ts';
import { addRule, removeRule } from './policyEdit.ts';
import type { PolicyRule } from './policyFile.ts';
import { reviewOf } from './question.ts';
import { LinkFollower, writtenSegments } from './reach.ts';
import { resolveCall } from './resolveCall.ts';
import { grantName, isBuiltin, subjectOf } from './subject.ts';

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
    const refusal = `The files of agent '${card.agent}' changed while its card was open, so nothing was done. Call again to show the card as it is now.`;
    return { refusal };
  }
  if (scope === 'once' || !question.scopes.includes(scope)) return {};
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

/** Records a call that is let through. Call it before the call runs. */
export function rememberRead(call: ToolCall, subject: string, context: PolicyContext): void {
  if (context.memory)
    context.memory.sensitive = secretPlaceIn(call, subject, context) ?? context.memory.sensitive;
}

/**
 * Records what was read in earlier runs of a conversation, and what the person passes to the run. This run knows both as well as
 * what it reads itself.
 */
export function rememberEarlierReads(
  messages: readonly Message[],
  handedOver: readonly string[],
  context: PolicyContext,
): void {
  if (!context.memory) return;
  const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  const failed = new Set(
    blocks.flatMap(block => (block.type === 'tool_result' && block.is_error ? [block.tool_use_id] : [])),
  );
  const read = blocks.flatMap(block => {
    if (block.type !== 'tool_use' || failed.has(block.id)) return [];
    // The transcript has the model's own words, which can be those of another runner.
    const { call } = resolveCall(block, skillTools, context);
    return [block, call].flatMap(({ name, input }) => {
      const subject = String(input['command'] ?? input['path'] ?? '');
      return secretPlaceIn({ name, input }, subject, context) ?? [];
    });
  });
  context.memory.sensitive = [...handedOver.filter(isSensitive), ...read][0] ?? context.memory.sensitive;
}

const readers = ['read_file', 'search_files', 'edit_file'];

/** Returns the place of secrets that a call reads, as far as the call says it. */
function secretPlaceIn(
  { name, input }: Pick<ToolCall, 'name' | 'input'>,
  subject: string,
  { commandDir, workingDir, packDir, home }: PolicyContext,
): string | undefined {
  if (name === 'run_command') return sensitiveWords(subject, String(input['cwd'] ?? commandDir), home)[0];
  if (readers.includes(name)) return [subject, String(input['path'] ?? '')].find(isSensitive);
  // Results of an earlier run can still be there when its servers are not.
  return isBuiltin(name) ? undefined : placesToldIn(input).find(leadsToSecrets(workingDir, packDir));
}

/** Returns a test for paths relative to one of these folders, including paths that are links. */
function leadsToSecrets(...folders: string[]): (path: string) => boolean {
  const follower = new LinkFollower();
  const isLinkToSecrets = (path: string): boolean =>
    folders.some(folder =>
      follower
        .meaningsOf(writtenSegments(path, writtenSegments(folder)))
        .slice(1)
        .some(names => isSensitive(`/${names.join('/')}`)),
    );
  return path => isSensitive(path) || (path.length <= 1024 && isLinkToSecrets(path));
}

/** Returns the variables that the agent's accepted card names and the user has set. The agent's commands see them. */
export async function grantedVariables(context: PolicyContext): Promise<Record<string, string>> {
  const review = await reviewOf(context);
  const names = review?.state === 'reviewed' ? (review.review?.variables ?? []) : [];
  const { env = {} } = context;
  return Object.fromEntries(
    names.filter(name => Object.hasOwn(env, name) && !isTelosKey(name)).map(name => [name, env[name]!]),
  );
}

/**
 * Accepts the data that a granted script has added to the agent's own folder since `before`. Returns a line for the person, or
 * undefined if it has added nothing of that kind. Never throws: without it, the card comes back.
 */
export async function keepAdditions(
  before: ReviewState | undefined,
  { agent, reviews }: PolicyContext,
): Promise<Sentence | undefined> {
  if (!agent || !before) return undefined;
  const added = (await reviews?.acceptAdditions(agent, before).catch(() => [])) ?? [];
  if (added.length === 0) return undefined;
  return sentence(
    "Its script wrote {0} into the folder of agent '{1}' ({2}).",
    someNames(added),
    agent.name,
    agent.packDir,
  );
}

/**
 * Accepts the texts of an agent that the person has typed since its card was accepted, if they name nothing new. Returns a line for
 * the person, or undefined if there was nothing of that kind. Never throws: without it, the card comes back.
 */
export async function keepTyping(
  { agent, reviews }: PolicyContext,
  dataDir: string,
): Promise<Sentence | undefined> {
  if (!agent || !isOwnTyping(agent, dataDir)) return undefined;
  const typed = (await reviews?.acceptTyping(agent).catch(() => [])) ?? [];
  if (typed.length === 0) return undefined;
  return sentence(
    "Your changes to {0} of agent '{1}' name nothing new, so its card stays accepted.",
    someNames(typed),
    agent.name,
  );
}

/** Returns true for a folder of the user's own: neither installed from elsewhere nor in a clone of a repository. */
function isOwnTyping({ source, packDir }: ReviewedAgent, dataDir: string): boolean {
  if (source !== 'user' || originFile(dataDir, packDir).before !== null) return false;
  for (let folder = packDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return false;
    if (dirname(folder) === folder) return true;
  }
}

function someNames(labels: readonly string[]): string {
  const names = labels.slice(0, 3).map(escapeInvisible).join(', ');
  return labels.length > 3 ? `${names} and ${labels.length - 3} more` : names;
}

export type Permission = { kind: 'rule'; rule: PolicyRule } | { kind: 'card'; review: Review };

type Places = Pick<Config, 'configDir' | 'home'>;

/**
 * Returns the accepted cards, then the rules of policy.toml in the order of the file. `problems` are sentences that name file and
 * line, including those about rules that are wider than they look.
 */
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
    const { hosts, scripts, commands = [], variables, writes = [], servers, folders } = permission.review;
    const parts = [
      `${scripts.length} scripts`,
      ...(commands.length > 0 ? [`${commands.length} commands`] : []),
      `${hosts.length} hosts`,
      `${variables.length} variables`,
      ...(writes.length > 0 ? [`writes ${writes.join(' and ')}`] : []),
      `${servers.length} MCP servers`,
      ...folders.map(({ path }) => path),
    ];
    return `its card: ${parts.join(', ')}`;
  }
  const { effect, tool, argv, command, host, path, server, folder } = permission.rule;
  const subject = argv ? JSON.stringify(argv) : (command ?? host ?? path ?? server ?? 'everything');
  return `${effect} ${tool}: ${subject}${folder ? ` in ${folder}` : ''}`;
}
