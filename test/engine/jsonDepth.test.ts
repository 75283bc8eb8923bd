/** JSON that is nested far beyond what a call stack holds. */
import assert from 'node:assert/strict';
import { isDeeper, withinDepth } from '../../src/engine/jsonDepth.ts';
import { listingOf, toolResultOf } from '../../src/engine/mcp/result.ts';
import { readToolCall, withoutDepth } from '../../src/engine/providers/provider.ts';
import { mapStrings, redactor } from '../../src/engine/redact.ts';

const nested = (levels: number, opening = '[', closing = ']'): string =>
  opening.repeat(levels) + closing.repeat(levels);
const list = JSON.parse(nested(50_000));
const table = JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`);

describe('deep JSON', () => {
  it('is told from what people write', () => {
    assert.equal(isDeeper(list), true);
    assert.equal(isDeeper(JSON.parse(nested(100))), false);
    assert.equal(isDeeper(JSON.parse(nested(101))), true);
    const usual = { a: [1, { b: 'c' }] };
    assert.equal(withinDepth(usual), usual);
  });

  it('is cut, and says so where it was', () => {
    for (const deep of [list, table]) {
      const text = JSON.stringify(withinDepth({ before: 1, deep, after: 2 }));
      assert.match(text, /^\{"before":1,"deep":.*\[left out: nested too deeply\].*"after":2\}$/);
    }
    assert.deepEqual(withinDepth({ a: { b: { c: 1 } }, d: 2 }, 2), {
      a: { b: '[left out: nested too deeply]' },
      d: 2,
    });
  });

  it('keeps no secret from being redacted, wherever it comes by', () => {
    const { text } = redactor(['sk-ant-0123456789']);
    const clean = JSON.stringify(mapStrings({ deep: table, list, key: 'sk-ant-0123456789' }, text));
    assert.match(clean, /"key":"\[redacted\]"\}$/);
  });

  it('becomes a result that can be read', () => {
    const structured = toolResultOf({ content: [{ type: 'text', text: 'so far' }], structuredContent: list });
    assert.match(structured.content, /^so far\n\n\[.*left out: nested too deeply/s);
    const block = toolResultOf({
      content: [
        { type: 'text', text: 'so far' },
        { type: 'other', a: table },
      ],
    });
    assert.match(block.content, /^so far\n\n\{.*left out: nested too deeply/s);
    const said = toolResultOf({ content: [{ type: 'text', text: nested(50_000) }], structuredContent: list });
    assert.match(said.content, /left out/);
  });

  it('makes no listing of a tool', () => {
    assert.deepEqual(listingOf({ name: 'a', inputSchema: { properties: table } }), []);
    assert.equal(listingOf({ name: 'a', inputSchema: { properties: {} } }).length, 1);
  });

  it('is not taken for the arguments of a call', () => {
    for (const call of [
      readToolCall('1', 'say', `{"text":${nested(50_000)}}`),
      withoutDepth({ id: '1', name: 'say', input: { text: table } }),
    ]) {
      assert.deepEqual(call.input, {});
      assert.match(call.problem ?? '', /nest lists and objects more than 100 levels deep/);
    }
  });
});
