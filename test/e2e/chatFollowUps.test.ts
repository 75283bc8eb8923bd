/** Going on in the chat view's page: the chip of the next skill, edit, retry, requests that wait, code into the editor. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { readToHost } from '../../src/extension/chat/chatMessages.ts';
import { maxImageBytes } from '../../src/protocol/attachment.ts';
import type { ToHost, ToWebview } from '../../src/protocol/webview.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { answer, conversation, end, routed, start, text } from '../webview/scenes.ts';
import { themeNames } from '../webview/themes.ts';

describe('going on in the chat page', () => {
  let browser: Browser;
  let bundle: ViewBundle;
  const views: View[] = [];

  before(async () => {
    bundle = await buildView();
    browser = await sharedChromium();
  });

  afterEach(async () => {
    for (const { page, problems } of views.splice(0)) {
      await page.close();
      assert.deepEqual(problems, []);
    }
  });

  async function open(options?: Parameters<typeof openView>[2]): Promise<View> {
    const view = await openView(browser, bundle, options);
    views.push(view);
    return view;
  }

  const talked = [start('run daily kickoff'), routed, text(answer), end];
  const waiting: ToWebview = {
    type: 'queued',
    queued: [
      { id: 'q1', text: 'and then the weekly summary' },
      { id: 'q2', text: 'and order a pizza' },
    ],
  };
  const attached: ToWebview = {
    type: 'attached',
    attachments: [
      { id: 'a1', kind: 'image', name: 'image.png', detail: '12 KB, image' },
      {
        id: 'a2',
        kind: 'text',
        name: 'Selection of src/garden/barrel.ts, lines 3 to 900',
        detail: '898 lines',
      },
    ],
    problem:
      'seeds.zip was not attached: it is neither text nor a file that models read (PDF, PNG, JPEG, GIF, WebP).',
  };
  const textbox = (view: View) => view.page.getByRole('textbox', { name: 'Message Telos' });
  const button = (view: View, name: string | RegExp) => view.page.getByRole('button', { name, exact: true });
  const chip = (view: View) => view.page.getByRole('button', { name: /^Next request: / });
  const chipSays = async (view: View) => (await chip(view).getAttribute('aria-label'))?.split('. ')[0];
  async function sent(view: View, ...types: ToHost['type'][]) {
    return (await view.posted()).filter(each => types.includes(each.type));
  }

  it('shows the skill of the next request, which can be changed and cleared, also over a reload', async () => {
    const view = await open();
    await view.say(conversation([]));
    assert.equal(await chip(view).count(), 0);
    await view.say(conversation(talked));
    assert.equal(await chipSays(view), 'Next request: kickoff of kairos');
    await textbox(view).fill('/weekly-summary');
    assert.equal(await chipSays(view), 'Next request: weekly-summary of kairos');
    await textbox(view).fill('and now?');
    await chip(view).click();
    assert.equal((await sent(view, 'choose_skill')).length, 1);
    const proofread = { agent: 'press', skill: 'proofread' };
    await view.say({ type: 'next_skill', skill: proofread });
    assert.equal(await chipSays(view), 'Next request: proofread of press');

    const kept = await view.page.evaluate(() => (window as unknown as { keptState(): unknown }).keptState());
    const again = await open({ kept });
    await again.say(conversation(talked));
    assert.equal(await chipSays(again), 'Next request: proofread of press');
    await button(again, 'Send').click();
    await again.say({ type: 'events', id: 'c1', from: 4, events: [start('and now?'), routed, end] });
    assert.equal(await chipSays(again), 'Next request: kickoff of kairos');
    await button(again, 'Let Telos choose the skill').click();
    assert.equal(await chipSays(again), 'Next request: Telos chooses the skill');
    await textbox(again).fill('something else');
    await textbox(again).press('Enter');
    assert.deepEqual(await sent(again, 'submit'), [
      { type: 'submit', text: 'and now?', skill: proofread },
      { type: 'submit', text: 'something else', anew: true },
    ]);
  });

  it('sends a request again in other words, or the last one as it was', async () => {
    const view = await open();
    await view.say(conversation(talked));
    await button(view, 'Edit request').focus();
    await view.page.keyboard.press('Enter');
    const editor = view.page.getByRole('textbox', { name: 'Edit request' });
    assert.equal(await editor.evaluate(element => element === document.activeElement), true);
    await editor.fill('not this');
    await editor.press('Escape');
    assert.equal(await editor.count(), 0);
    await button(view, 'Edit request').click();
    await editor.fill('run the weekly summary');
    await editor.press('Enter');
    assert.equal(await button(view, 'Retry').count(), 0);
    await view.say(conversation(talked));
    await button(view, 'Retry').click();
    assert.deepEqual(await sent(view, 'resend', 'submit'), [
      { type: 'resend', runId: 'r1', text: 'run the weekly summary' },
      { type: 'resend', runId: 'r1', text: 'run daily kickoff' },
    ]);
  });

  it('lets a request wait while a run goes on, and takes it away again', async () => {
    const view = await open();
    await view.say(conversation(talked.slice(0, 2)));
    await textbox(view).fill('and then the weekly summary');
    await button(view, 'Send when the run ends').waitFor();
    await button(view, 'Stop').waitFor();
    await textbox(view).press('Enter');
    assert.deepEqual(await sent(view, 'submit'), [{ type: 'submit', text: 'and then the weekly summary' }]);
    await view.say(waiting);
    const list = view.page.getByRole('list', { name: 'Waiting requests' });
    assert.equal(await list.getByRole('listitem').count(), 2);
    assert.equal(await button(view, 'Send now').count(), 0);
    await list.getByRole('button', { name: 'Remove waiting request' }).last().click();
    await view.say({ type: 'events', id: 'c1', from: 2, events: [end] });
    await list.getByRole('button', { name: 'Send now' }).first().click();
    assert.deepEqual(await sent(view, 'unqueue', 'run_queued'), [
      { type: 'unqueue', id: 'q2' },
      { type: 'run_queued', id: 'q1' },
    ]);
  });

  it('keeps what goes along in the host: shows it, takes its mention out of the words, and asks for it to be taken away', async () => {
    const view = await open();
    await view.say(conversation([]), {
      type: 'attached',
      attachments: [{ id: 'a1', kind: 'text', name: 'beds.md', detail: '4 lines', mention: 'beds.md' }],
    });
    await textbox(view).fill('is @beds.md right');
    await button(view, 'Remove beds.md').press('Enter');
    assert.equal(await textbox(view).inputValue(), 'is right');
    await button(view, 'Attach').click();
    await textbox(view).fill('@bar');
    await view.page.waitForFunction(() =>
      (window as unknown as { posted: ToHost[] }).posted.some(({ type }) => type === 'find_files'),
    );
    await view.say({ type: 'files_found', query: 'bar', files: ['barrel.md', 'rain barrel.md'] });
    await view.page.getByRole('option', { name: '@rain barrel.md' }).click();
    assert.equal(await textbox(view).inputValue(), '');
    assert.deepEqual(await sent(view, 'detach', 'attach', 'find_files', 'attach_mention'), [
      { type: 'detach', id: 'a1' },
      { type: 'attach' },
      { type: 'find_files', query: 'bar' },
      { type: 'attach_mention', mention: 'rain barrel.md' },
    ]);
  });

  it('offers prompts and resources of servers, writes the chosen one, and leaves reading it to the run', async () => {
    const view = await open();
    await view.say(conversation([]));
    const offers = {
      type: 'offers',
      prompts: [{ word: 'beds:plan', description: 'Plans \u202Ethe beds' }],
      resources: [{ word: 'beds:demo://south', description: 'South bed' }],
    } as const;
    await textbox(view).fill('/beds');
    await view.page.waitForFunction(() =>
      (window as unknown as { posted: ToHost[] }).posted.some(({ type }) => type === 'find_offers'),
    );
    await view.say(offers);
    const prompt = view.page.getByRole('option', { name: '/beds:plan' });
    assert.match((await prompt.textContent()) ?? '', /Plans <U\+202E>the beds/);
    await textbox(view).press('Enter');
    assert.equal(await textbox(view).inputValue(), '/beds:plan ');
    await textbox(view).pressSequentially('@sou');
    await view.page.getByRole('option', { name: '@beds:demo://south' }).click();
    assert.equal(await textbox(view).inputValue(), '/beds:plan @beds:demo://south ');
    await view.say({ type: 'insert', text: '@beds:b ' });
    assert.equal(await textbox(view).inputValue(), '/beds:plan @beds:demo://south @beds:b ');
    await textbox(view).press('Enter');
    assert.deepEqual(await sent(view, 'attach_mention', 'submit'), [
      { type: 'submit', text: '/beds:plan @beds:demo://south @beds:b ' },
    ]);
  });

  it('makes a picture small enough for a model, and sends it before the request that follows at once', async () => {
    const view = await open();
    await view.say(conversation([]));
    await textbox(view).fill('what is this?');
    const size = await textbox(view).evaluate(async element => {
      const canvas = new OffscreenCanvas(2_400, 1_600);
      const context = canvas.getContext('2d')!;
      const noise = context.createImageData(2_400, 1_600);
      for (let at = 0; at < noise.data.length; at++)
        noise.data[at] = at % 4 === 3 ? 255 : (at * 2_654_435_761) >>> 24;
      context.putImageData(noise, 0, 0);
      const data = new DataTransfer();
      const whole = await canvas.convertToBlob();
      data.items.add(new File([whole, new Uint8Array(4_000_000)], 'noise.png', { type: 'image/png' }));
      element.dispatchEvent(
        new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }),
      );
      element.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
      return whole.size + 4_000_000;
    });
    assert.ok(size > maxImageBytes);
    await view.page.waitForFunction(() =>
      (window as unknown as { posted: ToHost[] }).posted.some(({ type }) => type === 'submit'),
    );
    const [bytes, request] = await sent(view, 'attach_bytes', 'submit');
    assert.ok(bytes?.type === 'attach_bytes' && request?.type === 'submit');
    assert.ok(bytes.size <= maxImageBytes && bytes.size > 1_000, `${bytes.size} bytes`);
    assert.equal(Buffer.from(bytes.data, 'base64').subarray(0, 3).toString('hex'), 'ffd8ff');
    assert.ok(readToHost(bytes), 'the host would not take it');
    assert.match(bytes.thumbnail ?? '', /^data:image\/png;base64,/);
  });

  it('sends a code block to the cursor or into a new file', async () => {
    const view = await open();
    await view.say(conversation(talked));
    await button(view, 'Insert code at the cursor').click();
    await button(view, 'Open code in a new file').click();
    const [inserted, opened] = await sent(view, 'insert_code', 'new_file');
    assert.ok(inserted?.type === 'insert_code' && opened?.type === 'new_file');
    assert.match(inserted.text, /^\/\/ What the script[\s\S]*}\n$/);
    assert.deepEqual([opened.text, opened.language], [inserted.text, 'typescript']);
  });

  it('has nothing that axe finds fault with, in every theme, and fits into 250 pixels', async function () {
    this.timeout(10 * 60_000);
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    const faults: string[] = [];
    for (const theme of themeNames) {
      const view = await open({ theme, width: theme === 'dark' ? 250 : 420 });
      await view.say(conversation(talked), waiting, attached);
      await button(view, 'Edit request').click();
      await view.page.getByRole('textbox', { name: 'Message Telos' }).fill('/help');
      await view.page.keyboard.press('Enter');
      await view.page.locator('.help').waitFor();
      await view.say({ type: 'problem', text: 'The request was not sent: the disk is full.' });
      await view.page.getByText('the disk is full').waitFor();
      await view.page.evaluate(axe);
      const found = await view.page.evaluate(async () => {
        const { axe } = window as unknown as {
          axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        };
        return (await axe.run()).violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
      });
      faults.push(...found.map(fault => `${theme}: ${fault}`));
      assert.ok(await view.page.evaluate(() => document.body.scrollWidth <= window.innerWidth));
    }
    assert.equal(faults.join('\n'), '');
  });
});
