import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos eval', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({
      'skills/home/skills/water/SKILL.md':
        '---\ndescription: Waters the tomatoes and other plants. Use it for "water the tomatoes" or "soak the flower beds".\n---\nB',
      'skills/home/skills/mow/SKILL.md': '---\ndescription: Mows the lawn. Say "mow the lawn" to it.\n---\nB',
    });
  });
  afterEach(() => home.remove());

  const file = 'skills/home/skills/water/evals/trigger.json';

  it('drafts a file, measures it, and exits with 1 where a request runs another skill', async () => {
    assert.match(
      (await home.run(['eval'])).stderr,
      /no evals\/trigger\.json in any skill\. `telos eval init <skill>`/,
    );
    const drafted = await home.run(['eval', 'init', 'water']);
    assert.deepEqual(
      [drafted.code, /2 that should run it, 1 that should not/.test(drafted.stdout)],
      [0, true],
    );
    const passing = await home.run(['eval', 'water']);
    assert.equal(passing.code, 0, passing.stdout);
    assert.match(passing.stdout, /water \(home\)[\s\S]*or offer it first +2\/2 +100% +\(34 to 100%\)/);
    home.folder.add({
      [file]:
        '[\n  {"query": "mow the lawn, please", "should_trigger": true},\n  {"query": "soak the flower beds", "should_trigger": true}\n]\n',
    });
    const failing = await home.run(['eval', 'home:water']);
    assert.equal(failing.code, 1);
    assert.match(failing.stdout, /✗ line 2: "mow the lawn, please" ran mow \(home\)/);
    assert.equal((await home.run(['eval', 'init', 'water'])).code, 1);
  });

  it('reads and writes nothing where a link of the pack leads out of the skill', async () => {
    const outside = join(home.folder.path, 'outside');
    mkdirSync(outside);
    symlinkSync(outside, join(home.folder.path, 'skills/home/skills/water/evals'));
    const drafted = await home.run(['eval', 'init', 'water']);
    assert.deepEqual([drafted.code, readdirSync(outside)], [1, []]);
    const text = '[{"query": "soak the flower beds", "should_trigger": true}]';
    writeFileSync(join(outside, 'trigger.json'), text);
    const split = await home.run(['eval', '--split', 'water']);
    assert.match(split.stderr, /leads out of the skill's folder/);
    assert.deepEqual([split.code, readFileSync(join(outside, 'trigger.json'), 'utf8')], [2, text]);
  });

  it('measures among three hundred skills without opening a socket, the same each time', async () => {
    const words = 'amber basket copper dahlia ember fiddle garnet harbor indigo jasper kettle lantern'.split(
      ' ',
    );
    const named = Array.from({ length: 300 }, (_, at): [string, string] => [
      `skills/many/skills/s${at}/SKILL.md`,
      `---\ndescription: Handles the ${words[at % 12]} ${words[(at * 7 + 1) % 12]} number ${at}\n---\nB`,
    ]);
    const queries = Array.from({ length: 20 }, (_, at) => ({
      query: at % 2 === 0 ? `soak the flower beds ${at}` : `the ${words[at % 12]} ${at} please`,
      should_trigger: at % 2 === 0,
    }));
    home.folder.add({ ...Object.fromEntries(named), [file]: JSON.stringify(queries) });
    const noNetwork = fileURLToPath(new URL('../fakes/noNetwork.mjs', import.meta.url));
    const measure = async (): Promise<object> => {
      const { code, stdout, stderr } = await home.runProcess(['eval', '--triggers', 'water', '--json'], {
        env: { NODE_OPTIONS: `--import=${noNetwork}` },
      });
      assert.ok(code === 0 || code === 1, stderr);
      const [{ msPerRequest, ...figures }] = JSON.parse(stdout).skills;
      assert.equal(typeof msPerRequest, 'number');
      return figures;
    };
    const first = await measure();
    assert.deepEqual(await measure(), first);
  });

  it('measures a folder beside what is installed, or alone, and prints JSON', async () => {
    home.folder.add({
      'work/lib/sprinkle/SKILL.md': '---\ndescription: Sprinkles flower beds with rain water\n---\nB',
      'work/lib/sprinkle/evals/trigger.json': '[{"query": "soak the flower beds", "should_trigger": true}]',
    });
    const beside = await home.run(['eval', 'lib', '--json']);
    const { skills } = JSON.parse(beside.stdout);
    assert.deepEqual([beside.code, skills[0].results[0].ran], [1, { agent: 'home', skill: 'water' }]);
    const alone = JSON.parse((await home.run(['eval', 'lib', '--among', 'agent', '--json'])).stdout);
    assert.notEqual(alone.skills[0].results[0].ran?.skill, 'water');
  });

  it('keeps requests for validation from the routing, and says what is wrong in a file with exit 2', async () => {
    const query = 'zap the quux on the veranda';
    home.folder.add({ [file]: JSON.stringify([{ query, should_trigger: true, split: 'validation' }]) });
    assert.equal((await home.run(['route', query])).code, 1);
    home.folder.add({ [file]: JSON.stringify([{ query, should_trigger: true }]) });
    assert.equal((await home.run(['route', query])).code, 0);
    assert.equal((await home.run(['eval', '--split', 'water'])).code, 1);
    assert.match(readFileSync(join(home.folder.path, file), 'utf8'), /"split": "train"/);
    home.folder.add({ [file]: '[{"query": "a"}]' });
    const { code, stderr } = await home.run(['eval', 'water']);
    assert.deepEqual([code, /trigger\.json:1: entry 1 needs "should_trigger"/.test(stderr)], [2, true]);
    assert.equal((await home.run(['eval', 'nonsense'])).code, 2);
  });
});
