/** Ids of tool calls, which servers repeat and providers refuse. */
import assert from 'node:assert/strict';
import type { StreamEvent } from '../../../src/engine/core/ports.ts';
import { callExtrasBlock, extrasOf, ownCallIds } from '../../../src/engine/providers/provider.ts';
import type { ContentBlock, Message } from '../../../src/protocol/run.ts';

const call = (id: string, name = 'read_file'): StreamEvent => ({
  type: 'tool_call',
  call: { id, name, input: {} },
});
const attached = (id: string): StreamEvent => ({
  type: 'thinking',
  block: callExtrasBlock(id, { extra_content: id }, 'gemini'),
});

const read = (given: readonly StreamEvent[], messages: readonly Message[] = []): StreamEvent[] =>
  given.map(ownCallIds(messages));
const idsOf = (events: readonly StreamEvent[]): string[] =>
  events.flatMap(event => (event.type === 'tool_call' ? [event.call.id] : []));

describe('ownCallIds', () => {
  it('changes only what is there twice, or not at all', async () => {
    const [first, second, third, fourth, ...more] = idsOf(
      read([call('same'), call('same'), call(''), call('other')]),
    );
    assert.deepEqual([first, fourth, more], ['same', 'other', []]);
    for (const id of [second, third]) assert.match(id ?? '', /^call_[0-9a-f]{32}$/);
    assert.notEqual(second, third);
  });

  it('knows the calls of earlier turns', async () => {
    const block: ContentBlock = { type: 'tool_use', id: 'call_0', name: 'read_file', input: {} };
    const [id] = idsOf(read([call('call_0')], [{ role: 'assistant', content: [block] }]));
    assert.notEqual(id, 'call_0');
  });

  it('keeps with a call what its server attached to it', async () => {
    const events = read([attached('same'), call('same'), attached('same'), call('same')]);
    const blocks = events.flatMap(event => (event.type === 'thinking' ? [event.block] : []));
    assert.deepEqual([...extrasOf(blocks, 'gemini').keys()], idsOf(events));
    assert.equal(new Set(idsOf(events)).size, 2);
  });
});
