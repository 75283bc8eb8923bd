/** A picture that a model refuses for its size does not end the conversation. */
import assert from 'node:assert/strict';
import { createAnthropic } from '../../../src/engine/providers/anthropic.ts';
import { mediaAware } from '../../../src/engine/providers/media.ts';
import type { Message } from '../../../src/protocol/run.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc(40)]);

function png(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

/** With a segment before that of the size. */
function jpeg(width: number, height: number): Buffer {
  const size = Buffer.from([0xff, 0xc0, 0, 17, 8, 0, 0, 0, 0, 3]);
  size.writeUInt16BE(height, 5);
  size.writeUInt16BE(width, 7);
  return padded(Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, 6, 1, 2, 3, 4]), size]));
}

function gif(width: number, height: number): Buffer {
  const bytes = Buffer.from('GIF89a\0\0\0\0');
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return padded(bytes);
}

describe('a picture that is too large for a model', () => {
  const kinds = { 'image/png': png, 'image/jpeg': jpeg, 'image/gif': gif } as const;
  for (const [mediaType, made] of Object.entries(kinds))
    it(`is left out with the reason, of the kind ${mediaType}`, async () => {
      const server = await startAnthropicServer({ turns: [{ text: ['seen'] }] });
      try {
        const picture = (width: number, height: number) => ({
          type: 'image' as const,
          source: {
            type: 'base64' as const,
            media_type: mediaType as 'image/png',
            data: made(width, height).toString('base64'),
          },
        });
        const messages: Message[] = [{ role: 'user', content: [picture(8_001, 3), picture(8_000, 3)] }];
        const provider = createAnthropic({ apiKey: 'k', model: 'claude-haiku-4-5', baseUrl: server.url });
        const request = { system: 'S', messages, tools: [], maxTokens: 100 };
        const signal = new AbortController().signal;
        for await (const _ of mediaAware(provider, server.url).streamCompletion(request, signal));
        const [large, small] = server.requests[0]?.body.messages[0].content ?? [];
        assert.match(large.text, /longer side has 8001 pixels.*takes 8000 at most/);
        assert.equal(small.type, 'image');
      } finally {
        await server.close();
      }
    });
});
