/** How skills have done is read from the log and the stored runs, whatever is in them. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { logPath } from '../../../src/engine/records/logFile.ts';
import { readSkillUse } from '../../../src/engine/records/skillUse.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('readSkillUse', () => {
  const now = new Date(2026, 4, 20, 15);
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
    mkdirSync(dirname(logPath(folder.path, now)), { recursive: true });
    mkdirSync(join(folder.path, 'runs'));
  });
  afterEach(() => folder.remove());

  const end = (run_id: string, more: object = {}): string =>
    JSON.stringify({
      ts: now.toISOString(),
      event: 'skill_end',
      duration_s: 4,
      rounds: 1,
      tool_calls: 0,
      error: null,
      messages: [],
      run_id,
      agent: 'me',
      skill: 'notes',
      outcome: 'completed',
      cost: 0.25,
      ...more,
    });
  const log = (...lines: string[]): void =>
    appendFileSync(logPath(folder.path, now), lines.map(line => `${line}\n`).join(''));
  const run = (runId: string, minute: number, rule: string, skill = 'notes', more: object = {}): void => {
    const header = { type: 'run', version: 1, runId, conversation: 'c', door: 'cli', request: 'x', pid: 1 };
    const startedAt = new Date(now.getTime() + minute * 60_000).toISOString();
    const routed = { type: 'routed', agent: 'me', skill, reason: { rule }, provider: 'p', model: 'm' };
    const lines = [{ ...header, startedAt, ...more }, routed];
    const text = lines.map(line => `${JSON.stringify(line)}\n`).join('');
    writeFileSync(join(folder.path, 'runs', `${runId}.jsonl`), text);
  };
  const used = async (days = 30) => (await readSkillUse(folder.path, days, now)).skills;

  it('counts how each skill was chosen, left, failed and stopped, and what it cost', async () => {
    log(
      end('a', { duration_s: 2 }),
      end('b', { duration_s: 4, outcome: 'failed', cost: 'unknown' }),
      end('c', { duration_s: 90, outcome: 'cancelled' }),
      end('d', { skill: 'mail' }),
      end('e', { skill: null }),
    );
    run('a', 0, 'index');
    run('b', 1, 'chosen', 'notes', { after: 'a' });
    run('c', 2, 'explicit', 'notes', { conversation: 'other' });
    // The same request ran again with another skill.
    run('d', 3, 'chosen', 'mail', { conversation: 'other' });
    const [notes, mail] = await used();
    assert.deepEqual(notes, {
      agent: 'me',
      skill: 'notes',
      runs: 3,
      byHand: 2,
      left: 1,
      failed: 1,
      stopped: 1,
      cost: 0.5,
      unknownCosts: 1,
      medianMs: 4000,
    });
    assert.deepEqual([mail?.runs, mail?.byHand, mail?.left, mail?.medianMs], [1, 1, 0, 4000]);
  });

  it('notices that the conversation went on with another skill', async () => {
    log(end('a'), end('b', { skill: 'mail' }));
    run('a', 0, 'index');
    run('b', 1, 'index', 'mail', { after: 'a' });
    assert.deepEqual(
      (await used()).map(({ skill, left }) => [skill, left]),
      [
        ['mail', 0],
        ['notes', 1],
      ],
    );
  });

  it('reads what others have put into the log, and days before the period not at all', async () => {
    log(
      'not JSON',
      '{"event":"skill_end"}',
      end('a', { agent: { toString: 1 }, skill: ['x'] }),
      end('b', { agent: '__proto__', skill: 'constructor', duration_s: 'long', cost: -5, outcome: {} }),
      end('../../etc', { duration_s: -1, messages: 'none' }),
      end('c', { duration_s: 1e308, cost: null }),
    );
    writeFileSync(
      join(folder.path, 'runs', 'b.jsonl'),
      '{"type":"run","runId":"b","startedAt":"x","after":{}}\n{"type":"routed"}\n',
    );
    const { skills, skippedLines } = await readSkillUse(folder.path, 1, now);
    assert.equal(skippedLines, 2);
    assert.deepEqual(
      skills.map(({ agent, skill, runs, cost }) => [agent, skill, runs, cost]),
      [
        ['me', 'notes', 2, 0.25],
        ['__proto__', 'constructor', 1, 0],
      ],
    );
    assert.deepEqual((await readSkillUse(folder.path, 1, new Date(2026, 4, 22))).skills, []);
  });

  it('takes the middle of the times, between the two of an even number, and never less than none', async () => {
    log(
      end('a', { duration_s: 10 }),
      end('b', { duration_s: 2 }),
      end('c', { duration_s: 4 }),
      end('d', { duration_s: 1 }),
    );
    assert.equal((await used())[0]?.medianMs, 3000);
    log(end('e', { duration_s: 100 }));
    assert.equal((await used())[0]?.medianMs, 4000);
    log(end('x', { skill: 'odd', duration_s: -5 }));
    assert.equal((await used()).find(({ skill }) => skill === 'odd')?.medianMs, 0);
  });

  it('puts the most used first, and then the earlier name', async () => {
    log(
      end('a', { skill: 'c' }),
      end('b', { skill: 'b' }),
      end('c', { skill: 'z' }),
      end('d', { skill: 'z' }),
    );
    assert.deepEqual(
      (await used()).map(({ skill }) => skill),
      ['z', 'b', 'c'],
    );
  });

  it('tells skills of the same name apart by their agent, also when one follows the other', async () => {
    log(end('a'), end('b', { agent: 'other' }), end('c', { agent: '' }));
    run('a', 0, 'index');
    const file = join(folder.path, 'runs', 'b.jsonl');
    run('b', 1, 'index', 'notes', { after: 'a' });
    writeFileSync(file, readFileSync(file, 'utf8').replace('"agent":"me"', '"agent":"other"'));
    const shown = (await used()).map(({ agent, left }) => [agent, left]);
    assert.deepEqual(shown.sort(), [
      ['me', 1],
      ['other', 0],
    ]);
  });

  it('does not call a run left behind which one without a skill follows, or one of another conversation', async () => {
    log(end('a'), end('b', { skill: 'mail' }));
    run('a', 0, 'index');
    run('asked', 1, 'index', '', { after: 'a' });
    run('b', 2, 'index', 'mail', { conversation: 'd' });
    assert.deepEqual(
      (await used()).map(({ left }) => left),
      [0, 0],
    );
  });

  it('counts the broken lines of the days that were asked for', async () => {
    const before = new Date(2026, 4, 19, 15);
    const after = new Date(2026, 4, 21, 15);
    for (const day of [before, after]) appendFileSync(logPath(folder.path, day), `x\n${end('a')}\n`);
    log('y', end('b'));
    const { skills, skippedLines, from, to } = await readSkillUse(folder.path, 1, now);
    assert.deepEqual([skills[0]?.runs, skippedLines, from, to], [1, 1, '2026-05-20', '2026-05-20']);
    assert.equal((await used(2))[0]?.runs, 2);
  });
});
