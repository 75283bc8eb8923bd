import assert from 'node:assert/strict';
import type { RunEvent } from '../../src/protocol/run.ts';
import { type Inbox, receiveConversation, receiveEvents } from '../../webview/state.ts';

const texts = (...values: string[]): RunEvent[] => values.map(text => ({ type: 'text', text }));
const at = (have: number): Inbox => ({ id: 'c1', have });

describe('inbox', () => {
  it('takes the next batch and counts it', () => {
    const receipt = receiveEvents(at(3), { id: 'c1', from: 3, events: texts('d', 'e') });
    assert.deepEqual(receipt, { inbox: at(5), events: texts('d', 'e'), reset: false, gap: false });
  });

  it('drops a batch that came before, and the part of one that overlaps', () => {
    assert.deepEqual(receiveEvents(at(3), { id: 'c1', from: 1, events: texts('b', 'c') }).events, []);
    const overlapping = receiveEvents(at(3), { id: 'c1', from: 2, events: texts('c', 'd') });
    assert.deepEqual(overlapping.events, texts('d'));
    assert.equal(overlapping.inbox.have, 4);
  });

  it('notices a gap and applies nothing behind it', () => {
    const receipt = receiveEvents(at(3), { id: 'c1', from: 4, events: texts('e') });
    assert.deepEqual(receipt, { inbox: at(3), events: [], reset: false, gap: true });
  });

  it('ignores events of a conversation that is not shown', () => {
    assert.deepEqual(receiveEvents(at(3), { id: 'old', from: 3, events: texts('x') }).events, []);
    assert.deepEqual(
      receiveEvents({ id: null, have: 0 }, { id: 'c1', from: 0, events: texts('x') }).events,
      [],
    );
  });

  it('starts over with another conversation, or with the same one sent from its start', () => {
    for (const id of ['c1', 'c2']) {
      const receipt = receiveConversation(at(3), { id, from: 0, events: texts('a') });
      assert.deepEqual(receipt, { inbox: { id, have: 1 }, events: texts('a'), reset: true, gap: false });
    }
  });

  it('continues after a gap with what the host sends from there on', () => {
    const receipt = receiveConversation(at(3), { id: 'c1', from: 3, events: texts('d', 'e') });
    assert.deepEqual(receipt, { inbox: at(5), events: texts('d', 'e'), reset: false, gap: false });
  });

  it('asks for the start of a conversation of which it got only a later part', () => {
    const receipt = receiveConversation(at(3), { id: 'c2', from: 7, events: texts('x') });
    assert.deepEqual(receipt, { inbox: { id: 'c2', have: 0 }, events: [], reset: true, gap: true });
  });
});
