/** What the model reads first. */
import assert from 'node:assert/strict';
import { fillBody, firstMessage, selectionText } from '../../src/engine/prompt.ts';

const now = new Date('2026-11-20T09:08:07-05:00');

describe('firstMessage', () => {
  it('is the body, the date and the words, in this order', () => {
    assert.match(
      firstMessage('# K\n\nL1', 'run daily kickoff', now),
      /^# K\n\nL1\n\nCurrent date\/time: 2026-11-20 \d\d:08:07 \S+\n\nUser request: run daily kickoff$/,
    );
  });

  it('leaves out an empty request', () => {
    assert.doesNotMatch(firstMessage('B', ' ', now), /User request/);
  });

  it('takes invisible tag characters out of the skill', () => {
    assert.match(firstMessage('visible\u{E0072}\u{E006D}', '', now), /^visible\n/);
  });
});

describe('fillBody', () => {
  it('puts the folder and the words in, which are not said again then', () => {
    assert.deepEqual(
      fillBody(
        'Run {baseDir}/a $'.concat('{baseDir}/b $', '{CLAUDE_SKILL_DIR}/c with $ARGUMENTS.'),
        '/s/one',
        'two $& {baseDir}',
      ),
      { body: 'Run /s/one/a /s/one/b /s/one/c with two $& {baseDir}.', words: '' },
    );
  });

  it('leaves the words to the end where nothing takes them, and what only looks alike as it is', () => {
    const body = 'Use $ARGUMENTS_FILE, $baseDir and {other}.';
    assert.deepEqual(fillBody(body, '/s', 'words'), { body, words: 'words' });
  });

  it('takes the name by which the skill was called off the arguments', () => {
    assert.equal(fillBody('<$ARGUMENTS>', '/s', '/plan my day', '/plan').body, '<my day>');
    assert.equal(fillBody('<$ARGUMENTS>', '/s', 'do my $plan', '$plan').body, '<do my $plan>');
    assert.equal(fillBody('B', '/s', '/plan my day', '/plan').words, '/plan my day');
  });
});

describe('selectionText', () => {
  it('fences code that holds fences of its own', () => {
    assert.match(
      selectionText('/a.md', 3, 'md', '```js\n1\n```'),
      /line 3 on:\n````md\n```js\n1\n```\n````$/,
    );
  });
});
