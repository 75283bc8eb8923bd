/** A habit in a real VS Code: the line below the third answer, the price, the skill as a page, Keep, and Don't Ask Again. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { eventually } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, runCommand } from '../vscode/workbench.ts';

const body = 'Write the packing list of the town to `packing-TOWN.md`.';

describe('a habit in a real VS Code', () => {
  let session: EditorSession;
  let chat: Frame;
  let log: Locator;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      workspace: { 'a.md': 'x' },
      settings: { 'telos.sandbox': 'off' },
      model: {
        turns: ({ body: sent }): AnthropicTurn => {
          const asked = JSON.stringify(sent);
          if (asked.includes('"name":"write_skill"'))
            return {
              toolCalls: [
                {
                  name: 'write_skill',
                  input: { description: 'Writes packing lists', body, why: 'Lists what a town needs.' },
                },
              ],
            };
          const { messages } = sent as { messages: readonly { role: string; content: unknown }[] };
          if (
            messages.at(-1)?.role === 'user' &&
            asked.includes('tool_result') &&
            isResult(messages.at(-1)?.content)
          )
            return { text: ['It is written.'] };
          const town = [...asked.matchAll(/packing list for (\w+)/g)].at(-1)?.[1] ?? 'town';
          return {
            toolCalls: [{ name: 'write_file', input: { path: `packing-${town}.md`, content: '# Shoes\n' } }],
          };
        },
      },
    });
    chat = await chatFrame(session.workbench);
    log = chat.getByRole('log', { name: 'Conversation' });
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(await session.workbench.screenshot('habits-failed'));
  });
  after(() => session?.close());

  const isResult = (content: unknown): boolean => JSON.stringify(content).includes('tool_result');
  const button = (name: string | RegExp) => chat.getByRole('button', { name });
  const dialog = () => session.workbench.page.locator('.monaco-dialog-box');
  const toast = () => session.workbench.page.locator('.notifications-toasts .notification-list-item');
  let runs = 0;
  async function say(words: string): Promise<void> {
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill(words);
    await button('Send').click();
    await log.locator('.end-completed').nth(runs++).waitFor();
  }
  const skillFile = () => join(session.world.skills, 'packing-list/SKILL.md');

  it('is offered below the third answer, written at a price, shown, kept, and used from then on', async () => {
    await say('Write the packing list for Rome');
    await say('Write the packing list for Oslo');
    assert.equal(await button('Save as Skill…').count(), 0);
    await say('Write the packing list for Bath');
    await log.getByText('You do this often. Save it as the skill packing-list?').waitFor();
    await session.workbench.screenshot('habit-offer');
    await button('Save as Skill…').click();
    await dialog().getByText('Ask claude-haiku-5-5 to write the skill packing-list?').waitFor();
    assert.match(
      (await dialog().textContent()) ?? '',
      /packing list for Oslo.*It costs less than \$0\.\d+\. Nothing is kept/s,
    );
    await dialog().getByRole('button', { name: 'Write Skill', exact: true }).click({ delay: 150 });
    await toast().getByText('2 evals from your own runs passed.').waitFor();
    await session.workbench.page
      .locator('.monaco-diff-editor')
      .getByText('Writes packing lists')
      .first()
      .waitFor();
    await session.workbench.screenshot('habit-skill');
    assert.ok(!existsSync(skillFile()), 'nothing is kept before a yes');
    await toast().getByRole('button', { name: 'Keep', exact: true }).click();
    await eventually(() => assert.match(readFileSync(skillFile(), 'utf8'), /packing-TOWN/));
    await eventually(() =>
      assert.equal(readdirSync(join(session.world.skills, 'packing-list/evals/recordings')).length, 2),
    );
    await say('Write the packing list for Nice');
    await log
      .getByText(/packing-list/)
      .last()
      .waitFor();
    await runCommand(session.workbench.page, 'View: Close All Editors');
  });

  it('is not offered again after Don’t Ask Again', async () => {
    await runCommand(session.workbench.page, 'Telos: New Conversation');
    await log.locator('.end-completed').first().waitFor({ state: 'detached' });
    runs = 0;
    const sorted = (town: string): Promise<void> => say(`Sort the holiday budget of ${town} by day`);
    for (const town of ['Rome', 'Oslo', 'Bath']) await sorted(town);
    await button("Don't Ask Again").click();
    await eventually(() =>
      assert.match(readFileSync(join(session.world.data, 'habits.json'), 'utf8'), /budget/),
    );
    for (const town of ['Nice', 'Bonn', 'Turin']) await sorted(town);
    assert.equal(await button('Save as Skill…').count(), 0);
  });
});
