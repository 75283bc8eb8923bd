import assert from 'node:assert/strict';
import { progressOf, toolResultOf } from '../../../src/engine/mcp/result.ts';

const png = 'iVBORw0KGgoA';

describe('the answer of an MCP tool', () => {
  const text = (content: string) => ({ type: 'text', text: content });

  it('is its texts, and whether it failed', () => {
    assert.deepEqual(toolResultOf({ content: [text('a'), text('b')] }), {
      content: 'a\n\nb',
      isError: false,
    });
    assert.deepEqual(toolResultOf({ content: [text('no')], isError: true }), {
      content: 'no',
      isError: true,
    });
  });

  it('has images that a model can take, and says what it cannot', () => {
    const image = (mimeType: string, data: string) => ({ type: 'image', mimeType, data });
    const result = toolResultOf({ content: [image('image/png', png), image('image/tiff', 'AAAA')] });
    assert.deepEqual(result.images, [
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
    ]);
    assert.match(result.content, /^\[an image, image\/tiff, 3 bytes/);
    const large = toolResultOf({ content: [image('image/png', png + 'A'.repeat(6 * 1024 * 1024))] });
    assert.equal(large.images, undefined);
    assert.match(large.content, /4,718,601 bytes/);
    assert.equal(toolResultOf({ content: [image('image/png', png)] }).content, '(an image)');
  });

  it('has no image that a provider would refuse, with everything else that is asked', () => {
    const jpeg = '/9j/4AAQSkZJRg==';
    const written = [
      ['image/png', ''],
      ['image/png', 'no base64!'],
      ['image/png', jpeg],
      ['image/jpg', `data:image/jpeg;base64,${jpeg}`],
      ['', `${jpeg.slice(0, 8)}\n${jpeg.slice(8, -2)}`],
    ];
    const { content, images } = toolResultOf({
      content: written.map(([mimeType, data]) => ({ type: 'image', mimeType, data })),
    });
    assert.deepEqual(
      images?.map(({ source }) => [source.media_type, source.data]),
      [1, 2, 3].map(() => ['image/jpeg', jpeg]),
    );
    assert.equal(content.match(/the model cannot read it/g)?.length, 2);
  });

  it('tells resources and sound in words', () => {
    const { content } = toolResultOf({
      content: [
        {
          type: 'resource_link',
          name: 'log',
          uri: 'file:///log',
          mimeType: 'text/plain',
          description: 'the log',
        },
        { type: 'resource', resource: { uri: 'demo://1', text: 'inside' } },
        { type: 'resource', resource: { uri: 'demo://2', mimeType: 'application/zip', blob: 'AAAA' } },
        { type: 'audio', mimeType: 'audio/wav', data: 'AAAAAAAA' },
      ],
    });
    assert.deepEqual(content.split('\n\n'), [
      '[resource log: file:///log (text/plain, the log)]',
      '[resource demo://1]\ninside',
      '[resource demo://2: application/zip, 3 bytes, not shown]',
      '[sound, audio/wav, 6 bytes, not played: the model cannot hear it]',
    ]);
  });

  it('is structured content where no text says the same', () => {
    const structuredContent = { degrees: 3, at: ['noon'] };
    const written = JSON.stringify(structuredContent, null, 2);
    const contentOf = (...texts: string[]) =>
      toolResultOf({ structuredContent, content: texts.map(text) }).content;
    assert.equal(toolResultOf({ structuredContent }).content, written);
    assert.equal(contentOf('{"at":["noon"],"degrees":3}'), '{"at":["noon"],"degrees":3}');
    assert.equal(contentOf('One place was found.'), `One place was found.\n\n${written}`);
    assert.equal(contentOf('It has 3 degrees at noon.'), 'It has 3 degrees at noon.');
    assert.equal(contentOf('13.5 degrees at noon'), `13.5 degrees at noon\n\n${written}`);
    assert.equal(contentOf('{"degrees":4}'), `{"degrees":4}\n\n${written}`);
  });

  it('shows an image that comes as a resource', () => {
    const resource = (mimeType: string, blob: string) => ({
      type: 'resource',
      resource: { uri: 'demo://1', mimeType, blob },
    });
    const { content, images } = toolResultOf({
      content: [resource('image/png', png), resource('image/tiff', 'AAAA')],
    });
    assert.equal(images?.length, 1);
    assert.match(
      content,
      /^\[resource demo:\/\/1, an image\]\n\n\[resource demo:\/\/1: image\/tiff, 3 bytes/,
    );
  });

  it('is something to read whatever comes', () => {
    assert.equal(toolResultOf({}).content, '(the tool returned nothing)');
    assert.equal(toolResultOf({ content: 'x' }).content, '(the tool returned nothing)');
    assert.equal(
      toolResultOf({ content: [null, { type: 'hologram', x: 1 }] }).content,
      '{}\n\n{"type":"hologram","x":1}',
    );
  });
});

describe('the progress of an MCP call', () => {
  it('is one short line and a share, whatever its server sends', () => {
    assert.deepEqual(progressOf({ progress: 3 }), ['3']);
    assert.deepEqual(progressOf({ progress: 1, total: 4, message: 'Copies' }), ['Copies (1 of 4)', 0.25]);
    assert.deepEqual(progressOf({ progress: 9, total: 4 }), ['9 of 4', 1]);
    assert.deepEqual(progressOf({ progress: 2, total: 0 }), ['2 of 0']);
    const [text] = progressOf({ progress: 1, message: `\u001b[2J\n\u202e${'x'.repeat(1_000_000)}` });
    assert.match(text, /^[ -~…]+$/);
    assert.ok(text.length < 250);
  });
});
