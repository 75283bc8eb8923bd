/** Remembers what secrets a run has read: from then on, what can leave the machine is asked about. */
import type { Message, ToolCall } from '@telos/protocol/run';
import { isSensitive } from '../files/sensitiveNames.ts';
import { skillTools } from '../tools/builtin.ts';
import type { PolicyContext } from './decision.ts';
import { placesToldIn } from './mcpReach.ts';
import { LinkFollower, writtenSegments } from './reach.ts';
import { resolveCall } from './resolveCall.ts';
import { sensitiveWords } from './secretWords.ts';
import { isBuiltin } from './subject.ts';

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
