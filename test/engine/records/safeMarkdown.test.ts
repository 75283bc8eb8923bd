/** Text of strangers as code: whatever is in it, nothing in it ends the fence. */
import assert from 'node:assert/strict';
import { fenced, inlineCode, plainMarkdown, safeMarkdown } from '../../../src/engine/records/safeMarkdown.ts';
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

describe('prose of a model', () => {
  it('keeps links to the web, to mail and within the page, and no other', () => {
    const kept = '[a](https://x.example/?a=1&b) [b](mailto:me@x.example) [c](docs/a.md) [d](#top)';
    assert.equal(safeMarkdown(kept), kept);
    for (const target of ['javascript:x', ' &#106;s', 'data:x', '\\\\host', '&lt;javascript:x'])
      assert.equal(safeMarkdown(`[a](${target})`), `[a] (${target})`);
    assert.equal(safeMarkdown('[a]: vbscript:x'), '[a] \\: vbscript:x');
  });

  it('keeps the names of types, and no element', () => {
    assert.equal(
      safeMarkdown('Map<String> and <b> </b> <!-- --> <?x> <string x>'),
      'Map<String> and &lt;b> &lt;/b> &lt;!-- --> &lt;?x> &lt;string x>',
    );
    assert.equal(safeMarkdown('![x](https://x.example)'), '\\![x](https://x.example)');
  });

  it('takes code between fences as it is, up to a mark that is as long', () => {
    const code = '````\n<b>\n```\n<i>\n````\n<u>';
    assert.equal(safeMarkdown(code), code.replace('<u>', '&lt;u>'));
    assert.equal(safeMarkdown('~~~ x\n<b>\n```\n~~~~\n<u>'), '~~~ x\n<b>\n```\n~~~~\n&lt;u>');
    assert.equal(safeMarkdown('``` a`b\n<b>'), '``` a`b\n&lt;b>', 'no fence, with a mark behind it');
    assert.equal(safeMarkdown('<b>\r\n```js\r\n<b>'), '&lt;b>\n```js\n<b>\n```', 'an open one is closed');
    assert.equal(safeMarkdown('```<b>\nx\n```'), '```&lt;b>\nx\n```');
    assert.equal(safeMarkdown('~~~\n~~~~~\n~~~\na'), '~~~\n~~~~~\n~~~\na\n~~~~~');
  });

  it('is one line of plain words where it is a heading', () => {
    assert.equal(plainMarkdown(' a\n*b* <c> [d] '), 'a \\*b\\* \\<c\\> \\[d\\]');
    assert.equal(fenced('a\n', 'ts'), '````ts\na\n````');
    assert.equal(inlineCode(' a `b`\nc '), '`` a `b` c ``');
  });
});
