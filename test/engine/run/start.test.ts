/** A run from its start to its end: both are there however it goes, and what it has started is gone afterwards. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { loadConfig } from '../../../src/engine/config.ts';
import { Interruption, TelosError } from '../../../src/engine/core/errors.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { allowAll, denyAll } from '../../../src/engine/human.ts';
import { ServerBook } from '../../../src/engine/mcp/serverBook.ts';
import { Models } from '../../../src/engine/providers/create.ts';
import { Router } from '../../../src/engine/routing/route.ts';
import { type Engine, newRun, type RunRequest } from '../../../src/engine/run/request.ts';
import { startRun } from '../../../src/engine/run/start.ts';
import { Catalog } from '../../../src/engine/skills/catalog.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
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
  /** The models that were opened. */
  const wanted: string[] = [];
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
    const scripted = {
      model: async () => 'script',
      create: async (model?: string) => {
        wanted.push(model ?? '');
        return provider;
      },
    };
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

  it('answers without a skill where none is sure and the request says so, and names those that may have been meant', async () => {
    folder.add({
      'skills/garden/skills/mow/SKILL.md':
        '---\nname: mow\ndescription: Mows the lawn of the garden\n---\nMow.',
      'skills/garden/skills/lamp/SKILL.md':
        '---\nname: lamp\ndescription: Switches lamps in the garden\n---\nLamp.',
    });
    const reasonOf = async (text: string, of: Engine): Promise<unknown> => {
      const { events, end } = await run(of, { text, answersAnyway: true });
      const found = events.find(({ type }) => type === 'routed');
      assert.equal(end.outcome, 'completed', end.error?.message);
      return found?.type === 'routed' && [found.skill, found.reason];
    };
    const { engine } = open([[says('k'), done()]]);
    assert.deepEqual(await reasonOf('hello', engine), ['', { rule: 'without_skill' }]);
    assert.deepEqual(await reasonOf('the lawn', engine), [
      '',
      { rule: 'without_skill', likely: [{ agent: 'garden', skill: 'mow' }] },
    ]);
    const nobody = open([[says('k'), done()]], { TELOS_SKILLS_DIR: join(folder.path, 'none') });
    assert.deepEqual(await reasonOf('hello', nobody.engine), ['', { rule: 'without_skill' }]);
  });

  it('asks no model which skill is meant before an answer without one, where none is likely', async () => {
    let asked = 0;
    const { engine } = open([[says('k'), done()]]);
    const provider = async () => {
      asked++;
      return undefined;
    };
    const router = new Router({ mode: 'auto', provider });
    const all = await engine.catalog.agents();
    const routing = { all, signal: new AbortController().signal, answersAnyway: true };
    await router.route({ ...routing, text: 'hello' });
    assert.equal(asked, 0);
    await router.route({ ...routing, text: 'hello', answersAnyway: false });
    assert.equal(asked, 1);
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

  it('tells what the request brings, and what it leaves out, only where it does', async () => {
    const selection = { file: 'beds.md', line: 3, endLine: 4, language: 'md', text: 'peas' };
    const { engine } = open([[says('k'), done()]]);
    const [plain] = (await run(engine, sow)).events;
    assert.deepEqual(Object.keys(plain ?? {}).sort(), ['runId', 'startedAt', 'text', 'type']);
    const more = { selection, mode: 'plan', withoutContextFiles: true } as const;
    const [start] = (await run(engine, { ...sow, ...more } as RunRequest)).events;
    assert.ok(start?.type === 'run_start');
    assert.deepEqual([start.mode, start.withoutContextFiles, start.attached], ['plan', true, undefined]);
    assert.match(JSON.stringify(start.selection), /beds\.md/);
    const [usual] = (await run(engine, { ...sow, mode: 'default' })).events;
    assert.ok(usual?.type === 'run_start' && usual.mode === undefined);
  });

  it('tells which skill runs and with which model, also where it is none', async () => {
    const routed = async (request: RunRequest) => {
      const { engine } = open([[says('k'), done()]]);
      const found = (await run(engine, request)).events.find(({ type }) => type === 'routed');
      assert.ok(found?.type === 'routed');
      const { type: _, ...facts } = found;
      return facts;
    };
    assert.deepEqual(await routed(sow), {
      ...{ agent: 'garden', skill: 'sow', description: 'Sows the beds', reason: { rule: 'chosen' } },
      ...{
        provider: 'scripted',
        model: 'script',
        workingDir: join(open([]).engine.config.workingRoot, 'garden'),
      },
      hasMcp: false,
    });
    assert.deepEqual(await routed({ text: 'x', withoutSkill: true }), {
      ...{ agent: 'telos', skill: '', description: '', reason: { rule: 'without_skill' } },
      ...{ provider: 'scripted', model: 'script', workingDir: join(folder.path, 'work') },
      hasMcp: false,
    });
    addServer();
    assert.equal((await routed(sow)).hasMcp, true);
  });

  it('goes on without a skill where that of the conversation is gone', async () => {
    const { engine } = open([[says('k'), done()]]);
    const ruleOf = async (skill: object | undefined): Promise<string | undefined> => {
      const conversation = { messages: [{ role: 'user', content: 'x' }], ...(skill && { skill }) };
      const { events } = await run(engine, { text: 'more', goesOn: true, conversation } as never);
      const routed = events.find(({ type }) => type === 'routed');
      return routed?.type === 'routed' ? `${routed.reason.rule} ${routed.skill}` : undefined;
    };
    assert.equal(await ruleOf({ agent: 'garden', skill: 'sow' }), 'continued sow');
    assert.equal(await ruleOf({ agent: 'garden', skill: 'mow' }), 'without_skill ');
    assert.equal(await ruleOf({ agent: 'orchard', skill: 'sow' }), 'without_skill ');
    assert.equal(await ruleOf(undefined), 'without_skill ');
  });

  it('takes from its skill a mode that is more careful, and never one that is less', async () => {
    const said = async (mode: string, request: RunRequest) => {
      folder.add({ 'skills/garden/agent.toml': `name = "garden"\nmode = "${mode}"\n` });
      const { engine, provider } = open([[says('k'), done()]]);
      const { events } = await run(engine, request);
      const told = events.flatMap(event => (event.type === 'notice' ? [event.message] : [])).join('\n');
      const isPlan = !provider.requests[0]?.tools.includes('write_file');
      return [/is set to plan/.test(told), /is set to review/.test(told), isPlan];
    };
    assert.deepEqual(await said('plan', sow), [true, false, true]);
    assert.deepEqual(await said('review', sow), [false, true, false]);
    assert.deepEqual(await said('review', { ...sow, mode: 'plan' }), [false, false, true]);
    assert.deepEqual(await said('plan', { ...sow, mode: 'plan' }), [false, false, true]);
    assert.deepEqual(await said('default', { ...sow, mode: 'review' }), [false, false, false]);
  });

  it('runs with the model of its skill: the one of the person as it is, that of the author where it is of the same maker', async () => {
    const chosen = async (agentToml: string, agentsToml: string, env: Record<string, string> = {}) => {
      folder.add({ 'skills/garden/agent.toml': agentToml, 'config/agents.toml': agentsToml });
      const { engine } = open([[says('k'), done()]], env);
      const { events, end } = await run(engine, sow);
      assert.equal(end.outcome, 'completed', end.error?.message);
      const told = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
      return [wanted.at(-1), told.filter(message => message.includes('model')).join()];
    };
    assert.deepEqual(await chosen('', ''), ['script', '']);
    assert.deepEqual(await chosen('model = "gpt-5.4"', ''), [
      'script',
      'The skill sow asks for gpt-5.4, which is not a model of scripted, so script runs it.',
    ]);
    const persons = '[agents.garden.skills.sow]\nmodel = "gpt-5.4"\n';
    assert.deepEqual(await chosen('', persons), ['gpt-5.4', '']);
    assert.deepEqual(await chosen('model = "other"', persons), ['gpt-5.4', '']);
    assert.deepEqual(await chosen('', persons, { TELOS_MODEL: 'mine' }), ['gpt-5.4', '']);
  });

  it('is held by the limits of its skill besides those of the person, and says what it cannot use', async () => {
    folder.add({ 'skills/garden/agent.toml': 'name = "garden"\nmax_tokens = 0\neffort = "huge"\n' });
    const { engine, provider } = open([[says('k'), done()]]);
    const { end, events } = await run(engine, sow);
    assert.deepEqual([end.outcome, provider.requests.length], ['budget', 0]);
    const told = events.flatMap(event => (event.type === 'notice' ? [[event.level, event.message]] : []));
    assert.deepEqual(told, [
      ['warning', 'effort is "huge" in the settings of the skill, so it is not used.'],
    ]);
    folder.add({ 'skills/garden/agent.toml': 'name = "garden"\nmax_tokens = 100000\n' });
    assert.equal((await run(open([[says('k'), done()]]).engine, sow)).end.outcome, 'completed');
    const strict = open([[says('k'), done()]], { TELOS_MAX_TOKENS: '0' });
    assert.equal((await run(strict.engine, sow)).end.outcome, 'budget');
  });

  it('sends no picture and no document to a model that takes none, and says which', async () => {
    const beds = { kind: 'image', name: 'beds.png', mediaType: 'image/png', data: 'AAAA' } as const;
    const plan = { kind: 'document', name: 'plan.pdf', mediaType: 'application/pdf', data: 'JVBE' } as const;
    const notes = { kind: 'text', name: 'n.md', language: '', text: 'peas' } as const;
    const rows = [
      [['image'], [beds], undefined],
      [['image'], [beds, plan], /script does not accept PDF files\. Nothing was sent\. Remove plan\.pdf,/],
      [[], [notes, beds], /script does not accept images\. Nothing was sent\. Remove beds\.png,/],
      [['image', 'document'], [plan, beds], undefined],
      [[], [notes], undefined],
      [undefined, [plan], undefined],
    ] as const;
    for (const [taken, attachments, why] of rows) {
      const { engine, provider } = open([[says('k'), done()]]);
      provider.media = async () => taken as never;
      const { end } = await run(engine, { ...sow, attachments });
      assert.equal(provider.requests.length, why ? 0 : 1, String(why));
      assert.equal(end.error?.code, why && 'config');
      assert.match(end.error?.message ?? '', why ?? /^$/);
    }
  });

  it('asks about each host with the files of secrets that the person has attached, be it a single one', async () => {
    const asked: string[] = [];
    const human: Human = {
      ...denyAll,
      approve: async ({ reason }) => {
        asked.push(reason);
        return { allow: false, reason: 'no' };
      },
    };
    const fetching = [calls('1', 'fetch_url', { url: 'https://garden.example/?a=1' }), done('tool_use')];
    const name = '.env';
    const file = { kind: 'text', name, path: `/beds/${name}`, language: '', text: 'A=1' } as const;
    for (const attachments of [[], [file]])
      await run(open([fetching, [says('k'), done()]]).engine, { ...sow, attachments }, human);
    assert.equal(asked.length, 2);
    assert.doesNotMatch(asked[0] ?? '', /\.env/);
    assert.match(asked[1] ?? '', /\.env/);
  });

  it('counts no time in which it waits for the person', async () => {
    let waited = 0;
    const human: Human = {
      ...denyAll,
      approve: async () => {
        const since = performance.now();
        await wait(300);
        waited += performance.now() - since;
        return { allow: false, reason: 'no' };
      },
    };
    const fetching = [calls('1', 'fetch_url', { url: 'https://garden.example/' }), done('tool_use')];
    const { engine } = open([fetching, [says('k'), done()]]);
    const since = performance.now();
    const { end } = await run(engine, sow, human);
    assert.ok(waited > 0);
    assert.ok(end.durationMs <= performance.now() - since - waited + 1);
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
