import assert from 'node:assert/strict';
import type { RunRequest } from '../../src/engine/run/request.ts';
import type { Message } from '../../src/protocol/run.ts';
import { routed } from '../webview/scenes.ts';
import { Desk, end, type Run, startsIn, typesOf } from './chatDesk.ts';

describe('a chat that goes on', () => {
  const kickoff = { agent: 'kairos', skill: 'kickoff' };

  /** Says again what it was asked; what it was given is kept in `asked`. */
  function talking(asked: RunRequest[]): Run {
    return async function* (request) {
      asked.push(request);
      const runId = `r${asked.length}`;
      yield { type: 'run_start', runId, text: request.text, startedAt: '' };
      yield { ...routed, ...(request.skill ?? kickoff) };
      const messages: Message[] = [
        ...(request.conversation?.messages ?? []),
        { role: 'user', content: request.text },
        { role: 'assistant', content: `${request.text}!` },
      ];
      yield { ...end('completed'), messages };
    };
  }

  async function say(desk: Desk, text: string, more: object = {}): Promise<void> {
    const before = typesOf(desk.seen).filter(type => type === 'run_end').length;
    desk.chat.submit({ text, ...more });
    await desk.when(() => typesOf(desk.seen).filter(type => type === 'run_end').length > before);
    await desk.when(() => !desk.chat.isRunning);
  }

  const saidIn = ({ conversation }: RunRequest): string | undefined =>
    conversation?.messages.map(({ content }) => content).join(' ');

  it('goes on with the messages and the skill of the last run, and keeps the transcript from the view', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked));
    await desk.chat.show(null, 0);
    await say(desk, 'one');
    await say(desk, 'two');
    await say(desk, 'three', { continuation: 'anew' });
    await say(desk, 'four', { continuation: 'from_start' });
    assert.deepEqual(asked.map(saidIn), [undefined, 'one one!', 'one one! two two!', undefined]);
    assert.deepEqual(
      asked.map(({ conversation }) => conversation?.skill),
      [undefined, kickoff, undefined, undefined],
    );
    for (const event of desk.seen) assert.ok(event.type !== 'run_end' || event.messages.length === 0);
  });

  it('runs a request again in other words, and drops what came behind it', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked));
    await desk.chat.show(null, 0);
    await say(desk, 'one');
    await say(desk, 'two', { skill: { agent: 'kairos', skill: 'plan' } });
    await say(desk, 'three');
    await desk.chat.resend('r2', 'zwei');
    await desk.when(
      () => asked.length === 4 && typesOf(desk.seen).at(-1) === 'run_end' && startsIn(desk.seen).length === 2,
    );
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(startsIn(desk.seen), ['one', 'zwei']);
    assert.equal(saidIn(asked[3] as RunRequest), 'one one!');
    assert.deepEqual(asked[3]?.skill, { agent: 'kairos', skill: 'plan' });
    await say(desk, 'drei');
    assert.equal(saidIn(asked[4] as RunRequest), 'one one! zwei zwei!');
    const ids = desk.posted.flatMap(message => (message.type === 'conversation' ? [message.id] : []));
    assert.equal(new Set(ids).size, 2);
    await desk.chat.resend('r2', 'of another conversation');
    assert.equal(asked.length, 5);
  });

  it('takes along again what went along when the same is asked of another skill, and adds to it when it is sent again', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked));
    const note = { kind: 'text', name: 'a.md', language: '', text: 'x' } as const;
    await desk.chat.show(null, 0);
    await say(desk, 'one', { attachments: [note] });
    await desk.chat.submitInstead({ text: 'one', skill: { agent: 'kairos', skill: 'plan' } });
    await desk.when(() => asked.length === 2 && !desk.chat.isRunning);
    await desk.chat.resend('r1', 'eins', [{ ...note, name: 'b.md' }]);
    await desk.when(() => asked.length === 3 && !desk.chat.isRunning);
    await say(desk, 'two');
    assert.deepEqual(
      asked.map(({ attachments = [] }) => attachments.map(({ name }) => name)),
      [['a.md'], ['a.md'], ['a.md', 'b.md'], []],
    );
  });

  it('lets the model hear nothing of a run whose place another skill takes', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked));
    await desk.chat.show(null, 0);
    await say(desk, 'one');
    await say(desk, 'two');
    await desk.chat.submitInstead({ text: 'two', skill: { agent: 'kairos', skill: 'plan' } });
    await desk.chat.end();
    assert.equal(saidIn(asked[2] as RunRequest), 'one one!');
  });
});
