/** Joins neighbouring deltas of a turn, since the places where a network cuts a text mean nothing. */
import type { StreamEvent } from '../../src/engine/core/ports.ts';

export function joined(events: readonly StreamEvent[]): StreamEvent[] {
  const result: StreamEvent[] = [];
  for (const event of events) {
    const last = result.at(-1);
    if (event.type === 'text' && last?.type === 'text')
      result[result.length - 1] = { type: 'text', text: last.text + event.text };
    else if (event.type === 'reasoning' && last?.type === 'reasoning')
      result[result.length - 1] = { type: 'reasoning', text: last.text + event.text };
    else result.push(event);
  }
  return result;
}
