import assert from 'node:assert/strict';
import { suiteOptions } from './options.ts';

describe('the options of a suite', () => {
  const read = (...args: string[]) => suiteOptions(['fast'], ['reword'], args);

  it('ask for everything if they name nothing', () => {
    const { files, isWanted, only } = read();
    assert.deepEqual([files, only, isWanted('path-001', 'path')], [[], [], true]);
  });

  it('take files, names and what the suite takes besides', () => {
    const { files, isWanted, flags, values } = read(
      'a.json',
      '--only',
      'path',
      'b.json',
      '--only',
      'x-1',
      '--fast',
    );
    assert.deepEqual(files, ['a.json', 'b.json']);
    assert.deepEqual(
      [isWanted('path-001', 'path'), isWanted('x-1', 'x'), isWanted('x-2', 'x')],
      [true, true, false],
    );
    assert.deepEqual([[...flags], [...values]], [['fast'], []]);
    assert.equal(read('--reword', 'neutral').values.get('reword'), 'neutral');
  });

  it('narrow an area by a case', () => {
    const { isWanted } = read('--area', 'path', '--case', 'path-001');
    assert.deepEqual([isWanted('path-001', 'path'), isWanted('path-002', 'path')], [true, false]);
  });
});
