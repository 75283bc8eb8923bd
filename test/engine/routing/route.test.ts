/** A request comes to the skill it means, by name, by the index or by a model's word; else to none, with suggestions. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig, type RoutingMode } from '../../../src/engine/config.ts';
import type { CompletionRequest, Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { Router } from '../../../src/engine/routing/route.ts';
import { routingProvider } from '../../../src/engine/routing/routeModel.ts';
import type { RouteResult } from '../../../src/engine/routing/routeResult.ts';
import { discoverAgents, type FileAgent } from '../../../src/engine/skills/discover.ts';
import { describeRoute } from '../../../src/protocol/describe.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

/** A model that always says the same, and remembers what it was asked. */
function answering(reply: string | Error): Provider & { asked: CompletionRequest[] } {
  const asked: CompletionRequest[] = [];
  return {
    name: 'test',
    model: 'test',
    asked,
    async *streamCompletion(request): AsyncGenerator<StreamEvent> {
      asked.push(request);
      if (reply instanceof Error) throw reply;
      yield { type: 'text', text: reply };
      yield { type: 'done', stopReason: 'end_turn' };
    },
  };
}

/** Returns the texts of the first question to a model: the list of skills, then the request. */
const shownTo = (model: { asked: CompletionRequest[] }): string[] => {
  const content = model.asked[0]?.messages[0]?.content;
  return Array.isArray(content) ? content.map(block => (block.type === 'text' ? block.text : '')) : [];
};

describe('routing', () => {
  let folder: TempFolder;
  before(() => {
    folder = tempFolder();
  });
  after(() => folder.remove());

  /** Agents of skills; the value is the description, or the whole file where it has a fence. */
  const agentsOf = (skills: Readonly<Record<string, string>>): readonly FileAgent[] => {
    const name = String(Math.random());
    for (const [path, text] of Object.entries(skills)) {
      const [agent = '', skill = ''] = path.split('/');
      const file = join(name, agent, 'skills', skill, 'SKILL.md');
      folder.add({ [file]: text.startsWith('---') ? text : `---\ndescription: ${text}\n---\n` });
    }
    return discoverAgents(
      loadConfig({ env: { TELOS_SKILLS_DIR: join(folder.path, name) }, home: folder.path }),
    );
  };
  const route = (
    text: string,
    agents: readonly FileAgent[],
    { mode = 'auto', model, agent }: { mode?: RoutingMode; model?: Provider; agent?: string } = {},
  ): Promise<RouteResult> =>
    new Router({ mode, provider: async () => model }).route({
      text,
      all: agents,
      agentName: agent,
      signal: new AbortController().signal,
    });
  const chosen = (result: RouteResult): string | undefined =>
    result.skill && `${result.agent.name}/${result.skill.id}`;

  const daily = { 'kairos/kickoff': 'd', 'kairos/shutdown': 'd' };
  const tools = {
    'a/tide-table': 'Tells high and low water for a harbour',
    'a/knitting': 'Designs knitting patterns and counts stitches and yarn',
    'b/birdsong': 'Recognises birds by their song from an audio clip',
  };

  it('asks no model when a name stands in the request', async () => {
    const model = answering('shutdown');
    assert.equal(chosen(await route('run daily kickoff', agentsOf(daily), { model })), 'kairos/kickoff');
    assert.equal(model.asked.length, 0);
  });

  it('prefers a name of a later agent to a model asked about an earlier one', async () => {
    const agents = agentsOf({ 'alpha/digest': 'd', 'beta/frontpage': 'd', 'gamma/frontpage': 'd' });
    const model = answering('digest');
    assert.equal(chosen(await route('frontpage now', agents, { model })), 'beta/frontpage');
    assert.equal(chosen(await route('frontpage now', agents, { model, agent: 'gamma' })), 'gamma/frontpage');
    assert.equal(model.asked.length, 0);
  });

  it('lets a name count in any sentence, whatever else would fit it', async () => {
    const agents = agentsOf({
      'a/ledger': 'Moves cards on boards',
      'a/stitcher': 'Designs knitting patterns and counts stitches and yarn',
    });
    const said = 'count the stitches of the knitting pattern until ledger';
    for (const mode of ['auto', 'name', 'local'] as const)
      assert.equal(chosen(await route(said, agents, { mode })), 'a/ledger', mode);
  });

  it('takes the first agent of two whose skill is named, however well the other fits', async () => {
    const agents = agentsOf({ 'a/tally': 'Adds', 'b/tally': 'Counts the stitches of knitting patterns' });
    assert.equal(chosen(await route('tally the stitches of the knitting pattern', agents)), 'a/tally');
  });

  it('asks the model once, with the list of skills', async () => {
    const model = answering('kickoff');
    const result = await route('begin my day', agentsOf(daily), { model });
    assert.equal(chosen(result), 'kairos/kickoff');
    assert.equal(result.skill && result.reason.rule, 'model');
    const [request] = model.asked;
    assert.equal(model.asked.length, 1);
    assert.equal(request?.maxTokens, 64);
    assert.deepEqual(request.tools, []);
    assert.match(request.system, /skill name.*NONE/s);
    const [list, said] = shownTo(model);
    assert.ok(list?.endsWith('- kickoff: d\n- shutdown: d'), list);
    assert.equal(said, 'User request: begin my day');
  });

  it("forgives the model's quotes, case and full stop, and takes nothing but a name", async () => {
    for (const reply of ['"shutdown"', 'Shutdown.', '`shutdown`\n', '- shutdown', 'Kairos:shutdown'])
      assert.equal(
        chosen(await route('end it', agentsOf(daily), { model: answering(reply) })),
        'kairos/shutdown',
        reply,
      );
    for (const reply of ['NONE', 'none.', 'shut', 'I think shutdown fits', ''])
      assert.equal(
        chosen(await route('end it', agentsOf(daily), { model: answering(reply) })),
        undefined,
        reply,
      );
  });

  it('needs more than the name of a product, and offers its skill for less', async () => {
    const agents = agentsOf({
      ...tools,
      'c/twitter': 'Reads and posts on Twitter',
      'c/slack': 'Sends messages in Slack',
    });
    const outcomes = {
      twitter: 'c/twitter',
      'open twitter': 'c/twitter',
      'please check Twitter for mentions': 'c/twitter',
      'send bob a message in Slack': 'c/slack',
      'Twitter is down again': undefined,
      'twitter oauth for my app': undefined,
      'Slack and Twitter': undefined,
    };
    for (const [text, wanted] of Object.entries(outcomes)) {
      const result = await route(text, agents, { mode: 'local' });
      assert.equal(chosen(result), wanted, text);
      if (!result.skill) assert.match(result.choices[0]?.skill ?? '', /twitter|slack/, text);
    }
  });

  it('finds the skills of an agent in any case', async () => {
    const agents = agentsOf(tools);
    assert.equal(chosen(await route('count the stitches of yarn', agents, { agent: 'A' })), 'a/knitting');
    assert.equal(chosen(await route('knitting', agents, { agent: 'A' })), 'a/knitting');
  });

  it('offers the likeliest skills when the model says that none fits', async () => {
    const result = await route('buy yarn', agentsOf(tools), { model: answering('NONE') });
    assert.deepEqual(!result.skill && result.suggestions[0], { agent: 'a', skill: 'knitting' });
    assert.equal(result.notice, undefined);
  });

  it('lets the index decide, and says why, when the model fails', async () => {
    const model = answering(new Error('out of credit'));
    const result = await route('count the stitches of a pattern in yarn', agentsOf(tools), { model });
    assert.equal(chosen(result), 'a/knitting');
    assert.match(result.notice ?? '', /out of credit/);
    const strange = await route('count the stitches of a pattern in yarn', agentsOf(tools), {
      model: answering('crochet'),
    });
    assert.match(strange.notice ?? '', /crochet/);
  });

  it('tells skills of one name apart in the list', async () => {
    const agents = agentsOf({ 'beta/frontpage': 'headlines', 'gamma/frontpage': 'covers' });
    const model = answering('gamma:frontpage');
    assert.equal(chosen(await route('front matter', agents, { model })), 'gamma/frontpage');
  });

  it('shows a model up to 200 skills whole, and the best 60 of more, always in the same order', async () => {
    const gadgets = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`z/gadget-${n}`, `Gadget ${n}`]));
    const listed = async (count: number, said: string): Promise<string[]> => {
      const model = answering('tide-table');
      const result = await route(said, agentsOf({ ...gadgets(count), ...tools }), { model });
      assert.equal(chosen(result), 'a/tide-table');
      assert.equal(model.asked[0]?.repeatsStart, true);
      const names = /^- ([^:]+):/gm;
      return [...(shownTo(model)[0] ?? '').matchAll(names)].map(match => match[1] ?? '');
    };
    assert.equal((await listed(190, 'low water with my gadget')).length, 193);
    const best = await listed(300, 'low water at the harbour with my gadget');
    assert.equal(best.length, 60);
    assert.deepEqual(best, await listed(300, 'my gadget at the harbour, low water'));
  });

  it('offers two that a model cannot decide between', async () => {
    const result = await route('music on paper', agentsOf(tools), { model: answering('birdsong, knitting') });
    assert.deepEqual(!result.skill && result.choices.map(({ skill, reason }) => [skill, reason.rule]), [
      ['birdsong', 'model'],
      ['knitting', 'model'],
    ]);
  });

  it('goes by the index alone without a model, and explains the choice', async () => {
    const result = await route('recognise the birds of this audio clip', agentsOf(tools));
    assert.equal(chosen(result), 'b/birdsong');
    assert.ok(result.skill);
    assert.equal(result.reason.rule, 'index');
    assert.match(result.reason.matched ?? '', /birds/);
    assert.ok((result.reason.score ?? 0) > 0.2);
  });

  it('abstains, the likeliest skills first, when nothing fits well', async () => {
    const result = await route('buy yarn', agentsOf(tools));
    assert.equal(result.skill, undefined);
    assert.deepEqual(!result.skill && result.suggestions, [
      { agent: 'a', skill: 'knitting' },
      { agent: 'a', skill: 'tide-table' },
      { agent: 'b', skill: 'birdsong' },
    ]);
    assert.equal(chosen(await route('order me a pizza', agentsOf(tools))), undefined);
  });

  it('offers what is told in the past tense, and runs what is ordered in the same words', async () => {
    const agents = agentsOf(tools);
    for (const text of [
      'tide table bored me all evening',
      'the birdsong of the morning woke us up',
      'birdsong published an album',
      'who invented birdsong',
      'is the tide-table skill any good?',
      'I already counted the stitches of that yarn pattern',
    ]) {
      const result = await route(text, agents);
      assert.equal(chosen(result), undefined, text);
      assert.ok(!result.skill && result.choices.length > 0, text);
    }
    for (const [text, skill] of [
      ['show the tide table published by the harbour', 'a/tide-table'],
      ['count the stitches of that yarn pattern', 'a/knitting'],
      ['use the birdsong skill on the recorded clip', 'b/birdsong'],
      ['birdsong of the file named dawn.wav', 'b/birdsong'],
    ] as const)
      assert.equal(chosen(await route(text, agents)), skill, text);
  });

  it('does not take an ordinary word for a misspelt name', async () => {
    const agents = agentsOf({
      ...tools,
      'c/policy': 'Writes rules',
      'c/slides': 'Makes decks',
      'c/fund': 'Money',
    });
    for (const text of ['police', 'who is the police here', 'slices of ham', 'Hund und Katze']) {
      const result = await route(text, agents);
      assert.ok(!result.skill, text);
      assert.deepEqual([result.didYouMean, result.choices], [undefined, []], text);
    }
    const misspelt = await route('pollicy', agents);
    assert.equal(!misspelt.skill && misspelt.didYouMean, 'policy');
  });

  it('leaves alone a skill of whose words only its own everyday name is said in passing', async () => {
    const agents = agentsOf({ ...tools, 'c/tests': 'Runs the tests of a project and tells which failed' });
    for (const text of ['how was the test', 'who wrote these tests'])
      assert.equal(chosen(await route(text, agents)), undefined, text);
    assert.equal(chosen(await route('run the tests of this project', agents)), 'c/tests');
  });

  it('asks no model in the mode `local`, and no index in the mode `name`', async () => {
    const model = answering('knitting');
    assert.equal(chosen(await route('something else', agentsOf(tools), { mode: 'local', model })), undefined);
    const clip = 'recognise the birds of this audio clip';
    assert.equal(chosen(await route(clip, agentsOf(tools), { mode: 'name', model })), undefined);
    assert.equal(model.asked.length, 0);
    // Either is asked where it may be.
    assert.equal(chosen(await route(clip, agentsOf(tools), { mode: 'local', model })), 'b/birdsong');
    await route('something else', agentsOf(tools), { model });
    assert.equal(model.asked.length, 1);
  });

  it('takes an everyday word for a name only where the index agrees', async () => {
    const agents = agentsOf({
      ...tools,
      'c/weather': 'Weather forecast with rain and wind for any town',
    });
    assert.equal(chosen(await route('is the weather forecast for Bergen rain or wind', agents)), 'c/weather');
    assert.equal(chosen(await route("what's the weather like on your side", agents)), undefined);
  });

  it('offers a skill that runs only by its name, and how it runs, but never runs it by itself', async () => {
    const agents = agentsOf({
      ...tools,
      'c/wipe': '---\ndescription: Erases the disk of a laptop\ndisable-model-invocation: true\n---\n',
      'c/shred': 'Shreds a file',
    });
    const text = 'erases the disk of a laptop';
    const result = await route(text, agents);
    assert.equal(chosen(result), undefined);
    const [choice] = (!result.skill && result.choices) || [];
    assert.equal(choice?.skill, 'wipe');
    assert.equal(
      choice && describeRoute(choice.agent, choice.skill, choice.reason),
      'wipe (c): runs as /wipe, fits your words: erases, disk, laptop',
    );
    for (const mode of ['auto', 'local', 'model'] as const)
      assert.equal(chosen(await route(text, agents, { mode, model: answering('wipe') })), undefined, mode);
    const declined = await route('erase the disk of the old laptop', agents, { model: answering('NONE') });
    assert.equal(!declined.skill && declined.choices[0]?.reason.runsAs, '/wipe');
    assert.equal(chosen(await route('/wipe', agents)), 'c/wipe');
  });

  it('routes on Anthropic with a model of its own, elsewhere with the one that runs', async () => {
    const modelOf = async (env: Record<string, string>, name: string, recording = false) => {
      const config = loadConfig({ env, home: folder.path });
      const choice = { name, model: 'usual', why: '', recording };
      return (await routingProvider(config, choice))?.model;
    };
    const specified = { ANTHROPIC_API_KEY: 'k', TELOS_DEFAULTS: 'specified' };
    assert.equal(await modelOf(specified, 'anthropic'), 'claude-sonnet-4-6');
    assert.equal(await modelOf({ ANTHROPIC_API_KEY: 'k' }, 'anthropic'), 'claude-haiku-5-5');
    assert.equal(await modelOf({}, 'ollama'), 'usual');
    assert.equal(await modelOf({ TELOS_ROUTING_MODEL: 'small' }, 'ollama'), 'small');
    assert.equal(await modelOf({}, 'replay', true), undefined);
  });

  it('offers up to three likely skills with their reasons, and the one whose name is misspelt first', async () => {
    const result = await route('buy yarn', agentsOf(tools));
    assert.ok(!result.skill);
    const [choice] = result.choices;
    assert.deepEqual(
      [choice?.skill, choice?.reason.rule, choice?.reason.matched],
      ['knitting', 'index', 'yarn'],
    );
    assert.match(choice?.description ?? '', /knitting patterns/);
    const misspelt = await route('kniting', agentsOf({ ...tools, 'c/yarn': 'Sells yarn' }));
    assert.ok(!misspelt.skill);
    assert.deepEqual([misspelt.didYouMean, misspelt.choices[0]?.reason.rule], ['knitting', 'misspelt']);
    const nothing = await route('order me a pizza', agentsOf(tools));
    assert.deepEqual(!nothing.skill && nothing.choices, []);
  });

  describe('the next message', () => {
    const next = async (text: string, model?: Provider) => {
      const agents = agentsOf(tools);
      const [agent] = agents;
      const skill = agent?.skills.find(({ id }) => id === 'knitting');
      assert.ok(agent && skill);
      const router = new Router({ mode: model ? 'auto' : 'local', provider: async () => model });
      const running = { agent, skill, reason: { rule: 'chosen' } as const };
      return router.next(running, { text, all: agents, signal: new AbortController().signal });
    };

    it('asks a model only if another skill is likely, and goes on if it says the same or none', async () => {
      const model = answering('NONE');
      assert.equal((await next('a bit shorter please', model)).skill?.id, 'knitting');
      assert.equal(model.asked.length, 0);
      assert.equal((await next('and at the harbour of Husum on sunday', model)).skill?.id, 'knitting');
      assert.equal(model.asked.length, 1);
      const other = await next('and at the harbour of Husum on sunday', answering('tide-table'));
      assert.ok(other.skill);
      assert.deepEqual([other.skill.id, other.reason.switchedFrom?.skill], ['tide-table', 'knitting']);
    });

    it('offers a skill that may fit beside the one that goes on', async () => {
      const result = await next('and at the harbour of Husum on sunday');
      assert.ok(result.skill);
      assert.deepEqual([result.skill.id, result.reason.rule], ['knitting', 'continued']);
      assert.deepEqual(result.reason.alsoFits, { agent: 'a', skill: 'tide-table' });
    });

    it('goes on with a message that leans on the last answer, and offers what it mentions', async () => {
      const leaves = await next('tell me the low water at the harbour');
      assert.equal(leaves.skill?.id, 'tide-table');
      for (const text of [
        'does he know the low water at the harbour',
        'the other one was for low water at the harbour',
      ]) {
        const stays = await next(text);
        assert.ok(stays.skill);
        assert.deepEqual([stays.skill.id, stays.reason.alsoFits?.skill], ['knitting', 'tide-table'], text);
      }
      // A word that its own sentence explains, and an order, lean on nothing.
      assert.equal(
        (await next('what is the low water at the harbour and when is theirs')).skill?.id,
        'tide-table',
      );
      assert.equal((await next('show him the low water at the harbour')).skill?.id, 'tide-table');
    });
  });
});
