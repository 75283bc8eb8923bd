import assert from 'node:assert/strict';
import { CannotJudge, finish, judged, lineOf, type Result, totals } from './report.ts';

const result = (id: string, more: Partial<Result> = {}): Result => ({
  id,
  area: 'one',
  result: 'pass',
  problems: [],
  ...more,
});

describe('the verdict on a case', () => {
  it('is what the case came to', async () => {
    const pass = { result: 'pass', problems: [] } as const;
    assert.equal(await judged(async () => pass), pass);
  });

  it('is a failure if carrying it out breaks, and none if it cannot be carried out', async () => {
    const broken = await judged(async () => {
      throw new Error('out of paper');
    });
    assert.equal(broken.result, 'fail');
    assert.match(broken.problems.join(), /^broke: Error: out of paper/);
    const impossible = await judged(async () => {
      throw new CannotJudge('there is no network');
    });
    assert.deepEqual(impossible, { result: 'not judged', problems: ['there is no network'] });
  });
});

describe('the report of a suite', () => {
  const exitCode = process.exitCode;
  const log = console.log;
  afterEach(() => {
    process.exitCode = exitCode;
    console.log = log;
  });

  /** Returns the exit code and what was printed. */
  const finished = (...given: Parameters<typeof finish>): [code: unknown, text: string] => {
    const lines: string[] = [];
    console.log = (line: string) => void lines.push(line);
    finish(...given);
    console.log = log;
    return [process.exitCode, lines.join('\n')];
  };

  it('has one line for each case, without what steers a terminal', () => {
    const failed = result('b', { result: 'fail', problems: ['saw \x1b[2J', 'twice'], notJudged: ['x', 'y'] });
    assert.equal(lineOf(result('a')), 'pass a');
    assert.equal(lineOf(failed), 'FAIL b: saw \\u001b[2J; twice; 2 assertions not judged (x | y)');
    assert.equal(lineOf(result('c', { measured: '3 ms (limit: 5 ms)' })), 'pass c: 3 ms (limit: 5 ms)');
  });

  it('counts by area and in all', () => {
    const all = [result('a'), result('b', { area: 'two', result: 'fail' }), result('c', { area: 'two' })];
    assert.deepEqual(
      totals(all)
        .split('\n')
        .map(line => line.trim().split(/\s{2,}/)),
      [
        ['area', 'pass', 'FAIL', 'not judged'],
        ['one', '1', '0', '0'],
        ['two', '1', '1', '0'],
        ['total', '2', '1', '0'],
      ],
    );
    assert.match(totals([result('a', { result: 'contradicts' })]), /contradicts\none +0 +0 +0 +1/);
  });

  it('ends with 1 if a case failed or none was asked for, and gives the reasons that were noted', () => {
    const notJudged = result('b', { result: 'not judged', notJudged: ['it is shown'] });
    const [code, text] = finished(
      [result('a'), notJudged],
      [
        ['b', 'waits for a part'],
        ['z', 'is not there'],
      ],
    );
    assert.equal(code, 0);
    assert.match(text, /^note: b: waits for a part\n\narea/);
    assert.match(text, /1 assertions were not judged/);
    assert.equal(finished([result('a'), result('b', { result: 'fail' })])[0], 1);
    assert.deepEqual(finished([])[0], 1);
  });
});
