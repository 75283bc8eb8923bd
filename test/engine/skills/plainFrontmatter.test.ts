/** What is read without a parser of YAML has to be what YAML has there. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { readPlainLines } from '../../../src/engine/skills/frontmatterLines.ts';

describe('plain frontmatter', () => {
  it('is read as YAML has it, with one level of keys or of a list below a key', () => {
    const texts = [
      'name: a\ndescription: Some words, "quoted" and not.\nrequires:\n  mcp: [rube, acme.two]\n  bins: [gh]',
      'name: a\nallowed-tools:\n  - Read\n  - "Bash"\nmetadata:\n  author: me\n  version: "1.0"\nlicense:',
      'tags: [one, two]\nempty:\nlast: x',
    ];
    for (const text of texts) {
      const plain = readPlainLines(text);
      assert.ok(plain, text);
      assert.deepEqual(plain, parse(text));
    }
  });

  it('leaves to the parser what may mean more', () => {
    const texts = [
      ...['a:\n  b:\n    c: d', 'a:\n  - b: c', 'a:\n  - b:', 'a: [1, b]', 'a: [true, b]', 'a: [b, "c"]'],
      ...[
        'a:\n  b: c\n  b: d',
        'a:\n - b',
        'a:\n  b\n  c',
        'a: b\n  c',
        'a:\n  - b\n    c',
        'a:\n  Null: b',
        'a: [b',
      ],
      ...[
        'a:\n\n  b: c',
        'a:\n  # c',
        'a:\n  b: c # d',
        'a: *b',
        'a:\n  <<: c',
        'a:\n  - - b',
        'a:\n  -b',
        'a: [b: c]',
      ],
    ];
    for (const text of texts) assert.equal(readPlainLines(text), undefined, text);
  });

  it('differs from YAML for none of many texts that are put together from its signs', () => {
    const parts = [
      ...[
        'a',
        'b-c',
        'name',
        ':',
        ': ',
        ' ',
        '  ',
        '\n',
        '\n  ',
        '\n    ',
        '- ',
        '[',
        ']',
        ', ',
        '"',
        "'",
        '#',
        ' #',
      ],
      ...[
        'true',
        'Null',
        '1',
        'x.y',
        '*',
        '&',
        '!',
        '|',
        '{',
        '}',
        '\t',
        '~',
        '\n  - ',
        '\nk: ',
        '\nm:\n  n: ',
      ],
    ];
    let seed = 7;
    const next = (most: number): number => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return Math.floor((seed / 2147483648) * most);
    };
    let read = 0;
    for (let turn = 0; turn < 30_000; turn++) {
      const text = `a: ${Array.from({ length: 1 + next(9) }, () => parts[next(parts.length)]).join('')}`;
      const plain = readPlainLines(text);
      if (plain === undefined) continue;
      read++;
      assert.deepEqual(plain, parse(text), JSON.stringify(text));
    }
    assert.ok(read > 1000, String(read));
  });
});
