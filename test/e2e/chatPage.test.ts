/** The chat view's page by itself in Chromium: what it draws, what it sends, and that everyone can use it. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { type ApprovalRequest, leaveBox, type RunError, type RunEvent } from '../../src/protocol/run.ts';
import type { ToHost } from '../../src/protocol/webview.ts';
import { eventually } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import {
  answer,
  ask,
  call,
  conversation,
  done,
  end,
  routed,
  scenes,
  start,
  text,
} from '../webview/scenes.ts';
import { themeNames } from '../webview/themes.ts';

const endedBy = (error: RunError): RunEvent => ({
  type: 'run_end',
  outcome: error.code === 'no_match' ? 'no_match' : 'failed',
  rounds: 0,
  toolCalls: 0,
  durationMs: 12,
  messages: [],
  error,
});

interface Finding {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** Runs in the page: returns true if nothing of the element is scrolled out of the conversation. */
function isInSight(element: Element): boolean {
  const [own, frame] = [element, element.closest('[role="log"]') ?? document.body].map(each =>
    each.getBoundingClientRect(),
  );
  return own !== undefined && frame !== undefined && own.top >= frame.top && own.bottom <= frame.bottom;
}

describe('chat page', () => {
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

  const events = (from: number, ...all: RunEvent[]) =>
    ({ type: 'events', id: 'c1', from, events: all }) as const;
  const textbox = (view: View) => view.page.getByRole('textbox', { name: 'Message Telos' });
  const button = (view: View, name: string) => view.page.getByRole('button', { name, exact: true });
  const log = (view: View) => view.page.getByRole('log', { name: 'Conversation' });

  /** Waits until what a button belongs to can be answered: what comes before was meant for something else. */
  const settled = (view: View, name: string) =>
    eventually(async () => assert.equal(await button(view, name).getAttribute('aria-disabled'), 'false'));

  async function sent<Type extends ToHost['type']>(view: View, type: Type) {
    return (await view.posted()).filter(
      (each): each is Extract<ToHost, { type: Type }> => each.type === type,
    );
  }

  it('asks for the conversation, and sends the draft it is given', async () => {
    const view = await open();
    assert.deepEqual(await view.posted(), [{ type: 'ready', id: null, have: 0 }]);
    await view.say(scenes['welcome']!);
    await button(view, 'Send').click();
    assert.deepEqual(await sent(view, 'submit'), [{ type: 'submit', text: 'Run daily kickoff' }]);
    await button(view, 'Stop').waitFor();
    assert.equal(await textbox(view).inputValue(), '');
    await button(view, 'Stop').click();
    assert.equal((await sent(view, 'stop')).length, 1);
  });

  it('sends with Enter, and neither with Shift+Enter, nor while composing, nor twice', async () => {
    const view = await open();
    await view.say(conversation([]));
    await textbox(view).fill('one');
    await textbox(view).press('Shift+Enter');
    await textbox(view).pressSequentially('two');
    await textbox(view).dispatchEvent('keydown', { key: 'Enter', isComposing: true });
    assert.equal((await sent(view, 'submit')).length, 0);
    await textbox(view).press('Enter');
    await textbox(view).press('Enter');
    assert.deepEqual(await sent(view, 'submit'), [{ type: 'submit', text: 'one\ntwo' }]);
  });

  it('says why something does not go along until the request is sent without it', async () => {
    const problem = 'There are no problems: the editor reports none.';
    const view = await open();
    await view.say(conversation([]));
    await view.say({ type: 'attached', attachments: [], problem });
    await view.page.getByRole('alert').getByText(problem).waitFor();
    await textbox(view).fill('look at it');
    await textbox(view).press('Enter');
    await view.page.getByRole('alert').getByText(problem).waitFor({ state: 'detached', timeout: 10_000 });
  });

  it('draws text as it arrives, in more than one step', async () => {
    const view = await open();
    await view.say(conversation([start('go'), routed]));
    await view.say(events(2, text('Good **mor')));
    // What takes long to draw is drawn less often, so on a slow machine it comes a little later.
    const drawn = (where: string, wanted: string) =>
      eventually(async () => assert.equal(await log(view).locator(where).textContent(), wanted));
    await drawn('strong', 'mor');
    await view.say(events(3, text('ning**\n\n```js\nconst a')));
    await drawn('strong', 'morning');
    await drawn('pre code', 'const a');
    await view.say(events(4, text(' = 1;\n```\n')));
    await log(view).locator('pre .hljs-keyword').waitFor();
    await drawn('pre code', 'const a = 1;\n');
  });

  it('shows the same after the events came in pieces as after they came at once', async () => {
    const all = [
      start('go'),
      routed,
      text(answer),
      call('t', 'read_file', { path: 'a.md' }),
      done('t', 'read_file', 'x'),
    ];
    const [pieces, whole] = [await open(), await open()];
    await whole.say(conversation([...all, end]));
    await pieces.say(conversation(all.slice(0, 2)));
    const deltas = answer.match(/[\s\S]{1,40}/g)!.map(text);
    for (const [index, delta] of deltas.entries()) await pieces.say(events(2 + index, delta));
    await pieces.say(events(2 + deltas.length, ...all.slice(3), end));
    for (const view of [pieces, whole]) await log(view).locator('pre .hljs-keyword').first().waitFor();
    await eventually(async () => assert.equal(await log(pieces).innerHTML(), await log(whole).innerHTML()));
  });

  it('asks again when a batch is missing, once, and goes on from there', async () => {
    const view = await open();
    await view.say(conversation([start('go'), routed]));
    await view.say(events(3, text('lost')), events(4, text('lost')));
    assert.deepEqual((await sent(view, 'ready')).slice(1), [{ type: 'ready', id: 'c1', have: 2 }]);
    await view.say({ ...conversation([text('a'), text('b')]), from: 2 } as Parameters<View['say']>[0]);
    assert.match((await log(view).textContent()) ?? '', /ab/);
  });

  it('keeps what was typed over a reload, and not the events', async () => {
    const first = await open();
    await first.say(conversation([start('go'), routed]));
    await textbox(first).fill('half a thought');
    const kept = await first.page.evaluate(() => (window as unknown as { keptState(): unknown }).keptState());
    assert.deepEqual(kept, { id: 'c1', draft: 'half a thought' });
    const second = await open({ kept });
    assert.deepEqual(await second.posted(), [{ type: 'ready', id: 'c1', have: 0 }]);
    await second.say(conversation([start('go'), routed], {}, ''));
    assert.equal(await textbox(second).inputValue(), 'half a thought');
  });

  it('does not put words in the place of those that were typed before the host has spoken', async () => {
    const view = await open();
    await textbox(view).fill('my own words');
    await view.say(scenes['welcome']!, { type: 'draft', text: 'Run daily kickoff', suggested: true });
    assert.equal(await textbox(view).inputValue(), 'my own words');
    await textbox(view).fill('');
    await view.say({ type: 'draft', text: 'Run daily kickoff', suggested: true });
    assert.equal(await textbox(view).inputValue(), 'Run daily kickoff');
  });

  it('answers an approval by keyboard alone, and folds it to a line', async () => {
    const view = await open();
    await view.say(conversation([start('go'), routed]));
    await textbox(view).focus();
    await view.say(events(2, call('t', 'run_command', { command: 'ls' }), ask('t', 'ls \u202E-la')));
    const card = view.page.getByRole('group', { name: 'Approval: Run this command?' });
    assert.equal(await card.locator('.subject').textContent(), 'ls <U+202E>-la');
    await settled(view, 'Allow Once');
    await button(view, 'Deny').focus();
    await view.page.keyboard.press('Tab');
    await view.page.keyboard.press('Enter');
    await view.page.keyboard.press('Tab');
    await view.page.keyboard.press('Enter');
    assert.deepEqual(await sent(view, 'approve'), [
      { type: 'approve', token: 'token of t', decision: { allow: true, scope: 'run' } },
    ]);
    assert.equal(await button(view, 'Deny').isDisabled(), true);
    await view.say(
      events(4, { type: 'approval_response', callId: 't', decision: { allow: true, scope: 'run' } }),
    );
    assert.equal(await card.getByRole('button').count(), 0);
    assert.match((await card.textContent()) ?? '', /Allowed for this run/);
  });

  it('names a danger, and allows nothing dangerous with Enter or for always', async () => {
    const view = await open();
    await view.say(conversation([start('go'), routed]));
    await textbox(view).focus();
    await view.say(scenes['danger']!);
    const card = view.page.getByRole('group', { name: 'Approval: Run this command?' });
    await card
      .getByText('Deletes ../other, outside the working folder. Publishes to others: npm publish.')
      .waitFor();
    assert.equal(await card.locator('button.primary').count(), 0);
    await button(view, 'More answers').click();
    assert.deepEqual(await card.locator('.menu button').allTextContents(), [
      'Allow for This Run',
      'Deny and Say Why…',
    ]);
    assert.equal(await button(view, 'Allow Once').getAttribute('aria-keyshortcuts'), null);
    await settled(view, 'Deny');
    await button(view, 'Deny').focus();
    await view.page.keyboard.press('Enter');
    const [answer] = await sent(view, 'approve');
    assert.equal(answer?.decision.allow, false);
  });

  it('tells the model why it was denied', async () => {
    const view = await open();
    await view.say(
      conversation([start('go'), routed, call('t', 'run_command', { command: 'ls' }), ask('t', 'ls')]),
    );
    await button(view, 'More answers').click();
    await button(view, 'Deny and Say Why…').click();
    await view.page.keyboard.type('Use rg instead');
    await view.page.keyboard.press('Enter');
    assert.deepEqual(await sent(view, 'approve'), [
      {
        type: 'approve',
        token: 'token of t',
        decision: { allow: false, reason: 'The user denied this: Use rg instead' },
      },
    ]);
  });

  it('offers to run a command outside of the box where it wants a host, and is told so', async () => {
    const view = await open();
    const request: ApprovalRequest = {
      ...ask('t', 'example.org:443').request,
      tool: 'run_command.host',
      mayLeave: true as const,
    };
    await view.say(conversation([start('go'), routed, { type: 'approval_request', request }]));
    await button(view, 'More answers').click();
    await button(view, 'Run Outside the Sandbox…').click();
    assert.deepEqual(await sent(view, 'approve'), [
      { type: 'approve', token: 'token of t', decision: leaveBox },
    ]);
  });

  it('lets the person change the command, if all of it can be seen', async () => {
    const view = await open();
    const request = { ...ask('t', 'npm test').request, isEditable: true };
    await view.say(conversation([start('go'), routed, { type: 'approval_request', request }]));
    await button(view, 'More answers').click();
    await button(view, 'Edit Command…').click();
    const box = view.page.getByRole('textbox', { name: 'The command to run instead' });
    assert.equal(await box.inputValue(), 'npm test');
    await box.fill(' ');
    assert.equal(await button(view, 'Run once').isDisabled(), true);
    await box.fill('npm test -- --bail');
    await view.page.keyboard.press('Enter');
    const decision = { allow: true, scope: 'once', command: 'npm test -- --bail' } as const;
    assert.deepEqual(await sent(view, 'approve'), [{ type: 'approve', token: 'token of t', decision }]);
    await view.say(events(3, { type: 'approval_response', callId: 't', decision }));
    await view.page.getByText('Changed and allowed once').waitFor();
    await view.page.getByText('npm test -- --bail').waitFor();
  });

  it('offers no change of a command of which something is hidden, and none by Enter where it is dangerous', async () => {
    const asked = (subject: string, more: Partial<ApprovalRequest> = {}): RunEvent => ({
      type: 'approval_request',
      request: { ...ask('t', subject).request, isEditable: true, ...more },
    });
    const view = await open();
    const danger = [{ kind: 'deletes-folder', values: ['old'] }] as const;
    await view.say(conversation([start('go'), routed, asked('rm -r old', { danger })]));
    await button(view, 'More answers').click();
    await button(view, 'Edit Command…').click();
    await view.page.keyboard.press('Enter');
    assert.deepEqual(await sent(view, 'approve'), []);
    const other = await open();
    await other.say(conversation([start('go'), routed, asked('echo \u202Egone')]));
    await button(other, 'More answers').click();
    assert.equal(await button(other, 'Edit Command…').count(), 0);
  });

  it('keeps the command and the answers in sight at 250 pixels', async () => {
    for (const name of ['calm', 'danger', 'card']) {
      const view = await open({ width: 250, height: 520 });
      await view.say(scenes[name]!);
      for (const part of [
        view.page.locator('.approval .subject'),
        button(view, 'Allow Once'),
        button(view, 'Deny'),
      ])
        assert.equal(await part.evaluate(isInSight), true, `${name}: ${await part.textContent()}`);
    }
  });

  it('shows a tool call with its result and opens the file it changed', async () => {
    const view = await open();
    await view.say(scenes['answer']!);
    const tool = view.page.getByRole('group', { name: 'Wrote days/2026-01-05.md' });
    assert.match((await tool.textContent()) ?? '', /^Wrote days\/2026-01-05\.md\+12−3/);
    await tool.getByRole('button', { name: 'days/2026-01-05.md', exact: true }).click();
    assert.deepEqual(await sent(view, 'open_file'), [
      { type: 'open_file', path: '/home/ada/kairos/days/2026-01-05.md' },
    ]);
    await tool.locator('summary').click();
    await tool.getByText('Wrote 42 bytes.').waitFor();
  });

  it('has at most two lines around an answer that changes nothing, and the rest in their hover', async () => {
    const view = await open({ width: 250 });
    const usage = { inputTokens: 900, outputTokens: 50, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0.01 };
    const answered = (request: string, reason: object) => [
      start(request),
      { ...routed, reason } as RunEvent,
      { type: 'usage', round: 1, usage } as RunEvent,
      text('Two things wait.'),
      end,
    ];
    await view.say(
      conversation([
        ...answered('run daily kickoff', { rule: 'index', matched: 'day', score: 0.5 }),
        ...answered('and tomorrow?', { rule: 'continued' }),
      ]),
    );
    const around = await log(view)
      .locator('.run')
      .evaluateAll(runs =>
        runs.map(run =>
          [...run.children]
            .filter(child => child.matches(':not(h2, .request, .markdown)'))
            .map(child => Math.round(child.getBoundingClientRect().height / 20)),
        ),
      );
    assert.deepEqual(around, [[1, 1], [1]]);
    const [first] = await log(view).locator('.end').all();
    assert.equal(await first?.locator('summary').textContent(), 'Completed · 12 s · $0.0100');
    const known = '12 s · 3 steps · 2 tool calls · 900 tokens in, 50 out · $0.0100';
    assert.equal(await first?.locator('summary').getAttribute('title'), `Completed · ${known}`);
    await first?.locator('summary').click();
    await first?.getByText(known).waitFor();
    const route = log(view).locator('.route');
    assert.match(
      (await route.getAttribute('title')) ?? '',
      /score 0\.50 · claude-haiku-4-5\n.*Starts the day/s,
    );
  });

  it('says in verbs what each call did, and leaves the to-dos to their list', async () => {
    const view = await open();
    const did = (id: string, name: string, input: Record<string, unknown>) => [
      call(id, name, input),
      done(id, name, 'ok'),
    ];
    await view.say(
      conversation([
        start('go'),
        routed,
        ...did('a', 'search_files', { path: 'src', pattern: 'total' }),
        ...did('b', 'run_command', { command: 'npm test' }),
        ...did('c', 'ask_user', { question: 'Which shop?' }),
        ...did('d', 'update_todos', { items: [{ text: 'Look', state: 'doing' }] }),
        ...did('e', 'say', { name: 'Ada' }),
        call('f', 'run_command', { command: 'sleep 9' }),
      ]),
    );
    const words = await log(view).locator('.tool-words').allTextContents();
    const said = [
      'Searched for total',
      'Ran npm test',
      'Asked you: Which shop?',
      'Used say Ada',
      'Running sleep 9',
    ];
    assert.deepEqual(words, said);
    assert.deepEqual(await view.page.locator('.todos li').allInnerTexts(), ['Look\nin progress']);
  });

  it('says of an answered question what it was about, in no name of a tool', async () => {
    const view = await open();
    const denied = { allow: false, reason: 'no' } as const;
    await view.say(
      conversation([
        start('go'),
        routed,
        call('t', 'run_command', { command: 'npm test' }),
        ask('t', 'npm test'),
        { type: 'approval_response', callId: 't', decision: denied },
      ]),
    );
    const line = await log(view).locator('.answered').innerText();
    assert.equal(line.replace(/\s+/g, ' '), 'You denied this npm test');
    const request = { ...ask('s', '/skills/radio/mcp.json').request, tool: 'mcp_servers' };
    await view.say(
      events(
        5,
        { type: 'approval_request', request },
        { type: 'approval_response', callId: 's', decision: { allow: true, scope: 'once' } },
      ),
    );
    const next = await log(view).locator('.answered').last().innerText();
    assert.equal(next.replace(/\s+/g, ' '), 'Allowed once: Start MCP servers?');
  });

  it('names the model when another one answers, and no improvement where no skill ran', async () => {
    const view = await open();
    const none = { ...routed, agent: '', skill: '', reason: { rule: 'without_skill' } } as RunEvent;
    const other = { ...none, model: 'claude-opus-4-5' } as RunEvent;
    await view.say(conversation([start('hello'), none, end, start('and now?'), other, end]));
    assert.deepEqual(await log(view).locator('.route').allInnerTexts(), ['no skill · claude-opus-4-5']);
    assert.equal(await button(view, 'Improve Skill…').count(), 0);
  });

  it('tells what a call and a run have changed, leads to the diffs, and knows that a run is undone', async () => {
    const view = await open();
    await view.say(scenes['answer']!);
    const path = '/home/ada/kairos/days/2026-01-05.md';
    await log(view).getByText('12 lines added, 3 removed').waitFor();
    await log(view).getByRole('button', { name: 'Show diff of days/2026-01-05.md' }).click();
    const changes = view.page.getByRole('group', { name: 'Files that this run changed' });
    await changes.getByText('1 file changed').waitFor();
    await changes.getByRole('button', { name: 'Show Changes' }).focus();
    await view.page.keyboard.press('Enter');
    await view.page.keyboard.press('Tab');
    await view.page.keyboard.press('Enter');
    assert.deepEqual(await sent(view, 'show_changes'), [
      { type: 'show_changes', runId: 'r1', path },
      { type: 'show_changes', runId: 'r1' },
    ]);
    assert.deepEqual(await sent(view, 'undo_run'), [{ type: 'undo_run', runId: 'r1' }]);
    await view.say({ type: 'undone', runIds: ['r1'] });
    const undone = changes.getByRole('button', { name: 'Undone' });
    await undone.waitFor();
    assert.ok(await undone.isDisabled());
    await view.say({ type: 'undone', runIds: [] });
    await changes.getByRole('button', { name: 'Undo This Run' }).waitFor();
  });

  it('sends links and code to the host', async () => {
    const view = await open();
    await view.say(scenes['answer']!);
    await log(view).getByRole('link', { name: 'the draft' }).click();
    assert.deepEqual(await sent(view, 'open_link'), [
      { type: 'open_link', url: 'https://example.com/draft' },
    ]);
    await button(view, 'Copy code').click();
    assert.match((await sent(view, 'copy'))[0]!.text, /^\/\/ What the script[\s\S]*}\n$/);
  });

  it('shows hostile Markdown as text: no tag, no script, no remote image, no odd address', async () => {
    const view = await open();
    const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>

![x](https://example.com/leak.png) [a](javascript:window.hit=1) [b](command:telos.setApiKey)
[c](vbscript:x) ![d](data:text/html;base64,PHNjcmlwdD4=) <a href="javascript:window.hit=1">e</a>

| <iframe src="x"> | x |
| --- | --- |
| <svg/onload=window.hit=1> | \`<b>\` |

\`\`\`html
</code><img src=x onerror=window.hit=1>
\`\`\`
`;
    await view.say(conversation([start('<img src=x onerror=window.hit=1>'), routed, text(hostile), end]));
    const found = await view.page.evaluate(() => ({
      hit: 'hit' in window,
      tags: document.querySelectorAll('.content :is(img, iframe, script, svg:not(.icon), b, form, style)')
        .length,
      links: [...document.querySelectorAll('.content a')].map(link => link.getAttribute('href')),
    }));
    const shown = (await log(view).locator('.markdown').textContent()) ?? '';
    assert.ok(shown.includes('<img src=x onerror="window.hit=1"><script>window.hit=1</script>'), shown);
    assert.deepEqual(found, { hit: false, tags: 0, links: ['https://example.com/leak.png'] });
  });

  it('draws the beginning of an endless line, and more of it when asked to', async () => {
    const view = await open();
    await view.say(conversation([start('go'), routed, text('a'.repeat(130_000)), end]));
    const drawn = async () => ((await log(view).locator('.prose').textContent()) ?? '').replace(/[^a]/g, '');
    const more = view.page.getByRole('button', { name: /^Show more/ });
    await more.waitFor();
    assert.ok((await drawn()).length < 30_000);
    await more.click();
    assert.ok((await drawn()).length > 110_000);
    await more.click();
    assert.equal(await more.count(), 0);
    assert.equal((await drawn()).length, 130_000);
  });

  it('offers what to do after an error', async () => {
    const view = await open();
    await view.say(scenes['trouble']!);
    await button(view, 'Set API Key…').click();
    assert.deepEqual(await sent(view, 'command'), [{ type: 'command', command: 'telos.setApiKey' }]);
  });

  it('names the skills that may be meant before and below an answer without one, and runs one by a click', async () => {
    const view = await open();
    assert.ok(routed.type === 'routed');
    const likely = [{ agent: 'kairos', skill: 'kickoff' }];
    const without = {
      ...routed,
      agent: 'telos',
      skill: '',
      reason: { rule: 'without_skill', likely },
    } as const;
    const chip = button(view, 'kickoff?');
    const wanted = { type: 'submit', text: 'my morning', skill: likely[0], instead: true };
    const take = async (): Promise<void> => {
      await eventually(async () => assert.equal(await chip.getAttribute('aria-disabled'), 'false'));
      await chip.click();
    };
    await view.say(conversation([start('my morning'), without]));
    await take();
    assert.deepEqual(await sent(view, 'submit'), [wanted]);
    await view.say(events(2, text('Good morning.'), end));
    assert.equal(await chip.count(), 1);
    await take();
    assert.deepEqual(await sent(view, 'submit'), [wanted, wanted]);
  });

  it('says that it left a skill, goes back to it, and offers one that fits too', async () => {
    const view = await open();
    assert.ok(routed.type === 'routed');
    const before = { agent: 'press', skill: 'proofread' };
    const left = { ...routed, reason: { rule: 'index', matched: 'day', switchedFrom: before } } as const;
    await view.say(conversation([start('plan my day'), left]));
    await view.page.getByText('kickoff fits better than proofread').waitFor();
    await button(view, 'Stay with proofread').click();
    const stayed = { ...routed, reason: { rule: 'continued', alsoFits: before } } as const;
    await view.say(conversation([start('and this text'), stayed]));
    await button(view, 'proofread fits too').click();
    assert.deepEqual(
      (await sent(view, 'submit')).map(({ text: said, skill, instead }) => [said, skill, instead]),
      [
        ['plan my day', before, true],
        ['and this text', before, true],
      ],
    );
  });

  it('offers the sample where a model or a skill is missing, and nothing that does not help there', async () => {
    const view = await open();
    const offered = async (error: RunError): Promise<string[]> => {
      const failed = { ...end, outcome: 'failed', error } as RunEvent;
      await view.say(conversation([start('go'), failed], { skills: [] }));
      return log(view).locator('.card button').allTextContents();
    };
    const noModel = { kind: 'set_up_model' } as const;
    assert.deepEqual(await offered({ code: 'provider', message: 'No model is set up.', remedy: noModel }), [
      'Set API Key…',
      'Choose Model…',
      'Try the Sample',
      'Retry',
    ]);
    const noSkill = { kind: 'add_skill', folder: '/skills' } as const;
    const withoutSkills = await offered({ code: 'config', message: 'No agents found.', remedy: noSkill });
    assert.equal(withoutSkills[0], 'Try the Sample');
    assert.ok(!withoutSkills.includes('Choose Model…') && withoutSkills.includes('New Skill…'));
  });

  it('says that there is no model, and lets the person choose where files go', async () => {
    const view = await open();
    await view.say(scenes['no-model']!);
    await button(view, 'Model: No model. Choose another').waitFor();
    await log(view).getByText('no model').first().waitFor();
    assert.equal(await view.page.getByText('Recording').count(), 0);
    await button(view, 'Choose Folder…').click();
    assert.deepEqual(await sent(view, 'choose_folder'), [{ type: 'choose_folder', agent: 'kairos' }]);
  });

  it('offers the sample where there are no skills', async () => {
    const view = await open();
    await view.say(scenes['no-skills']!);
    await button(view, 'Try the Sample').click();
    assert.deepEqual(await sent(view, 'command'), [{ type: 'command', command: 'telos.trySample' }]);
  });

  it('breaks the lines of errors, notices and results, and marks what cannot be seen', async () => {
    const view = await open();
    const hostile = 'first\nsecond\u202e';
    await view.say(
      conversation([
        start('go'),
        routed,
        { type: 'notice', level: 'warning', message: hostile },
        call('t', 'read_file', { path: 'a.md' }),
        done('t', 'read_file', hostile),
        endedBy({ code: 'provider', message: hostile }),
      ]),
    );
    await view.page.locator('.tool summary').click();
    for (const place of ['.notice-warning', '.tool-body pre >> nth=1', '.error .message'])
      assert.equal((await view.page.locator(place).innerText()).trim(), 'first\nsecond<U+202E>', place);
  });

  it('shows what a write would change line by line, and what of it cannot be seen', async () => {
    const view = await open();
    const question = ask('t', 'a.md');
    assert.equal(question.type, 'approval_request');
    const diff = ' kept\n-old\r\n+new\u202e\n';
    await view.say(
      conversation([
        start('go'),
        routed,
        call('t', 'write_file', { path: 'a.md' }),
        { ...question, request: { ...question.request, diff } },
      ]),
    );
    const lines = view.page.locator('.diff-line');
    assert.deepEqual(await lines.allTextContents(), [' kept', '-old\\r', '+new<U+202E>']);
    assert.deepEqual(await view.page.locator('.diff-added').allTextContents(), ['+new<U+202E>']);
    assert.deepEqual(await view.page.locator('.diff-removed').allTextContents(), ['-old\\r']);
  });

  it('sends nothing in Restricted Mode', async () => {
    const view = await open();
    await view.say(scenes['restricted']!);
    await textbox(view).fill('go');
    await textbox(view).press('Enter');
    assert.equal(await button(view, 'Send').isDisabled(), true);
    assert.deepEqual(await sent(view, 'submit'), []);
  });

  it('leads from a run that Restricted Mode refused to the trust that it lacks', async () => {
    const view = await open();
    const refused = endedBy({ code: 'config', message: 'This workspace is in Restricted Mode.' });
    await view.say(conversation([start('go'), refused], { trusted: false }));
    const offered = log(view).locator('.error').getByRole('button');
    await offered.first().waitFor();
    assert.deepEqual(await offered.allTextContents(), ['Manage Workspace Trust', 'Open Log']);
    await offered.first().click();
    assert.deepEqual(await sent(view, 'command'), [{ type: 'command', command: 'workbench.trust.manage' }]);
  });

  it('says of a request for a skill alone that it has no words', async () => {
    const view = await open();
    await view.say(conversation([start(''), routed, text('Done.'), end]));
    await log(view).locator('.request').getByText('(no text)').waitFor();
  });

  it('follows the end until the person scrolls up, and again after Jump to latest', async () => {
    const view = await open({ height: 400 });
    const lines = (count: number) => text('A line of text.\n\n'.repeat(count));
    const fromEnd = () =>
      log(view).evaluate(element => element.scrollHeight - element.scrollTop - element.clientHeight);
    await view.say(conversation([start('go'), routed, lines(40)]));
    const isAtEnd = () => eventually(async () => assert.ok((await fromEnd()) < 2));
    await view.say(events(3, lines(40)));
    await isAtEnd();
    await log(view).hover();
    await view.page.mouse.wheel(0, -300);
    await button(view, 'Jump to latest').waitFor();
    await view.say(events(4, lines(40)));
    assert.ok((await fromEnd()) > 300);
    await button(view, 'Jump to latest').click();
    await view.say(events(5, lines(10)));
    await isAtEnd();
    assert.equal(await button(view, 'Jump to latest').count(), 0);
  });

  it('draws of a long conversation what is near to what is seen, and keeps its place while it scrolls', async () => {
    const view = await open();
    const runs = Array.from({ length: 120 }, (_, at) => [
      start(`Request ${at}.`),
      routed,
      text(`Answer ${at}.\n\n${'A line of text.\n\n'.repeat(12)}`),
      end,
    ]);
    await view.say(conversation(runs.flat()));
    const answers = log(view).locator('.markdown');
    assert.ok((await answers.count()) < 40);
    await log(view).getByText('Answer 119.').waitFor();
    await log(view).evaluate(element => element.scrollTo(0, 0));
    await log(view).getByText('Answer 0.').waitFor();
    await log(view).getByText('Answer 1.').scrollIntoViewIfNeeded();
    assert.ok((await answers.count()) < 40);
    const placeOf = (answer: string) => log(view).getByText(answer).boundingBox();
    let seen = await placeOf('Answer 2.');
    // Once the way there has ended, nothing moves any more.
    await eventually(async () => {
      const before = seen;
      await view.page.evaluate(() => new Promise(requestAnimationFrame));
      seen = await placeOf('Answer 2.');
      assert.deepEqual(seen, before);
    });
    await view.page.waitForTimeout(300);
    assert.deepEqual(await placeOf('Answer 2.'), seen);
    await button(view, 'Jump to latest').click();
    await log(view).getByText('Answer 119.').waitFor();
    await view.page.waitForFunction(() => {
      const element = document.querySelector('.scroller')!;
      return element.scrollHeight - element.scrollTop - element.clientHeight < 2;
    });
  });

  it('speaks by sentence in a live region, and the log is silent', async () => {
    const view = await open();
    await view.say(conversation([start('go')]));
    await view.say(events(1, routed, text('First sentence. Second ')));
    const status = view.page.getByRole('status');
    await status.getByText('kickoff (kairos): named in your request. First sentence.').waitFor();
    assert.equal((await status.textContent())?.includes('Second'), false);
    assert.equal(await log(view).getAttribute('aria-live'), 'off');
  });

  it('gives the words of a request back that was not sent, but not in the place of others', async () => {
    const view = await open();
    await view.say(conversation([start('go'), routed, text('Gone.'), end]));
    await button(view, 'Retry').click();
    await view.page.getByText('Sending…').waitFor();
    await view.say({ type: 'draft', text: 'go', suggested: true });
    await view.page.getByText('Sending…').waitFor({ state: 'detached' });
    assert.equal(await textbox(view).inputValue(), 'go');
    await textbox(view).fill('something else');
    await button(view, 'Retry').click();
    await view.page.getByText('Sending…').waitFor();
    await view.say({ type: 'draft', text: 'go', suggested: true });
    await view.page.getByText('Sending…').waitFor({ state: 'detached' });
    assert.equal(await textbox(view).inputValue(), 'something else');
  });

  it('shows where a run goes on that is not its own, with no button that would not work', async () => {
    const view = await open();
    const shown = conversation([start('go'), routed, call('t1', 'run_command', { command: 'ls' })]);
    await view.say(Object.assign(shown, { running: true, elsewhere: 'Runs in another window' }));
    await log(view).getByText('Runs in another window').waitFor();
    await view.say(events(3, ask('t1', 'ls')));
    await log(view).getByText('Waiting for an answer there', { exact: true }).waitFor();
    for (const name of ['Stop', 'Allow Once', 'Deny'])
      assert.equal(await button(view, name).count(), 0, name);
    await textbox(view).fill('and then?');
    await button(view, 'Send when the run ends').waitFor();
    await view.say(events(4, end));
    await log(view).getByText('Runs in another window').waitFor({ state: 'detached' });
    await button(view, 'Send').waitFor();
    // The next run is this chat's own.
    await view.say(events(5, { ...start('and then?'), runId: 'r2' } as RunEvent));
    await button(view, 'Stop').waitFor();
  });

  it('has nothing that axe finds fault with, in every theme', async function () {
    this.timeout(10 * 60_000);
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    const faults: string[] = [];
    for (const theme of themeNames) {
      const view = await open({ theme });
      await view.page.evaluate(axe);
      for (const [name, scene] of Object.entries(scenes)) {
        await view.say(scene);
        await view.page.evaluate(() => {
          for (const details of document.querySelectorAll('details')) details.open = true;
        });
        const findings = await view.page.evaluate(async () => {
          const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Finding[] }> } };
          return (await axe.run()).violations;
        });
        for (const { id, nodes } of findings) {
          faults.push(...nodes.map(node => `${theme}, ${name}: ${id}\n${node.html}\n${node.failureSummary}`));
        }
      }
    }
    assert.equal(faults.join('\n\n'), '');
  });

  it('shows how full the context is with its parts, and compacts, and undoes that', async () => {
    const view = await open();
    await view.say(scenes['compacted']!);
    await button(view, 'Context 10%: 20,000 of 200,000 tokens').click();
    const parts = view.page.getByRole('region', { name: 'Context' });
    assert.deepEqual(await parts.locator('dt, dd').allTextContents(), [
      'System',
      '1,000',
      'Skill',
      '1,000',
      'Tools',
      '14,000',
      'Conversation',
      '4,000',
    ]);
    await button(view, 'Compact').click();
    await parts.waitFor({ state: 'detached' });
    assert.deepEqual(await sent(view, 'compact'), [{ type: 'compact', focus: '' }]);
    await textbox(view).fill('/compact the colours');
    await textbox(view).press('Enter');
    assert.deepEqual((await sent(view, 'compact')).at(-1), { type: 'compact', focus: 'the colours' });
    await log(view).getByText('Compacted: the model is sent about 20,000 tokens in place of 160,000').click();
    await log(view).getByText('Apples are red.').waitFor();
    await button(view, 'Undo').click();
    assert.equal((await sent(view, 'undo_compaction')).length, 1);
    await view.say(events(6, start('Undo compaction'), { type: 'compaction_undone' }, end));
    await log(view)
      .getByText('The compaction is undone: the model is sent the whole conversation again.')
      .waitFor();
    assert.equal(await button(view, 'Undo').count(), 0);
  });

  it('leaves out of a card what is switched off by keyboard, in 250 pixels', async () => {
    const view = await open({ width: 250 });
    await view.say(scenes['card']!);
    const line = (name: string) => view.page.getByRole('checkbox', { name, exact: true });
    await view.page.getByText(/^See what .* can do$/).click();
    for (const name of [
      'sees REPORT_TOKEN',
      'writes AGENTS.md',
      'runs git log *',
      'contacts api.example.com',
    ])
      assert.equal(await line(name).isChecked(), true, name);
    await line('sees REPORT_TOKEN').press('Space');
    assert.equal(await line('sees REPORT_TOKEN').isChecked(), false);
    await line('writes AGENTS.md').press('Space');
    await line('runs scripts/upload.sh').press('Space');
    await line('sees REPORT_TOKEN').press('Space');
    await button(view, 'More answers').click();
    await button(view, 'Trust reports').click();
    const [answered] = await sent(view, 'approve');
    const without = ['AGENTS.md', 'scripts/upload.sh'];
    assert.deepEqual(answered?.decision, { allow: true, scope: 'always', without });
    assert.equal(await line('writes AGENTS.md').isDisabled(), true);
  });

  it('fits into 250 pixels without scrolling sideways', async () => {
    const view = await open({ width: 250 });
    for (const scene of Object.values(scenes)) {
      await view.say(scene);
      assert.ok(await log(view).evaluate(element => element.scrollWidth <= element.clientWidth));
    }
  });
});
