/** What the chat view's page shows of a long run, by itself in Chromium. */
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { type RunEvent, skipped } from '../../src/protocol/run.ts';
import { eventually } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { call, conversation, done, failed, routed, start, text } from '../webview/scenes.ts';

describe('a long run in the chat page', () => {
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

  async function open(...events: RunEvent[]): Promise<View> {
    const view = await openView(browser, bundle);
    views.push(view);
    await view.say(conversation([start('go'), routed, ...events]));
    return view;
  }

  const events = (from: number, ...all: RunEvent[]) =>
    ({ type: 'events', id: 'c1', from, events: all }) as const;
  const output = (value: string): RunEvent => ({ type: 'tool_output', callId: 't1', text: value });
  const log = (view: View) => view.page.getByRole('log', { name: 'Conversation' });
  const row = (view: View) => view.page.getByRole('group', { name: /^Output of / });

  it('shows what a command prints while it runs, its end in sight, and moves nothing when it ends', async () => {
    const view = await open(text('word\n\n'.repeat(60)), call('t1', 'run_command', { command: 'npm test' }));
    assert.equal(await row(view).count(), 0);
    await view.say(events(4, output('begun\n10 %\r')));
    await view.say(events(5, output('20 %')));
    await eventually(async () => assert.equal(await row(view).textContent(), 'begun\n20 %'));
    await view.say(
      events(6, output(`\n${Array.from({ length: 300 }, (_, line) => `line ${line} \u202E<b>`).join('\n')}`)),
    );
    await eventually(async () =>
      assert.match((await row(view).textContent()) ?? '', /line 299 <U\+202E><b>$/),
    );
    assert.ok(((await row(view).textContent()) ?? '').length < 8_000);
    const places = () =>
      row(view).evaluate(element => {
        const pane = element.getBoundingClientRect();
        const words = element.querySelector('pre')!.getBoundingClientRect();
        const frame = element.closest('[role="log"]')!;
        return {
          endInSight: words.bottom <= pane.bottom + 1,
          height: pane.height,
          top: pane.top,
          atEnd: frame.scrollHeight - frame.scrollTop - frame.clientHeight <= 24,
        };
      });
    const before = await places();
    assert.deepEqual([before.endInSight, before.atEnd], [true, true]);
    assert.ok(before.height < 200);
    await view.say(events(7, output('\nlast')));
    assert.deepEqual(await places(), before);
    await view.say(events(8, done('t1', 'run_command', 'all of it')));
    // What the run does next is said in a line below.
    assert.deepEqual({ ...(await places()), top: 0 }, { ...before, top: 0 });
  });

  it('shows in the row of a call how far it is, in letters that can be seen, until it ends', async () => {
    const view = await open(call('t1', 'copy_beds', {}));
    const far = (message: string, share?: number): RunEvent => ({
      type: 'tool_progress',
      callId: 't1',
      name: 'copy_beds',
      message,
      ...(share !== undefined && { share }),
    });
    const bar = view.page.getByRole('progressbar', { name: 'Progress of copy_beds' });
    const words = view.page.locator('.tool-progress');
    await view.say(events(3, far('sowing \u202E1')));
    await eventually(async () => assert.equal(await words.textContent(), 'sowing <U+202E>1'));
    assert.equal(await bar.count(), 0);
    await view.say(events(4, far('sowing 2 of 4', 0.5)));
    await eventually(async () => assert.equal(await bar.getAttribute('value'), '0.5'));
    assert.equal(await words.textContent(), 'sowing 2 of 4');
    await view.say(events(5, done('t1', 'copy_beds', 'all of it')));
    await eventually(async () => assert.equal(await words.count(), 0));
  });

  it('draws no more than once a frame, however often a command prints', async () => {
    const view = await open(call('t1', 'run_command', { command: 'make' }));
    await view.say(events(3, output('first\n')));
    await row(view).waitFor();
    const counted = await view.page.evaluate(async () => {
      const pane = document.querySelector('.tool-output')!;
      let [drawn, frames, going] = [0, 0, true];
      const observer = new MutationObserver(() => {
        drawn++;
      });
      observer.observe(pane, { childList: true, subtree: true, characterData: true });
      const frame = (): void => {
        frames++;
        if (going) requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
      for (let at = 0; at < 500; at++) {
        const event = { type: 'tool_output', callId: 't1', text: `line ${at}\n` };
        window.postMessage({ type: 'events', id: 'c1', from: 4 + at, events: [event] });
        if (at % 10 === 0) await new Promise(resolve => setTimeout(resolve));
      }
      while (!pane.textContent?.includes('line 499')) await new Promise(requestAnimationFrame);
      going = false;
      return { drawn, frames };
    });
    assert.ok(counted.drawn <= counted.frames + 1, JSON.stringify(counted));
    assert.ok(counted.drawn < 500);
  });

  it('keeps the place of a person who has scrolled up', async () => {
    const view = await open(text('word\n\n'.repeat(80)), call('t1', 'run_command', { command: 'make' }));
    await log(view).evaluate(element => element.scrollTo(0, 100));
    await eventually(async () => assert.equal(await log(view).evaluate(element => element.scrollTop), 100));
    await view.page.getByRole('button', { name: 'Jump to latest' }).waitFor();
    for (let at = 0; at < 20; at++) await view.say(events(4 + at, output(`line ${at}\n`)));
    assert.equal(await log(view).evaluate(element => element.scrollTop), 100);
  });

  it('lists what runs in the background, ends it, and sends a running command there', async () => {
    const view = await open(call('t1', 'run_command', { command: 'npm test' }));
    await view.page.getByRole('button', { name: 'Move to Background', exact: true }).click();
    const startedAt = new Date(Date.now() - 125_000).toISOString();
    await view.say({
      type: 'commands',
      commands: [{ id: 'cmd-1', command: 'npm run \u202Edev', startedAt }],
    });
    const list = view.page.getByRole('list', { name: 'Commands in the background' });
    assert.match((await list.textContent()) ?? '', /npm run <U\+202E>dev.*2 min/);
    await list.getByRole('button', { name: /^Stop npm run/ }).click();
    const sent = (await view.posted()).filter(({ type }) => /stop_command|to_background/.test(type));
    assert.deepEqual(sent, [
      { type: 'to_background', callId: 't1' },
      { type: 'stop_command', id: 'cmd-1' },
    ]);
    await view.say(events(3, done('t1', 'run_command', 'x')));
    assert.equal(await view.page.getByRole('button', { name: 'Move to Background', exact: true }).count(), 0);
    await view.say({ type: 'commands', commands: [] });
    await list.waitFor({ state: 'detached' });
  });

  it('says why a call failed with paths from the workspace, and without the advice that the model gets', async () => {
    const missing = failed('t1', 'read_file', '/home/ada/kairos/notes/none.md does not exist.');
    const unknown = failed(
      't2',
      'todo_write',
      'Unknown tool: todo_write. The tools are read_file, write_file.',
    );
    const view = await open(
      call('t1', 'read_file', { path: 'notes/none.md' }),
      missing,
      call('t2', 'todo_write', {}),
      unknown,
    );
    assert.deepEqual(await view.page.locator('.tool-problem').allTextContents(), [
      'notes/none.md does not exist.',
      'Unknown tool: todo_write',
    ]);
  });

  it('pins the to-do list above the textbox, which folds, and keeps it in the run', async () => {
    const todos = (...states: string[]): RunEvent =>
      call('t1', 'update_todos', {
        items: states.map((state, at) => ({ text: `step ${at} \u202E<b>`, state })),
      });
    const view = await open(todos('done', 'doing', 'open'));
    const list = view.page.getByRole('list', { name: 'To do' });
    assert.match(
      (await list.textContent()) ?? '',
      /step 0 <U\+202E><b>done.*step 1.*in progress.*step 2.*open/,
    );
    const place = await list.boundingBox();
    const box = await view.page.getByRole('textbox', { name: 'Message Telos' }).boundingBox();
    assert.ok(place && box && place.y < box.y);
    await view.say(events(3, done('t1', 'update_todos', 'x'), todos('done', 'done', 'doing')));
    await view.page.getByText('2 of 3 done').click();
    assert.equal(await list.isVisible(), false);
    await eventually(async () =>
      assert.match((await view.page.locator('.todos summary').textContent()) ?? '', /2 of 3 done.*step 2/),
    );
    await view.say(events(5, call('t2', 'update_todos', { items: 'none' })));
    await view.page.getByText('2 of 3 done').click();
    assert.match((await list.textContent()) ?? '', /step 2.*in progress/);
    await view.say(events(6, done('t2', 'update_todos', 'x'), todos('done', 'done', 'done')));
    await list.waitFor({ state: 'hidden' });
    assert.equal(await view.page.locator('.todos summary').textContent(), '3 of 3 done');
  });

  it('asks with choices: by a number, with the arrow keys, in own words, or not at all', async () => {
    const question = (callId: string, choices: string[]): RunEvent => ({
      type: 'approval_request',
      request: {
        callId,
        token: `token of ${callId}`,
        tool: 'ask_user',
        subject: 'Which \u202Eone?',
        rule: 'run.question',
        reason: 'The skill asks.',
        scopes: ['once'],
        choices,
      },
    });
    const view = await open();
    await view.page.getByRole('textbox', { name: 'Message Telos' }).focus();
    const card = view.page.getByRole('group', { name: 'Approval: Question from the skill' });
    const answers = async () =>
      (await view.posted()).flatMap(each => (each.type === 'approve' ? [each.decision] : []));
    let from = 2;
    const ask = async (choices: string[]): Promise<void> => {
      const id = `q${from}`;
      await view.say(events(from, call(id, 'ask_user', {}), question(id, choices)));
      from += 2;
      await eventually(async () =>
        assert.equal(await card.getByRole('button', { name: 'Skip' }).getAttribute('aria-disabled'), 'false'),
      );
      await view.page.keyboard.press('Control+Enter');
    };
    const answered = async (): Promise<void> => {
      const decision = (await answers()).at(-1)!;
      await view.say(events(from++, { type: 'approval_response', callId: `q${from - 3}`, decision }));
    };
    await ask(['red', 'green']);
    assert.match((await card.textContent()) ?? '', /Which <U\+202E>one\?1\. red2\. green/);
    await view.page.keyboard.press('2');
    await answered();
    await view.page.getByText('You answered').waitFor();
    await ask(['red', 'green']);
    await view.page.keyboard.press('ArrowDown');
    await view.page.keyboard.press('Enter');
    await answered();
    await ask(['red']);
    await card.getByRole('textbox', { name: 'Your own answer' }).fill('3 blue ones');
    await view.page.keyboard.press('Enter');
    await answered();
    await ask([]);
    await view.page.keyboard.press('Escape');
    assert.deepEqual(await answers(), [
      { allow: true, scope: 'once', answer: 'green' },
      { allow: true, scope: 'once', answer: 'green' },
      { allow: true, scope: 'once', answer: '3 blue ones' },
      skipped,
    ]);
  });

  it('shows the whole of what a server asks the model, and cuts the subject of other questions', async () => {
    const request = {
      callId: 's1',
      token: 'k1',
      tool: 'mcp_sampling',
      rule: 'mcp.sampling',
      reason: 'It asks.',
      scopes: ['once'] as const,
      subject: `[user]\n${'bed '.repeat(1_900)}\u202Eend`,
    };
    const view = await open({ type: 'approval_request', request: { ...request, showsWhole: true } });
    const card = view.page.locator('.card.approval');
    await card.getByText('Let the server ask the model?').waitFor();
    const words = (await card.locator('pre.subject').first().textContent()) ?? '';
    assert.equal(words.split('bed ').length, 1_901);
    assert.match(words, /<U\+202E>end$/);
    assert.equal(await card.getByRole('button', { name: /characters hidden/ }).count(), 0);
    const other = await open({ type: 'approval_request', request });
    await other.page.getByRole('button', { name: /characters hidden/ }).waitFor();
  });

  it('says on the card how long a command may take', async () => {
    const view = await open(call('t1', 'run_command', { command: 'make', timeout_s: 1200 }), {
      type: 'approval_request',
      request: {
        callId: 't1',
        token: 'token',
        tool: 'run_command',
        subject: 'make',
        rule: 'run.command',
        reason: 'Commands ask.',
        scopes: ['once'],
        timeLimit: 1200,
      },
    });
    await view.page
      .getByRole('group', { name: 'Approval: Run this command?' })
      .getByText('It may take up to 20 min')
      .waitFor();
  });
});
