import assert from 'node:assert/strict';
import { pick } from '../../src/cli/terminalHuman.ts';

describe('pick', () => {
  it('takes a number of the list or a name in any case, and spaces around them', () => {
    const names = ['kickoff', 'Shutdown', '7'];
    for (const [answer, name] of [
      ['1', 'kickoff'],
      [' 2 ', 'Shutdown'],
      ['3', '7'],
      ['SHUTDOWN', 'Shutdown'],
      ['kickoff\r', 'kickoff'],
    ] as const)
      assert.equal(pick(answer, names), name, answer);
  });

  it('takes nothing else', () => {
    for (const answer of ['0', '4', '-1', '1.5', '1e0', '', 'kick', 'q', '__proto__'])
      assert.equal(pick(answer, ['a', 'b', 'kickoff']), undefined, answer);
  });

  it('tells names apart that differ in case alone', () => {
    assert.deepEqual([pick('B', ['b', 'B']), pick('b', ['B', 'b'])], ['B', 'b']);
  });
});
