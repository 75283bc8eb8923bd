/** Files in other encodings than UTF-8: read as they are, named, changed in one place, and written back in the same form. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { attachmentOf } from '../../../src/engine/files/attachedFile.ts';
import { decodeText, encodeText, formOf } from '../../../src/engine/files/textEncoding.ts';
import { readFileTool } from '../../../src/engine/tools/files.ts';
import { editFileTool, writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

const swapped = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
const marked = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');
/** The euro sign and the dash are what tells Windows-1252 from ISO-8859-1. */
const windows = Buffer.from('caf\xe9 5 \x80 \x96 na\xefve\r\nend\r\n', 'latin1');
const mixed = Buffer.concat([
  Buffer.from('größe = 1\nname = '),
  Buffer.from([0xe9, 0x0a]),
  Buffer.from('last = 2\n'),
]);

describe('a file in another encoding', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  const read = async (path: string, more: object = {}): Promise<string> =>
    (await readFileTool.execute({ path, ...more }, run.context)).content;
  const edit = (path: string, old_text: string, new_text: string) =>
    editFileTool.execute({ path, old_text, new_text }, run.context);
  const write = (path: string, content: string) => writeFileTool.execute({ path, content }, run.context);

  const rows: readonly (readonly [name: string, bytes: Buffer, text: string, says: RegExp])[] = [
    ['UTF-16 LE', marked('eins\r\nzwei €\r\n'), 'eins\r\nzwei €\r\n', /The file is UTF-16 LE with BOM/],
    ['UTF-16 BE', swapped('\ufeffone 👍\ntwo\n'), 'one 👍\ntwo\n', /The file is UTF-16 BE with BOM/],
    [
      'UTF-16 without a mark',
      Buffer.from('a long line\r\n', 'utf16le'),
      'a long line\r\n',
      /The file is UTF-16 LE\./,
    ],
    ['Windows-1252', windows, 'café 5 € – naïve\r\nend\r\n', /The file is Windows-1252/],
  ];
  for (const [name, bytes, text, says] of rows) {
    it(`is read as its author wrote it, and its encoding is said: ${name}`, async () => {
      run.put('work/a.txt', bytes);
      const seen = await read('a.txt');
      assert.ok(seen.startsWith(text), JSON.stringify(seen));
      assert.match(seen, says);
      assert.ok((await read('a.txt', { offset: 2, limit: 1 })).startsWith(text.split('\n')[1] ?? ''));
    });

    it(`stays in it when it is edited, to the byte: ${name}`, async () => {
      const file = run.put('work/a.txt', bytes);
      const old = text.slice(0, 3);
      const result = await edit('a.txt', old, 'NEW\nLINE');
      assert.equal(result.isError, false, result.content);
      const ends = text.includes('\r\n') ? 'NEW\r\nLINE' : 'NEW\nLINE';
      const form = formOf(bytes)!;
      assert.deepEqual(readFileSync(file), encodeText(text.replace(old, ends), form));
      assert.equal((await edit('a.txt', ends, old)).isError, false);
      assert.deepEqual(readFileSync(file), bytes);
    });

    it(`stays in it when it is written anew: ${name}`, async () => {
      const file = run.put('work/a.txt', bytes);
      const result = await write('a.txt', 'x é\ny\n');
      const form = formOf(bytes)!;
      assert.deepEqual(formOf(readFileSync(file))?.mark, form.mark);
      const kept = text.includes('\r\n') ? 'x é\r\ny\r\n' : 'x é\ny\n';
      assert.equal(decodeText(readFileSync(file), form), kept);
      assert.match(result.content, /It is still (UTF-16|Windows-1252)/);
    });
  }

  it('is read for an attachment as well', () => {
    const attachment = attachmentOf({ name: 'a.txt', bytes: marked('größe') });
    assert.equal(attachment.kind === 'text' && attachment.text, 'größe');
  });

  it('is not changed where the new text has a character that its encoding lacks', async () => {
    const file = run.put('work/a.txt', windows);
    const result = await edit('a.txt', 'end', '→');
    assert.match(result.content, /is Windows-1252, which has no '→'/);
    assert.deepEqual(readFileSync(file), windows);
  });

  it('becomes UTF-8 when the whole is written with such a character, which is said', async () => {
    const file = run.put('work/a.txt', windows);
    const result = await write('a.txt', '→\n');
    assert.match(result.content, /was Windows-1252, which has no '→', and is UTF-8 now/);
    assert.equal(readFileSync(file, 'utf8'), '→\r\n');
  });

  it('keeps the bytes that are no text when the text around them is edited', async () => {
    const file = run.put('work/a.ini', mixed);
    assert.match(await read('a.ini'), /größe = 1\nname = \ufffd\nlast = 2/);
    assert.equal((await edit('a.ini', 'größe = 1', 'Größe = 3')).isError, false);
    assert.equal((await edit('a.ini', 'last = 2', 'last = ü')).isError, false);
    const wanted = Buffer.concat([
      Buffer.from('Größe = 3\nname = '),
      Buffer.from([0xe9, 0x0a]),
      Buffer.from('last = ü\n'),
    ]);
    assert.deepEqual(readFileSync(file), wanted);
  });

  it('never has what reading lost written over it', async () => {
    const file = run.put('work/a.ini', mixed);
    const whole = await write('a.ini', 'größe = 1\nname = \ufffd\nlast = 2\n');
    assert.match(whole.content, /stands for a character that reading a\.ini lost/);
    assert.match(
      (await edit('a.ini', 'name = \ufffd', 'name = x')).content,
      /stands for bytes that are no text/,
    );
    assert.match((await edit('a.ini', 'last = 2', 'last = \ufffd')).content, /Nothing was changed/);
    assert.deepEqual(readFileSync(file), mixed);
    const cut = Buffer.from('half of an é').subarray(0, -1);
    const end = run.put('work/cut.txt', cut);
    assert.equal((await edit('cut.txt', 'half', 'a half')).isError, false);
    assert.deepEqual(readFileSync(end), Buffer.concat([Buffer.from('a '), cut]));
  });

  it('may hold U+FFFD itself', async () => {
    const file = run.put('work/a.md', 'it is \ufffd\n');
    assert.equal((await write('a.md', 'it was \ufffd\n')).isError, false);
    assert.equal(readFileSync(file, 'utf8'), 'it was \ufffd\n');
  });

  it('is told from what is no text', async () => {
    const noise = Buffer.from(
      Array.from({ length: 4_000 }, (_, at) => (at * 7919 + (at >> 3) * 104_729) % 256),
    );
    assert.equal(formOf(noise), undefined);
    assert.equal(formOf(Buffer.concat([Buffer.from([0xff, 0xfe]), noise])), undefined);
    const pixels = Buffer.from(Array.from({ length: 400 }, (_, at) => (at % 2 === 0 ? (at * 31) % 256 : 0)));
    assert.equal(formOf(pixels), undefined);
    run.put('work/a.bin', noise);
    assert.match((await edit('a.bin', 'a', 'b')).content, /is not text/);
  });
});

describe('write_file over a file', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  it('keeps line ends of CR and LF and the byte order mark', async () => {
    const file = run.put('work/a.ps1', '\ufeff$a = 1\r\n$b = 2\r\n');
    const result = await writeFileTool.execute({ path: 'a.ps1', content: '$a = 1\n$b = 3\n' }, run.context);
    assert.equal(readFileSync(file, 'utf8'), '\ufeff$a = 1\r\n$b = 3\r\n');
    assert.match(result.content, /still UTF-8 with BOM\. Its line ends stay CRLF/);
  });

  it('takes over no line ends from a file that has several kinds, or none', async () => {
    for (const before of ['a\r\nb\nc', 'a\rb\r', 'alone', '']) {
      const file = run.put('work/a.txt', before);
      await writeFileTool.execute({ path: 'a.txt', content: 'x\ny\n' }, run.context);
      assert.equal(readFileSync(file, 'utf8'), 'x\ny\n', JSON.stringify(before));
    }
  });
});

describe('edit_file in a file whose lines end with CR', () => {
  it('matches text with other line ends and keeps them', async () => {
    const run = temporaryRun();
    try {
      const file = run.put('work/a.txt', 'a\rb\rc\r');
      await editFileTool.execute({ path: 'a.txt', old_text: 'a\nb', new_text: 'A\nB' }, run.context);
      assert.equal(readFileSync(file, 'utf8'), 'A\rB\rc\r');
    } finally {
      run.remove();
    }
  });
});
