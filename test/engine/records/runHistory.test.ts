import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RunHistory, setAside } from '../../../src/engine/records/runHistory.ts';
import { type RunSummary, titleOf } from '../../../src/engine/records/runSummary.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { writeRun } from './storedRuns.ts';

describe('RunHistory', () => {
  let folder: TempFolder;
  let history: RunHistory;
  const ids = (runs: readonly RunSummary[]): string[] => runs.map(({ runId }) => runId);
  const add = (run: Parameters<typeof writeRun>[1]): string => writeRun(folder.path, run);
  const one = async (runId: string): Promise<RunSummary> =>
    (await history.find(runId))[0] ?? assert.fail(`${runId} is not listed`);
  const found = async (query: string): Promise<string[]> => {
    const runs: RunSummary[] = [];
    for await (const run of history.search(query, new AbortController().signal)) runs.push(run);
    return ids(runs);
  };

  beforeEach(() => {
    folder = tempFolder();
    history = new RunHistory(folder.path);
  });
  afterEach(() => folder.remove());

  it('lists nothing where nothing was kept', async () => {
    assert.deepEqual(await history.list(), []);
  });

  it('titles a step of a plan by its place in the plan', async () => {
    for (const [runId, step, title] of [
      ['first', 'interview', 'bakery · interview'],
      ['second', 'US-001.a1.coder', 'bakery · US-001 · coder'],
      ['third', 'US-001.a12.reviewer', 'bakery · US-001 · reviewer #12'],
      ['fourth', 'US-001.split', 'bakery · US-001 · split'],
    ] as const) {
      const startedAt = '2026-01-01T00:00:00.000Z';
      const plan = { conversation: 'bakery', door: 'plan', step, request: 'Build the story.' };
      const header = { type: 'run', version: 1, runId, ...plan, startedAt, pid: 1 };
      folder.add({ [`runs/${runId}.jsonl`]: `${JSON.stringify(header)}\n` });
      assert.equal(titleOf(await one(runId)), title);
    }
  });

  it('lists the newest first, with what each came to, and leaves out what is no run', async () => {
    add({ runId: 'old', startedAt: '2026-01-01T00:00:00.000Z', cost: 'unknown', outcome: 'failed' });
    add({ runId: 'new', startedAt: '2026-03-01T00:00:00.000Z', request: 'sort  the\nmail', skill: 'sorter' });
    folder.add({ 'runs/notes.jsonl': 'hello\n', 'runs/empty.jsonl': '', 'runs/readme.txt': '' });
    const [first, second, ...more] = await history.list();
    assert.deepEqual(more, []);
    assert.equal(first?.runId, 'new');
    assert.equal(first && titleOf(first), 'sort the mail');
    assert.equal(first?.skill, 'sorter');
    assert.equal(first?.outcome, 'completed');
    assert.equal(first?.usage?.cost, 0.01);
    assert.equal(first?.durationMs, 1500);
    assert.equal(second?.outcome, 'failed');
    assert.equal(second?.usage?.cost, 'unknown');
  });

  it('knows the skill and the end of a run of which it reads the two ends alone', async () => {
    const long = 'x'.repeat(200_000);
    add({ runId: 'long', request: `find ${long}`, answer: long });
    add({ runId: 'cut', request: `find ${long}`, answer: long, ended: false });
    assert.deepEqual(await history.find('lo').then(ids), ['long']);
    assert.equal((await one('long')).outcome, 'completed');
    assert.equal((await one('long')).skill, 'kickoff');
    assert.equal((await one('cut')).outcome, 'interrupted');
    assert.equal((await one('cut')).skill, 'kickoff');
  });

  it('knows the end of a run that was given more names since than its last bytes hold', async () => {
    const file = add({ runId: 'long', answer: 'x'.repeat(200_000) });
    for (let index = 0; index < 300; index++)
      appendFileSync(file, `{"type":"title","title":"Name ${index} of a run that is named again"}\n`);
    assert.equal((await one('long')).outcome, 'completed');
    assert.equal((await one('long')).title, 'Name 299 of a run that is named again');
  });

  it('calls a run without an end interrupted when its process is gone, and running while it is not', async () => {
    add({ runId: 'gone', ended: false });
    add({ runId: 'here', ended: false, pid: process.pid, startedAt: new Date().toISOString() });
    assert.equal((await one('gone')).outcome, 'interrupted');
    assert.equal((await one('here')).outcome, 'running');
    await assert.rejects(history.delete('here'), /still active/);
    await assert.rejects(history.rename('here', 'x'), /still active/);
  });

  it('sees what has changed since it last looked', async () => {
    const file = add({ runId: 'r', ended: false });
    assert.equal((await one('r')).outcome, 'interrupted');
    add({ runId: 'r' });
    assert.equal((await one('r')).outcome, 'completed');
    appendFileSync(file, '{"type":"title","title":"By another window"}\n');
    assert.equal((await one('r')).title, 'By another window');
  });

  it('names a run, also behind half a line, and takes the name away again', async () => {
    const file = add({ runId: 'r', ended: false });
    truncateSync(file, readFileSync(file).length - 5);
    await history.rename('r', ' My\nplan ');
    assert.equal((await one('r')).title, 'My plan');
    const { skippedLines } = await history.read('r');
    assert.equal(skippedLines, 1);
    await history.rename('r', '');
    assert.equal((await one('r')).title, undefined);
  });

  it('deletes a run, and says so when there is none', async () => {
    const file = add({ runId: 'r' });
    await history.delete('r');
    assert.equal(existsSync(file), false);
    await assert.rejects(history.delete('r'), /was not found/);
    await assert.rejects(history.read('r'), /was not found/);
  });

  it('reaches no file outside its folder', async () => {
    writeFileSync(join(folder.path, 'policy.jsonl'), 'mine');
    for (const id of ['../policy', '..', '', 'a/b', 'a\0b']) {
      await assert.rejects(history.delete(id), /not the id of a run/);
      await assert.rejects(history.read(id), /not the id of a run/);
    }
    assert.equal(readFileSync(join(folder.path, 'policy.jsonl'), 'utf8'), 'mine');
  });

  it('reads on in spite of lines that are none, and says how many', async () => {
    const file = add({ runId: 'r' });
    appendFileSync(
      file,
      'x\n{"type":"text"}\n{"type":"run_end"}\n{"type":"later","a":1}\nnull\n{"type":"text","te',
    );
    const { events, skippedLines } = await history.read('r');
    assert.equal(skippedLines, 6);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['run_start', 'routed', 'text', 'usage', 'run_end'],
    );
  });

  it('reads a conversation as the runs behind its latest one, each with all that was said', async () => {
    const at = (minute: number): string => `2026-01-01T00:0${minute}:00.000Z`;
    add({ runId: 'a', conversation: 'c', request: 'one', answer: 'first', startedAt: at(1) });
    add({ runId: 'b', conversation: 'c', after: 'a', request: 'two', startedAt: at(2), earlier: 2 });
    // Sent again in other words: it takes the place of b.
    add({ runId: 'b2', conversation: 'c', after: 'a', request: 'too', startedAt: at(3), earlier: 2 });
    add({ runId: 'd', conversation: 'c', after: 'b2', request: 'cut', startedAt: at(4), ended: false });
    add({ runId: 'x', request: 'another conversation', startedAt: at(5) });
    await history.rename('a', 'Numbers');
    const { id, title, runs } = await history.conversation('a');
    assert.equal(id, 'c');
    assert.equal(title, 'Numbers');
    assert.deepEqual(
      runs.map(({ summary }) => summary.runId),
      ['a', 'b2', 'd'],
    );
    const said = runs.map(({ events }) => {
      const end = events.at(-1);
      return end?.type === 'run_end'
        ? end.messages.filter(({ role }) => role === 'user').map(({ content }) => content)
        : [];
    });
    assert.deepEqual(said, [['one'], ['one', 'too'], []]);
    assert.deepEqual(
      (await history.conversation('b')).runs.map(({ summary }) => summary.runId),
      ['a', 'b'],
      'a run whose place was taken',
    );
    const upToThere = await history.conversation('b2', 'b2');
    assert.deepEqual(
      upToThere.runs.map(({ summary }) => summary.runId),
      ['a', 'b2'],
    );
  });

  it('ends the way back at a run that was deleted, and at runs that name each other', async () => {
    add({ runId: 'b', conversation: 'c', after: 'a' });
    assert.equal((await history.conversation('b')).runs.length, 1);
    add({ runId: 'a', conversation: 'c', after: 'b' });
    assert.equal((await history.conversation('b')).runs.length, 2);
  });

  it('finds words in titles, requests, skills and answers, however they are spread, and not in what tools gave back', async () => {
    const result = { content: 'needle', isError: false };
    add({ runId: 'a', request: 'Plan my Week', answer: 'Three "quoted" things.' });
    add({
      runId: 'b',
      skill: 'sorter',
      events: [{ type: 'tool_end', callId: '1', name: 'read_file', result }],
    });
    assert.deepEqual(await found('week'), ['a']);
    assert.deepEqual(await found('plan things'), ['a']);
    assert.deepEqual(await found('"quoted"'), ['a']);
    assert.deepEqual(await found('kairos:sorter'), ['b']);
    assert.deepEqual(await found('needle'), []);
    assert.deepEqual(await found('anthropic'), [], 'not in what is around the texts');
    assert.deepEqual((await found('')).length, 2);
  });

  it('titles a run by its request, else by its skill, else not at all', () => {
    assert.equal(titleOf({ title: 'Mine', request: 'go', skill: 's' }), 'Mine');
    assert.equal(titleOf({ request: ' a\n b ', skill: 's' }), 'a b');
    assert.equal(titleOf({ request: ' ', skill: 's' }), 'Run s');
    assert.equal(titleOf({ request: '', skill: '' }), 'Untitled run');
  });

  it('puts runs of the same moment in the order of their ids, whichever file comes first', async () => {
    for (const runId of ['b', 'c', 'a']) add({ runId });
    assert.deepEqual(ids(await history.list()), ['c', 'b', 'a']);
    assert.deepEqual(ids(await history.find('')), ['c', 'b', 'a']);
    assert.deepEqual(ids(await history.find('b')), ['b']);
    assert.deepEqual(ids(await history.find('x')), []);
  });

  it('forgets a run whose file is gone, and lists all of very many', async () => {
    for (let index = 0; index < 130; index++) add({ runId: `r${index}` });
    assert.equal((await history.list()).length, 130);
    rmSync(join(folder.path, 'runs', 'r7.jsonl'));
    assert.equal((await history.list()).length, 129);
  });

  it('says of what cannot be listed or opened why', async () => {
    folder.add({ 'runs/a.jsonl/in-the-way': '', 'runs/b.jsonl': 'hello\n' });
    await assert.rejects(history.read('a'), /The file of the run a could not be opened: /);
    await assert.rejects(history.read('b'), /is not the file of a run/);
    await assert.rejects(history.delete('a'), /could not be opened/);
    const elsewhere = new RunHistory(join(folder.path, 'runs', 'b.jsonl'));
    await assert.rejects(elsewhere.list(), /ENOTDIR/);
  });

  it('shows neither a run that was set aside nor what came after it, until that is undone', async () => {
    const at = (minute: number): string => `2026-01-01T00:0${minute}:00.000Z`;
    add({ runId: 'a', conversation: 'c', startedAt: at(1) });
    add({ runId: 'b', conversation: 'c', after: 'a', startedAt: at(2) });
    add({ runId: 'd', conversation: 'c', after: 'b', startedAt: at(3) });
    add({ runId: 'branch', conversation: 'other', after: 'b', startedAt: at(4) });
    setAside(folder.path, ['b', 'not-stored', '../evil'], true);
    assert.equal((await history.read('b')).summary.isAside, true);
    assert.deepEqual(ids(await history.shown()), ['branch', 'a']);
    const runsOf = async (runId: string, upTo?: string): Promise<string[]> =>
      (await history.conversation(runId, upTo)).runs.map(({ summary }) => summary.runId);
    assert.deepEqual(await runsOf('a'), ['a'], 'what was set aside does not belong to it');
    assert.deepEqual(await runsOf('b'), ['a', 'b', 'd'], 'one that was set aside, when it is opened');
    assert.deepEqual(await runsOf('branch'), ['a', 'b', 'branch']);
    setAside(folder.path, ['b'], false);
    assert.deepEqual(ids(await history.shown()), ['branch', 'd', 'b', 'a']);
    assert.deepEqual(await runsOf('a'), ['a', 'b', 'd']);
    assert.equal((await history.read('b')).summary.isAside, undefined);
  });

  it('titles a conversation by its name, else by its own first request', async () => {
    const at = (minute: number): string => `2026-01-01T00:0${minute}:00.000Z`;
    add({ runId: 'a', conversation: 'c', request: 'first', startedAt: at(1) });
    const file = add({ runId: 'b', conversation: 'new', after: 'a', request: 'second', startedAt: at(2) });
    appendFileSync(file, 'not a line\nnor this\n');
    const { title, skippedLines, runs } = await history.conversation('b');
    assert.deepEqual([title, skippedLines, runs.length], ['second', 2, 2]);
    await history.rename('b', 'x'.repeat(300));
    assert.equal((await history.conversation('b')).title, 'x'.repeat(200));
  });

  it('knows what a run has come to so far, and what it came to', async () => {
    const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 };
    const ends = (callId: string): RunEvent => ({
      type: 'tool_end',
      callId,
      name: 't',
      result: { content: '', isError: false },
    });
    const events: RunEvent[] = [
      ends('1'),
      { type: 'usage', round: 3, usage },
      ends('2'),
      { type: 'usage', round: 2, usage },
    ];
    add({ runId: 'cut', ended: false, events });
    assert.equal((await one('cut')).rounds, 3);
    const { summary, pid, earlier, messages } = await history.read('cut');
    assert.deepEqual([summary.toolCalls, pid, earlier, messages.length], [2, 2 ** 30, 0, 0]);
    assert.equal(summary.usage, undefined);
    const whole = add({ runId: 'whole', earlier: 4 });
    assert.deepEqual([(await history.read('whole')).earlier, (await one('whole')).isRecording], [4, false]);
    const end = {
      type: 'run_end',
      outcome: 'cancelled',
      rounds: 7,
      toolCalls: 5,
      durationMs: 2,
      interrupted: true,
    };
    const error = { code: 'auth', message: 'no key' };
    const totals = {
      type: 'totals',
      agent: 'a',
      skill: 's',
      provider: 'p',
      model: 'm',
      isRecording: true,
      usage,
    };
    for (const line of [totals, { ...end, error }]) appendFileSync(whole, `${JSON.stringify(line)}\n`);
    const told = await one('whole');
    assert.deepEqual(
      [told.outcome, told.rounds, told.toolCalls, told.error, told.isRecording, told.skill, told.rule],
      ['interrupted', 7, 5, 'no key', true, 's', 'name'],
    );
  });

  it('finds the words of a tool’s input and of an error, but not of a result, and stops when it is told to', async () => {
    const call = { id: '1', name: 'write_file', input: { path: 'garden.md', tries: 7 } };
    const result = { content: 'a hidden harvest', isError: false };
    add({
      runId: 'calls',
      events: [
        { type: 'tool_start', call },
        { type: 'tool_end', callId: '1', name: 'write_file', result },
      ],
    });
    appendFileSync(
      add({ runId: 'fails', answer: 'It said "so what".' }),
      '{"type":"run_end","outcome":"failed","rounds":0,"toolCalls":0,"durationMs":0,"error":{"code":"auth","message":"Rainy weather"}}\n',
    );
    assert.deepEqual(await found('garden.md write_file'), ['calls']);
    assert.deepEqual(await found('garden harvest'), []);
    assert.deepEqual(await found('harvest'), []);
    assert.deepEqual(await found('rainy'), ['fails']);
    assert.deepEqual(await found('"so what"'), ['fails']);
    assert.deepEqual(await found('"so rainy "gone'), []);
    assert.deepEqual(await found('kickoff plan'), ['fails', 'calls']);
    const stopped = new AbortController();
    const seen: string[] = [];
    for await (const { runId } of history.search('', stopped.signal)) {
      seen.push(runId);
      stopped.abort();
    }
    assert.deepEqual(seen, ['fails']);
  });
});
