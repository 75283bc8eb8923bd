/** Adds words to the transcript of a run. */
import type { ContentBlock, Message } from '@telos/protocol/run';

/** Begins a text that no person said: it asks a model for an answer. */
export const reminderMark = '[Telos, not the person, says: ';

/** Adds a text to the last message if that is the user's, behind the results of tools: some models take no two of them in a row. */
export function addText(messages: Message[], text: string): void {
  const added: ContentBlock = { type: 'text', text };
  const at = messages.findLastIndex(({ context }) => !context);
  const last = messages[at];
  if (last?.role !== 'user') messages.push({ role: 'user', content: [added] });
  else messages[at] = { role: 'user', content: [...blocksOf(last), added] };
}

export const blocksOf = ({ content }: Message): readonly ContentBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Returns the words with which a conversation ends; empty if the model has not the last of them. */
export function lastAnswer(messages: readonly Message[]): string {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return '';
  return blocksOf(last)
    .flatMap(block => (block.type === 'text' ? [block.text] : []))
    .join('')
    .trim();
}
