import assert from 'node:assert/strict';
import { MessageBuffer } from '../../../src/engine/mcp/link.ts';
import { assertGrowsWithSize } from '../../growth.ts';

describe('MessageBuffer', () => {
  const all = (buffer: MessageBuffer<unknown>): unknown[] => {
    const messages: unknown[] = [];
    for (let next = buffer.readMessage(); next !== null; next = buffer.readMessage()) messages.push(next);
    return messages;
  };

  it('gives the same messages wherever what was written is cut', () => {
    const text = Buffer.from('{"a":"ä😀"}\n[1]\r\n\n"rest');
    for (let size = 1; size <= text.length; size++) {
      const buffer = new MessageBuffer(line => line, 1000);
      const seen: unknown[] = [];
      for (let at = 0; at < text.length; at += size) {
        buffer.append(text.subarray(at, at + size));
        seen.push(...all(buffer));
      }
      assert.deepEqual(seen, ['{"a":"ä😀"}', '[1]']);
      buffer.append(Buffer.from('"\n'));
      assert.deepEqual(all(buffer), ['"rest"']);
    }
  });

  it('goes on behind a line that is no message', () => {
    const buffer = new MessageBuffer(line => JSON.parse(line), 1000);
    buffer.append(Buffer.from('npm WARN\n{"b":2}\n'));
    assert.throws(() => buffer.readMessage(), SyntaxError);
    assert.deepEqual(all(buffer), [{ b: 2 }]);
  });

  it('refuses a line that is too long, and not several that are not', () => {
    const buffer = new MessageBuffer(line => line, 10);
    buffer.append(Buffer.from('123456789\n123456789\n12345'));
    assert.equal(all(buffer).length, 2);
    assert.throws(() => buffer.append(Buffer.from('678901')), /larger than 10 bytes/);
    buffer.append(Buffer.from('new\n'));
    assert.deepEqual(all(buffer), ['new']);
  });

  it('takes very many lines that come at once, also empty ones, in time that grows with their number', () => {
    for (const line of ['\n', '{}\n'])
      assertGrowsWithSize(120_000, size => {
        const buffer = new MessageBuffer(text => text, 1000);
        buffer.append(Buffer.from(line.repeat(size)));
        assert.equal(all(buffer).length, line === '\n' ? 0 : size);
      });
  });

  it('takes a line of many megabytes in small pieces without looking at it again and again', () => {
    const buffer = new MessageBuffer(line => line.length, 64 * 1024 * 1024);
    const piece = Buffer.alloc(1024, 'x');
    // Some 40,000 pieces; the time is that of a test, not of a minute.
    for (let count = 0; count < 40_000; count++) buffer.append(piece);
    buffer.append(Buffer.from('\n'));
    assert.deepEqual(all(buffer), [40_960_000]);
  });
});
