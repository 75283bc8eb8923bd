/** Try Once in a real VS Code: a skill runs without an install, its changes are shown, and the folder changes only after a yes. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { treeOf } from '../engine/skills/treeOf.ts';
import { eventually } from '../eventually.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { frameWith, runCommand } from '../vscode/workbench.ts';

describe('trying a skill once in a real VS Code', () => {
  let session: EditorSession;
  let pack: string;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      workspace: { 'notes.md': 'old\n' },
      model: {
        turns: ({ body }) =>
          JSON.stringify(body).includes('tool_result')
            ? { text: ['The notes are tidy.'] }
            : { toolCalls: [{ name: 'write_file', input: { path: 'notes.md', content: 'new\n' } }] },
      },
    });
    pack = join(session.world.dir, 'packs', 'tidy');
    mkdirSync(pack, { recursive: true });
    writeFileSync(
      join(pack, 'SKILL.md'),
      '---\nname: tidy\ndescription: Tidies notes\nallowed-tools: Read Write\n---\nTidy the notes.\n',
    );
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(await session.workbench.screenshot('try-failed'));
  });
  after(() => session?.close());

  const toast = () => session.workbench.page.locator('.notifications-toasts .notification-list-item');
  const notes = (): string => readFileSync(join(session.world.workspace, 'notes.md'), 'utf8');

  async function tryIt(): Promise<void> {
    const { workbench } = session;
    await runCommand(workbench.page, 'Telos: Install Skills');
    const input = workbench.page.locator('.quick-input-widget input[type="text"]');
    await input.fill(pack);
    await workbench.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Install from' }).waitFor();
    await input.press('Enter');
    const page = await frameWith(workbench, frame =>
      frame.getByRole('button', { name: 'Try Once', exact: true }),
    );
    await workbench.screenshot('try-page');
    await page.getByRole('button', { name: 'Try Once', exact: true }).click({ delay: 150 });
    await workbench.page.locator('.quick-input-widget', { hasText: 'Try tidy Once' }).waitFor();
    await workbench.page.keyboard.press('Enter');
    await toast().getByText('Files that tidy changed in the copy: 1. Keep them in the folder?').waitFor();
  }

  it('leaves the folder byte-equal, and installs nothing', async () => {
    const before = treeOf(session.world.workspace);
    await tryIt();
    await session.workbench.page.locator('.multiDiffEntry').first().waitFor();
    await session.workbench.screenshot('try-changes');
    assert.equal(treeOf(session.world.workspace), before);
    await toast().getByRole('button', { name: 'Discard' }).click();
    await toast().waitFor({ state: 'detached' });
    assert.equal(treeOf(session.world.workspace), before);
    assert.ok(!existsSync(join(session.world.skills, 'tidy')));
    await runCommand(session.workbench.page, 'View: Close All Editors');
  });

  it('keeps the changes after a yes', async () => {
    await tryIt();
    await toast().getByRole('button', { name: 'Keep Changes' }).click();
    await eventually(() => assert.equal(notes(), 'new\n'));
  });
});
