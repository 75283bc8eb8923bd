import assert from 'node:assert/strict';
import { messagesFrom, withoutCutImages } from '../../../src/engine/records/transcript.ts';
import type { Message, RunEvent, Usage } from '../../../src/protocol/run.ts';

const usage: Usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 };
const start: RunEvent = { type: 'run_start', runId: 'r', text: 'go', startedAt: '' };
const says = (text: string): RunEvent => ({ type: 'text', text });
const heard: RunEvent = { type: 'usage', round: 1, usage };
const calls = (id: string): RunEvent => ({
  type: 'tool_start',
  call: { id, name: 'read_file', input: { path: id } },
});
const gets = (callId: string): RunEvent => ({
  type: 'tool_end',
  callId,
  name: 'read_file',
  result: { content: `of ${callId}`, isError: false },
});

const use = (id: string) => ({ type: 'tool_use' as const, id, name: 'read_file', input: { path: id } });
const result = (id: string, content: string, is_error = false) => ({
  type: 'tool_result' as const,
  tool_use_id: id,
  content,
  is_error,
});
const lost = (id: string) =>
  result(id, 'The run was interrupted during this call; it is not known whether it was completed.', true);

describe('messagesFrom', () => {
  it('tells the turns of a run apart, and gives every call its result', () => {
    const events = [
      start,
      says('I '),
      says('look.'),
      heard,
      calls('a'),
      calls('b'),
      gets('b'),
      gets('a'),
      heard,
    ];
    const then = [calls('c'), gets('c'), says('Now'), heard, calls('d')];
    assert.deepEqual(messagesFrom([], [...events, ...then]), [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'I ' }, { type: 'text', text: 'look.' }, use('a'), use('b')],
      },
      { role: 'user', content: [result('a', 'of a'), result('b', 'of b')] },
      { role: 'assistant', content: [use('c')] },
      { role: 'user', content: [result('c', 'of c')] },
      { role: 'assistant', content: [{ type: 'text', text: 'Now' }, use('d')] },
      { role: 'user', content: [lost('d')] },
    ]);
  });

  it('goes on from what was said before, and keeps half an answer', () => {
    const earlier: Message[] = [{ role: 'user', content: 'before' }];
    assert.deepEqual(messagesFrom(earlier, [start, says('Half')]), [
      { role: 'user', content: 'before' },
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [{ type: 'text', text: 'Half' }] },
    ]);
  });

  it('adds to the messages that are known what came behind them alone', () => {
    const asked: Message = { role: 'user', content: 'BODY go' };
    const looked: Message = {
      role: 'assistant',
      content: [{ type: 'text', text: 'I look.' }, use('a'), use('b')],
    };
    const read: Message = { role: 'user', content: [result('a', 'of a'), result('b', 'of b')] };
    const events = [start, says('I look.'), heard, calls('a'), calls('b'), gets('b')];
    assert.deepEqual(messagesFrom([], events, [asked, looked]).slice(2), [
      { role: 'user', content: [lost('a'), result('b', 'of b')] },
    ]);
    const more = [...events, gets('a'), says('It'), says(' is')];
    assert.deepEqual(messagesFrom([], more, [asked, looked, read]).slice(3), [
      { role: 'assistant', content: 'It is' },
    ]);
    const answered: Message = { role: 'assistant', content: [{ type: 'text', text: 'It is' }] };
    assert.deepEqual(messagesFrom([], more, [asked, looked, read, answered]).slice(3), [answered]);
  });
});

describe('withoutCutImages', () => {
  it('says of an image that was not kept whole that it was there', () => {
    const image = (data: string) => ({
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png', data },
    });
    const cut = image('AAAA\n[... 9 characters left out of the log ...]\nAAAA');
    const messages: Message[] = [
      { role: 'user', content: 'as it is' },
      { role: 'user', content: [{ type: 'text', text: 'look' }, image('iVBORw0KGgo='), cut] },
      { role: 'user', content: [{ ...result('a', ''), content: [cut] }] },
    ];
    const gone = { type: 'text', text: '[An image was here; it was too large to be stored.]' };
    assert.deepEqual(withoutCutImages(messages), [
      messages[0],
      { role: 'user', content: [{ type: 'text', text: 'look' }, image('iVBORw0KGgo='), gone] },
      { role: 'user', content: [{ ...result('a', ''), content: [gone] }] },
    ]);
  });
});
