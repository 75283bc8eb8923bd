/** What a request takes along in a real VS Code, up to the bytes that the model's server gets: attachments, a workspace's files, earlier rounds. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import type { FakeServer } from '../fakes/loopback.ts';
import {
  type EditorSession,
  firstStartLimit,
  openEditorSession,
  reloadShowing,
} from '../vscode/editorSession.ts';
import { chatFrame, openFile, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

const looking = { text: ['Looking.'], toolCalls: [{ name: 'list_directory', input: { path: '.' } }] };

/** Whether the model wants another round: the skill of the pond asks for three. */
const looksOn = (messages: readonly { role: string }[]): boolean =>
  JSON.stringify(messages).includes('THE POND TEXT') &&
  messages.filter(({ role }) => role === 'assistant').length < 3;

describe('attachments in a real VS Code', () => {
  let session: EditorSession | undefined;
  let model: FakeServer;
  let world: World;
  let workbench: Workbench;
  let chat: Frame;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: { turns: ({ body }) => (looksOn(body.messages) ? looking : { text: ['Seen.'] }) },
      skills: {
        'garden/skills/barrel/SKILL.md':
          '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
        'pond/agent.toml': 'name = "pond"\nmax_rounds = 2\n',
        'pond/skills/frogs/SKILL.md': '---\nname: frogs\ndescription: Counts frogs\n---\nTHE POND TEXT\n',
      },
      prepare: async ({ workspace }) => {
        await writeFile(join(workspace, 'plants.json'), '{\n  "rose": 1,\n  "tulip": \n}\n');
        await writeFile(join(workspace, 'beds.md'), '# Beds\n\nNorth: roses.\nSouth: tulips.\n');
        await writeFile(join(workspace, '.env'), 'TOKEN=of-the-garden\n');
      },
    });
    ({ model, world, workbench } = session);
    chat = await chatFrame(workbench);
    // Until the host has answered, there is nobody to take what is pasted.
    await chat.getByText('What do you want to do?').waitFor();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') {
      console.error(
        `The window at the failure: ${await workbench.screenshot(`attachments-failed-${this.currentTest.title.slice(0, 12)}`)}`,
      );
    }
    await runCommand(workbench.page, 'Telos: New Conversation');
    await chat.getByText('What do you want to do?').waitFor();
  });

  after(() => session?.close());

  const textbox = (): Locator => chat.getByRole('textbox', { name: 'Message Telos' });
  const chips = (): Locator =>
    chat.getByRole('list', { name: 'Attached', exact: true }).getByRole('listitem');

  /** Sends what is written; returns the last message of the user as the server got it: its text and its images. */
  async function send(): Promise<{ said: string; images: unknown[] }> {
    const before = model.requests.length;
    const ends = chat.locator('.end-completed');
    const earlier = await ends.count();
    await textbox().press('Enter');
    await ends.nth(earlier).waitFor();
    assert.equal(model.requests.length, before + 1);
    const blocks: { type: string; text?: string; source?: unknown }[] = model.requests
      .at(-1)
      ?.body.messages.at(-1).content;
    return {
      said: blocks.map(({ text = '' }) => text).join(''),
      images: blocks.flatMap(({ source }) => source ?? []),
    };
  }

  /** Keys that come before the editor has the focus are lost, so its status bar is asked whether they have come. */
  async function selectLine(text: string): Promise<void> {
    const { page } = workbench;
    const selected = page.getByText(/\(\d+ selected\)/);
    while ((await selected.count()) === 0) {
      await page.locator('.view-line').filter({ hasText: text }).first().click();
      await page.keyboard.press('Home');
      await page.keyboard.press('Shift+End');
      await selected
        .first()
        .waitFor({ timeout: 1_000 })
        .catch(() => undefined);
    }
  }

  /** Pastes or drops a picture or a file of the disk, as the editor does. */
  async function hand(how: 'paste' | 'drop', file: { name: string; type: string; base64: string } | string) {
    await textbox().evaluate(
      async (element, { how, file }) => {
        const data = new DataTransfer();
        if (typeof file === 'string') data.setData('application/vnd.code.uri-list', file);
        else {
          const bytes = Uint8Array.from(atob(file.base64), character => character.charCodeAt(0));
          data.items.add(new File([bytes], file.name, { type: file.type }));
        }
        const init = { bubbles: true, cancelable: true };
        if (how === 'paste') {
          element.dispatchEvent(new ClipboardEvent('paste', { ...init, clipboardData: data }));
        } else {
          for (const type of ['dragover', 'drop']) {
            element.dispatchEvent(new DragEvent(type, { ...init, dataTransfer: data }));
          }
        }
      },
      { how, file },
    );
  }

  it('sends a pasted image as an image, and a dropped file as text', async () => {
    const base64 = await chat.evaluate(async () => {
      const canvas = new OffscreenCanvas(90, 60);
      const context = canvas.getContext('2d')!;
      context.fillStyle = 'teal';
      context.fillRect(10, 10, 60, 40);
      const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
      return btoa(String.fromCharCode(...bytes));
    });
    await hand('paste', { name: 'image.png', type: 'image/png', base64 });
    await chips().filter({ hasText: 'image.png' }).waitFor();
    await hand('drop', { name: 'list.csv', type: 'text/csv', base64: btoa('bed,plant\nnorth,rose\n') });
    await chips().filter({ hasText: 'list.csv' }).waitFor();
    await hand('drop', { name: 'seeds.zip', type: '', base64: btoa('PK\x03\x04\x00\x00\x00') });
    await chat.getByRole('alert').getByText('seeds.zip was not attached: it is neither text nor').waitFor();
    assert.equal(await chips().count(), 2);
    await workbench.screenshot('attachments');
    await textbox().fill('what is in the barrel?');
    const { said, images } = await send();
    assert.deepEqual(images, [{ type: 'base64', media_type: 'image/png', data: base64 }]);
    assert.match(
      said,
      /THE BARREL TEXT[\s\S]*what is in the barrel\?[\s\S]*list\.csv:\n```\nbed,plant\nnorth,rose\n\n```/,
    );
    assert.equal(await chips().count(), 0);
    const along = chat.getByRole('list', { name: 'Attached to your request' });
    assert.deepEqual(await along.getByRole('listitem').allTextContents(), ['image.png', 'list.csv']);
    await workbench.screenshot('attachments-sent');
  });

  it('sends a PDF as a document', async () => {
    const base64 = btoa('%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\ntrailer<</Root 1 0 R>>\n%%EOF\n');
    await hand('drop', { name: 'plan.pdf', type: 'application/pdf', base64 });
    await chips().filter({ hasText: 'plan.pdf' }).waitFor();
    await textbox().fill('what does the plan say of the barrel?');
    await send();
    const { content } = model.requests.at(-1)?.body.messages.at(-1) ?? {};
    const documents = content.filter(({ type }: { type: string }) => type === 'document');
    assert.deepEqual(
      documents.map(({ source }: { source: object }) => source),
      [{ type: 'base64', media_type: 'application/pdf', data: base64 }],
    );
  });

  it('reads AGENTS.md, names it in the meter, and leaves it out of the conversation once it is switched off there', async () => {
    const file = join(world.workspace, 'AGENTS.md');
    await writeFile(file, 'BEDS FACE SOUTH\n');
    try {
      const sendsIt = async (words: string): Promise<boolean> => {
        await textbox().fill(words);
        await send();
        return JSON.stringify(model.requests.at(-1)?.body).includes('BEDS FACE SOUTH');
      };
      assert.equal(await sendsIt('look into the barrel'), true);
      await chat.getByRole('button', { name: /^Context / }).click();
      const parts = chat.getByRole('region', { name: 'Context' });
      await parts.getByText('Files (AGENTS.md)').waitFor();
      await parts.getByRole('checkbox', { name: /^Read AGENTS\.md/ }).uncheck();
      await chat.getByRole('button', { name: /^Context / }).click();
      assert.equal(await sendsIt('look into the barrel again'), false);
    } finally {
      await rm(file);
    }
  });

  it('asks where the rounds of a run are used up: goes on in place, and after a no by a button', async () => {
    const before = model.requests.length;
    const runsOn = async (answer: 'Allow Once' | 'Deny'): Promise<void> => {
      await chat.getByText('2 more questions to').waitFor();
      await chat.getByRole('button', { name: answer, exact: true }).click();
    };
    await textbox().fill('run frogs');
    await textbox().press('Enter');
    await runsOn('Allow Once');
    await chat.locator('.end-completed').waitFor();
    const sent = model.requests.slice(before).map(({ body }) => JSON.stringify(body.messages));
    assert.equal(sent.length, 4);
    assert.equal(sent[3]?.match(/"tool_result"/g)?.length, 3);
    await runCommand(workbench.page, 'Telos: New Conversation');
    await chat.getByText('What do you want to do?').waitFor();
    await textbox().fill('run frogs once more');
    await textbox().press('Enter');
    await runsOn('Deny');
    await chat.getByRole('button', { name: 'Resume' }).click();
    await chat.locator('.end-completed').waitFor();
    const last = JSON.stringify(model.requests.at(-1)?.body.messages);
    assert.equal(last.match(/"tool_result"/g)?.length, 3);
    assert.equal(last.match(/THE POND TEXT/g)?.length, 1);
  });

  it('attaches the selection, the problems and a file by a mention', async () => {
    await openFile(workbench.page, 'plants.json');
    await selectLine('"rose"');
    await workbench.page
      .getByRole('button', { name: /[1-9]\d* problem|Errors: [1-9]/i })
      .first()
      .waitFor();
    await textbox().fill('');
    await textbox().pressSequentially('run barrel on @sel');
    await chat.getByRole('option', { name: /@selection/ }).waitFor();
    await textbox().press('Enter');
    await chips().filter({ hasText: 'Selection of plants.json, line 2' }).waitFor();
    await textbox().pressSequentially('and @bed');
    await chat.getByRole('option', { name: /@beds\.md/ }).waitFor();
    await workbench.screenshot('mentions');
    await textbox().press('Tab');
    await chips().filter({ hasText: 'beds.md' }).waitFor();
    await textbox().pressSequentially('? see @problems');
    await textbox().press('Escape');
    const { said } = await send();
    assert.match(said, /User request: run barrel on @selection and @beds\.md \? see @problems\n/);
    assert.match(said, /Selection of plants\.json, line 2:\n```json\n\s*"rose": 1,\n```/);
    assert.match(said, /beds\.md \(.*beds\.md\):\n```\w*\n# Beds\n\nNorth: roses\./);
    assert.match(said, /Problems of plants\.json:\n```\nplants\.json:\d+:\d+ error: \S+/);
  });

  it('sends what went along once more with a request that is sent again after a reload', async () => {
    await hand('drop', { name: 'list.csv', type: 'text/csv', base64: btoa('bed,plant\nsouth,tulip\n') });
    await chips().filter({ hasText: 'list.csv' }).waitFor();
    await textbox().fill('what is in the barrel now?');
    const { said } = await send();
    chat = await reloadShowing(session!, 'what is in the barrel now?');
    await chat.getByRole('button', { name: 'Edit request' }).click();
    const editor = chat.getByRole('textbox', { name: 'Edit request' });
    await editor.fill('what was in the barrel?');
    const before = model.requests.length;
    await editor.press('Enter');
    await chat.getByRole('log').getByText('what was in the barrel?').waitFor();
    await chat.locator('.end-completed').waitFor();
    assert.equal(model.requests.length, before + 1);
    const again = JSON.stringify(model.requests.at(-1)?.body.messages);
    assert.match(said, /south,tulip/);
    assert.match(again, /what was in the barrel\?.*list\.csv:.*south,tulip/);
    const along = chat.getByRole('list', { name: 'Attached to your request' });
    assert.deepEqual(await along.getByRole('listitem').allTextContents(), ['list.csv']);
  });

  it('asks before a file goes along that holds secrets, and takes chips away by the keyboard', async () => {
    await hand(
      'drop',
      `file://${join(world.workspace, 'beds.md')}\r\nfile://${join(world.workspace, '.env')}`,
    );
    const dialog = workbench.page.getByRole('dialog').filter({ hasText: 'Attach .env?' });
    await dialog.waitFor();
    await workbench.screenshot('attach-secrets');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await chips().filter({ hasText: 'beds.md' }).waitFor();
    assert.equal(await chips().count(), 1);
    const removing = chat.locator(':focus').and(chat.getByRole('button', { name: 'Remove beds.md' }));
    // The dialog that has just closed gives the focus back to where it was, which may come last, also between the two keys.
    while ((await chips().count()) > 0) {
      await textbox().press('Shift+Tab');
      if ((await removing.count()) > 0) await workbench.page.keyboard.press('Enter');
    }
    await textbox().fill('look into the barrel');
    const { said } = await send();
    assert.doesNotMatch(said, /Beds|of-the-garden/);
  });
});
