/** Skills as people publish them, through the chat of a real VS Code: some of each shape of the suite that the command line passes whole. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { readCases } from '../realSkills/caseFile.ts';
import { openSkillEditor, type SkillEditor } from '../realSkills/inEditor.ts';
import type { SkillOutcome } from '../realSkills/runSkill.ts';
import { belowTheBar, figuresOf, findings } from '../realSkills/table.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';

// None needs more than what a bare machine has on its path: the editor takes that of the login shell.
const names = [
  'proof-reader',
  'loop-writer',
  'purse-watch',
  'work-log',
  'house-style',
  'goal-cascade',
  'tone-check',
  'todo-list',
  'commit-count',
  'project-skill',
  'telos-pack',
  'missing-module',
];

describe('skills as their authors wrote them, in a real VS Code', () => {
  const all = readCases(fileURLToPath(new URL('../realSkills/cases.yaml', import.meta.url)));
  const cases = names.map(name => all.find(one => one.name === name)!);
  let editor: SkillEditor;
  const outcomes: SkillOutcome[] = [];

  before(async function () {
    this.timeout(firstStartLimit);
    editor = await openSkillEditor(cases);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(await editor.session.workbench.screenshot('real-skills-failed'));
  });

  after(() => editor?.session.close());

  for (const one of cases)
    it(`${one.name}: ${one.shape}`, async () => {
      const outcome = await editor.run(one);
      outcomes.push(outcome);
      assert.deepEqual(findings([outcome]), []);
    });

  it('keep the bar of the suite', () => {
    assert.equal(outcomes.length, cases.length);
    assert.deepEqual(belowTheBar(figuresOf(outcomes, 'pack')), []);
  });
});
