/** Having a model choose the skill costs: it is seen, written down, added up, and stopped by a budget like every other call. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Budget } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { logPath, readLog, type SkillEndRecord } from '../../../src/engine/records/logFile.ts';
import { readSpending } from '../../../src/engine/records/spending.ts';
import { meteredProvider } from '../../../src/engine/run/meter.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { sentence } from '../../../src/protocol/text.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import type { FakeServer } from '../../fakes/loopback.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const router = 'claude-haiku-5-5';
const { signal } = new AbortController();

describe('A model that chooses the skill', () => {
  let folder: TempFolder;
  let server: FakeServer;
  let answer: string;
  beforeEach(async () => {
    answer = 'kickoff';
    folder = tempFolder({
      'skills/kairos/skills/kickoff/SKILL.md':
        '---\ndescription: Plans the morning with its meetings\n---\nB',
      'skills/kairos/skills/shutdown/SKILL.md': '---\ndescription: Reviews the evening\n---\nB',
    });
    server = await startAnthropicServer({
      turns: ({ body }) => {
        const isRouting = body.model === router;
        return {
          text: [isRouting ? answer : 'Good morning.'],
          usage: { input_tokens: isRouting ? 200 : 1000, output_tokens: isRouting ? 4 : 100 },
        };
      },
    });
  });
  afterEach(async () => {
    await server.close();
    folder.remove();
  });

  const dataDir = (): string => join(folder.path, 'data');
  const open = (env: Record<string, string> = {}): Telos => {
    const set = {
      TELOS_SKILLS_DIR: join(folder.path, 'skills'),
      TELOS_DATA_DIR: dataDir(),
      ANTHROPIC_API_KEY: 'k-0123456789',
      ANTHROPIC_BASE_URL: server.url,
      TELOS_MODEL: 'claude-haiku-4-5',
    };
    return Telos.open(loadConfig({ env: { ...set, ...env }, home: folder.path, cwd: folder.path }));
  };
  async function run(telos: Telos, text = 'get me going'): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    for await (const event of telos.run({ text }, denyAll, signal)) events.push(event);
    return events;
  }
  async function ends(): Promise<SkillEndRecord[]> {
    if (!existsSync(logPath(dataDir()))) return [];
    const { records } = await readLog(logPath(dataDir()));
    return records.filter(record => record.event === 'skill_end');
  }
  const asked = (): string[] => server.requests.map(({ body }) => body.model);
  const outcome = (events: readonly RunEvent[]) => {
    const end = events.at(-1);
    return end?.type === 'run_end' ? end.outcome : undefined;
  };
  /** Of the prices of both models. */
  const routingCost = (200 * 0.1 + 4 * 0.5) / 1e6;
  const runCost = (1000 * 1 + 100 * 5) / 1e6;

  it('is seen in the run, in its log, in the spending of the day, and under its own name', async () => {
    const events = await run(open());
    assert.equal(outcome(events), 'completed');
    assert.deepEqual(asked(), [router, 'claude-haiku-4-5']);
    const used = events.flatMap(event => (event.type === 'usage' ? [event] : []));
    assert.deepEqual(
      used.map(({ round, routing, usage }) => [round, routing?.model, usage.inputTokens]),
      [
        [0, router, 200],
        [1, undefined, 1000],
      ],
    );
    const [end] = await ends();
    assert.deepEqual([end?.rounds, end?.input_tokens, end?.output_tokens], [1, 1200, 104]);
    assert.ok(Math.abs(Number(end?.cost) - routingCost - runCost) < 1e-12);
    assert.deepEqual(end?.routing, {
      provider: 'anthropic',
      model: router,
      input_tokens: 200,
      output_tokens: 4,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      cost: routingCost,
    });
    const today = await open().today();
    assert.ok(Math.abs(today.cost - routingCost - runCost) < 1e-12);
    const { byModel, total } = await readSpending(dataDir(), 1);
    assert.equal(total.runs, 1);
    assert.deepEqual(
      byModel.map(({ name, inputTokens, outputTokens }) => [name, inputTokens, outputTokens]),
      [
        ['anthropic claude-haiku-4-5', 1000, 100],
        [`anthropic ${router}`, 200, 4],
      ],
    );
  });

  it('counts although no skill fits, and although its answer is none', async () => {
    answer = 'NONE';
    assert.equal(outcome(await run(open())), 'no_match');
    answer = 'gibberish';
    assert.equal(outcome(await run(open())), 'no_match');
    assert.deepEqual(
      (await ends()).map(({ cost, input_tokens }) => [cost, input_tokens]),
      [
        [routingCost, 200],
        [routingCost, 200],
      ],
    );
    assert.equal((await readSpending(dataDir(), 1)).total.cost, 2 * routingCost);
  });

  it('counts where nothing is to run, too', async () => {
    const telos = open();
    assert.equal((await telos.route({ text: 'get me going' }, signal)).skill?.id, 'kickoff');
    const [end] = await ends();
    assert.deepEqual([end?.cost, end?.rounds, end?.routing?.alone], [routingCost, 0, true]);
    assert.equal((await telos.today()).cost, routingCost);
    // A name needs no model.
    await telos.route({ text: '/kickoff' }, signal);
    assert.equal((await ends()).length, 1);
  });

  it('is told to the person with what the budget says before it', async () => {
    const told: RunEvent[] = [];
    const said = sentence('The day is nearly used up.');
    const budget = { check: async () => [said], add: () => [] } as Partial<Budget> as Budget;
    const provider = meteredProvider(scriptedProvider([[says('kickoff'), done()]]), budget, event =>
      told.push(event),
    );
    const request = {
      system: '',
      messages: [{ role: 'user', content: 'x' }],
      tools: [],
      maxTokens: 99,
    } as const;
    for await (const _ of provider.streamCompletion(request, signal));
    assert.deepEqual(
      told.map(event => (event.type === 'notice' ? [event.level, event.message] : event.type)),
      [['warning', 'The day is nearly used up.'], 'usage'],
    );
  });

  it('is part of what a run may use', async () => {
    const events = await run(open({ TELOS_MAX_TOKENS: '150' }));
    assert.equal(outcome(events), 'budget');
    assert.deepEqual(asked(), [router]);
  });

  it('is not asked once the day is used up, which is said, and the index chooses', async () => {
    await run(open());
    const telos = open({ TELOS_MAX_TOKENS_PER_DAY: '1000' });
    const events = await run(telos, 'plan my morning and its meetings');
    assert.equal(server.requests.length, 2);
    const said = events.flatMap(event => (event.type === 'notice' ? [event.message] : [])).join();
    assert.match(
      said,
      /could not choose the skill \(The budget of the day is used up: 1304 of 1000 tokens.*by your words instead/,
    );
    const routed = events.find(event => event.type === 'routed');
    assert.equal(routed?.type === 'routed' && routed.reason.rule, 'index');
    assert.equal(outcome(events), 'budget');
    const alone = await telos.route({ text: 'plan my morning and its meetings' }, signal);
    assert.equal(alone.skill?.id, 'kickoff');
    assert.match(alone.notice ?? '', /The budget of the day is used up/);
    assert.equal(server.requests.length, 2);
  });

  it('costs something unknown where it says nothing of tokens', async () => {
    const silent = await startOpenaiServer({
      turns: [
        { chunks: [{ choices: [{ index: 0, delta: { content: 'kickoff' }, finish_reason: 'stop' }] }] },
      ],
    });
    try {
      const telos = open({
        TELOS_PROVIDER: 'openai',
        TELOS_MODEL: 'gpt-5.4-mini',
        OPENAI_API_KEY: 'k-0123456789',
        OPENAI_BASE_URL: silent.url,
      });
      assert.equal((await telos.route({ text: 'get me going' }, signal)).skill?.id, 'kickoff');
      assert.equal((await ends())[0]?.cost, 'unknown');
      assert.equal((await telos.today()).unknownRuns, 1);
    } finally {
      await silent.close();
    }
  });
});
