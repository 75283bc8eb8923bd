import assert from 'node:assert/strict';
import { completeMarkdown } from '../../webview/markdown.ts';

describe('completing Markdown that streams', () => {
  for (const [source, wanted] of [
    ['plain words', 'plain words'],
    ['a **bold', 'a **bold**'],
    ['a **bold ', 'a **bold**'],
    ['a **bold*', 'a **bold**'],
    ['a **', 'a '],
    ['a *soft', 'a *soft*'],
    ['a **bold *and soft', 'a **bold *and soft***'],
    ['done **bold** text', 'done **bold** text'],
    ['run `npm te', 'run `npm te`'],
    ['run `', 'run '],
    ['`a * b` is **x', '`a * b` is **x**'],
    ['2 * 3 * 4', '2 * 3 * 4'],
    ['snake_case_name', 'snake_case_name'],
    ['* item **b', '* item **b**'],
    ['see [the docs](https://exa', 'see the docs'],
    ['see [the docs](https://example.com) now', 'see [the docs](https://example.com) now'],
    ['**old\nnew line', '**old\nnew line'],
  ] as const) {
    it(`draws ${JSON.stringify(source)} as ${JSON.stringify(wanted)}`, () => {
      assert.equal(completeMarkdown(source), wanted);
    });
  }
});
