/** Changing one place of a real file. */
import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { editFileTool } from '../../../src/engine/tools/writeFiles.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('edit_file', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  const edit = (path: string, old_text: string, new_text: string, more: object = {}) =>
    editFileTool.execute({ path, old_text, new_text, ...more }, run.context);
  const read = (path: string): string => readFileSync(path, 'utf8');

  it('replaces the one place, keeps the mode and leaves nothing beside it', async () => {
    const file = run.put('work/notes/a.md', 'one\ntwo $& three\n');
    chmodSync(file, 0o640);
    const result = await edit('notes/a.md', 'two $& ', "2 $' ");
    assert.deepEqual(
      [result.content, result.isError, result.changedFiles],
      ["Changed one place of notes/a.md.\n    2\t2 $' three", false, [file]],
    );
    assert.equal(read(file), "one\n2 $' three\n");
    assert.equal(statSync(file).mode & 0o777, 0o640);
    assert.deepEqual(readdirSync(join(run.work, 'notes')), ['a.md']);
  });

  it('says how often a text stands there, and replaces all when told to', async () => {
    const file = run.put('work/a.md', 'x x x');
    assert.match((await edit('a.md', 'x', 'y')).content, /occurs 3 times/);
    assert.equal(read(file), 'x x x');
    assert.match(
      (await edit('a.md', 'x', 'y', { replace_all: true })).content,
      /^Changed 3 places of a\.md\.\n/,
    );
    assert.equal(read(file), 'y y y');
  });

  it('keeps line ends and the byte order mark', async () => {
    const file = run.put('work/a.md', '\uFEFFone\r\ntwo\r\nthree\r\n');
    await edit('a.md', 'one\ntwo\n', 'one\nand\ntwo\n');
    assert.equal(read(file), '\uFEFFone\r\nand\r\ntwo\r\nthree\r\n');
    await edit('a.md', 'and', 'or\nelse');
    assert.equal(read(file), '\uFEFFone\r\nor\r\nelse\r\ntwo\r\nthree\r\n');
    const unix = run.put('work/b.md', 'one\ntwo\n');
    await edit('b.md', 'one\r\ntwo', 'three\r\nfour');
    assert.equal(read(unix), 'three\nfour\n');
  });

  it('does not try to put together what would be larger than any file it writes', async () => {
    const file = run.put('work/a.md', 'x'.repeat(200_000));
    const result = await edit('a.md', 'x', 'é'.repeat(4000), { replace_all: true });
    assert.match(result.content, /would have 1,600,000,000 bytes; at most 16,777,216/);
    assert.equal(read(file).length, 200_000);
  });

  it('changes a file of any size up to 16 MiB, to the byte', async () => {
    for (const size of [256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 16 * 1024 ** 2 - 1]) {
      const file = run.put('work/a.md', `${'x'.repeat(size - 3)}end`);
      assert.equal((await edit('a.md', 'end', 'END!')).isError, false, String(size));
      assert.equal(read(file), `${'x'.repeat(size - 3)}END!`);
    }
    run.put('work/a.md', 'x'.repeat(16 * 1024 ** 2 + 1));
    assert.match(
      (await edit('a.md', 'x', 'y')).content,
      /16,777,217 bytes; at most 16,777,216 can be edited/,
    );
  });

  it('changes nothing where it cannot do exactly what was asked', async () => {
    const file = run.put('work/a.md', 'text');
    const binary = run.put('work/b.bin', Buffer.from([0x66, 0, 0xff, 0xfe]));
    const rows: readonly (readonly [path: string, old: string, replacement: string, says: RegExp])[] = [
      ['a.md', 'Text', 'x', /was not found in a\.md; it must match exactly/],
      ['a.md', '', 'x', /is empty/],
      ['a.md', 'text', 'text', /are the same/],
      ['b.bin', 'f', 'g', /is not text/],
      ['none.md', 'a', 'b', /does not exist/],
      ['../outside/a.md', 'a', 'b', /outside this workspace/],
    ];
    for (const [path, old, replacement, says] of rows) {
      const result = await edit(path, old, replacement);
      assert.equal(result.isError, true, path);
      assert.match(result.content, says);
    }
    assert.equal(read(file), 'text');
    assert.equal(readFileSync(binary).length, 4);
  });
});
