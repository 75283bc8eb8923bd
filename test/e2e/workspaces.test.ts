/** Telos in a workspace that is not trusted, and in one of several folders, in a real VS Code. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PlanFolder } from '../../src/engine/workflow/planFolder.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { storyText } from '../plan/planWorld.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { type ServerOptions, startServer } from '../vscode/server.ts';
import { chatFrame, openWorkbench, runCommand, type Workbench } from '../vscode/workbench.ts';
import { freshWorld, testVariables, type World } from '../vscode/world.ts';

describe('kinds of workspaces in a real VS Code', () => {
  let vscode: string;
  let workbench: Workbench | undefined;
  const undo: (() => unknown)[] = [];

  before(async function () {
    // The first run on a machine fetches VS Code.
    this.timeout(10 * 60_000);
    vscode = await fetchCodeServer(console.log, AbortSignal.timeout(10 * 60_000));
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed' && workbench)
      console.error(`The window at the failure: ${await workbench.screenshot('workspace-failed')}`);
    workbench = undefined;
    for (const step of undo.splice(0).reverse()) await step();
  });

  async function worldWith(files: Record<string, string>): Promise<World> {
    const world = await freshWorld();
    undo.push(() => world.remove());
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(world.dir, path)), { recursive: true });
      await writeFile(join(world.dir, path), text);
    }
    return world;
  }

  async function open(world: World, more: Partial<ServerOptions>, query = ''): Promise<Workbench> {
    const { profile, extensions, workspace: folder } = world;
    const options = {
      vscode,
      profile,
      extensions,
      folder,
      port: 0,
      env: testVariables(world),
      trusted: true,
    };
    const server = await startServer({ ...options, ...more });
    undo.push(() => server.stop());
    const opened = await openWorkbench(`${server.url}/${query}`);
    undo.push(() => opened.close());
    workbench = opened;
    return opened;
  }

  const skill = (name: string): string => `---\nname: ${name}\ndescription: Does ${name}\n---\nDo it.\n`;

  it('in Restricted Mode lists the own skills, reads none of the workspace, runs nothing, and says what to do', async () => {
    const world = await worldWith({
      'workspace/.claude/skills/intruder/SKILL.md': skill('intruder'),
      'workspace/.vscode/settings.json': '{ "telos.provider": "ollama", "telos.model": "intruding-model" }',
    });
    const window = await open(world, { trusted: false });
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
    const world = await worldWith({});
    const folder = await PlanFolder.create(world.workspace, 'shop', 'Sell bread');
    const story = storyText({ id: 'US-001', title: 'Bread', checks: { trap: 'touch trapped' } });
    await folder.write('prds/01-bread.md', story);
    const before = await readFile(folder.journal, 'utf8');
    const window = await open(world, { trusted: false });
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
    const world = await worldWith({
      'workspace/.claude/skills/plan/SKILL.md': skill('plan'),
      'second/.claude/skills/paint/SKILL.md': skill('paint'),
      'both.code-workspace': '{ "folders": [{ "path": "workspace" }, { "path": "second" }] }',
    });
    const model = await startAnthropicServer({
      turns: [
        {
          text: ['I paint.'],
          toolCalls: [{ name: 'write_file', input: { path: 'picture.md', content: 'blue' } }],
        },
        { text: ['It is blue.'] },
      ],
    });
    undo.push(() => model.close());
    const env = {
      ...testVariables(world),
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'key-for-a-test',
      TELOS_ROUTING_MODE: 'name',
    };
    const query = `?workspace=${encodeURIComponent(join(world.dir, 'both.code-workspace'))}`;
    const window = await open(world, { env }, query);
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
