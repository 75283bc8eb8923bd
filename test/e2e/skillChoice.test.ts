/** Choosing a skill in a real VS Code: three likely ones, Stay, a chip, and teaching, with its price and its requests to change. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { eventually } from '../eventually.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { chatFrame, runCommand } from '../vscode/workbench.ts';

const samples = ['home/blinds', 'home/irrigation', 'home/doorbell', 'office/minutes', 'office/org-chart'];
const skills = Object.fromEntries(
  samples.map(path => {
    const [agent, skill] = path.split('/');
    const file = join(root, 'test/fixtures/routing/skills', path, 'SKILL.md');
    return [`${agent}/skills/${skill}/SKILL.md`, readFileSync(file, 'utf8')];
  }),
);

describe('choosing a skill in a real VS Code', () => {
  let session: EditorSession;
  let chat: Frame;
  let log: Locator;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      skills,
      model: {
        turns: ({ body }) => {
          const asked = JSON.stringify(body);
          if (!asked.includes('You write requests')) return { text: ['Done.'] };
          return {
            text: asked.includes('Skill irrigation')
              ? ['- the flowers are thirsty\n- gieß die Rosen\n- a drink for the lilies']
              : ['- something else\n- and another thing\n- whatever comes'],
          };
        },
      },
    });
    chat = await chatFrame(session.workbench);
    log = chat.getByRole('log', { name: 'Conversation' });
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(await session.workbench.screenshot('skill-choice-failed'));
  });

  after(() => session?.close());

  const textbox = () => chat.getByRole('textbox', { name: 'Message Telos' });
  const button = (name: string | RegExp) => chat.getByRole('button', { name });
  async function say(words: string): Promise<void> {
    await textbox().fill(words);
    await button('Send').click();
  }
  const finished = (runs: number) =>
    log
      .locator('.end-completed')
      .nth(runs - 1)
      .waitFor();
  const inData = (...parts: string[]) => join(session.world.data, 'routing', ...parts);
  const picker = () => session.workbench.page.locator('.quick-input-widget');
  const row = (words: string) => picker().locator('.monaco-list-row', { hasText: words }).first();

  it('answers without a skill, and names three likely ones and what teaching costs', async () => {
    // The page takes requests once it knows the skills.
    await button(/^blinds/).waitFor();
    await say('too bright in the study room for a meeting with the department');
    await finished(1);
    assert.equal(await log.locator('.switched .chip').count(), 3);
    await log
      .getByText(
        'A model can write how people ask for your skills: less than $0.01 with claude-haiku-5-5 for 5 skills.',
      )
      .waitFor();
    await session.workbench.screenshot('skill-choices');
    await button('Write Them').click();
    await session.workbench.page
      .locator('.statusbar', { hasText: 'Skills with written requests: 5 of 5.' })
      .waitFor();
    assert.equal(readdirSync(inData('taught')).length, 5);
    assert.equal(await button('Write Them').count(), 0);
    await button('blinds?').click();
    await log.getByText('blinds (home): chosen by you').waitFor();
    await eventually(() => assert.match(readFileSync(inData('choices.jsonl'), 'utf8'), /"bright"/));
    await finished(2);
  });

  it('says that it leaves a skill, and Stay goes back for good', async () => {
    await say('and water the tomatoes for ten minutes');
    await log.getByText('irrigation fits better than blinds').waitFor();
    await finished(3);
    await session.workbench.screenshot('skill-stay');
    await button('Stay with blinds').click();
    await log.getByText('blinds (home): chosen by you').nth(1).waitFor();
    await finished(4);
    await say('and water the tomatoes for ten minutes');
    await finished(5);
    // The skill has not changed since the line above, so nothing names it again.
    assert.equal(await log.locator('.run').last().locator('.route').count(), 0);
  });

  it('offers a skill that fits about as well by a chip', async () => {
    await say('did anybody come to the door today');
    await button('doorbell fits too').waitFor();
    await finished(6);
    await session.workbench.screenshot('skill-chip');
    await button('doorbell fits too').click();
    await log.getByText('doorbell (home): chosen by you').waitFor();
    await finished(7);
  });

  it('shows the requests that were written, and lets them be changed', async () => {
    const { page } = session.workbench;
    await runCommand(page, 'Telos: Preview Routing...');
    await picker().getByText('Enter a request as you would in the chat.').waitFor();
    await picker().locator('input[type="text"]').fill('the flowers are thirsty');
    await page.keyboard.press('Enter');
    await row('3 written requests').waitFor();
    await session.workbench.screenshot('skill-preview');
    await row('3 written requests').hover();
    await row('3 written requests').getByRole('button', { name: 'Requests That Mean This Skill' }).click();
    await row('gieß die Rosen').waitFor();
    await session.workbench.screenshot('skill-requests');
    await row('gieß die Rosen').click();
    // The list has a box of its own, which goes away with it.
    await picker().getByText('Enter it as someone who does not know the skill').waitFor();
    await picker().locator('input[type="text"]').fill('gieß die Tulpen');
    await page.keyboard.press('Enter');
    await row('gieß die Tulpen').waitFor();
    await page.keyboard.press('Escape');
    // The list of skills comes back, and would lie over whatever is opened before it does.
    await row('3 written requests').waitFor();
    await page.keyboard.press('Escape');
    await picker().waitFor({ state: 'hidden' });
    const texts = readdirSync(inData('taught')).map(name => readFileSync(inData('taught', name), 'utf8'));
    assert.ok(texts.some(text => text.includes('gieß die Tulpen')));
  });

  it('forgets what was chosen', async () => {
    const { page } = session.workbench;
    await runCommand(page, 'Telos: Forget Learned Choices...');
    await page.getByRole('button', { name: 'Forget', exact: true }).click();
    await page.locator('.statusbar', { hasText: 'choices are forgotten' }).waitFor();
    assert.ok(!readdirSync(inData()).includes('choices.jsonl'));
  });
});
