/** Runs whose user is elsewhere: an answer from the phone carries on what waits, and a messenger that is down holds nothing up. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll, QuestionOver } from '../../../src/engine/human.ts';
import { parkingHuman } from '../../../src/plans/parkedQuestions.ts';
import type { PlanEvent } from '../../../src/protocol/plan.ts';
import type { ApprovalRequest, RunEvent } from '../../../src/protocol/run.ts';
import { eventually } from '../../eventually.ts';
import { ntfyServer } from '../../fakes/messengerServers.ts';
import type { ScriptedTurn } from '../../fakes/scriptedProvider.ts';
import { scriptedTelos } from '../../fakes/scriptedTelos.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const command = 'rm -rf old';
const end: ScriptedTurn = [
  { type: 'text', text: 'Done.' },
  { type: 'done', stopReason: 'end_turn' },
];
const removes = (id: string): ScriptedTurn => [
  { type: 'tool_call', call: { id, name: 'run_command', input: { command } } },
  { type: 'done', stopReason: 'tool_use' },
];

describe('a run whose user is elsewhere', () => {
  let folder: TempFolder;
  let server: Awaited<ReturnType<typeof ntfyServer>>;
  const isThere = (): boolean => existsSync(join(folder.path, 'work/old/file.txt'));

  beforeEach(async () => {
    folder = tempFolder({ 'work/old/file.txt': 'old\n' });
    server = await ntfyServer();
  });
  afterEach(async () => {
    await server.close();
    folder.remove();
    assert.deepEqual(server.refused, []);
  });

  const env = (more: Record<string, string> = {}) => ({
    PATH: process.env['PATH'] ?? '',
    TELOS_SANDBOX: 'off',
    TELOS_NTFY_TOPIC: 'a-topic-of-ann',
    TELOS_NTFY_SERVER: server.url,
    TELOS_NOTIFY_AFTER: '0',
    ...more,
  });

  async function run(
    human: Human,
    more: Record<string, string> = {},
    turns: readonly ScriptedTurn[] = [removes('c1'), end],
  ): Promise<RunEvent[]> {
    const config = loadConfig({ env: env(more), home: folder.path, cwd: join(folder.path, 'work') });
    const { telos } = scriptedTelos(config, (_, index) => turns[index] ?? end);
    const events: RunEvent[] = [];
    const request = { text: 'tidy up', withoutSkill: true };
    for await (const event of telos.run(request, human, new AbortController().signal)) events.push(event);
    return events;
  }

  const press = async (label: string): Promise<void> => {
    const asked = await eventually(() => {
      const found = server.messages.find(({ topic }) => topic === 'a-topic-of-ann');
      assert.ok(found);
      return found;
    });
    assert.match(asked.message, /^│ rm -rf old$/m);
    await server.press(asked, label);
  };
  const notices = (events: readonly RunEvent[]): string[] =>
    events.flatMap(event => (event.type === 'notice' ? [event.message] : []));

  it('goes on with a yes from the phone where nobody is here', async () => {
    const [events] = await Promise.all([run(denyAll), press('Once')]);
    assert.equal(isThere(), false);
    const decision = events.find(event => event.type === 'approval_response')?.decision;
    assert.deepEqual(decision, { allow: true, scope: 'once' });
    assert.ok(notices(events).includes('You said once by ntfy.'));
  });

  it('does not go on with a no', async () => {
    const [events] = await Promise.all([run(denyAll), press('No')]);
    assert.equal(isThere(), true);
    const end = events.find(event => event.type === 'tool_end');
    assert.match(String(end?.result.content), /Denied: The user said no by ntfy\./);
  });

  it('takes the answer of the phone in place of one here, whose question is over then', async () => {
    let reason: unknown;
    const here: Human = {
      approve: (_, signal) =>
        new Promise(settle =>
          signal.addEventListener('abort', () => {
            reason = signal.reason;
            settle({ allow: false, reason: 'It is over.' });
          }),
        ),
      ask: async () => [],
    };
    await Promise.all([run(here), press('Once')]);
    assert.equal(isThere(), false);
    assert.ok(reason instanceof QuestionOver && reason.isAnswered);
  });

  it('takes an answer here, after which the phone decides nothing', async () => {
    const here: Human = {
      approve: async () => {
        await eventually(() => assert.ok(server.messages.length > 0));
        return { allow: false, reason: 'Not today.' };
      },
      ask: async () => [],
    };
    await run(here);
    await press('Once');
    assert.equal(isThere(), true);
    await eventually(() => assert.equal(server.streams.size, 0));
  });

  it('hears of a question that needs words, which waits for nobody on the phone', async () => {
    const asks: ScriptedTurn = [
      { type: 'tool_call', call: { id: 'c1', name: 'ask_user', input: { question: 'Which bed?' } } },
      { type: 'done', stopReason: 'tool_use' },
    ];
    const events = await run(denyAll, {}, [asks, end]);
    const [sent, ...others] = server.messages;
    assert.deepEqual(others, []);
    assert.match(sent?.message ?? '', /^│ Which bed\?$/m);
    assert.match(sent?.message ?? '', /Answer it on the machine\. Nothing was decided\.$/);
    assert.equal(sent?.actions, undefined);
    assert.equal(events.find(event => event.type === 'approval_response')?.decision.allow, false);
  });

  it('is denied as ever by a messenger that is down, which is said once', async () => {
    const turns = [removes('c1'), removes('c2'), end];
    const gone = await ntfyServer();
    await gone.close();
    const events = await run(denyAll, { TELOS_NTFY_SERVER: gone.url }, turns);
    assert.equal(isThere(), true);
    const said = notices(events).filter(one => /phone/.test(one));
    assert.deepEqual(said, [
      'A question could not be sent to your phone. ntfy could not be reached (ECONNREFUSED).',
    ]);
    const ends = events.flatMap(event => (event.type === 'tool_end' ? [event.result.content] : []));
    assert.equal(ends.length, 2);
    for (const content of ends) assert.match(String(content), /No one can be asked here/);
  });

  it('sends nothing that is a secret', async () => {
    const key = 'sk-secret-0123456789';
    writeFileSync(join(folder.path, 'work/old/more.txt'), '');
    const turns: ScriptedTurn[] = [
      [
        { type: 'tool_call', call: { id: 'c1', name: 'run_command', input: { command: `echo ${key}` } } },
        { type: 'done', stopReason: 'tool_use' },
      ],
      end,
    ];
    const running = run(denyAll, { ANY_API_KEY: key }, turns);
    await eventually(() => assert.ok(server.messages.length > 0));
    assert.doesNotMatch(JSON.stringify(server.messages), /sk-secret/);
    await server.press(server.messages[0]!, 'No');
    await running;
  });

  it('of a plan is asked about elsewhere before its question waits in the journal', async () => {
    const noted: PlanEvent[] = [];
    let elsewhere: 'once' | undefined = 'once';
    const human = parkingHuman(denyAll, {
      story: 'US-001',
      isAway: true,
      answers: () => new Map(),
      note: async event => noted.push(event),
      askAway: async () => elsewhere && { allow: true, scope: elsewhere },
    });
    const request = {
      ...{ callId: 'c', token: 't', tool: 'run_command', subject: 'curl x', rule: 'r', reason: 'why' },
      scopes: ['once'],
    } as ApprovalRequest;
    const { signal } = new AbortController();
    assert.deepEqual(await human.approve(request, signal), { allow: true, scope: 'once' });
    assert.deepEqual(noted, []);
    elsewhere = undefined;
    assert.equal((await human.approve(request, signal)).allow, false);
    assert.deepEqual(
      noted.map(({ type }) => type),
      ['question_parked'],
    );
  });
});
