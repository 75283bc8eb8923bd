import assert from 'node:assert/strict';
import { paced } from '../../../src/engine/records/transcript.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';

const events: readonly RunEvent[] = [
  { type: 'run_start', runId: 'r', text: 'go', startedAt: '2026-01-02T03:04:05.000Z' },
  { type: 'text', text: 'A text of some length, in one piece.' },
  { type: 'tool_start', call: { id: '1', name: 'read_file', input: {} } },
  { type: 'tool_end', callId: '1', name: 'read_file', result: { content: '', isError: false } },
  { type: 'run_end', outcome: 'completed', rounds: 1, toolCalls: 1, durationMs: 1, messages: [] },
];

const textOf = (seen: readonly RunEvent[]): string =>
  seen.map(event => (event.type === 'text' ? event.text : '')).join('');

describe('a replay', () => {
  it('shows every event, text piece by piece', async () => {
    const seen: RunEvent[] = [];
    const controller = new AbortController();
    for await (const event of paced(events, controller.signal)) {
      seen.push(event);
      // The pauses behind it are not what this is about.
      if (event.type === 'tool_start') controller.abort();
    }
    const [start, ...rest] = seen;
    assert.equal(start?.type, 'run_start');
    assert.ok(rest.filter(({ type }) => type === 'text').length > 3);
    assert.equal(textOf(seen), textOf(events));
    assert.equal(seen.at(-1)?.type, 'run_end');
  });

  it('shows the rest at once when it is stopped, and loses nothing', async () => {
    const controller = new AbortController();
    const seen: RunEvent[] = [];
    for await (const event of paced(events, controller.signal)) {
      seen.push(event);
      if (event.type === 'text') controller.abort();
    }
    assert.equal(textOf(seen), textOf(events));
    assert.equal(seen.filter(({ type }) => type === 'text').length, 2);
    assert.equal(seen.at(-1)?.type, 'run_end');
  });
});
