import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { lineOf } from '../../../src/engine/records/runFile.ts';
import { followedRun, RunHistory } from '../../../src/engine/records/runHistory.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { linesOf, type SampleRun, writeRun } from './storedRuns.ts';

const says = (text: string): RunEvent => ({ type: 'text', text });
const saidBefore = [{ role: 'user', content: 'said before' }] as const;

describe('following a run of another process', () => {
  let folder: TempFolder;
  let controller: AbortController;
  beforeEach(() => {
    folder = tempFolder();
    controller = new AbortController();
  });
  afterEach(() => {
    controller.abort();
    folder.remove();
  });

  /** A run that goes on: its file, and its events from here on, of which one is taken at a time. */
  async function follow(more: Partial<SampleRun> = {}) {
    const run: SampleRun = { runId: 'r1', answer: 'Half', ended: false, pid: process.pid, ...more };
    const file = writeRun(folder.path, { startedAt: new Date().toISOString(), ...run });
    const kept = await new RunHistory(folder.path).read('r1');
    const options = { said: saidBefore, isWatched: () => true, pause: 5 };
    const events = followedRun(kept, options, controller.signal);
    return {
      file,
      next: async (): Promise<RunEvent | undefined> => (await events.next()).value ?? undefined,
    };
  }
  const endLines = (more: Partial<SampleRun> = {}) =>
    linesOf({ runId: 'r1', ...more })
      .slice(-4)
      .map(lineOf)
      .join('');

  it('shows each whole line once, as it comes, and its end with all that was said', async () => {
    const { file, next } = await follow();
    const line = lineOf(says('ü and more'));
    const half = Buffer.from(line).subarray(0, 20);
    const coming = next();
    appendFileSync(file, half);
    appendFileSync(file, Buffer.from(line).subarray(20));
    assert.deepEqual(await coming, says('ü and more'));
    appendFileSync(file, `not a line\n${endLines({ earlier: 1 })}`);
    assert.equal((await next())?.type, 'usage');
    const end = await next();
    assert.ok(end?.type === 'run_end' && end.outcome === 'completed');
    assert.deepEqual(end.messages.map(({ content }) => content).slice(0, 2), ['said before', 'plan my day']);
    assert.equal(await next(), undefined);
  });

  it('gives an end of a run that went on from others what they had said', async () => {
    const { file, next } = await follow({
      events: [{ type: 'messages', earlier: 1, messages: [{ role: 'user', content: 'go' }] } as never],
    });
    appendFileSync(
      file,
      lineOf({ type: 'messages', earlier: 1, messages: [{ role: 'assistant', content: 'Yes' }] }),
    );
    appendFileSync(file, lineOf({ ...linesOf({ runId: 'r1' }).at(-1), outcome: 'cancelled' } as RunEvent));
    const end = await next();
    assert.ok(end?.type === 'run_end');
    assert.deepEqual(
      end.messages.map(({ content }) => content),
      ['said before', 'go', 'Yes'],
    );
  });

  it('calls a run interrupted whose process is gone, with all that it has written', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    try {
      const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 };
      const events: RunEvent[] = [
        { type: 'usage', round: 3, usage },
        { type: 'tool_end', callId: '1', name: 't', result: { content: '', isError: false } },
      ];
      const startedAt = new Date(Date.now() - 120_000).toISOString();
      const { file, next } = await follow({ pid: child.pid ?? 0, events, startedAt });
      appendFileSync(file, lineOf(says(' and half')));
      assert.deepEqual(await next(), says(' and half'));
      const coming = next();
      child.kill();
      const end = await coming;
      assert.ok(end?.type === 'run_end' && end.interrupted === true);
      const { outcome, rounds, toolCalls, durationMs, messages } = end;
      assert.deepEqual([outcome, rounds, toolCalls, messages], ['cancelled', 3, 1, []]);
      assert.ok(durationMs > 60_000 && durationMs < 3_600_000, `${durationMs} ms since its start`);
      assert.equal(await next(), undefined);
    } finally {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    }
  });

  it('ends when nobody wants it any more, and when the file is gone', async () => {
    const first = await follow();
    const coming = first.next();
    controller.abort();
    assert.equal(await coming, undefined);
    controller = new AbortController();
    const second = await follow();
    rmSync(second.file);
    assert.equal(await second.next(), undefined);
  });

  it('gives a run that broke off all that was said, and what it said since', async () => {
    const own = { type: 'messages', earlier: 1, messages: [{ role: 'user', content: 'go' }] } as never;
    const { next } = await follow({ pid: 2 ** 30, events: [own] });
    const end = await next();
    assert.ok(end?.type === 'run_end' && end.interrupted === true);
    assert.deepEqual(
      end.messages.map(({ content }) => content),
      ['said before', 'go', 'Half'],
    );
  });

  it('gives a run that began anew none of what was said before', async () => {
    const { file, next } = await follow();
    const anew = { type: 'messages', earlier: 0, messages: [{ role: 'user', content: 'go' }] } as const;
    appendFileSync(file, lineOf(anew) + lineOf(linesOf({ runId: 'r1' }).at(-1) as RunEvent));
    const end = await next();
    assert.ok(end?.type === 'run_end');
    assert.deepEqual(
      end.messages.map(({ content }) => content),
      ['go'],
    );
  });

  it('ends at a file that has become shorter, which is another one', async () => {
    const { file, next } = await follow();
    writeFileSync(file, '');
    assert.equal(await next(), undefined);
  });

  it('does not show again what is no event: names, totals, messages', async () => {
    const { file, next } = await follow();
    appendFileSync(file, `{"type":"title","title":"x"}\n${endLines()}`);
    assert.equal((await next())?.type, 'usage');
    assert.equal((await next())?.type, 'run_end');
  });
});
