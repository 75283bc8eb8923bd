import assert from 'node:assert/strict';
import { boxLines, isStoryId, parsePrd, printPrd, tick } from '../../src/plans/prdFile.ts';
import type { Story } from '../../src/protocol/plan.ts';

const login = `---
id: US-003
role: marketing
depends_on: [US-001]
touches: ["src/login/**", "test/login/**"]
check:
  - {name: unit, command: "npm test -- login", timeout_s: 300}
  - {name: types, command: "npx tsc --noEmit", red: true}
---
# Log in with e-mail

As a customer, I want
to log in.

## Acceptance criteria
- [ ] 1. A wrong password shows "Wrong" and HTTP 401  (check: unit)
- [x] 2. A right one leads home
## Definition of done
\`\`\`md
- [ ] 3. sample
\`\`\`
`;

const itemsOf = (text: string) => parsePrd('prds/a.md', text).story.items;

describe('the file of a story', () => {
  it('is read whole', () => {
    const { story, problems } = parsePrd('prds/03-login.md', login);
    assert.deepEqual(problems, []);
    assert.deepEqual(story, {
      id: 'US-003',
      title: 'Log in with e-mail',
      description: 'As a customer, I want to log in.',
      prd: 'prds/03-login.md',
      role: 'marketing',
      dependsOn: ['US-001'],
      touches: ['src/login/**', 'test/login/**'],
      checks: [
        { name: 'unit', command: 'npm test -- login', timeoutS: 300 },
        { name: 'types', command: 'npx tsc --noEmit', red: true },
      ],
      items: [
        { number: 1, text: 'A wrong password shows "Wrong" and HTTP 401  (check: unit)', ticked: false },
        { number: 2, text: 'A right one leads home', ticked: true },
      ],
    } satisfies Story);
  });

  it('has an id and a title by its name where it says none', () => {
    const bare = parsePrd('prds/07-contact.md', '- [ ] one\n').story;
    assert.deepEqual([bare.id, bare.title, bare.role], ['US-007', '07-contact', 'coder']);
    assert.equal(parsePrd('prds/Über uns!.md', '').story.id, 'ber-uns');
    const { story, problems } = parsePrd('prds/2-x.md', '---\nid: "../../evil"\n---\nx\n# Later\n# Second\n');
    assert.deepEqual([story.id, story.title], ['US-002', 'Later']);
    assert.match(problems.join(), /its id is not of letters/);
    for (const id of ['', 'a b', 'a/b', '.', '-x', 'a.lock', 'x'.repeat(41)])
      assert.equal(isStoryId(id), false, id);
  });

  it('has only boxes as Markdown shows them, outside of code', () => {
    assert.deepEqual(itemsOf('- [ ] \n-[ ] x\n- [-] y\n- [ ]z\n'), []);
    assert.deepEqual(
      itemsOf('```\n- [ ] sample\n```\n~~~~\n- [ ] b\n~~~\n- [ ] c\n~~~~\n- [X] d\n').length,
      1,
    );
    assert.deepEqual(itemsOf('```\n- [ ] the fence is open\n'), []);
    assert.deepEqual(itemsOf('# T\r\n- [x] crlf\r\n'), [{ number: 1, text: 'crlf', ticked: true }]);
    assert.deepEqual(
      itemsOf('* [ ] star\n+ [x] plus\n').map(({ text, ticked }) => [text, ticked]),
      [
        ['star', false],
        ['plus', true],
      ],
    );
  });

  it('has the boxes of numbered lists too, with their numbers where these are free', () => {
    const text = '# T\n1. [ ] one\n2) [X] two\n   3. [x]  three\n-\t[ ] four\n## Next\n1. [ ] five\n';
    assert.deepEqual(itemsOf(text), [
      { number: 1, text: 'one', ticked: false },
      { number: 2, text: 'two', ticked: true },
      { number: 3, text: 'three', ticked: true },
      { number: 4, text: 'four', ticked: false },
      { number: 5, text: 'five', ticked: false },
    ]);
    assert.deepEqual(parsePrd('prds/a.md', text).problems, []);
    assert.equal(tick(text, 1, true), text.replace('1. [ ] one', '1. [x] one'));
    assert.equal(tick(text, 5, true), text.replace('1. [ ] five', '1. [x] five'));
    const named = itemsOf('1. [ ] first\n- [ ] 1. second\n').map(({ number }) => number);
    assert.deepEqual(named, [2, 1], 'a number in the words comes before one of the list');
    assert.match(parsePrd('prds/a.md', '1. [] one\n').problems.join(), /write \[ \] or \[x\]/);
    const printed = printPrd(parsePrd('prds/a.md', '- [ ] a\n').story, '1. [ ] no criterion\n');
    assert.deepEqual(
      itemsOf(printed).map(one => one.text),
      ['a'],
    );
  });

  it('knows a box by its number, also after an edit', () => {
    const numbers = (text: string) => itemsOf(text).map(({ number }) => number);
    assert.deepEqual(numbers('- [ ] 3. c\n- [ ] new\n- [ ] 1. a\n- [ ] other\n'), [3, 2, 1, 4]);
    const { story, problems } = parsePrd('prds/a.md', '- [ ] 1. a\n- [ ] 1. b\n');
    assert.deepEqual(
      story.items.map(({ number }) => number),
      [1, 2],
    );
    assert.match(problems.join(), /Two boxes have the number 1/);
  });

  it('names the line of what it cannot use, and the key that is meant', () => {
    const text =
      '---\nid: US-1\nchecks: npm test\ndepends-on: US-2\nrole: 7\n---\n# T\n\n- [~] half\n- [ ] 1. a\n- [ ] 1. b\n';
    assert.deepEqual(parsePrd('prds/a.md', text).problems, [
      'prds/a.md, line 3: checks is not read; write check.',
      'prds/a.md, line 4: depends-on is not read; write depends_on.',
      'prds/a.md, line 9: "- [~] half" is not read as a box; write [ ] or [x].',
      'prds/a.md, line 11: Two boxes have the number 1; give each its own.',
      'prds/a.md, line 5: role is not text, so it is ignored.',
    ]);
  });

  it('names paths to touch that lead out of the repository, and keeps the others', () => {
    const outside = [
      '../x',
      'src/../../x/**',
      'src/**/../../x',
      '..',
      '/etc/hosts',
      '~/notes.md',
      'C:\\x',
      '\\x',
      '..\\x',
    ];
    const inside = ['src/**', 'src/../test/a.js', './a..b/..c', '...', '~x', '{a,b}/*.js'];
    const text = `---\nid: US-1\ntouches: ${JSON.stringify([...outside, ...inside])}\n---\n# T\n`;
    const { story, problems } = parsePrd('prds/a.md', text);
    assert.deepEqual(story.touches, inside);
    const says = (path: string): string =>
      `prds/a.md, line 3: "${path}" in touches leads out of the repository, so it is ignored.`;
    assert.deepEqual(problems, outside.map(says));
  });

  it('names what it cannot use, and never throws', () => {
    const text =
      '---\nrole: 7\ncheck: [{name: a}, {name: b, command: x, timeout_s: soon}, {name: b, command: y}]\n---\n';
    const { story, problems } = parsePrd('prds/a.md', text);
    assert.equal(story.role, 'coder');
    assert.deepEqual(story.checks, [{ name: 'b', command: 'x' }]);
    assert.equal(problems.length, 4, problems.join('\n'));
    for (const odd of [
      '',
      '---',
      '---\n',
      '---\n: : :\n---\n- [ ] x',
      '\0',
      '\uFEFF---\nid: A\n---\r\n- [ ] x',
      '---\ncheck: null\n---',
    ])
      assert.ok(parsePrd('prds/a.md', odd).story.id);
  });

  it('is printed so that reading it gives the same story', () => {
    const { story } = parsePrd('prds/03-login.md', login);
    assert.deepEqual(parsePrd(story.prd, printPrd(story)).story, story);
    const hostile: Story = {
      ...story,
      title: '# Two\n- [x] 9. lines',
      description: '- [ ] not a box',
      role: 'a: {b',
      dependsOn: ['US-001"]'],
      touches: ["'**'", '\n'],
      checks: [{ name: 'x"\n- y', command: 'echo "a"\n---\nb' }],
      items: [{ number: 4, text: '12. a\n- [x] b', ticked: false }],
    };
    const read = parsePrd(
      hostile.prd,
      printPrd(hostile, '- [x] 5. done\n- [ ] [ ] x\n```\n- [ ] kept\n'),
    ).story;
    assert.deepEqual(read.items, [{ number: 4, text: '12. a - [x] b', ticked: false }]);
    assert.deepEqual([read.id, read.role, read.dependsOn], [hostile.id, hostile.role, hostile.dependsOn]);
    assert.equal(read.checks[0]?.command, hostile.checks[0]?.command);
  });

  it('is ticked in one character', () => {
    assert.equal(tick(login, 1, true), login.replace('- [ ] 1.', '- [x] 1.'));
    assert.equal(tick(login, 2, false), login.replace('- [x] 2.', '- [ ] 2.'));
    for (const same of [tick(login, 2, true), tick(login, 3, true), tick(login, 9, true)])
      assert.equal(same, login);
    const windows = `\uFEFF${login.replaceAll('\n', '\r\n')}`;
    assert.equal(tick(windows, 1, true), windows.replace('- [ ] 1.', '- [x] 1.'));
    assert.equal(tick('- [ ] a\r- [ ] b\r', 2, true), '- [ ] a\r- [x] b\r');
  });

  it('has its boxes in the lines in which they are written', () => {
    const lines = login.split('\n');
    const at = (text: string): number => lines.findIndex(line => line.includes(text));
    const wanted = [
      [1, at('A wrong password')],
      [2, at('A right one')],
    ];
    assert.deepEqual([...boxLines(login)], wanted);
    assert.deepEqual([...boxLines(login.replaceAll('\n', '\r\n'))], wanted);
    assert.deepEqual(
      [...boxLines('- [ ] 2. b\n- [ ] a')],
      [
        [2, 0],
        [1, 1],
      ],
    );
  });
});
