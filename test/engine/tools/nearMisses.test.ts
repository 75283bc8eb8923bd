/** Forty edits as models write them, of which most differ a little from the file, and how many calls they take. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { editFileTool } from '../../../src/engine/tools/writeFiles.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

interface Miss {
  kind: string;
  file: string;
  old: string;
  fresh: string;
  /** The file afterwards. */
  want: string;
}

const code = (indent: string, end: string): string =>
  [
    'function total(cart) {',
    `${indent}let sum = 0;`,
    `${indent}for (const item of cart) {`,
    `${indent}${indent}sum += item.price;`,
    `${indent}}`,
    `${indent}return sum;`,
    '}',
    '',
  ].join(end);

const names = ['price', 'cost', 'weight', 'count', 'size', 'tax', 'rate', 'fee'];
const renamed = (text: string, name: string): string => text.replace('item.price', `item.${name}s`);
const block = (indent: string): string =>
  `${indent}for (const item of cart) {\n${indent}${indent}sum += item.price;\n${indent}}`;

/** Eight of each kind. */
const misses: Miss[] = [
  ...names.map(name => ({
    kind: 'tabs',
    file: code('\t', '\n'),
    old: block(name.length % 2 ? '    ' : '  '),
    fresh: renamed(block(name.length % 2 ? '    ' : '  '), name),
    want: renamed(code('\t', '\n'), name),
  })),
  ...names.map((name, at) => ({
    kind: 'quotes',
    file: `# Notes\n\nHe said “the ${name}” isn’t “${at}”.\nMore.\n`,
    old: `He said "the ${name}" isn't "${at}".`,
    fresh: `He said "the ${name}" isn't "${at + 1}".`,
    want: `# Notes\n\nHe said “the ${name}” isn’t “${at + 1}”.\nMore.\n`,
  })),
  ...names.map(name => ({
    kind: 'CRLF',
    file: code('  ', '\r\n'),
    old: block('  '),
    fresh: renamed(block('  '), name),
    want: renamed(code('  ', '\r\n'), name),
  })),
  ...names.map(name => ({
    kind: 'NFC',
    file: `Cafe\u0301 ${name}  \nRe\u0301sume\u0301 of ${name}\n`,
    old: `Café ${name}\nRésumé of ${name}`,
    fresh: `Café ${name}\nRésumé of all ${name}`,
    want: `Cafe\u0301 ${name}  \nRe\u0301sume\u0301 of all ${name}\n`,
  })),
  ...names.map((name, at) => ({
    kind: 'moved lines',
    file: `${'// more\n'.repeat(at * 40)}${code('  ', '\n')}`,
    // The last two are remembered wrongly.
    old: at < 6 ? '  let sum = 0;\n' : '  let sum = 1;\n',
    fresh: `  let ${name} = 0;\n`,
    want: `${'// more\n'.repeat(at * 40)}${code('  ', '\n').replace('  let sum = 0;\n', `  let ${name} = 0;\n`)}`,
  })),
];

describe('forty edits that miss a little', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  const edit = (input: object) => editFileTool.execute({ path: 'a.txt', ...input }, run.context);

  it('take at most 1.2 calls each, and leave exactly the file that was meant', async () => {
    let calls = 0;
    for (const { kind, file, old, fresh, want } of misses) {
      const path = run.put('work/a.txt', file);
      let result = await edit({ old_text: old, new_text: fresh });
      calls++;
      if (result.isError) {
        // A model takes the line that it is shown.
        const [, shown] = /\n≠ +\d+\t(.*)/.exec(result.content) ?? [];
        assert.ok(shown !== undefined, `${kind}: ${result.content}`);
        result = await edit({ old_text: `${shown}\n`, new_text: fresh });
        calls++;
      }
      assert.equal(result.isError, false, `${kind}: ${result.content}`);
      assert.equal(readFileSync(path, 'utf8'), want, kind);
    }
    assert.equal(misses.length, 40);
    assert.ok(calls <= 48, `${calls} calls for ${misses.length} edits`);
  });

  it('come back with the changed lines and their numbers, and say what differed', async () => {
    run.put('work/a.txt', code('\t', '\n'));
    const { content } = await edit({
      old_text: '    let sum = 0;',
      new_text: '    let sum = 0;\n    let count = 0;',
    });
    assert.equal(
      content,
      "Changed one place of a.txt.\nold_text differed in tabs; the file's own were kept.\n    2\t\tlet sum = 0;\n    3\t\tlet count = 0;",
    );
    const missed = await edit({ old_text: '  return summe;', new_text: 'x' });
    assert.match(missed.content, /must match exactly\. The nearest lines .*\n≠ {4}7\t\treturn sum;$/);
  });

  it('are made together or not at all, one after the other', async () => {
    const path = run.put('work/a.txt', 'one\ntwo\nthree\n');
    const edits = [
      { old_text: 'one', new_text: '1' },
      { old_text: '1\ntwo', new_text: '1\n2' },
    ];
    const done = await edit({ edits });
    assert.equal(done.content, 'Changed 2 places of a.txt.\n    1\t1\n    1\t1\n    2\t2');
    assert.equal(readFileSync(path, 'utf8'), '1\n2\nthree\n');
    const half = await edit({
      edits: [
        { old_text: 'three', new_text: '3' },
        { old_text: 'four', new_text: '4' },
      ],
    });
    assert.match(half.content, /^Edit 2 of 2: old_text was not found in a\.txt.* Nothing was changed\.$/s);
    assert.equal(readFileSync(path, 'utf8'), '1\n2\nthree\n');
    for (const wrong of [
      { edits: [] },
      { edits: 'x' },
      { edits: [{ old_text: 'a' }] },
      { old_text: 'a' },
      {},
    ])
      assert.match((await edit(wrong)).content, /Nothing was changed\.$/);
  });

  it('are not made where two places differ only so, nor in what differs more', async () => {
    const path = run.put('work/a.txt', '\tx = 1\n        y\n    x = 1 \n“a” or ‘a’\n');
    assert.equal((await edit({ old_text: '  x = 1\n', new_text: 'z\n' })).isError, true);
    assert.equal((await edit({ old_text: '"A"', new_text: 'z' })).isError, true);
    assert.match(readFileSync(path, 'utf8'), /^\tx = 1\n {8}y\n {4}x = 1 \n“a” or ‘a’\n$/);
  });
});
