import assert from 'node:assert/strict';
import { join } from 'node:path';
import { writeDiff } from '../../../src/engine/changes/lineDiff.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('the lines that a write would change', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'a.txt': 'one\ntwo\nthree\nfour\nfive\nsix\n', 'b.bin': new Uint8Array([0, 1]) });
  });
  afterEach(() => folder.remove());
  const write = (name: string, content: string): Promise<string | undefined> =>
    writeDiff({ id: '1', name: 'write_file', input: { path: name, content } }, join(folder.path, name));

  it('stand with what is around them', async () => {
    const after = 'one\ntwo\nthree\nFOUR\nfour\nfive\nsix\n';
    assert.equal(
      await write('a.txt', after),
      '@@ -1,6 +1,7 @@\n one\n two\n three\n+FOUR\n four\n five\n six',
    );
  });

  it('are all of a new file, and say what cannot be shown', async () => {
    assert.equal(await write('new.txt', 'x\ny\n'), '(a new file)\n+x\n+y');
    assert.equal(await write('new.txt', ''), '(a new file)');
    assert.equal(
      await write('b.bin', 'x'),
      '(replaces 2 bytes that are not text)\n+x\n\\ No newline at end of file',
    );
  });

  it('are the pieces of an edit', async () => {
    const input = { path: 'a.txt', old_text: 'two', new_text: 'TWO' };
    assert.equal(await writeDiff({ id: '1', name: 'edit_file', input }, ''), '-two\n+TWO');
    const everywhere = { ...input, replace_all: true };
    assert.equal(
      await writeDiff({ id: '1', name: 'edit_file', input: everywhere }, ''),
      '(everywhere)\n-two\n+TWO',
    );
  });

  it('are none of a call that writes no file', async () => {
    const input = { path: 'a.txt', content: 'x' };
    assert.equal(
      await writeDiff({ id: '1', name: 'send_mail', input }, join(folder.path, 'a.txt')),
      undefined,
    );
  });

  it('are all there, whatever signs in them look like the end of a line', async () => {
    const trap = 'echo a\u2028@@; evil\r@@; more evil';
    assert.equal(await write('new.txt', `${trap}\nx\n`), `(a new file)\n+${trap}\n+x`);
    const input = { path: 'a.txt', old_text: 'two', new_text: trap };
    assert.equal(await writeDiff({ id: '1', name: 'edit_file', input }, ''), `-two\n+${trap}`);
  });

  it('are cut where nobody reads on, and say so', async () => {
    const long = `x\n${'y'.repeat(399_999)}`;
    assert.match(
      (await write('a.txt', long)) ?? '',
      /^\(replaces 28 bytes; the last 137,857 of 400,001 characters are not shown\)\n\+x\n\+yy/,
    );
    const input = { path: 'a.txt', old_text: 'two', new_text: long };
    assert.match(
      (await writeDiff({ id: '1', name: 'edit_file', input }, '')) ?? '',
      /^\(of what comes, the last 137,857 of 400,001 characters are not shown\)\n-two\n\+x\n/,
    );
  });

  it('are shown however many there are', async () => {
    const count = 131_000;
    const shown = await write('new.txt', 'x\n'.repeat(count));
    assert.equal(shown?.length, '(a new file)\n'.length + count * 3 - 1);
  });
});
