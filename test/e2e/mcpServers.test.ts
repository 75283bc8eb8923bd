/** The view *MCP Servers* in a real VS Code: states, the first error, tools on and off, the log, and a server that is added. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Locator } from 'playwright-core';
import { loadConfig } from '../../src/engine/config.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { FormField } from '../../src/protocol/form.ts';
import { eventually, until } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, frameWith, runCommand, type Workbench } from '../vscode/workbench.ts';
import { testVariables, type World } from '../vscode/world.ts';
import { buildView, openView, type View } from '../webview/harness.ts';
import { ask, conversation, routed, start } from '../webview/scenes.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const skillServer = fileURLToPath(new URL('../fakes/skillServer.ts', import.meta.url));

describe('MCP servers in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;

  before(async function () {
    this.timeout(firstStartLimit);
    const broken = { command: process.execPath, args: ['-e', "require('./gone.js')"] };
    const beds = { command: process.execPath, args: [fake, 'offers'] };
    const shed = { command: process.execPath, args: [skillServer, 'served'] };
    const mcpServers = { well: { command: process.execPath, args: [fake, 'none'] }, broken, beds, shed };
    session = await openEditorSession({
      model: { turns: () => ({ text: ['Done.'] }) },
      skills: {
        'garden/mcp.json': JSON.stringify({ mcpServers }),
        'garden/served/rake/SKILL.md': '---\nname: rake\ndescription: Rakes the beds\n---\nRake.\n',
        'garden/skills/barrel/SKILL.md': '---\nname: barrel\ndescription: Rain barrel\n---\nLook.\n',
      },
      workspace: {
        '.vscode/mcp.json': JSON.stringify({ servers: { taken: { command: 'node', args: ['there.js'] } } }),
      },
      prepare: async made => {
        const telos = Telos.open(loadConfig({ env: testVariables(made), home: made.dir }));
        await telos.acceptCard(await telos.agentCard('garden'));
      },
    });
    ({ world, workbench } = session);
    await runCommand(workbench.page, 'Focus on MCP Servers View');
    await row('well').waitFor();
    // The rows of a small view are not all drawn.
    for (const other of ['Agents & Skills', 'Runs'])
      await workbench.page.locator('.pane-header', { hasText: other }).first().click();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await workbench?.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(() => session?.close());

  const tree = (): Locator =>
    workbench.page.locator('.pane', {
      has: workbench.page.locator('.pane-header', { hasText: 'MCP Servers' }),
    });
  const row = (name: string, state = ''): Locator =>
    tree().locator(`.monaco-list-row[aria-label*="${name}, garden, ${state}"]`);
  const policy = (): string => join(world.dir, 'config', 'policy.toml');
  const rules = (): string => (existsSync(policy()) ? readFileSync(policy(), 'utf8') : '');

  it('starts a server by the keyboard, and switches one of its tools off and on', async () => {
    const { page } = workbench;
    // A first try may have started it and switched the tool off.
    rmSync(policy(), { force: true });
    await row('well').click();
    await page.mouse.move(640, 10);
    await page.keyboard.press('ArrowRight');
    await row('well', '6 tools').waitFor();
    const tool = tree().locator('.monaco-list-row', { hasText: 'Ends the server.' });
    await tool.waitFor();
    const isFocused = async (): Promise<boolean> =>
      /\bfocused\b/.test((await tool.getAttribute('class')) ?? '');
    // Rows that are drawn anew take the focus along, a moment later, so that a step down can lead too far.
    await eventually(async () => {
      await page.keyboard.press('Home');
      for (let steps = 0; steps < 20 && !(await isFocused()); steps++) {
        await page.keyboard.press('ArrowDown');
        await page.waitForTimeout(100);
      }
      await page.waitForTimeout(200);
      assert.ok(await isFocused());
    });
    await page.keyboard.press('Space');
    await until(() => /tool = "die"\nserver = "well"/.test(rules()));
    await tool.locator('[role="checkbox"][aria-checked="false"]').waitFor();
    await page.keyboard.press('Space');
    await until(() => !rules().includes('"die"'));
  });

  it('shows the first error of one that cannot start, and its log', async () => {
    const { page } = workbench;
    await row('broken').hover();
    await row('broken').getByRole('button', { name: 'Restart' }).click();
    const why = "it exited before it answered: Error: Cannot find module './gone.js'";
    await row('broken', why).waitFor();
    await row('broken').hover();
    await row('broken').getByRole('button', { name: 'Show Log' }).click();
    await page.locator('.editor-instance .view-lines', { hasText: 'requireStack' }).waitFor();
  });

  it('lists the skills of a server, and installs one after a look and a yes', async () => {
    const { page } = workbench;
    // The view is small, and the rows of the tests that follow have to be seen.
    const fold = async (server: string): Promise<void> => {
      await row(server).click();
      await page.keyboard.press('ArrowLeft');
    };
    await fold('well');
    await row('shed').hover();
    await row('shed').getByRole('button', { name: 'Restart' }).click();
    await row('shed', '0 tools, 1 skill').click();
    await page.mouse.move(640, 10);
    await page.keyboard.press('ArrowRight');
    const skill = tree().locator('.monaco-list-row[aria-label="Install the skill rake"]');
    await skill.click();
    const question = await frameWith(workbench, frame =>
      frame.getByRole('heading', { name: /^Install .*rake/ }),
    );
    assert.equal(existsSync(join(world.dir, 'skills/rake')), false);
    await question.getByRole('button', { name: 'Install', exact: true }).click();
    const agents = page.locator('.pane', {
      has: page.locator('.pane-header', { hasText: 'Agents & Skills' }),
    });
    const rake = agents.locator('.monaco-list-row', { hasText: 'rake' });
    await rake.first().waitFor();
    assert.ok(existsSync(join(world.dir, 'skills/rake')));
    // The tests that follow have one agent.
    rmSync(join(world.dir, 'skills/rake'), { recursive: true });
    await until(async () => (await rake.count()) === 0);
    await fold('shed');
  });

  it('offers the prompts and resources of a server that has started, which a request then reads', async () => {
    await row('beds').hover();
    await row('beds').getByRole('button', { name: 'Restart' }).click();
    await row('beds', '6 tools').waitFor();
    await runCommand(workbench.page, 'Telos: Focus on Chat View');
    const chat = await chatFrame(workbench);
    const textbox = chat.getByRole('textbox', { name: 'Message Telos' });
    await textbox.fill('/beds:pl');
    await chat.getByRole('option', { name: '/beds:plan' }).click();
    await textbox.pressSequentially('South @beds:beds://so');
    await chat.getByRole('option', { name: '@beds:beds://south' }).click();
    await textbox.press('Enter');
    await chat.locator('.end-completed').waitFor();
    const sent = JSON.stringify(session?.model.requests[0]?.body.messages);
    assert.match(sent, /beds at South\./);
    assert.match(sent, /South bed: beans/);
    await chat.locator('.message', { hasText: "'beds' has filled in its prompt plan" }).waitFor();
  });

  it('takes over a server of VS Code, which waits for a review', async () => {
    const { page } = workbench;
    await runCommand(page, 'Import from .vscode/mcp.json');
    await page.locator('.quick-input-widget', { hasText: 'node there.js' }).waitFor();
    await page.keyboard.press('Enter');
    const written = (): string => readFileSync(join(world.skills, 'garden/mcp.json'), 'utf8');
    await until(() => /"taken": \{\s+"command": "node"/.test(written()));
    await row('taken', 'its agent is not reviewed yet').waitFor();
    assert.match(written(), /"well"/);
  });

  it('has a server run in the box by its menu, and outside of it again', async () => {
    const { page } = workbench;
    const entry = (): { sandbox?: boolean } =>
      JSON.parse(readFileSync(join(world.skills, 'garden/mcp.json'), 'utf8')).mcpServers.well;
    const choose = (title: string, isDone: () => boolean): Promise<void> =>
      eventually(async () => {
        if (isDone()) return;
        await row('well').click({ button: 'right' });
        const menu = page.locator('.monaco-menu').first();
        // A menu that has just opened takes no click yet.
        const item = menu.locator('.action-label', { hasText: new RegExp(`^${title}$`) });
        await item.click({ timeout: 5_000, delay: 150 }).finally(() => page.keyboard.press('Escape'));
        await eventually(() => assert.ok(isDone()), 3_000);
      });
    await choose('Run in the Sandbox', () => entry().sandbox === true);
    await page
      .getByRole('button', { name: /runs in the sandbox once you have reviewed/ })
      .first()
      .waitFor();
    await choose('Run Outside the Sandbox', () => entry().sandbox === undefined);
  });
});

/** The form of a server in the chat view's page by itself. */
describe('the form of a server', () => {
  let browser: Browser;
  let view: View;

  before(async function () {
    this.timeout(60_000);
    browser = await sharedChromium();
    view = await openView(browser, await buildView());
  });
  const hostile = '<img src=x onerror=alert(1)>[x](command:y)';
  const fields: FormField[] = [
    { name: 'place', title: 'Place', description: hostile, isRequired: true, kind: 'text', minLength: 3 },
    {
      name: 'count',
      title: 'How many',
      isRequired: false,
      kind: 'number',
      isWhole: true,
      maximum: 9,
      initial: 4,
    },
    { name: 'raised', title: 'Raised', isRequired: false, kind: 'switch' },
    {
      name: 'soil',
      title: 'Soil',
      isRequired: true,
      kind: 'choice',
      options: [
        { value: 's', label: 'Sand' },
        { value: 'c', label: hostile },
      ],
    },
    {
      name: 'plants',
      title: 'Plants',
      isRequired: false,
      kind: 'choices',
      options: [
        { value: 'a', label: 'Asters' },
        { value: 'b', label: 'Beans' },
      ],
      initial: ['b'],
    },
  ];

  it('says who asks, checks what is filled in, and sends it', async () => {
    const { page } = view;
    const asked = ask('f1', 'Where should the beds go?');
    const reason = "The MCP server 'beds' of agent garden asks this. It gets what you fill in.";
    const request = { ...asked.request, tool: 'mcp_form', scopes: ['once' as const], reason, form: fields };
    await view.say(conversation([start('sow'), routed, { ...asked, request }]));
    const card = page.getByRole('group', { name: 'Approval: Fill in this form?' });
    await card.getByText(reason).first().waitFor();
    await card.getByText(hostile).first().waitFor();
    await card.getByRole('button', { name: 'Send' }).click();
    await card.getByText('This field is required.').first().waitFor();
    await page.waitForFunction(() => document.activeElement?.id === 'field-0');
    await page.keyboard.type('So');
    await card.getByLabel('How many').fill('12');
    await card.getByLabel('Soil').selectOption('c');
    await page.keyboard.press('Enter');
    await card.getByLabel('Asters').check();
    await card.getByRole('button', { name: 'Send' }).click();
    await card.getByText('Enter at least 3 characters.').waitFor();
    await card.getByText('Enter at most 9.').waitFor();
    assert.deepEqual(await filled(), []);
    await card.getByLabel('Place').fill('South');
    await card.getByLabel('How many').fill('9');
    await card.getByLabel('How many').press('Enter');
    await eventually(async () =>
      assert.deepEqual(await filled(), [
        { place: 'South', count: 9, raised: false, soil: 'c', plants: ['b', 'a'] },
      ]),
    );
    assert.deepEqual(view.problems, []);
    assert.equal(await page.locator('img').count(), 0);
  });

  async function filled(): Promise<unknown[]> {
    const posted = await view.posted();
    return posted.flatMap(message =>
      message.type === 'approve' && message.decision.allow ? [message.decision.content] : [],
    );
  }
});
