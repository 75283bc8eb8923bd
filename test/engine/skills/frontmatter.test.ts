/** Every SKILL.md loads: well-formed, odd and broken ones, and none loses its body. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { fieldText, findValue, parseSkillFile, scanName } from '../../../src/engine/skills/frontmatter.ts';
import { readRuntimeMetadata } from '../../../src/engine/skills/skillFields.ts';
import { assertGrowsWithSize } from '../../growth.ts';

const parsed = (text: string) => {
  const { fields, body, diagnostics } = parseSkillFile(text, 'SKILL.md');
  return {
    description: fieldText(fields['description']),
    body,
    codes: diagnostics.map(({ code }) => code),
    diagnostics,
    fields,
  };
};

/** Lines of every kind, from pieces that mean something to YAML. The same at each run. */
function* manyFrontmatters(): Generator<string> {
  const keys = ['name', 'description', 'allowed-tools', 'true', 'x y', '1', '-'];
  const pieces =
    'a|b c|word|:|: | #|#|"|\'|-|- |{|}|[|]|,|&|*|!|||>|%|@|`|true|Null|no|1|1.0|.5|~|\\|?|<<|é|\u00a0|\u0085|\t|\u2028|http://x|::| '.split(
      '|',
    );
  let seed = 1;
  const any = <Value>(of: readonly Value[]): Value => {
    seed = (seed * 48_271) % 2_147_483_647;
    return of[seed % of.length]!;
  };
  for (let count = 0; count < 2_000; count++) {
    const line = (): string =>
      any(keys) +
      any([':', ': ', ': ', ':  ', ' : ']) +
      Array.from({ length: any([0, 1, 1, 2, 3, 4]) }, () => any(pieces)).join('');
    yield Array.from({ length: any([1, 1, 2, 3]) }, line).join('\n');
  }
}

describe('parseSkillFile', () => {
  it('reads as YAML does whatever YAML reads', () => {
    let count = 0;
    for (const frontmatter of manyFrontmatters()) {
      const { fields, codes } = parsed(`---\n${frontmatter}\n---\n`);
      if (codes.length > 0 || Object.keys(fields).length === 0) continue;
      const whole: unknown = parse(frontmatter, { strict: false, logLevel: 'silent' });
      assert.deepEqual({ ...fields }, whole, frontmatter);
      count++;
    }
    assert.ok(count > 200, `only ${count} were read`);
  });

  it('reads a long line in no time, whatever it is made of', () => {
    const made: readonly ((long: number) => string)[] = [
      long => `x${' '.repeat(long)}\t`,
      long => `${' '.repeat(long)}\t`,
      long => `x${':x'.repeat(long / 2)}:`,
    ];
    for (const value of made)
      assertGrowsWithSize(32_000, long => void parsed(`---\ndescription: ${value(long)}\n---\n`), value(8));
  });

  it('splits at the first closing fence and keeps later rules in the body', () => {
    const { description, body, codes } = parsed('---\ndescription: ok\n---\nTop\n\n---\n\nBottom\n');
    assert.deepEqual([description, body, codes], ['ok', 'Top\n\n---\n\nBottom\n', []]);
  });

  it('takes a byte order mark, CRLF, blank lines and a comment before the fence', () => {
    const { description, body } = parsed(
      '\uFEFF\r\n<!-- a note\n--- -->\r\n---\r\ndescription: Win\r\n---\r\nL1\r\nL2',
    );
    assert.deepEqual([description, body], ['Win', 'L1\r\nL2']);
  });

  it('leaves a file without frontmatter whole, and four dashes are no fence', () => {
    assert.equal(parsed('# Only text\n').body, '# Only text\n');
    assert.equal(parsed('----\ndescription: x\n----\nB').body, '----\ndescription: x\n----\nB');
    assert.equal(parsed('---\nnot front matter\n\n# Title\n').body, '---\nnot front matter\n\n# Title\n');
  });

  it('takes the leading key lines when the closing fence is missing, and says so', () => {
    const { description, body, diagnostics } = parsed('---\ndescription: open\nname: x\n\n# Body\n');
    assert.deepEqual([description, body], ['open', '\n# Body\n']);
    assert.deepEqual([diagnostics[0]?.code, diagnostics[0]?.line], ['frontmatter-unclosed', 1]);
  });

  it('reads what YAML refuses line by line, and names the line', () => {
    const { description, fields, diagnostics } = parsed(
      '---\nname: rain\ndescription: Use when: it rains\n  or snows\ntags:\n  - a\n  - b\nhint: |\n  one\n  two\n---\nB',
    );
    assert.equal(description, 'Use when: it rains or snows');
    assert.deepEqual([fields['name'], fields['tags'], fields['hint']], ['rain', ['a', 'b'], 'one\ntwo']);
    assert.deepEqual([diagnostics[0]?.code, diagnostics[0]?.line], ['frontmatter-yaml', 3]);
  });

  it('reads frontmatter of thousands of keys line by line, which takes no time', () => {
    const keys = Array.from({ length: 50_000 }, (_, index) => `k${index}: v`).join('\n');
    const { description, fields, diagnostics } = parsed(`---\ndescription: long\n${keys}\n---\nB`);
    assert.deepEqual([description, fields['k49999']], ['long', 'v']);
    assert.deepEqual([diagnostics[0]?.code, diagnostics[0]?.line], ['frontmatter-long', 2]);
  });

  it('takes the first of two equal keys, and a key without a space behind its colon', () => {
    assert.equal(parsed('---\ndescription: first\ndescription: second\n---\nB').description, 'first');
    assert.equal(parsed('---\ndescription:tight\n---\nB').description, 'tight');
  });

  it('takes a rule far down in the text for a rule where the closing fence is missing', () => {
    for (const start of ['', '\n## name: y\n']) {
      const { description, body, codes } = parsed(
        `---\n${start}description: open\nversion: 1\n\nProse of the body.\n\n---\n\nMore\n`,
      );
      assert.deepEqual(
        [description, body, codes],
        ['open', '\nProse of the body.\n\n---\n\nMore\n', ['frontmatter-unclosed']],
      );
    }
    const { description, codes } = parsed('---\ntitle: t\n\n# a comment\n\ndescription: closed\n---\nB');
    assert.deepEqual([description, codes], ['closed', []]);
  });

  it('says of a key with capitals that it does not count, and offers the usual one', () => {
    const { description, diagnostics } = parsed('---\r\nname: x\r\nDescription: d\r\n---\r\nB');
    assert.equal(description, undefined);
    assert.deepEqual(
      diagnostics.map(({ code, line, edit }) => [code, line, edit]),
      [['key-case', 3, { offset: 14, length: 11, text: 'description' }]],
    );
    assert.deepEqual(parsed('---\ndescription: low\nDescription: high\n---\n').codes, []);
  });

  it('says in plain words what is wrong, and what to do about it', () => {
    const rows: readonly (readonly [frontmatter: string, line: number, words: RegExp])[] = [
      ['description: when: rain', 2, /holds `: `.*Put the value in quotes/],
      ['description: @all', 2, /character that is reserved in YAML.*quotes/],
      ['description: *bold* x', 2, /follows the end of a value.*quotes/],
      ['description: d\nmetadata:\n\tos: x', 4, /tab.*spaces/],
      ['description: d\ndescription: e', 3, /twice.*Remove one/],
      ['description: d\njust words\nx: y', 3, /is not `key: value`.*indent it/],
      ['description: d\n<<<<<<< HEAD\nx: y\n=======\n>>>>>>> z', 3, /unfinished merge.*Keep one/],
      ['description: d\nloop: &l [*l]', 2, /refer to themselves.*out/],
      ['- description: d', 2, /not a list of `key: value`.*its own line/],
      ['description: *nobody', 2, /begins with `\*`.*quotes/],
      ['description: d\nglobs:\n  - **/*.ts', 4, /begins with `\*`.*quotes/],
      ['description: !important x', 2, /begins with `!`.*quotes/],
      ['description: "C:\\path"', 2, /backslash.*quotes/],
      ['description: "say it\nname: x\nhint: y', 2, /opened and never closed.*quotes/],
      ['description: d\ntags: [a, b\nname: x', 3, /opened and never closed.*Close it/],
      ['description: d\n author: me', 3, /`author:` is indented.*blanks before/],
    ];
    for (const [frontmatter, line, words] of rows) {
      const { diagnostics } = parsed(`---\n${frontmatter}\n---\nB`);
      assert.match(`${diagnostics[0]?.message} ${diagnostics[0]?.fix}`, words);
      assert.equal(diagnostics[0]?.line, line, frontmatter);
    }
    assert.equal(parsed('---\ndescription: d\nloop: &l [*l]\n---\nB').description, 'd');
  });

  it('reads line by line what the author meant', () => {
    const broken = 'hint: when: rain\n';
    const rows: readonly (readonly [frontmatter: string, key: string, value: unknown])[] = [
      ["description: 'It's on'", 'description', "It's on"],
      ['description: "Say "hi" now"', 'description', 'Say "hi" now'],
      ['description: "this" and "that"', 'description', '"this" and "that"'],
      ['description: "open\nname: x', 'description', 'open'],
      ['description: > on one line', 'description', 'on one line'],
      ['description:\nAt the margin\nand on\nname: x', 'description', 'At the margin and on'],
      [`${broken}description: >\nAt the margin`, 'description', 'At the margin'],
      [`${broken}allowed-tools: [Read, "Bash(git *)"]`, 'allowed-tools', ['Read', 'Bash(git *)']],
      [`${broken}allowed-tools:\n- Read\n- Grep`, 'allowed-tools', ['Read', 'Grep']],
      [`${broken}requires:\n  bins: [jq]`, 'requires', { bins: ['jq'] }],
      ['tags:\n\t- a\n\t- b', 'tags', ['a', 'b']],
      ['openclaw:\n\trequires:\n\t\tbins: [jq]', 'openclaw', { requires: { bins: ['jq'] } }],
    ];
    for (const [frontmatter, key, value] of rows) {
      const { fields, codes, body } = parsed(`---\n${frontmatter}\n---\nB`);
      assert.deepEqual([fields[key], codes, body], [value, ['frontmatter-yaml'], 'B'], frontmatter);
    }
  });

  it('reads metadata with comments, and from the margin on', () => {
    for (const metadata of [
      'metadata:\n  {\n    // for the runner\n    "openclaw": { "requires": { "bins": ["jq"] } }, /* and */\n  }',
      'metadata:\n{\n"openclaw": {"requires": {"bins": ["jq"]}}\n}',
    ]) {
      const { fields } = parsed(`---\ndescription: d\n${metadata}\nname: x\n---\nB`);
      assert.deepEqual(readRuntimeMetadata(fields).requires.bins, ['jq'], metadata);
      assert.equal(fields['name'], 'x');
    }
  });

  it('leaves text between two rules in the body, and sees a fence with blanks that are not seen', () => {
    const text = '---\n\n# Title\n\nSome text.\n\n---\n\nMore.\n';
    assert.equal(parsed(text).body, text);
    for (const [open, close] of [
      ['\u200B---', '---'],
      ['---\u00A0', '---\u00A0'],
    ])
      assert.deepEqual(
        [
          parsed(`${open}\ndescription: d\n${close}\nB`).description,
          parsed(`${open}\ndescription: d\n${close}\nB`).body,
        ],
        ['d', 'B'],
      );
  });

  it('takes carriage returns alone for the ends of lines', () => {
    const { description, body, codes } = parsed('---\rdescription: d\r---\rOne\rTwo\r');
    assert.deepEqual([description, body, codes], ['d', 'One\nTwo\n', []]);
  });

  it('makes text of numbers, lists and folded values', () => {
    assert.equal(
      parsed('---\ndescription: >\n  Work with PDF\n  files.\n---\n').description,
      'Work with PDF\nfiles.'.replace('\n', ' '),
    );
    assert.equal(fieldText([1, true, 'x']), '1, true, x');
  });

  it('treats __proto__ as a key like any other, and survives alias loops', () => {
    parsed('---\n__proto__:\n  polluted: true\ndescription: d\n---\n');
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
    assert.doesNotThrow(() => parsed('---\ndescription: &a [*a]\n---\n'));
  });

  it('answers at once on a hundred thousand blank lines', function () {
    this.timeout(2000);
    assert.equal(parsed(`${'\n'.repeat(100_000)}text`).codes.length, 0);
    assert.equal(parsed(`---\n${'\n'.repeat(100_000)}text\n---\n`).codes.length, 0);
  });

  it('never throws and never loses body text, whatever happens to a file', () => {
    const random = pseudoRandom(42);
    const original =
      '---\nname: x\ndescription: "a: b"\nmetadata: {"openclaw":{"os":["linux"]}}\n---\n\n# Title\nBODY-TEXT\n';
    const [head, tail] = [
      original.slice(0, original.indexOf('\n# Title')),
      original.slice(original.indexOf('\n# Title')),
    ];
    for (let round = 0; round < 2000; round++) {
      const mutated = mutate(head, random) + tail;
      const { body, fields } = parsed(mutated);
      assert.ok(body.endsWith('# Title\nBODY-TEXT\n'), JSON.stringify(mutated));
      assert.ok(
        readRuntimeMetadata(fields).problems.every(problem => problem),
        JSON.stringify(mutated),
      );
    }
  });

  it('keeps metadata that goes over several lines from the first column on, though YAML refuses the file', () => {
    const { fields } = parsed(
      '---\ndescription: when: rain\nmetadata: {\n"openclaw": {"requires": {\n"bins": ["jq"]}}\n}\nname: x\n---\nB',
    );
    assert.deepEqual(readRuntimeMetadata(fields).requires.bins, ['jq']);
    assert.equal(fields['name'], 'x');
  });

  describe('offers a change that mends', () => {
    const rows: readonly (readonly [what: string, broken: string, mended: string])[] = [
      [
        'a colon in a value',
        '---\ndescription: Use when: rain\n---\nB',
        '---\ndescription: "Use when: rain"\n---\nB',
      ],
      [
        'quotes in the value, behind a byte order mark',
        '\uFEFF---\nname: x\ndescription: say "a: b" to it\n---\nB',
        '\uFEFF---\nname: x\ndescription: \'say "a: b" to it\'\n---\nB',
      ],
      [
        'a value on two lines, with CRLF',
        '---\r\ndescription: it\'s when: rain\r\n  or "snow"\r\nname: x\r\n---\r\nB',
        '---\r\ndescription: "it\'s when: rain or \\"snow\\""\r\nname: x\r\n---\r\nB',
      ],
      [
        'a missing fence',
        '---\nname: x\ndescription: d\n\n# Body\n',
        '---\nname: x\ndescription: d\n---\n\n# Body\n',
      ],
      ['a missing fence at the end', '---\nname: x', '---\nname: x\n---\n'],
      [
        'quotes within quotes',
        '---\ndescription: "Say "hi" now"\n---\nB',
        '---\ndescription: \'Say "hi" now\'\n---\nB',
      ],
      [
        'an apostrophe within quotes',
        "---\ndescription: 'It's on'\n---\nB",
        '---\ndescription: "It\'s on"\n---\nB',
      ],
      [
        'a path within quotes',
        '---\ndescription: "C:\\path"\n---\nB',
        "---\ndescription: 'C:\\path'\n---\nB",
      ],
      [
        'an open quote',
        '---\ndescription: "open\nname: x\n---\nB',
        '---\ndescription: "open"\nname: x\n---\nB',
      ],
      ['a star', '---\ndescription: *x\n---\nB', '---\ndescription: "*x"\n---\nB'],
    ];
    for (const [what, broken, mended] of rows) {
      it(what, () => {
        const before = parsed(broken);
        const { offset, length, text } = before.diagnostics[0]!.edit!;
        const plain = broken.replace(/^\uFEFF/, '');
        const after = plain.slice(0, offset) + text + plain.slice(offset + length);
        assert.equal(after, mended.replace(/^\uFEFF/, ''));
        assert.deepEqual(parsed(after).codes, []);
        assert.equal(parsed(after).description, before.description);
        assert.equal(parsed(after).body, before.body);
      });
    }

    it('but none where quotes would not help', () => {
      assert.equal(parsed('---\n  a: 1\n b: {\n---\nB').diagnostics[0]?.edit, undefined);
      assert.equal(parsed('---\nmetadata: {"a" "b"}\n---\nB').diagnostics[0]?.edit, undefined);
    });

    it('nor where a list, or another key, would become part of a text', () => {
      for (const frontmatter of [
        'tags:\n\t- a\n\t- b',
        'globs:\n  - *.ts',
        'tags: [a, b',
        'description: d\n author: me',
        'description:\nAt: the margin\nand on',
        "k: 'a''b'\n<<: *nobody",
        'k: v\né: when: rain',
      ])
        assert.equal(parsed(`---\n${frontmatter}\n---\nB`).diagnostics[0]?.edit, undefined, frontmatter);
    });
  });
});

describe('findValue', () => {
  it('says where the value of a key stands', () => {
    const text = '\uFEFF\n---\r\ndescription: d\r\nname:  my skill \r\n---\r\nname: other\n';
    const { line, offset, length } = findValue(text, 'name')!;
    assert.deepEqual([line, text.slice(offset + 1, offset + 1 + length)], [4, 'my skill']);
    assert.equal(findValue(text, 'title'), undefined);
  });
});

describe('scanName', () => {
  it('finds a plain name and leaves anything else to the parser', () => {
    assert.equal(scanName('---\ndescription: d\nname: "my-skill"\n---\n'), 'my-skill');
    assert.equal(scanName('---\nname: my-skill # note\n---\n'), 'my-skill');
    assert.equal(scanName('---\nname: >\n  folded\n---\n'), undefined);
    assert.equal(scanName('# name: x\n'), undefined);
  });
});

/** A linear congruential generator, so that a failing round can be found again. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return below => {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return state % below;
  };
}

function mutate(text: string, random: (below: number) => number): string {
  const pieces = [
    '---\n',
    '\r\n',
    ': ',
    '"',
    "'",
    '{',
    '\t',
    '- ',
    '#',
    '|\n',
    '\uFEFF',
    '\0',
    '*a',
    '&a ',
    '<!-- -->\n',
    '\u2028',
  ];
  let mutated = text;
  for (let change = random(4); change >= 0; change--) {
    const at = random(mutated.length + 1);
    const cut = random(3) === 0 ? random(12) : 0;
    mutated =
      mutated.slice(0, at) +
      (random(4) ? (pieces[random(pieces.length)] ?? '') : '') +
      mutated.slice(at + cut);
  }
  return mutated;
}
