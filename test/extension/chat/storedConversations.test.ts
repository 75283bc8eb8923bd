import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { ownerHere, rowOf } from '../../../src/engine/files/liveProcess.ts';
import { RunHistory, setAside } from '../../../src/engine/records/runHistory.ts';
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
    more: {
      after?: string;
      pid?: number;
      end?: boolean;
      events?: RunEvent[];
      startedAt?: string;
      door?: string;
      conversation?: string;
      routed?: RunEvent;
    } = {},
  ) {
    const { after, pid = 1, end = true, events = [] } = more;
    const { startedAt = `2026-01-05T08:00:0${runId.slice(1)}.000Z` } = more;
    const header = {
      type: 'run',
      version: 1,
      runId,
      conversation: more.conversation ?? 'talk',
      after,
      door: more.door ?? 'chat',
      startedAt,
      request: text,
      pid,
      ...(pid !== 1 && { owner: { ...ownerHere(), started: rowOf(pid)?.started ?? '-' } }),
    };
    const messages = [
      { role: 'user', content: text },
      { role: 'assistant', content: `${text}!` },
    ];
    const lines = [
      header,
      { type: 'run_start', runId, text, startedAt, attached: [{ kind: 'text', name: 'beds.md' }] },
      more.routed ?? routed,
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

  it('knows what was chosen for a request, and which runs it has from another conversation', async () => {
    const by = (rule: string): RunEvent => ({ ...routed, reason: { rule } }) as RunEvent;
    keep('r1', 'one', { events: [] });
    keep('r2', 'two', { after: 'r1', routed: by('chosen') });
    keep('r3', 'three', { after: 'r2', routed: by('without_skill'), conversation: 'branch' });
    const conversation = await kept().conversation({ runId: 'r3' });
    assert.ok(conversation);
    assert.deepEqual(conversation.before('r2')?.request.skill, { agent: 'kairos', skill: 'kickoff' });
    const { skill, withoutSkill } = conversation.before('r3')?.request ?? {};
    assert.deepEqual(
      [skill, withoutSkill, conversation.before('r1')?.request.withoutSkill],
      [undefined, true, undefined],
    );
    assert.deepEqual(
      ['r1', 'r2', 'r3'].map(runId => conversation.runIdsFrom(runId).length),
      [0, 0, 1],
    );
  });

  it('reads one run alone, with all that was said before its end', async () => {
    keep('r1', 'one');
    keep('r2', 'two', { after: 'r1' });
    keep('r3', 'three', { after: 'r2' });
    const run = await kept().run('r2');
    const end = run.events.at(-1);
    assert.deepEqual(end?.type === 'run_end' && end.messages.map(({ content }) => content), [
      'one',
      'one!',
      'two',
      'two!',
    ]);
    assert.deepEqual([run.request.text, run.isInherited, run.beginsAnew], ['two', undefined, undefined]);
    assert.equal((await kept().run('r1')).beginsAnew, true);
    keep('r4', 'four', { end: false, pid: 999_999_999 });
    assert.equal(
      (await kept().run('r4')).beginsAnew,
      undefined,
      'a run that has said nothing begins nothing',
    );
  });

  it('says of a run that goes on where it does', async () => {
    const startedAt = new Date().toISOString();
    const whereOf = async (more: object): Promise<string | undefined> => {
      keep('r1', 'one', { end: false, pid: process.ppid, startedAt, ...more });
      return (await kept().conversation({ runId: 'r1' }))?.elsewhere?.where;
    };
    assert.equal(await whereOf({ door: 'cli' }), 'Runs on a command line');
    assert.equal(await whereOf({ door: 'discord' }), 'Runs on Discord');
    assert.equal(await whereOf({}), 'Runs in another window');
    assert.equal(await whereOf({ end: true }), undefined);
  });

  it('waits for the end that a closed window still writes, after a reload alone', async () => {
    const startedAt = new Date().toISOString();
    keep('r1', 'one', { end: false, pid: process.pid, startedAt });
    const config = loadConfig({ env: { TELOS_DATA_DIR: folder.path }, home: folder.path, cwd: folder.path });
    const patient = new StoredConversations(async () => ({ config }), 60_000);
    const place = { conversationId: 'talk' };
    assert.equal((await patient.conversation(place))?.latestOutcome, undefined);
    const coming = patient.conversation(place, true);
    keep('r1', 'one', { startedAt });
    assert.equal((await coming)?.latestOutcome, 'completed');
  });

  it('opens a conversation of which all was taken back, but does not bring it back after a reload', async () => {
    keep('r1', 'one');
    keep('r2', 'two', { after: 'r1' });
    setAside(folder.path, ['r2'], true);
    assert.deepEqual((await kept().conversation({ conversationId: 'talk' }))?.runIds.length, 0);
    assert.equal((await kept().conversation({ conversationId: 'talk' }))?.latestRunId, 'r1');
    setAside(folder.path, ['r1'], true);
    assert.equal((await kept().conversation({ conversationId: 'talk' }))?.latestRunId, 'r2');
    assert.equal(await kept().conversation({ conversationId: 'talk' }, true), undefined);
  });

  it('has what went along with a run, and follows the data to another folder', async () => {
    keep('r1', 'one');
    const attachment = { kind: 'text', name: 'a.md', language: '', text: 'x' };
    folder.add({ 'runs/r1.attached': JSON.stringify({ type: 'attachment', attachment }) });
    let dataDir = folder.path;
    const config = loadConfig({ env: {}, home: folder.path, cwd: folder.path });
    const conversations = new StoredConversations(async () => ({ config: { ...config, dataDir } }), 0);
    const { attachments } = await conversations.attachments({ runId: 'r1', attached: [] });
    assert.deepEqual(attachments, [attachment]);
    assert.equal(await conversations.history(), await conversations.history());
    dataDir = join(folder.path, 'elsewhere');
    assert.equal(await conversations.dataDir(), dataDir);
    assert.equal(await conversations.conversation({ conversationId: 'talk' }), undefined);
  });
});
