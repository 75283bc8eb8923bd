import assert from 'node:assert/strict';
import { pathsInProse, placeIn } from '../../webview/fileLinks.ts';
import { assertGrowsWithSize } from '../growth.ts';

describe('paths in an answer', () => {
  it('are read with their lines, in each way of writing them', () => {
    const read: [string, object][] = [
      ['src/run/loop.ts', { path: 'src/run/loop.ts' }],
      ['src/run/loop.ts:12', { path: 'src/run/loop.ts', line: 12 }],
      ['loop.ts:12:5', { path: 'loop.ts', line: 12 }],
      ['loop.ts:12-20', { path: 'loop.ts', line: 12, endLine: 20 }],
      ['./a/b.md#L3', { path: './a/b.md', line: 3 }],
      ['a.md#L3-L9', { path: 'a.md', line: 3, endLine: 9 }],
      ['a.md:9-3', { path: 'a.md', line: 9 }],
      ['/home/ada/a.md', { path: '/home/ada/a.md' }],
      ['C:\\notes\\a.ts:7', { path: 'C:\\notes\\a.ts', line: 7 }],
      ['src\\a.ts', { path: 'src\\a.ts' }],
      ['file:///home/ada/my%20notes.md#L2', { path: '/home/ada/my notes.md', line: 2 }],
      ['file:///C:/notes/a.ts', { path: 'C:/notes/a.ts' }],
    ];
    for (const [text, place] of read) assert.deepEqual(placeIn(text), place, text);
  });

  it('are not addresses, other machines, code or plain words', () => {
    const others = [
      'https://a.b/c.ts',
      'file://server/share/a.txt',
      '//server/a.txt',
      '\\\\server\\a.txt',
      'file:////server/a',
    ];
    const words = [
      'word',
      'a b',
      '..',
      './',
      'src/',
      'f(x) => `a/b`',
      'a:b:c.d',
      'command:x.y',
      'javascript:alert(1).a',
      'file:///%zz.md',
      '',
    ];
    for (const text of [...others, ...words, `a/${'b'.repeat(400)}`])
      assert.equal(placeIn(text), undefined, text);
  });

  it('are found in words with a folder before them or a line behind them', () => {
    const found = (text: string) => pathsInProse(text).map(one => one.text);
    assert.deepEqual(found('See src/a.ts:12, ./b.md and loop.ts:4-9. Then C:\\x\\y.ts.'), [
      'src/a.ts:12',
      './b.md',
      'loop.ts:4-9',
      'C:\\x\\y.ts',
    ]);
    assert.deepEqual(found('Version 1.2, e.g. a.b, at https://a.b/c/d.ts'), []);
  });

  it('cost no time in a text that was made to', () => {
    const made: readonly ((long: number) => string)[] = [
      long => 'a.'.repeat(long / 2),
      long => 'a/'.repeat(long / 2),
      long => '/'.repeat(long),
      long => 'a-'.repeat(long / 2),
      long => `${'a'.repeat(long)}!`,
    ];
    for (const text of made)
      for (const look of [pathsInProse, placeIn])
        assertGrowsWithSize(100_000, long => void look(text(long)), `${look.name} of ${text(4)}`);
  });
});
