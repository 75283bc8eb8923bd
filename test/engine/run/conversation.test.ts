/** A conversation of several requests over the wire: what is sent again, and which skill goes on. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { denyAll } from '../../../src/engine/human.ts';
import type { RunRequest } from '../../../src/engine/run/request.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import type { FakeServer } from '../../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

type Ended = Extract<RunEvent, { type: 'run_end' }>;
type Routed = Extract<RunEvent, { type: 'routed' }>;

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
