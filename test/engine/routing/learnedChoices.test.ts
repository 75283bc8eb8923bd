/** What a person chose for some words finds it again, is kept safely, and is forgotten when wanted. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadConfig } from '../../../src/engine/config.ts';
import { writeWhole } from '../../../src/engine/files/atomicWrite.ts';
import { appendOwnLine } from '../../../src/engine/files/jsonLines.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { LearnedChoices } from '../../../src/engine/routing/learnedChoices.ts';
import { Router } from '../../../src/engine/routing/route.ts';
import { findSkill } from '../../../src/engine/routing/routeName.ts';
import type { FileAgent } from '../../../src/engine/skills/discover.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { SkillRef } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { skipBecause } from '../../skipBecause.ts';

describe('learned choices', () => {
  let folder: TempFolder;
  const signal = new AbortController().signal;
  const file = () => join(folder.path, 'data', 'routing', 'choices.jsonl');

  beforeEach(() => {
    folder = tempFolder();
    folder.add({
      'skills/sea/skills/tides/SKILL.md': '---\ndescription: Tells high and low water for a harbour\n---\n',
      'skills/sea/skills/ferries/SKILL.md':
        '---\ndescription: Lists ferries, boats and departures from a harbour\n---\n',
      'skills/wool/skills/knitting/SKILL.md':
        '---\ndescription: Designs knitting patterns for a jumper\n---\n',
    });
  });
  afterEach(() => folder.remove());

  const open = (env: Record<string, string> = {}): Telos =>
    Telos.open(
      loadConfig({
        env: {
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          TELOS_DATA_DIR: join(folder.path, 'data'),
          TELOS_ROUTING_MODE: 'local',
          ...env,
        },
        home: folder.path,
      }),
    );
  const routed = async (telos: Telos, text: string): Promise<string | undefined> => {
    const { agent, skill, reason } = { reason: undefined, ...(await telos.route({ text }, signal)) };
    return skill && `${agent.name}/${skill.id} ${reason?.rule}`;
  };
  const tides = { agent: 'sea', skill: 'tides' };
  const ferries = { agent: 'sea', skill: 'ferries' };

  it('runs what was chosen for the same words, and offers it for like ones, in another window too', async () => {
    const [one, other] = [open(), open()];
    const text = 'when can we walk over to the island?';
    assert.equal(await routed(other, text), undefined);
    await one.learnChoice({ text, skill: tides });
    assert.equal(await routed(other, 'When can we walk over to the island'), 'sea/tides learned');
    const like = 'can we walk over to the island on monday';
    assert.equal((await other.ranking({ text: like }))[0]?.skill.id, 'tides');
    await one.learnChoice({ text, skill: ferries });
    assert.equal(await routed(other, text), 'sea/ferries learned');
    assert.equal(await one.forgetChoices(), 1);
    assert.equal(await routed(other, text), undefined);
    assert.equal(existsSync(file()), false);
  });

  it('keeps a request in the words of another skill with that skill', async () => {
    const telos = open();
    const text = 'design a knitting pattern for a jumper with stripes';
    assert.equal(await routed(telos, text), 'wool/knitting name');
    await telos.learnChoice({ text: 'a pattern for the boat to the harbour with stripes', skill: ferries });
    await telos.learnChoice({ text: 'jumper pattern at high water', skill: tides });
    assert.equal(await routed(telos, 'designs and patterns for a jumper'), 'wool/knitting index');
  });

  it('lets a stay count for that conversation alone', async () => {
    const telos = open();
    const text = 'list the boats and departures from the harbour too';
    const agents = (await telos.agents()) as readonly FileAgent[];
    const choices = new LearnedChoices(join(folder.path, 'data'), writeWhole, appendOwnLine);
    const router = new Router({ mode: 'local', provider: async () => undefined, choices });
    const next = async (running: SkillRef): Promise<string | undefined> => {
      const match = findSkill(agents, running);
      assert.ok(match);
      return (await router.next(match, { text, all: agents, signal })).skill?.id;
    };
    const knitting = { agent: 'wool', skill: 'knitting' };
    assert.equal(await next(tides), 'ferries');
    await telos.learnChoice({ text, skill: tides, conversation: { skill: tides, messages: [] } });
    assert.equal(await next(tides), 'tides');
    assert.equal(await next(knitting), 'ferries');
    assert.equal(await routed(telos, text), 'sea/ferries index');
    await telos.learnChoice({ text, skill: ferries, conversation: { skill: tides, messages: [] } });
    assert.equal(await next(tides), 'ferries');
  });

  it('learns from a run that the person chose a skill for, and not with the setting off', async () => {
    const text = 'plot a way across the mudflats';
    for (const [env, kept] of [
      [{ TELOS_ROUTING_LEARN: 'off' }, false],
      [{}, true],
    ] as const) {
      const telos = open(env);
      for await (const _ of telos.run({ text, skill: tides, isChoice: true }, denyAll, signal));
      for (let tries = 0; tries < 200 && !existsSync(file()) && kept; tries++)
        await new Promise(resolve => setTimeout(resolve, 10));
      assert.equal(existsSync(file()), kept);
    }
    assert.equal(await routed(open({ TELOS_ROUTING_LEARN: 'off' }), text), undefined);
    assert.equal(await routed(open(), text), 'sea/tides learned');
  });

  it('keeps words alone, and none that may be a key', async () => {
    const telos = open({ ANTHROPIC_API_KEY: 'correcthorsebattery' });
    const hidden = 'hQx9bV27Lm3kTz81';
    await telos.learnChoice({ text: `walk with ${hidden} and correcthorsebattery to island`, skill: tides });
    const kept = readFileSync(file(), 'utf8');
    assert.doesNotMatch(kept, /hqx9|correcthorse/i);
    assert.match(kept, /"island"/);
    if (process.platform !== 'win32') assert.equal(statSync(file()).mode & 0o777, 0o600);
  });

  it('stays small, whatever is said', async () => {
    const choices = new LearnedChoices(join(folder.path, 'data'), writeWhole, appendOwnLine);
    await choices.learn(`${'word'.repeat(1_000_000)} harbour`, tides, false);
    await choices.learn(
      Array.from({ length: 5_000 }, (_, at) => `a${'bcdfghjklm'[at % 10]}${at % 89}x`).join(' '),
      tides,
      false,
    );
    const letters = (at: number): string =>
      [...String(at)].map(digit => 'abcdefghij'[Number(digit)]).join('');
    for (let at = 0; at < 450; at++) await choices.learn(`harbour ${letters(at)}`, tides, false);
    await choices.learn('please do it again', tides, false);
    assert.equal(choices.all().length, 400);
    assert.ok(statSync(file()).size < 100_000);
    assert.deepEqual(choices.all().at(-1)?.words, ['harbour', letters(449)]);
  });

  it('takes a broken, a foreign and an endless file for none, and writes a good one in its place', async () => {
    const choices = new LearnedChoices(join(folder.path, 'data'), writeWhole, appendOwnLine);
    const good = '{"words": ["sea"], "agent": "sea", "skill": "tides"}';
    const odd = [
      '{"words": ["sea"',
      '[]\nnull\n7\n{}',
      '{"words": "x", "agent": "sea", "skill": "tides"}',
      '{"words": ["sea"], "agent": {}, "skill": "tides"}',
      `{"words": ["sea"], "agent": "sea", "skill": "${'x'.repeat(300)}"}`,
      `${good}\n`.repeat(30_000),
      '\0'.repeat(50),
    ];
    for (const text of odd) {
      folder.add({ 'data/routing/choices.jsonl': text });
      assert.deepEqual(choices.all(), [], text.slice(0, 40));
    }
    const half = `{"words": [1, "sea", "${'y'.repeat(99)}"], "agent": "sea", "skill": "tides"}`;
    folder.add({ 'data/routing/choices.jsonl': `${odd[0]}\n${half}\n${odd[0]}` });
    assert.deepEqual(choices.all(), [{ words: ['sea'], agent: 'sea', skill: 'tides' }]);
    await choices.learn('walk to the island', tides, false);
    assert.equal(choices.all().length, 2);
    for (const [lines, kept] of [
      [6_000, 2],
      [30_000, 1],
    ] as const) {
      folder.add({ 'data/routing/choices.jsonl': `${good}\n`.repeat(lines) });
      await choices.learn('walk to the island', tides, false);
      assert.equal(choices.all().length, kept);
      assert.ok(statSync(file()).size < 1_000);
    }
  });

  it('survives a folder in the place of its file', async () => {
    folder.add({ 'data/routing/choices.jsonl/inside.txt': '' });
    const choices = new LearnedChoices(join(folder.path, 'data'), writeWhole, appendOwnLine);
    assert.deepEqual(choices.all(), []);
    await assert.rejects(choices.learn('walk to the island', tides, false));
    assert.equal(await routed(open(), 'walk to the island'), undefined);
  });

  it('survives a link in the place of its file', function () {
    if (process.platform === 'win32') return skipBecause(this, 'not on Windows');
    folder.add({ 'elsewhere/routing/.keep': '' });
    symlinkSync('/dev/zero', join(folder.path, 'elsewhere', 'routing', 'choices.jsonl'));
    assert.deepEqual(new LearnedChoices(join(folder.path, 'elsewhere'), writeWhole, appendOwnLine).all(), []);
  });

  it('loses no choice when windows keep theirs at the same time', async () => {
    const module = (path: string): string => new URL(`../../../src/engine/${path}`, import.meta.url).href;
    const script = (word: string): string => `
      import { LearnedChoices } from ${JSON.stringify(module('routing/learnedChoices.ts'))};
      import { writeWhole } from ${JSON.stringify(module('files/atomicWrite.ts'))};
      import { appendOwnLine } from ${JSON.stringify(module('files/jsonLines.ts'))};
      const choices = new LearnedChoices(${JSON.stringify(join(folder.path, 'data'))}, writeWhole, appendOwnLine);
      const words = ['anchor', 'beacon', 'cargo', 'dinghy', 'estuary', 'fjord'];
      for (const each of words) await choices.learn('${word} ' + each, { agent: 'sea', skill: 'tides' }, false);`;
    const run = promisify(execFile);
    await Promise.all(
      ['pilot', 'sailor'].map(word => run(process.execPath, ['--input-type=module', '-e', script(word)])),
    );
    const choices = new LearnedChoices(join(folder.path, 'data'), writeWhole, appendOwnLine).all();
    assert.equal(choices.length, 12);
  });
});
