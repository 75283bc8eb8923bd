/** Rebuilds the messages of a run from its events, if the run never reached its end, and replays its events at a readable speed. */
import type {
  ContentBlock,
  Message,
  RunEvent,
  TextBlock,
  ToolResult,
  ToolResultBlock,
} from '@telos/protocol/run';

/** Result of a call whose real result is unknown. */
const interruptedCall = 'The run was interrupted during this call; it is not known whether it was completed.';

/**
 * Returns the messages of `earlier` and of the run, in an order that every provider accepts: each call has its result. `own` are
 * the known messages of the run. If there are none, the request's attachments and the text of its skill are missing.
 */
export function messagesFrom(
  earlier: readonly Message[],
  events: readonly RunEvent[],
  own: readonly Message[] = [],
): Message[] {
  if (own.length > 0) return [...earlier, ...own, ...ending(own, events)];
  const turns = new Turns(earlier);
  for (const event of events) {
    switch (event.type) {
      case 'run_start':
        turns.say(event.text);
        break;
      case 'text':
        turns.add({ type: 'text', text: event.text });
        break;
      case 'tool_start': {
        const { id, name, input } = event.call;
        turns.add({ type: 'tool_use', id, name, input });
        break;
      }
      case 'tool_end':
        turns.answer(event.callId, event.result);
        break;
      case 'usage':
        turns.next();
        break;
      default:
    }
  }
  return turns.whole();
}

/** Replaces images of which the file holds only the ends. Every model would reject them, and the whole request with them. */
export function withoutCutImages(messages: readonly Message[]): Message[] {
  return messages.map(message => {
    const { role, content } = message;
    if (typeof content === 'string') return message;
    return {
      role,
      content: content.map(block => (block.type === 'tool_result' ? wholeResult(block) : wholeImage(block))),
    };
  });
}

function wholeResult(block: ToolResultBlock): ToolResultBlock {
  const { content } = block;
  return typeof content === 'string' ? block : { ...block, content: content.map(wholeImage) };
}

function wholeImage<Block extends ContentBlock>(block: Block): Block | TextBlock {
  const isMedia = block.type === 'image' || block.type === 'document';
  if (!isMedia || isBase64(block.source.data)) return block;
  const what = block.type === 'image' ? 'An image' : 'A PDF';
  return { type: 'text', text: `[${what} was here; it was too large to be stored.]` };
}

/** Returns the run's texts and results after the last of its known messages. */
function ending(own: readonly Message[], events: readonly RunEvent[]): Message[] {
  const last = own.at(-1);
  const blocks = typeof last?.content === 'string' ? [] : (last?.content ?? []);
  const calls = last?.role === 'assistant' ? blocks.filter(block => block.type === 'tool_use') : [];
  if (calls.length > 0) {
    const ends = new Map(
      events.flatMap(each => (each.type === 'tool_end' ? [[each.callId, each.result] as const] : [])),
    );
    const content = calls.map(({ id }) => {
      const result = ends.get(id);
      return result ? resultOf(id, result) : unanswered(id);
    });
    return [{ role: 'user', content }];
  }
  if (last?.role === 'assistant') return [];
  const start = events.findLastIndex(({ type }) => turnStarts.includes(type));
  const text = events
    .slice(start + 1)
    .reduce((sum, each) => (each.type === 'text' ? sum + each.text : sum), '');
  return text.trim() ? [{ role: 'assistant', content: text }] : [];
}

/** Text after these events belongs to a separate turn of the model. */
const turnStarts: readonly RunEvent['type'][] = ['run_start', 'routed', 'tool_start', 'tool_end'];

/** Collects one turn of the model at a time: its texts, its calls and their results. */
class Turns {
  readonly #messages: Message[];
  #said: ContentBlock[] = [];
  #results = new Map<string, ToolResultBlock>();

  constructor(earlier: readonly Message[]) {
    this.#messages = [...earlier];
  }

  say(text: string): void {
    this.#close();
    if (text.trim()) this.#messages.push({ role: 'user', content: text });
  }

  add(block: Extract<ContentBlock, { type: 'text' | 'tool_use' }>): void {
    // Text after a result is another answer. A call may be one of several of the same answer.
    if (block.type === 'text' && this.#results.size > 0) this.#close();
    this.#said.push(block);
  }

  answer(callId: string, result: ToolResult): void {
    if (!this.#calls().includes(callId)) return;
    this.#results.set(callId, resultOf(callId, result));
  }

  /** The model has completed another answer. */
  next(): void {
    if (this.#results.size > 0) this.#close();
  }

  whole(): Message[] {
    this.#close();
    return this.#messages;
  }

  #calls(): string[] {
    return this.#said.flatMap(block => (block.type === 'tool_use' ? [block.id] : []));
  }

  #close(): void {
    const said = this.#said.filter(block => block.type !== 'text' || block.text.trim() !== '');
    if (said.length > 0) this.#messages.push({ role: 'assistant', content: said });
    const results = this.#calls().map(id => this.#results.get(id) ?? unanswered(id));
    if (results.length > 0) this.#messages.push({ role: 'user', content: results });
    this.#said = [];
    this.#results = new Map();
  }
}

function resultOf(callId: string, { content, images = [], isError }: ToolResult): ToolResultBlock {
  return {
    type: 'tool_result',
    tool_use_id: callId,
    content: images.length > 0 ? [{ type: 'text', text: content }, ...images] : content,
    is_error: isError,
  };
}

const unanswered = (id: string): ToolResultBlock => ({
  type: 'tool_result',
  tool_use_id: id,
  content: interruptedCall,
  is_error: true,
});

/** Returns one event for both if the second continues the first: two texts, or two pieces of one stretch of reasoning. */
export function joinedDeltas(first: RunEvent | undefined, second: RunEvent): RunEvent | undefined {
  if (first?.type === 'skill_event' && second.type === 'skill_event' && first.callId === second.callId) {
    const event = joinedDeltas(first.event, second.event);
    return event && { ...second, event };
  }
  if (first?.type === 'text' && second.type === 'text') return { ...second, text: first.text + second.text };
  const goesOn = first?.type === 'reasoning' && first.durationMs === undefined;
  return goesOn && second.type === 'reasoning' ? { ...second, text: first.text + second.text } : undefined;
}

/** UTF-16 units of text per step, and the pause after each step. About 600 words a minute. */
const textStep = 6;
const textPauseMs = 12;
/** Long enough to notice that something has happened, however long it took originally. */
const eventPauseMs = 350;

/** Yields the events with pauses between them. Once the signal aborts, the rest is yielded at once. */
export async function* paced(events: readonly RunEvent[], signal: AbortSignal): AsyncGenerator<RunEvent> {
  for (const event of events) {
    if (event.type === 'text') {
      for (let at = 0; at < event.text.length; at += textStep) {
        if (signal.aborted) {
          yield { type: 'text', text: event.text.slice(at) };
          break;
        }
        yield { type: 'text', text: event.text.slice(at, at + textStep) };
        await pause(textPauseMs, signal);
      }
      continue;
    }
    yield event;
    if (event.type !== 'usage' && event.type !== 'run_end') await pause(eventPauseMs, signal);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}

/**
 * Returns whether the text is Base64. It looks for a wrong letter: a pattern for the whole text would note each letter to go back to,
 * and has no room for that in millions.
 */
export function isBase64(text: string): boolean {
  const letters = text.replace(/={1,2}$/, '');
  return letters !== '' && !/[^\w+/]/.test(letters);
}
