/** `telos teach`: says the price and asks, has a model write, shows, adds and deletes, also what was learned from choices. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos teach', function () {
  this.timeout(30_000);
  let home: CliHome;
  let server: FakeServer;
  beforeEach(async () => {
    home = cliHome({
      'skills/home/skills/water/SKILL.md': '---\ndescription: Waters the beds\n---\nB',
      'skills/home/skills/blinds/SKILL.md': '---\ndescription: Closes the blinds of a window\n---\nB',
    });
    server = await startAnthropicServer({
      turns: ({ body }) =>
        JSON.stringify(body).includes('Skill water')
          ? {
              text: ['1. the flowers are thirsty\n', '2. \u001b[31mgieß die Rosen\u001b[0m\nmy beds are dry'],
            }
          : { text: ['too sunny in here\nI am dazzled\nthe sun is low'] },
    });
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });

  const teach = (...args: string[]) =>
    home.run(['teach', ...args], {
      env: {
        ANTHROPIC_BASE_URL: server.url,
        ANTHROPIC_API_KEY: 'test-key-0123456789',
        LANG: 'de_DE.UTF-8',
        LC_ALL: '',
      },
    });
  const route = async (...words: string[]) => (await home.run(['route', '--mode', 'local', ...words])).stdout;

  it('says what it costs and writes nothing unasked, then writes what routing uses', async () => {
    const asked = await teach();
    assert.equal(asked.code, 1);
    assert.match(asked.stderr, /eight requests in English and eight in German for 2 skills/);
    assert.match(asked.stderr, /costs less than \$0\.01 with anthropic\/claude-haiku-5-5/);
    assert.match(asked.stderr, /Use --yes to write them without being asked/);
    assert.equal(server.requests.length, 0);

    const written = await teach('--yes');
    assert.deepEqual([written.code, server.requests.length], [0, 2]);
    assert.match(written.stderr, /water: 3 requests/);
    assert.match(await route('the flowers are so thirsty'), /^Would run water /);
    const again = await teach('--yes');
    assert.match(again.stderr, /Every skill has its requests already/);
    const { stdout } = await teach('--list', '--json');
    const lists = JSON.parse(stdout) as { skill: string; requests: string[] }[];
    assert.ok(lists.every(({ requests }) => requests.every(request => !request.includes('\u001b'))));
    assert.match((await teach('water', '--list')).stdout, /^water \(home\)\n {2}the flowers are thirsty\n/);
  });

  it('takes an excuse of the model for no requests', async () => {
    await server.close();
    server = await startAnthropicServer({ turns: () => ({ text: ["I'm sorry, I can't help with that."] }) });
    const { code, stderr } = await teach('--yes');
    assert.equal(code, 1);
    assert.match(stderr, /water: none: its answer is not a list of requests/);
    assert.equal((await teach('--list')).stdout.includes('sorry'), false);
  });

  it('adds one of the person’s own, and deletes those of a skill or all', async () => {
    assert.equal(
      (await teach('home:water', '--add', 'the tulips and roses look so sad and thirsty')).code,
      0,
    );
    assert.match(await route('my tulips and roses look sad and thirsty'), /^Would run water /);
    assert.equal((await teach('--add', 'x y')).code, 2);
    assert.match((await teach('nothing', '--list')).stderr, /Skill 'nothing' not found/);
    assert.equal((await teach('water', '--forget')).code, 0);
    assert.doesNotMatch(await route('my tulips and roses look sad and thirsty'), /^Would run water /);
    await teach('blinds', '--add', 'the sun is in my eyes');
    assert.match((await teach('--forget')).stderr, /Deleted the requests of 1 skill/);
    assert.ok(!existsSync(join(home.dataDir, 'routing', 'taught')));
  });

  it('says what is missing for a model, and forgets choices', async () => {
    const { code, stderr } = await home.run(['teach', '--yes'], {
      env: { TELOS_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: '' },
    });
    assert.equal(code, 1);
    assert.match(stderr, /ANTHROPIC_API_KEY/);
    mkdirSync(join(home.dataDir, 'routing'), { recursive: true });
    const choice = { words: ['tulips', 'thirsty'], agent: 'home', skill: 'water' };
    writeFileSync(join(home.dataDir, 'routing', 'choices.jsonl'), JSON.stringify(choice));
    assert.match(
      await route('thirsty tulips'),
      /^Would run water \(home\): chosen by you for these words before/,
    );
    assert.match((await teach('--forget-choices')).stderr, /Forgot 1 choice/);
    assert.match((await teach('--forget-choices')).stderr, /Nothing was learned yet/);
    assert.doesNotMatch(await route('thirsty tulips'), /before/);
  });
});
