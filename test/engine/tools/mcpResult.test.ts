import assert from 'node:assert/strict';
import { toolResultOf } from '../../../src/engine/tools/mcpResult.ts';

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
    const result = toolResultOf({ content: [image('image/png', 'AAAA'), image('image/tiff', 'AAAA')] });
    assert.deepEqual(result.images, [
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ]);
    assert.match(result.content, /^\[an image, image\/tiff, 3 bytes/);
    const large = toolResultOf({ content: [image('image/png', 'A'.repeat(6 * 1024 * 1024))] });
    assert.equal(large.images, undefined);
    assert.match(large.content, /4,718,592 bytes/);
    assert.equal(toolResultOf({ content: [image('image/png', 'AAAA')] }).content, '(an image)');
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
      '[sound, audio/wav, 6 bytes, which cannot be played to a model]',
    ]);
  });

  it('is structured content where there is no text', () => {
    const structuredContent = { degrees: 3 };
    assert.equal(toolResultOf({ structuredContent }).content, '{\n  "degrees": 3\n}');
    assert.equal(toolResultOf({ structuredContent, content: [text('3 degrees')] }).content, '3 degrees');
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
