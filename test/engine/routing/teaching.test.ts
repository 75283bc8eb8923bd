/** Requests that a model wrote for skills find them, are kept by the file's digest, and harm nothing whatever they are. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { CompletionRequest, Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { type TeachingPlan, writeLines } from '../../../src/engine/routing/teaching.ts';
import type { Skill } from '../../../src/engine/skills/agent.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

/** A model that answers by what it is asked, and remembers that. */
function answering(reply: (about: string) => string | Error): Provider & { asked: CompletionRequest[] } {
  const asked: CompletionRequest[] = [];
  return {
    name: 'anthropic',
    model: 'claude-haiku-4-5',
    asked,
    async *streamCompletion(request): AsyncGenerator<StreamEvent> {
      asked.push(request);
      const said = reply(String(request.messages[0]?.content));
      if (said instanceof Error) throw said;
      for (let at = 0; at < said.length; at += 1000) yield { type: 'text', text: said.slice(at, at + 1000) };
      yield { type: 'done', stopReason: 'end_turn' };
    },
  };
}

describe('teaching', () => {
  let folder: TempFolder;
  const signal = new AbortController().signal;

  beforeEach(() => {
    folder = tempFolder();
    folder.add({
      'skills/sea/skills/tides/SKILL.md': '---\ndescription: Tells high and low water for a harbour\n---\n',
      'skills/sea/skills/ferries/SKILL.md': '---\ndescription: Lists the ferries from a harbour\n---\n',
      'skills/sea/skills/hidden/SKILL.md':
        '---\ndescription: Only by name\ndisable-model-invocation: true\n---\n',
    });
  });
  afterEach(() => folder.remove());

  const open = (model?: Provider): Telos =>
    Telos.open(
      loadConfig({
        env: {
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          TELOS_DATA_DIR: join(folder.path, 'data'),
          TELOS_ROUTING_MODE: 'local',
          TELOS_PROVIDER: model ? 'scripted' : 'replay',
        },
        home: folder.path,
      }),
      model && { providers: { scripted: { model: async () => model.model, create: async () => model } } },
    );
  const skillOf = async (telos: Telos, id: string): Promise<Skill> => {
    const skill = (await telos.agents()).flatMap(({ skills }) => skills).find(each => each.id === id);
    assert.ok(skill);
    return skill;
  };
  const chosen = async (telos: Telos, text: string): Promise<string | undefined> =>
    (await telos.route({ text }, signal)).skill?.id;
  const island = 'could we walk to the island';

  it('plans with a price, writes in two languages, and finds the skill then', async () => {
    const model = answering(about =>
      about.includes('high and low')
        ? '1. can we walk to the island\n- "kommen wir zu Fuß zur Insel"\nis it dry out there'
        : '* take a boat\n* cross the water\n* sail away',
    );
    const telos = open(model);
    assert.equal(await chosen(telos, island), undefined);
    const plan = await telos.teaching.plan('de-AT');
    assert.ok(plan);
    assert.deepEqual(plan.skills.map(({ skill }) => skill.id).sort(), ['ferries', 'tides']);
    assert.deepEqual([plan.model, plan.language], ['claude-haiku-4-5', 'German']);
    assert.ok(plan.tokens > 200 && plan.tokens < 2000, `${plan.tokens} tokens`);
    const done: string[] = [];
    await telos.teaching.teach(plan, signal, ({ id }, result) => done.push(`${id} ${result}`));
    assert.deepEqual(done.sort(), ['ferries 3', 'tides 3']);
    assert.match(model.asked[0]?.system ?? '', /eight in German/);
    assert.equal(await chosen(telos, island), 'tides');
    assert.equal(await chosen(open(), island), 'tides');
    assert.equal((await telos.teaching.plan('de'))?.skills.length, 0);
    assert.equal((await telos.teaching.plan('en', await skillOf(telos, 'tides')))?.language, undefined);
  });

  it('estimates what priced models cost, and has no plan for a recording', async () => {
    assert.equal(await open().teaching.plan('de'), undefined);
    const telos = Telos.open(
      loadConfig({
        env: {
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          TELOS_DATA_DIR: join(folder.path, 'data'),
          ANTHROPIC_API_KEY: 'sk-test-key-12345678',
          TELOS_PROVIDER: 'anthropic',
        },
        home: folder.path,
      }),
    );
    const plan = await telos.teaching.plan(undefined);
    assert.ok(
      plan && typeof plan.cost === 'number' && plan.cost > 0.00005 && plan.cost < 0.01,
      `${plan?.cost}`,
    );
  });

  it('keeps lines until the file changes, and lets a person change and delete them', async () => {
    const telos = open();
    const skill = await skillOf(telos, 'tides');
    await telos.teaching.set(skill, [
      'can we walk to the island',
      'x'.repeat(900),
      ' ',
      'can we  walk to the island',
    ]);
    assert.deepEqual(telos.teaching.linesOf(skill), ['can we walk to the island', 'x'.repeat(200)]);
    assert.equal(await chosen(telos, island), 'tides');
    const [name = ''] = readdirSync(join(folder.path, 'data', 'routing', 'taught'));
    assert.match(name, /^[0-9a-f]{64}\.json$/);
    await telos.teaching.set(skill, []);
    assert.equal(await chosen(telos, island), undefined);
    await telos.teaching.set(skill, ['can we walk to the island']);
    writeFileSync(skill.file, '---\ndescription: Tells low water\n---\n');
    telos.refresh();
    assert.deepEqual(telos.teaching.linesOf(skill), []);
    assert.equal(await chosen(telos, island), undefined);
    assert.equal(await telos.teaching.forget(), 1);
    assert.equal(existsSync(join(folder.path, 'data', 'routing', 'taught')), false);
  });

  it('bounds what a model says, and takes markup and steering signs out of it', async () => {
    const skill = await skillOf(open(), 'tides');
    const lines = (reply: string) =>
      writeLines(
        answering(() => reply),
        skill,
        undefined,
        signal,
      );
    const many = await lines(Array.from({ length: 10_000 }, (_, at) => `request number ${at}`).join('\n'));
    assert.equal(many.length, 16);
    const endless = answering(() => 'y'.repeat(50_000_000));
    await assert.rejects(writeLines(endless, skill, undefined, signal), /not a list of requests/);
    const dirty =
      '```json\n# Requests\n<script>alert(1)</script>when is **flood**\n1. \u001b[31mred\u001b[0m \u202etide\nhigh water\n```\n---';
    const said = await lines(dirty);
    assert.ok(
      said.every(line => !/[<>\u001b\u202e`]/.test(line)),
      said.join('|'),
    );
    assert.equal(said.length, 3);
    await assert.rejects(lines('```\n\n'), /no request/);
    for (const excuse of [
      "I'm sorry, I can't help with that.",
      'I cannot.\n\nPlease ask for something else.',
    ])
      await assert.rejects(lines(excuse), /not a list of requests/);
  });

  it('keeps what was written when the model fails in between', async () => {
    let answers = 0;
    const telos = open(
      answering(() => (answers++ === 0 ? 'go to the island\nwalk\nwade' : new Error('no more money'))),
    );
    const plan = (await telos.teaching.plan(undefined)) as TeachingPlan;
    const failed: string[] = [];
    await telos.teaching.teach(plan, signal, (_, result) => {
      if (result instanceof Error) failed.push(result.message);
    });
    assert.deepEqual(failed, ['no more money']);
    assert.equal((await telos.teaching.plan(undefined))?.skills.length, 1);
  });

  it('does not let lines that say everything draw other requests to them', async () => {
    const telos = open();
    const everything =
      'anything help please do make write show find run harbour water ferries list boat island plan';
    const greedy = Array.from({ length: 16 }, (_, at) => `${everything} ${at}`);
    await telos.teaching.set(await skillOf(telos, 'tides'), greedy);
    assert.equal(await chosen(telos, 'list the ferries from the harbour'), 'ferries');
    for (const talk of [
      'please help me with anything',
      'make it so',
      'what do you think',
      'show me something nice',
    ])
      assert.equal(await chosen(telos, talk), undefined, talk);
  });

  it('takes a broken file of lines for none', async () => {
    const telos = open();
    const skill = await skillOf(telos, 'tides');
    await telos.teaching.set(skill, ['can we walk to the island']);
    const place = join(folder.path, 'data', 'routing', 'taught');
    const [name = ''] = readdirSync(place);
    for (const text of [
      '{"lines": [',
      'null',
      '{"lines": {"0": "x"}}',
      '{"lines": [null, 3, {"a": 1}]}',
      '',
    ]) {
      writeFileSync(join(place, name), text);
      telos.refresh();
      assert.deepEqual(telos.teaching.linesOf(skill), [], text);
      assert.equal(await chosen(telos, island), undefined);
    }
    assert.ok(readFileSync(skill.file, 'utf8').includes('high and low'));
  });
});
