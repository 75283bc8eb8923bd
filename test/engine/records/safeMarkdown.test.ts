/** Text of strangers as code: whatever is in it, nothing in it ends the fence. */
import assert from 'node:assert/strict';
import { fenced, inlineCode, safeMarkdown } from '../../../src/engine/records/safeMarkdown.ts';
import { selectionText, withAttachments } from '../../../src/engine/run/prompt.ts';

/** More runs than a call takes arguments. */
const manyRuns = '`a'.repeat(160_000);

describe('text with very many backtick runs', () => {
  it('is fenced, and shown as code in a line', () => {
    const longer = `${manyRuns}\`\`\`\`\``;
    assert.equal(fenced(longer), `\`\`\`\`\`\`\n${longer}\n\`\`\`\`\`\``);
    assert.equal(inlineCode(longer), `\`\`\`\`\`\` ${longer} \`\`\`\`\`\``);
    assert.ok(safeMarkdown(`\`\`\`\n${manyRuns}`).endsWith('a\n```'));
    assert.ok(safeMarkdown(`~~~\n${'~a'.repeat(160_000)}`).endsWith('a\n~~~'));
  });

  it('is handed over as an attachment and as a selection', () => {
    const attachment = { kind: 'text', name: 'a.txt', text: manyRuns, language: '' } as const;
    assert.ok(String(withAttachments('x', [attachment])).endsWith(`\`\`\`\n${manyRuns}\n\`\`\``));
    assert.ok(selectionText('a.txt', 1, '', manyRuns).endsWith(`\`\`\`\n${manyRuns}\n\`\`\``));
  });

  it('keeps a usual fence short', () => {
    assert.equal(fenced('a'), '````\na\n````');
    assert.equal(inlineCode('a b'), '`a b`');
  });
});
