import assert from 'node:assert/strict';
import { ownerHere } from '../../../src/engine/files/liveProcess.ts';
import { type DueParts, dueTime, runIfDue, type ScheduleEngine } from '../../../src/engine/schedule/due.ts';
import { type Schedule, Schedules } from '../../../src/engine/schedule/schedules.ts';
import type { ApprovalRequest, RunEvent, RunOutcome } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('what is due', () => {
  const at = (text: string): Date => new Date(text);
  let folder: TempFolder;
  let schedules: Schedules;
  let schedule: Schedule;
  let outcome: RunOutcome;
  let runs: number;
  let digest: string;

  beforeEach(async () => {
    folder = tempFolder();
    schedules = new Schedules(folder.path);
    [outcome, runs, digest] = ['completed', 0, 'first'];
    schedule = schedules.draft({
      request: 'Räume auf! ../../etc',
      skill: { agent: 'home', skill: 'tidy' },
      at: 'daily 08:30',
      cwd: folder.path,
      digest,
      missed: 'once',
      clock: 'none',
      since: at('2026-05-01T07:00').toISOString(),
    });
    await schedules.keep(schedule);
  });
  afterEach(() => folder.remove());

  const engine: ScheduleEngine = {
    agents: async () => [{ name: 'home', skills: [{ id: 'tidy' }] }],
    agentCard: async () => ({ digest, state: 'new' }),
    async *run(_request, human, signal): AsyncIterable<RunEvent> {
      runs++;
      yield { type: 'run_start', runId: 'r1', text: '', startedAt: '' };
      const asked = { callId: 'c', tool: 'run_command', subject: 'curl x' } as unknown as ApprovalRequest;
      if (outcome === 'completed') {
        yield { type: 'approval_request', request: asked };
        const decision = await human.approve(asked, signal);
        assert.equal(decision.allow, false);
        yield { type: 'approval_response', callId: 'c', decision };
      }
      const error = outcome === 'failed' ? { code: 'auth' as const, message: 'There is no key.' } : undefined;
      const figures = { rounds: 1, toolCalls: 0, durationMs: 1, messages: [] };
      yield { type: 'run_end', outcome, ...figures, ...(error && { error }) };
    },
  };
  const parts = (now: Date): DueParts => ({
    schedules,
    open: () => engine,
    signal: new AbortController().signal,
    now: () => now,
  });
  const call = (now: string, isByHand = false) => runIfDue(schedule.id, isByHand, parts(at(now)));

  it('is named by the words of the request, and by no path', () => {
    assert.equal(schedule.id, 'ra-ume-auf-etc');
    const { id: _, ...again } = schedule;
    assert.equal(schedules.draft(again).id, 'ra-ume-auf-etc-2');
    assert.throws(() => schedules.get('../x'), /no schedule '\.\.\/x'\. Your schedules: ra-ume-auf-etc/);
  });

  it('is the latest time that has come, and is taken up once', async () => {
    assert.equal(await call('2026-05-01T08:29'), undefined);
    const ended = await call('2026-05-01T08:30:20');
    assert.equal(ended?.last?.dueAt, at('2026-05-01T08:30').toISOString());
    assert.deepEqual([ended?.last?.runId, ended?.last?.needs], ['r1', ['run_command: curl x']]);
    assert.equal(await call('2026-05-01T08:31'), undefined);
    assert.equal((await call('2026-05-04T12:00'))?.last?.dueAt, at('2026-05-04T08:30').toISOString());
    assert.equal(runs, 2);
  });

  it('is found at once after a year of a rule of every minute, and after a clock that was ahead', () => {
    const minutes = { ...schedule, at: '* * * * *' };
    assert.deepEqual(dueTime(minutes, at('2027-06-01T10:00:30')), at('2027-06-01T10:00'));
    const last = { dueAt: at('2040-01-01T00:00').toISOString(), startedAt: '', pid: 1, endedAt: '' };
    assert.deepEqual(dueTime({ ...schedule, last }, at('2026-05-02T08:30:05')), at('2026-05-02T08:30'));
    assert.equal(dueTime({ ...schedule, last }, at('2026-05-02T08:40')), undefined);
  });

  it('runs at its times after the clock was set back by minutes or hours, each time once', async () => {
    for (const ahead of ['2026-05-01T08:31', '2026-05-01T09:20', '2026-05-01T20:00', '2031-01-01T00:00']) {
      for (const noted of ['last', 'since', 'both']) {
        const [time, before] = [at(ahead).toISOString(), at('2026-04-30T08:30').toISOString()];
        const last = { dueAt: noted === 'since' ? before : time, startedAt: time, pid: 1, endedAt: time };
        const since = noted === 'last' ? at('2026-01-01T00:00').toISOString() : time;
        await schedules.change(schedule.id, one => ({ ...one, since, last, failures: 0 }));
        runs = 0;
        const name = `${ahead} ${noted}`;
        assert.equal(await call('2026-05-01T08:29:00'), undefined, name);
        assert.equal(
          (await call('2026-05-01T08:30:10'))?.last?.dueAt,
          at('2026-05-01T08:30').toISOString(),
          name,
        );
        for (const later of ['08:30:40', '08:31:40', '08:40:00'])
          assert.equal(await call(`2026-05-01T${later}`), undefined, `${name} ${later}`);
        assert.equal(runs, 1, name);
      }
    }
  });

  it('runs when its last run was killed and another process has the pid since', async () => {
    const startedAt = at('2026-05-01T08:00').toISOString();
    for (const last of [{ pid: 1, owner: ownerHere() }, { pid: 1 }]) {
      await schedules.change(schedule.id, one => ({
        ...one,
        failures: 0,
        last: { dueAt: startedAt, startedAt, ...last },
      }));
      const ended = await call('2026-05-01T08:30');
      assert.equal(ended?.last?.outcome, 'completed');
    }
    await schedules.change(schedule.id, one => ({
      ...one,
      last: { dueAt: startedAt, startedAt, pid: process.pid, owner: ownerHere() },
    }));
    assert.equal(await call('2026-05-01T08:30'), undefined);
  });

  it('runs once when two processes are called at the same time', async () => {
    const ended = await Promise.all([1, 2, 3].map(() => call('2026-05-01T08:30:01')));
    assert.deepEqual([ended.filter(Boolean).length, runs], [1, 1]);
  });

  it('ends well when it is removed while it runs, and leaves another one of its name as it is', async () => {
    let isAgain = false;
    const removing: ScheduleEngine = {
      ...engine,
      async *run(...given) {
        await schedules.remove(schedule.id);
        if (isAgain) await schedules.keep(schedule);
        yield* engine.run(...given);
      },
    };
    const removed = { ...parts(at('2026-05-01T08:30:01')), open: () => removing };
    assert.equal((await runIfDue(schedule.id, false, removed))?.last?.outcome, 'completed');
    assert.equal(schedules.find(schedule.id), undefined);
    await schedules.keep(schedule);
    isAgain = true;
    await runIfDue(schedule.id, false, removed);
    assert.deepEqual([schedules.get(schedule.id).last, runs], [undefined, 2]);
  });

  it('pauses itself after three bad ends in a row, says why, and no good end between them counts', async () => {
    outcome = 'failed';
    await call('2026-05-01T08:30');
    await call('2026-05-02T08:30');
    outcome = 'completed';
    assert.equal((await call('2026-05-03T08:30'))?.failures, 0);
    outcome = 'failed';
    for (const day of [4, 5]) assert.equal((await call(`2026-05-0${day}T08:30`))?.isPaused, undefined);
    const paused = await call('2026-05-06T08:30');
    assert.deepEqual([paused?.hasGivenUp, paused?.last?.message], [true, 'There is no key.']);
    assert.equal(await call('2026-05-07T08:30'), undefined);
    assert.equal(runs, 6);
  });

  it('runs nothing after a change of the files, or without its folder', async () => {
    digest = 'second';
    assert.equal((await call('2026-05-01T08:30'))?.last?.obstacle, 'changed');
    digest = 'first';
    await schedules.change(schedule.id, one => ({ ...one, cwd: '/does/not/exist' }));
    const ended = await call('2026-05-02T08:30');
    assert.deepEqual([ended?.last?.outcome, ended?.last?.obstacle, runs], ['blocked', 'folder', 0]);
  });

  it('counts a run whose process is gone as interrupted', async () => {
    const startedAt = at('2026-05-01T08:30').toISOString();
    const last = { dueAt: startedAt, startedAt, pid: 2 ** 30 };
    await schedules.change(schedule.id, one => ({ ...one, failures: 2, last }));
    assert.equal(await call('2026-05-01T09:00'), undefined);
    const { isPaused, last: kept } = schedules.get(schedule.id);
    assert.deepEqual([isPaused, kept?.outcome], [true, 'interrupted']);
  });
});
