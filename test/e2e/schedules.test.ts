/** Schedules in a real VS Code: a skill is scheduled from the tree, runs while the window is open, says what it needs, and is removed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import type { Schedule } from '../../src/engine/schedule/schedules.ts';
import { eventually } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

describe('schedules in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let answer: (index: number) => AnthropicTurn;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: { turns: (_request, index) => answer(index) },
      skills: {
        'garden/skills/barrel/SKILL.md':
          '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
      },
    });
    ({ world, workbench } = session);
    await chatFrame(workbench);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await workbench?.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(() => session?.close());

  const pane = (title: string): Locator =>
    workbench.page.locator('.pane', { has: workbench.page.locator('.pane-header', { hasText: title }) });
  const row = (title: string, label: string): Locator =>
    pane(title).locator('.monaco-list-row', { hasText: label }).first();
  /** The schedule's own row: its runs have its words, too. */
  const schedule = (): Locator =>
    pane('Runs').locator('.monaco-list-row[aria-label^="run barrel, "]:not([aria-label*="Completed"])');
  const input = (): Locator => workbench.page.locator('.quick-input-widget input[type="text"]');
  /** A menu that has just opened takes no click yet, and a row that has just moved opens another one's: then it is opened again. */
  const choose = (target: Locator, title: string, isDone: () => unknown): Promise<void> =>
    eventually(async () => {
      if (await isDone()) return;
      const menu = workbench.page.locator('.monaco-menu').first();
      await target.click({ button: 'right', timeout: 5_000 });
      const item = menu.locator('.action-label').filter({ hasText: title }).first();
      await item.click({ timeout: 5_000, delay: 150 }).catch(() => workbench.page.keyboard.press('Escape'));
      await eventually(async () => assert.ok(await isDone(), title), 5_000);
    }, 60_000);
  const file = (): string => {
    const folder = join(world.data, 'schedules');
    const [name = ''] = readdirSync(folder).filter(each => each.endsWith('.json'));
    return join(folder, name);
  };
  const kept = (): Schedule => JSON.parse(readFileSync(file(), 'utf8')) as Schedule;

  it('is made from a skill of the tree, with the next time shown while it is typed', async () => {
    await runCommand(workbench.page, 'Focus on Agents & Skills View');
    const skill = pane('Agents & Skills').locator('.monaco-list-row[aria-level="2"]').first();
    await skill.waitFor();
    const isAsked = async (): Promise<boolean> =>
      (await input().isVisible()) && (await input().inputValue()) === 'run barrel';
    await choose(skill, 'Schedule...', isAsked);
    await eventually(async () => assert.equal(await input().inputValue(), 'run barrel'));
    await input().press('Enter');
    const message = workbench.page.locator('.quick-input-message');
    await message.filter({ hasText: 'five fields of cron' }).waitFor();
    await input().fill('sometimes');
    await message.filter({ hasText: /'sometimes' is not a time\. Examples: / }).waitFor();
    await workbench.screenshot('schedule-time');
    await input().fill('every 2 hours');
    await message.filter({ hasText: /Next: / }).waitFor();
    await input().press('Enter');
    await workbench.page
      .locator('.quick-input-list .monaco-list-row', { hasText: 'While Telos is open' })
      .click();
    await runCommand(workbench.page, 'Focus on Runs View');
    await schedule().waitFor();
    assert.deepEqual(
      [kept().at, kept().clock, kept().skill],
      ['every 2 hours', 'none', { agent: 'garden', skill: 'barrel' }],
    );
    await workbench.screenshot('schedule-row');
  });

  it('runs when its time has come, keeps what it asked, and shows that until its run was opened', async () => {
    answer = index =>
      index === 0
        ? { toolCalls: [{ name: 'run_command', input: { command: 'curl https://example.org/x' } }] }
        : { text: ['The barrel is half full.'] };
    const fiveMinutesAgo = new Date(Date.now() - 300_000).toTimeString().slice(0, 'hh:mm'.length);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    writeFileSync(file(), JSON.stringify({ ...kept(), at: `daily ${fiveMinutesAgo}`, since }));
    const waiting = schedule().filter({ hasText: 'needs input' });
    await waiting.waitFor({ timeout: 90_000 });
    await row('Runs', '1 needs input').waitFor();
    await workbench.screenshot('schedule-needs-you');
    assert.deepEqual(kept().last?.needs, ['run_command: curl https://example.org/x']);
    await waiting.click();
    const chat = await chatFrame(workbench);
    await chat.getByText('The barrel is half full.').waitFor();
    await chat.getByText('No one was there to answer').first().waitFor();
    await waiting.waitFor({ state: 'detached' });
    assert.equal(kept().last?.isSeen, true);
  });

  it('is paused, resumed, run at once and removed by its menu', async () => {
    answer = () => ({ text: ['Again.'] });
    await choose(schedule(), 'Pause', () => kept().isPaused);
    await schedule().filter({ hasText: 'Paused' }).waitFor();
    await choose(schedule(), 'Resume', () => !kept().isPaused);
    const before = kept().last?.startedAt;
    await choose(schedule(), 'Run Now', () => kept().last?.startedAt !== before);
    await eventually(() => assert.equal(kept().last?.outcome, 'completed'));
    const remove = workbench.page.getByRole('button', { name: 'Remove', exact: true });
    await choose(schedule(), 'Remove Schedule...', () => remove.isVisible());
    await remove.click();
    await pane('Runs').locator('.monaco-list-row', { hasText: 'Scheduled' }).waitFor({ state: 'detached' });
    assert.equal(existsSync(join(world.data, 'schedules')) && file().endsWith('.json'), false);
    await row('Runs', 'Today').waitFor();
  });
});
