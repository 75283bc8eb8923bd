/** A new skill is a whole file under a safe name. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { skillNameProblem } from '../../../src/engine/skills/packSkills.ts';
import { agentNameProblem, writeNewSkill } from '../../../src/engine/skills/scaffold.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('new skills', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  it('writes a SKILL.md under its name, and nothing beside it', async () => {
    const file = await writeNewSkill(join(folder.path, 'kairos/skills'), 'weekly-report');
    assert.equal(file, join(folder.path, 'kairos', 'skills', 'weekly-report', 'SKILL.md'));
    assert.match(
      readFileSync(file, 'utf8'),
      /^---\nname: weekly-report\ndescription: .+\n---\n\n# Weekly report\n/,
    );
    assert.deepEqual(readdirSync(join(folder.path, 'kairos', 'skills')), ['weekly-report']);
  });

  it('never replaces a skill', async () => {
    folder.add({ 'kairos/skills/weekly-report/SKILL.md': 'mine' });
    assert.equal(await writeNewSkill(join(folder.path, 'kairos/skills'), 'weekly-report'), undefined);
    const skills = join(folder.path, 'kairos', 'skills');
    assert.equal(readFileSync(join(skills, 'weekly-report', 'SKILL.md'), 'utf8'), 'mine');
    assert.deepEqual(readdirSync(skills), ['weekly-report']);
  });

  it('takes names that are safe as folders alone', () => {
    for (const name of ['a', 'weekly-report', '2026-plan'])
      assert.equal(skillNameProblem(name), undefined, name);
    for (const name of ['', '.', '..', 'a/b', 'a\\b', 'A', 'a--b', '-a', 'a b', 'a'.repeat(65)]) {
      assert.ok(skillNameProblem(name), name);
    }
    for (const name of ['kairos', 'My_Agent-2']) assert.equal(agentNameProblem(name), undefined, name);
    for (const name of ['', '..', '.git', 'a/b', '-a', 'a'.repeat(65)])
      assert.ok(agentNameProblem(name), name);
  });
});
