/** The view *MCP Servers* in a real VS Code: a server at an address is added, signed in to in the browser, looked at, and signed out of. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { loadConfig } from '../../src/engine/config.ts';
import { Telos } from '../../src/engine/telos.ts';
import { eventually, until } from '../eventually.ts';
import { type SignInServers, startSignInServers } from '../fakes/signInServers.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chooseInMenu, runCommand, type Workbench } from '../vscode/workbench.ts';
import { testVariables, type World } from '../vscode/world.ts';

describe('an MCP server with a sign-in in a real VS Code', () => {
  let session: EditorSession | undefined;
  let servers: SignInServers | undefined;
  let world: World;
  let workbench: Workbench;

  before(async function () {
    this.timeout(firstStartLimit);
    servers = await startSignInServers({}, '127.0.0.2');
    session = await openEditorSession({
      model: { turns: () => ({ text: ['Done.'] }) },
      skills: {
        'garden/skills/barrel/SKILL.md': '---\nname: barrel\ndescription: Rain barrel\n---\nLook.\n',
      },
    });
    ({ world, workbench } = session);
    await runCommand(workbench.page, 'Focus on MCP Servers View');
    // The rows of a small view are not all drawn.
    for (const other of ['Agents & Skills', 'Runs'])
      await workbench.page.locator('.pane-header', { hasText: other }).first().click();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await workbench?.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(async () => {
    await session?.close();
    await servers?.close();
  });

  const view = (): Locator =>
    workbench.page.locator('.pane', {
      has: workbench.page.locator('.pane-header', { hasText: 'MCP Servers' }),
    });
  const row = (state = ''): Locator =>
    view().locator(`.monaco-list-row[aria-label*="post, garden, ${state}"]`);
  const file = (): string => join(world.skills, 'garden/mcp.json');
  const input = (): Locator => workbench.page.locator('.quick-input-widget');

  /** Enters the text once the box asks for it. */
  async function enter(prompt: string, text: string): Promise<void> {
    await input().filter({ hasText: prompt }).waitFor();
    await input().locator('input[type="text"]').fill(text);
    await workbench.page.keyboard.press('Enter');
  }

  it('is added by its address, which must be one', async () => {
    const { page } = workbench;
    // The icon of the same name in the title is hidden until the view has the pointer.
    await view().locator('.monaco-button', { hasText: 'Add MCP Server...' }).click();
    await page.locator('.quick-input-list .monaco-list-row', { hasText: 'An address' }).click();
    await enter('Its address', 'example.com/mcp');
    await input().filter({ hasText: 'Enter an address that begins with https:// or http://.' }).waitFor();
    await enter('Enter an address', servers?.url ?? '');
    await enter('A name for it', 'post');
    await until(() => existsSync(file()));
    assert.deepEqual(JSON.parse(readFileSync(file(), 'utf8')), {
      mcpServers: { post: { url: servers?.url } },
    });
    await row('its agent is not reviewed yet').waitFor();
  });

  it('wants a sign-in, and says why there is none', async () => {
    const telos = Telos.open(loadConfig({ env: testVariables(world), home: world.dir }));
    await telos.acceptCard(await telos.agentCard('garden'));
    await runCommand(workbench.page, 'Refresh MCP Servers');
    await row('not started yet').hover();
    await row().getByRole('button', { name: 'Restart' }).click();
    await row('wants you to sign in').waitFor();
    servers!.faults.denies = true;
    try {
      await signIn();
      // One full stop, also behind a reason that ends with its own.
      const said = /You are not signed in to 'post': the sign-in was refused: You have said no\. Try again/;
      await dialog(said).getByRole('button', { name: 'OK' }).click();
      await row('wants you to sign in').waitFor();
    } finally {
      delete servers!.faults.denies;
    }
  });

  it('is signed in to, shows its tools, and is signed out of', async () => {
    const { page } = workbench;
    await signIn();
    await row('1 tool').waitFor();
    await row('1 tool').click();
    await page.keyboard.press('ArrowRight');
    await view().locator('.monaco-list-row', { hasText: 'Says them.' }).waitFor();
    await workbench.screenshot('mcp-server-access');
    await chooseInMenu(page, row(), 'Sign Out');
    await page.getByText("You signed out of 'post'.").first().waitFor();
    await row().hover();
    await row().getByRole('button', { name: 'Restart' }).click();
    await row('wants you to sign in').waitFor();
  });

  const dialog = (hasText: string | RegExp): Locator =>
    workbench.page.locator('.monaco-dialog-box', { hasText });

  /** Agrees to what Telos and VS Code ask, and waits until the page to which the sign-in leads has come back. */
  async function signIn(): Promise<void> {
    const { page } = workbench;
    const question = dialog("Sign in to the MCP server 'post'?");
    // VS Code draws the row anew when its server changes, and a press on the old one is lost.
    await eventually(async () => {
      await row('wants you to sign in').hover();
      await row().getByRole('button', { name: 'Sign In...' }).click({ timeout: 2_000 });
      await question.waitFor({ timeout: 2_000 });
    }, 30_000);
    await question.filter({ hasText: `${servers?.page} opens in your browser.` }).waitFor();
    const opening = page.context().waitForEvent('page');
    await question.getByRole('button', { name: 'Sign In' }).click();
    // VS Code asks about addresses that it does not know, once.
    const outside = dialog('open the external website');
    await Promise.race([opening, outside.waitFor()]);
    if (await outside.isVisible()) await outside.getByRole('button', { name: 'Open' }).click();
    await leave(await opening);
  }

  async function leave(opened: Page): Promise<void> {
    await eventually(async () => assert.match(await opened.innerText('body'), /You can close this page now/));
    await opened.close();
  }
});
