/** Questions with buttons: who decides, once, in time. */
import assert from 'node:assert/strict';
import type { Click, Post } from '../../src/bot/handlers.ts';
import { Questions } from '../../src/bot/questions.ts';

describe('Questions', () => {
  const kept = { open: () => undefined, over: () => undefined };

  function desk(patience?: number) {
    const posts: Post[] = [];
    const edits: Partial<Post>[] = [];
    const gateway = {
      post: async (_: string, post: Post) => `m${posts.push(post)}`,
      edit: async (_: string, __: string, post: Partial<Post>) => {
        edits.push(post);
      },
    };
    const questions = new Questions(gateway, kept, patience);
    const whispers: string[] = [];
    const click = (button: string, user = 'owner', message = 'm1'): Promise<void> =>
      questions.click({
        button,
        user,
        message,
        isBot: false,
        guild: 'g',
        channel: 'c',
        whisper: async ({ content }: Post) => void whispers.push(content),
        update: async () => undefined,
      } as unknown as Click);
    const ask = (signal?: AbortSignal) =>
      questions.ask({
        channel: 'c',
        post: { content: 'Really?' },
        choices: [{ label: 'Once' }, { label: 'No' }],
        mayAnswer: user => user === 'owner',
        ...(signal && { signal }),
      });
    const button = (post: number, at: number): string => posts[post]?.buttons?.[at]?.id ?? '';
    return { questions, posts, edits, whispers, click, ask, button };
  }
  const soon = () => new Promise(resolve => setImmediate(resolve));

  it('take the first click of the right person, and no other', async () => {
    const { whispers, click, ask, button } = desk();
    const answer = ask();
    await soon();
    await click(button(0, 0), 'stranger');
    await click(button(0, 0), 'owner', 'another message');
    await click('forged.0');
    await Promise.all([click(button(0, 1)), click(button(0, 0))]);
    assert.deepEqual(await answer, { label: 'No', user: 'owner' });
    await click(button(0, 1));
    assert.equal(whispers.length, 5);
  });

  it('keep two questions apart, with ids that cannot be guessed', async () => {
    const { click, ask, button } = desk();
    const [first, second] = [ask(), ask()];
    await soon();
    await click(button(0, 0), 'owner', 'm2');
    await click(button(1, 0), 'owner', 'm2');
    assert.equal((await second)?.label, 'Once');
    await click(button(0, 1), 'owner', 'm1');
    assert.equal((await first)?.label, 'No');
    assert.notEqual(button(0, 0).split('.')[0], button(1, 0).split('.')[0]);
    assert.ok((button(0, 0).split('.')[0]?.length ?? 0) >= 22);
  });

  it('wait no longer once the bot ends, and leave their buttons to the next start', async () => {
    const { questions, edits, whispers, click, ask, button } = desk(20);
    void ask();
    await soon();
    questions.end();
    await click(button(0, 0));
    assert.match(whispers[0] ?? '', /over/);
    await new Promise(resolve => setTimeout(resolve, 60));
    assert.deepEqual(edits, []);
  });

  it('are over after their time, and when the run ends; then a click decides nothing', async () => {
    const short = desk(20);
    assert.equal(await short.ask(), undefined);
    await short.click(short.button(0, 0));
    assert.match(short.whispers[0] ?? '', /over/);
    assert.deepEqual(short.edits[0]?.buttons, []);
    const stopped = desk();
    const end = new AbortController();
    const answer = stopped.ask(end.signal);
    await soon();
    end.abort();
    assert.equal(await answer, undefined);
  });
});
