/** Finding files by name in real folders. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { globMatcher } from '../../../src/engine/files/globPattern.ts';
import { globTool, walkFiles } from '../../../src/engine/tools/glob.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('glob', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  const glob = async (pattern: string, path?: string): Promise<string> =>
    (await globTool.execute({ pattern, ...(path ? { path } : {}) }, run.context)).content;

  it('finds files at any depth, sorted, and passes by what is nobody’s business', async () => {
    for (const path of [
      'b.md',
      'a.txt',
      'sub/deep/c.md',
      '.hidden/d.md',
      'node_modules/x/e.md',
      '.git/f.md',
      'telos/g.md',
    ])
      run.put(`work/${path}`);
    run.put('outside/h.md');
    symlinkSync(run.outside, join(run.work, 'link'));
    run.context.protectedDirs = [join(run.work, 'telos')];
    assert.equal(await glob('**/*.md'), '.hidden/d.md\nb.md\nsub/deep/c.md');
    assert.equal(await glob('*.{md,txt}'), 'a.txt\nb.md');
    assert.equal(await glob('*.md', 'sub/deep'), 'sub/deep/c.md');
    assert.equal(await glob('*.rs'), 'No file matches *.rs.');
  });

  it('gives absolute paths outside the working folder, and refuses what was not approved', async () => {
    const file = run.put('pack/skills/one/data/x.csv');
    assert.equal(await glob('**/*.csv', run.skill), file);
    assert.match(await glob('*', run.outside), /has not been approved/);
  });

  it('shows nothing behind a link that came in the place of a folder after its path was checked', async () => {
    run.put('work/d/sub/ok.md');
    run.put('outside/private.md');
    run.put('outside/sub/private.md');
    const walked = async (): Promise<string[]> => {
      const names: string[] = [];
      for await (const { name } of walkFiles(join(run.work, 'd'), run.context, { isCut: false }))
        names.push(name);
      return names;
    };
    assert.deepEqual(await walked(), ['sub/ok.md']);
    renameSync(join(run.work, 'd/sub'), join(run.work, 'gone'));
    run.put('work/d/first.md');
    const walk = walkFiles(join(run.work, 'd'), run.context, { isCut: false });
    mkdirSync(join(run.work, 'd/sub'));
    assert.equal((await walk.next()).value?.name, 'first.md');
    rmdirSync(join(run.work, 'd/sub'));
    symlinkSync(run.outside, join(run.work, 'd/sub'));
    assert.equal((await walk.next()).done, true);
    renameSync(join(run.work, 'd'), join(run.work, 'e'));
    symlinkSync(run.outside, join(run.work, 'd'));
    assert.deepEqual(await walked(), []);
  });
});

describe('globMatcher', () => {
  it('takes no longer the more signs wait for an end that never comes', () => {
    for (const sign of ['{,', '[', '{', '[!]'])
      assert.equal(globMatcher(sign.repeat(60_000))('a'), false, sign);
    assert.equal(globMatcher('[[]{x[a]')('[{xa'), true);
  });

  const rows: readonly (readonly [pattern: string, yes: readonly string[], no: readonly string[]])[] = [
    ['*.ts', ['a.ts', '.ts'], ['a/b.ts', 'a.tsx']],
    ['**/*.ts', ['a.ts', 'a/b/c.ts'], ['a.js']],
    ['src/**', ['src/a', 'src/a/b'], ['a', 'lib/a']],
    ['src/**/t?st/[a-c]*.md', ['src/test/b.md', 'src/x/y/tast/abc.md'], ['src/test/d.md', 'src/tst/a.md']],
    ['{a,b/{c,d}}.md', ['a.md', 'b/c.md', 'b/d.md'], ['c.md']],
    ['[!x]?.[^y]', ['ab.z'], ['xb.z', 'ab.y']],
    ['./a[].md', ['a[].md'], ['a.md']],
    ['app/[id]/[a-c].tsx', ['app/[id]/b.tsx', 'app/i/[a-c].tsx'], ['app/id/b.tsx', 'app/[id]/d.tsx']],
    ['**/[...slug].*', ['[...slug].ts', 'a/[...slug].md', 's.ts'], ['a/slug.ts']],
  ];
  for (const [pattern, yes, no] of rows) {
    it(pattern, () => {
      const matches = globMatcher(pattern);
      assert.deepEqual([...yes, ...no].filter(matches), yes);
    });
  }

  it('looks at the name alone when a pattern may match anywhere', () => {
    assert.equal(globMatcher('*.ts', true)('a/b.ts'), true);
    assert.equal(globMatcher('b/*.ts', true)('a/b/c.ts'), false);
  });

  it('answers at once whatever the pattern', function () {
    this.timeout(1000);
    assert.equal(globMatcher('*a'.repeat(30))('a'.repeat(500).concat('b')), false);
    assert.equal(globMatcher('**/'.repeat(40).concat('x'))('a/'.repeat(200)), false);
    globMatcher('{a,b}'.repeat(40))('a');
  });
});
