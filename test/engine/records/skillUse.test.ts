/** How skills have done is read from the log and the stored runs, whatever is in them. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
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
});
