import assert from 'node:assert/strict';
import { revisePlan } from '../../src/plans/planning.ts';
import type { StepEnd } from '../../src/plans/steps.ts';

describe('a plan that is written anew', () => {
  const comments = ['On line 1, "# Shop": call it a bakery', 'use mocha', 'no database'];
  const end: StepEnd = {
    runId: 'r',
    outcome: 'completed',
    text: '',
    timedOut: false,
    answers: [
      { tool: 'submit_plan', input: { text: '# Bakery' } },
      { tool: 'reply_comment', input: { comment: '1', reply: 'Renamed.' } },
      { tool: 'reply_comment', input: { comment: 'use mocha', reply: 'Not yet.' } },
      { tool: 'reply_comment', input: { comment: 2, reply: 'The tests use\nmocha.' } },
      { tool: 'reply_comment', input: { comment: '9', reply: 'There is no such comment.' } },
      { tool: 'reply_comment', input: { comment: 'something else', reply: 'Nor this.' } },
    ],
  };

  it('keeps what the planner says to each comment, by its number or its words, the last time', async () => {
    const asked: string[] = [];
    const { text, replies } = await revisePlan(
      '# Shop',
      comments,
      async ({ words }) => {
        asked.push(words);
        return end;
      },
      new AbortController().signal,
    );
    assert.equal(text, '# Bakery');
    assert.match(asked[0] ?? '', /\n2\. use mocha\n3\. no database/);
    assert.deepEqual(replies, [
      { comment: 1, text: 'Renamed.' },
      { comment: 2, text: 'The tests use mocha.' },
    ]);
  });
});
