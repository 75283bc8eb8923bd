/** A run from its start to its end: both are there however it goes, and what it has started is gone afterwards. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { loadConfig } from '../../../src/engine/config.ts';
import { Interruption, TelosError } from '../../../src/engine/errors.ts';
import { allowAll, denyAll, type Human } from '../../../src/engine/human.ts';
import { ServerBook } from '../../../src/engine/mcp/serverBook.ts';
import { Models } from '../../../src/engine/providers/create.ts';
import { Router } from '../../../src/engine/routing/route.ts';
import { type Engine, newRun, type RunRequest } from '../../../src/engine/run/request.ts';
import { startRun } from '../../../src/engine/run/start.ts';
import { Catalog } from '../../../src/engine/skills/catalog.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { done, type ScriptedTurn, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

/** Says that it runs by a file of its process id, and answers as an MCP server that has no tools. */
const server = `
  require('node:fs').writeFileSync(process.argv[1], String(process.pid));
  require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
    const { id, method } = JSON.parse(line);
    if (id === undefined) return;
    const result = method === 'initialize'
      ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      : { tools: [] };
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  });`;

describe('startRun', () => {
  let folder: TempFolder;
  const started = (): string => join(folder.path, 'started');
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows the beds\n---\nSow.',
    });
  });
  afterEach(() => folder.remove());

  function open(turns: readonly ScriptedTurn[], env: Record<string, string> = {}) {
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_PROVIDER: 'scripted',
        ...env,
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'work'),
    });
    const provider = scriptedProvider(turns);
    const scripted = { model: async () => 'script', create: async () => provider };
    const engine: Engine = {
      config,
      catalog: new Catalog(config),
      book: new ServerBook(),
      models: new Models(config, { scripted }),
      router: new Router({ mode: 'local', provider: async () => undefined }),
      changes: new ChangeStore(config),
    };
    return { engine, provider };
  }

  const sow: RunRequest = { text: 'the beds', skill: { agent: 'garden', skill: 'sow' } };
  const play = (
    engine: Engine,
    request: RunRequest,
    human: Human = denyAll,
    signal = new AbortController().signal,
  ) => startRun(newRun(request, human, engine.config), engine, signal);

  async function run(...given: Parameters<typeof play>) {
    const events: RunEvent[] = [];
    for await (const event of play(...given)) events.push(event);
    const end = events.at(-1);
    assert.equal(events[0]?.type, 'run_start');
    assert.ok(end?.type === 'run_end');
    assert.equal(events.filter(({ type }) => type === 'run_start' || type === 'run_end').length, 2);
    return { events, end, types: events.map(({ type }) => type) };
  }

  it('tells the whole run, with its figures and its messages at the end', async () => {
    const attachments = [{ kind: 'text', name: 'beds.md', language: '', text: 'peas' }] as const;
    const { engine, provider } = open([[says('Sown.'), done()]]);
    const { events, end, types } = await run(engine, { ...sow, attachments });
    assert.deepEqual(types, ['run_start', 'routed', 'notice', 'text', 'run_end']);
    const [start] = events;
    assert.ok(start?.type === 'run_start');
    assert.deepEqual([start.text, start.attached], ['the beds', [{ kind: 'text', name: 'beds.md' }]]);
    assert.deepEqual([end.outcome, end.rounds, end.toolCalls, end.messages.length], ['completed', 1, 0, 2]);
    assert.match(JSON.stringify(provider.requests[0]?.messages), /peas/);
  });

  it('ends in words when no skill can be chosen, and asks no model', async () => {
    const { engine, provider } = open([[says('k'), done()]]);
    const unknown = await run(engine, { text: 'x', agent: 'none' });
    assert.match(unknown.end.error?.message ?? '', /Agent 'none' not found\. Available agents: .*garden/);
    const gone = await run(engine, { text: 'x', skill: { agent: 'garden', skill: 'mow' } });
    assert.match(gone.end.error?.message ?? '', /no skill 'mow' of agent 'garden' any more/);
    const strange = await run(engine, { text: 'translate a poem', agent: 'garden' });
    assert.deepEqual([strange.end.outcome, strange.end.error?.code], ['no_match', 'no_match']);
    assert.deepEqual(strange.end.error?.suggestions, [{ agent: 'garden', skill: 'sow' }]);
    for (const { types } of [unknown, gone, strange]) assert.deepEqual(types, ['run_start', 'run_end']);
    assert.equal(provider.requests.length, 0);
  });

  it('tells a defect and an error of the provider apart, and keeps what the run was given', async () => {
    const failing = [[new TelosError('rate_limit', 'Too many.')], [says('a'), new Error('defect')]];
    const ends = [];
    for (const turn of failing) ends.push((await run(open([turn]).engine, sow)).end);
    assert.deepEqual(
      ends.map(({ outcome, error }) => [outcome, error?.code, error?.message]),
      [
        ['failed', 'rate_limit', 'Too many.'],
        ['failed', 'internal', 'defect'],
      ],
    );
    assert.deepEqual(
      ends.map(({ messages }) => messages.length),
      [1, 2],
    );
  });

  it('is cancelled before it has chosen, and says so of a process that ends', async () => {
    const { engine, provider } = open([[says('k'), done()]]);
    for (const reason of [new Error('stop'), new Interruption()]) {
      const { end } = await run(engine, sow, denyAll, AbortSignal.abort(reason));
      const interrupted = reason instanceof Interruption ? true : undefined;
      assert.deepEqual([end.outcome, end.interrupted, end.error], ['cancelled', interrupted, undefined]);
    }
    assert.equal(provider.requests.length, 0);
  });

  it('asks nothing and starts nothing once the budget is used up', async () => {
    addServer();
    const { engine, provider } = open([[says('k'), done()]], { TELOS_MAX_TOKENS: '0' });
    const { end, types } = await run(engine, sow, allowAll);
    assert.deepEqual([end.outcome, end.error?.code], ['budget', 'budget']);
    assert.deepEqual(types, ['run_start', 'routed', 'run_end']);
    assert.deepEqual([provider.requests.length, existsSync(started())], [0, false]);
  });

  it('ends the servers it has started, also when nobody reads on', async () => {
    addServer();
    const { engine } = open([[says('Sown.'), done()]]);
    for await (const event of play(engine, sow, allowAll)) if (event.type === 'text') break;
    const pid = Number(readFileSync(started(), 'utf8'));
    const isThere = (): boolean => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    while (isThere()) await wait(20);
  });

  function addServer(): void {
    const entry = { command: process.execPath, args: ['-e', server, started()] };
    folder.add({ 'skills/garden/mcp.json': JSON.stringify({ mcpServers: { s: entry } }) });
  }
});
