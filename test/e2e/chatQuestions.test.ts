/** Questions in the chat page by itself in Chromium: none takes the keyboard or a click that was meant for something else. */
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { describeQuestion } from '../../src/protocol/describe.ts';
import type { FormField } from '../../src/protocol/form.ts';
import { type ApprovalRequest, type RunEvent, skipped } from '../../src/protocol/run.ts';
import type { ToHost } from '../../src/protocol/webview.ts';
import { eventually } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { ask, call, conversation, routed, scenes, start } from '../webview/scenes.ts';

const words = 'no wait, not this one';
const denied = { allow: false, reason: 'The user denied this.' } as const;
const once = { allow: true, scope: 'once' } as const;
const place: FormField = { name: 'place', title: 'Place', isRequired: false, kind: 'text' };

/** Every kind of question, by what asks it. */
const kinds: Readonly<Record<string, Partial<ApprovalRequest>>> = {
  run_command: { isEditable: true, scopes: ['once', 'run', 'always'] },
  'run_command.host': { mayLeave: true, forConversation: true },
  write_file: { subject: '/elsewhere/notes.md', diff: '+new' },
  fetch_url: { subject: 'https://example.org/' },
  use_skill: { subject: 'garden:sow' },
  mcp_sampling: { showsWhole: true, scopes: ['once'] },
  mcp_open_url: { subject: 'https://example.org/form', scopes: ['once'] },
  ask_user: { choices: ['red', 'green'], scopes: ['once'] },
  mcp_form: { form: [place], scopes: ['once'] },
  plan_interview: {
    form: [
      place,
      { name: 'enough', title: 'Start Planning', isRequired: false, kind: 'switch', isButton: true },
    ],
    scopes: ['once'],
  },
};

describe('questions in the chat page', () => {
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

  /** Opens a view with a run, and the cursor in the textbox. */
  async function running(options?: Parameters<typeof openView>[2]): Promise<View> {
    const view = await open(options);
    await view.say(conversation([start('go'), routed]));
    await textbox(view).focus();
    return view;
  }

  const events = (from: number, ...all: RunEvent[]) =>
    ({ type: 'events', id: 'c1', from, events: all }) as const;
  const question = (callId: string, tool: string, more: Partial<ApprovalRequest> = {}): RunEvent => ({
    type: 'approval_request',
    request: { ...ask(callId, 'ls').request, tool, ...more },
  });
  /** What a screen reader calls the question. */
  const nameOf = (event: RunEvent): string =>
    event.type === 'approval_request' ? `Approval: ${describeQuestion(event.request)}` : '';
  const textbox = (view: View) => view.page.getByRole('textbox', { name: 'Message Telos' });
  const isTyping = (view: View) => textbox(view).evaluate(element => element === document.activeElement);
  const button = (view: View, name: string) => view.page.getByRole('button', { name, exact: true });

  /** Waits until what was asked can be answered. */
  const settled = (view: View, name = 'Allow Once') =>
    eventually(async () =>
      assert.equal(await button(view, name).last().getAttribute('aria-disabled'), 'false'),
    );

  async function answers(view: View) {
    return (await view.posted())
      .filter((each): each is Extract<ToHost, { type: 'approve' }> => each.type === 'approve')
      .map(({ token, decision }) => [token.replace('token of ', ''), decision] as const);
  }

  for (const [tool, more] of Object.entries(kinds))
    it(`leaves the keyboard to who is writing: ${tool}`, async () => {
      const view = await running();
      await view.page.keyboard.type(words.slice(0, 3));
      const asked = question('t', tool, more);
      await view.say(events(2, call('t', tool, {}), asked));
      const card = view.page.getByRole('group', { name: nameOf(asked) });
      await card.waitFor();
      await view.page.keyboard.type(words.slice(3));
      const [main, refuse] = more.form
        ? ['Send', tool === 'plan_interview' ? 'Later' : 'Skip']
        : more.choices
          ? ['Answer', 'Skip']
          : ['Allow Once', 'Deny'];
      await card.getByRole('button', { name: refuse }).waitFor();
      await eventually(async () =>
        assert.equal(await card.getByRole('button', { name: refuse }).getAttribute('aria-disabled'), 'false'),
      );
      await view.page.keyboard.type(' at all ');
      assert.equal(await textbox(view).inputValue(), `${words} at all `);
      assert.deepEqual(await answers(view), []);
      assert.match((await card.textContent()) ?? '', new RegExp(`${main}Ctrl\\+Enter.*${refuse}Escape`));
      await view.page.keyboard.press('Escape');
      const no = more.form || more.choices ? skipped : denied;
      assert.deepEqual(await answers(view), [['t', no]]);
      assert.equal(await isTyping(view), true);
      assert.equal(await textbox(view).inputValue(), `${words} at all `);
    });

  it('takes no focus from an empty textbox either, and what is typed there is a request', async () => {
    const view = await running();
    await view.say(events(2, call('t', 'write_file', {}), question('t', 'write_file')));
    await settled(view);
    await view.page.keyboard.type(words);
    await view.page.keyboard.press('Enter');
    assert.deepEqual(await answers(view), []);
    assert.deepEqual(
      (await view.posted()).filter(({ type }) => type === 'submit'),
      [{ type: 'submit', text: words }],
    );
  });

  it('is allowed with Ctrl+Enter or Cmd+Enter, and sends nothing of what is written', async () => {
    for (const key of ['Control+Enter', 'Meta+Enter']) {
      const view = await running();
      await view.page.keyboard.type('later');
      await view.say(events(2, call('t', 'write_file', {}), question('t', 'write_file')));
      await settled(view);
      await view.page.keyboard.press(key);
      assert.deepEqual(await answers(view), [['t', once]]);
      await view.say(events(4, { type: 'approval_response', callId: 't', decision: once }));
      await view.page.keyboard.press(key);
      assert.equal(await textbox(view).inputValue(), 'later');
      assert.equal(await isTyping(view), true);
      assert.equal((await view.posted()).filter(({ type }) => type === 'submit').length, 0);
    }
  });

  it('goes to choices and fields with Ctrl+Enter, and answers from there', async () => {
    const view = await running();
    await view.say(events(2, call('t', 'ask_user', {}), question('t', 'ask_user', kinds['ask_user'])));
    await settled(view, 'Skip');
    await view.page.keyboard.press('Control+Enter');
    assert.deepEqual(await answers(view), []);
    await view.page.keyboard.press('ArrowDown');
    await view.page.keyboard.press('Enter');
    const green = { ...once, answer: 'green' };
    assert.deepEqual(await answers(view), [['t', green]]);
    assert.equal(await isTyping(view), true);
    await view.say(events(4, { type: 'approval_response', callId: 't', decision: green }));
    await view.say(events(5, call('f', 'x', {}), question('f', 'mcp_form', kinds['mcp_form'])));
    await settled(view, 'Skip');
    await view.page.keyboard.press('Control+Enter');
    assert.equal((await answers(view)).length, 1);
    await view.page.keyboard.type('South');
    await view.page.keyboard.press('Control+Enter');
    assert.deepEqual((await answers(view)).at(-1), ['f', { ...once, content: { place: 'South' } }]);
    assert.equal(await isTyping(view), true);
  });

  it('can be declined and skipped where a server asks, which are two answers', async () => {
    for (const [name, decision] of [
      ['Decline', denied],
      ['Skip', skipped],
    ] as const) {
      const view = await running();
      await view.say(events(2, question('f', 'mcp_form', kinds['mcp_form'])));
      await button(view, name).click();
      assert.deepEqual(await answers(view), [['f', decision]]);
    }
  });

  it('allows nothing dangerous by a key', async () => {
    const view = await running();
    await view.say(scenes['danger']!);
    await settled(view);
    await textbox(view).focus();
    await view.page.keyboard.press('Control+Enter');
    assert.deepEqual(await answers(view), []);
    assert.equal(await button(view, 'Deny').evaluate(one => one === document.activeElement), true);
  });

  it('closes what is open with the first Escape: a list, the menu of answers, words, the help', async () => {
    const view = await running();
    await view.say(
      events(2, call('t', 'run_command', {}), question('t', 'run_command', kinds['run_command'])),
    );
    await settled(view);
    const pressEscape = async (): Promise<void> => {
      await view.page.keyboard.press('Escape');
      assert.deepEqual(await answers(view), []);
    };
    await textbox(view).fill('/');
    await view.page.getByRole('listbox').waitFor();
    await pressEscape();
    assert.equal(await view.page.getByRole('listbox').count(), 0);
    // The menu is open, and the cursor in the textbox.
    await button(view, 'More answers').click();
    await textbox(view).focus();
    await pressEscape();
    assert.equal(await button(view, 'Deny and Say Why…').count(), 0);
    assert.equal(await isTyping(view), true);
    await button(view, 'More answers').click();
    await button(view, 'Deny and Say Why…').focus();
    await pressEscape();
    assert.equal(await button(view, 'More answers').evaluate(one => one === document.activeElement), true);
    await button(view, 'More answers').click();
    await button(view, 'Edit Command…').click();
    await pressEscape();
    await button(view, 'Edit Command…').waitFor();
    await pressEscape();
    await textbox(view).fill('/help');
    await textbox(view).press('Enter');
    await view.page.getByRole('region', { name: 'Commands and keys' }).waitFor();
    await pressEscape();
    assert.equal(await view.page.getByRole('region', { name: 'Commands and keys' }).count(), 0);
    await view.page.keyboard.press('Escape');
    assert.deepEqual(await answers(view), [['t', denied]]);
  });

  it('is not answered by a key while an input method composes, nor by one that is held', async () => {
    const view = await running();
    await view.say(events(2, question('t', 'run_command')));
    await settled(view);
    for (const more of [{ isComposing: true }, { repeat: true }])
      for (const key of [{ key: 'Escape' }, { key: 'Enter', ctrlKey: true }])
        await textbox(view).dispatchEvent('keydown', { ...key, ...more });
    assert.deepEqual(await answers(view), []);
  });

  it('gives the keyboard back to the textbox after a click, and after it was answered elsewhere', async () => {
    const view = await running();
    await view.say(events(2, call('t', 'run_command', {}), question('t', 'run_command')));
    await button(view, 'Allow Once').click();
    assert.equal(await isTyping(view), true);
    await view.say(events(4, { type: 'approval_response', callId: 't', decision: once }));
    await view.say(events(5, question('u', 'run_command')));
    await button(view, 'Deny').focus();
    await view.say(events(6, { type: 'approval_response', callId: 'u', decision: once }));
    assert.equal(await isTyping(view), true);
  });

  it('takes no answer that came for the one before: a second key, a double click, a press that was under way', async () => {
    const view = await running();
    const { mouse, keyboard } = view.page;
    /** Has the host answer, and ask the next, within the time of a second press. */
    let from = 2;
    const next = async (id: string, before?: string): Promise<void> => {
      const answered = { type: 'approval_response', callId: before ?? '', decision: once } as const;
      const all = [...(before === undefined ? [] : [answered]), question(id, 'run_command')];
      await view.say(events(from, ...all));
      from += all.length;
    };
    await next('a');
    await settled(view);
    await keyboard.press('Control+Enter');
    await next('b', 'a');
    await keyboard.press('Control+Enter');
    await keyboard.press('Escape');
    assert.deepEqual(await answers(view), [['a', once]]);
    await settled(view);
    const box = await button(view, 'Allow Once').boundingBox();
    assert.ok(box);
    await mouse.click(box.x + 5, box.y + 5);
    await next('c', 'b');
    const again = await button(view, 'Allow Once').boundingBox();
    assert.ok(again);
    await mouse.click(again.x + 5, again.y + 5, { clickCount: 2 });
    await keyboard.press('Enter');
    assert.deepEqual(
      (await answers(view)).map(([id]) => id),
      ['a', 'b'],
    );
    await settled(view);
    const held = await button(view, 'Allow Once').boundingBox();
    assert.ok(held);
    await mouse.move(held.x + 5, held.y + 5);
    await mouse.down();
    await next('d', 'c');
    const under = await button(view, 'Allow Once').boundingBox();
    assert.ok(under);
    await settled(view);
    await mouse.move(under.x + 5, under.y + 5);
    await mouse.up();
    assert.deepEqual(
      (await answers(view)).map(([id]) => id),
      ['a', 'b'],
    );
    await button(view, 'Allow Once').click();
    assert.deepEqual(
      (await answers(view)).map(([id]) => id),
      ['a', 'b', 'd'],
    );
  });

  it('that stands below another does not take its second click, nor its keys', async () => {
    const view = await running();
    await view.say(events(2, question('a', 'run_command'), question('b', 'write_file')));
    await settled(view);
    const card = (tool: string) => view.page.getByRole('group', { name: nameOf(question('x', tool)) });
    assert.equal(await card('run_command').locator('.key').count(), 2);
    assert.equal(await card('write_file').locator('.key').count(), 0);
    await card('run_command').getByRole('button', { name: 'Allow Once' }).click();
    await view.say(events(4, { type: 'approval_response', callId: 'a', decision: once }));
    assert.equal(
      await card('write_file').getByRole('button', { name: 'Deny' }).getAttribute('aria-disabled'),
      'true',
    );
    await view.page.keyboard.press('Control+Enter');
    assert.deepEqual(await answers(view), [['a', once]]);
    await settled(view);
    await view.page.keyboard.press('Escape');
    assert.deepEqual(await answers(view), [
      ['a', once],
      ['b', denied],
    ]);
  });

  it('is answered by no key while it is out of sight, but shown', async () => {
    const view = await open({ height: 400 });
    const lines = Array.from({ length: 80 }, (_, at) => `Line ${at}.\n\n`).join('');
    await view.say(conversation([start('go'), routed, { type: 'text', text: lines }]));
    const log = view.page.getByRole('log', { name: 'Conversation' });
    await textbox(view).focus();
    await log.evaluate(one => one.scrollTo(0, 100));
    await button(view, 'Jump to latest').waitFor();
    await view.say(events(3, question('t', 'run_command')));
    await view.page.keyboard.press('Control+Enter');
    await view.page.keyboard.press('Control+Enter');
    await settled(view);
    assert.deepEqual(await answers(view), []);
    await view.page.keyboard.press('Control+Enter');
    assert.deepEqual(await answers(view), [['t', once]]);
  });
});
