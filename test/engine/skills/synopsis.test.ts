/** What is shown of a skill whose author has not described it. */
import assert from 'node:assert/strict';
import { synopsisOf } from '../../../src/engine/skills/skillFields.ts';

describe('synopsisOf', () => {
  it('takes the Description section before anything else', () => {
    assert.equal(
      synopsisOf(
        '# Tool\n\nBy somebody else.\n\n## Description\n\nTurns **notes** into a [plan](x.md). And more.\n',
      ),
      'Turns notes into a plan.',
    );
  });

  it('takes the first sentence of prose, past pictures, lists, tables and code', () => {
    const body =
      '# Tool\n![logo](x.png)\n```\nnot this one here.\n```\n| a | b |\n- item one two\n\nReads your mail\nand sums it up. Daily.\n';
    assert.equal(synopsisOf(body), 'Reads your mail and sums it up.');
  });

  it('takes the title where there is no prose, and nothing where there is neither', () => {
    assert.equal(synopsisOf('# My `tool`\n\n- one\n- two\n'), 'My tool');
    assert.equal(synopsisOf('\n```\ncode only\n```\n'), undefined);
  });

  it('cuts a sentence that does not end', () => {
    const synopsis = synopsisOf('word '.repeat(200))!;
    assert.ok(synopsis.length <= 300 && synopsis.endsWith('word…'), synopsis);
  });
});
