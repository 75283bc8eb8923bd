/** Telos in a workspace that is not trusted, and in one of several folders, in a real VS Code. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { storyText } from '../plan/planWorld.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import {
  type EditorSession,
  type EditorSessionOptions,
  firstStartLimit,
  openEditorSession,
} from '../vscode/editorSession.ts';
import { chatFrame, runCommand } from '../vscode/workbench.ts';

describe('kinds of workspaces in a real VS Code', () => {
  let session: EditorSession | undefined;

  before(async function () {
    this.timeout(firstStartLimit);
    await fetchCodeServer(console.log, AbortSignal.timeout(firstStartLimit));
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed' && session)
      console.error(`The window at the failure: ${await session.workbench.screenshot('workspace-failed')}`);
    await session?.close();
    session = undefined;
  });

  /** Opens a window on a world with these files. */
  async function open(
    files: Readonly<Record<string, string>>,
    options: EditorSessionOptions,
  ): Promise<EditorSession> {
    session = await openEditorSession({
      ...options,
      prepare: async world => {
        for (const [path, text] of Object.entries(files)) {
          await mkdir(dirname(join(world.dir, path)), { recursive: true });
          await writeFile(join(world.dir, path), text);
        }
        await options.prepare?.(world);
      },
    });
    return session;
  }

  const skill = (name: string): string => `---\nname: ${name}\ndescription: Does ${name}\n---\nDo it.\n`;

  it('in Restricted Mode lists the own skills, reads none of the workspace, runs nothing, and says what to do', async () => {
    const files = {
      'workspace/.claude/skills/intruder/SKILL.md': skill('intruder'),
      'workspace/.vscode/settings.json': '{ "telos.provider": "ollama", "telos.model": "intruding-model" }',
    };
    const { world, workbench: window } = await open(files, { withoutAccount: true, restricted: true });
    const { page } = window;
    const tree = page
      .locator('.pane')
      .filter({ has: page.getByText('Agents & Skills') })
      .first();
    await tree.getByRole('treeitem', { name: /kickoff/ }).waitFor();
    await tree.getByText('Restricted Mode: the skills of this workspace are not read').waitFor();
    const chat = await chatFrame(window);
    const welcome = chat.getByText('Restricted Mode: nothing runs until you trust this workspace.');
    await welcome.waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('run daily kickoff');
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    assert.equal(await chat.getByRole('button', { name: 'Send' }).isDisabled(), true);
    await window.screenshot('restricted');
    assert.doesNotMatch((await chat.locator('body').textContent()) ?? '', /intrud/);
    assert.doesNotMatch((await page.locator('.monaco-workbench').textContent()) ?? '', /intruding-model/);
    assert.equal(await tree.getByRole('treeitem', { name: /intruder/ }).count(), 0);
    await assert.rejects(readFile(join(world.workspace, 'today.md')));
    await runCommand(page, 'Telos: Doctor');
    const refused = page.locator('.monaco-dialog-box', { hasText: 'This workspace is in Restricted Mode' });
    await refused.getByRole('button', { name: 'OK' }).click();
    await refused.waitFor({ state: 'detached' });

    await chat.getByRole('button', { name: 'Manage Workspace Trust' }).click();
    await page
      .locator('.workspace-trust-editor')
      .getByRole('button', { name: 'Trust', exact: true })
      .first()
      .click();
    await tree.getByRole('treeitem', { name: /intruder/ }).waitFor();
    await welcome.waitFor({ state: 'detached' });
  });

  it('in Restricted Mode lists plans and shows their files, and runs none of them', async () => {
    const story = storyText({ id: 'US-001', title: 'Bread', checks: { trap: 'touch trapped' } });
    const { world, workbench: window } = await open(
      {},
      {
        withoutAccount: true,
        restricted: true,
        prepare: async ({ workspace, data }) => {
          const seal = new MachineSeal(data);
          const made = await PlanFolder.create(workspace, 'shop', 'Sell bread', seal);
          await made.write('prds/01-bread.md', story);
        },
      },
    );
    const folder = PlanFolder.open(world.workspace, 'shop');
    const before = await readFile(folder.journal, 'utf8');
    const { page } = window;
    await runCommand(page, 'Focus on Plans View');
    const row = (start: string) => page.locator(`.monaco-list-row[aria-label^="${start}"]`);
    await row('shop, ').waitFor();
    assert.equal(
      await row('shop, ').locator('.action-label[aria-label^="Run Plan"]:not(.disabled)').count(),
      0,
    );
    await row('US-001 Bread').click();
    const refused = page.locator('.monaco-dialog-box', { hasText: 'This workspace is in Restricted Mode' });
    const close = async (): Promise<void> => {
      await refused.getByRole('button', { name: 'OK' }).click();
      await refused.waitFor({ state: 'detached' });
    };
    for (const lens of ['Run to Here', 'Check Only']) {
      await page.locator('.codelens-decoration a', { hasText: lens }).first().click();
      await close();
    }
    await runCommand(page, 'Telos: Try a Plan');
    await refused.waitFor();
    await window.screenshot('restricted-plans');
    assert.equal(await readFile(folder.journal, 'utf8'), before);
    assert.deepEqual(
      (await readdir(world.workspace, { recursive: true })).filter(name => /trapped|runner\./.test(name)),
      [],
    );
  });

  it('takes skills from each folder of a workspace, and runs each in its own', async () => {
    const files = {
      'workspace/.claude/skills/plan/SKILL.md': skill('plan'),
      'second/.claude/skills/paint/SKILL.md': skill('paint'),
      'both.code-workspace': '{ "folders": [{ "path": "workspace" }, { "path": "second" }] }',
    };
    const turns = [
      {
        text: ['I paint.'],
        toolCalls: [{ name: 'write_file', input: { path: 'picture.md', content: 'blue' } }],
      },
      { text: ['It is blue.'] },
    ];
    const { world, workbench: window } = await open(files, {
      model: { turns },
      // An editor of its own: one that has shown many folders does not always open a file of a workspace.
      variables: { LC_MESSAGES: 'C' },
      path: ({ dir }) => `?workspace=${encodeURIComponent(join(dir, 'both.code-workspace'))}`,
    });
    const { page } = window;
    await page.getByRole('treeitem', { name: /plan/ }).first().waitFor();
    await page.getByRole('treeitem', { name: /paint/ }).first().waitFor();
    const chat = await chatFrame(window);
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('/paint something');
    await chat.getByRole('button', { name: 'Send', disabled: false }).click();
    const log = chat.getByRole('log', { name: 'Conversation' });
    // A file in a workspace is asked about, or not, as its rules say; a person would allow it.
    const allow = log.getByRole('button', { name: 'Allow Once' });
    await log.getByText('It is blue.').or(allow).first().waitFor();
    if (await allow.isVisible()) await allow.click();
    await log.getByText('It is blue.').waitFor();
    await window.screenshot('multi-root');
    assert.equal(await readFile(join(world.dir, 'second', 'picture.md'), 'utf8'), 'blue');
  });
});
