/** A skill that uses another one in a real VS Code: the question, the folded run below the call, its card, a reload, and undo as one run. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import {
  type EditorSession,
  firstStartLimit,
  openEditorSession,
  reloadShowing,
} from '../vscode/editorSession.ts';
import { chatFrame, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

describe('a skill as a step in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let chat: Frame;
  const use = { name: 'use_skill', input: { skill: 'garden:plan', request: 'Plan for leeks.' } };
  const waiting = 'echo looking at the beds; until [ -e ready.txt ]; do sleep 0.1; done';
  const turns: Record<string, AnthropicTurn[]> = {
    'THE WRITER TEXT': [{ toolCalls: [use] }, { text: ['The letter has its plan.'] }],
    'THE PLAN TEXT': [
      { toolCalls: [{ name: 'write_file', input: { path: 'plan.md', content: 'Leeks' } }] },
      { toolCalls: [{ name: 'run_command', input: { command: waiting } }] },
      { toolCalls: [{ name: 'ask_user', input: { question: 'Which bed?', choices: ['north', 'south'] } }] },
      { text: ['Leeks go north.'] },
    ],
  };

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: ({ body }) => {
          const first = JSON.stringify((body.messages as unknown[])[0]);
          const name = Object.keys(turns).find(each => first.includes(each));
          return (name !== undefined && turns[name]?.shift()) || { text: ['Nothing more.'] };
        },
      },
      skills: {
        'garden/skills/plan/SKILL.md': '---\nname: plan\ndescription: Plans beds\n---\nTHE PLAN TEXT\n',
        'office/skills/writer/SKILL.md': '---\nname: writer\ndescription: Letters\n---\nTHE WRITER TEXT\n',
      },
      workspace: { 'a.md': 'x' },
    });
    ({ world, workbench } = session);
    chat = await chatFrame(workbench);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(`The window at the failure: ${await workbench.screenshot('steps-failed')}`);
  });

  after(() => session?.close());

  const log = (): Locator => chat.getByRole('log', { name: 'Conversation' });
  const inner = (): Locator => log().locator('details.inner-run');
  const summary = (): Locator => inner().locator('summary').first();
  const wrote = (): Locator => inner().getByRole('group', { name: 'Wrote plan.md' });

  it('asks first, shows the step folded and its question in sight, and undoes it with the run', async () => {
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('run writer');
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    await chat.getByText('Use the skill garden:plan?').waitFor();
    await chat.getByText('A skill of office wants to have garden:plan do this.').first().waitFor();
    await chat.getByText('garden:plan: Plan for leeks.').first().waitFor();
    await workbench.screenshot('steps-asked');
    await chat.getByRole('button', { name: 'Allow Once' }).click();
    // A click that was meant to open the step and comes with its question does not fold the question away.
    const allow = inner().getByRole('button', { name: 'Allow Once' });
    await allow.waitFor();
    await summary().click();
    await allow.click();
    await inner().locator('.inner-items').waitFor({ state: 'detached' });
    // What its command prints is in sight while it runs, for whoever opens the step.
    await summary().click();
    await inner().locator('.tool-output', { hasText: 'looking at the beds' }).waitFor();
    await workbench.screenshot('steps-running');
    await writeFile(join(world.workspace, 'ready.txt'), '');
    await inner().locator('.question', { hasText: 'Which bed?' }).waitFor();
    await workbench.screenshot('steps-question');
    await inner().getByRole('button', { name: 'north' }).click();
    await log().getByText('The letter has its plan.').waitFor();
    await inner().getByText('Run of garden:plan').waitFor();
    await summary().click();
    await wrote().waitFor({ state: 'detached' });
    await summary().click();
    await inner().getByText('Plan for leeks.').waitFor();
    await wrote().waitFor();
    await inner().getByText('Leeks go north.').waitFor();
    await workbench.screenshot('steps-done');
    chat = await reloadShowing(session!, 'run writer');
    await log().getByText('The letter has its plan.').waitFor();
    await summary().click();
    await inner().getByText('Leeks go north.').waitFor();
    await chat.getByRole('button', { name: 'Undo This Run' }).click();
    const dialog = workbench.page.locator('.monaco-dialog-box');
    await dialog.getByText('plan.md (will be deleted)').waitFor();
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await chat.getByRole('button', { name: 'Undone' }).waitFor();
    assert.equal(existsSync(join(world.workspace, 'plan.md')), false);
  });
});
