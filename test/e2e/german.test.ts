/** Telos in German, in a real VS Code whose display language is German: the views, a run, and what its card asks. */
import assert from 'node:assert/strict';
import type { Frame } from 'playwright-core';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import type { Workbench } from '../vscode/workbench.ts';

describe('a VS Code in German', () => {
  let session: EditorSession | undefined;
  let workbench: Workbench;
  let chat: Frame;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      withoutAccount: true,
      settings: { 'telos.provider': 'replay' },
      language: 'de',
    });
    workbench = session.workbench;
    chat = await germanChat();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(await workbench.screenshot('german-failed'));
  });

  after(() => session?.close());

  async function germanChat(): Promise<Frame> {
    for (let tries = 0; tries < 600; tries++) {
      for (const frame of workbench.page.frames()) {
        const textboxes = frame.getByRole('textbox', { name: 'Nachricht an Telos' });
        if ((await textboxes.count().catch(() => 0)) > 0) return frame;
      }
      await workbench.page.waitForTimeout(100);
    }
    throw new Error(`No chat in German appeared: ${await workbench.screenshot('german-failed')}`);
  }

  it('names its views and says what the chat is for in German', async () => {
    const { page } = workbench;
    await page.getByText('Agenten & Skills').first().waitFor();
    await page.getByText('Läufe').first().waitFor();
    await chat.getByText('Was möchten Sie tun?').waitFor();
    assert.equal(await chat.locator('html').getAttribute('lang'), 'de');
  });

  it('tells of a run in German, from its choice to its end', async () => {
    await chat.getByRole('textbox', { name: 'Nachricht an Telos' }).fill('run daily kickoff');
    await chat.getByRole('button', { name: 'Senden' }).click();
    await chat.getByRole('log').getByText('kickoff (kairos): in Ihrer Anforderung genannt').waitFor();
    await chat
      .getByRole('log')
      .getByText(/^Fertig/)
      .waitFor();
    await chat.getByRole('button', { name: 'Lauf rückgängig machen' }).waitFor();
    await workbench.page.getByText('Heute', { exact: true }).waitFor();
    await workbench.screenshot('german');
  });
});
