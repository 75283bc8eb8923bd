import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { loadConfig } from '../../../src/engine/config.ts';
import { createProvider } from '../../../src/engine/providers/create.ts';
import { logPath, readLog, type SkillEndRecord } from '../../../src/engine/records/logFile.ts';
import { readSpending } from '../../../src/engine/records/spending.ts';
import { countedCall } from '../../../src/engine/run/meter.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { type AnthropicTurn, startAnthropicServer } from '../../fakes/anthropicServer.ts';
import type { FakeServer } from '../../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('A single question to a model', () => {
  let folder: TempFolder;
  let server: FakeServer;
  let turn: AnthropicTurn;
  beforeEach(async () => {
    folder = tempFolder();
    turn = { text: ['It rains.'], usage: { input_tokens: 1000, output_tokens: 100 } };
    server = await startAnthropicServer({ turns: () => turn });
  });
  afterEach(async () => {
    await server.close();
    folder.remove();
  });

  const configOf = (more: Record<string, string> = {}) => {
    const env = {
      TELOS_DATA_DIR: folder.path,
      ANTHROPIC_API_KEY: 'k-0123456789',
      ANTHROPIC_BASE_URL: server.url,
      ...more,
    };
    return loadConfig({ env, home: folder.path, cwd: folder.path });
  };

  async function ask(more: Record<string, string> = {}, stopAfterFirst = false): Promise<string> {
    const config = configOf(more);
    const choice = { name: 'anthropic', model: 'claude-haiku-4-5', why: '', recording: false };
    const controller = new AbortController();
    const request = {
      system: '',
      tools: [],
      maxTokens: 100,
      messages: [{ role: 'user', content: 'Is the secret garden wet?' }] as const,
    };
    let said = '';
    const provider = await createProvider(config, choice);
    for await (const event of countedCall(provider, request, config, controller.signal)) {
      if (event.type === 'text') said += event.text;
      if (stopAfterFirst) break;
    }
    return said;
  }

  async function records(): Promise<SkillEndRecord[]> {
    const all = (await readLog(logPath(folder.path))).records;
    return all.flatMap(record => (record.event === 'skill_end' ? [record] : []));
  }

  it('stands in the log and in the spending of the day, by its door, and without a word of it', async () => {
    assert.equal(await ask(), 'It rains.');
    const [record] = await records();
    assert.deepEqual(record?.call, { door: 'context', provider: 'anthropic', model: 'claude-haiku-4-5' });
    assert.deepEqual([record.outcome, record.input_tokens, record.output_tokens], ['completed', 1000, 100]);
    assert.doesNotMatch(readFileSync(logPath(folder.path), 'utf8'), /garden|rains/);
    const today = await Telos.open(configOf()).today();
    assert.ok(today.cost > 0 && today.tokens === 1100);
    const { byAgent, byModel } = await readSpending(folder.path, 1);
    assert.deepEqual([byAgent[0]?.name, byModel[0]?.name], ['(context)', 'anthropic claude-haiku-4-5']);
  });

  it('is not put once the budget of the day is used up', async () => {
    await ask();
    const before = server.requests.length;
    await assert.rejects(ask({ TELOS_MAX_TOKENS_PER_DAY: '1000' }), { code: 'budget' });
    assert.equal(server.requests.length, before);
    assert.deepEqual(
      (await records()).map(({ outcome, error, cost }) => [outcome, error, cost === 0]),
      [
        ['completed', null, false],
        ['budget', 'budget', true],
      ],
    );
  });

  it('is written down too when it fails, and when nobody listens to its end', async () => {
    turn = { status: 401 };
    await assert.rejects(ask(), { code: 'auth' });
    turn = { text: ['a', 'b'] };
    await ask({}, true);
    assert.deepEqual(
      (await records()).map(({ outcome, error, cost }) => [outcome, error, cost]),
      [
        ['failed', 'auth', 0],
        ['cancelled', null, 'unknown'],
      ],
    );
  });

  it('has failed in the log if the model refused, was cut, or said nothing', async () => {
    for (const stopReason of ['refusal', 'max_tokens', 'tool_use']) {
      turn = { text: ['It'], stopReason };
      await ask();
    }
    turn = { text: [' '] };
    await ask();
    assert.deepEqual(
      (await records()).map(({ outcome, error }) => [outcome, error]),
      Array.from({ length: 4 }, () => ['failed', 'no_answer']),
    );
  });
});
