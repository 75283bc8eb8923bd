/** The Testing view in a real VS Code: a request that runs no skill fails at its line. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Locator } from 'playwright-core';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

const dir = 'garden/skills/diary';
const skill = '---\nname: diary\ndescription: Sums up the harvest\n---\nTHE DIARY TEXT\n';
const triggers = `[
  {"query": "sum up the harvest", "should_trigger": true},
  {"query": "paint the old fence", "should_trigger": false},
  {"query": "gather what grew last week", "should_trigger": true}
]
`;

describe('evals in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: { turns: [] },
      skills: {
        [`${dir}/SKILL.md`]: skill,
        [`${dir}/evals/trigger.json`]: triggers,
        'garden/skills/fence/SKILL.md': '---\nname: fence\ndescription: Paints fences\n---\nTHE FENCE TEXT\n',
      },
      workspace: { 'a.md': 'x' },
    });
    ({ world, workbench } = session);
  });

  beforeEach(() => {
    rmSync(join(world.skills, dir, 'evals'), { recursive: true, force: true });
    put('SKILL.md', skill);
    put('evals/trigger.json', triggers);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(`The window at the failure: ${await workbench.screenshot('evals-failed')}`);
    await runCommand(workbench.page, 'View: Close All Editors');
    await runCommand(workbench.page, 'Notifications: Clear All Notifications');
  });

  after(() => session?.close());

  const item = (name: string): Locator =>
    workbench.page.locator('.part.sidebar .monaco-list-row', { hasText: name });
  /** By its state, which only the label for screen readers has. */
  const row = (state: string, name?: string): Locator =>
    workbench.page.locator(`.part.sidebar .monaco-list-row[aria-label*="${state}"]`, {
      ...(name !== undefined && { hasText: name }),
    });

  function put(path: string, content: string): void {
    const file = join(world.skills, dir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  async function openTests(): Promise<void> {
    await runCommand(workbench.page, 'Focus on Test Explorer View');
    await runCommand(workbench.page, 'Test: Refresh Tests');
    await item('diary').waitFor();
    await unfold();
  }

  /** Shows the requests and evals of the skill. */
  async function unfold(): Promise<void> {
    if ((await item('sum up the harvest').count()) > 0) return;
    await item('diary').click();
    await workbench.page.keyboard.press('ArrowRight');
    await item('sum up the harvest').waitFor();
  }

  async function runAll(): Promise<void> {
    await runCommand(workbench.page, 'Test: Run All Tests');
  }

  it('shows a request that fails at its line', async () => {
    await openTests();
    await runAll();
    await row('(Failed)', 'gather what grew last week').waitFor();
    assert.equal(await row('(Passed)').count(), 2);
    await item('gather what grew last week').dblclick();
    await workbench.page.getByText('It runs no skill.').first().waitFor();
    await workbench.screenshot('evals-tests');
  });
});
