/** Puts the events of a model turn together, and mends an answer that came cut, held back, or with its calls as text. */
import type { ContentBlock, ToolCall } from '@telos/protocol/run';
import type { ReadWritten, StreamEvent } from './ports.ts';

export interface Reply {
  blocks: ContentBlock[];
  calls: ToolCall[];
  stopReason: string;
  /** True if the model has thought, whether or not that is kept. */
  hasThought: boolean;
}

export const newReply = (): Reply => ({ blocks: [], calls: [], stopReason: 'end_turn', hasThought: false });

/** Adds one event of a turn to its reply. */
export function take(reply: Reply, event: StreamEvent): void {
  switch (event.type) {
    case 'text':
      appendText(reply.blocks, event.text);
      break;
    case 'reasoning':
      reply.hasThought = true;
      break;
    case 'thinking':
      reply.blocks.push(event.block);
      reply.hasThought = true;
      break;
    case 'tool_call': {
      const { id, name, input } = event.call;
      reply.calls.push(event.call);
      reply.blocks.push({ type: 'tool_use', id, name, input });
      break;
    }
    case 'done':
      reply.stopReason = event.stopReason;
      break;
  }
}

function appendText(blocks: ContentBlock[], text: string): void {
  const last = blocks.at(-1);
  if (last?.type === 'text') last.text += text;
  else blocks.push({ type: 'text', text });
}

/** Marks the calls that were cut, for the model. Returns false if all arrived whole. */
export function loseCut(calls: ToolCall[], most: number): boolean {
  const last = calls.length - 1;
  const problem = `Your answer was cut at ${most} tokens: the call was not run. Write in parts.`;
  let isLost = false;
  for (const [index, call] of calls.entries()) {
    // Of a call that was cut at its very beginning, there are no arguments at all.
    if (!call.problem && !(index === last && Object.keys(call.input).length === 0)) continue;
    calls[index] = { ...call, problem };
    isLost = true;
  }
  return isLost;
}

/** Leaves out the calls in whose middle an answer was held back. */
export function dropBroken(reply: Reply): void {
  const broken = new Set(reply.calls.flatMap(({ id, problem }) => (problem ? [id] : [])));
  reply.calls = reply.calls.filter(({ id }) => !broken.has(id));
  reply.blocks = reply.blocks.filter(block => block.type !== 'tool_use' || !broken.has(block.id));
}

/** Few answers have these words. */
const hintOfCall = /tool_c|TOOL_CALL|tool▁call|<function=|"name"|invoke|python_tag|<\|channel\|>/;

/** Makes calls of those that the model has written as text. Returns true if there are some that cannot be read. */
export async function takeWritten(reply: Reply, readWritten: ReadWritten): Promise<boolean> {
  const [only, ...others] = reply.blocks.filter(block => block.type === 'text');
  if (reply.calls.length > 0 || !only || others.length > 0 || reply.stopReason === 'refusal') return false;
  if (!hintOfCall.test(only.text)) return false;
  const written = await readWritten(only.text);
  if (!written || written === 'unreadable') return written !== undefined;
  reply.calls.push(...written.calls);
  reply.blocks = [
    ...reply.blocks.filter(block => block !== only),
    ...(written.before === '' ? [] : [{ type: 'text' as const, text: written.before }]),
    ...written.calls.map(({ id, name, input }) => ({ type: 'tool_use' as const, id, name, input })),
  ];
  return false;
}
