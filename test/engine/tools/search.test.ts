/** Finding text in real files, by our own search and by ripgrep where the machine has it. */
import assert from 'node:assert/strict';
import { chmodSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findRipgrep, searchFilesTool } from '../../../src/engine/tools/search.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

const ripgrep = findRipgrep({ env: { PATH: process.env['PATH'] ?? '' } });
const engines = [undefined, ...(ripgrep ? [ripgrep] : [])];

for (const engine of engines) {
  describe(`search_files ${engine ? 'with ripgrep' : 'by ourselves'}`, () => {
    let run: TemporaryRun;
    beforeEach(() => {
      run = temporaryRun();
      run.context.env = { HOME: run.home, PATH: '' };
      run.context.ripgrep = engine;
    });
    afterEach(() => run.remove());

    const search = (input: Readonly<Record<string, unknown>>) => searchFilesTool.execute(input, run.context);
    const found = async (input: Readonly<Record<string, unknown>>): Promise<string> =>
      (await search(input)).content;

    it('gives path, line and text, sorted', async () => {
      run.put('work/b.md', 'nothing\r\nTODO two\r\n');
      run.put('work/a/deep.md', 'TODO one\nx\n  todo small\n');
      run.put('work/.hidden/c.md', 'TODO three\n');
      assert.deepEqual((await found({ pattern: 'TODO \\w+' })).split('\n').sort(), [
        '.hidden/c.md:1: TODO three',
        'a/deep.md:1: TODO one',
        'b.md:2: TODO two',
      ]);
      assert.match(
        await found({ pattern: 'todo', ignore_case: true, path: 'a' }),
        /^a\/deep.md:1: .*\na\/deep.md:3: {3}todo small$/,
      );
      assert.equal(await found({ pattern: 'TODO', path: 'b.md' }), 'b.md:2: TODO two');
      assert.equal(await found({ pattern: 'two$', path: 'b.md' }), 'b.md:2: TODO two');
      assert.equal(await found({ pattern: 'DONE' }), 'No line matches.');
    });

    it('takes a glob', async () => {
      for (const path of ['a.md', 'a.txt', 'sub/b.md']) run.put(`work/${path}`, 'x\n');
      assert.deepEqual((await found({ pattern: 'x', glob: '*.md' })).split('\n').sort(), [
        'a.md:1: x',
        'sub/b.md:1: x',
      ]);
      assert.equal(await found({ pattern: 'x', glob: 'sub/*.md' }), 'sub/b.md:1: x');
      assert.equal(await found({ pattern: 'x', glob: '!*.md' }), 'a.txt:1: x');
      for (const path of ['app/[id]/page.tsx', 'app/i/page.tsx']) run.put(`work/${path}`, 'deep\n');
      assert.equal(
        await found({ pattern: 'deep', glob: 'app/[id]/*.tsx' }),
        'app/[id]/page.tsx:1: deep\napp/i/page.tsx:1: deep',
      );
      assert.equal(await found({ pattern: 'deep', glob: '!app/[id]/*' }), 'No line matches.');
    });

    it('never looks at secrets, at Telos’s own files, at binary files or behind links', async () => {
      for (const path of ['.env', 'id_rsa', '.ssh/config', 'telos/.x', 'node_modules/m/a.js', '.git/config'])
        run.put(`work/${path}`, 'KEY=1\n');
      run.put('work/b.bin', Buffer.from('KEY=1\n\0\0'));
      run.put('outside/x.md', 'KEY=1\n');
      symlinkSync(run.outside, join(run.work, 'link'));
      run.context.protectedDirs = [join(run.work, 'telos')];
      assert.equal(await found({ pattern: 'KEY' }), 'No line matches.');
      assert.match(await found({ pattern: 'KEY', path: run.outside }), /has not been approved/);
    });

    it('cuts many lines and long ones', async () => {
      run.put('work/many.md', 'line\n'.repeat(500));
      const lines = (await found({ pattern: 'line' })).split('\n');
      assert.equal(lines.length, 201);
      assert.match(lines[200] ?? '', /^\[Cut: these are the first 200 of 500 lines/);
      run.put('work/long.md', `start ${'y'.repeat(5000)}\n`);
      const [long = ''] = (await found({ pattern: 'start' })).split('\n');
      assert.ok(long.length < 400 && long.endsWith('y…'), long);
    });

    it('says of a named file that it is too large, instead of finding nothing in it', async () => {
      run.put('work/large.md', Buffer.alloc(4 * 1024 * 1024 + 1, 'x\n'));
      assert.match(await found({ pattern: 'x', path: 'large.md' }), /4,194,305 bytes.*not searched/);
    });

    it('says what is wrong with an expression', async () => {
      run.put('work/a.md', 'x');
      const result = await search({ pattern: '(' });
      assert.equal(result.isError, true);
      assert.match(result.content, /The search failed/);
    });
  });
}

describe('search_files', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
    run.context.env = { HOME: run.home, PATH: '' };
  });
  afterEach(() => run.remove());

  it('gives up an expression that would never end', async function () {
    this.timeout(5000);
    run.put('work/a.md', `${'a'.repeat(40)}b\n`);
    const result = await searchFilesTool.execute({ pattern: '^(a+)+$' }, run.context);
    assert.match(result.content, /takes too long/);
  });

  it('uses the ripgrep on the PATH, hides what it finds in secret files, and stops it when there is enough', async () => {
    const program = run.put(
      'bin/rg',
      `#!/bin/sh
for last; do :; done
printf '%s/.env\\0001:KEY=1\\n%s/a.md\\0007:%s\\n' "$last" "$last" "$1"
while :; do printf '%s/many.md\\0001:x\\n' "$last"; done
`,
    );
    chmodSync(program, 0o755);
    run.put('work/.env', 'KEY=1\n');
    run.put('work/a.md', `${'\n'.repeat(6)}--no-config\n`);
    run.put('work/many.md', 'x\n');
    run.context.env = { PATH: ['relative', join(run.root, 'bin')].join(delimiter) };
    const { content, isError } = await searchFilesTool.execute({ pattern: 'x' }, run.context);
    const lines = content.split('\n');
    assert.equal(isError, false);
    assert.deepEqual([lines[0], lines.length], ['a.md:7: --no-config', 201]);
  });

  it('shows no line that ripgrep read behind a link that came in the place of a folder', async () => {
    run.put('work/d/notes.md', 'mine\n');
    run.put('outside/private.md', 'PRIVATE\n');
    const found = ['d/notes.md\\0001:mine', 'd/notes.md\\0002:PRIVATE', 'd/private.md\\0001:PRIVATE'];
    symlinkSync(run.outside, join(run.work, 'e'));
    const lines = [...found, 'e/private.md\\0001:PRIVATE'].join('\\n');
    chmodSync(run.put('bin/rg', `#!/bin/sh\nprintf '${lines}\\n'\n`), 0o755);
    run.context.env = { PATH: join(run.root, 'bin') };
    const { content } = await searchFilesTool.execute({ pattern: 'x' }, run.context);
    assert.equal(content, 'd/notes.md:1: mine');
  });
});
