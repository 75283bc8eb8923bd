import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { RunRequest } from '../../src/engine/run/request.ts';
import { speak } from '../../src/extension/base/labels.ts';
import {
  Conversation,
  conversationIdOf,
  type RemoteRun,
  type RestoredRun,
} from '../../src/extension/chat/conversation.ts';
import type { Message, RunEvent } from '../../src/protocol/run.ts';
import { english } from '../../src/protocol/text.ts';
import { routed } from '../webview/scenes.ts';
import { Desk, end, type Run, startsIn, typesOf } from './chatDesk.ts';

const start = (runId: string, text: string): RunEvent => ({
  type: 'run_start',
  runId,
  text,
  startedAt: '2026-01-05T08:00:00Z',
});
const says = (text: string): RunEvent => ({ type: 'text', text });

const whole: RestoredRun = {
  request: { text: 'one' },
  events: [start('r1', 'one'), routed, says('one!'), end('completed')],
  messages: [
    { role: 'user', content: 'BODY one' },
    { role: 'assistant', content: 'one!' },
  ],
};
const continued: RunEvent = {
  ...(routed as Extract<RunEvent, { type: 'routed' }>),
  reason: { rule: 'continued' },
};
const interrupted: RestoredRun = {
  request: { text: 'two' },
  events: [start('r2', 'two'), continued, says('tw')],
};

/** Answers at once; what it was given is kept in `asked`. */
function answering(asked: RunRequest[]): Run {
  return async function* (request) {
    asked.push(request);
    yield start(`n${asked.length}`, request.text);
    yield routed;
    const messages: Message[] = [
      ...(request.conversation?.messages ?? []),
      { role: 'user', content: request.text },
    ];
    yield { ...end('completed'), messages };
  };
}

async function opened(runs: readonly RestoredRun[], asked: RunRequest[] = []): Promise<Desk> {
  const desk = new Desk(answering(asked));
  await desk.chat.show(null, 0);
  await desk.chat.open(Conversation.restored('c1', runs, undefined));
  return desk;
}

const saidIn = ({ conversation }: RunRequest): unknown[] =>
  (conversation?.messages ?? []).map(({ content }) => content);

const ended = (desk: Desk, count: number) => () =>
  typesOf(desk.seen).filter(type => type === 'run_end').length === count && !desk.chat.isRunning;

describe('a chat with a kept conversation', () => {
  it('shows it, and goes on from it under its name behind its latest run', async () => {
    const asked: RunRequest[] = [];
    const desk = await opened([whole], asked);
    assert.deepEqual(startsIn(desk.seen), ['one']);
    assert.equal(desk.chat.title, 'one');
    desk.chat.submit({ text: 'and then?' });
    await desk.when(ended(desk, 2));
    const [first] = asked;
    assert.deepEqual(saidIn(first as RunRequest), ['BODY one', 'one!']);
    assert.deepEqual(
      [first?.origin, first?.conversationId, first?.parentRunId, first?.conversation?.skill],
      ['chat', 'c1', 'r1', { agent: 'kairos', skill: 'kickoff' }],
    );
    desk.chat.submit({ text: 'more' });
    await desk.when(ended(desk, 3));
    assert.deepEqual([asked[1]?.conversationId, asked[1]?.parentRunId], ['c1', 'n1']);
  });

  it('goes on in the mode of its latest run until another is chosen, and forgets it with the conversation', async () => {
    const asked: RunRequest[] = [];
    const events = whole.events.map(event =>
      event.type === 'run_start' ? { ...event, mode: 'review' as const } : event,
    );
    const desk = await opened([{ ...whole, events }], asked);
    const shown = desk.posted.findLast(message => message.type === 'conversation');
    assert.equal(shown?.type === 'conversation' && shown.mode, 'review');
    desk.chat.submit({ text: 'and then?' });
    await desk.when(ended(desk, 2));
    desk.chat.setMode('plan');
    assert.deepEqual(desk.posted.at(-1), { type: 'mode', mode: 'plan' });
    await desk.chat.resend('r1', 'eins');
    await desk.when(() => asked.length === 2 && !desk.chat.isRunning);
    await desk.chat.startOver();
    desk.chat.submit({ text: 'new' });
    await desk.when(() => asked.length === 3 && !desk.chat.isRunning);
    assert.deepEqual(
      asked.map(({ mode }) => mode),
      ['review', 'plan', undefined],
    );
  });

  it('makes a sibling of a run that is sent again', async () => {
    const asked: RunRequest[] = [];
    const desk = await opened(
      [whole, { ...interrupted, events: [...interrupted.events, end('completed')] }],
      asked,
    );
    await desk.chat.resend('r2', 'zwei');
    await desk.when(ended(desk, 2));
    assert.deepEqual([asked[0]?.conversationId, asked[0]?.parentRunId], ['c1', 'r1']);
    const shown = desk.posted.findLast(message => message.type === 'conversation');
    assert.ok(shown?.type === 'conversation' && shown.id !== 'c1' && conversationIdOf(shown.id) === 'c1');
  });

  describe('sends a request of an earlier window again', () => {
    const bed = { kind: 'image', name: 'bed.png' } as const;
    const request = { text: 'one', keptWith: { runId: 'r1', attached: [bed] } };
    const note = { kind: 'text', name: 'note.md', language: '', text: 'sow' } as const;

    it('with what went along with it then, and with what is named now', async () => {
      const asked: RunRequest[] = [];
      const desk = await opened([{ ...whole, request }], asked);
      const picture = { ...bed, mediaType: 'image/png', data: 'AAAA' } as const;
      const selection = { file: '/w/a.ts', text: 'x', line: 1, language: 'typescript' };
      desk.along['r1'] = { attachments: [picture], selection, missing: [], hidden: [] };
      await desk.chat.resend('r1', 'one @note.md', [note]);
      await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
      assert.deepEqual(asked[0]?.attachments, [picture, note]);
      assert.deepEqual(asked[0]?.selection, selection);
      assert.equal(
        desk.seen.some(event => event.type === 'notice'),
        false,
      );
      // The same words with another skill, and once more what went along.
      await desk.chat.submitInstead({ text: 'one @note.md', skill: { agent: 'kairos', skill: 'other' } });
      await desk.when(() => asked.length === 2 && !desk.chat.isRunning);
      assert.deepEqual(asked[1]?.attachments, [picture, note]);
    });

    it('and says what is not kept, and what went along without its secrets', async () => {
      const asked: RunRequest[] = [];
      const desk = await opened([{ ...whole, request }], asked);
      desk.along['r1'] = { attachments: [note], missing: [bed], hidden: ['note.md'] };
      await desk.chat.resend('r1', 'one');
      await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
      const notices = desk.seen.flatMap(event => (event.type === 'notice' ? [event.message] : []));
      assert.match(notices[0] ?? '', /no longer stored.*bed\.png/);
      assert.match(notices[1] ?? '', /secrets, which are hidden.*note\.md/);
      assert.deepEqual(asked[0]?.attachments, [note]);
      assert.equal('keptWith' in (asked[0] ?? {}), false);
    });
  });

  it('goes on with a run that was interrupted, and says what it had said', async () => {
    const asked: RunRequest[] = [];
    const desk = await opened([whole, interrupted], asked);
    const shown = desk.posted.findLast(message => message.type === 'conversation');
    assert.ok(shown?.type === 'conversation' && shown.running === false);
    desk.chat.resume('r1');
    assert.equal(desk.chat.isRunning, false);
    desk.chat.resume('r2');
    await desk.when(ended(desk, 2));
    assert.deepEqual(saidIn(asked[0] as RunRequest).slice(2), ['two', [says('tw')]]);
    assert.deepEqual([asked[0]?.parentRunId, asked[0]?.conversation?.skillIsUnread], ['r2', undefined]);
  });

  it('has the skill said again where nobody knows that the model has read it', async () => {
    const asked: RunRequest[] = [];
    const { messages: _, ...unknown } = whole;
    const desk = await opened([{ ...unknown, events: unknown.events.slice(0, 3) }], asked);
    desk.chat.resume('r1');
    await desk.when(() => asked.length === 1);
    assert.equal(asked[0]?.conversation?.skillIsUnread, true);
    await desk.chat.end();
  });

  it('hands its conversation to another chat, which goes on with it; not while it runs', async () => {
    const asked: RunRequest[] = [];
    const desk = await opened([whole]);
    const given = await desk.chat.give();
    assert.ok(given);
    assert.deepEqual([startsIn(desk.seen), desk.chat.title], [[], '']);
    const other = new Desk(answering(asked));
    await other.chat.open(given);
    await other.chat.show(null, 0);
    assert.deepEqual(startsIn(other.seen), ['one']);
    other.chat.submit({ text: 'more' });
    assert.equal(await other.chat.give(), undefined);
    await other.when(ended(other, 2));
    assert.deepEqual([asked[0]?.conversationId, asked[0]?.parentRunId], ['c1', 'r1']);
  });

  it('does not go on with a run that came to its end', async () => {
    const desk = await opened([whole]);
    desk.chat.resume('r1');
    assert.equal(desk.chat.isRunning, false);
  });

  it('says of a run that goes on while its window closes that it was interrupted', async () => {
    let reason: unknown;
    const desk = new Desk(async function* (request, _human, signal) {
      yield start('r1', request.text);
      await new Promise(resolve => signal.addEventListener('abort', resolve));
      reason = signal.reason;
      yield { ...end('cancelled'), interrupted: true };
    });
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('run_start');
    await desk.chat.end();
    assert.equal((reason as Error).constructor.name, 'Interruption');
  });

  describe('of which a run goes on in another window', () => {
    /** The window there: what it does comes here, and its end says what was said. */
    function there() {
      const coming = new PassThrough({ objectMode: true });
      const seen: { isAborted: boolean; said: readonly unknown[] } = { isAborted: false, said: [] };
      const elsewhere: RemoteRun = {
        where: 'Runs in another window',
        async *follow(said, _isWatched, signal) {
          seen.said = said;
          signal.addEventListener('abort', () => {
            seen.isAborted = true;
            coming.end();
          });
          yield* coming;
        },
      };
      const run: RestoredRun = { ...interrupted, elsewhere };
      return { run, seen, say: (event: RunEvent) => coming.write(event), ends: () => coming.end() };
    }

    it('shows it as it goes on, and sends what was asked meanwhile behind it', async () => {
      const asked: RunRequest[] = [];
      const { run, say, ends, seen } = there();
      const desk = await opened([whole, run], asked);
      const shown = desk.posted.findLast(message => message.type === 'conversation');
      assert.ok(
        shown?.type === 'conversation' && shown.running && shown.elsewhere === 'Runs in another window',
      );
      assert.deepEqual([desk.chat.isRunning, desk.chat.isWorking, desk.chat.canStop], [true, false, false]);
      desk.chat.stop();
      desk.chat.submit({ text: 'and then?' });
      say(says(' more'));
      await desk.when(() => desk.seen.some(event => event.type === 'text' && event.text.includes(' more')));
      assert.deepEqual([desk.chat.isRunning, seen.isAborted, asked.length], [true, false, 0]);
      say({ ...end('completed'), messages: [{ role: 'user', content: 'all of it' }] } as RunEvent);
      ends();
      await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
      assert.deepEqual(saidIn(asked[0] as RunRequest), ['all of it']);
      assert.equal(asked[0]?.parentRunId, 'r2');
    });

    it('resumes it once its interruption has come here', async () => {
      const asked: RunRequest[] = [];
      const { run, say, ends } = there();
      const desk = await opened([whole, run], asked);
      desk.chat.resume('r2');
      say({ ...end('cancelled'), interrupted: true } as RunEvent);
      ends();
      await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
      assert.equal(asked[0]?.text, 'Go on where you were interrupted.');
    });

    it('lets go of it for another conversation', async () => {
      const { run, seen } = there();
      const desk = await opened([whole, run], []);
      await desk.when(() => seen.said.length > 0);
      await desk.chat.startOver();
      await desk.when(() => seen.isAborted);
      assert.equal(desk.chat.isRunning, false);
    });
  });

  it('plays a run again without running anything, and shows the rest at once when it is stopped', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(answering(asked));
    await desk.chat.show(null, 0);
    const long = 'x'.repeat(100_000);
    await desk.chat.replay([
      { ...whole, events: [start('r1', 'one'), routed, says(long), end('completed')] },
    ]);
    await desk.until('notice');
    assert.deepEqual([desk.chat.isRunning, desk.chat.isWorking], [true, false]);
    desk.chat.stop();
    await desk.until('run_end');
    assert.equal(
      desk.seen.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0),
      100_000,
    );
    const label = desk.seen.find(event => event.type === 'notice');
    assert.match(
      label?.message ?? '',
      /^This is a replay of a run \(.*\)\. Nothing runs\. A request .* a new conversation/,
    );
    assert.equal(desk.chat.title, 'Replay: one');
    assert.deepEqual(asked, []);
  });

  it('tells when a replayed run began as the reader writes it', async () => {
    const desk = new Desk(answering([]));
    await desk.chat.show(null, 0);
    speak(english, 'de');
    try {
      await desk.chat.replay([whole]);
      await desk.until('notice');
    } finally {
      speak(english, 'en');
    }
    const label = desk.seen.find(event => event.type === 'notice');
    assert.match(label?.message ?? '', /\(5\.1\.2026, \d\d:00:00\)/);
  });

  it('begins a conversation of its own with a request behind a replay, which goes on from that', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(answering(asked));
    await desk.chat.show(null, 0);
    await desk.chat.replay([whole]);
    desk.chat.stop();
    await desk.when(() => !desk.chat.isRunning);
    desk.chat.submit({ text: 'and then?' });
    await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
    assert.deepEqual(saidIn(asked[0] as RunRequest), ['BODY one', 'one!']);
    assert.notEqual(asked[0]?.conversationId, 'c1');
    assert.equal(asked[0]?.parentRunId, undefined);
    assert.equal(desk.chat.title, 'and then?');
  });
});
