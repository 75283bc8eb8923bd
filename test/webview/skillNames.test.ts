import assert from 'node:assert/strict';
import { callOfShared, completeSkill, namedSkill } from '../../webview/mentions.ts';

const skill = (agent: string, name: string) => ({ agent, skill: name, description: '' });
const skills = [
  skill('kairos', 'kickoff'),
  skill('kairos', 'weekly-summary'),
  skill('press', 'release notes'),
  skill('press', 'summary'),
  skill('my notes', 'kickoff'),
];
const offered = (request: string) => completeSkill(request, skills)?.map(({ text }) => text);

describe('completing a skill', () => {
  it('begins with a slash and ends with the first space', () => {
    for (const request of ['', 'kick', ' /kick', '/kickoff ', '/kickoff now', 'a /kick']) {
      assert.equal(offered(request), undefined, request);
    }
    assert.equal(offered('/')?.length, 5);
  });

  it('puts names that begin so before those that have it further in', () => {
    assert.deepEqual(offered('/sum'), ['/summary', '/weekly-summary']);
    assert.deepEqual(offered('/SUMM'), ['/summary', '/weekly-summary']);
    assert.deepEqual(offered('/ekl'), ['/weekly-summary']);
    assert.deepEqual(offered('/nothing'), []);
  });

  it('leaves names that fit as well in the order in which they come, the likeliest first', () => {
    const given = ['water', 'weed', 'walk'].map(name => skill('garden', name));
    const texts = completeSkill('/w', given)?.map(({ text }) => text);
    assert.deepEqual(texts, ['/water', '/weed', '/walk']);
  });

  it('writes a name in one word, with its agent where two share it and the agent is one word', () => {
    assert.deepEqual(offered('/rel'), ['/release-notes']);
    assert.deepEqual(offered('/kick'), ['/kairos:kickoff', '/kickoff']);
    assert.deepEqual(offered('/kairos:k'), ['/kairos:kickoff']);
  });
});

describe('a skill that is suggested', () => {
  it('is called with its agent where its name alone may mean another', () => {
    const shared = skills.filter(({ skill }) => skill === 'kickoff').map(each => callOfShared(each, skills));
    assert.deepEqual([...shared].sort(), ['/kairos:kickoff ', '/kickoff ']);
    const alone = skills.find(({ skill }) => skill === 'summary')!;
    assert.equal(callOfShared(alone, skills), undefined);
  });
});

describe('the skill that a request begins with', () => {
  it('is named whole, behind a slash', () => {
    const named = (request: string) => namedSkill(request, skills)?.skill;
    assert.equal(named('/summary of this'), 'summary');
    assert.equal(named(' /Release-Notes'), 'release notes');
    for (const request of ['/sum', '/nothing', 'summary', 'the /summary'])
      assert.equal(named(request), undefined);
    assert.equal(namedSkill('/kairos:kickoff now', skills)?.agent, 'kairos');
  });
});
