/** The pace of an answer: few edits, all of the text, and patience with a Discord that does not answer. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Refused } from '../../src/bot/gateway.ts';
import { GrowingAnswer } from '../../src/bot/growingAnswer.ts';
import type { Post } from '../../src/bot/handlers.ts';
import { until } from '../eventually.ts';

describe('GrowingAnswer', function () {
  this.timeout(20_000);

  function channel(fails: (count: number) => Error | undefined = () => undefined) {
    const messages: { content: string; times: number[] }[] = [];
    let [count, atOnce] = [0, 0];
    const request = async (act: () => string): Promise<string> => {
      const error = fails(count++);
      assert.equal(atOnce++, 0, 'two requests at once');
      await delay(20);
      atOnce--;
      if (error) throw error;
      return act();
    };
    const sender = {
      post: (_: string, { content }: Post) =>
        request(() => `${messages.push({ content, times: [performance.now()] }) - 1}`),
      edit: async (_: string, id: string, { content }: Partial<Post>) => {
        await request(() => {
          const message = messages[Number(id)]!;
          message.content = content ?? '';
          message.times.push(performance.now());
          return id;
        });
      },
    };
    return { messages, sender };
  }

  it('makes few edits of many pieces, no two within 1.2 seconds, and ends with all of the text', async () => {
    const { messages, sender } = channel();
    const answer = new GrowingAnswer(sender, { channel: 'c' });
    const begun = performance.now();
    for (let piece = 0; piece < 300; piece++) {
      answer.add(`${piece} `);
      await delay(10);
    }
    await answer.end('done');
    const [message] = messages;
    assert.equal(messages.length, 1);
    assert.equal(message?.content, `${Array.from({ length: 300 }, (_, at) => `${at} `).join('')}\n-# done`);
    const { times = [] } = message ?? {};
    const most = (performance.now() - begun) / 1200 + 2;
    assert.ok(times.length >= 3 && times.length <= most, `${times.length} requests`);
    for (const [at, time] of times.entries()) if (at > 0) assert.ok(time - times[at - 1]! >= 1190);
  });

  it('tries again what may pass, and gives up what is refused', async () => {
    const flaky = channel(count => (count < 2 ? new Error('socket hang up') : undefined));
    const answer = new GrowingAnswer(flaky.sender, { channel: 'c' });
    answer.add('All of it.');
    await answer.end('');
    assert.deepEqual(
      flaky.messages.map(({ content }) => content),
      ['All of it.'],
    );
    const closed = channel(() => new Refused('Missing Access'));
    const refused = new GrowingAnswer(closed.sender, { channel: 'c' });
    refused.add('Words.');
    await assert.rejects(refused.end(''), /Missing Access/);
  });

  it('goes on at its pace when the clock of the machine is set back', async () => {
    const { messages, sender } = channel();
    const answer = new GrowingAnswer(sender, { channel: 'c' });
    answer.add('One.');
    await until(() => messages.length > 0);
    const { now } = Date;
    Date.now = () => now() - 3_600_000;
    try {
      answer.add(' Two.');
      await until(() => messages[0]?.content === 'One. Two.');
    } finally {
      Date.now = now;
    }
    await answer.end('');
  });

  it('leaves room for the line of its state in a full message, whatever the state is', async () => {
    const { messages, sender } = channel();
    const answer = new GrowingAnswer(sender, { channel: 'c' });
    answer.add(`\`\`\`${'l'.repeat(30)}\n${'word '.repeat(1000)}`);
    await answer.end('**__::@@'.repeat(20));
    assert.ok(messages.length > 2);
    for (const { content } of messages) assert.ok(content.length <= 2000, `${content.length}`);
  });

  it('shows no half of a line end or of a character, which would go back with the next piece', async () => {
    const { messages, sender } = channel();
    const answer = new GrowingAnswer(sender, { channel: 'c' });
    answer.add(`${'x'.repeat(1895)}\r`);
    await until(() => messages.length > 0);
    assert.equal(messages[0]?.content, 'x'.repeat(1895));
    answer.add('\ny\ud83d');
    await until(() => messages[0]?.content.endsWith('y') === true);
    answer.add('\ude00');
    await answer.end('');
    assert.deepEqual(
      messages.map(({ content }) => content),
      [`${'x'.repeat(1895)}\ny😀`],
    );
  });
});
