/** Words that mean the same become one term; words of other languages are words too. */
import assert from 'node:assert/strict';
import { eachWord, stem, Vocabulary } from '../../../src/engine/routing/language.ts';

const words = (text: string, parts = true): string[] => {
  const found: string[] = [];
  eachWord(text, parts, word => found.push(word));
  return found;
};

describe('search text', () => {
  it('takes endings off, the same in all forms of a word', () => {
    for (const forms of [
      ['share', 'shares', 'sharing', 'shared'],
      ['convert', 'converts', 'converter', 'converting'],
      ['generate', 'generator', 'generation'],
      ['summary', 'summaries', 'summarize', 'summarise', 'summarised'],
      ['analyze', 'analysis', 'analyzing'],
      ['plan', 'planning', 'planner'],
      ['class', 'classes'],
    ])
      assert.equal(new Set(forms.map(stem)).size, 1, forms.join());
    assert.notEqual(stem('status'), stem('state'));
    assert.notEqual(stem('test'), stem('text'));
  });

  it('splits compound names and keeps them whole', () => {
    assert.deepEqual(words('xcodeBuild weekly-summary'), [
      'xcode',
      'build',
      'xcodebuild',
      'weekly',
      'summary',
      'weeklysummary',
    ]);
    assert.deepEqual(words('GitHub', false), ['github']);
  });

  it('reads any script, in pairs where there are no spaces', () => {
    assert.deepEqual(words('Für 天気予報'), ['für', '天気', '気予', '予報']);
    assert.deepEqual(words('ﬁle'), ['file']);
  });

  it('gives a word its term, and an unknown one none', () => {
    const vocabulary = new Vocabulary();
    const term = vocabulary.add('reminders');
    vocabulary.forgetSpellings();
    assert.equal(vocabulary.find('remind'), term);
    assert.equal(vocabulary.find('pizza'), undefined);
  });
});
