import assert from 'node:assert/strict';
import { htmlToText } from '../../../src/engine/tools/htmlText.ts';

const text = (html: string): string => htmlToText(html, new URL('https://example.com/a/b'));

describe('htmlToText', () => {
  it('keeps the words in order and drops code and markup', () => {
    const page = `<!DOCTYPE html><html><head><title>The &amp; title</title><style>p { color: red }</style>
      <script>if (a < b) document.write("<p>no</p>")</script></head>
      <body><!-- hidden > --><h1>Big</h1><p>One   <b>bold</b>
      word.</p><noscript>no</noscript><template>no</template><ul><li>a</li><li>b</li></ul>
      <table><tr><th>k</th><td>v</td></tr></table>line<br>next</body></html>`;
    assert.equal(text(page), 'The & title\n\n# Big\n\nOne bold word.\n\n- a\n- b\n\nk\tv\n\nline\nnext');
  });

  it('completes links and leaves out those that lead nowhere', () => {
    assert.equal(
      text('<a href="/x?a=1&amp;b=2">Go <i>on</i></a> now'),
      'Go on (https://example.com/x?a=1&b=2) now',
    );
    assert.equal(text("<a class=k href='c'>C</a>"), 'C (https://example.com/a/c)');
    assert.equal(text('<a href="#top">up</a> <a href="javascript:x()">j</a> <a name="n">n</a>'), 'up j n');
    assert.equal(text('<a href="https://x.test/">https://x.test/</a>'), 'https://x.test/');
  });

  it('keeps the lines of preformatted text', () => {
    assert.equal(text('<p>a</p><pre>x\n    y &lt; z</pre><p>b</p>'), 'a\n\nx\n    y < z\n\nb');
  });

  it('is not misled by quotes, loose brackets and what is never closed', () => {
    assert.equal(text('<p title="a > b">x</p>'), 'x');
    assert.equal(text("<p title='\"' class=it's>x</p>"), 'x');
    assert.equal(text('1 < 2 and 3 > 2'), '1 < 2 and 3 > 2');
    assert.equal(text('a<script>b'), 'a');
    assert.equal(text('a<!-- b'), 'a');
    assert.equal(text('a<p class="'), 'a');
    assert.equal(text('a<SCRIPT>b</script >c</ScRiPt>d'), 'acd');
    assert.equal(text('<'), '<');
    assert.equal(text(''), '');
  });

  it('takes no longer on pages made to be slow', () => {
    for (const part of [
      '<script',
      '<script>',
      '<!--',
      '<p title="',
      '<a href=x>',
      '&amp',
      '<',
      ' \n',
      '</pre ',
      '<svg><',
    ])
      text(part.repeat(Math.ceil(2 ** 18 / part.length)));
  });

  it('takes no longer on elements that are never closed, or never opened', () => {
    for (const part of [
      '<b>',
      '</i>',
      '<b><i></b>',
      '<a href="&amp;">',
      '<template>',
      '<x y',
      '<!',
      '<?',
      '<pre>',
    ])
      text(part.repeat(Math.ceil(2 ** 18 / part.length)));
    text('<b>'.repeat(2 ** 16) + '</i>'.repeat(2 ** 16));
  });

  it('decodes names and numbers and leaves the rest', () => {
    assert.equal(
      text(
        '&lt;&#8364;&#x20AC;&auml;&nbsp;&unknown; &constructor; & &#0; &#xD800; &zwj;&NotEqualTilde; w&shy;ord',
      ),
      '<€€ä &unknown; &constructor; & \ufffd \ufffd \u200d≂\u0338 word',
    );
    assert.equal(
      text('<a href="/a?b=1&amp;copy=2&copy=3">x</a>'),
      'x (https://example.com/a?b=1&copy=2&copy=3)',
    );
  });
});
