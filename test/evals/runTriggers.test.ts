/** Requests of a trigger.json are measured against the skills that compete, and a broken file is named before anything is measured. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import { TaughtLines } from '../../src/engine/routing/teaching.ts';
import { skillCalled } from '../../src/engine/skills/catalog.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { draftTriggers } from '../../src/evals/draftTriggers.ts';
import { runTriggers, type TriggerFigures, wilson } from '../../src/evals/runTriggers.ts';
import { readTriggers, splitText, triggerFileOf } from '../../src/evals/triggerFile.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const shipped = fileURLToPath(new URL('../../media/demo/skills', import.meta.url));

describe('triggers', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'skills/home/skills/water/SKILL.md':
        '---\ndescription: Waters the tomatoes and other plants in the garden. Use it for "water the tomatoes" or "soak the flower beds".\n---\nB',
      'skills/home/skills/mow/SKILL.md': '---\ndescription: Mows the lawn. Say "mow the lawn" to it.\n---\nB',
    });
  });
  afterEach(() => folder.remove());

  const file = 'skills/home/skills/water/evals/trigger.json';
  const dir = (): string => join(folder.path, 'skills/home/skills/water');

  async function measure(skillsDir: string, name: string): Promise<TriggerFigures> {
    const agents = discoverAgents(
      loadConfig({ env: { TELOS_SKILLS_DIR: skillsDir }, home: folder.path, cwd: folder.path }),
    );
    const known = skillCalled(name, agents);
    assert.ok(known);
    const measured = [{ ...known, triggers: readTriggers(known.skill.dir) ?? [] }];
    const settings = {
      mode: 'local',
      provider: async () => undefined,
      taught: new TaughtLines(folder.path),
    } as const;
    for await (const figures of runTriggers(measured, () => agents, settings, new AbortController().signal))
      return figures;
    throw new Error('nothing was measured');
  }

  it('says what ran, what was offered, and which words decided', async () => {
    folder.add({
      [file]: JSON.stringify([
        { query: 'please water the tomatoes in the garden', should_trigger: true },
        { query: 'cut the lawn around the tomatoes: mow the lawn', should_trigger: true },
        { query: 'order me a pizza', should_trigger: true },
        { query: 'mow the lawn', should_trigger: false, expect: 'mow' },
      ]),
    });
    const { results, recall, quiet } = await measure(join(folder.path, 'skills'), 'water');
    assert.deepEqual(
      results.map(({ passed, ran }) => [passed, ran?.skill]),
      [
        [true, 'water'],
        [false, 'mow'],
        [false, undefined],
        [true, 'mow'],
      ],
    );
    assert.equal(results[1]?.lead?.skill.skill, 'mow');
    assert.ok(results[1]?.lead?.words.includes('lawn'));
    assert.deepEqual([recall?.passed, recall?.n, quiet?.passed, quiet?.n], [1, 3, 1, 1]);
  });

  it('leaves the file of the measured skill out of the index, or each request would find itself', async () => {
    const query = 'zap the quux on the veranda';
    folder.add({ [file]: JSON.stringify([{ query, should_trigger: true }]) });
    const { results } = await measure(join(folder.path, 'skills'), 'water');
    assert.deepEqual([results[0]?.passed, results[0]?.offered], [false, []]);
  });

  it('names the line of what is wrong in a file', () => {
    const entry = '{"query": "a b", "should_trigger": true}';
    for (const [text, wanted] of [
      ['[\n{"query": "a"\n"b"]', /trigger\.json:3: this is not JSON/],
      ['{}', /:1: a list is expected/],
      [`[\n${entry},\n{"query": " ", "should_trigger": true}]`, /entry 2 has no "query"/],
      [`[\n${entry},\n{"query": "c", "should_trigger": "yes"}]`, /:3: entry 2 needs "should_trigger"/],
      [`[\n${entry},\n\n${entry}]`, /:4: this request is in the file twice/],
      ['[{"query": "c", "should_trigger": true, "split": "test"}]', /:1: entry 1 has a "split"/],
      ['[{"query": "c", "should_trigger": true, "expect": "x"}]', /:1: entry 1 has an "expect"/],
    ] as const) {
      folder.add({ [file]: text });
      assert.throws(() => readTriggers(dir()), wanted);
    }
    folder.add({ 'skills/home/skills/mow/evals/trigger.json/inside': '' });
    assert.throws(() => readTriggers(join(folder.path, 'skills/home/skills/mow')), /cannot be read/);
  });

  it('divides a file the same way each time, and keeps the rest of it', () => {
    const cases = Array.from({ length: 20 }, (_, at) => ({
      query: `do ${at}`,
      should_trigger: at % 2 === 0,
      note: at,
    }));
    const once = splitText(JSON.stringify(cases));
    assert.equal(splitText(JSON.stringify(cases)), once);
    assert.equal(splitText(once), once);
    const split = JSON.parse(once) as { split: string; should_trigger: boolean; note: number }[];
    assert.deepEqual(
      split.map(({ note }) => note),
      cases.map(({ note }) => note),
    );
    for (const kind of [true, false])
      assert.equal(split.filter(one => one.should_trigger === kind && one.split === 'train').length, 6);
  });

  it('drafts requests from what a skill and its neighbours quote', async () => {
    const agents = discoverAgents(
      loadConfig({
        env: { TELOS_SKILLS_DIR: join(folder.path, 'skills') },
        home: folder.path,
        cwd: folder.path,
      }),
    );
    const known = skillCalled('water', agents);
    assert.ok(known);
    assert.deepEqual(await draftTriggers(known.skill, agents), [
      { query: 'water the tomatoes', shouldTrigger: true },
      { query: 'soak the flower beds', shouldTrigger: true },
      { query: 'mow the lawn', shouldTrigger: false, expect: 'mow' },
    ]);
  });

  it("gives Wilson's interval, also for none and all", () => {
    const rounded = (passed: number, n: number): number[] =>
      Object.values(wilson(passed, n)).map(bound => Math.round(bound * 1000));
    assert.deepEqual(
      [rounded(8, 10), rounded(0, 10), rounded(10, 10)],
      [
        [490, 943],
        [0, 278],
        [722, 1000],
      ],
    );
  });

  for (const name of ['kickoff', 'shutdown', 'weekly-summary'])
    it(`reaches the shipped skill ${name} by each of its requests, and by no other`, async () => {
      const { results } = await measure(shipped, name);
      const failed = results.filter(({ passed }) => !passed).map(({ query }) => query);
      assert.deepEqual([failed, results.length], [[], 16]);
      assert.ok(readFileSync(triggerFileOf(join(shipped, 'kairos/skills', name)), 'utf8').length > 0);
    });
});
