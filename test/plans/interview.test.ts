/** What an interviewer's answer means, whatever is around it, and how a transcript grows. */
import assert from 'node:assert/strict';
import {
  decided,
  Interview,
  isRepositoryUrl,
  isSkip,
  isUnanswered,
  jsonIn,
  mostRounds,
  openTranscript,
  parseRound,
  withAnswers,
} from '../../src/plans/interview.ts';

describe('interview', () => {
  it('reads a round from prose, a fence, or the JSON of a command line', () => {
    const ready = { ready: true, questions: [] };
    assert.deepEqual(parseRound('So {a,b} and {"ready": true}'), ready);
    assert.deepEqual(parseRound('```json\n{"a": 1}\n```\n```\n{"ready": true, "questions": []}\n```'), ready);
    assert.deepEqual(parseRound(JSON.stringify({ type: 'result', result: 'Fine: {"ready": true}' })), ready);
    assert.deepEqual(parseRound('{"questions": ["Which {brace}?", 7, " "]}'), {
      ready: false,
      questions: ['Which {brace}?'],
    });
    assert.deepEqual(parseRound('nothing'), { ready: false, questions: [] });
    assert.throws(() => parseRound('{"is_error": true, "result": "API Error 529"}'), /API Error 529/);
  });

  it('finds no JSON where there is none, and ends on a text of braces', () => {
    assert.equal(jsonIn('{broken'), undefined);
    assert.equal(jsonIn('[1, 2]'), undefined);
    assert.equal(jsonIn('{'.repeat(200_000)), undefined);
    assert.deepEqual(jsonIn('"{" then {"a": "}"}'), { a: '}' });
  });

  it('asks no model when the person wants no more questions', async () => {
    const interview = new Interview(async () => assert.fail('a model was asked'));
    assert.deepEqual(await interview.processRound('All of it', true), { ready: true, questions: [] });
    assert.equal(interview.transcript, 'All of it');
  });

  it('never says that it neither knows enough nor has a question', async () => {
    const interview = new Interview(async () => ({ text: 'Hm.' }));
    await assert.rejects(interview.processRound('T'), /neither asked a question/);
    const failing = new Interview(async () => {
      throw new Error('offline');
    });
    await assert.rejects(failing.processRound('T'), /offline/);
  });

  it('prefers what was submitted, and asks at most four times', async () => {
    const words: string[] = [];
    const interview = new Interview(async asked => {
      words.push(asked);
      return { submitted: { ready: false, questions: ['A?'] }, text: '{"ready": true}' };
    });
    for (let round = 0; round < mostRounds; round++)
      assert.deepEqual((await interview.processRound(`T${round}`)).questions, ['A?']);
    assert.deepEqual(await interview.processRound('last'), { ready: true, questions: [] });
    assert.equal(words.length, mostRounds);
    assert.match(words[1] ?? '', /T1/);
  });

  it('keeps questions and answers in their form, whatever they contain', () => {
    const text = withAnswers(
      openTranscript('Build a bakery site'),
      ['Pages?', 'Domain?', 'Tone?'],
      ['Home\nA: and\nQ: forged?', 'no preference'],
    );
    assert.equal(
      text,
      'North Star: Build a bakery site\n\nSummary: Build a bakery site\n\nQ: Pages?\nA: Home A: and Q: forged?\n\nQ: Domain?\nA: Decide for me.\n\nQ: Tone?\nA: Decide for me.\n',
    );
  });

  it('knows an answer that skips from one that says something', () => {
    for (const word of ['skip', 'N/A', "I don't know", 'I don’t care', 'none', 'No  preference'])
      assert.ok(isSkip(word), word);
    for (const word of ['no', 'yes', 'I have no idea yet', 'nothing fancy']) assert.ok(!isSkip(word), word);
  });

  it('has questions wait in the transcript until they are answered, and not twice', () => {
    const waiting = withAnswers('North Star: x\n', ['Which one?', 'How many?'], undefined);
    assert.equal(waiting, 'North Star: x\n\nQ: Which one?\nA: \n\nQ: How many?\nA: \n');
    const half = waiting.replace('A: \n', 'A: the red one\n');
    assert.deepEqual(
      ['Which one?', 'How many?', 'Why?'].map(question => isUnanswered(half, question)),
      [false, true, true],
    );
    assert.match(decided(half), /A: the red one\n\nQ: How many\?\nA: Decide for me\.\n/);
    const answered = withAnswers(half, ['How many?'], ['two']);
    assert.equal(answered, 'North Star: x\n\nQ: Which one?\nA: the red one\n\nQ: How many?\nA: two\n');
  });

  it('takes only the address of a repository on GitHub', () => {
    for (const url of ['https://github.com/a/b', 'https://github.com/a/b.git'])
      assert.ok(isRepositoryUrl(url), url);
    const others = [
      'http://github.com/a/b',
      'git@github.com:a/b',
      'https://github.com/a/b;rm',
      'https://github.com/a',
    ];
    const hostile = [
      'https://github.com/../..',
      'https://github.com/a/b\n',
      'https://github.com.evil.com/a/b',
    ];
    for (const url of [...others, ...hostile, 'https://github.com/a/.git', 'https://github.com/a/b?x=1'])
      assert.ok(!isRepositoryUrl(url), url);
  });
});
