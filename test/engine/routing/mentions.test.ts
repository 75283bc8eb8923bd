/** A name that is mentioned is not an order: by the grammar of a sentence, in four languages, with and without a model. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadConfig, type RoutingMode } from '../../../src/engine/config.ts';
import type { Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { Router } from '../../../src/engine/routing/route.ts';
import { discoverAgents, type FileAgent } from '../../../src/engine/skills/discover.ts';
import { openSkill, skillFileIn } from '../../../src/engine/skills/skillFile.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/routing/', import.meta.url));
const names = ['deploy', 'commit', 'build', 'review', 'release-notes', 'context', 'tests', 'plan'];

interface Sentence {
  utterance: string;
  lang: string;
  kind: string;
  /** The skill whose name is said, and whether the sentence orders it. */
  names: string;
  runs: boolean;
}
const sentences = (file: string): Sentence[] =>
  readFileSync(`${fixtures}mentions/${file}.jsonl`, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Sentence);

/** A model that always says the same, and counts how often it is asked. */
function answering(reply: string): Provider & { asked: number } {
  return {
    name: 'test',
    model: 'test',
    asked: 0,
    async *streamCompletion(): AsyncGenerator<StreamEvent> {
      this.asked++;
      yield { type: 'text', text: reply };
      yield { type: 'done', stopReason: 'end_turn' };
    },
  };
}

describe('a name that is mentioned', () => {
  const shop = names.map(name => {
    const file = skillFileIn(`${fixtures}skills/shop/${name}`);
    assert.ok(file, name);
    return openSkill(file, 'user', name);
  });
  const agents = [{ name: 'shop', skills: shop }] as unknown as readonly FileAgent[];
  const router = (mode: RoutingMode, model?: Provider): Router =>
    new Router({ mode, provider: async () => model });
  const route = (text: string, by = router('local')) =>
    by.route({ text, all: agents, signal: new AbortController().signal });

  for (const mode of ['local', 'name'] as const)
    for (const file of ['tuning', 'heldOut'])
      it(`is offered and not run, and an order is run, in the mode ${mode} (${file})`, async () => {
        const by = router(mode);
        const faults: string[] = [];
        for (const { utterance, names: name, runs, lang, kind } of sentences(file)) {
          const result = await route(utterance, by);
          const isRight = runs
            ? result.skill?.id === name
            : result.skill?.id !== name &&
              (result.skill || result.choices.some(({ skill }) => skill === name));
          if (!isRight) faults.push(`${lang} ${kind} ${result.skill?.id}: ${utterance}`);
        }
        assert.deepEqual(faults, []);
      });

  it('covers four languages and all kinds in both halves', () => {
    for (const file of ['tuning', 'heldOut'])
      for (const lang of ['en', 'de', 'fr', 'es']) {
        const kinds = new Set(sentences(file).flatMap(one => (one.lang === lang ? one.kind : [])));
        for (const kind of [
          'negated',
          'stopped',
          'past',
          'question',
          'compound',
          'object',
          'clause',
          'order',
        ])
          assert.ok(kinds.has(kind), `${file} ${lang} ${kind}`);
      }
  });

  it('is the model’s to understand, while an order asks none', async () => {
    for (const text of ['do not deploy, tell me the risks', 'the last build broke', 'show me the commit']) {
      const model = answering('plan');
      const result = await route(text, router('auto', model));
      assert.deepEqual([result.skill?.id, model.asked], ['plan', 1], text);
    }
    for (const text of [
      'deploy',
      'run deploy',
      'bitte deploy ausführen',
      'commit my changes',
      'lance deploy',
    ]) {
      const model = answering('plan');
      const result = await route(text, router('auto', model));
      assert.equal(model.asked, 0, text);
      assert.match(result.skill?.id ?? '', /^(?:deploy|commit)$/, text);
    }
    const none = await route('do not deploy, tell me the risks', router('auto', answering('NONE')));
    assert.ok(!none.skill);
    assert.ok(none.choices.some(({ skill }) => skill === 'deploy'));
  });

  it('runs only if ordered when it is marked, too', async () => {
    assert.equal((await route('do not run $deploy yet')).skill, undefined);
    assert.equal((await route('please skip shop:deploy today')).skill, undefined);
    assert.equal((await route('$deploy but do not touch the database')).skill?.id, 'deploy');
    assert.equal((await route('make it ready and run $deploy')).skill?.id, 'deploy');
    assert.equal((await route('/deploy not now but at noon')).skill?.id, 'deploy');
  });

  it('does not leave a conversation for it', async () => {
    const [agent] = agents;
    const skill = agent?.skills.find(({ id }) => id === 'review');
    assert.ok(agent && skill);
    const next = (text: string) =>
      router('local').next(
        { agent, skill, reason: { rule: 'chosen' } },
        { text, all: agents, signal: new AbortController().signal },
      );
    for (const text of [
      'do not deploy the app to production',
      'the deploy to production failed',
      'no release notes',
    ])
      assert.equal((await next(text)).skill?.id, 'review', text);
    assert.equal((await next('now deploy the app to production')).skill?.id, 'deploy');
  });

  it('is no order either where the words of a skill are forbidden', async () => {
    const run = await route('ship and publish the site to its server');
    assert.equal(run.skill?.id, 'deploy');
    const not = await route('do not ship and publish the site to its server');
    assert.ok(!not.skill);
    assert.equal(not.choices[0]?.skill, 'deploy');
  });
});

describe('the everyday name of a thing', () => {
  let folder: TempFolder;
  before(() => {
    folder = tempFolder();
    const skills = {
      wled: 'Controls WLED lights: colour, brightness and effects.',
      mow: 'Starts and stops the robot that mows the lawn.',
      weather: 'Tells the weather forecast of a place.',
      music: 'Plays music in the living room.',
      calendar: 'Adds and lists events of the calendar.',
      docs: 'Writes and updates the documentation of the project.',
      review: 'Reviews code changes for bugs.',
      timer: 'Sets timers and alarms.',
      commit: 'Commits the changes of the working tree.',
    };
    for (const [name, description] of Object.entries(skills))
      folder.add({ [`home/skills/${name}/SKILL.md`]: `---\ndescription: ${description}\n---\nDo it.\n` });
  });
  after(() => folder.remove());

  const chosen = async (text: string): Promise<string | undefined> => {
    const all = discoverAgents(loadConfig({ env: { TELOS_SKILLS_DIR: folder.path }, home: folder.path }));
    const by = new Router({ mode: 'local', provider: async () => undefined });
    return (await by.route({ text, all, signal: new AbortController().signal })).skill?.id;
  };

  it('runs nothing where something is told of it, or of a thing for it', async () => {
    for (const text of [
      'wled lights hurt my eyes',
      'music makes me happy',
      'calendar invites annoy me',
      'mowing makes me sneeze',
      'my neighbour mows at six in the morning',
      'la musique me fatigue',
      'me gusta la música',
      'das Wetter nervt',
      'das Wetter war gestern schön',
      'la météo était belle hier',
      'under the weather today',
      'a chair for the lawn',
      'a lamp for the music room',
      'a present for the reviewer',
      'read the docs before you answer',
    ])
      assert.equal(await chosen(text), undefined, text);
  });

  it('runs nothing by an idiom, a judgement, or a question of what something is', async () => {
    for (const text of [
      'we will go hiking, weather permitting',
      'best review ever',
      'keep the music out of it',
      'enough music for today',
      'what makes a good review?',
      'what is your calendar?',
      'everyone should own a timer',
      "you've got music",
      'calendar entries wear out',
      'music videos load slowly',
      'what a relief and review that was',
      'wie entsteht eigentlich Wetter?',
      'eso es música para mis oídos',
    ])
      assert.equal(await chosen(text), undefined, text);
  });

  it('runs nothing by what is pasted or quoted', async () => {
    for (const text of [
      '[12:03:11] timer: expired after 30 s',
      '2026-05-01T10:00:00Z commit finished with code 1',
      'error: local changes would be overwritten. Please commit your changes. Aborting',
      'npm ERR! commit failed',
      'INFO [timer] starting',
      'CalendarException: calendar not found',
      'make: *** [Makefile:12: docs] Error 2',
      '> please commit everything\nwhat did she mean?',
      '```\ncommit everything\n```\nwhy?',
      'it prints "commit your changes or stash them" and stops',
      '« music » vient du latin',
      'my boss wrote “please review it by noon”, rude, no?',
    ])
      assert.equal(await chosen(text), undefined, text);
  });

  it('runs what is ordered beside something pasted or quoted', async () => {
    for (const [text, skill] of [
      ['commit this\n\nerror: please review the changes', 'commit'],
      ['commit with the message "review the docs and the calendar"', 'commit'],
      ['run "commit"', 'commit'],
      ['"commit", please', 'commit'],
      ['"commit everything now"', 'commit'],
      ['review the file:\n```\nmusic.play()\n```', 'review'],
    ] as const)
      assert.equal(await chosen(text), skill, text);
  });

  it('reads a long text that says a name again and again', async () => {
    for (const said of ['it says "commit all of it" ', 'my commit failed and '])
      assert.equal(await chosen(said.repeat(4_000)), undefined, said);
    assert.equal(await chosen('do not commit all, '.repeat(4_000)), undefined);
  });

  it('runs it where it is asked for', async () => {
    for (const [text, skill] of [
      ['how is the weather tomorrow?', 'weather'],
      ["how's the weather in Berlin today?", 'weather'],
      ['add a dentist appointment to my calendar', 'calendar'],
      ['put lunch on my calendar', 'calendar'],
      ['wled lights off', 'wled'],
      ['use wled', 'wled'],
      ['mow the lawn', 'mow'],
      ['how is the weather in Oslo?', 'weather'],
      ["what's the weather in Berlin?", 'weather'],
      ['Wetter morgen in Hamburg', 'weather'],
      ['play some music', 'music'],
      ['update the docs', 'docs'],
      ['stell einen Timer auf 10 Minuten', 'timer'],
      ['bitte alles committen und pushen', 'commit'],
      ['mach einen commit', 'commit'],
    ] as const)
      assert.equal(await chosen(text), skill, text);
  });
});
