import assert from 'node:assert/strict';
import { frontmatterLines, isSkillFile, keysIn } from '../../../src/extension/skills/frontmatterPlace.ts';

const lines = (text: string): string[] => text.split('\n');

describe('the place in a skill file', () => {
  it('is between the fences, behind empty lines and comments, and to the end where the fence is open', () => {
    assert.deepEqual(frontmatterLines(lines('---\nname: a\n---\nbody')), { first: 1, end: 2 });
    assert.deepEqual(frontmatterLines(lines('\uFEFF\n<!-- x -->\n ---\nname: a\n--- \n')), {
      first: 3,
      end: 4,
    });
    assert.deepEqual(frontmatterLines(lines('---\nname: a\n\nbody')), { first: 1, end: 4 });
    for (const text of ['', 'body', '# Title\n---\nname: a\n---', '<!-- open\n---\n']) {
      assert.equal(frontmatterLines(lines(text)), undefined, text);
    }
  });

  it('knows the keys at the top, and neither what is nested nor what is body', () => {
    const text = '---\nname: a\nmetadata:\n  openclaw: {}\nallowed-tools : Read\n# note: x\n---\nbody: b';
    assert.deepEqual(keysIn(lines(text)), [
      { name: 'name', line: 1 },
      { name: 'metadata', line: 2 },
      { name: 'allowed-tools', line: 4 },
    ]);
  });

  it('is only in files that are read as skills', () => {
    for (const path of ['/a/SKILL.md', '/a/skill.MD', 'C:\\a\\Skills.md', 'SKILL.md'])
      assert.ok(isSkillFile(path), path);
    for (const path of ['/a/MYSKILL.md', '/a/SKILL.md/b.md', '/a/SKILL.txt', ''])
      assert.ok(!isSkillFile(path), path);
  });
});
