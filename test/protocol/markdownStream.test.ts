/** Markdown on a terminal: the same however it arrives, nothing lost that was meant as it is, and no control of the terminal. */
import assert from 'node:assert/strict';
import { stripVTControlCharacters } from 'node:util';
import { terminalText } from '../../src/cli/terminalText.ts';
import { type MarkdownLook, markdownStream } from '../../src/protocol/markdownStream.ts';
import { columnsOf } from '../../src/protocol/text.ts';

const look: MarkdownLook = { width: 40, styled: true };

function shown(text: string, more: Partial<MarkdownLook> = {}, size = text.length): string {
  const stream = markdownStream({ ...look, ...more });
  let out = '';
  for (let at = 0; at < text.length; at += Math.max(1, size))
    out += stream.add(text.slice(at, at + Math.max(1, size)));
  return out + stream.end();
}
const words = (text: string): string => stripVTControlCharacters(shown(text));

const sample = [
  '# A **plan**',
  '',
  'You have *three* things, `npm test` and [the docs](https://example.com) to look at, in a line that is long.',
  '- [ ] one **bold words** item that hangs below its first word',
  '  - [x] two',
  '10. ten',
  '> quoted text that goes on beyond the width of the screen',
  '',
  '| Name | Cost |',
  '|---|---|',
  '| `a.md` | 日本 |',
  '',
  '```ts',
  'const a = **b**;',
  '```',
  '---',
  'The ~~old~~ ***end***',
].join('\n');

describe('markdownStream', () => {
  it('shows the same however the text is cut', () => {
    for (const styled of [true, false])
      for (const size of [1, 2, 3, 7, 50])
        assert.equal(shown(sample, { styled }, size), shown(sample, { styled }));
  });

  it('puts blocks and words in their places', () => {
    assert.equal(
      words(sample),
      [
        'A plan',
        '',
        'You have three things, npm test and the',
        'docs (https://example.com) to look at,',
        'in a line that is long.',
        '☐ one bold words item that hangs below',
        '  its first word',
        '  ☑ two',
        '10. ten',
        '│ quoted text that goes on beyond the',
        '│ width of the screen',
        '',
        'Name  Cost',
        '────  ────',
        'a.md  日本',
        '',
        'const a = **b**;',
        '─'.repeat(40),
        'The old end',
      ].join('\n'),
    );
    for (const line of words(sample).split('\n')) assert.ok(columnsOf(line) <= 40, line);
  });

  it('shows a table that is too wide cell by cell, behind the heads, in 30 columns too', () => {
    const table =
      '| What | Why it is so |\n|---|---|\n| parser.ts | **others** wait for it until noon |\n| build | red |\n';
    const out = stripVTControlCharacters(shown(table, { width: 30 }));
    assert.equal(
      out,
      [
        'What: parser.ts',
        'Why it is so: others wait for',
        '  it until noon',
        '────────',
        'What: build',
        'Why it is so: red',
        '',
      ].join('\n'),
    );
    assert.match(shown(table, { width: 30 }), /\x1b\[1mothers\x1b\[22m/);
  });

  it('colours code by its language, and leaves none of it out', () => {
    const code = (language: string, line: string) => shown(`\`\`\`${language}\n${line}\n\`\`\`\n`);
    const line = "const a = 'x'; // 12 of it";
    assert.equal(
      code('ts', line),
      "\x1b[35mconst\x1b[39m a = \x1b[32m'x'\x1b[39m; \x1b[90m// 12 of it\x1b[39m\n",
    );
    assert.equal(code('python', 'x = 3 # three'), 'x = \x1b[33m3\x1b[39m \x1b[90m# three\x1b[39m\n');
    assert.equal(code('diff', '+ added'), '\x1b[32m+ added\x1b[39m\n');
    assert.equal(code('', "it's"), "\x1b[36mit's\x1b[39m\n");
    for (const language of ['ts', 'bash', 'sql', 'diff', 'nope'])
      assert.equal(stripVTControlCharacters(code(language, line)), `${line}\n`, language);
  });

  it('shows what comes at once, and holds back only what can still become a mark', () => {
    const stream = markdownStream(look);
    assert.equal(stream.add('Plain words a'), 'Plain words');
    assert.equal(stream.add('nd **bold'), ' and');
    assert.equal(stream.add('** x '), ' \x1b[1mbold\x1b[22m x');
    assert.equal(stream.end(), '');
  });

  it('leaves signs as they are that are no marks', () => {
    for (const text of [
      'src/**/*.ts and *.js',
      '2 * 3 * 4',
      'snake_case_name and __init__.py',
      'an **unclosed word',
      '[x] and a[0](1',
      'C:\\new and \\x1b[31m',
      '#hash -flag 1.5 >x',
      '`',
    ])
      assert.equal(words(text), text);
    assert.equal(words('\\*as it is\\*'), '*as it is*');
  });

  it('uses no escape sequence without colours, and loses no mark', () => {
    const plain = shown('# A **plan**\n- `code` [x](https://y)', { styled: false });
    assert.equal(plain, '# A **plan**\n• `code` [x](https://y)');
  });

  it('shows the address of a link, so that no label stands for another place', () => {
    assert.equal(
      words('[https://bank.com](https://evil.example)'),
      'https://bank.com (https://evil.example)',
    );
  });

  it('writes only its own sequences, whatever a model writes', () => {
    const hostile = '**\x1b[2J**\x1b]0;title\x07 `\x1b[31m` \u202eabc # \x9b\n```\n\x1b[8m\n| \x1b[1A |\n';
    const out = shown(terminalText(hostile));
    const left = out.replace(/\x1b\[(?:1|22|3|23|9|29|36|39|4|24|2)m/g, '');
    assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/.test(left), JSON.stringify(left));
    assert.match(out, /\\x1b\[2J/);
  });

  it('stays fast with marks that never end', () => {
    const used = (units: readonly string[]): number => {
      const { user, system } = process.cpuUsage();
      for (const unit of units)
        for (const size of [50, 20_000]) shown(unit.repeat(20_000 / unit.length), {}, size);
      const now = process.cpuUsage();
      return now.user - user + now.system - system;
    };
    const marks = ['[', '**a ', '`a', '*a ', '![](', '| a ', '\\', '# '];
    const words = Array.from(marks, () => 'word ');
    used(words);
    const ratio = used(marks) / used(words);
    // Eight times what it is: it must not grow with the square of the whole text.
    assert.ok(ratio < 150, `${ratio.toFixed(1)} times as long as words`);
  });
});
