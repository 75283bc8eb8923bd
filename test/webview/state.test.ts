import assert from 'node:assert/strict';
import type { RunEvent, RunOutcome, Usage } from '../../src/protocol/run.ts';
import type { ChatState, EndItem, Item, ToolItem } from '../../webview/runItems.ts';
import { emptyChat, interrupt, isRunning, reduce, reduceAll } from '../../webview/state.ts';
import { describeAnswer } from '../../webview/wording.ts';

const start: RunEvent = {
  type: 'run_start',
  runId: 'r1',
  text: 'run daily kickoff',
  startedAt: '2026-01-05T08:00:00Z',
};
const routed: RunEvent = {
  type: 'routed',
  agent: 'kairos',
  skill: 'kickoff',
  description: 'Plans the day',
  reason: { rule: 'name', matched: 'kickoff' },
  provider: 'anthropic',
  model: 'claude-haiku-4-5',
  workingDir: '/home/me/kairos',
  hasMcp: false,
};
const text = (value: string): RunEvent => ({ type: 'text', text: value });
const toolStart = (id: string, name = 'run_command'): RunEvent => ({
  type: 'tool_start',
  call: { id, name, input: { command: 'git status' } },
});
const toolEnd = (callId: string, isError = false): RunEvent => ({
  type: 'tool_end',
  callId,
  name: 'run_command',
  result: { content: 'ok', isError },
});
const ask = (callId: string): RunEvent => ({
  type: 'approval_request',
  request: {
    callId,
    token: 't',
    tool: 'run_command',
    subject: 'git status',
    rule: 'command',
    reason: 'Commands ask',
    scopes: ['once'],
  },
});
const answer = (callId: string, allow: boolean): RunEvent => ({
  type: 'approval_response',
  callId,
  decision: allow ? { allow, scope: 'once' } : { allow, reason: 'no' },
});
const usage = (round: number, cost: Usage['cost']): RunEvent => ({
  type: 'usage',
  round,
  usage: { inputTokens: 100, outputTokens: 10, cacheReadTokens: 5, cacheWriteTokens: 1, cost },
});
const end = (outcome: RunOutcome = 'completed'): RunEvent => ({
  type: 'run_end',
  outcome,
  rounds: 2,
  toolCalls: 1,
  durationMs: 1500,
  messages: [],
});

const fold = (events: readonly RunEvent[], from: ChatState = emptyChat) => events.reduce(reduce, from);
const items = (state: ChatState): readonly Item[] => state.runs.at(-1)!.items;
const kinds = (state: ChatState) => items(state).map(item => item.kind);
const tool = (state: ChatState, id = 't1') =>
  items(state).find((item): item is ToolItem => item.kind === 'tool' && item.call.id === id);

const wholeRun: RunEvent[] = [
  start,
  routed,
  text('I will '),
  text('look.\n\n'),
  text('First the `status`'),
  usage(1, 0.001),
  toolStart('t1'),
  ask('t1'),
  answer('t1', true),
  toolEnd('t1'),
  { type: 'retry', attempt: 1, waitMs: 2000, why: 'overloaded' },
  text('Done.'),
  usage(2, 0.002),
  end(),
];

describe('chat state', () => {
  it('says once in a conversation that a server did not start, and keeps where a skill works in its line', () => {
    const notice = (text: string, ...values: string[]): RunEvent => ({
      type: 'notice',
      level: 'warning',
      message: values.join(),
      sentences: [{ text, values }],
    });
    const dead = (server: string) =>
      notice(
        "The MCP server '{0}' is not available in this run: {1}. It is configured in {2}.",
        server,
        'it exited',
        'mcp.json',
      );
    const once = [start, routed, notice('Works in: {0}', '/work'), dead('one'), dead('two'), end()];
    const { runs } = reduceAll(emptyChat, [...once, ...once]);
    const notices = runs.map(({ items }) =>
      items.flatMap(item => (item.kind === 'notice' ? [item.dead] : [])),
    );
    assert.deepEqual(notices, [
      [
        { agent: 'kairos', server: 'one' },
        { agent: 'kairos', server: 'two' },
      ],
      [],
    ]);
    assert.equal(runs[0]?.route?.place, '/work');
    assert.equal(runs[0]?.items.find(item => item.kind === 'route')?.place, '/work');
  });

  it('is the same from events sent again in one batch as from events one by one', () => {
    const live = fold(wholeRun);
    assert.deepEqual(reduceAll(emptyChat, wholeRun), live);
    for (let cut = 0; cut <= wholeRun.length; cut += 1) {
      const resumed = reduceAll(reduceAll(emptyChat, wholeRun.slice(0, cut)), wholeRun.slice(cut));
      assert.deepEqual(resumed, live);
    }
  });

  it('has how far a call is in its row, and nothing of a call that has ended', () => {
    const far = (share: number): RunEvent => ({
      type: 'tool_progress',
      callId: 't1',
      name: 'copy',
      message: `${share}`,
      share,
    });
    const running = fold([start, routed, toolStart('t1', 'copy'), far(0.2), far(0.5)]);
    assert.deepEqual(tool(running)?.progress, { message: '0.5', share: 0.5 });
    assert.equal(items(running).length, 2);
    const ended = fold([toolEnd('t1'), far(0.9)], running);
    assert.deepEqual(tool(ended)?.progress, { message: '0.5', share: 0.5 });
  });

  it('draws a run in the order in which it happened', () => {
    assert.deepEqual(kinds(fold(wholeRun)), ['route', 'text', 'tool', 'approval', 'retry', 'text', 'end']);
  });

  it('joins text deltas into one item, and begins another after a tool', () => {
    const state = fold([start, routed, text('Hel'), text('lo'), toolStart('t1'), toolEnd('t1'), text('Bye')]);
    const texts = items(state).filter(item => item.kind === 'text');
    assert.equal(texts.length, 2);
    assert.deepEqual(
      texts[0]!.markdown.closed.map(block => block.source),
      ['Hello'],
    );
    assert.equal(texts[1]!.markdown.open, 'Bye');
  });

  it('keeps the identity of everything that a delta does not touch', () => {
    const before = fold([...wholeRun, start, routed, text('a'), toolStart('t2'), text('b')]);
    const after = reduce(before, text('c'));
    assert.equal(after.runs[0], before.runs[0]);
    const [old, fresh] = [before.runs[1]!.items, after.runs[1]!.items];
    assert.ok(fresh.slice(0, -1).every((item, index) => item === old[index]));
    assert.notEqual(fresh.at(-1), old.at(-1));
  });

  it('never changes a state that it was given', () => {
    const before = fold(wholeRun.slice(0, 8));
    const copy = structuredClone(before);
    fold(wholeRun.slice(8), before);
    assert.deepEqual(before, copy);
  });

  describe('approvals', () => {
    const asked = fold([start, routed, toolStart('t1'), ask('t1')]);

    it('make the call wait, and run on once it is allowed', () => {
      assert.equal(tool(asked)?.state, 'waiting');
      assert.equal(tool(reduce(asked, answer('t1', true)))?.state, 'running');
    });

    it('mark a denied call as denied, also when its result says that it failed', () => {
      const denied = fold([answer('t1', false), toolEnd('t1', true)], asked);
      assert.equal(tool(denied)?.state, 'denied');
    });

    it('mark a call whose question was skipped as any other', () => {
      const decision = { allow: false, reason: 'Skipped.', isSkipped: true } as const;
      const left = fold([{ type: 'approval_response', callId: 't1', decision }, toolEnd('t1')], asked);
      assert.equal(tool(left)?.state, 'done');
      const [question] = items(left).filter(item => item.kind === 'approval');
      assert.ok(question?.answer && question.answer !== 'withdrawn');
      assert.equal(describeAnswer(question.answer, question.request), 'You skipped this');
    });

    it('answer the call they belong to when several wait', () => {
      const both = fold([toolStart('t2'), ask('t2'), answer('t1', true)], asked);
      assert.equal(tool(both, 't1')?.state, 'running');
      assert.equal(tool(both, 't2')?.state, 'waiting');
      const open = items(both).filter(item => item.kind === 'approval' && !item.answer);
      assert.equal(open.length, 1);
    });

    it('are withdrawn when the run ends without an answer', () => {
      const state = reduce(asked, end('cancelled'));
      assert.equal(tool(state)?.state, 'stopped');
      const approval = items(state).find(item => item.kind === 'approval');
      assert.equal(approval?.answer, 'withdrawn');
    });
  });

  it('closes open tool cards and text when a run is cancelled', () => {
    const state = fold([
      start,
      routed,
      toolStart('t1'),
      toolStart('t2'),
      toolEnd('t1'),
      text('half a sen'),
      end('cancelled'),
    ]);
    assert.equal(tool(state, 't1')?.state, 'done');
    assert.equal(tool(state, 't2')?.state, 'stopped');
    const last = items(state).findLast(item => item.kind === 'text');
    assert.equal(last?.markdown.open, '');
    assert.equal(isRunning(state), false);
  });

  it('shows a failed tool as failed, and a result without a call all the same', () => {
    assert.equal(tool(fold([start, toolStart('t1'), toolEnd('t1', true)]))?.state, 'failed');
    assert.equal(tool(fold([start, toolEnd('t9')]), 't9')?.state, 'done');
  });

  it('says that a run was interrupted when another one starts or no more events can come', () => {
    const cutShort = fold([start, routed, toolStart('t1')]);
    const outcomeOf = (state: ChatState, run: number) => (state.runs[run]!.items.at(-1) as EndItem).outcome;
    assert.equal(outcomeOf(reduce(cutShort, start), 0), 'interrupted');
    assert.equal(outcomeOf(interrupt(cutShort), 0), 'interrupted');
    const finished = fold(wholeRun);
    assert.equal(interrupt(finished), finished);
  });

  it('sums tokens and cost at the end, and calls the cost unknown when a part of it is', () => {
    const known = items(fold(wholeRun)).at(-1) as EndItem;
    assert.deepEqual(known.usage, {
      inputTokens: 200,
      outputTokens: 20,
      cacheReadTokens: 10,
      cacheWriteTokens: 2,
      cost: 0.003,
    });
    assert.deepEqual(
      known.perRound?.map(({ round, usage: { cost } }) => [round, cost]),
      [
        [1, 0.001],
        [2, 0.002],
      ],
    );
    const partly = items(fold([start, usage(1, 1), usage(2, 'unknown'), end()])).at(-1) as EndItem;
    assert.equal(partly.usage?.cost, 'unknown');
  });

  it('carries what trying again needs: the request and its run', () => {
    const last = items(fold([start, routed, end('failed')])).at(-1) as EndItem;
    assert.deepEqual(
      [last.text, last.runId],
      ['run daily kickoff', start.type === 'run_start' && start.runId],
    );
  });

  it('marks a command that ran in the box, and no other', () => {
    const boxed = { ...toolEnd('t1'), policy: { action: 'allow', rule: 'run.box', boxed: true } } as RunEvent;
    const asked = { ...toolEnd('t2'), policy: { action: 'ask', rule: 'run.command' } } as RunEvent;
    const state = fold([start, routed, toolStart('t1'), boxed, toolStart('t2'), asked]);
    assert.deepEqual([tool(state, 't1')?.boxed, tool(state, 't2')?.boxed], [true, undefined]);
  });

  it('names each file that a run changed once, and with each call the run that it belongs to', () => {
    const wrote = (callId: string, path: string): RunEvent => ({
      type: 'tool_end',
      callId,
      name: 'write_file',
      result: { content: 'Created it.', isError: false, changedFiles: [path] },
    });
    const state = fold([start, routed, wrote('t1', '/a'), wrote('t2', '/b'), wrote('t3', '/a'), end()]);
    assert.deepEqual((items(state).at(-1) as EndItem).changedFiles, ['/a', '/b']);
    assert.equal(tool(state, 't2')?.runId, 'r1');
  });

  it('shows the last of several waits, and that it is over once something else happens', () => {
    const wait = (attempt: number): RunEvent => ({ type: 'retry', attempt, waitMs: 1000, why: 'busy' });
    const waiting = fold([start, routed, wait(1), wait(2)]);
    assert.deepEqual(kinds(waiting), ['route', 'retry']);
    assert.equal((items(waiting)[1] as { over: boolean }).over, false);
    assert.equal((items(reduce(waiting, text('ok')))[1] as { over: boolean }).over, true);
  });

  it('ignores events outside of a run', () => {
    assert.equal(reduce(emptyChat, text('x')), emptyChat);
    const finished = fold(wholeRun);
    assert.equal(reduce(finished, text('late')), finished);
  });
});
