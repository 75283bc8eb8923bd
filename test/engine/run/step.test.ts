/** A step of a plan as an ordinary run: its own system text, tools, folder and rights, and no skill that is looked for. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { denyAll } from '../../../src/engine/human.ts';
import type { RunStep } from '../../../src/engine/run/request.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { skillTools } from '../../../src/engine/tools/builtin.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import {
  calls,
  done,
  type ScriptedProvider,
  type ScriptedTurn,
  says,
  scriptedProvider,
} from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const learn: Tool = {
  definition: { name: 'learn', description: 'Notes.', inputSchema: { type: 'object', properties: {} } },
  access: 'read',
  execute: async () => ({ content: 'noted', isError: false }),
};

describe('a step of a plan', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'slot/a.txt': 'a',
      'repo/.telos/plans/p/prd.json': '{}',
      'home/.claude/skills/write/SKILL.md': '---\nname: write\ndescription: Writes files.\n---\nWrite.',
    });
  });
  afterEach(() => folder.remove());

  async function run(
    turns: readonly ScriptedTurn[],
    more: Partial<RunStep> = {},
    overrides: Record<string, string> = {},
  ): Promise<{ events: RunEvent[]; provider: ScriptedProvider }> {
    const provider = scriptedProvider(turns);
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_PROVIDER: 'scripted',
        ...overrides,
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'repo'),
    });
    const create = async () => provider;
    const telos = Telos.open(config, { providers: { scripted: { model: async () => 'script', create } } });
    const step: RunStep = {
      key: 'US-001.a1.coder',
      name: 'coder',
      system: 'You do the work.',
      role: 'worker',
      tools: [...skillTools, learn],
      maxRounds: 5,
      commands: ['cat a.txt > b.txt; exit 0'],
      workingDir: join(folder.path, 'slot'),
      closed: [join(folder.path, 'repo')],
      ...more,
    };
    const events: RunEvent[] = [];
    const request = { text: '/write a file', step, origin: 'plan' as const, conversationId: 'p' };
    for await (const event of telos.run(request, denyAll, new AbortController().signal)) events.push(event);
    return { events, provider };
  }

  const outcomeOf = (events: readonly RunEvent[]): string | undefined =>
    events.flatMap(event => (event.type === 'run_end' ? [event.outcome] : []))[0];

  /** Returns the rule and the answer of each call, in the order of the calls. */
  const results = (events: readonly RunEvent[]): string[] =>
    events
      .flatMap(event => (event.type === 'tool_end' ? [event] : []))
      .sort((a, b) => Number(a.callId) - Number(b.callId))
      .map(({ policy, result }) => `${policy?.rule ?? 'none'}: ${result.content}`);

  it('offers exactly its tools under its own system text, and routes to no skill', async () => {
    const { events, provider } = await run([[says('Done.'), done()]]);
    assert.equal(provider.requests[0]?.system, 'You do the work.');
    assert.deepEqual(
      provider.requests[0]?.tools,
      [...skillTools, learn].map(tool => tool.definition.name),
    );
    const routed = events.find(event => event.type === 'routed');
    assert.deepEqual(
      [routed?.agent, routed?.skill, routed?.workingDir],
      ['telos', 'coder', join(folder.path, 'slot')],
    );
    assert.doesNotMatch(JSON.stringify(provider.requests), /Writes files/);
    assert.equal(outcomeOf(events), 'completed');
  });

  it('does its work with nobody there, and nothing beyond its rights', async () => {
    const { events } = await run([
      [
        calls('1', 'write_file', { path: 'made.txt', content: 'x' }),
        calls('2', 'run_command', { command: 'cat a.txt > b.txt; exit 0' }),
        calls('3', 'learn', {}),
        calls('4', 'approve', { summary: 'All good.' }),
        calls('5', 'write_file', {
          path: join(folder.path, 'repo/.telos/plans/p/prd.json'),
          content: '{"passes":true}',
        }),
        calls('6', 'run_command', { command: 'git commit -am x' }),
        calls('7', 'run_command', { command: 'npm run build', outside_box: true, why: 'It builds.' }),
        done('tool_use'),
      ],
      [says('Done.'), done()],
    ]);
    const rules = results(events).map(line => line.split(':')[0]);
    assert.deepEqual(rules, [
      'write.working-dir',
      'workflow.card',
      'workflow.step',
      'none',
      'workflow.plan-files',
      'workflow.git',
      'run.command',
    ]);
    assert.match(results(events)[3] ?? '', /Unknown tool: approve/);
    assert.equal(readFileSync(join(folder.path, 'slot/b.txt'), 'utf8'), 'a');
    assert.equal(readFileSync(join(folder.path, 'repo/.telos/plans/p/prd.json'), 'utf8'), '{}');
  });

  it('only looks in a role that only looks, but uses its own tools', async () => {
    const { events } = await run(
      [
        [
          calls('1', 'write_file', { path: 'made.txt', content: 'x' }),
          calls('2', 'run_command', { command: 'cat a.txt > b.txt; exit 0' }),
          calls('3', 'learn', {}),
          done('tool_use'),
        ],
        [says('Done.'), done()],
      ],
      { role: 'read-only' },
    );
    assert.deepEqual(
      results(events).map(line => line.split(':')[0]),
      ['role.read-only', 'role.read-only', 'workflow.step'],
    );
    assert.equal(existsSync(join(folder.path, 'slot/made.txt')), false);
  });

  it('puts what the person says into the next round, behind the results of the tools', async () => {
    const words = [['use sqlite'], [], ['and no ORM']];
    const { events, provider } = await run(
      [
        [calls('1', 'learn', {}), done('tool_use')],
        [calls('2', 'learn', {}), done('tool_use')],
        [says('Done.'), done()],
      ],
      { mail: async () => words.shift() ?? [] },
    );
    const [first, second, third] = provider.requests.map(({ messages }) => JSON.stringify(messages.at(-1)));
    assert.match(first ?? '', /use sqlite/);
    assert.doesNotMatch(second ?? '', /sqlite|ORM/);
    assert.match(third ?? '', /tool_result.*and no ORM/);
    assert.deepEqual(
      events.flatMap(event => (event.type === 'notice' ? [event.message] : [])),
      ['You said: use sqlite', 'You said: and no ORM'],
    );
  });

  it('plays its own recording from a folder, in any folder', async () => {
    const header = {
      format: 'telos-recording',
      version: 1,
      provider: 'x',
      model: 'recorded',
      recordedAt: '2026-01-01',
      folder: 'elsewhere',
    };
    const turns = [
      { events: [calls('1', 'write_file', { path: 'made.txt', content: 'played' }), done('tool_use')] },
      { results: [null], events: [says('Done.'), done()] },
    ];
    folder.add({
      'play/US-001.a1.coder.jsonl': [{ agent: '', skill: '', request: '', ...header }, ...turns]
        .map(one => JSON.stringify(one))
        .join('\n'),
    });
    const replay = { TELOS_PROVIDER: 'replay', TELOS_REPLAY_FILE: join(folder.path, 'play') };
    const { events } = await run([], {}, replay);
    assert.equal(readFileSync(join(folder.path, 'slot/made.txt'), 'utf8'), 'played');
    const missing = await run([], { key: 'US-009.a1.coder' }, replay);
    const end = missing.events.at(-1);
    assert.match(
      end?.type === 'run_end' ? (end.error?.message ?? '') : '',
      /US-009\.a1\.coder\.jsonl could not be read/,
    );
    assert.equal(outcomeOf(events), 'completed');
  });

  it('stops before the next call when its own budget is used up', async () => {
    let calledFor = 0;
    const budget = {
      check: async () => {
        if (calledFor++ > 1) throw new Error('used up');
        return [];
      },
      add: () => [],
    };
    const { provider } = await run([[calls('1', 'learn', {}), done('tool_use')]], { budget });
    assert.equal(provider.requests.length, 1);
  });

  it('asks the model that it names', async () => {
    const { events } = await run([[says('Done.'), done()]], { model: 'scripted:other' });
    assert.equal(outcomeOf(events), 'completed');
    const unknown = await run([[says('Done.'), done()]], { model: 'anthropic:claude-x' });
    const end = unknown.events.at(-1);
    assert.match(end?.type === 'run_end' ? (end.error?.message ?? '') : '', /anthropic has no key/);
  });

  it('names the agent that its skill is missing from', async () => {
    const { events } = await run([[says('Done.'), done()]], { skill: { agent: 'nobody', skill: 'x' } });
    assert.equal(outcomeOf(events), 'failed');
  });
});
