import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RouteBenchmark } from '../../src/engine/routing/routeBenchmark.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const fixtures = fileURLToPath(new URL('../fixtures/routing/', import.meta.url));

describe('telos route', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({
      'skills/home/skills/water-plants/SKILL.md':
        '---\ndescription: Waters the tomatoes and other plants in the garden\n---\nB',
      'skills/home/skills/blinds/SKILL.md': '---\ndescription: Closes the blinds of a window\n---\nB',
      'skills/home/skills/mow/SKILL.md': '---\ndescription: Mows the lawn of the garden\n---\nB',
      'skills/home/skills/lamp/SKILL.md': '---\ndescription: Switches lamps in the garden\n---\nB',
    });
  });
  afterEach(() => home.remove());

  it('says rule, score, runner-up and the best three, and runs nothing', async () => {
    const { code, stdout } = await home.run(['route', 'water', 'the', 'tomatoes', 'in', 'the', 'garden']);
    assert.equal(code, 0);
    assert.match(stdout, /^Would run water-plants \(home\): best match for your words: .*tomatoes/);
    assert.match(stdout, /\n\(rule index, score [\d.]+, runner-up (mow|lamp) of home with [\d.]+\)\n/);
    assert.match(stdout, /\n +Skill +Agent +Score +Words\n1\. +water-plants +home +[\d.]+ +\S/);
    assert.equal(stdout.trimEnd().split('\n').length, 7);
    assert.ok(!existsSync(join(home.dataDir, 'logs')));
  });

  it('gives the same as JSON, for a name too', async () => {
    const { stdout } = await home.run(['route', '--json', 'blinds']);
    const { agent, skill, reason, ranking } = JSON.parse(stdout);
    assert.deepEqual([agent, skill, reason.rule, ranking[0].skill], ['home', 'blinds', 'name', 'blinds']);
  });

  it('says with exit 1 that nothing fits', async () => {
    const { code, stdout } = await home.run(['route', 'order me a pizza']);
    assert.deepEqual([code, stdout.split('\n')[0]?.slice(0, 18)], [1, 'Would run nothing:']);
    const json = await home.run(['route', '--json', 'order me a pizza']);
    assert.deepEqual([json.code, JSON.parse(json.stdout).skill], [1, null]);
  });

  it('measures sentences, and asks no model unless told to', async () => {
    const files = ['--pairs', 'pairs.jsonl', '--packs', 'packs.json', '--negatives', 'negatives.jsonl'];
    const args = [
      'route',
      ...files.map(part => (part.includes('.') ? join(fixtures, part) : part)),
      '--corpus',
      join(fixtures, 'skills'),
    ];
    const server = await startAnthropicServer({ turns: [{ text: ['NONE'] }] });
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
    try {
      const { code, stdout } = await home.run([...args, '--json'], { env });
      const { overall, packs } = JSON.parse(stdout) as RouteBenchmark;
      assert.deepEqual([code, overall.n, Object.keys(packs)], [0, 27, ['indoors', 'outdoors']]);
      assert.ok(overall.top1 >= 0.9);
      assert.equal(server.requests.length, 0);
      const asked = await home.run([...args, '--mode', 'model'], { env });
      assert.match(asked.stdout, /^Pack +Sentences[\s\S]*\nAll +27 /);
      assert.ok(server.requests.length > 0);
    } finally {
      await server.close();
    }
  });

  it('measures conversations', async () => {
    const lines = [
      { second: 'and close the bedroom blinds at sunset', expect: 'switch', skill: 'home/blinds' },
      { second: 'a bit longer please', expect: 'stay' },
    ].map(line => JSON.stringify({ pack: 'indoors', firstSkill: 'home/irrigation', ...line }));
    const file = join(home.workDir, 'conversations.jsonl');
    writeFileSync(file, lines.join('\n'));
    const measured = ['--conversations', file, '--packs', join(fixtures, 'packs.json')];
    const where = ['--corpus', join(fixtures, 'skills'), '--mode', 'local'];
    const { code, stdout } = await home.run(['route', ...measured, ...where, '--json']);
    const { n, switched, stayed, wrongSwitch } = JSON.parse(stdout).overall;
    assert.deepEqual([code, n, switched, stayed, wrongSwitch], [0, 2, 1, 1, 0]);
  });

  it('names the likely skills with exit 1 if none is sure, and a misspelt one', async () => {
    const { code, stdout } = await home.run(['route', '--json', 'something for the lawn']);
    const { skill, choices } = JSON.parse(stdout);
    assert.deepEqual([code, skill, choices[0].skill], [1, null, 'mow']);
    assert.match(choices[0].reason.matched, /lawn/);
    const misspelt = await home.run(['route', 'blindz']);
    assert.match(misspelt.stdout, /^Would ask: Did you mean blinds\?/);
    const { stdout: help } = await home.run(['route', '--help']);
    assert.doesNotMatch(help, /--pairs|--conversations/);
  });

  it('says what is missing or wrong', async () => {
    const cases: [string[], number, RegExp][] = [
      [['route'], 2, /Type a request/],
      [['route', '--pairs', 'a'], 2, /give --pairs or --conversations, with --packs and --corpus/],
      [['route', 'x', '--pairs', 'a', '--packs', 'b', '--corpus', 'c'], 2, /Type a request/],
      [['route', '--pairs', 'a', '--packs', 'b', '--corpus', 'c'], 1, /cannot be read/],
      [['route', '--mode', 'nope', 'x'], 2, /Allowed choices are auto, name, local, model/],
      [['route', '--agent', 'nope', 'x'], 1, /Agent 'nope' not found/],
    ];
    for (const [args, code, said] of cases) {
      const ran = await home.run(args);
      assert.equal(ran.code, code, args.join(' '));
      assert.match(ran.stderr, said);
    }
  });
});
