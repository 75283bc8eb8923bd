/** What is said of a skill file, and what is mended. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { lintSkill, lintText, mendText, skillsBelow } from '../../../src/engine/skills/lint.ts';
import { openSkill } from '../../../src/engine/skills/skillFile.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

const found = (text: string) =>
  lintText(text, '/skills/plan/SKILL.md').map(({ severity, code, line }) => `${severity} ${code} ${line}`);

describe('lintText', () => {
  it('has nothing to say of a good file', () => {
    assert.deepEqual(found('---\nname: plan\ndescription: d\nallowed-tools: Read, Bash(git *)\n---\nB'), []);
  });

  it('names each defect with its line', () => {
    assert.deepEqual(found('# Only text'), ['warning frontmatter-missing 1']);
    assert.deepEqual(found('---\nname: plan\n---\nB'), ['warning description-missing 1']);
    assert.deepEqual(
      found(
        '---\ndescription: d\nname: other\nmetadata: {openclaw: {os: [beos]}}\nallowed-tools: Read Teleport\n---\nB',
      ),
      ['info name-folder 3', 'warning metadata 4', 'info allowed-tools 5'],
    );
  });

  it('says what stands in place of a fence', () => {
    const rows: readonly (readonly [text: string, words: RegExp])[] = [
      ['----\ndescription: d\n----\nB', /`----`.*three hyphens/],
      ['+++\ndescription = "d"\n+++\nB', /TOML/],
      ['```yaml\n---\ndescription: d\n---\n```\nB', /block of code/],
      ['description: d\n---\nB', /before the first key/],
      ['---yaml\ndescription: d\n---\nB', /`---yaml`.*three hyphens/],
      ['\u2014-\ndescription: d\n\u2014-\nB', /`\u2014-`.*three hyphens/],
      ['***\nname: d\n***\nB', /`\*\*\*`.*three hyphens/],
      ['# Title\n\n---\nname: d\n---\nB', /first thing in the file/],
      ['<!-- note\n---\nname: d\n---\nB', /never closed/],
      ['---\n\nText between rules.\n\n---\nB', /Begin the file/],
      ['***\n\nText\n', /Begin the file/],
    ];
    for (const [text, words] of rows) {
      const [diagnostic] = lintText(text, '/skills/plan/SKILL.md');
      assert.equal(diagnostic?.code, 'frontmatter-missing');
      assert.match(diagnostic.fix ?? '', words);
    }
  });

  it('warns of a description that a comment cuts, and of none in quotes', () => {
    const [cut] = lintText('---\ndescription: see issue #12\n---\nB', '/skills/plan/SKILL.md');
    assert.deepEqual([cut?.code, cut?.line, cut?.edit?.text], ['description-comment', 2, '"see issue #12"']);
    const whole = lintText('---\ndescription: #12 and more\n---\nB', '/skills/plan/SKILL.md').find(
      ({ edit }) => edit,
    );
    assert.deepEqual([whole?.code, whole?.edit?.text], ['description-comment', '"#12 and more"']);
    assert.deepEqual(found('---\ndescription: # to do\n---\nB'), ['warning description-missing 2']);
    assert.deepEqual(found('---\nhint: h\ndescription:\n---\nB'), ['warning description-missing 3']);
    for (const description of ['"see #12"', "'see #12'", 'C# and so#on', '|\n  see #12'])
      assert.deepEqual(found(`---\ndescription: ${description}\n---\nB`), [], description);
  });

  it('offers the folder’s name, in quotes where YAML would take it for something else', () => {
    const edits = ['plan', '1'].map(
      folder => lintText('---\ndescription: d\nname: x\n---\n', `/skills/${folder}/SKILL.md`)[0]?.edit,
    );
    assert.deepEqual(edits, [
      { offset: 25, length: 1, text: 'plan' },
      { offset: 25, length: 1, text: '"1"' },
    ]);
  });

  it('says of a saved skill the same, and of one that cannot be read why', () => {
    const text = '---\nname: other\n---\nB';
    const folder = tempFolder({
      'plan/SKILL.md': text,
      'bad/SKILL.md': new Uint8Array([0, 1]),
      'old/SKILL.md': Buffer.from('---\nname: old\ndescription: caf\xe9\n---\nB', 'latin1'),
      'half/SKILL.md': Buffer.concat([
        Buffer.from('---\nname: half\ndescription: für: caf'),
        Buffer.from('\xe9\n---\nB', 'latin1'),
      ]),
      'wide/SKILL.md': Buffer.from('\ufeff---\nname: wide\ndescription: Größe: M\n---\nBody\n', 'utf16le'),
      'wider/SKILL.md': Buffer.from(
        '\ufeff---\nname: wider\ndescription: Größe: M\n---\nBody\n',
        'utf16le',
      ).swap16(),
      'zero/SKILL.md': '---\ndescription: d\n---\nB\0',
    });
    try {
      const file = join(folder.path, 'plan/SKILL.md');
      assert.deepEqual(lintSkill(openSkill(file, 'user')), [...lintText(text, file)].sort());
      assert.deepEqual(
        lintSkill(openSkill(join(folder.path, 'bad/SKILL.md'), 'user')).map(({ severity, code }) => [
          severity,
          code,
        ]),
        [['error', 'skill-unreadable']],
      );
      const inFolder = (name: string) => lintSkill(openSkill(join(folder.path, name, 'SKILL.md'), 'user'))[0];
      assert.deepEqual([inFolder('old')?.code, inFolder('old')?.line], ['encoding', 3]);
      assert.equal(openSkill(join(folder.path, 'old/SKILL.md'), 'user').description, 'café');
      const half = openSkill(join(folder.path, 'half/SKILL.md'), 'user');
      assert.deepEqual(
        [half.description, half.diagnostics.some(({ edit }) => edit)],
        ['für: caf\uFFFD', false],
      );
      for (const name of ['wide', 'wider']) {
        const { description, body } = openSkill(join(folder.path, name, 'SKILL.md'), 'user');
        assert.deepEqual([description, body], ['Größe: M', 'Body\n'], name);
        assert.deepEqual(
          lintSkill(openSkill(join(folder.path, name, 'SKILL.md'), 'user')).map(({ code, edit }) => [
            code,
            edit,
          ]),
          [
            ['frontmatter-yaml', undefined],
            ['encoding', undefined],
          ],
        );
      }
      assert.match(inFolder('zero')?.message ?? '', /zero byte in line 4/);
    } finally {
      folder.remove();
    }
  });
});

describe('mendText', () => {
  it('mends one defect after the other and leaves everything else as it is', () => {
    const broken =
      '\uFEFF---\r\nname: other\r\ndescription: use: this\r\nhint: and: "that"\r\n\r\nBody: x\r\n';
    const mended =
      '\uFEFF---\r\nname: other\r\ndescription: "use: this"\r\nhint: \'and: "that"\'\r\n---\r\n\r\nBody: x\r\n';
    assert.equal(mendText(broken, 'SKILL.md'), mended);
    assert.equal(mendText(mended, 'SKILL.md'), mended);
  });

  it('mends whatever has a change to offer that is more than a hint', () => {
    const broken = '---\nname: other\nDescription: see issue #12\nhint: say "a: b"\n---\nB';
    const mended = '---\nname: other\ndescription: "see issue #12"\nhint: \'say "a: b"\'\n---\nB';
    assert.equal(mendText(broken, 'SKILL.md'), mended);
    assert.deepEqual(
      lintText(mended, 'SKILL.md').filter(({ edit, severity }) => edit && severity !== 'info'),
      [],
    );
  });

  it('writes line feeds for carriage returns where there is something to mend, and only there', () => {
    assert.equal(
      mendText('---\rdescription: a: b\r---\rB\r', 'SKILL.md'),
      '---\ndescription: "a: b"\n---\nB\n',
    );
    assert.equal(mendText('---\rdescription: d\r---\rB\r', 'SKILL.md'), '---\rdescription: d\r---\rB\r');
  });
});

describe('mendText, where quotes do not help', () => {
  it('puts no quotes round quotes', () => {
    const merge = '---\ndescription: say "x"\n<<<<<<< HEAD\nname: a\n=======\n>>>>>>> b\n---\nB';
    assert.equal(mendText(merge, 'SKILL.md'), merge);
    const stray = '---\ndescription: say "x"\njust words\nname: a\n---\nB';
    assert.equal(mendText(stray, 'SKILL.md'), stray);
  });
});

describe('skillsBelow', () => {
  it('finds every skill, also below another one and one that leads nowhere, and survives a circle of links', () => {
    const folder = tempFolder({
      'SKILL.md': 'x',
      'a/skill.md': 'x',
      'a/b/c/d/e/f/skills.md': 'x',
      'lost/notes.md': 'x',
      'node_modules/x/SKILL.md': 'x',
    });
    try {
      symlinkSync(folder.path, join(folder.path, 'a/circle'));
      symlinkSync('circle', join(folder.path, 'circle'));
      symlinkSync('nowhere', join(folder.path, 'lost/SKILL.md'));
      const names = skillsBelow(folder.path).map(({ file }) => file.slice(folder.path.length));
      assert.deepEqual(names, ['/SKILL.md', '/a/b/c/d/e/f/skills.md', '/a/skill.md', '/lost/SKILL.md']);
      assert.deepEqual(skillsBelow(join(folder.path, 'gone')), []);
    } finally {
      folder.remove();
    }
  });
});
