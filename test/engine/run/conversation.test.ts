/** A conversation of several requests over the wire: what is sent again, and which skill goes on. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Conversation, storedConversation } from '../../../src/engine/run/conversation.ts';
import type { RunRequest } from '../../../src/engine/run/request.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { Message, RunEvent } from '../../../src/protocol/run.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import type { FakeServer } from '../../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

type Ended = Extract<RunEvent, { type: 'run_end' }>;
type Routed = Extract<RunEvent, { type: 'routed' }>;

const wordsOf = ({ content }: Message): unknown =>
  typeof content === 'string'
    ? content
    : content.flatMap(block =>
        block.type === 'text' ? [block.text] : block.type === 'thinking' ? [] : [block.type],
      );

describe('a conversation', () => {
  let folder: TempFolder;
  let server: FakeServer;
  let telos: Telos;

  beforeEach(async () => {
    folder = tempFolder({
      'skills/kairos/agent.toml': 'working_dir = "."',
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nTHE KICKOFF TEXT\n',
      'skills/kairos/skills/weekly-summary/SKILL.md':
        '---\ndescription: Sums up the past week for the whole team\n---\nTHE SUMMARY TEXT\n',
      'work/notes.md': 'Call Ada.\n',
    });
    server = await startAnthropicServer({
      turns: [
        {
          thinking: [{ thinking: 'hm', signature: 'seal' }],
          text: ['I look.'],
          toolCalls: [{ name: 'read_file', input: { path: 'notes.md' } }],
        },
        { text: ['First answer.'] },
        { text: ['Second answer.'] },
      ],
    });
    telos = Telos.open(
      loadConfig({
        env: {
          PATH: process.env['PATH'],
          ANTHROPIC_API_KEY: 'k-0123456789',
          ANTHROPIC_BASE_URL: server.url,
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          TELOS_DATA_DIR: join(folder.path, 'data'),
          TELOS_CONFIG_DIR: join(folder.path, 'config'),
          TELOS_ROUTING_MODE: 'local',
        },
        home: join(folder.path, 'home'),
        cwd: join(folder.path, 'work'),
      }),
    );
  });
  afterEach(async () => {
    await server.close();
    folder.remove();
  });

  async function run(request: RunRequest): Promise<{ routed: Routed; end: Ended }> {
    const events: RunEvent[] = [];
    for await (const event of telos.run(request, denyAll, new AbortController().signal)) events.push(event);
    const routed = events.find(event => event.type === 'routed');
    const end = events.at(-1);
    assert.ok(routed && end?.type === 'run_end');
    return { routed, end };
  }

  it('knows of each request where it began and what it changed, also once it was taken back', () => {
    const conversation = new Conversation('one');
    const skill = { agent: 'kairos', skill: 'kickoff' };
    const request = (runId: string, changed: readonly string[], outcome: Ended['outcome'] = 'completed') => {
      conversation.note({
        type: 'run_start',
        runId,
        text: `Do ${runId}.`,
        startedAt: '2026-01-01T00:00:00.000Z',
      });
      conversation.note({ type: 'routed', ...skill, reason: { rule: 'step' } } as RunEvent);
      const result = { content: '', isError: false, changedFiles: [...changed] };
      for (const callId of ['1', '2'])
        conversation.note({ type: 'tool_end', callId, result, durationMs: 1 } as unknown as RunEvent);
      const figures = { rounds: 1, toolCalls: 2, durationMs: 1 };
      conversation.note({
        type: 'run_end',
        outcome,
        ...figures,
        messages: [{ role: 'user', content: runId }],
      });
    };
    request('a', ['/beds.md']);
    request('b', []);
    request('c', ['/beds.md', '/paths.md'], 'round_limit');
    assert.deepEqual(conversation.changedBy, ['a', 'c']);
    const ids = (of: Conversation): string[] => of.requests.map(({ runId }) => runId);
    const firstSaid = (of: Conversation) => of.next({ text: '' }).conversation?.messages[0]?.content;
    assert.deepEqual([ids(conversation), firstSaid(conversation)], [['a', 'b', 'c'], 'c']);
    assert.deepEqual(
      [conversation.next({ text: '' }).goesOn, conversation.next({ text: '' }).text],
      [true, 'Go on.'],
    );
    assert.deepEqual(
      [conversation.next({ text: 'On.' }).goesOn, conversation.next({ text: 'On.' }).parentRunId],
      [undefined, 'c'],
    );
    const two = conversation.upTo(2, false);
    assert.deepEqual([two.id, ids(two), two.changedBy, firstSaid(two)], ['one', ['a', 'b'], ['a'], 'b']);
    assert.deepEqual([two.next({ text: '' }).goesOn, two.next({ text: '' }).parentRunId], [undefined, 'b']);
    const none = conversation.upTo(0, false);
    assert.deepEqual([none.isEmpty, ids(none), none.changedBy], [true, [], []]);
    const branch = conversation.upTo(3, true);
    assert.notEqual(branch.id, 'one');
    assert.deepEqual([ids(branch), branch.changedBy, firstSaid(branch)], [[], [], 'c']);
    assert.deepEqual(
      [branch.next({ text: '' }).goesOn, branch.next({ text: '' }).parentRunId],
      [true, undefined],
    );
  });

  it('is the same again from what was stored of its runs', async () => {
    const live = new Conversation();
    let runId = '';
    for (const text of ['run kickoff', 'and then?', 'go on']) {
      for await (const event of telos.run(live.next({ text }), denyAll, new AbortController().signal)) {
        live.note(event);
        if (event.type === 'run_start') runId = event.runId;
      }
    }
    const stored = await storedConversation(runId, join(folder.path, 'data'));
    assert.ok(stored);
    assert.equal(stored.title, 'run kickoff');
    const again = stored.conversation;
    assert.deepEqual([again.id, again.changedBy], [live.id, []]);
    const said = (of: Conversation) =>
      [0, 1, 2, 3].map(count => {
        const { conversation, parentRunId } = of.upTo(count, false).next({ text: 'x' });
        return [conversation?.skill, parentRunId, JSON.stringify(conversation?.messages.map(wordsOf))];
      });
    assert.deepEqual(said(again), said(live));
    assert.match(JSON.stringify(said(again)[3]), /First answer.*Second answer/);
    const asked = (of: Conversation) =>
      of.requests.map(({ runId, text, startedAt }) => [runId, text, startedAt]);
    assert.deepEqual(asked(again), asked(live));
    const first = await storedConversation(live.requests[0]?.runId ?? '', join(folder.path, 'data'));
    assert.equal(first?.conversation.requests.length, 1);
  });

  const refOf = ({ agent, skill }: Routed) => ({ agent, skill });
  const lastBody = () => JSON.stringify(server.requests.at(-1)?.body.messages);

  it('goes on with its skill, tells the model all of it but its reasoning, and the skill only once', async () => {
    const first = await run({ text: 'run kickoff' });
    const skill = refOf(first.routed);
    const second = await run({
      text: 'and what else?',
      conversation: { messages: first.end.messages, skill },
    });
    assert.deepEqual(refOf(second.routed), { agent: 'kairos', skill: 'kickoff' });
    assert.equal(second.routed.reason.rule, 'continued');
    assert.equal(second.end.outcome, 'completed');
    const sent = lastBody();
    assert.equal(sent.split('THE KICKOFF TEXT').length, 2);
    assert.match(sent, /Call Ada.*First answer.*and what else\?/);
    assert.doesNotMatch(sent, /seal/);
    assert.equal(second.end.messages.length, first.end.messages.length + 2);
    assert.match(JSON.stringify(second.end.messages.at(-1)), /Second answer/);
  });

  it('takes another skill that is named, with what was said before', async () => {
    const first = await run({ text: 'run kickoff' });
    const conversation = { messages: first.end.messages, skill: refOf(first.routed) };
    for (const [text, rule] of [
      ['now the weekly summary, please', 'name'],
      ['/weekly-summary of this', 'explicit'],
    ] as const) {
      const other = await run({ text, conversation });
      assert.deepEqual([other.routed.skill, other.routed.reason.rule], ['weekly-summary', rule]);
      assert.match(lastBody(), /First answer.*THE SUMMARY TEXT/);
    }
  });

  it('routes anew where it is to go on with no certain skill, or with one that is gone', async () => {
    const first = await run({ text: 'run kickoff' });
    const { messages } = first.end;
    const anew = await run({ text: 'sum up the past week for the team', conversation: { messages } });
    assert.deepEqual([anew.routed.skill, anew.routed.reason.rule], ['weekly-summary', 'index']);
    assert.match(lastBody(), /First answer.*THE SUMMARY TEXT/);
    const gone = await run({
      text: 'sum up the past week for the team',
      conversation: { messages, skill: { agent: 'kairos', skill: 'x' } },
    });
    assert.equal(gone.routed.skill, 'weekly-summary');
  });

  it('goes on without a skill until one is named or fits clearly', async () => {
    const first = await run({ text: 'What is on the list?', withoutSkill: true });
    const conversation = { messages: first.end.messages, skill: refOf(first.routed) };
    const second = await run({ text: 'and what is on it for Monday?', conversation });
    assert.equal(second.routed.reason.rule, 'without_skill');
    assert.match(lastBody(), /What is on the list.*First answer.*for Monday/);
    const fitting = await run({ text: 'sum up the past week for the team', conversation });
    assert.equal(fitting.routed.skill, 'weekly-summary');
    assert.deepEqual(fitting.routed.reason.switchedFrom, { agent: '', skill: '' });
    const third = await run({ text: 'run kickoff', conversation });
    assert.equal(third.routed.skill, 'kickoff');
  });

  it('leaves its skill for one that fits clearly better, and says which it left', async () => {
    const first = await run({ text: 'run kickoff' });
    const conversation = { messages: first.end.messages, skill: refOf(first.routed) };
    const { routed } = await run({ text: 'sum up the past week for the team', conversation });
    assert.equal(routed.skill, 'weekly-summary');
    assert.deepEqual(routed.reason.switchedFrom, { agent: 'kairos', skill: 'kickoff' });
    const same = await run({ text: 'shorter please', conversation });
    assert.deepEqual([same.routed.skill, same.routed.reason.rule], ['kickoff', 'continued']);
  });

  it('gives a skill whose run failed no lead over others', async () => {
    const first = await run({ text: 'run kickoff' });
    const conversation = { messages: first.end.messages, skill: refOf(first.routed), skillFailed: true };
    const other = await run({ text: 'sum up the past week for the team', conversation });
    assert.equal(other.routed.skill, 'weekly-summary');
    const again = await run({ text: 'try again', conversation });
    assert.equal(again.routed.skill, 'kickoff');
  });
});
