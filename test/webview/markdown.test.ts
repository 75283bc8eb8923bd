/** Markdown of a model as HTML: what people write is formatted, and what would only take time is shown as it is. */
import assert from 'node:assert/strict';
import { highlight } from '../../webview/highlight.ts';
import { completeMarkdown, renderMarkdown } from '../../webview/markdown.ts';
import { appendMarkdown, closeMarkdown, codeParts, emptyMarkdown } from '../../webview/markdownBlocks.ts';

/** The least of three, in milliseconds of this process, so that others on the machine do not count. */
function costOf(work: () => unknown): number {
  const costs = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...costs);
}

const size = 40_000;
const filled = (piece: string): string => piece.repeat(Math.ceil(size / piece.length));
/** Far above what a machine makes of it by chance, and far below what a text that is tried again and again costs. */
const allowed = (): number => 100 + 20 * costOf(() => renderMarkdown(filled('plain words ')));

const words = (html: string): string =>
  html
    .replace(/<[^>]*>/g, '')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, '&')
    .trim();

describe('renderMarkdown', () => {
  it('formats what people write, also much of it', () => {
    const sentence = 'The **quick** _brown_ fox `jumps` over [the](https://a.test/b) lazy ~~dog~~. ';
    const html = renderMarkdown(sentence.repeat(25));
    for (const tag of ['strong', 'em', 'code', 'a', 'del'])
      assert.equal(html.match(new RegExp(`<${tag}[ >]`, 'g'))?.length, 25, tag);
    const rows = '| some `code` | **b** | text |\n'.repeat(1_000);
    assert.equal(renderMarkdown(`|a|b|c|\n|-|-|-|\n${rows}`).match(/<strong>/g)?.length, 1_000);
    const items = `- one\n${'  - **two** and `three` and [four](https://a.test)\n'.repeat(300)}`;
    assert.equal(renderMarkdown(items).match(/<strong>/g)?.length, 300);
    assert.equal(renderMarkdown(`${'> '.repeat(5)}deep`).match(/<blockquote>/g)?.length, 5);
  });

  it('takes no time over marks without end, and loses none of them', () => {
    const limit = allowed();
    const pieces = [
      '_a_',
      '*a*',
      '**a',
      '_a',
      'a*',
      '*_',
      '_1.',
      '*1.',
      '1.~',
      '~a~',
      '_~',
      '**a_',
      '***a',
      'a_b_',
    ];
    const others = [
      '[a](',
      '![',
      '[[a]]',
      '`a',
      '``a`',
      '<a ',
      '<!--',
      '|a',
      'www.a',
      'a@a.',
      'http://_',
      '&#',
      '\\',
    ];
    for (const piece of [...pieces, ...others]) {
      const text = filled(piece);
      let html = '';
      const cost = costOf(() => {
        html = renderMarkdown(text);
      });
      assert.ok(cost < limit, `${piece}: ${cost} ms, and at most ${limit} ms are taken`);
      if (piece !== '\\' && piece !== '``a`') assert.equal(words(html).length, text.trim().length, piece);
    }
  });

  it('takes no time over quotes and lists inside each other, and shows their text', () => {
    const limit = allowed();
    for (const piece of ['> ', '>', '- ', '+ ', '1. ']) {
      const text = `${filled(piece)}the end`;
      let html = '';
      const cost = costOf(() => {
        html = renderMarkdown(text);
      });
      assert.ok(cost < limit, `${piece}: ${cost} ms, and at most ${limit} ms are taken`);
      assert.match(words(html), /the end$/, piece);
    }
  });

  it('takes no time over very many lines in a list or a table, and shows them', () => {
    const limit = allowed();
    for (const [before, piece] of [
      ['- x\n  ', 'a\n'],
      ['- x\n  ', 'abcdefghij\n  '],
      ['- x\n  ', '|\n'],
      ['- x\n', '\n  '],
      ['- x\n  ', 'a|b\n-|-|-\n'],
      ['', '|-|\n[aaaaaaaaaaaaaa]: b\n'],
    ] as const) {
      const text = `${before}${filled(piece)}\nthe end`;
      let html = '';
      const cost = costOf(() => {
        html = renderMarkdown(text);
      });
      assert.ok(cost < limit, `${piece}: ${cost} ms, and at most ${limit} ms are taken`);
      assert.match(words(html), /the end$/, piece);
    }
  });

  it('takes for a table what marked does', () => {
    const tables = [
      '|a|\n|-|\n|b|',
      '|a|b|\n|:-|-:|',
      'a|b\n-|-',
      'a \\| b | c\n-|-\n1|2',
      '- t\n\n  a|b\n  -|-\n  1|2',
    ];
    for (const text of tables) assert.match(renderMarkdown(text), /<table/, text);
    for (const text of ['a|b\n-|-|-\n1|2', 'a\n-\nb', '|a|b|\n|1|2|'])
      assert.doesNotMatch(renderMarkdown(text), /<table/, text);
  });

  it('makes no table with more cells than were written by far', () => {
    const head = `${'|a'.repeat(2_000)}|\n${'|-'.repeat(2_000)}|\n`;
    const html = renderMarkdown(head + '|b\n'.repeat(3_000));
    assert.ok(html.length < 200_000, String(html.length));
    assert.equal(html.match(/b/g)?.length, 3_000);
  });
});

describe('blocks that stream in', () => {
  it('are cut and completed without a second look at long lines', () => {
    const limit = allowed();
    const texts = {
      'a line of blanks in a table': `a|b\n-${' '.repeat(size)}x`,
      'blanks in code': `\`\`\`\na${' '.repeat(size)}x`,
      'brackets in a line': '['.repeat(size),
      'backticks of two lengths': '``a`'.repeat(size / 4),
    };
    for (const [name, text] of Object.entries(texts)) {
      const costs = [
        costOf(() => closeMarkdown(appendMarkdown(emptyMarkdown, text))),
        costOf(() => completeMarkdown(text)),
        costOf(() => codeParts(text, true)),
      ];
      for (const cost of costs)
        assert.ok(cost < limit, `${name}: ${costs} ms, and at most ${limit} ms are taken`);
    }
  });
});

describe('highlight', () => {
  it('colours code as people write it, and leaves lines and gaps without end plain', () => {
    assert.match(highlight('const answer = 42; // why\n'.repeat(900), 'typescript') ?? '', /hljs-comment/);
    for (const [code, language] of [
      ['[a]('.repeat(5_000), 'markdown'],
      ['a'.repeat(20_000), 'ini'],
      [`a${'\n'.repeat(20_000)}b`, 'javascript'],
    ] as const)
      assert.equal(highlight(code, language), undefined, language);
  });
});
