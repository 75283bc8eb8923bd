/** Taking back the runs of a conversation from one of them on, and undoing that, with the real tools and real files. */

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { ownerHere } from '../../../src/engine/files/liveProcess.ts';
import { RunHistory } from '../../../src/engine/records/runHistory.ts';
import { writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

describe('restoring a conversation', () => {
  let run: TemporaryRun;
  let store: ChangeStore;
  let data: string;

  beforeEach(() => {
    run = temporaryRun();
    data = join(run.root, 'data');
    store = new ChangeStore({ dataDir: data, configDir: join(run.root, 'config') });
  });
  afterEach(() => run.remove());

  const inWork = (path: string): string => join(run.work, path);
  const text = (path: string): string => readFileSync(inWork(path), 'utf8');
  const keepers = new Map<string, ReturnType<ChangeStore['keeper']>>();
  async function write(runId: string, path: string, content: string): Promise<void> {
    if (!keepers.has(`${data} ${runId}`)) keepers.set(`${data} ${runId}`, store.keeper(runId));
    const changes = keepers.get(`${data} ${runId}`)!;
    const result = await writeFileTool.execute({ path, content }, { ...run.context, changes });
    assert.equal(result.isError, false, result.content);
  }

  /** Stores a run as its record would, without its work. */
  function keep(runId: string, after: string | undefined, events: readonly RunEvent[] = []): void {
    const startedAt = new Date(Date.parse('2026-01-01') + Number(runId.slice(-1)) * 1000).toISOString();
    const header = { type: 'run', version: 1, runId, conversation: 'talk', startedAt, request: runId };
    const end = {
      type: 'run_end',
      outcome: 'completed',
      rounds: 1,
      toolCalls: 0,
      durationMs: 1,
      messages: [],
    };
    const lines = [
      { ...header, door: 'cli', pid: 1, ...(after !== undefined && { after }) },
      { type: 'run_start', runId, text: runId, startedAt },
      ...events,
      end,
    ];
    mkdirSync(join(data, 'runs'), { recursive: true });
    const file = join(data, 'runs', `${runId}.jsonl`);
    writeFileSync(file, `${lines.map(line => JSON.stringify(line)).join('\n')}\n`);
  }

  async function restored(runIds: readonly string[], options = {}) {
    const result = await store.restore(runIds, options);
    assert.ok(result.outcome === 'restored', JSON.stringify(result));
    assert.equal(result.problem, undefined);
    return result;
  }

  it('takes back several runs to the byte, and undoes that to the byte', async () => {
    const old = Buffer.from([0, 0xff, 10, 13, 0x80]);
    run.put('work/bytes.bin', old);
    run.put('work/later.md', 'by me\n');
    chmodSync(inWork('bytes.bin'), 0o640);
    await write('run-1', 'first.md', 'one');
    await write('run-2', 'bytes.bin', 'two');
    await write('run-2', 'deep/er/new.md', 'two');
    await write('run-3', 'bytes.bin', 'three');
    await write('run-3', 'deep/er/new.md', 'three\r\n');
    await write('run-3', 'later.md', 'three');
    const { id, ...result } = await restored(['run-2', 'run-3']);
    assert.ok(readFileSync(inWork('bytes.bin')).equals(old));
    assert.equal(statSync(inWork('bytes.bin')).mode & 0o7777, 0o640);
    assert.equal(text('later.md'), 'by me\n');
    assert.deepEqual(readdirSync(run.work).sort(), ['bytes.bin', 'first.md', 'later.md']);
    assert.deepEqual(result.removed, [inWork('deep/er/new.md')]);
    assert.deepEqual(store.undoneAmong(['run-1', 'run-2', 'run-3']), ['run-2', 'run-3']);
    assert.deepEqual((await store.of(id)).restores, ['run-2', 'run-3']);
    assert.equal(await store.latest(), id);
    assert.equal((await store.undo(id)).outcome, 'undone');
    assert.equal(text('bytes.bin'), 'three');
    assert.equal(text('deep/er/new.md'), 'three\r\n');
    assert.equal(text('later.md'), 'three');
    assert.deepEqual(store.undoneAmong(['run-1', 'run-2', 'run-3', id]), [id]);
    // Both ways again: nothing has got lost.
    await restored(['run-1', 'run-2', 'run-3']);
    assert.ok(readFileSync(inWork('bytes.bin')).equals(old));
    assert.equal(existsSync(inWork('first.md')), false);
  });

  it('leaves out what is undone already, and names a file that was edited before, between or after', async () => {
    for (const name of ['undone', 'between', 'after', 'before']) run.put(`work/${name}`, 'old');
    await write('run-1', 'undone', 'one');
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    await write('run-2', 'undone', 'two');
    await write('run-2', 'between', 'two');
    writeFileSync(inWork('between'), 'by me');
    await write('run-3', 'between', 'three');
    await write('run-3', 'after', 'three');
    writeFileSync(inWork('after'), 'by me');
    const refused = await store.restore(['run-1', 'run-2', 'run-3']);
    assert.ok(refused.outcome === 'refused');
    assert.deepEqual(
      refused.blocked.map(({ path, state }) => [path, state]),
      [
        [inWork('between'), 'edited'],
        [inWork('after'), 'edited'],
      ],
    );
    assert.equal(text('undone'), 'two');
    const { id } = await restored(['run-1', 'run-2', 'run-3'], { others: true });
    assert.deepEqual(['undone', 'between', 'after'].map(text), ['old', 'three', 'by me']);
    writeFileSync(inWork('undone'), 'edited since the restore');
    assert.equal((await store.undo(id)).outcome, 'refused');
    assert.equal(text('undone'), 'edited since the restore');
  });

  it('leaves the runs out of their conversation until that is undone, also where no file was changed', async () => {
    keep('run-1', undefined);
    keep('run-2', 'run-1');
    keep('run-3', 'run-2');
    const history = new RunHistory(data);
    const conversation = async () =>
      (await history.conversation('run-1')).runs.map(each => each.summary.runId);
    const { id } = await restored(['run-2', 'run-3']);
    assert.deepEqual(await conversation(), ['run-1']);
    assert.deepEqual(
      (await history.shown()).map(({ runId }) => runId),
      ['run-1'],
    );
    const opened = await history.conversation('run-3');
    assert.equal(opened.runs.length, 3, 'a run that is named is shown with all before it');
    assert.equal((await store.undo(id)).outcome, 'undone');
    assert.deepEqual(await conversation(), ['run-1', 'run-2', 'run-3']);
  });

  it('names what ran outside the box, and nothing that was refused or only looked', async () => {
    const call = (id: string, name: string, command: string, policy: object, allow?: boolean): RunEvent[] =>
      [
        { type: 'tool_start', call: { id, name, input: { command } } },
        ...(allow === undefined
          ? []
          : [{ type: 'approval_response', callId: id, decision: allow ? { allow } : { allow, reason: '' } }]),
        { type: 'tool_end', callId: id, name, result: { content: '', isError: false }, policy },
      ] as RunEvent[];
    const asked = { action: 'ask', rule: 'run.command' };
    keep('run-1', undefined, [
      ...call('a', 'run_command', 'npm publish', asked, true),
      ...call('b', 'run_command', 'rm -rf /', asked, false),
      ...call('c', 'run_command', 'ls', { action: 'allow', rule: 'run.read-only' }),
      ...call('d', 'run_command', 'make', { action: 'allow', rule: 'run.box', boxed: true }),
      ...call('e', 'run_command', 'sudo x', { action: 'deny', rule: 'floor' }),
      ...call('f', 'mcp__mail__send', '', { action: 'allow', rule: 'user' }),
    ]);
    assert.deepEqual((await store.restorable(['run-1'])).outside, ['npm publish', 'mcp__mail__send']);
  });

  it('changes nothing if what is there now cannot be kept, or a run is still active', async () => {
    run.put('work/a.md', 'old');
    await write('run-1', 'a.md', 'one');
    const changes = join(data, 'changes');
    renameSync(changes, `${changes}-elsewhere`);
    symlinkSync(`${changes}-elsewhere`, changes);
    await assert.rejects(store.restore(['run-1']), /Nothing was restored\. .*link/);
    assert.equal(text('a.md'), 'one');
    rmSync(changes);
    renameSync(`${changes}-elsewhere`, changes);
    keep('run-1', undefined);
    const file = join(data, 'runs', 'run-1.jsonl');
    truncateSync(file, 0);
    const startedAt = new Date().toISOString();
    const header = { type: 'run', version: 1, runId: 'run-1', startedAt, request: '', door: 'cli' };
    writeFileSync(file, `${JSON.stringify({ ...header, pid: process.pid, owner: ownerHere() })}\n`);
    await assert.rejects(store.restore(['run-1']), /still active/);
  });
});
