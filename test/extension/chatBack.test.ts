import assert from 'node:assert/strict';
import type { RunRequest } from '../../src/engine/run/request.ts';
import { Conversation, type RestoredRun } from '../../src/extension/chat/conversation.ts';
import type { Message, RunEvent } from '../../src/protocol/run.ts';
import type { ToWebview } from '../../src/protocol/webview.ts';
import { routed } from '../webview/scenes.ts';
import { asking, Desk, end, type Run, startsIn, typesOf } from './chatDesk.ts';

/** Says again what it was asked; what it was given is kept in `asked`. */
const talking = (asked: RunRequest[], more: Partial<Extract<RunEvent, { type: 'run_end' }>> = {}): Run =>
  async function* (request) {
    asked.push(request);
    yield {
      type: 'run_start',
      runId: `r${asked.length}`,
      text: request.text,
      startedAt: `at ${asked.length}`,
    };
    yield { ...routed, ...(request.withoutSkill && { agent: '', skill: '' }) } as RunEvent;
    const said: Message = { role: 'user', content: request.text };
    const messages = [...(request.conversation?.messages ?? []), said];
    yield { ...end('completed'), messages, ...more } as RunEvent;
  };

async function say(desk: Desk, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    desk.chat.submit({ text });
    await desk.when(() => !desk.chat.isRunning);
  }
}

const shownIn = (desk: Desk): Extract<ToWebview, { type: 'conversation' }> => {
  const shown = desk.posted.findLast(message => message.type === 'conversation');
  assert.ok(shown);
  return shown;
};
const draftsIn = (desk: Desk): string[] =>
  desk.posted.flatMap(message => (message.type === 'draft' ? [message.text] : []));
const saidIn = ({ conversation }: RunRequest): unknown[] =>
  (conversation?.messages ?? []).map(({ content }) => content);

describe('a chat that goes back', () => {
  let asked: RunRequest[];
  let desk: Desk;
  beforeEach(async () => {
    asked = [];
    desk = new Desk(talking(asked));
    await desk.chat.show(null, 0);
    await say(desk, 'one', 'two', 'three');
  });
  afterEach(() => desk.chat.end());

  it('shows the conversation before a run, with its words to be changed, and goes on from there', async () => {
    assert.deepEqual(desk.chat.restorable('r2'), { runIds: ['r2', 'r3'], since: 'at 2' });
    assert.deepEqual(desk.chat.restorable('x'), { runIds: [], since: '' });
    await desk.chat.goBackTo('r2', 'restore 1');
    assert.deepEqual([startsIn(desk.seen), draftsIn(desk)], [['one'], ['two']]);
    assert.equal(shownIn(desk).restored, 'restore 1');
    await say(desk, 'zwei');
    assert.deepEqual(saidIn(asked[3] as RunRequest), ['one']);
    assert.equal(asked[3]?.parentRunId, 'r1');
    await desk.chat.show(null, 0);
    assert.ok(!('restored' in shownIn(desk)), 'the next request ends the offer to undo');
    await desk.chat.takeUpAgain('restore 1');
    assert.deepEqual(startsIn(desk.seen), ['one', 'zwei']);
  });

  it('takes up again what a restore took away, by the id of that restore alone', async () => {
    await desk.chat.goBackTo('r2', 'restore 1');
    await desk.chat.takeUpAgain('another');
    assert.deepEqual(startsIn(desk.seen), ['one']);
    await desk.chat.takeUpAgain('restore 1');
    assert.deepEqual(startsIn(desk.seen), ['one', 'two', 'three']);
    await desk.chat.takeUpAgain('restore 1');
    await say(desk, 'four');
    assert.deepEqual(saidIn(asked[3] as RunRequest), ['one', 'two', 'three']);
  });

  it('branches off before a run into a conversation of its own, and leaves the first as it was', async () => {
    const first = desk.chat.conversationId;
    await desk.chat.branchAt('r3');
    assert.deepEqual([startsIn(desk.seen), draftsIn(desk)], [['one', 'two'], ['three']]);
    assert.notEqual(desk.chat.conversationId, first);
    assert.deepEqual(desk.left, [first]);
    assert.deepEqual(desk.chat.restorable('r2').runIds, [], 'what it has inherited is not its own');
    await say(desk, 'drei');
    assert.deepEqual([saidIn(asked[3] as RunRequest), asked[3]?.parentRunId], [['one', 'two'], 'r2']);
  });

  it('does nothing for a run that it does not show', async () => {
    const before = shownIn(desk).id;
    await desk.chat.goBackTo('x', 'restore');
    await desk.chat.branchAt('x');
    await desk.chat.resend('x', 'words');
    assert.deepEqual(
      [shownIn(desk).id, startsIn(desk.seen), draftsIn(desk)],
      [before, ['one', 'two', 'three'], []],
    );
    assert.deepEqual([desk.chat.wordsOf('r2'), desk.chat.wordsOf('x')], ['two', '']);
    assert.deepEqual(desk.chat.runIds, ['r1', 'r2', 'r3']);
  });

  it('sends a request again with the same change of the conversation, in other words without', async () => {
    desk.chat.submit({ text: 'shorter', change: { kind: 'compact', focus: '' } as never });
    await desk.when(() => !desk.chat.isRunning);
    await desk.chat.resend('r4', 'shorter');
    await desk.when(() => asked.length === 5 && !desk.chat.isRunning);
    await desk.chat.resend('r5', 'other words');
    await desk.when(() => asked.length === 6 && !desk.chat.isRunning);
    assert.deepEqual(
      asked.slice(3).map(({ change, isChoice }) => [change !== undefined, isChoice]),
      [
        [true, undefined],
        [true, false],
        [false, false],
      ],
    );
    await desk.chat.resend('r6', ' ');
    assert.equal(asked.length, 6, 'nothing is sent without a word');
  });
});

describe('a chat that is busy', () => {
  let desk: Desk;
  beforeEach(async () => {
    desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
  });
  afterEach(() => desk.chat.end());

  it('neither goes back, branches off, opens another conversation nor plays one', async () => {
    const { conversationId } = desk.chat;
    await desk.chat.goBackTo('r', 'restore');
    await desk.chat.takeUpAgain('restore');
    await desk.chat.branchAt('r');
    await desk.chat.open(new Conversation());
    await desk.chat.replay([]);
    assert.deepEqual([desk.chat.conversationId, desk.chat.isWorking], [conversationId, true]);
    assert.deepEqual([desk.chat.restorable('r').runIds, draftsIn(desk), desk.left], [[], [], []]);
    desk.chat.resume('r');
    assert.deepEqual(desk.queued, []);
  });

  it('names a waiting request by its words or its skill, and runs none while it is busy', async () => {
    desk.chat.submit({ text: '', skill: { agent: 'a', skill: 'notes' } });
    desk.chat.submit({ text: 'words' });
    assert.deepEqual(
      desk.queued.map(({ text }) => text),
      ['Run notes', 'words'],
    );
    desk.chat.runQueued(desk.queued[1]?.id ?? '');
    desk.chat.runQueued('none');
    assert.equal(desk.queued.length, 2);
    assert.deepEqual(startsIn(desk.seen), ['go']);
    await desk.chat.show(null, 0);
    assert.equal(shownIn(desk).queued?.length, 2);
  });

  it('goes on when its view is closed, but drops what waited with the conversation', async () => {
    desk.chat.close();
    assert.equal(desk.chat.isRunning, true);
    desk.chat.submit({ text: 'waits' });
    const { conversationId } = desk.chat;
    await desk.chat.startOver();
    assert.deepEqual(desk.left, [conversationId]);
    assert.ok(!('queued' in shownIn(desk)));
    assert.deepEqual([shownIn(desk).running, desk.chat.isRunning], [false, false]);
  });
});

describe('what a chat tells', () => {
  it('tells the mode, the context files and a skill that runs, to the view and to the runs', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked));
    desk.chat.setContextFiles(false);
    assert.ok(desk.posted.length < 1, 'no view follows yet');
    await desk.chat.show(null, 0);
    assert.deepEqual([shownIn(desk).withoutContextFiles, shownIn(desk).mode], [true, undefined]);
    assert.ok(!('queued' in shownIn(desk)));
    desk.chat.setMode('plan');
    await say(desk, 'one');
    desk.chat.setMode('default');
    desk.chat.setContextFiles(true);
    assert.deepEqual(desk.posted.at(-1), { type: 'context_files', on: true });
    desk.chat.submit({ text: 'two', withoutSkill: true });
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(
      asked.map(({ mode, withoutContextFiles }) => [mode, withoutContextFiles]),
      [
        ['plan', true],
        [undefined, false],
      ],
    );
    assert.deepEqual(desk.ran, ['kickoff'], 'a run without a skill names none');
  });

  it('sends information to a view that follows, and a draft only where nothing was said', async () => {
    const desk = new Desk(talking([]));
    await desk.chat.updateInfo();
    assert.ok(desk.posted.length < 1, 'no view follows yet');
    desk.info = { ...desk.info, skills: [] };
    await desk.chat.show(null, 0);
    await say(desk, 'one');
    desk.info = { ...desk.info, skills: [{ agent: 'kairos', skill: 'kickoff', description: '' }] };
    await desk.chat.updateInfo();
    assert.equal(desk.posted.at(-1)?.type, 'info');
    assert.deepEqual(draftsIn(desk), []);
    desk.chat.hide();
    await desk.chat.updateInfo();
    assert.equal(desk.posted.filter(({ type }) => type === 'info').length, 1);
  });

  it('gives a view that knows another conversation all of this one', async () => {
    const desk = new Desk(talking([]));
    await say(desk, 'one');
    await desk.chat.show(null, 0);
    const { id, events } = shownIn(desk);
    await desk.chat.show('another', 2);
    assert.deepEqual([shownIn(desk).from, shownIn(desk).events.length], [0, events.length]);
    await desk.chat.show(id, 2);
    assert.deepEqual([shownIn(desk).from, shownIn(desk).events.length], [2, events.length - 2]);
  });

  it('tells that a conversation is left when another is opened, but not when it is opened again', async () => {
    const desk = new Desk(talking([]));
    const { conversationId } = desk.chat;
    await desk.chat.open(new Conversation(conversationId));
    assert.deepEqual(desk.left, []);
    await desk.chat.open(new Conversation('other'));
    assert.deepEqual([desk.left, desk.posted], [[conversationId], []]);
  });

  it('says why a run that had begun failed, and why one never began, each with its end', async () => {
    const desk = new Desk(async function* (request) {
      yield { type: 'run_start', runId: 'r', text: request.text, startedAt: '' };
      throw new Error('a defect');
    });
    await desk.chat.show(null, 0);
    await say(desk, 'one');
    assert.deepEqual(typesOf(desk.seen), ['run_start', 'run_end']);
    const failed = desk.seen.at(-1);
    assert.ok(failed?.type === 'run_end' && failed.outcome === 'failed');
    assert.deepEqual(failed.error, { code: 'internal', message: 'a defect' });
    assert.deepEqual(desk.ended, ['failed']);
    assert.deepEqual(desk.running, [true, false]);
    desk.trusted = false;
    await say(desk, 'two');
    const refused = desk.seen.at(-1);
    assert.equal(refused?.type === 'run_end' && refused.error?.code, 'config');
    assert.deepEqual(startsIn(desk.seen), ['one', 'two']);
  });
});

describe('work in a chat', () => {
  it('is not done without trust, and is no run that another follows', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked));
    await desk.chat.show(null, 0);
    desk.trusted = false;
    desk.chat.work('/plan', () => assert.fail('must not work'));
    const last = await desk.until('run_end');
    assert.match(last.type === 'run_end' ? (last.error?.message ?? '') : '', /Restricted Mode/);
    assert.deepEqual(startsIn(desk.seen), ['/plan']);
    desk.trusted = true;
    await desk.when(() => !desk.chat.isRunning);
    desk.chat.work('/plan again', async stage => {
      stage.say('looks around');
      return 'planned';
    });
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(typesOf(desk.seen).slice(2), ['run_start', 'step', 'text', 'run_end']);
    const runId = desk.chat.runIds[1] ?? '';
    assert.deepEqual([desk.chat.isWork(runId), desk.chat.restorable(runId).runIds], [true, []]);
    await say(desk, 'go');
    assert.equal(asked[0]?.parentRunId, undefined);
    assert.equal(desk.chat.isWork('r1'), false);
  });

  it('shows the answer to its card', async () => {
    const desk = new Desk(asking);
    await desk.chat.show(null, 0);
    const card = {
      callId: 'w',
      token: 't',
      tool: 'x',
      subject: 's',
      rule: 'r',
      reason: '',
      scopes: ['once'],
    } as const;
    desk.chat.work('/plan', async stage => ((await stage.ask(card)).allow ? 'yes' : 'no'));
    await desk.until('approval_request');
    assert.deepEqual([desk.chat.waiting, desk.asked], [1, ['w']]);
    desk.chat.answer('t', { allow: true, scope: 'once' });
    await desk.until('run_end');
    assert.deepEqual(
      desk.seen.find(({ type }) => type === 'approval_response'),
      { type: 'approval_response', callId: 'w', decision: { allow: true, scope: 'once' } },
    );
    assert.deepEqual(desk.seen.at(-2), { type: 'text', text: 'yes' });
  });
});

describe('a chat with a run of another place', () => {
  const start: RunEvent = { type: 'run_start', runId: 'r1', text: 'one', startedAt: '' };

  it('lets what comes instead wait for its end, and says when it can no longer be followed', async () => {
    const asked: RunRequest[] = [];
    let fail: () => void = () => undefined;
    const failing = new Promise<void>((_, reject) => {
      fail = () => reject(new Error('the file is gone'));
    });
    const run: RestoredRun = {
      request: { text: 'one' },
      events: [start, routed],
      elsewhere: {
        where: 'Runs in another window',
        async *follow() {
          await failing;
          yield start;
        },
      },
    };
    const desk = new Desk(talking(asked));
    await desk.chat.show(null, 0);
    await desk.chat.open(Conversation.restored('c', [run]));
    await desk.chat.submitInstead({ text: 'two' });
    assert.deepEqual([desk.queued.map(({ text }) => text), asked.length], [['two'], 0]);
    fail();
    await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
    const notice = desk.seen.find(event => event.type === 'notice');
    assert.equal(
      notice?.type === 'notice' && notice.message,
      'This run can no longer be followed: the file is gone',
    );
    assert.deepEqual(desk.ended, ['completed']);
  });

  it('goes on in the next rounds of a run that came to its limit of rounds, and only of such a one', async () => {
    for (const [outcome, goesOn] of [
      ['round_limit', true],
      ['cancelled', undefined],
    ] as const) {
      const asked: RunRequest[] = [];
      const desk = new Desk(talking(asked));
      const events = [start, routed, { ...end('cancelled'), outcome } as RunEvent];
      await desk.chat.open(Conversation.restored('c', [{ request: { text: 'one' }, events }]));
      desk.chat.resume('r1');
      await desk.when(() => asked.length === 1 && !desk.chat.isRunning);
      assert.equal(asked[0]?.goesOn, goesOn);
    }
  });

  it('goes on after a failed run with the skill, and says that it failed', async () => {
    const asked: RunRequest[] = [];
    const desk = new Desk(talking(asked, { outcome: 'failed' }));
    await say(desk, 'one', 'two');
    assert.equal(asked[1]?.conversation?.skillFailed, true);
    desk.chat.submit({ text: 'three', continuation: 'anew' });
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(asked[2]?.conversation && Object.keys(asked[2].conversation), ['messages']);
  });

  it('plays several runs, labels the first, and ends when it is closed', async () => {
    const desk = new Desk(talking([]));
    await desk.chat.show(null, 0);
    const run = (runId: string, text: string): RestoredRun => ({
      request: { text },
      events: [{ ...start, runId, text, startedAt: 'some time' } as RunEvent, routed, end('completed')],
      messages: [{ role: 'user', content: text }],
    });
    await desk.chat.replay([run('a', 'one'), run('b', 'two')], 'My day');
    desk.chat.close();
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(typesOf(desk.seen), [
      'run_start',
      'notice',
      'routed',
      'run_end',
      'run_start',
      'routed',
      'run_end',
    ]);
    assert.equal(desk.chat.title, 'Replay: My day');
    const label = desk.seen[1];
    assert.match(label?.type === 'notice' ? label.message : '', /replay of a run \(\)/);
    assert.deepEqual(desk.ended, [], 'a replay is no run that has ended');
  });
});
