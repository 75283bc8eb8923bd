/** The Testing view in a real VS Code: a request fails at its line, a model proposes a better description, and the person keeps it. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { eventually } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, chooseInMenu, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

const dir = 'garden/skills/diary';
const skill = '---\nname: diary\ndescription: Sums up the harvest\n---\nTHE DIARY TEXT\n';
const triggers = `[
  {"query": "sum up the harvest", "should_trigger": true},
  {"query": "paint the old fence", "should_trigger": false},
  {"query": "gather what grew last week", "should_trigger": true}
]
`;
const better = 'Sums up the harvest: gather what grew in a week';

describe('evals in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let chat: Frame;
  let proposal: AnthropicTurn;
  let answer: string;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: ({ body }) => {
          const asked = JSON.stringify(body);
          if (asked.includes('"name":"propose"')) return proposal;
          if (asked.includes('"name":"grade"'))
            return { toolCalls: [{ name: 'grade', input: { passed: true, quote: 'Nine plums', why: '' } }] };
          return { text: [asked.includes('COUNT THEM') ? 'Nine plums.' : answer] };
        },
      },
      skills: {
        [`${dir}/SKILL.md`]: skill,
        [`${dir}/evals/trigger.json`]: triggers,
        'garden/skills/fence/SKILL.md': '---\nname: fence\ndescription: Paints fences\n---\nTHE FENCE TEXT\n',
      },
      workspace: { 'a.md': 'x' },
    });
    ({ world, workbench } = session);
    chat = await chatFrame(workbench);
  });

  beforeEach(() => {
    answer = 'Some plums.';
    rmSync(join(world.skills, dir, 'evals'), { recursive: true, force: true });
    put('SKILL.md', skill);
    put('evals/trigger.json', triggers);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(`The window at the failure: ${await workbench.screenshot('evals-failed')}`);
    // A question that a failed test has left open.
    if ((await dialog().count()) > 0) await workbench.page.keyboard.press('Escape');
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
  const dialog = (): Locator => workbench.page.locator('.monaco-dialog-box');
  const toast = (): Locator => workbench.page.locator('.notifications-toasts .notification-list-item');
  const text = (): string => readFileSync(join(world.skills, dir, 'SKILL.md'), 'utf8');
  const diff = (): Locator => workbench.page.locator('.monaco-diff-editor');

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

  const choose = (row: Locator, label: string): Promise<void> => chooseInMenu(workbench.page, row, label);

  async function press(label: string): Promise<void> {
    await dialog().getByRole('button', { name: label, exact: true }).click({ delay: 150 });
    await dialog().waitFor({ state: 'detached' });
  }

  /** Answers a question of the quick input, whose title is waited for. */
  async function say(title: string, words?: string): Promise<void> {
    const widget = workbench.page.locator('.quick-input-widget', { hasText: title });
    await widget.waitFor();
    if (words !== undefined) await widget.locator('input[type="text"]').fill(words);
    await workbench.page.keyboard.press('Enter');
    await widget.waitFor({ state: 'hidden' });
  }

  it('shows a request that fails at its line, and passes it with the description that is kept', async () => {
    proposal = {
      toolCalls: [{ name: 'propose', input: { description: better, why: 'It lacked the words.' } }],
    };
    await openTests();
    await runAll();
    await row('(Failed)', 'gather what grew last week').waitFor();
    assert.equal(await row('(Passed)').count(), 2);
    await item('gather what grew last week').dblclick();
    await workbench.page.getByText('It runs no skill.').filter({ visible: true }).first().waitFor();
    await workbench.screenshot('evals-tests');

    await choose(item('gather what grew last week'), 'Improve This Skill...');
    await dialog().getByText('Ask claude-haiku-5-5 for a better description of diary?').waitFor();
    assert.match(
      (await dialog().textContent()) ?? '',
      /It costs less than \$0\.01\. You see the proposal as a diff/,
    );
    await workbench.screenshot('evals-ask');
    await press('Ask');
    await toast().getByText('2 of 3 → 3 of 3, none worse. The model says: It lacked the words.').waitFor();
    await diff().getByText(better).first().waitFor();
    assert.equal(text(), skill, 'nothing is written before');
    await workbench.screenshot('evals-diff');
    await toast().getByRole('button', { name: 'Keep', exact: true }).click();
    await eventually(() => assert.equal(text(), skill.replace('Sums up the harvest', `"${better}"`)));
    await diff().waitFor({ state: 'detached' });
    await openTests();
    await runAll();
    await row('(Passed)', 'gather what grew last week').waitFor();
    await workbench.screenshot('evals-passing');
  });

  it('makes an eval of a run in the chat, tries a text with it, and keeps and undoes that', async function () {
    this.timeout(180_000);
    proposal = {
      toolCalls: [{ name: 'propose', input: { body: 'THE DIARY TEXT\nCOUNT THEM', why: 'It counts now.' } }],
    };
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('run diary');
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    const improve = chat.getByRole('button', { name: 'Improve Skill…' });
    await improve.waitFor();
    await workbench.screenshot('evals-chat');
    await improve.click();
    await say('What Was Wrong?');
    await say('What Was Wrong with the Result of diary?', 'It did not count the plums');
    await say('Request of the Eval');
    const parts = workbench.page.locator('.quick-input-widget', { hasText: 'Files and Checks of the Eval' });
    await parts.waitFor();
    await workbench.screenshot('evals-parts');
    await say('Files and Checks of the Eval');
    await dialog().getByText('Ask claude-haiku-5-5 for a better text of diary?').waitFor();
    await press('Ask');
    await dialog().getByText('Run the evals of diary with claude-haiku-5-5 before and after?').waitFor();
    await workbench.screenshot('evals-run');
    await press('Run Evals');
    await toast()
      .getByText(/^3 of 4 → 4 of 4|^2 of 4 → 3 of 4|of 4 →/)
      .waitFor();
    await workbench.screenshot('evals-tried');
    await toast().getByRole('button', { name: 'Show Results' }).click();
    await workbench.page
      .locator('.editor-instance', { hasText: 'eval: It did not count the plums' })
      .waitFor();
    await workbench.screenshot('evals-results');
    await toast().getByRole('button', { name: 'Keep', exact: true }).click();
    await eventually(() => assert.match(text(), /COUNT THEM/));
    // The bar is drawn anew while what was kept is read again, and a press on the old entry is lost.
    await eventually(async () => {
      if ((await dialog().count()) === 0)
        await workbench.page.locator('.statusbar-item', { hasText: 'Undo' }).click({ timeout: 5_000 });
      await dialog().waitFor({ timeout: 10_000 });
    }, 60_000);
    await press('Undo');
    await eventually(() => assert.equal(text(), skill));
  });

  it('names what is hidden in a proposal before it is kept, and writes nothing once it is dropped', async () => {
    const hidden = 'THE DIARY TEXT\nAdd\u202e the plums\u2066 up.';
    proposal = { toolCalls: [{ name: 'propose', input: { body: hidden, why: '[x](command:telos.stop)' } }] };
    const evals = [
      { id: 1, name: 'Counts the plums', prompt: 'Count', checks: [{ answer: { contains: '9' } }] },
    ];
    put('evals/evals.json', JSON.stringify({ evals }));
    await openTests();
    await choose(item('Counts the plums'), 'Improve This Skill...');
    await say('What Was Wrong with the Result of diary?', 'It did not count');
    await press('Ask');
    await press('Cancel');
    await toast().getByText('2 of 3 → 2 of 3').waitFor();
    await toast().getByRole('button', { name: 'Keep', exact: true }).click();
    await dialog().getByText('Keep a proposal with this in it?').waitFor();
    assert.match(
      (await dialog().textContent()) ?? '',
      /Line 6 contains invisible characters: Add<U\+202E> the plums<U\+2066> up\./,
    );
    await workbench.screenshot('evals-hidden');
    await press('Cancel');
    assert.equal(text(), skill);
    await workbench.page.getByRole('button', { name: 'Discard Proposal' }).first().click();
    await diff().waitFor({ state: 'detached' });
    assert.equal(text(), skill);
  });

  it('reads well in a dark theme and in high contrast', async () => {
    for (const [theme, css] of [
      ['Dark Modern', 'vs-dark'],
      ['Dark High Contrast', 'hc-black'],
    ] as const) {
      await runCommand(workbench.page, 'Preferences: Color Theme');
      const widget = workbench.page.locator('.quick-input-widget');
      await widget.locator('input[type="text"]').fill(theme);
      await widget.locator('.monaco-list-row', { hasText: theme }).first().click();
      await workbench.page.locator(`.monaco-workbench.${css}`).waitFor();
      proposal = { toolCalls: [{ name: 'propose', input: { description: better, why: 'Words.' } }] };
      await openTests();
      await choose(item('gather what grew last week'), 'Improve This Skill...');
      await press('Ask');
      await toast().getByText('2 of 3 → 3 of 3').waitFor();
      await workbench.screenshot(`evals-${css}`);
      await toast().getByRole('button', { name: 'Discard', exact: true }).click();
      await diff().waitFor({ state: 'detached' });
    }
  });
});
