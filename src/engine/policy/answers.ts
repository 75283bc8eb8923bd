/** What follows from an answer, and from a call that is let through: later decisions of the run, or of all runs, know of it. */
import type { ApprovalScope, Message, ToolCall } from '../../protocol/run.ts';
import { isTelosKey } from '../tools/mcpConfig.ts';
import { isSensitive } from '../tools/secretNames.ts';
import type { Ask, PolicyContext } from './decision.ts';
import { reviewOf, sensitiveWords } from './defaults.ts';
import { placesToldIn } from './mcpReach.ts';
import { LinkFollower, writtenSegments } from './pathPatterns.ts';
import { addRule } from './policyEdit.ts';
import { grantName, isBuiltin, whatItWants } from './wanted.ts';

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
    if (!lasting.rule || !context.rules) return {};
    const { agent_digest: asked } = lasting.rule;
    if (asked !== (await reviewOf(context))?.files.digest) return { notice: changedMeanwhile };
    await addRule(context.rules.file, lasting.rule, now);
    return {};
  } catch (error) {
    const notice = `Your answer holds for this call only: ${error instanceof Error ? error.message : String(error)}`;
    return { notice };
  }
}

const changedMeanwhile =
  'Your answer holds for this call only: the files of the agent changed while the question was open.';

/** Call it when a call is let through, before it runs. */
export function noteGranted(call: ToolCall, subject: string, context: PolicyContext): void {
  if (context.memory)
    context.memory.sensitive = secretPlaceIn(call, subject, context) ?? context.memory.sensitive;
}

/** What was read in earlier runs of a conversation, and what the person hands over, is as well known to this run as what it reads itself. */
export function noteEarlier(
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
    const { path, command } = block.input;
    return secretPlaceIn(block, String(command ?? path ?? ''), context) ?? [];
  });
  context.memory.sensitive = [...handedOver.filter(isSensitive), ...read][0] ?? context.memory.sensitive;
}

const readers = ['read_file', 'search_files', 'edit_file'];

/** The place of secrets that a call reads, as far as the call says it. */
function secretPlaceIn(
  { name, input }: Pick<ToolCall, 'name' | 'input'>,
  subject: string,
  { commandDir, workingDir, packDir, home }: PolicyContext,
): string | undefined {
  if (name === 'run_command') return sensitiveWords(subject, commandDir, home)[0];
  if (readers.includes(name)) return [subject, String(input['path'] ?? '')].find(isSensitive);
  // The servers of an earlier run need not be there any more for their results to be.
  return isBuiltin(name) ? undefined : placesToldIn(input).find(leadsToSecrets(workingDir, packDir));
}

/** A test for paths, also those that are links, relative to one of these folders. */
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

/** The variables that the agent's accepted card names and the user has set: its commands see them. */
export async function grantedVariables(context: PolicyContext): Promise<Record<string, string>> {
  const review = await reviewOf(context);
  const names = review?.state === 'reviewed' ? (review.review?.variables ?? []) : [];
  const { env = {} } = context;
  return Object.fromEntries(
    names.filter(name => Object.hasOwn(env, name) && !isTelosKey(name)).map(name => [name, env[name]!]),
  );
}
