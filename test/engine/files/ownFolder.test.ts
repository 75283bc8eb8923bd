/** Links in the data folder: nothing is written, read or deleted behind them, and the run goes on. */

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { logPath, recordCall } from '../../../src/engine/records/logFile.ts';
import { record } from '../../../src/engine/records/record.ts';
import { RunHistory } from '../../../src/engine/records/runHistory.ts';
import { redactor } from '../../../src/engine/redact.ts';
import { writeFileTool } from '../../../src/engine/tools/files.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

const start: RunEvent = { type: 'run_start', runId: 'r1', text: 'go', startedAt: '2026-01-02T03:04:05.000Z' };
const routed: RunEvent = {
  type: 'routed',
  agent: 'kairos',
  skill: 'kickoff',
  description: 'Morning',
  reason: { rule: 'name' },
  provider: 'anthropic',
  model: 'm',
  workingDir: '/w',
  hasMcp: false,
};
const end: RunEvent = {
  type: 'run_end',
  outcome: 'completed',
  rounds: 1,
  toolCalls: 0,
  durationMs: 5,
  messages: [{ role: 'user', content: 'go' }],
};

describe('a link in the data folder', () => {
  let run: TemporaryRun;
  let data: string;
  let elsewhere: string;

  beforeEach(() => {
    run = temporaryRun();
    data = join(run.root, 'data');
    elsewhere = join(run.root, 'elsewhere');
    mkdirSync(data);
    mkdirSync(elsewhere);
  });
  afterEach(() => run.remove());

  async function* events(): AsyncGenerator<RunEvent> {
    yield* [start, routed, end];
  }
  async function noticesOf(passed: AsyncIterable<RunEvent>): Promise<string> {
    const seen: RunEvent[] = [];
    for await (const event of passed) seen.push(event);
    assert.equal(seen.at(-1)?.type, 'run_end');
    return seen.flatMap(event => (event.type === 'notice' ? [event.message] : [])).join('\n');
  }
  const recorded = (): Promise<string> => {
    const attachments = [{ kind: 'text', name: 'a', language: '', text: 'b' }] as const;
    const one = { request: { attachments }, messages: [], earlier: 0, redact: redactor([]) };
    return noticesOf(record(events(), one, data));
  };

  it('in place of the logs is not followed', async () => {
    symlinkSync(elsewhere, join(data, 'logs'));
    assert.match(await recorded(), /^This run is not logged\. .*logs is a link.* Check the folder/);
    const call = { door: 'editor', provider: 'p', model: 'm' } as const;
    recordCall(data, call, { outcome: 'completed', error: null, toolCalls: 0, durationMs: 1 });
    assert.deepEqual(readdirSync(elsewhere), []);
  });

  it('in place of the log of a day is not followed', async () => {
    mkdirSync(join(data, 'logs'));
    const target = run.put('elsewhere/profile', 'mine\n');
    symlinkSync(target, logPath(data));
    assert.match(await recorded(), /\.jsonl is a link/);
    assert.equal(readFileSync(target, 'utf8'), 'mine\n');
  });

  it('in place of the runs is not followed', async () => {
    symlinkSync(elsewhere, join(data, 'runs'));
    assert.match(await recorded(), /not saved, or only in part\. .*runs is a link/);
    assert.deepEqual(readdirSync(elsewhere), []);
  });

  it('in place of one run is not followed when it is named', async () => {
    await recorded();
    const file = join(data, 'runs', 'r1.jsonl');
    const target = run.put('elsewhere/r1.jsonl', readFileSync(file, 'utf8'));
    const before = readFileSync(target, 'utf8');
    symlinkSync(target, join(data, 'runs', 'r2.jsonl'));
    await assert.rejects(new RunHistory(data).rename('r2', 'x'), /is a link/);
    assert.equal(readFileSync(target, 'utf8'), before);
  });

  it('in place of the changes is neither followed nor swept', async () => {
    const old = run.put('elsewhere/letters/old.txt', 'mine\n');
    utimesSync(old, 0, 0);
    symlinkSync(elsewhere, join(data, 'changes'));
    run.put('work/a.md', 'first\n');
    const store = new ChangeStore({ dataDir: data, configDir: join(run.root, 'config') });
    const changes = store.keeper('run-1')!;
    const write = await writeFileTool.execute({ path: 'a.md', content: 'x' }, { ...run.context, changes });
    assert.equal(write.isError, false);
    assert.match(String(changes.takeProblem()), /cannot be undone completely: .*changes is a link/);
    assert.deepEqual(readdirSync(elsewhere), ['letters']);
    assert.equal(await store.latest(), undefined);
  });

  it('in place of the data folder itself is what the person wants', async () => {
    const real = data;
    data = join(run.root, 'linked');
    symlinkSync(real, data);
    assert.equal(await recorded(), '');
    assert.deepEqual(readdirSync(real).sort(), ['logs', 'runs']);
  });
});
