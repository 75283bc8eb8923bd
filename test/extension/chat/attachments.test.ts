import assert from 'node:assert/strict';
import {
  AttachError,
  AttachmentList,
  attachmentOf,
  mentionsIn,
  textAttachment,
} from '../../../src/extension/chat/attachments.ts';
import { maxImageBytes, type TextAttachment } from '../../../src/protocol/attachment.ts';

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const text = (content: string, name = 'a.ts') => attachmentOf({ name, bytes: Buffer.from(content) });

describe('attachmentOf', () => {
  it('takes an image for one by its bytes, whatever its name', () => {
    const image = attachmentOf({ name: 'notes.txt', bytes: png });
    assert.deepEqual(image, {
      kind: 'image',
      name: 'notes.txt',
      mediaType: 'image/png',
      data: png.toString('base64'),
    });
  });

  it('takes a PDF for a document, and refuses one that is too large', () => {
    const pdf = Buffer.from('%PDF-1.7\n\x00\xff');
    const document = attachmentOf({ name: 'plan.txt', bytes: pdf });
    assert.deepEqual(document, {
      kind: 'document',
      name: 'plan.txt',
      mediaType: 'application/pdf',
      data: pdf.toString('base64'),
    });
    assert.throws(() => attachmentOf({ name: 'a.pdf', bytes: pdf, size: 9_000_000 }), {
      message: 'a.pdf was not attached: it has 9.0 MB, and documents can have at most 8.0 MB.',
    });
    const list = new AttachmentList();
    list.add(document);
    assert.deepEqual([list.chips[0]?.kind, list.chips[0]?.detail], ['document', '1 KB, PDF']);
  });

  it('refuses what a model cannot read, and says what and why', () => {
    const zip = Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(40)]);
    assert.throws(() => attachmentOf({ name: 'photo.png', bytes: zip }), {
      message: /^photo\.png was not attached: it is neither text nor a file that models read/,
    });
    const large = Buffer.concat([png, Buffer.alloc(maxImageBytes)]);
    assert.throws(() => attachmentOf({ name: 'wall.png', bytes: large }), /wall\.png .* 3\.8 MB/);
    assert.throws(() => attachmentOf({ name: 'part.png', bytes: png, size: 2_000 }), AttachError);
  });

  it('cuts a long text, and says how long it was', () => {
    const whole = text('x'.repeat(1_000));
    assert.ok(whole.kind === 'text' && whole.wholeSize === undefined);
    const cut = text('y'.repeat(100_000));
    assert.ok(cut.kind === 'text' && cut.text.length === 64_000 && cut.wholeSize === 100_000);
    const start = attachmentOf({ name: 'log', bytes: Buffer.from('z\n'), size: 5_000_000 });
    assert.ok(start.kind === 'text' && start.wholeSize === 5_000_000);
  });
});

describe('AttachmentList', () => {
  it('gives everything to one request, then nothing', () => {
    const list = new AttachmentList();
    list.add(text('one'));
    list.add(attachmentOf({ name: 'b.png', bytes: png }), { thumbnail: 'data:image/png;base64,AA' });
    assert.deepEqual(
      list.chips.map(({ name, detail, thumbnail }) => [name, detail, thumbnail !== undefined]),
      [
        ['a.ts', '1 line', false],
        ['b.png', '1 KB, image', true],
      ],
    );
    assert.deepEqual(
      list.take().map(({ name }) => name),
      ['a.ts', 'b.png'],
    );
    assert.deepEqual([list.chips, list.take()], [[], []]);
  });

  it('holds a mention once, as it is now, and lets it be taken away', () => {
    const list = new AttachmentList();
    list.add(text('old', 'Selection of a'), { mention: 'selection' });
    list.add(text('new\nlines', 'Selection of b'), { mention: 'selection' });
    assert.deepEqual(
      list.chips.map(({ name, detail }) => [name, detail]),
      [['Selection of b', '2 lines']],
    );
    assert.ok(list.holds('selection'));
    list.remove(list.chips[0]?.id ?? '');
    assert.equal(list.holds('selection'), false);
  });

  it('says how large each thing is: kilobytes of a picture or a PDF, lines of a text', () => {
    const list = new AttachmentList();
    const data = 'A'.repeat(8_000);
    list.add({ kind: 'image', name: 'a.png', mediaType: 'image/png', data });
    list.add({ kind: 'document', name: 'a.pdf', mediaType: 'application/pdf', data });
    list.add(text('one\ntwo\n'));
    list.add({ ...text('one\ntwo'), name: 'b', wholeSize: 5_400 } as TextAttachment);
    assert.deepEqual(
      list.chips.map(({ detail }) => detail),
      ['6 KB, image', '6 KB, PDF', '2 lines', 'the first 2 lines of 5 KB'],
    );
  });

  it('takes the same file again in the place of the older, and no two things for the same', () => {
    const list = new AttachmentList();
    const at = (path: string, name: string) => ({ ...textAttachment(name, 'x'), path });
    list.add(at('/w/a.ts', 'old'));
    list.add(at('/w/b.ts', 'other'));
    list.add(at('/w/a.ts', 'new'));
    list.add(textAttachment('loose', 'x'));
    list.add(textAttachment('loose', 'x'));
    const picture = attachmentOf({ name: 'a.png', bytes: png });
    list.add(picture, { mention: 'a' });
    list.add(picture, { mention: 'b' });
    list.add(textAttachment('mentioned', 'x'), { mention: 'a' });
    list.add({ ...picture, name: 'newer.png' }, { mention: 'a' });
    assert.deepEqual(
      list.chips.map(({ name }) => name),
      ['other', 'new', 'loose', 'loose', 'a.png', 'mentioned', 'newer.png'],
    );
    assert.deepEqual([list.holds('b'), list.holds('c')], [true, false]);
    list.remove('none');
    assert.equal(list.chips.length, 7);
  });

  it('cuts a text that no file has, and says how long it was', () => {
    const short = textAttachment('Problems', 'x'.repeat(64_000));
    assert.deepEqual([short.text.length, short.wholeSize, short.language], [64_000, undefined, '']);
    const long = textAttachment('Problems', 'ü'.repeat(64_001), 'log');
    assert.deepEqual([long.text.length, long.wholeSize, long.language], [64_000, 128_002, 'log']);
  });

  it('takes no more than a request can carry', () => {
    const list = new AttachmentList();
    for (let count = 0; count < 20; count++) list.add(text('x', `${count}`));
    assert.throws(
      () => list.add(text('x', 'one more')),
      /one more was not attached: the maximum is 20 attachments/,
    );
    list.remove(list.chips[19]?.id ?? '');
    list.add(text('x', 'one more'));
    assert.equal(list.chips.length, 20);
  });
});

describe('mentionsIn', () => {
  it('finds words behind an @, each once and without the end of a sentence', () => {
    assert.deepEqual(mentionsIn('see @src/a.ts, (@selection) and @src/a.ts. Or @b.md?'), [
      'src/a.ts',
      'selection',
      'b.md',
    ]);
  });

  it('finds none in addresses', () => {
    assert.deepEqual(mentionsIn('see @beds:demo://a and @src/a.ts:12, @b:'), ['src/a.ts', 'b']);
    assert.deepEqual(mentionsIn('ada@example.com, npm i x@2, @ and https://a.b/@c'), []);
  });
});
