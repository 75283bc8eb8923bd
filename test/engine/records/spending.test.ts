/** What runs have used is added up whole, and what is not known never becomes nothing. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { appendRecord, logPath, type SkillEndRecord } from '../../../src/engine/records/logFile.ts';
import { readSpending } from '../../../src/engine/records/spending.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('readSpending', () => {
  const today = new Date(2026, 4, 20, 15);
  const daysAgo = (days: number): Date => new Date(2026, 4, 20 - days, 15);
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  function started(runId: string, day: Date, model: string): void {
    appendRecord(logPath(folder.path, day), {
      ts: day.toISOString(),
      event: 'skill_start',
      provider: 'anthropic',
      model,
      has_mcp: false,
      run_id: runId,
      agent: 'a',
      skill: 's',
    });
  }

  function ended(runId: string, day: Date, more: Partial<SkillEndRecord> = {}): void {
    appendRecord(logPath(folder.path, day), {
      ts: day.toISOString(),
      event: 'skill_end',
      duration_s: 1,
      rounds: 1,
      tool_calls: 0,
      error: null,
      messages: [],
      run_id: runId,
      agent: 'a',
      skill: 's',
      outcome: 'completed',
      input_tokens: 100,
      output_tokens: 10,
      cache_read_tokens: 5,
      cache_write_tokens: 1,
      cost: 0.25,
      ...more,
    });
  }

  it('adds up by day, agent, skill and model, the dearest first', async () => {
    started('1', daysAgo(1), 'small');
    ended('1', daysAgo(1));
    started('2', today, 'large');
    ended('2', today, { agent: 'b', cost: 2 });
    started('3', today, 'small');
    ended('3', today, { skill: 't' });
    const { total, byDay, byAgent, bySkill, byModel, from, to } = await readSpending(folder.path, 7, today);
    assert.deepEqual([from, to], ['2026-05-14', '2026-05-20']);
    assert.deepEqual(total, {
      runs: 3,
      inputTokens: 300,
      outputTokens: 30,
      cacheReadTokens: 15,
      cacheWriteTokens: 3,
      cost: 2.5,
      knownCost: 2.5,
      unknownRuns: 0,
    });
    const shown = [byDay, byAgent, bySkill, byModel].map(rows => rows.map(({ name, cost }) => [name, cost]));
    assert.deepEqual(shown, [
      [
        ['2026-05-20', 2.25],
        ['2026-05-19', 0.25],
      ],
      [
        ['b', 2],
        ['a', 0.5],
      ],
      [
        ['b:s', 2],
        ['a:s', 0.25],
        ['a:t', 0.25],
      ],
      [
        ['anthropic large', 2],
        ['anthropic small', 0.5],
      ],
    ]);
  });

  it('keeps an unknown cost unknown, and the known part beside it', async () => {
    ended('1', today);
    ended('2', today, { cost: 'unknown', agent: 'b' });
    const { total, byAgent } = await readSpending(folder.path, 1, today);
    assert.deepEqual([total.cost, total.knownCost, total.unknownRuns], ['unknown', 0.25, 1]);
    assert.deepEqual(
      byAgent.map(({ name, cost }) => [name, cost]),
      [
        ['a', 0.25],
        ['b', 'unknown'],
      ],
    );
  });

  it('looks at the days that were asked for, and knows the model of a run that went on past midnight', async () => {
    started('1', daysAgo(2), 'small');
    ended('1', daysAgo(1));
    ended('2', daysAgo(2));
    const { total, byModel } = await readSpending(folder.path, 2, today);
    assert.deepEqual([total.runs, byModel.map(({ name }) => name)], [1, ['anthropic small']]);
  });

  it('leaves out runs that asked no model, and counts the lines that are no records', async () => {
    ended('1', today, { rounds: 0, cost: 0, agent: null, skill: null });
    writeFileSync(logPath(folder.path, today), 'half a li\n', { flag: 'a' });
    const { total, skippedLines, byDay } = await readSpending(folder.path, 1, today);
    assert.deepEqual([total.runs, skippedLines, byDay], [0, 1, []]);
    assert.equal((await readSpending('/nowhere/at/all', 1, today)).total.runs, 0);
  });

  it('counts the choice of a skill to the model that chose, and the rest to the model of the run', async () => {
    started('1', today, 'large');
    const tokens = { input_tokens: 30, output_tokens: 4, cache_read_tokens: 3, cache_write_tokens: 1 };
    const routing = { provider: 'p', model: 'small', ...tokens, cost: 0.05 };
    ended('1', today, { routing });
    ended('2', today, {
      routing: { ...routing, alone: true },
      rounds: 0,
      ...tokens,
      cost: 0.05,
      skill: null,
    });
    const { byModel, total, bySkill } = await readSpending(folder.path, 1, today);
    const shown = byModel.map(
      ({ name, runs, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }) => [
        name,
        runs,
        inputTokens,
        outputTokens,
        cacheReadTokens,
        cacheWriteTokens,
      ],
    );
    assert.deepEqual(shown, [
      ['anthropic large', 1, 70, 6, 2, 0],
      ['p small', 2, 60, 8, 6, 2],
    ]);
    assert.deepEqual(
      byModel.map(({ knownCost }) => knownCost.toFixed(2)),
      ['0.20', '0.10'],
    );
    assert.equal(total.runs, 2);
    assert.deepEqual(
      bySkill.map(({ name }) => name),
      ['a:s', 'a'],
    );
    ended('3', today, { routing: { ...routing, cost: 'unknown' }, cost: 1 });
    const unknown = (await readSpending(folder.path, 1, today)).byModel.map(({ name, cost }) => [name, cost]);
    assert.deepEqual(unknown, [
      ['anthropic large', 0.2],
      ['p small', 'unknown'],
      ['-', 'unknown'],
    ]);
  });

  it('names questions that came through the editor by their door and their model', async () => {
    const call = { door: 'editor', provider: 'p', model: 'm' } as const;
    ended('1', today, { agent: null, skill: null, call });
    ended('2', today, { agent: null, skill: null });
    const { byAgent, bySkill, byModel } = await readSpending(folder.path, 1, today);
    for (const rows of [byAgent, bySkill])
      assert.deepEqual(
        rows.map(({ name }) => name),
        ['(editor)', '-'],
      );
    assert.deepEqual(
      byModel.map(({ name }) => name),
      ['-', 'p m'],
    );
  });

  it('puts the one with more tokens first among equal costs, and then the earlier name', async () => {
    for (const agent of ['c', 'b']) ended('1', today, { agent, cost: 'unknown' });
    ended('1', today, { agent: 'd', cost: 'unknown', cache_write_tokens: 2 });
    const { byAgent } = await readSpending(folder.path, 1, today);
    assert.deepEqual(
      byAgent.map(({ name }) => name),
      ['d', 'b', 'c'],
    );
  });

  it('leaves out what lies before and after the days, and its broken lines', async () => {
    const other = [daysAgo(3), daysAgo(2), daysAgo(-1)];
    for (const day of other) ended('1', day);
    for (const day of other) writeFileSync(logPath(folder.path, day), 'half a li\n', { flag: 'a' });
    ended('2', daysAgo(1), { cost: Number.NaN });
    const { total, skippedLines, byDay } = await readSpending(folder.path, 2, today);
    assert.deepEqual([total.runs, total.unknownRuns, skippedLines], [1, 1, 0]);
    assert.deepEqual(
      byDay.map(({ name }) => name),
      ['2026-05-19'],
    );
  });
});
