/** A request names its skill, or no skill runs. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { findSkill, matchExplicit, matchName } from '../../../src/engine/routing/routeName.ts';
import { discoverAgents } from '../../../src/engine/skills/discover.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('routing by name', () => {
  let folder: TempFolder;
  before(() => {
    folder = tempFolder();
  });
  after(() => folder.remove());

  const agents = (names: Readonly<Record<string, readonly string[]>>) => {
    const root = join(folder.path, String(Math.random()));
    for (const [agent, skills] of Object.entries(names)) {
      for (const skill of skills) {
        const [id, alias] = skill.split('=');
        folder.add({
          [join(root, agent, 'skills', id ?? '', 'SKILL.md').slice(folder.path.length)]:
            `---\n${alias ? `name: ${alias}\n` : ''}description: d\n---\n`,
        });
      }
    }
    return discoverAgents(loadConfig({ env: { TELOS_SKILLS_DIR: root }, home: folder.path }));
  };
  const byName = (text: string, names: Readonly<Record<string, readonly string[]>>) =>
    matchName(text, agents(names)).sure?.skill.id;

  it('takes a name that stands as whole words, in any case', () => {
    assert.equal(byName('run daily Kickoff!', { kairos: ['kickoff'] }), 'kickoff');
    assert.equal(byName('please start', { a: ['art'] }), undefined);
    assert.equal(byName('order me a pizza', { kairos: ['kickoff'] }), undefined);
    assert.equal(byName('', { kairos: ['kickoff'] }), undefined);
  });

  it('takes the longest name, and reads hyphen and space alike', () => {
    const names = { kairos: ['weekly', 'weekly-summary'] };
    assert.equal(byName('weekly summary please', names), 'weekly-summary');
    assert.equal(byName('weekly-summary', names), 'weekly-summary');
    assert.equal(byName('the weekly one', names), 'weekly');
    assert.equal(byName('make a weekly-summary report', names), 'weekly-summary');
    assert.equal(byName('do not make a weekly-summary yet', names), undefined);
  });

  it('does not take an everyday word for a name, unless the request says little else', () => {
    const names = { a: ['weather', 'help', 'x', '1', 'summary', 'monday'] };
    for (const text of [
      "what's the weather like on your side",
      'can you help me',
      'I have 1 question about x',
      'what happens on Monday',
    ])
      assert.equal(byName(text, names), undefined, text);
    assert.equal(byName('write a summary of the quarterly figures for Monday', names), 'summary');
    assert.equal(byName('weather', names), 'weather');
    assert.equal(byName('give me the weather please', names), 'weather');
    assert.equal(byName('help', names), 'help');
    assert.equal(byName('run x on the figures', names), 'x');
    assert.equal(byName('please use the summary on chapter two', names), 'summary');
    assert.equal(byName('let the help skill look at the figures', names), 'help');
  });

  it('tells which names it doubts, the longest first', () => {
    const { sure, unsure } = matchName(
      'compare weather and news of our branches',
      agents({ a: ['news', 'weather'] }),
    );
    assert.equal(sure, undefined);
    assert.deepEqual(
      unsure.map(match => match.skill.id),
      ['weather', 'news'],
    );
  });

  it('knows a skill by the name in its frontmatter too', () => {
    assert.equal(byName('use pdf tools', { a: ['x1=pdf-tools'] }), 'x1');
  });

  it('looks at all agents, the first one winning a tie', () => {
    const all = agents({ alpha: ['digest'], beta: ['frontpage'], gamma: ['frontpage'] });
    const found = matchName('frontpage now', all).sure;
    assert.deepEqual([found?.agent.name, found?.skill.id, found?.reason.rule], ['beta', 'frontpage', 'name']);
  });

  it('takes the skill that nothing shadows, unless the agent is named', () => {
    folder.add({
      'shadows/user/a-pack/skills/deploy/SKILL.md': '---\ndescription: d\n---\n',
      'shadows/shop/.claude/skills/deploy/SKILL.md': '---\ndescription: d\n---\n',
    });
    const all = discoverAgents(
      loadConfig({
        env: { TELOS_SKILLS_DIR: join(folder.path, 'shadows/user') },
        home: folder.path,
        workspaceFolders: [{ name: 'shop', path: join(folder.path, 'shadows/shop') }],
      }),
    );
    assert.equal(matchName('deploy it', all).sure?.agent.name, 'shop');
    const own = all.filter(agent => agent.name === 'a-pack');
    assert.equal(matchName('deploy it', own).sure?.agent.name, 'a-pack');
    assert.equal(matchExplicit('$deploy', all)?.agent.name, 'shop');
    assert.equal(matchExplicit('a-pack:deploy', all)?.agent.name, 'a-pack');
  });

  it('obeys an exact name, and is not misled by paths and times', () => {
    const all = agents({ alpha: ['digest', 'usr'], beta: ['digest'] });
    const explicit = (text: string) => {
      const match = matchExplicit(text, all);
      return match && `${match.agent.name}/${match.skill.id} ${match.reason.matched}`;
    };
    assert.equal(explicit('/digest the news'), 'alpha/digest /digest');
    assert.equal(explicit('make it with $digest now'), 'alpha/digest $digest');
    assert.equal(explicit('beta:digest please'), 'beta/digest beta:digest');
    assert.equal(explicit('read it from /usr at 10:30'), undefined);
    assert.equal(explicit('https://digest'), undefined);
  });

  it('knows an exact name in any case, in quotes or brackets, and with a stop behind it', () => {
    const all = agents({ Alpha: ['it', 'note'], beta: ['it', 'Notiz-täglich'] });
    const explicit = (text: string) => {
      const match = matchExplicit(text, all);
      return match && `${match.agent.name}/${match.skill.id}`;
    };
    for (const text of [
      '/IT',
      '/it: how is it',
      '"/it" please',
      '`$it`',
      'do ($it).',
      'alpha:it',
      '(ALPHA:It), then',
      '“Alpha:it”!',
    ])
      assert.equal(explicit(text), 'Alpha/it', text);
    assert.equal(explicit('/beta:it'), 'beta/it');
    assert.equal(explicit('„$notiz_TÄGLICH“ bitte'), 'beta/Notiz-täglich');
    for (const text of ['gamma:it', 'see it: here', '12:30', '$', '/', '":"', 'and /it', '$5 for it'])
      assert.equal(explicit(text), undefined, text);
  });

  it('prefers the agent that is spelled so to one that differs in case', () => {
    const all = agents({ Beta: ['x1'], beta: ['x1'] });
    assert.equal(matchExplicit('beta:x1', all)?.agent.name, 'beta');
    assert.equal(matchExplicit('Beta:x1', all)?.agent.name, 'Beta');
  });

  it('hears an everyday word that is only talked about as a word', () => {
    const names = { a: ['art', 'test'] };
    for (const text of [
      'this is a test',
      'is it art',
      'what is art',
      'I love art',
      'do you like art',
      'does it test well',
    ])
      assert.equal(byName(text, names), undefined, text);
    assert.equal(byName('I want art', names), 'art');
    assert.equal(byName('what is the test', names), 'test');
    assert.equal(byName('can you make art', names), 'art');
  });

  it('offers a product that a question is about, and runs it where it is asked for', () => {
    const names = { a: ['wled', 'notes', 'slack', 'summary'] };
    for (const text of [
      'is wled open source?',
      'are wled lamps any good?',
      'the notes I took are gone',
      'slack messages from Bob annoy me',
      'what a terrible summary',
    ])
      assert.equal(byName(text, names), undefined, text);
    assert.equal(byName('turn wled off', names), 'wled');
    assert.equal(byName('can you set wled to red?', names), 'wled');
  });

  it('hears any other word as the name of the skill that is called so', () => {
    for (const text of [
      'count in the barrel',
      'is it of the barrel like that',
      'what should the barrel hold',
    ])
      assert.equal(byName(text, { a: ['barrel'] }), 'barrel', text);
  });

  it('finds the skill that was chosen from a list', () => {
    const all = agents({ alpha: ['digest'] });
    assert.equal(findSkill(all, { agent: 'alpha', skill: 'digest' })?.reason.rule, 'chosen');
    assert.equal(findSkill(all, { agent: 'alpha', skill: 'gone' }), undefined);
  });
});
