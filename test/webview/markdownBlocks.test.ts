import assert from 'node:assert/strict';
import {
  appendMarkdown,
  closeMarkdown,
  codeParts,
  emptyMarkdown,
  type MarkdownStream,
  openBlock,
} from '../../webview/markdownBlocks.ts';

const everyKind = `# A title
A paragraph over
two lines.

Setext heading
---
1. one
2. two

   more of two

   \`\`\`js
   const inside = 'a list';

   - not an item
   \`\`\`
3. three
- bullet
  - nested

After the list.
\`\`\`ts
const a = 1;

# not a heading
\`\`\`
~~~
tildes \`\`\`
~~~

| a | b |
| --- | --- |
| 1 | 2 |

> quote
> goes on

    indented code

    still

***
<div>raw</div>
The end without a newline`;

function stream(text: string, size: number): MarkdownStream {
  let markdown = emptyMarkdown;
  for (let at = 0; at < text.length; at += size) {
    markdown = appendMarkdown(markdown, text.slice(at, at + size));
  }
  return markdown;
}

const sources = (text: string, size = text.length) =>
  closeMarkdown(stream(text, size)).closed.map(block => block.source);

describe('markdown blocks', () => {
  it('cuts the same blocks whatever the size of the deltas, and loses no character', () => {
    const whole = sources(everyKind);
    assert.equal(whole.join(''), everyKind);
    for (const size of [1, 2, 3, 4, 7, 64]) assert.deepEqual(sources(everyKind, size), whole);
  });

  it('cuts where Markdown ends a block', () => {
    assert.deepEqual(sources('# Title\nText\nmore\n\nNext'), ['# Title\n', 'Text\nmore\n\n', 'Next']);
    assert.deepEqual(sources('Text\n```\ncode\n```\nText'), ['Text\n', '```\ncode\n```\n', 'Text']);
    assert.deepEqual(sources('Heading\n---\nText'), ['Heading\n---\n', 'Text']);
    assert.deepEqual(sources('Text\n- a\n- b\n\n  more of b\n\nText'), [
      'Text\n',
      '- a\n- b\n\n  more of b\n\n',
      'Text',
    ]);
  });

  it('keeps a list with code and blank lines in one piece', () => {
    const list = '1. one\n\n   ```sh\n   ls\n\n   # comment\n   ```\n\n2. two\n';
    assert.deepEqual(sources(list), [list]);
  });

  it('does not take a year at the start of a line for a list', () => {
    assert.equal(sources('That was in\n1986. A good year\n').length, 1);
  });

  it('leaves a fence open until the fence that fits it', () => {
    const markdown = stream('````md\n```js\nx\n```\n\nstill code\n', 5);
    assert.deepEqual(markdown.closed, []);
    assert.equal(openBlock(markdown)?.kind, 'code');
    const closed = appendMarkdown(markdown, '````\n');
    assert.equal(closed.closed[0]?.kind, 'code');
    assert.equal(openBlock(closed), undefined);
  });

  it('keeps the identity of closed blocks, and of their list while none closes', () => {
    const before = stream('One.\n\nTwo', 4);
    const after = appendMarkdown(before, ' goes on');
    assert.equal(after.closed, before.closed);
    const later = appendMarkdown(after, '.\n\nThree');
    assert.equal(later.closed[0], before.closed[0]);
  });

  it('cuts an endless list at an item, so that parsing the open block stays cheap', () => {
    const list = Array.from({ length: 2_000 }, (_, index) => `${index + 1}. item with some words\n`).join('');
    const { closed } = closeMarkdown(stream(list, 64));
    assert.ok(closed.slice(0, -1).every(block => block.cut));
    const blocks = closed.map(block => block.source);
    assert.equal(blocks.join(''), list);
    assert.ok(blocks.every(source => source.length < 2_500 && /^\d+\. /.test(source)));
  });

  it('does not cut a table, whose rows mean nothing without their head', () => {
    const table = `| a | b |\n|---|---|\n${'| 1 | 2 |\n'.repeat(2_000)}`;
    assert.equal(sources(table, 64).length, 1);
  });

  describe('code', () => {
    it('gives language and text without the fences', () => {
      assert.deepEqual(codeParts('```python title="x"\nprint(1)\n```\n'), {
        language: 'python',
        code: 'print(1)\n',
      });
      assert.deepEqual(codeParts('\n  ~~~\n  a\n    b\n  ~~~\n'), { language: '', code: 'a\n  b\n' });
      assert.deepEqual(codeParts('```js'), { language: 'js', code: '' });
      assert.deepEqual(codeParts('```js\nnever closed'), { language: 'js', code: 'never closed' });
    });

    it('only ever grows at its end while it streams', () => {
      const text = 'x\n```js\nconst a = `b`;\n``\n  indented\n\n```\n';
      let shown = '';
      let markdown = emptyMarkdown;
      for (const character of text) {
        markdown = appendMarkdown(markdown, character);
        const open = openBlock(markdown);
        if (open?.kind !== 'code') continue;
        const { code } = codeParts(open.source, true);
        assert.ok(code.startsWith(shown), JSON.stringify({ shown, code }));
        shown = code;
      }
      assert.equal(shown, codeParts(markdown.closed.at(-1)!.source).code);
    });
  });
});
