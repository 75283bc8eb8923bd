import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Human } from '../../src/engine/human.ts';
import type { RunRequest } from '../../src/engine/telos.ts';
import { Chat, firstDraft } from '../../src/extension/chat.ts';
import type { Message, RunEvent } from '../../src/protocol/run.ts';
import type { ChatInfo, QueuedRequest, ToWebview } from '../../src/protocol/webview.ts';

import { routed } from '../webview/scenes.ts';

type Run = (request: RunRequest, human: Human, signal: AbortSignal) => AsyncIterable<RunEvent>;

const recordingInfo: ChatInfo = {
  provider: 'replay',
  model: 'recorded',
  recording: true,
  skills: [{ agent: 'kairos', skill: 'kickoff', description: '' }],
  trusted: true,
};

const start = (request: RunRequest): RunEvent => ({
  type: 'run_start',
  runId: 'r',
  text: request.text,
  startedAt: '',
});
const end = (outcome: 'completed' | 'cancelled'): RunEvent => ({
  type: 'run_end',
  outcome,
  rounds: 1,
  toolCalls: 0,
  durationMs: 1,
  messages: [],
});

/** Asks one question, says what was answered, and ends. */
async function* asking(request: RunRequest, human: Human, signal: AbortSignal): AsyncGenerator<RunEvent> {
  yield start(request);
  const question = {
    callId: 'c1',
    tool: 'run_command',
    subject: 'ls',
    rule: 'r',
    reason: 'x',
    scopes: ['once'] as const,
  };
  const answer = human.approve(question, signal);
  yield { type: 'approval_request', request: question };
  const decision = await answer;
  yield { type: 'approval_response', callId: 'c1', decision };
  yield { type: 'text', text: 'do' };
  yield { type: 'text', text: 'ne' };
  yield end(signal.aborted ? 'cancelled' : 'completed');
}

class Desk {
  readonly posted: ToWebview[] = [];
  readonly running: boolean[] = [];
  readonly asked: string[] = [];
  trusted = true;
  info: ChatInfo = recordingInfo;
  readonly chat: Chat;

  constructor(run: Run = asking, openTelos = async () => ({ run })) {
    this.chat = new Chat({
      post: message => this.posted.push(message),
      openTelos,
      readInfo: async () => this.info,
      isTrusted: () => this.trusted,
      runningChanged: running => this.running.push(running),
      approvalAsked: request => this.asked.push(request.callId),
    });
  }

  /** What a view that has followed from the start has seen; fails on a hole in the numbers. */
  get seen(): RunEvent[] {
    const events: RunEvent[] = [];
    for (const message of this.posted) {
      if (message.type !== 'conversation' && message.type !== 'events') continue;
      if (message.type === 'conversation' && message.from === 0) events.length = 0;
      assert.equal(message.from, events.length);
      events.push(...message.events);
    }
    return events;
  }

  get queued(): readonly QueuedRequest[] {
    const last = this.posted.findLast(message => message.type === 'queued');
    return last?.queued ?? [];
  }

  async when(isSo: () => boolean): Promise<void> {
    while (!isSo()) await wait(2);
  }

  async until(type: RunEvent['type']): Promise<RunEvent> {
    for (;;) {
      const event = this.seen.find(candidate => candidate.type === type);
      if (event) return event;
      await wait(2);
    }
  }
}

const startsIn = (events: readonly RunEvent[]): string[] =>
  events.flatMap(event => (event.type === 'run_start' ? [event.text] : []));
const typesOf = (events: readonly RunEvent[]): string[] => events.map(({ type }) => type);

describe('Chat', () => {
  it('runs a request, asks through its card and shows the end', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    assert.deepEqual(desk.asked, ['c1']);
    assert.equal(desk.chat.answer('c1', { allow: true, scope: 'once' }), true);
    await desk.until('run_end');
    await desk.chat.end();
    assert.deepEqual(typesOf(desk.seen), [
      'run_start',
      'approval_request',
      'approval_response',
      'text',
      'run_end',
    ]);
    assert.deepEqual(desk.seen[3], { type: 'text', text: 'done' });
    assert.deepEqual(desk.running, [true, false]);
  });

  it('stops by the signal, reads to the end and denies the open card', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    desk.chat.stop();
    assert.deepEqual(await desk.until('run_end'), end('cancelled'));
    const answer = await desk.until('approval_response');
    assert.equal(answer.type === 'approval_response' && answer.decision.allow, false);
  });

  it('keeps a second request until the first has ended, and a third can be taken away', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    desk.chat.submit({ text: 'and this' });
    desk.chat.submit({ text: 'not this' });
    assert.deepEqual(startsIn(desk.seen), ['go']);
    assert.deepEqual(
      desk.queued.map(({ text }) => text),
      ['and this', 'not this'],
    );
    desk.chat.unqueue(desk.queued[1]?.id ?? '');
    desk.chat.answer('c1', { allow: true, scope: 'once' });
    await desk.when(() => startsIn(desk.seen).length === 2);
    assert.deepEqual(startsIn(desk.seen), ['go', 'and this']);
    assert.deepEqual(desk.queued, []);
    await desk.chat.end();
  });

  it('lets what waits wait on after a stop, also for a view that comes back', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    desk.chat.submit({ text: 'and this' });
    desk.chat.stop();
    await desk.until('run_end');
    await wait(20);
    await desk.chat.show(null, 0);
    const shown = desk.posted.at(-1);
    assert.ok(shown?.type === 'conversation' && shown.queued?.[0]?.text === 'and this');
    assert.deepEqual(startsIn(desk.seen), ['go']);
    desk.chat.runQueued(shown.queued[0].id);
    await desk.when(() => startsIn(desk.seen).length === 2);
    await desk.chat.end();
  });

  describe('in a conversation', () => {
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
      await wait(0);
    }

    const saidIn = ({ conversation }: RunRequest): string | undefined =>
      conversation?.messages.map(({ content }) => content).join(' ');

    it('goes on with the messages and the skill of the last run, and keeps the transcript from the view', async () => {
      const asked: RunRequest[] = [];
      const desk = new Desk(talking(asked));
      await desk.chat.show(null, 0);
      await say(desk, 'one');
      await say(desk, 'two');
      await say(desk, 'three', { goesOn: 'anew' });
      await say(desk, 'four', { goesOn: 'from_start' });
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
        () =>
          asked.length === 4 && typesOf(desk.seen).at(-1) === 'run_end' && startsIn(desk.seen).length === 2,
      );
      await wait(0);
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

  it('stops the run that goes on for one that comes instead, and runs that after its end', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    const skill = { agent: 'kairos', skill: 'other' };
    await desk.chat.submitInstead({ text: 'go', skill });
    while (typesOf(desk.seen).filter(type => type === 'approval_request').length < 2) await wait(2);
    assert.deepEqual(typesOf(desk.seen), [
      'run_start',
      'approval_request',
      'approval_response',
      'text',
      'run_end',
      'run_start',
      'approval_request',
    ]);
    assert.deepEqual(desk.running, [true, false, true]);
    await desk.chat.end();
  });

  it('keeps what happens while no view looks, and gives it to the one that asks', async () => {
    const desk = new Desk();
    desk.chat.submit({ text: 'go' });
    await wait(30);
    assert.deepEqual(desk.seen, []);
    await desk.chat.show(null, 0);
    assert.deepEqual(typesOf(desk.seen), ['run_start', 'approval_request']);
    desk.chat.hide();
    desk.chat.answer('c1', { allow: true, scope: 'once' });
    await wait(30);
    const shown = desk.posted[0];
    assert.ok(shown?.type === 'conversation' && desk.posted.length === 1);
    await desk.chat.show(shown.id, shown.events.length);
    assert.deepEqual(typesOf(desk.seen).slice(-3), ['approval_response', 'text', 'run_end']);
  });

  it('sends text that nobody could read as fast in larger parts', async () => {
    const postedAt: number[] = [];
    async function* fast(request: RunRequest): AsyncGenerator<RunEvent> {
      yield start(request);
      for (let part = 0; part < 100; part++) {
        yield { type: 'text', text: 'x'.repeat(1_000) };
        await wait(2);
      }
      yield end('completed');
    }
    const desk = new Desk(fast);
    await desk.chat.show(null, 0);
    desk.posted.push = (...messages) => {
      postedAt.push(performance.now());
      return Array.prototype.push.apply(desk.posted, messages);
    };
    desk.chat.submit({ text: 'go' });
    await desk.until('run_end');
    await desk.chat.end();
    assert.equal(
      desk.seen.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0),
      100_000,
    );
    // A timer may be late, never early; the first gap is a frame, the last part does not wait.
    const gaps = postedAt.slice(1, -1).map((time, index) => time - (postedAt[index] ?? 0));
    assert.ok(gaps.length > 0 && gaps.slice(1).every(gap => gap > 40), gaps.join());
  });

  it('says in the conversation why nothing runs without trust', async () => {
    const desk = new Desk(() => assert.fail('must not run'));
    desk.trusted = false;
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    const last = await desk.until('run_end');
    assert.match(last.type === 'run_end' ? (last.error?.message ?? '') : '', /Restricted Mode/);
    assert.deepEqual(typesOf(desk.seen), ['run_start', 'run_end']);
  });

  it('shows an engine that cannot be opened as a failed run, and tries again with the next request', async () => {
    let broken = true;
    const desk = new Desk(asking, async () => {
      if (broken) throw new Error('a file is missing');
      return { run: asking };
    });
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    const last = await desk.until('run_end');
    assert.equal(last.type === 'run_end' && last.error?.message, 'a file is missing');
    broken = false;
    await wait(0);
    desk.chat.submit({ text: 'again' });
    await desk.until('approval_request');
    await desk.chat.end();
  });

  it('leaves a running conversation behind for an empty one', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    await desk.chat.startOver();
    assert.deepEqual(desk.seen, []);
    assert.deepEqual(desk.running, [true, false]);
    desk.chat.submit({ text: 'other' });
    const started = await desk.until('run_start');
    assert.equal(started.type === 'run_start' && started.text, 'other');
    await desk.chat.end();
    assert.deepEqual(desk.running, [true, false, true, false]);
    const ids = desk.posted.flatMap(message => (message.type === 'conversation' ? [message.id] : []));
    assert.equal(new Set(ids).size, 2);
  });

  it('does not start without a word or a skill', async () => {
    const desk = new Desk();
    desk.chat.submit({ text: '  ' });
    assert.deepEqual(desk.running, []);
    desk.chat.submit({ text: '', skill: { agent: 'kairos', skill: 'kickoff' } });
    assert.deepEqual(desk.running, [true]);
    await desk.chat.end();
  });

  it('drafts the sample request for an empty conversation alone', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    await desk.chat.show(null, 0);
    await desk.chat.end();
    const drafts = desk.posted.flatMap(message => (message.type === 'conversation' ? [message.draft] : []));
    assert.deepEqual(drafts, ['run daily kickoff', '']);
  });

  it('drafts the sample request once it is there to be run, and only once', async () => {
    const desk = new Desk();
    desk.info = { ...recordingInfo, skills: [] };
    await desk.chat.show(null, 0);
    await desk.chat.updateInfo();
    desk.info = recordingInfo;
    await desk.chat.updateInfo();
    await desk.chat.updateInfo();
    const drafts = desk.posted.filter(message => message.type === 'draft');
    assert.deepEqual(drafts, [{ type: 'draft', text: 'run daily kickoff' }]);
  });
});

describe('firstDraft', () => {
  it('is empty with a real model, and without the sample', () => {
    assert.equal(firstDraft(recordingInfo), 'run daily kickoff');
    assert.equal(firstDraft({ ...recordingInfo, recording: false }), '');
    assert.equal(firstDraft({ ...recordingInfo, skills: [] }), '');
  });
});
