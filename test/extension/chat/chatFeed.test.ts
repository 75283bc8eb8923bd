import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { RunRequest } from '../../../src/engine/run/request.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { Desk, end, start, typesOf } from '../chatDesk.ts';

describe('ChatFeed', () => {
  it('keeps what happens while no view looks, and gives it to the one that asks', async () => {
    const desk = new Desk();
    desk.chat.submit({ text: 'go' });
    await desk.when(() => desk.asked.length > 0);
    assert.deepEqual(desk.seen, []);
    await desk.chat.show(null, 0);
    assert.deepEqual(typesOf(desk.seen), ['run_start', 'approval_request']);
    desk.chat.hide();
    desk.chat.answer('token of c1', { allow: true, scope: 'once' });
    await desk.when(() => !desk.chat.isRunning);
    const shown = desk.posted[0];
    assert.ok(shown?.type === 'conversation' && desk.posted.length === 1);
    await desk.chat.show(shown.id, shown.events.length);
    assert.deepEqual(typesOf(desk.seen).slice(-3), ['approval_response', 'text', 'run_end']);
  });

  it('sends text that nobody could read as fast in larger parts', async () => {
    const postedAt: number[] = [];
    async function* fast(request: RunRequest): AsyncGenerator<RunEvent> {
      yield start(request);
      for (let part = 0; part < 100; part++) {
        yield { type: 'text', text: 'x'.repeat(1_000) };
        await wait(2);
      }
      yield end('completed');
    }
    const desk = new Desk(fast);
    await desk.chat.show(null, 0);
    desk.posted.push = (...messages) => {
      postedAt.push(performance.now());
      return Array.prototype.push.apply(desk.posted, messages);
    };
    desk.chat.submit({ text: 'go' });
    await desk.until('run_end');
    await desk.chat.end();
    assert.equal(
      desk.seen.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0),
      100_000,
    );
    // A timer may be late, never early; the first gap is a frame, the last part does not wait.
    const gaps = postedAt.slice(1, -1).map((time, index) => time - (postedAt[index] ?? 0));
    assert.ok(gaps.length > 0 && gaps.slice(1).every(gap => gap > 40), gaps.join());
  });
});
