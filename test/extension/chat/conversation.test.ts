import assert from 'node:assert/strict';
import { Conversation, type RestoredRun } from '../../../src/extension/chat/conversation.ts';
import type { Message, RunEvent, RunOutcome } from '../../../src/protocol/run.ts';
import { routed } from '../../webview/scenes.ts';

const text = (delta: string): RunEvent => ({ type: 'text', text: delta });
const step = (detail: string): RunEvent => ({ type: 'step', skill: 's', detail });

describe('Conversation', () => {
  it('joins the text of one batch and numbers the batches without a hole', () => {
    const conversation = new Conversation();
    for (const event of [step('a'), text('He'), text('llo'), step('b')]) conversation.append(event);
    assert.deepEqual(conversation.nextBatch(), { from: 0, events: [step('a'), text('Hello'), step('b')] });
    assert.equal(conversation.nextBatch(), undefined);
    conversation.append(text('!'));
    assert.deepEqual(conversation.nextBatch(), { from: 3, events: [text('!')] });
  });

  it('never changes an event that has its number', () => {
    const conversation = new Conversation();
    conversation.append(text('a'));
    const first = conversation.nextBatch();
    conversation.append(text('b'));
    assert.deepEqual(conversation.nextBatch(), { from: 1, events: [text('b')] });
    assert.deepEqual(first, { from: 0, events: [text('a')] });
  });

  it('gives a view what it lacks, what still waits too', () => {
    const conversation = new Conversation();
    for (const detail of ['a', 'b', 'c']) {
      conversation.append(step(detail));
      conversation.nextBatch();
    }
    conversation.append(step('d'));
    assert.deepEqual(conversation.since(2), { from: 2, events: [step('c'), step('d')] });
    assert.deepEqual(conversation.since(4), { from: 4, events: [] });
  });

  it('gives a new view everything with its text joined, and goes on from there', () => {
    const conversation = new Conversation();
    for (const delta of ['a', 'b', 'c']) {
      conversation.append(text(delta));
      conversation.nextBatch();
    }
    assert.deepEqual(conversation.since(0), { from: 0, events: [text('abc')] });
    conversation.append(text('d'));
    assert.deepEqual(conversation.nextBatch(), { from: 1, events: [text('d')] });
  });

  const own = (event: RunEvent): RunEvent => event;
  const ofSkill = (event: RunEvent): RunEvent => ({
    type: 'skill_event',
    callId: 'a',
    event: { type: 'skill_event', callId: 'b', event },
  });
  for (const [whose, within] of [
    ['a running command', own],
    ['one of a skill that a skill of the run uses', ofSkill],
  ] as const)
    it(`keeps little of what ${whose} prints, however much that is, and nothing when it has ended`, () =>
      keepsLittle(within));

  function keepsLittle(within: (event: RunEvent) => RunEvent): void {
    const conversation = new Conversation();
    const output = (text: string): RunEvent => within({ type: 'tool_output', callId: 't', text });
    for (let at = 0; at < 2_000; at++) {
      conversation.append(output(`${'x'.repeat(9_000)}\n`));
      conversation.append(output(`line ${at}\n`));
      conversation.nextBatch();
    }
    const all = conversation.since(1);
    assert.equal(all.events.length, 1_999);
    assert.ok(JSON.stringify(all.events).length < 600_000);
    assert.deepEqual(conversation.since(1_999), { from: 1_999, events: [output('line 1999\n')] });
    const fresh = conversation.since(0);
    assert.match(JSON.stringify(fresh.events), /line 1998\\nline 1999|line 1999/);
    const result = { content: 'x', isError: false };
    conversation.append(within({ type: 'tool_end', callId: 't', name: 'run_command', result }));
    assert.doesNotMatch(JSON.stringify(conversation.since(0).events), /line/);
  }

  it('starts from the beginning for a number that was never given', () => {
    const conversation = new Conversation();
    conversation.append(step('a'));
    assert.deepEqual(conversation.since(99), { from: 0, events: [step('a')] });
  });

  it('joins what a command prints and how far it is, each with its own call alone', () => {
    const output = (callId: string, text: string): RunEvent => ({ type: 'tool_output', callId, text });
    const progress = (callId: string, message: string): RunEvent => ({
      type: 'tool_progress',
      callId,
      name: 'x',
      message,
    });
    const of = (callId: string, event: RunEvent): RunEvent => ({ type: 'skill_event', callId, event });
    const joinedIn = (...events: RunEvent[]) => {
      const conversation = new Conversation();
      for (const event of events) conversation.append(event);
      return conversation.nextBatch()?.events;
    };
    assert.deepEqual(joinedIn(output('a', 'x'), output('a', 'y')), [output('a', 'xy')]);
    assert.equal(joinedIn(output('a', 'x'), output('b', 'y'))?.length, 2);
    assert.deepEqual(joinedIn(progress('a', 'x'), progress('a', 'y')), [progress('a', 'y')]);
    assert.equal(joinedIn(progress('a', 'x'), progress('b', 'y'))?.length, 2);
    assert.equal(joinedIn(output('a', 'x'), progress('a', 'y'), output('a', 'z'))?.length, 3);
    assert.deepEqual(joinedIn(of('a', text('x')), of('a', text('y'))), [of('a', text('xy'))]);
    assert.equal(joinedIn(of('a', text('x')), of('b', text('y')))?.length, 2);
    assert.equal(joinedIn(text('x'), of('a', text('y')))?.length, 2);
  });

  const startOf = (runId: string, more: object = {}): RunEvent => ({
    type: 'run_start',
    runId,
    text: runId,
    startedAt: `at ${runId}`,
    ...more,
  });
  const endOf = (outcome: RunOutcome): RunEvent => ({
    type: 'run_end',
    outcome,
    rounds: 1,
    toolCalls: 0,
    durationMs: 1,
    messages: [],
  });
  const stored = (
    runId: string,
    outcome: RunOutcome | undefined,
    more: Partial<RestoredRun> = {},
  ): RestoredRun => ({
    request: { text: runId },
    events: [startOf(runId), routed, text('!'), ...(outcome ? [endOf(outcome)] : [])],
    ...more,
  });

  it('can resume its latest run alone: one that was stopped, that came to its limit, or that never ended', () => {
    for (const [outcome, can] of [
      ['cancelled', true],
      ['round_limit', true],
      [undefined, true],
      ['completed', false],
      ['failed', false],
    ] as const) {
      const conversation = Conversation.restored('c', [stored('a', 'cancelled'), stored('b', outcome)]);
      assert.equal(conversation.isInterrupted('b'), can, outcome);
      assert.equal(conversation.latestOutcome, outcome);
      assert.equal(conversation.isInterrupted('a'), false);
      conversation.nextBatch();
      assert.equal(conversation.isInterrupted('b'), can, outcome);
      assert.equal(conversation.latestOutcome, outcome);
    }
    assert.equal(new Conversation().isInterrupted('a'), false);
  });

  it('is taken back from a run on, but not from one of the conversation that it has branched off', () => {
    const runs = [
      stored('a', 'completed', { isInherited: true }),
      stored('b', 'completed'),
      stored('c', 'completed'),
    ];
    const conversation = Conversation.restored('c', runs);
    assert.equal(conversation.title, 'b');
    conversation.nextBatch();
    assert.deepEqual(conversation.runIds, ['a', 'b', 'c']);
    assert.deepEqual(conversation.runIdsFrom('b'), ['b', 'c']);
    assert.deepEqual(conversation.runIdsFrom('c'), ['c']);
    assert.deepEqual(conversation.runIdsFrom('a'), []);
    assert.deepEqual(conversation.runIdsFrom('x'), []);
    assert.deepEqual([conversation.startOf('b'), conversation.startOf('x')], ['at b', '']);
    assert.equal(conversation.latestRunId, 'c');
    const cut = conversation.before('c');
    assert.deepEqual([cut?.request.text, cut?.conversation.latestRunId], ['c', 'b']);
    assert.deepEqual(cut?.conversation.since(0).events.filter(({ type }) => type === 'run_start').length, 2);
    assert.equal(conversation.before('x'), undefined);
    assert.equal(conversation.branchAt('x'), undefined);
    const branch = conversation.branchAt('c')?.conversation;
    assert.deepEqual([branch?.title, branch?.runIdsFrom('b')], ['a', []], 'all of it is inherited');
    assert.notEqual(branch?.conversationId, conversation.conversationId);
    const first = conversation.before('a')?.conversation;
    assert.deepEqual([first?.isEmpty, first?.latestRunId, first?.earlier.messages], [true, undefined, []]);
  });

  it('keeps its mode, its context files and its given name when it is cut, but a branch has no name', () => {
    const begun = startOf('a', { mode: 'plan', withoutContextFiles: true });
    const runs = [stored('a', 'completed', { events: [begun, routed, endOf('completed')] })];
    const conversation = Conversation.restored('c', runs, 'Mine');
    assert.deepEqual(
      [conversation.mode, conversation.withoutContextFiles, conversation.title],
      ['plan', true, 'Mine'],
    );
    const cut = conversation.before('a')?.conversation;
    assert.deepEqual([cut?.mode, cut?.withoutContextFiles, cut?.title], ['plan', true, 'Mine']);
    assert.equal(conversation.branchAt('a')?.conversation.title, '');
    const later = Conversation.restored('c', [...runs, stored('b', 'completed')]);
    assert.deepEqual([later.mode, later.withoutContextFiles], ['default', false], 'those of its latest run');
  });

  it('goes on from what a run has said, and from nothing that ended before a skill or a word', () => {
    const said: Message[] = [{ role: 'user', content: 'a' }];
    const conversation = new Conversation();
    conversation.append({ ...endOf('failed'), messages: said } as RunEvent);
    assert.deepEqual(conversation.earlier, { messages: [] });
    conversation.append(routed);
    conversation.append(endOf('failed'));
    assert.deepEqual(conversation.earlier, { messages: [] });
    conversation.append({ ...endOf('failed'), messages: said } as RunEvent);
    const skill = { agent: 'kairos', skill: 'kickoff' };
    assert.deepEqual(conversation.earlier, { messages: said, skill, skillFailed: true });
    conversation.append({ ...endOf('completed'), messages: said } as RunEvent);
    assert.deepEqual(conversation.earlier, { messages: said, skill });
  });

  it('takes along again what went along with the same words, unless something else does', () => {
    const conversation = new Conversation();
    const note = { kind: 'text', name: 'a', language: '', text: '' } as const;
    const selection = { file: '/a', text: 'x', line: 1, language: '' };
    const first = { text: 'go', attachments: [note], selection, keptWith: { runId: 'r', attached: [] } };
    assert.deepEqual(conversation.completed({ text: 'go' }), { text: 'go' });
    conversation.begin(first);
    assert.deepEqual(conversation.completed({ text: 'go' }), first);
    for (const other of [{ text: 'other' }, { text: 'go', attachments: [] }, { text: 'go', selection }])
      assert.deepEqual(conversation.completed(other), other);
    conversation.begin({ text: 'bare' });
    assert.deepEqual(conversation.completed({ text: 'bare' }), { text: 'bare' });
  });

  it('rebuilds what a run without an end has said, from the run on if that began anew', () => {
    const own: Message[] = [
      { role: 'user', content: 'b' },
      { role: 'assistant', content: 'b!' },
    ];
    const first = stored('a', 'completed', {
      events: [
        startOf('a'),
        routed,
        { ...endOf('completed'), messages: [{ role: 'user', content: 'a' }] } as RunEvent,
      ],
    });
    const saidAfter = (more: Partial<RestoredRun>) =>
      Conversation.restored('c', [first, stored('b', undefined, more)]).earlier.messages.map(
        ({ content }) => content,
      );
    assert.deepEqual(saidAfter({ messages: own }), ['a', 'b', 'b!']);
    assert.deepEqual(saidAfter({ messages: own, beginsAnew: true }), ['b', 'b!']);
    assert.deepEqual(saidAfter({ events: [startOf('b'), routed] }), ['a'], 'it has said nothing');
    const call: RunEvent = { type: 'tool_start', call: { id: '1', name: 'x', input: {} } };
    assert.equal(saidAfter({ events: [startOf('b'), routed, call] }).length, 4, 'a call is something said');
  });

  it('is titled by its words or its skill, and after a replay by what was played', () => {
    const named = new Conversation();
    assert.equal(named.title, '');
    named.begin({ text: ' ', skill: { agent: 'a', skill: 'kickoff' } });
    assert.equal(named.title, 'Run kickoff');
    const replay = new Conversation();
    replay.beginReplay({ text: 'one' }, 'My day');
    assert.equal(replay.title, 'Replay: My day');
    replay.begin({ text: 'two' });
    assert.equal(replay.title, 'two');
  });

  it('works where its latest skill worked', () => {
    const conversation = new Conversation();
    assert.equal(conversation.workingDir, undefined);
    conversation.append({ ...routed, workingDir: '/a' } as RunEvent);
    conversation.nextBatch();
    assert.equal(conversation.workingDir, '/a');
    conversation.append({ ...routed, workingDir: '/b' } as RunEvent);
    assert.equal(conversation.workingDir, '/b');
  });
});
