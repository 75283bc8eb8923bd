/** What a run does to files, in a real VS Code: the cards, the diff editors with old and new, undo to the byte, and its refusal. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

/** Line ends of two kinds, and none at the end. */
const oldPlan = 'Water the beds\r\nOld line of the plan\nCut the hedge';
const newPlan = 'Water the beds\r\nNew line of the plan\nCut the hedge\nSow\n';

describe('changes of a run in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let chat: Frame;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: (_request, index) =>
          index % 2 === 0
            ? {
                toolCalls: [
                  { name: 'write_file', input: { path: 'plan.md', content: newPlan } },
                  { name: 'write_file', input: { path: 'beds/north.md', content: 'Leeks\n' } },
                ],
              }
            : { text: ['The plan is written.'] },
      },
      skills: {
        'garden/agent.toml': 'name = "garden"\ndescription = "grows"\nworking_dir = "."\n',
        'garden/skills/plan/SKILL.md': '---\nname: plan\ndescription: Plans beds\n---\nPlan.\n',
      },
      workspace: {
        'plan.md': oldPlan,
      },
      // In a browser it would save after a second.
      settings: { 'files.autoSave': 'off' },
    });
    ({ world, workbench } = session);
    chat = await chatFrame(workbench);
  });

  beforeEach(async () => {
    await writeFile(plan(), oldPlan);
    await rm(made(), { recursive: true, force: true });
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('run plan');
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    await chat.getByRole('button', { name: 'Undo This Run' }).waitFor();
    assert.equal(await readFile(plan(), 'utf8'), newPlan);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') {
      console.error(`The window at the failure: ${await workbench.screenshot('changes-failed')}`);
    }
    await runCommand(workbench.page, 'View: Close All Editors');
    await runCommand(workbench.page, 'Telos: New Conversation');
    await chat.getByText('What do you want to do?').waitFor();
  });

  after(() => session?.close());

  const plan = (): string => join(world.workspace, 'plan.md');
  const made = (): string => join(world.workspace, 'beds');
  const button = (name: string): Locator => chat.getByRole('button', { name, exact: true });
  const dialog = (): Locator => workbench.page.locator('.monaco-dialog-box');
  const unsaved = (): Locator => workbench.page.locator('.tab.dirty', { hasText: 'plan.md' });
  const line = (text: string): Locator => workbench.page.locator('.view-line', { hasText: text }).first();

  it('shows a file, then all files of the run with old and new, and undoes them to the byte', async () => {
    const wrote = chat.getByRole('group', { name: 'Wrote plan.md' });
    assert.match((await wrote.textContent()) ?? '', /^Wrote plan\.md\+3−2/);
    await chat
      .getByRole('group', { name: 'Files that this run changed' })
      .getByText('2 files changed')
      .waitFor();
    await button('Show diff of plan.md').click();
    await line('Old line of the plan').waitFor();
    await line('New line of the plan').waitFor();
    await workbench.screenshot('changes-one-file');
    await runCommand(workbench.page, 'View: Close All Editors');
    await button('Show Changes').click();
    await line('Old line of the plan').waitFor();
    await line('New line of the plan').waitFor();
    await line('Leeks').waitFor();
    await workbench.screenshot('changes-all-files');
    await button('Undo This Run').click();
    await dialog().getByText('Undo this run?').waitFor();
    await dialog().getByText('north.md (will be deleted)').waitFor();
    await workbench.screenshot('changes-undo-asked');
    await dialog().getByRole('button', { name: 'Undo', exact: true }).click();
    await workbench.page.getByText('Undone: 2 files restored').first().waitFor();
    await button('Undone').waitFor();
    assert.ok(await button('Undone').isDisabled());
    assert.ok((await readFile(plan())).equals(Buffer.from(oldPlan)));
    assert.equal(existsSync(made()), false);
    await workbench.screenshot('changes-undone');
    await runCommand(workbench.page, 'View: Close All Editors');
    await button('Show Changes').click();
    await line('Old line of the plan').waitFor();
    await workbench.page.locator('.tab', { hasText: 'Changes of a Run (1 file)' }).waitFor();
    // A view that is drawn again still knows.
    await runCommand(workbench.page, 'Developer: Reload Webviews');
    chat = await chatFrame(workbench, [chat]);
    await button('Undone').waitFor();
  });

  it('undoes all that the conversation has changed from its dial, once it is agreed to', async () => {
    await chat.locator('.mode').click();
    await chat.getByText('2 actions, 0 asked, 0 left the sandbox').waitFor();
    await workbench.screenshot('changes-dial');
    await button('Undo All…').click();
    await dialog().getByText('Undo all that this conversation has changed?').waitFor();
    assert.equal(await readFile(plan(), 'utf8'), newPlan);
    await dialog().getByRole('button', { name: 'Undo All', exact: true }).click();
    await button('Undone').waitFor();
    assert.ok((await readFile(plan())).equals(Buffer.from(oldPlan)));
    assert.equal(existsSync(made()), false);
  });

  it('lists what changed today by run and file in one place, and undoes all of it', async () => {
    const { page } = workbench;
    await runCommand(page, 'Telos: Show Changes of Today...');
    const list = page.locator('.quick-input-list');
    const row = (text: string): Locator => list.locator('.monaco-list-row', { hasText: text }).first();
    await row('Undo All...').waitFor();
    const rows = (await list.locator('.monaco-list-row').allInnerTexts()).join('\n');
    for (const words of [/run plan/, /plan\.md/, /north\.md[\s\S]*beds · new/])
      assert.match(rows, words, rows);
    await row('plan.md').click();
    await line('Old line of the plan').waitFor();
    await runCommand(page, 'Telos: Show Changes of Today...');
    await row('Undo All...').click();
    await dialog().getByText('Undo all that Telos has changed today?').waitFor();
    await dialog().getByRole('button', { name: 'Undo All' }).click();
    await button('Undone').waitFor();
    assert.deepEqual([await readFile(plan(), 'utf8'), existsSync(made())], [oldPlan, false]);
  });

  it('undoes nothing where a file was edited since, and says which', async () => {
    await writeFile(plan(), 'My own words');
    await button('Undo This Run').click();
    const told = workbench.page.locator('.monaco-dialog-box', {
      hasText: 'plan.md has been edited since then',
    });
    await told.waitFor();
    await workbench.screenshot('changes-refused');
    assert.equal(await readFile(plan(), 'utf8'), 'My own words');
    assert.ok(existsSync(join(made(), 'north.md')));
    await told.getByRole('button', { name: 'Show Changes' }).click();
    await line('My own words').waitFor();
    await line('Old line of the plan').waitFor();
    assert.ok(await button('Undo This Run').isEnabled());
  });

  it('undoes nothing where an editor holds changes that are not saved', async () => {
    await button('plan.md').click();
    await line('New line of the plan').click();
    await workbench.page.keyboard.type('half a thought ');
    await unsaved().waitFor();
    await button('Undo This Run').click();
    const told = workbench.page.locator('.monaco-dialog-box', { hasText: 'plan.md has changes' });
    await told.waitFor();
    assert.equal(await readFile(plan(), 'utf8'), newPlan);
    assert.equal(await told.getByRole('button', { name: 'Undo the Others' }).count(), 0);
    await told.getByRole('button', { name: 'Cancel' }).click();
    await runCommand(workbench.page, 'File: Revert File');
    await unsaved().waitFor({ state: 'detached' });
  });

  it('looks like itself in a dark theme', async () => {
    await runCommand(workbench.page, 'Preferences: Toggle between Light/Dark Themes');
    await chat.locator('body.vscode-dark').waitFor();
    await workbench.screenshot('changes-dark');
    await runCommand(workbench.page, 'Preferences: Toggle between Light/Dark Themes');
  });
});
