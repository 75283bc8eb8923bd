import assert from 'node:assert/strict';
import { Conversation } from '../../../src/extension/chat/conversation.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';

const text = (delta: string): RunEvent => ({ type: 'text', text: delta });
const step = (detail: string): RunEvent => ({ type: 'step', skill: 's', detail });

describe('Conversation', () => {
  it('joins the text of one batch and numbers the batches without a hole', () => {
    const conversation = new Conversation();
    for (const event of [step('a'), text('He'), text('llo'), step('b')]) conversation.append(event);
    assert.deepEqual(conversation.nextBatch(), { from: 0, events: [step('a'), text('Hello'), step('b')] });
    assert.equal(conversation.nextBatch(), undefined);
    conversation.append(text('!'));
    assert.deepEqual(conversation.nextBatch(), { from: 3, events: [text('!')] });
  });

  it('never changes an event that has its number', () => {
    const conversation = new Conversation();
    conversation.append(text('a'));
    const first = conversation.nextBatch();
    conversation.append(text('b'));
    assert.deepEqual(conversation.nextBatch(), { from: 1, events: [text('b')] });
    assert.deepEqual(first, { from: 0, events: [text('a')] });
  });

  it('gives a view what it lacks, what still waits too', () => {
    const conversation = new Conversation();
    for (const detail of ['a', 'b', 'c']) {
      conversation.append(step(detail));
      conversation.nextBatch();
    }
    conversation.append(step('d'));
    assert.deepEqual(conversation.since(2), { from: 2, events: [step('c'), step('d')] });
    assert.deepEqual(conversation.since(4), { from: 4, events: [] });
  });

  it('gives a new view everything with its text joined, and goes on from there', () => {
    const conversation = new Conversation();
    for (const delta of ['a', 'b', 'c']) {
      conversation.append(text(delta));
      conversation.nextBatch();
    }
    assert.deepEqual(conversation.since(0), { from: 0, events: [text('abc')] });
    conversation.append(text('d'));
    assert.deepEqual(conversation.nextBatch(), { from: 1, events: [text('d')] });
  });

  const own = (event: RunEvent): RunEvent => event;
  const ofSkill = (event: RunEvent): RunEvent => ({
    type: 'skill_event',
    callId: 'a',
    event: { type: 'skill_event', callId: 'b', event },
  });
  for (const [whose, within] of [
    ['a running command', own],
    ['one of a skill that a skill of the run uses', ofSkill],
  ] as const)
    it(`keeps little of what ${whose} prints, however much that is, and nothing when it has ended`, () =>
      keepsLittle(within));

  function keepsLittle(within: (event: RunEvent) => RunEvent): void {
    const conversation = new Conversation();
    const output = (text: string): RunEvent => within({ type: 'tool_output', callId: 't', text });
    for (let at = 0; at < 2_000; at++) {
      conversation.append(output(`${'x'.repeat(9_000)}\n`));
      conversation.append(output(`line ${at}\n`));
      conversation.nextBatch();
    }
    const all = conversation.since(1);
    assert.equal(all.events.length, 1_999);
    assert.ok(JSON.stringify(all.events).length < 600_000);
    assert.deepEqual(conversation.since(1_999), { from: 1_999, events: [output('line 1999\n')] });
    const fresh = conversation.since(0);
    assert.match(JSON.stringify(fresh.events), /line 1998\\nline 1999|line 1999/);
    const result = { content: 'x', isError: false };
    conversation.append(within({ type: 'tool_end', callId: 't', name: 'run_command', result }));
    assert.doesNotMatch(JSON.stringify(conversation.since(0).events), /line/);
  }

  it('starts from the beginning for a number that was never given', () => {
    const conversation = new Conversation();
    conversation.append(step('a'));
    assert.deepEqual(conversation.since(99), { from: 0, events: [step('a')] });
  });
});
