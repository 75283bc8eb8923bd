import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { RunHistory } from '../../../src/engine/records/runHistory.ts';
import { StoredConversations } from '../../../src/extension/chat/storedConversations.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { routed } from '../../webview/scenes.ts';

describe('StoredConversations', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const kept = (): StoredConversations => {
    const config = loadConfig({ env: { TELOS_DATA_DIR: folder.path }, home: folder.path, cwd: folder.path });
    return new StoredConversations(async () => ({ config }), 0);
  };

  /** A run's file; without `end` the run was cut off. */
  function keep(
    runId: string,
    text: string,
    more: { after?: string; pid?: number; end?: boolean; events?: RunEvent[]; startedAt?: string } = {},
  ) {
    const { after, pid = 1, end = true, events = [] } = more;
    const { startedAt = `2026-01-05T08:00:0${runId.slice(1)}.000Z` } = more;
    const header = {
      type: 'run',
      version: 1,
      runId,
      conversation: 'talk',
      after,
      door: 'chat',
      startedAt,
      request: text,
      pid,
    };
    const messages = [
      { role: 'user', content: text },
      { role: 'assistant', content: `${text}!` },
    ];
    const lines = [
      header,
      { type: 'run_start', runId, text, startedAt, attached: [{ kind: 'text', name: 'beds.md' }] },
      routed,
      ...events,
      ...(end ? [{ type: 'messages', earlier: after ? 2 : 0, messages }] : []),
      ...(end
        ? [{ type: 'run_end', outcome: 'completed', rounds: 1, toolCalls: 0, durationMs: 1, messages: [] }]
        : []),
    ];
    folder.add({ [`runs/${runId}.jsonl`]: lines.map(line => `${JSON.stringify(line)}\n`).join('') });
  }

  it('finds a conversation by its name, with all that was said in it', async () => {
    keep('r1', 'one');
    keep('r2', 'two', { after: 'r1' });
    const conversation = await kept().conversation({ conversationId: 'talk' });
    assert.ok(conversation);
    assert.deepEqual(
      [conversation.conversationId, conversation.title, conversation.latestRunId],
      ['talk', 'one', 'r2'],
    );
    assert.deepEqual(
      conversation.earlier.messages.map(({ content }) => content),
      ['one', 'one!', 'two', 'two!'],
    );
    assert.deepEqual(conversation.before('r2')?.request, {
      text: 'two',
      keptWith: { runId: 'r2', attached: [{ kind: 'text', name: 'beds.md' }] },
    });
  });

  it('calls it as the person has', async () => {
    keep('r1', 'one');
    await new RunHistory(folder.path).rename('r1', 'My barrel');
    assert.equal((await kept().conversation({ runId: 'r1' }))?.title, 'My barrel');
  });

  it('goes on from what a run without an end has said', async () => {
    keep('r1', 'one', { end: false, pid: 999_999_999, events: [{ type: 'text', text: 'Half' }] });
    const conversation = await kept().conversation({ runId: 'r1' });
    assert.ok(conversation);
    assert.ok(conversation.isInterrupted('r1'));
    assert.deepEqual(conversation.earlier.messages.at(-1), {
      role: 'assistant',
      content: [{ type: 'text', text: 'Half' }],
    });
  });

  it('follows a run that goes on in another place, and says where', async () => {
    keep('r1', 'one', { end: false, pid: process.pid, startedAt: new Date().toISOString() });
    const conversation = await kept().conversation({ runId: 'r1' });
    const controller = new AbortController();
    const events = conversation?.elsewhere?.follow([], () => true, controller.signal);
    assert.equal(conversation?.elsewhere?.where, 'Runs in another place of this window');
    const coming = events?.[Symbol.asyncIterator]().next();
    appendFileSync(join(folder.path, 'runs', 'r1.jsonl'), '{"type":"text","text":"More"}\n');
    assert.deepEqual((await coming)?.value, { type: 'text', text: 'More' });
    controller.abort();
  });

  it('is nothing where nothing is kept, and says that a run is gone', async () => {
    assert.equal(await kept().conversation({ conversationId: 'talk' }), undefined);
    await assert.rejects(kept().conversation({ runId: 'r9' }), /r9 was not found/);
  });
});
