import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { firstDraft } from '../../../src/extension/chat/chat.ts';
import { asking, Desk, end, recordingInfo, startsIn, typesOf } from '../chatDesk.ts';

describe('Chat', () => {
  it('runs a request, asks through its card and shows the end', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    assert.deepEqual(desk.asked, ['c1']);
    assert.equal(desk.chat.answer('token of c1', { allow: true, scope: 'once' }), true);
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

  it('shows work that is no run of a skill: its steps, its form, and what it says at the end', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    const form = [{ kind: 'text', name: 'answer-0', title: 'How many?', isRequired: false }] as const;
    const work = desk.chat.work('/plan a bakery', async stage => {
      stage.say('asks');
      const decision = await stage.ask({
        callId: 'w1',
        token: 'token of w1',
        tool: 'plan_interview',
        subject: 'Round 1',
        rule: 'r',
        reason: 'x',
        scopes: ['once'],
        form,
      });
      return decision.allow ? `got ${decision.content?.['answer-0']}` : 'nothing';
    });
    assert.equal(work, true);
    await desk.until('approval_request');
    assert.equal(
      desk.chat.work('second', async () => ''),
      false,
    );
    assert.equal(
      desk.chat.answer('token of w1', { allow: true, scope: 'once', content: { other: 'x' } }),
      false,
    );
    desk.chat.answer('token of w1', { allow: true, scope: 'once', content: { 'answer-0': 'ten' } });
    const last = await desk.until('run_end');
    assert.equal(last.type === 'run_end' && last.outcome, 'completed');
    assert.deepEqual(
      desk.seen.find(({ type }) => type === 'text'),
      { type: 'text', text: 'got ten' },
    );
    await desk.chat.end();
  });

  it('ends work that the person stops, and says why work failed', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.work('/plan', async ({ signal }) => {
      await new Promise(resolve => signal.addEventListener('abort', resolve));
      throw new Error('stopped');
    });
    await desk.until('run_start');
    desk.chat.stop();
    await desk.until('run_end');
    desk.chat.work('/plan', async () => {
      throw new Error('no repository');
    });
    await desk.when(() => desk.seen.filter(({ type }) => type === 'run_end').length === 2);
    const ends = desk.seen.flatMap(event => (event.type === 'run_end' ? [event] : []));
    assert.deepEqual(
      ends.map(({ outcome, error }) => error?.message ?? outcome),
      ['cancelled', 'no repository'],
    );
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
    desk.chat.answer('token of c1', { allow: true, scope: 'once' });
    await desk.when(() => startsIn(desk.seen).length === 2);
    assert.deepEqual(startsIn(desk.seen), ['go', 'and this']);
    assert.deepEqual(desk.queued, []);
    await desk.chat.end();
  });

  it('reports the end once, when nothing waits behind it, and not for a run that the person has stopped', async () => {
    const desk = new Desk();
    desk.chat.submit({ text: 'go' });
    desk.chat.submit({ text: 'and this' });
    for (const count of [1, 2]) {
      await desk.when(() => desk.asked.length === count && desk.chat.waiting === 1);
      assert.deepEqual(desk.ended, []);
      desk.chat.answer('token of c1', { allow: true, scope: 'once' });
    }
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(desk.ended, ['completed']);
    desk.chat.submit({ text: 'more' });
    await desk.when(() => desk.asked.length === 3);
    desk.chat.stop();
    await desk.when(() => !desk.chat.isRunning);
    assert.deepEqual(desk.ended, ['completed']);
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

  it('stops the run that goes on for one that comes instead, and runs that after its end', async () => {
    const desk = new Desk();
    await desk.chat.show(null, 0);
    desk.chat.submit({ text: 'go' });
    await desk.until('approval_request');
    const skill = { agent: 'kairos', skill: 'other' };
    await desk.chat.submitInstead({ text: 'go', skill });
    await desk.when(() => typesOf(desk.seen).filter(type => type === 'approval_request').length === 2);
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
    await desk.when(() => !desk.chat.isRunning);
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
    assert.deepEqual(drafts, [{ type: 'draft', text: 'run daily kickoff', suggested: true }]);
  });
});

describe('firstDraft', () => {
  it('is empty with a real model, and without the sample', () => {
    assert.equal(firstDraft(recordingInfo), 'run daily kickoff');
    assert.equal(firstDraft({ ...recordingInfo, recording: false }), '');
    assert.equal(firstDraft({ ...recordingInfo, skills: [] }), '');
  });
});
