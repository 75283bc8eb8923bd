import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RunHistory } from '../../../src/engine/records/runHistory.ts';
import { type RunSummary, titleOf } from '../../../src/engine/records/runSummary.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { writeRun } from '../records/storedRuns.ts';

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
});
