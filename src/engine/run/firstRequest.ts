/** Begins the transcript of a run: with what was said before, the skill's text and the request. */
import type { Attachment } from '@telos/protocol/attachment';
import type { Message } from '@telos/protocol/run';
import type { Config } from '../config.ts';
import type { Provider } from '../core/ports.ts';
import type { PolicyContext } from '../policy/decision.ts';
import type { Match } from '../routing/routeName.ts';
import { fillBody, firstMessage, withAttachments, withoutReasoning } from './prompt.ts';
import { conversationOf, type Run, wordsOf } from './request.ts';
import { placesOf } from './runFolders.ts';

/** Returns the conversation so far. A recording answers from its beginning, whatever was said before. */
export const earlierFor = (
  { request: { conversation } }: Run,
  { recording }: Provider,
): readonly Message[] => (recording || !conversation ? [] : withoutReasoning(conversation.messages));

/** Adds the skill and the request to the transcript. The model has already read a skill that continues. */
export async function addSkillRequest(
  { agent, skill, reason }: Match,
  run: Run,
  earlier: readonly Message[],
  { recording }: Provider,
  projectDir: string,
  config: Pick<Config, 'dataDir'>,
): Promise<void> {
  const words = wordsOf(run.request);
  const isUnread = run.request.conversation?.skillIsUnread === true;
  const isRead = reason.rule === 'continued' && earlier.length > 0 && !isUnread;
  const invokedAs = reason.rule === 'explicit' ? reason.matched : undefined;
  const hasCommands = !isRead && !recording && !run.request.change && /!`|```!/.test(skill.body);
  const marked = hasCommands ? (await import('./textCommands.ts')).markCommands(skill.body) : undefined;
  if (marked) run.textMark = marked.mark;
  const filled = fillBody(
    marked?.body ?? skill.body,
    { ...placesOf(agent, skill, config), projectDir, session: conversationOf(run) },
    words,
    invokedAs,
    skill.argumentNames,
  );
  addRequest(run, earlier, isRead ? '' : filled.body, isRead ? words : filled.words);
  // A skill that continues is in the conversation already.
  if (isRead && run.firstParts) run.firstParts.skill = filled.body.length;
}

/** Returns true if the model has the results of its latest calls, and was not asked since. */
function endsWithResults(messages: readonly Message[]): boolean {
  const content = messages.findLast(({ context }) => !context)?.content;
  return typeof content === 'object' && content.some(({ type }) => type === 'tool_result');
}

/** Adds the conversation so far and the request to the transcript. */
export function addRequest(run: Run, earlier: readonly Message[], body: string, words: string): void {
  run.earlier = earlier.length;
  if (run.request.change || (run.request.goesOn && endsWithResults(earlier)))
    return void run.messages.push(...earlier);
  const content = withAttachments(firstMessage(body, words, new Date()), run.request.attachments ?? []);
  const handed = run.request.attachments ?? [];
  const files = handed.reduce((sum, each) => sum + (each.kind === 'text' ? each.text.length : 0), 0);
  run.firstParts = { skill: body.length, files };
  run.messages.push(...earlier, { role: 'user', content });
}

const attachedNames = (attachments: readonly Attachment[]): string[] =>
  attachments.map(each => (each.kind === 'text' && each.path) || each.name);

/** Records what earlier runs of the conversation read, and what the person passes to this one. */
export async function rememberReads(
  earlier: readonly Message[],
  run: Run,
  policy: PolicyContext,
): Promise<void> {
  const handedOver = attachedNames(run.request.attachments ?? []);
  // Most runs have neither, and need no reader of commands before their first request.
  if (earlier.length === 0 && handedOver.length === 0) return;
  const { rememberEarlierReads } = await import('../policy/secretReads.ts');
  rememberEarlierReads(earlier, handedOver, policy);
}
