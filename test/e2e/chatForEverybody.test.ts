/** The chat in a real VS Code for everybody: in the four themes, by keyboard alone, at a zoom of 200 %, in 320 pixels, without motion. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Frame } from 'playwright-core';
import { eventually, never } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

/** As the list of themes calls them, each with the class that a webview then has. */
const themes = [
  ['Dark Modern', 'vscode-dark'],
  ['Light Modern', 'vscode-light'],
  ['Dark High Contrast', 'vscode-high-contrast'],
  ['Light High Contrast', 'vscode-high-contrast-light'],
] as const;

const report = `The barrel is **nearly full**; see \`barrel.txt\`.

| Day | Litres | Rain |
| --- | ---: | --- |
| Monday | 180 | a long steady drizzle over the whole of the afternoon |
| Tuesday | 195 | none |

\`\`\`js
// how full it is, from 0 to 1
const level = (litres) => litres / 200;
console.log(level(195), 'a line that is much longer than any narrow view could ever hold without scrolling in its own box');
\`\`\`

1. Water the beans.
2. Leave the [shed](https://example.com/shed) open.
`;

const command = '/bin/echo full > barrel.txt';

describe('the chat of a real VS Code for everybody', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let chat: Frame;
  let turns: AnthropicTurn[] = [];

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: { turns: () => turns.shift() ?? {} },
      skills: {
        'garden/skills/barrel/SKILL.md': '---\nname: barrel\ndescription: Rain barrel\n---\nLook into it.\n',
      },
    });
    ({ world, workbench } = session);
    chat = await chatFrame(workbench);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(await workbench.screenshot('everybody-failed'));
  });

  after(() => session?.close());

  const log = () => chat.getByRole('log', { name: 'Conversation' });
  const card = () => log().getByRole('group', { name: 'Approval: Run this command?' }).last();
  const focused = () =>
    chat.evaluate(
      () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '',
    );

  it('takes a request and a yes by keyboard alone', async () => {
    turns = [
      { text: ['I look into it.'], toolCalls: [{ name: 'run_command', input: { command } }] },
      { text: [report] },
    ];
    const { keyboard } = workbench.page;
    await chat.getByRole('button', { name: 'Send' }).waitFor();
    await keyboard.press('Control+K');
    await keyboard.press('Control+G');
    await chat.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA');
    await keyboard.type('check the barrel');
    // Until the host has told the view what there is, nothing can be sent; a person is never that fast.
    await chat.getByRole('button', { name: 'Send', disabled: false }).waitFor();
    await keyboard.press('Enter');
    await card().getByRole('button', { name: 'Allow Once' }).waitFor();
    for (let presses = 0; presses < 40 && !/^Allow Once/.test(await focused()); presses++)
      await keyboard.press('Shift+Tab');
    assert.match(await focused(), /^Allow Once/);
    // A card takes no key in its first moments, and a person is never that fast.
    await eventually(async () => {
      await keyboard.press('Enter');
      assert.equal(await card().getByRole('button', { name: 'Allow Once' }).isVisible(), false);
    });
    await log().getByText('nearly full').waitFor();
    assert.ok(existsSync(join(world.workspace, 'barrel.txt')));
  });

  it('has nothing that axe finds fault with in the four themes, with a card, a table and code', async function () {
    this.timeout(10 * 60_000);
    turns = [{ text: ['Once more.'], toolCalls: [{ name: 'run_command', input: { command } }] }];
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('check the barrel again');
    await chat.getByRole('button', { name: 'Send', disabled: false }).click();
    await card().getByRole('button', { name: 'Allow Once' }).waitFor();
    await chat.evaluate(axe);
    for (const [theme, name] of themes) {
      await pickTheme(theme);
      await chat.waitForFunction(wanted => document.body.classList.contains(wanted), name);
      // Colours may fade into each other.
      await chat.waitForFunction(
        () => !document.getAnimations().some(animation => animation instanceof CSSTransition),
      );
      const findings = await chat.evaluate(async () => {
        // The view is see-through, and axe cannot look behind its frame, where the sidebar is.
        const { style } = document.documentElement;
        style.backgroundColor = 'var(--vscode-sideBar-background)';
        const { axe } = window as unknown as {
          axe: {
            run(): Promise<{
              violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
            }>;
          };
        };
        return (await axe.run()).violations.map(
          ({ id, nodes }) => `${id} ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
        );
      });
      await workbench.screenshot(`theme-${name}`);
      await log().locator('table').first().scrollIntoViewIfNeeded();
      await workbench.screenshot(`theme-${name}-table`);
      await card().scrollIntoViewIfNeeded();
      assert.deepEqual(findings, [], theme);
    }
  });

  it('cuts nothing off at a zoom of 200 %, in a view of 320 pixels or less', async () => {
    // What a zoom of the browser does to the layout: half of the pixels, each twice as large.
    await workbench.page.setViewportSize({ width: 640, height: 430 });
    const width = async () => chat.evaluate(() => window.innerWidth);
    await dragSidebarTo(320);
    const views = await eventually(async () => {
      const pixels = await width();
      assert.ok(pixels <= 330, `the view is ${pixels} pixels wide`);
      return pixels;
    });
    console.log(`      the view is ${views} pixels wide`);
    await workbench.screenshot('zoom-200');
    const tooLarge = () =>
      chat.evaluate(() => {
        const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
        const log = document.querySelector('[role="log"]');
        return {
          page: scrollWidth - clientWidth,
          // What reaches below the window lets a focus, or a screen reader, push the textbox out of it.
          pageBelow: scrollHeight - clientHeight,
          log: log ? log.scrollWidth - log.clientWidth : Number.NaN,
        };
      });
    await eventually(async () => assert.deepEqual(await tooLarge(), { page: 0, pageBelow: 0, log: 0 }));
    for (const name of ['Allow Once', 'Deny']) {
      const button = card().getByRole('button', { name });
      await button.scrollIntoViewIfNeeded();
      const reach = await button.evaluate(element => {
        const { left, right } = element.getBoundingClientRect();
        return { left: left >= 0, right: right <= window.innerWidth };
      });
      assert.deepEqual(reach, { left: true, right: true }, name);
    }
    for (const role of ['textbox', 'button'] as const) {
      const one = chat.getByRole(
        role,
        role === 'textbox' ? { name: 'Message Telos' } : { name: 'Stop', exact: true },
      );
      const isInside = () =>
        one.evaluate(element => element.getBoundingClientRect().bottom <= window.innerHeight);
      await eventually(async () => assert.ok(await isInside(), `${role} is below the edge`));
    }
    await workbench.page.setViewportSize({ width: 1280, height: 860 });
  });

  it('moves nothing where the person wants no motion', async () => {
    await workbench.page.emulateMedia({ reducedMotion: 'no-preference' });
    turns = [{ text: ['Let me', ' see', ' now'], hold: { behind: 'ping', until: never } }];
    await card().getByRole('button', { name: 'Deny' }).click();
    const moving = () => chat.evaluate(() => document.getAnimations().length);
    // What goes on turns, so that the test would see what moves.
    await chat.waitForFunction(() => document.getAnimations().length > 0);
    await workbench.screenshot('motion');
    await workbench.page.emulateMedia({ reducedMotion: 'reduce' });
    await eventually(async () => assert.equal(await moving(), 0));
    await chat.getByRole('button', { name: 'Stop', exact: true }).click();
    await log().locator('.end-cancelled').waitFor();
  });

  async function pickTheme(label: string): Promise<void> {
    const { page } = workbench;
    await runCommand(page, 'Preferences: Color Theme');
    const widget = page.locator('.quick-input-widget');
    await widget.locator('input[type="text"]').fill(label);
    await page.locator('.quick-input-list .monaco-list-row', { hasText: label }).first().click();
    await widget.waitFor({ state: 'hidden' });
  }

  /** The sash on the left of the secondary sidebar, moved until the sidebar is that wide. */
  async function dragSidebarTo(width: number): Promise<void> {
    const { page } = workbench;
    // The window takes a moment to lay itself out anew after its size has changed.
    const part = await eventually(async () => {
      const box = await page.locator('.part.auxiliarybar').boundingBox();
      assert.ok(box && box.x + box.width <= 640, 'the sidebar is not within the window');
      return box;
    });
    if (part.width <= width) return;
    await page.mouse.move(part.x, part.y + part.height / 2);
    await page.mouse.down();
    await page.mouse.move(part.x + part.width - width, part.y + part.height / 2, { steps: 10 });
    await page.mouse.up();
  }
});
