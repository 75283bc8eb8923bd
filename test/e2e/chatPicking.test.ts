/** Picking in the chat view's page: a skill by a slash, another skill for a request that was run, another model. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { ToHost, ToWebview } from '../../src/protocol/webview.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { ask, call, conversation, end, info, routed, start } from '../webview/scenes.ts';
import { themeNames } from '../webview/themes.ts';

type Start = Extract<RunEvent, { type: 'run_start' }>;

describe('picking in the chat page', () => {
  let browser: Browser;
  let bundle: ViewBundle;
  let view: View;

  before(async () => {
    bundle = await buildView();
    browser = await sharedChromium();
  });

  beforeEach(async () => {
    view = await openView(browser, bundle);
  });

  afterEach(async () => {
    await view.page.close();
    assert.deepEqual(view.problems, []);
  });

  const textbox = () => view.page.getByRole('textbox', { name: 'Message Telos' });
  const options = () => view.page.getByRole('listbox', { name: 'Skills and commands' }).getByRole('option');
  const sent = async (type: ToHost['type']) => (await view.posted()).filter(message => message.type === type);

  it('completes a skill behind a slash by the keyboard, and sends it', async () => {
    await view.say(conversation([]));
    await textbox().pressSequentially('/');
    assert.equal(await options().count(), 11);
    const headings = view.page.locator('.completions-heading');
    assert.deepEqual(await headings.allTextContents(), ['kairos (2)', 'press (2)', 'Commands']);
    assert.match(
      (await options().filter({ hasText: '/compact' }).textContent()) ?? '',
      /^\/compact \[focus\]/,
    );
    await textbox().pressSequentially('r');
    assert.equal(await headings.count(), 0);
    assert.equal(await options().first().locator('.suggestion-name').textContent(), '/release-notes');
    await textbox().press('Backspace');
    await textbox().press('ArrowDown');
    await textbox().press('ArrowDown');
    const active = await textbox().getAttribute('aria-activedescendant');
    assert.equal(await view.page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
    assert.match((await view.page.locator(`#${active}`).textContent()) ?? '', /^\/release-notes/);
    // A quick typist's next letter comes before the page is drawn again.
    const written = await textbox().evaluate(element => {
      const box = element as HTMLTextAreaElement;
      box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
      return `${box.value.slice(0, box.selectionStart)}|${box.value.slice(box.selectionEnd)}`;
    });
    assert.equal(written, '/release-notes |');
    await options().first().waitFor({ state: 'detached' });
    await textbox().pressSequentially('for 1.2');
    await textbox().press('Enter');
    assert.deepEqual(await sent('submit'), [{ type: 'submit', text: '/release-notes for 1.2' }]);
  });

  it('closes the list with Escape until something is typed, and takes a click', async () => {
    await view.say(conversation([]));
    await textbox().fill('/kick');
    await options().first().waitFor();
    await textbox().press('Escape');
    assert.equal(await options().count(), 0);
    assert.equal(await textbox().getAttribute('aria-activedescendant'), null);
    await textbox().fill('/kicko');
    await options().first().click();
    assert.equal(await textbox().inputValue(), '/kickoff ');
    await textbox().fill('/kickoff');
    await textbox().press('Enter');
    assert.deepEqual(await sent('submit'), [{ type: 'submit', text: '/kickoff' }]);
  });

  it('has a list that axe finds no fault with, in every theme', async function () {
    this.timeout(10 * 60_000);
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core')), 'utf8');
    for (const theme of themeNames) {
      await view.page.close();
      view = await openView(browser, bundle, { theme });
      await view.say(
        conversation([start('sum up the week'), { ...routed, reason: { rule: 'model' } } as RunEvent, end]),
      );
      await textbox().fill('/');
      await options().first().waitFor();
      await view.page.evaluate(axe);
      const { violations } = await view.page.evaluate(() =>
        (
          window as unknown as {
            axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
          }
        ).axe.run(),
      );
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${theme}: ${id} ${nodes.map(({ html }) => html).join(' ')}`),
        [],
      );
    }
  });

  it('runs the same request with the runner-up, or asks for any other', async () => {
    const reason = {
      rule: 'index',
      matched: 'sum, week',
      score: 0.41,
      runnerUp: { agent: 'kairos', skill: 'weekly-summary', score: 0.3 },
    } as const;
    await view.say(conversation([start('sum up the week'), { ...routed, reason } as RunEvent, end]));
    await view.page.getByText('score 0.41, then weekly-summary with 0.30').waitFor();
    await view.page.getByRole('button', { name: 'Run weekly-summary instead' }).click();
    await view.page.getByRole('button', { name: 'Other Skill…' }).click();
    const skill = { agent: 'kairos', skill: 'weekly-summary' };
    assert.deepEqual(await sent('submit'), [
      { type: 'submit', text: 'sum up the week', skill, instead: true },
    ]);
    assert.deepEqual(await sent('pick_skill'), [{ type: 'pick_skill', text: 'sum up the week' }]);
  });

  it('opens the models at the button that says which one is in use, and takes one', async () => {
    await view.say(conversation([]));
    const button = view.page.getByRole('button', {
      name: 'Model: anthropic/claude-haiku-4-5. Choose another',
    });
    await button.click();
    assert.equal((await sent('find_models')).length, 1);
    const of = (model: string) => ({ provider: 'anthropic', model, label: model, detail: 'Anthropic' });
    await view.say({ type: 'models', models: [of('claude-haiku-4-5'), of('claude-opus-4-5')] });
    const items = view.page.getByRole('menuitemradio');
    assert.deepEqual(await items.allInnerTexts(), [
      'claude-haiku-4-5\nAnthropic',
      'claude-opus-4-5\nAnthropic',
      'Other Model or Key…',
    ]);
    const [menu, foot] = [await view.page.getByRole('menu').boundingBox(), await button.boundingBox()];
    assert.ok(Math.abs(menu!.y + menu!.height - foot!.y) < 12, 'the menu is not at its button');
    await items.nth(1).click();
    assert.deepEqual(await sent('use_model'), [
      { type: 'use_model', provider: 'anthropic', model: 'claude-opus-4-5' },
    ]);
    await button.click();
    await items.last().click();
    assert.deepEqual(await sent('command'), [{ type: 'command', command: 'telos.chooseModel' }]);
    assert.equal(await view.page.getByRole('menu').count(), 0);
  });

  it('sums up in the dial what the conversation has done, and asks to undo all of it', async () => {
    const wrote = { content: 'ok', isError: false, changedFiles: ['/home/ada/kairos/a.md'] };
    const ran = (callId: string, boxed: boolean): RunEvent => ({
      type: 'tool_end',
      callId,
      name: 'run_command',
      result: { content: 'ok', isError: false },
      policy: { action: 'allow', rule: 'x', ...(boxed && { boxed: true }) },
    });
    await view.say(
      conversation([
        start('go'),
        routed,
        call('a', 'run_command', { command: 'npm test' }),
        ran('a', true),
        call('b', 'run_command', { command: 'git push' }),
        ask('b', 'git push'),
        { type: 'approval_response', callId: 'b', decision: { allow: true, scope: 'once' } },
        ran('b', false),
        call('c', 'write_file', { path: 'a.md' }),
        { type: 'tool_end', callId: 'c', name: 'write_file', result: wrote },
        end,
      ]),
    );
    await view.page.locator('.mode').click();
    await view.page.getByText('3 actions, 1 asked, 1 left the sandbox').waitFor();
    await view.page.getByRole('button', { name: 'Undo All…' }).click();
    assert.deepEqual(await sent('undo_runs'), [{ type: 'undo_runs', runIds: ['r1'] }]);
    await view.say({ type: 'undone', runIds: ['r1'] });
    await view.page.locator('.mode').click();
    assert.equal(await view.page.getByRole('button', { name: 'Undo All…' }).count(), 0);
  });

  it('turns the dial with the keyboard, says what each stop means here, and that no sandbox works', async () => {
    await view.say(conversation([]));
    await view.page.getByRole('button', { name: 'Mode: Edit this workspace. Choose another' }).press('Enter');
    assert.equal((await sent('look_around')).length, 1);
    await view.say({ type: 'surroundings', surroundings: { workspace: 'acme-shop' } });
    const chosen = view.page.getByRole('menuitemradio', { checked: true });
    assert.match(await chosen.innerText(), /Can change acme-shop, and asks before the network/);
    await view.page.keyboard.press('ArrowDown');
    await view.page.keyboard.press('Enter');
    assert.deepEqual(await sent('set_mode'), [{ type: 'set_mode', mode: 'sandbox' }]);
    const dial = view.page.getByRole('button', { name: 'Mode: Everything in the sandbox. Choose another' });
    const surroundings = { workspace: 'acme-shop', noSandbox: 'bwrap is missing.' };
    await view.say({ type: 'surroundings', surroundings });
    assert.match(
      (await dial.getAttribute('title')) ?? '',
      /Each command asks, as no sandbox works here: bwrap/,
    );
    await dial.click();
    await view.page.keyboard.press('Escape');
    assert.equal(await view.page.getByRole('menu').count(), 0);
  });

  it('says in which mode the next run works and each run has worked, and asks for another by a button', async () => {
    const planned: RunEvent = { ...(start('run the kickoff') as Start), mode: 'plan' };
    await view.say({ ...conversation([planned, routed, end]), mode: 'plan' } as ToWebview);
    await view.page.locator('.run-mode', { hasText: 'Look only' }).waitFor();
    await view.page.getByRole('button', { name: 'Mode: Look only. Choose another' }).waitFor();
    await view.say({ type: 'mode', mode: 'review' });
    await view.page.getByRole('button', { name: 'Mode: Ask. Choose another' }).waitFor();
    await view.say(conversation([start('run the kickoff'), routed, end]));
    await view.page.getByRole('button', { name: 'Mode: Edit this workspace. Choose another' }).waitFor();
    assert.equal(await view.page.locator('.run-mode').count(), 0);
  });

  it('says what speaks against a skill where it is suggested and where it is completed', async () => {
    const [first, ...others] = info.skills;
    const noted = [{ ...first!, note: 'needs jq' }, ...others];
    await view.say(conversation([], { skills: noted }));
    const suggested = view.page.getByRole('button', { name: /kickoff/ });
    assert.match((await suggested.textContent()) ?? '', /kickoff.*needs jq/);
    await textbox().pressSequentially('/kick');
    assert.equal(await options().first().locator('.suggestion-note').textContent(), 'needs jq');
  });

  it('takes an attachment away with its mention, and shows which lines a request is about', async () => {
    await view.say(conversation([{ ...(start('explain') as Start), selection: 'math.ts:1-8' }, routed, end]));
    await view.page.locator('.request-attachments', { hasText: 'math.ts:1-8' }).waitFor();
    const chip = {
      id: 'a1',
      kind: 'text',
      name: 'notes.md',
      detail: '3 lines',
      mention: 'notes.md',
    } as const;
    const other = { ...chip, id: 'a2', name: 'my plan.md', mention: 'my plan.md' };
    await textbox().fill('sum up @notes.md please');
    await view.say({ type: 'attached', attachments: [chip, other] });
    await textbox().fill('sum up @notes.md now');
    assert.deepEqual(await sent('detach'), []);
    await textbox().fill('sum up now');
    assert.deepEqual(await sent('detach'), [{ type: 'detach', id: 'a1' }]);
  });

  it('obeys a command behind a slash, and brings earlier requests back with Up', async () => {
    await view.say(
      conversation([start('first'), routed, end, { ...start('second'), runId: 'r2' } as Start, routed, end]),
    );
    for (const [command, type] of [
      ['/new', 'new_conversation'],
      ['/mode', 'look_around'],
    ] as const) {
      await textbox().fill(command);
      await textbox().press('Enter');
      assert.equal((await sent(type)).length, 1, command);
      assert.equal(await textbox().inputValue(), '');
    }
    await textbox().fill('/hel');
    await textbox().press('Enter');
    const help = view.page.getByRole('region', { name: 'Commands and keys' });
    await help.getByText('/undo').waitFor();
    await help.getByRole('button', { name: 'Close' }).click();
    assert.equal(await help.count(), 0);
    const presses = ['ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowDown', 'ArrowDown'];
    const seen: string[] = [];
    for (const key of presses) {
      await textbox().press(key);
      seen.push(await textbox().inputValue());
    }
    assert.deepEqual(seen, ['second', 'first', 'first', 'second', '']);
    await textbox().fill('mine');
    await textbox().press('ArrowUp');
    assert.equal(await textbox().inputValue(), 'mine');
    assert.deepEqual(await sent('submit'), []);
  });
});
