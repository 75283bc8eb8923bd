import assert from 'node:assert/strict';
import { completePrompt, mentionAt, offeredMentions } from '../../webview/mentions.ts';

describe('mentionAt', () => {
  it('is the word behind an @ that the cursor stands in', () => {
    assert.deepEqual(mentionAt('fix @src/m please', 10), { start: 4, end: 10, typed: 'src/m' });
    assert.deepEqual(mentionAt('@', 1), { start: 0, end: 1, typed: '' });
    assert.equal(mentionAt('fix @src/m please', 12), undefined);
    assert.equal(mentionAt('fix it', 3), undefined);
  });

  it('is none in an address', () => {
    assert.equal(mentionAt('ada@example', 11), undefined);
  });
});

describe('offeredMentions', () => {
  const found = { query: 'ma', files: ['src/main.ts', 'Makefile', 'other/mail.md'] };
  const words = (typed: string) => offeredMentions(typed, found).map(({ word }) => word);

  it('offers what fits, also while the host still searches for the last letters', () => {
    assert.deepEqual(words('ma'), ['src/main.ts', 'Makefile', 'other/mail.md']);
    assert.deepEqual(words('mai'), ['src/main.ts', 'other/mail.md']);
    assert.deepEqual(words('x'), []);
  });

  it('offers selection and problems first', () => {
    assert.deepEqual(
      offeredMentions('', { query: '', files: ['a'] }).map(({ word }) => word),
      ['selection', 'problems', 'a'],
    );
    assert.deepEqual(words('prob'), ['problems']);
  });

  it('offers resources of servers by their address or their name, and does not attach those as files', () => {
    const resources = [
      { word: 'beds:demo://south', description: 'South bed' },
      { word: 'post:inbox', description: '' },
    ];
    const offered = (typed: string) => offeredMentions(typed, found, resources);
    assert.deepEqual(offered('bed'), [{ ...resources[0], isResource: true }]);
    assert.deepEqual(offered('post:')[0]?.word, 'post:inbox');
    const many = Array.from({ length: 500 }, (_, at) => ({ word: `beds:${at}`, description: '' }));
    assert.ok(offeredMentions('beds', found, many).length <= 30);
  });
});

describe('completePrompt', () => {
  const prompts = [
    { word: 'beds:plan', description: 'Plans' },
    { word: 'garden:sow', description: '' },
  ];
  const skills = [{ agent: 'garden', skill: 'sow', description: '' }];

  it('offers prompts behind a slash, and none that a skill is called by', () => {
    assert.deepEqual(completePrompt('/pl', prompts, skills), [prompts[0]]);
    assert.deepEqual(completePrompt('/', prompts, skills), [prompts[0]]);
    assert.deepEqual(completePrompt('/', prompts, []), prompts);
    assert.deepEqual(completePrompt('/plan it', prompts, skills), []);
    assert.deepEqual(completePrompt('plan', prompts, skills), []);
  });
});
