/** A limit stops a run before the call that would go over it, and says how to go on. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ConfigOverrides, loadConfig } from '../../../src/engine/config.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { appendRecord, logPath, type SkillEndRecord } from '../../../src/engine/records/logFile.ts';
import { readSpending } from '../../../src/engine/records/spending.ts';
import { DayUse, openBudget } from '../../../src/engine/run/budget.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { RunEvent, RunOutcome } from '../../../src/protocol/run.ts';
import { spoken } from '../../../src/protocol/text.ts';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('openBudget', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const open = (overrides: ConfigOverrides = {}, env: Record<string, string> = {}) =>
    openBudget(
      loadConfig({
        env: { TELOS_DATA_DIR: 'data', ...env },
        home: folder.path,
        cwd: folder.path,
        ...overrides,
      }),
    );

  const known = { name: 'anthropic', model: 'claude-haiku-4-5' };

  const usage = (cost: number | 'unknown') => ({
    inputTokens: 100,
    outputTokens: 50,
    cacheReadTokens: 20,
    cacheWriteTokens: 10,
    cost,
  });

  function ended(day: Date, more: Partial<SkillEndRecord>): void {
    appendRecord(logPath(join(folder.path, 'data'), day), {
      ts: day.toISOString(),
      event: 'skill_end',
      duration_s: 60,
      rounds: 1,
      tool_calls: 0,
      error: null,
      messages: [],
      run_id: 'r',
      agent: 'a',
      skill: 's',
      outcome: 'completed',
      input_tokens: 1000,
      output_tokens: 500,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      cost: 0.4,
      ...more,
    });
  }

  const refusal = (message: RegExp) => (error: unknown) =>
    error instanceof TelosError && error.code === 'budget' && message.test(error.message);

  it('is nothing where nothing is limited', () => {
    assert.equal(open(), undefined);
    assert.equal(open({}, { TELOS_MAX_COST: '' }), undefined);
  });

  it('lets calls through until the cost of the run is used up', async () => {
    const budget = open({ maxCost: '0.05' });
    budget?.add(usage(0.04));
    assert.deepEqual(await budget?.check(known), []);
    budget?.add(usage(0.011));
    await assert.rejects(
      async () => budget?.check(known),
      refusal(
        /^The budget of this run is used up: \$0\.0510 of \$0\.05\. Raise or remove the limit \(--max-cost\)/,
      ),
    );
  });

  it('counts every token that a model has read or written', async () => {
    const budget = open({}, { TELOS_MAX_TOKENS: '360' });
    budget?.add(usage('unknown'));
    assert.deepEqual(await budget?.check(known), []);
    budget?.add(usage('unknown'));
    await assert.rejects(
      async () => budget?.check(known),
      refusal(/360 of 360 tokens\. Raise or remove the limit \(TELOS_MAX_TOKENS\)/),
    );
  });

  it('counts the time since the run began, and lets nothing through a limit of 0', async () => {
    await assert.rejects(async () => open({ maxMinutes: '0' })?.check(known), refusal(/0\.0 of 0 minutes/));
    await assert.rejects(async () => open({ maxCost: '0' })?.check(known), refusal(/\$0\.0000 of \$0/));
    assert.deepEqual(await open({ maxMinutes: '60' })?.check(known), []);
  });

  it('says once that a price is not known, and only where a cost is limited', () => {
    const budget = open({ maxCost: '1' });
    assert.match(spoken(budget?.add(usage('unknown')) ?? []), /only the limits of tokens and minutes apply/);
    assert.deepEqual(budget?.add(usage('unknown')), []);
    assert.deepEqual(open({ maxTokens: '9' })?.add(usage('unknown')), []);
    assert.match(spoken(open({ maxTokens: '9' })?.add(undefined) ?? []), /only the limit of minutes applies/);
    assert.deepEqual(open({ maxMinutes: '9' })?.add(undefined), []);
  });

  it('asks no model whose price is not known where a cost is limited, and says how to go on', async () => {
    const unknown = { name: 'openai', model: 'my-own-model' };
    const said =
      /^The price of my-own-model \(openai\) is not known, so the limit of cost cannot be kept: --max-cost\. Choose another model, write its price under \[prices\] in config\.toml or in telos\.prices, or limit tokens or minutes instead\.$/;
    await assert.rejects(async () => open({ maxCost: '1' })?.check(unknown), refusal(said));
    await assert.rejects(
      async () => open({}, { TELOS_MAX_COST_PER_DAY: '1' })?.check(unknown),
      refusal(/limit of cost cannot be kept: TELOS_MAX_COST_PER_DAY\./),
    );
    for (const model of ['qwen3:480b-cloud', 'gpt-oss:120b-cloud'])
      await assert.rejects(
        async () => open({ maxCost: '1' })?.check({ name: 'ollama', model }),
        refusal(/./),
      );
    assert.deepEqual(await open({ maxTokens: '9', maxMinutes: '9' })?.check(unknown), []);
    const free = { name: 'ollama', model: 'llama3.1' };
    const charged = { name: 'openrouter', model: 'some/model' };
    const replayed = { ...unknown, recording: { model: 'm', recordedAt: '' } };
    for (const next of [known, free, charged, replayed])
      assert.deepEqual(await open({ maxCost: '1' })?.check(next), []);
  });

  it('asks no further once an answer has cost an amount that is not known', async () => {
    const budget = open({ maxCost: '1' });
    assert.deepEqual(await budget?.check(known), []);
    budget?.add(usage('unknown'));
    await assert.rejects(
      async () => budget?.check(known),
      refusal(/price of claude-haiku-4-5 \(anthropic\) is not known/),
    );
  });

  it('adds what ended today, also while the run goes on, and leaves yesterday out', async () => {
    const now = new Date();
    ended(new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1, 12), { cost: 50 });
    ended(now, {});
    const budget = open({ overridesAre: 'setting', maxCostPerDay: '1', maxCost: '10' });
    assert.deepEqual(await budget?.check(known), []);
    ended(now, { cost: 0.5 });
    assert.deepEqual(await budget?.check(known), []);
    budget?.add(usage(0.1));
    await assert.rejects(
      async () => budget?.check(known),
      refusal(
        /^The budget of the day is used up: \$1\.0000 of \$1\. Raise or remove the limit \(the setting telos\.budget\.maxCostPerDay\).* tomorrow/,
      ),
    );
    await assert.rejects(
      async () => open({ maxTokensPerDay: '3000' })?.check(known),
      refusal(/3000 of 3000 tokens/),
    );
    await assert.rejects(
      async () => open({ maxMinutesPerDay: '2' })?.check(known),
      refusal(/2\.0 of 2 minutes/),
    );
  });

  it('says that runs of today had no known cost', async () => {
    ended(new Date(), { cost: 'unknown' });
    const budget = open({ maxCostPerDay: '1' });
    assert.match(spoken((await budget?.check(known)) ?? []), /cost of 1 run of today is unknown/);
    assert.deepEqual(await budget?.check(known), []);
  });

  it('goes on, and says so, when the log could not be read', async () => {
    mkdirSync(logPath(join(folder.path, 'data')), { recursive: true });
    assert.match(spoken((await open({ maxCostPerDay: '1' })?.check(known)) ?? []), /log could not be read/);
  });

  it('lets nothing run under a limit that is no number, and names the file that has it', async () => {
    folder.add({ '.config/telos/.env': 'TELOS_MAX_COST=five\n' });
    await assert.rejects(
      async () => open()?.check(known),
      (error: TelosError) =>
        error.code === 'config' &&
        /limit TELOS_MAX_COST in .*\.env is 'five', which is not a number/.test(error.message),
    );
  });

  it('tells what the day has used as runs end, and which of its limits are set', async () => {
    const day = new DayUse(join(folder.path, 'data'));
    const limits = { maxCost: 1, maxCostPerDay: 5, maxTokensPerDay: Number.NaN };
    ended(new Date(), {});
    assert.deepEqual(await day.spending(limits), {
      cost: 0.4,
      tokens: 1500,
      minutes: 1,
      unknownRuns: 0,
      limits: { cost: 5 },
    });
    ended(new Date(), { cost: 'unknown' });
    const { cost, unknownRuns, minutes } = await day.spending({});
    assert.deepEqual([cost, unknownRuns, minutes], [0.4, 1, 2]);
  });

  it('counts each run once, and goes on counting, when two ask at the same time', async () => {
    const day = new DayUse(join(folder.path, 'data'));
    ended(new Date(), {});
    const both = await Promise.all([day.spending({}), day.spending({})]);
    assert.deepEqual(
      both.map(({ cost }) => cost),
      [0.4, 0.4],
    );
    ended(new Date(), { cost: 0.1 });
    assert.equal((await day.spending({})).cost, 0.5);
  });

  const asked = (run_id: string, cost: number | 'unknown') =>
    appendRecord(logPath(join(folder.path, 'data')), {
      ts: new Date().toISOString(),
      event: 'model_call',
      run_id,
      duration_s: 30,
      input_tokens: 100,
      output_tokens: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      cost,
    });

  it('counts what runs in progress have used, each once, and its own not twice', async () => {
    const day = new DayUse(join(folder.path, 'data'));
    asked('one', 0.2);
    asked('one', 0.2);
    asked('other', 'unknown');
    ended(new Date(), { run_id: 'before', cost: 0.1, duration_s: 60 });
    const { cost, tokens, minutes, unknownRuns } = await day.spending({});
    assert.deepEqual([cost, tokens, minutes, unknownRuns], [0.5, 1800, 2, 1]);
    assert.equal((await day.read('one')).use.cost, 0.1);
    ended(new Date(), { run_id: 'one', cost: 0.4 });
    ended(new Date(), { run_id: 'other', cost: 'unknown' });
    const all = await day.spending({});
    assert.deepEqual([all.cost, all.unknownRuns, all.minutes], [0.5, 1, 3]);
  });

  it('leaves out the time in which a person was waited for', async () => {
    const config = loadConfig({ env: {}, home: folder.path, cwd: folder.path, maxMinutes: '0.001' });
    const waited = { ms: 0 };
    const budget = openBudget(config, { id: 'r', waited });
    await new Promise(passed => setTimeout(passed, 70));
    await assert.rejects(async () => budget?.check(known), refusal(/of 0\.001 minutes/));
    waited.ms = 60_000;
    assert.deepEqual(await budget?.check(known), []);
  });

  it('reads a log that is longer than any text in pieces, and one that has become shorter anew', async () => {
    const file = logPath(join(folder.path, 'data'));
    ended(new Date(), {});
    truncateSync(file, 540 * 1024 * 1024);
    appendFileSync(file, '\n');
    ended(new Date(), { cost: 0.3 });
    const day = new DayUse(join(folder.path, 'data'));
    assert.ok(Math.abs((await day.spending({})).cost - 0.7) < 1e-9);
    assert.ok(Math.abs(Number((await readSpending(join(folder.path, 'data'), 1)).total.cost) - 0.7) < 1e-9);
    truncateSync(file, 0);
    ended(new Date(), { cost: 0.2 });
    assert.equal((await day.spending({})).cost, 0.2);
  });
});

const engineFile = (name: string): string => new URL(`../../../src/engine/${name}`, import.meta.url).href;

/** Three runs at once in a process of their own. Prints how they ended. */
const runsProgram = `
import { loadConfig } from '${engineFile('config.ts')}';
import { denyAll } from '${engineFile('human.ts')}';
import { Telos } from '${engineFile('telos.ts')}';
const folder = process.argv[2];
const env = {
  ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: process.env.BUDGET_TEST_URL, TELOS_MODEL: 'claude-haiku-4-5',
  TELOS_SKILLS_DIR: folder + '/skills', TELOS_DATA_DIR: folder + '/data', TELOS_MAX_COST_PER_DAY: '0.25',
};
const telos = Telos.open(loadConfig({ env, home: folder + '/home', cwd: folder }));
async function run() {
  let end;
  const request = { text: 'go', skill: { agent: 'garden', skill: 'sow' } };
  for await (end of telos.run(request, denyAll, new AbortController().signal));
  return end.outcome;
}
console.log(JSON.stringify(await Promise.all([run(), run(), run()])));
process.exit();
`;

describe('what runs have spent', () => {
  let folder: TempFolder;
  let server: FakeServer | undefined;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.\n',
    });
  });
  afterEach(async () => {
    await server?.close();
    folder.remove();
  });

  /** 100,000 tokens of the prompt cost ten cents. */
  const usage = { input_tokens: 100_000, output_tokens: 1 };
  const look = { toolCalls: [{ name: 'list_directory', input: { path: '.' } }], usage };
  const skill = { agent: 'garden', skill: 'sow' };

  async function open(turns: AnthropicTurn[], env: Record<string, string>): Promise<Telos> {
    server = await startAnthropicServer({ turns });
    const config = loadConfig({
      env: {
        ...{ ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url, TELOS_MODEL: 'claude-haiku-4-5' },
        ...{ TELOS_SKILLS_DIR: join(folder.path, 'skills'), TELOS_DATA_DIR: join(folder.path, 'data') },
        ...env,
      },
      home: join(folder.path, 'home'),
      cwd: folder.path,
    });
    const telos = Telos.open(config);
    await telos.acceptCard(await telos.agentCard('garden'));
    return telos;
  }

  async function run(telos: Telos, stopAtText = false): Promise<Extract<RunEvent, { type: 'run_end' }>> {
    const stop = new AbortController();
    let end: RunEvent | undefined;
    for await (end of telos.run({ text: 'go', skill }, denyAll, stop.signal))
      if (end.type === 'text' && stopAtText) stop.abort();
    assert.ok(end?.type === 'run_end');
    return end;
  }

  it('is seen by runs beside them before each request: each goes one round beyond the limit of the day', async () => {
    const telos = await open([look], { TELOS_MAX_COST_PER_DAY: '0.25' });
    const ends = await Promise.all(Array.from({ length: 6 }, () => run(telos)));
    assert.deepEqual([...new Set(ends.map(({ outcome }) => outcome))], ['budget']);
    assert.ok(server!.requests.length <= 8, `${server!.requests.length} requests`);
    assert.ok(ends.every(({ rounds }) => rounds <= 2));
  });

  it('is seen by runs of other processes too', async () => {
    await open([look], {});
    folder.add({ 'runs.ts': runsProgram });
    const processes = [1, 2].map(async () => {
      const env = { PATH: process.env['PATH'], BUDGET_TEST_URL: server!.url };
      const args = [join(folder.path, 'runs.ts'), folder.path];
      const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 60_000 });
      return JSON.parse(stdout) as RunOutcome[];
    });
    assert.deepEqual((await Promise.all(processes)).flat(), Array(6).fill('budget'));
    assert.ok(server!.requests.length >= 3 && server!.requests.length <= 8, `${server!.requests.length}`);
  });

  it('is never less than nothing, and is not known where a server has counted nothing', async () => {
    const turn = { text: ['Done.'], usage: { input_tokens: -1_000_000, output_tokens: -5 } };
    const telos = await open([turn], { TELOS_MAX_COST_PER_DAY: '5' });
    assert.equal((await run(telos)).outcome, 'completed');
    const { cost, tokens, unknownRuns } = await telos.today();
    assert.deepEqual({ cost, tokens, unknownRuns }, { cost: 0, tokens: 0, unknownRuns: 1 });
  });

  it('has the round in which a person stopped one', async () => {
    const hold = { behind: 'Much', until: new Promise<void>(() => undefined) };
    const telos = await open([look, { text: ['Much ', 'more'], usage, hold }], {});
    assert.equal((await run(telos, true)).outcome, 'cancelled');
    const { cost, unknownRuns } = await telos.today();
    assert.ok(cost > 0.2 && cost < 0.201 && unknownRuns === 0, `${cost} ${unknownRuns}`);
  });

  it('has an answer that broke off in its words, and one that is asked for again behind its thoughts', async () => {
    const thinking = [{ thinking: 'Hm. '.repeat(200), signature: 's' }];
    const thought = { thinking, text: ['a'], usage, cutAfterBytes: 1_500 };
    const telos = await open([thought, { text: ['Half ', 'more'], usage, cutAfterBytes: 600 }], {});
    assert.equal((await run(telos)).outcome, 'failed');
    const { cost } = await telos.today();
    assert.equal(server!.requests.length, 2);
    assert.ok(cost > 0.2 && cost < 0.202, String(cost));
  });

  it('is not known if nobody reads a run to its end in the middle of an answer', async () => {
    const hold = { behind: 'Much', until: new Promise<void>(() => undefined) };
    const telos = await open([look, { text: ['Much ', 'more'], usage, hold }], {
      TELOS_MAX_COST_PER_DAY: '5',
    });
    for await (const { type } of telos.run({ text: 'go', skill }, denyAll, new AbortController().signal))
      if (type === 'text') break;
    const { cost, unknownRuns } = await telos.today();
    assert.ok(cost >= 0.1 && unknownRuns === 1, `${cost} ${unknownRuns}`);
  });
});
