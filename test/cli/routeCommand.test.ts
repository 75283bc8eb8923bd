import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type CliHome, cliHome } from './cliProcess.ts';

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

  it('names the likely skills with exit 1 if none is sure, and a misspelt one', async () => {
    const { code, stdout } = await home.run(['route', '--json', 'the lawn']);
    const { skill, choices } = JSON.parse(stdout);
    assert.deepEqual([code, skill, choices[0].skill], [1, null, 'mow']);
    assert.match(choices[0].reason.matched, /lawn/);
    const misspelt = await home.run(['route', 'blindz']);
    assert.match(misspelt.stdout, /^Would ask: Did you mean blinds\?/);
  });

  it('says what is missing or wrong', async () => {
    const cases: [string[], number, RegExp][] = [
      [['route'], 2, /Type a request/],
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
