import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  logPath,
  maxRecordBytes,
  readLog,
  type SkillEndRecord,
  type ToolCallRecord,
} from '../../../src/engine/records/logFile.ts';
import { record } from '../../../src/engine/records/record.ts';
import { parseLine, type RunLine } from '../../../src/engine/records/runFile.ts';
import { redactor } from '../../../src/engine/redact.ts';
import { type Message, type RunEvent, skipped } from '../../../src/protocol/run.ts';

const conversation: Message[] = [
  { role: 'user', content: 'Body\n\nUser request: go' },
  {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 't1', name: 'write_file', input: { path: 'o.md' } }],
  },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'ok', is_error: false }] },
  { role: 'assistant', content: [{ type: 'text', text: 'All done with token-12345.' }] },
];

const start: RunEvent = { type: 'run_start', runId: 'r1', text: 'go', startedAt: '2026-01-02T03:04:05.000Z' };
const routed: RunEvent = {
  type: 'routed',
  agent: 'kairos',
  skill: 'kickoff',
  description: 'Morning',
  reason: { rule: 'name' },
  provider: 'anthropic',
  model: 'm',
  workingDir: '/w',
  hasMcp: true,
};
const toolEnd: RunEvent = {
  type: 'tool_end',
  callId: 't1',
  name: 'write_file',
  result: { content: 'ok', isError: false },
};
const end: RunEvent = {
  type: 'run_end',
  outcome: 'completed',
  rounds: 2,
  toolCalls: 1,
  durationMs: 1500,
  messages: conversation,
};
const usage = (cost: number | 'unknown'): RunEvent => ({
  type: 'usage',
  round: 1,
  usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 1, cacheWriteTokens: 2, cost },
});

async function* eventsOf(...events: RunEvent[]): AsyncGenerator<RunEvent> {
  yield* events;
}

async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const seen: RunEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

describe('record', () => {
  let dataDir: string;
  const recorded = (events: AsyncIterable<RunEvent>, messages: readonly Message[] = []) =>
    record(
      events,
      { request: {}, messages, earlier: 0, redact: redactor(['token-12345']), countsDay: true },
      dataDir,
    );
  const records = async () => (await readLog(logPath(dataDir))).records;
  const lastRecord = async () => (await records()).at(-1) as SkillEndRecord;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'telos-log-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  it('passes every event on and writes start, call and end with the specification’s keys first', async () => {
    const events = [start, routed, toolEnd, usage(0.25), usage(0.5), end];
    const seen = await collect(recorded(eventsOf(...events)));
    const safe = JSON.stringify(events).replaceAll('token-12345', '[redacted]');
    assert.deepEqual(seen, JSON.parse(safe));
    const all = await records();
    const calls = all.filter(one => one.event === 'model_call');
    assert.deepEqual(
      calls.map(({ run_id, cost, input_tokens }) => [run_id, cost, input_tokens]),
      [
        ['r1', 0.25, 10],
        ['r1', 0.5, 10],
      ],
    );
    const [first, second, third, ...more] = all.filter(one => one.event !== 'model_call');
    assert.equal(more.length, 0);
    assert.deepEqual(Object.keys(first!).slice(0, 5), ['ts', 'event', 'provider', 'model', 'has_mcp']);
    assert.deepEqual(
      { ...first, ts: '' },
      {
        ts: '',
        event: 'skill_start',
        provider: 'anthropic',
        model: 'm',
        has_mcp: true,
        run_id: 'r1',
        agent: 'kairos',
        skill: 'kickoff',
        pid: process.pid,
      },
    );
    assert.deepEqual(Object.keys(second!).slice(0, 4), ['ts', 'event', 'tool', 'is_error']);
    assert.deepEqual(Object.keys(third!).slice(0, 7), [
      'ts',
      'event',
      'duration_s',
      'rounds',
      'tool_calls',
      'error',
      'messages',
    ]);
    const { ts, messages, ...rest } = third as SkillEndRecord;
    assert.ok(Math.abs(Date.parse(ts) - Date.now()) < 60_000);
    assert.equal(messages.length, 4);
    assert.deepEqual(messages.at(-1)?.content, [{ type: 'text', text: 'All done with [redacted].' }]);
    assert.deepEqual(rest, {
      event: 'skill_end',
      duration_s: 1.5,
      rounds: 2,
      tool_calls: 1,
      error: null,
      run_id: 'r1',
      agent: 'kairos',
      skill: 'kickoff',
      outcome: 'completed',
      input_tokens: 20,
      output_tokens: 10,
      cache_read_tokens: 2,
      cache_write_tokens: 4,
      cost: 0.75,
    });
  });

  it('keeps the file to its owner', async () => {
    await collect(recorded(eventsOf(start, end)));
    assert.equal(statSync(logPath(dataDir)).mode & 0o077, 0);
  });

  it('calls the cost unknown when a price or the tokens are not known, and 0 only when no model was asked', async () => {
    await collect(recorded(eventsOf(start, routed, usage(0.25), usage('unknown'), end)));
    assert.equal((await lastRecord()).cost, 'unknown');
    await collect(recorded(eventsOf(start, routed, end)));
    assert.equal((await lastRecord()).cost, 'unknown');
    const early: RunEvent = {
      ...end,
      outcome: 'failed',
      rounds: 0,
      error: { code: 'auth', message: 'no key' },
    };
    await collect(recorded(eventsOf(start, early)));
    const { cost, error, agent } = await lastRecord();
    assert.deepEqual([cost, error, agent], [0, 'no key', null]);
  });

  it('writes down who allowed a call by which rule', async () => {
    const request: RunEvent = {
      type: 'approval_request',
      request: {
        callId: 't1',
        token: 't',
        tool: 'run_command',
        subject: 'ls',
        rule: 'command',
        reason: 'r',
        scopes: ['once'],
      },
    };
    const response: RunEvent = {
      type: 'approval_response',
      callId: 't1',
      decision: { allow: true, scope: 'run' },
    };
    await collect(recorded(eventsOf(start, routed, request, response, toolEnd, end)));
    const call = (await records())[1] as ToolCallRecord;
    assert.deepEqual(call.approval, { rule: 'command', answer: 'run' });
  });

  it('does not take the answer to one call for that to a later one of the same id, as some servers number them', async () => {
    const request: RunEvent = {
      type: 'approval_request',
      request: { callId: 't1', token: 't', tool: 'x', subject: 's', rule: 'r', reason: '', scopes: ['once'] },
    };
    await collect(recorded(eventsOf(start, routed, request, toolEnd, toolEnd, end)));
    const [, first, second] = (await records()) as ToolCallRecord[];
    assert.equal(first?.approval?.rule, 'r');
    assert.equal(second?.approval, undefined);
  });

  it('writes down what was answered: why not, that it was skipped, or what the command was changed to', async () => {
    const asks = (callId: string): RunEvent => ({
      type: 'approval_request',
      request: { callId, token: 't', tool: 'x', subject: 's', rule: 'r', reason: '', scopes: ['once'] },
    });
    const ends = (callId: string): RunEvent => ({ ...toolEnd, callId }) as RunEvent;
    const answers: RunEvent[] = [
      { type: 'approval_response', callId: 'a', decision: { allow: false, reason: 'not now' } },
      { type: 'approval_response', callId: 'b', decision: { allow: true, scope: 'once', command: 'ls -a' } },
      { type: 'approval_response', callId: 'c', decision: skipped },
    ];
    await collect(
      recorded(
        eventsOf(
          ...[start, routed, ...['a', 'b', 'c'].map(asks)],
          ...[...answers, ...['a', 'b', 'c'].map(ends), end],
        ),
      ),
    );
    const [, first, second, third] = (await records()) as ToolCallRecord[];
    assert.equal(first?.approval?.answer, 'no: not now');
    assert.equal(second?.approval?.answer, 'changed to: ls -a');
    assert.equal(third?.approval?.answer, 'skipped');
  });

  it('writes down the calls of a skill that ran as a step, with who allowed them, and counts them not as its own', async () => {
    const inside = (event: RunEvent): RunEvent => ({ type: 'skill_event', callId: 'outer', event });
    const request: RunEvent = {
      type: 'approval_request',
      request: { callId: 't1', token: 't', tool: 'x', subject: 's', rule: 'r', reason: '', scopes: ['once'] },
    };
    const response: RunEvent = {
      type: 'approval_response',
      callId: 't1',
      decision: { allow: true, scope: 'once' },
    };
    const step = [start, routed, request, response, toolEnd, { ...end, toolCalls: 9 } as RunEvent];
    for await (const event of recorded(
      eventsOf(start, routed, ...step.map(inside), ...[toolEnd, toolEnd].map(inside).map(inside)),
    ))
      if (event.type === 'run_end') break;
    const all = await records();
    assert.deepEqual(
      all.map(({ event }) => event),
      ['skill_start', 'tool_call', 'tool_call', 'tool_call', 'skill_end'],
    );
    assert.deepEqual((all[1] as ToolCallRecord).approval, { rule: 'r', answer: 'once' });
    assert.equal((await lastRecord()).tool_calls, 0);
  });

  it('costs nothing when a recording answers', async () => {
    const recording = { ...routed, provider: 'replay' } as RunEvent;
    await collect(recorded(eventsOf(start, recording, end)));
    assert.equal((await lastRecord()).cost, 0);
    const named = { ...routed, recording: { path: 'x' } } as unknown as RunEvent;
    for await (const event of recorded(eventsOf(start, named, usage(0), toolEnd)))
      if (event.type === 'tool_end') break;
    assert.equal((await lastRecord()).cost, 0);
  });

  it('writes no end of a run that never began, and one alone of a run that ended', async () => {
    await collect(recorded(eventsOf(usage(1))));
    assert.deepEqual(await records().catch(() => []), []);
    await collect(recorded(eventsOf(start, end, usage(1))));
    assert.equal((await records()).length, 1);
  });

  it('names the model that chose the skill, apart from that of the run', async () => {
    const routing = { provider: 'p', model: 'small' };
    const chosen = { ...usage(0.25), routing, round: 0 } as RunEvent;
    await collect(recorded(eventsOf(start, chosen, chosen, routed, usage(1), end)));
    const { routing: written, cost } = await lastRecord();
    assert.deepEqual([written?.model, written?.cost, written?.input_tokens, cost], ['small', 0.5, 20, 1.5]);
  });

  it('keeps the decision of the policy with its call, and whether the call failed', async () => {
    const policy = { action: 'ask', rule: 'command', boxed: true } as const;
    const failed = { ...toolEnd, policy, result: { content: 'no', isError: true } } as RunEvent;
    await collect(recorded(eventsOf(start, routed, failed, toolEnd, end)));
    const [, first, second] = (await records()) as ToolCallRecord[];
    assert.deepEqual([first?.policy, first?.is_error], [policy, true]);
    assert.deepEqual([second?.policy, second?.is_error], [undefined, false]);
  });

  it('writes a cancelled end with the transcript when the reader walks away', async () => {
    const endless = async function* (): AsyncGenerator<RunEvent> {
      yield start;
      yield routed;
      yield usage(0.5);
      for (;;) yield toolEnd;
    };
    for await (const event of recorded(endless(), conversation)) {
      if (event.type === 'tool_end') break;
    }
    const { outcome, messages, tool_calls, rounds, error } = await lastRecord();
    assert.deepEqual([outcome, messages.length, tool_calls, rounds, error], ['cancelled', 4, 1, 1, null]);
  });

  it('writes a failed end when the events break off with an exception', async () => {
    const breaking = async function* (): AsyncGenerator<RunEvent> {
      yield start;
      throw new Error('broken with token-12345');
    };
    await assert.rejects(collect(recorded(breaking())), /broken/);
    const { outcome, error } = await lastRecord();
    assert.deepEqual([outcome, error], ['failed', 'broken with [redacted]']);
  });

  it('says once that it cannot write, and lets the run go on', async () => {
    writeFileSync(join(dataDir, 'logs'), 'a file where the folder should be');
    const seen = await collect(recorded(eventsOf(start, routed, toolEnd, end)));
    assert.deepEqual(
      seen.map(event => event.type),
      ['run_start', 'notice', 'routed', 'tool_end', 'run_end'],
    );
    const said = seen[1] as Extract<RunEvent, { type: 'notice' }>;
    assert.match(said.message, /^This run is not logged\. .*\/logs is not a folder\. Check/);
  });

  it('begins on a line of its own behind a line that a crash cut off', async () => {
    mkdirSync(join(dataDir, 'logs'));
    writeFileSync(logPath(dataDir), '{"ts":"2026-01-02T03:04:05Z","event":"tool_c');
    await collect(recorded(eventsOf(start, routed, end)));
    const { records, skipped } = await readLog(logPath(dataDir));
    assert.deepEqual([records.map(record => record.event), skipped], [['skill_start', 'skill_end'], 1]);
  });

  it('keeps a record under 8 MiB and says what it left out, first and last message kept', async () => {
    const shapes: Message[][] = [
      [conversation[0]!, { role: 'assistant', content: 'x'.repeat(maxRecordBytes) }, conversation[3]!],
      [
        conversation[0]!,
        ...Array.from({ length: 1200 }, (): Message => ({ role: 'user', content: '"'.repeat(4096) })),
        conversation[3]!,
      ],
    ];
    for (const messages of shapes) {
      await collect(recorded(eventsOf(start, routed, { ...end, messages } as RunEvent)));
      const kept = (await lastRecord()).messages;
      assert.deepEqual(kept[0], conversation[0]);
      assert.match(JSON.stringify(kept.at(-1)), /All done/);
      assert.match(JSON.stringify(kept), /left out of the log/);
    }
    const [long, many] = (await records()).flatMap(one => (one.event === 'skill_end' ? [one.messages] : []));
    const middle = String(long?.[1]?.content).length;
    assert.ok(middle > 200_000, `as much of a long text as fits: ${middle}`);
    const leftOut = Number(/(\d+) messages left out/.exec(String(many?.[1]?.content))?.[1]);
    assert.equal(leftOut + (many?.length ?? 0) - 2, 1201, 'every message is kept or counted');
    assert.ok((many?.length ?? 0) > 300, `as many of the last as fit: ${many?.length}`);
    const lines = readFileSync(logPath(dataDir)).toString('latin1').split('\n');
    assert.ok(lines.every(line => line.length < maxRecordBytes));
  }).timeout(60_000);

  describe('in the log and in the file of the run alike', () => {
    const lines = (): RunLine[] =>
      readFileSync(join(dataDir, 'runs', 'r1.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .map(line => parseLine(line) ?? assert.fail(line));
    /** The outcome, the rounds, the calls and the cost, in the log and in the file. */
    async function ends() {
      const { outcome, rounds, tool_calls, cost } = await lastRecord();
      const all = lines();
      const end = all.findLast(line => line.type === 'run_end');
      const totals = all.findLast(line => line.type === 'totals');
      return [
        [outcome, rounds, tool_calls, cost],
        [end?.outcome, end?.rounds, end?.toolCalls, totals?.usage.cost],
      ];
    }

    it('adds up the choice of the skill and the rounds', async () => {
      const routing: RunEvent = {
        type: 'usage',
        round: 0,
        routing: { provider: 'p', model: 'small' },
        usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0.5 },
      };
      await collect(recorded(eventsOf(start, routing, routed, usage(0.25), usage(0.25), toolEnd, end)));
      const [log, file] = await ends();
      assert.deepEqual(log, ['completed', 2, 1, 1]);
      assert.deepEqual(file, log);
    });

    it('calls the cost unknown when a model that was asked has not told it', async () => {
      await collect(recorded(eventsOf(start, routed, end)));
      const [log, file] = await ends();
      assert.deepEqual(log, ['completed', 2, 1, 'unknown']);
      assert.deepEqual(file, log);
    });

    it('ends a run that is not read on as cancelled, and one that breaks off as failed', async () => {
      async function* breaking(): AsyncGenerator<RunEvent> {
        yield* [start, routed, usage(0.5), toolEnd];
        throw new Error('broken with token-12345');
      }
      for await (const event of recorded(breaking())) if (event.type === 'tool_end') break;
      const [cancelled, cancelledFile] = await ends();
      assert.deepEqual(cancelled, ['cancelled', 1, 1, 0.5]);
      assert.deepEqual(cancelledFile, cancelled);
      rmSync(join(dataDir, 'runs'), { recursive: true });
      await assert.rejects(collect(recorded(breaking())));
      const [failed, failedFile] = await ends();
      assert.deepEqual(failed, ['failed', 1, 1, 0.5]);
      assert.deepEqual(failedFile, failed);
      assert.doesNotMatch(JSON.stringify(lines()), /token-12345/);
    });

    it('hides a secret that is split over pieces of text, also when the run is not read on', async () => {
      async function* secret(): AsyncGenerator<RunEvent> {
        yield* [start, routed, { type: 'text', text: 'It is tok' }, { type: 'text', text: 'en-12345.' }];
        yield { type: 'text', text: ' Or tok' };
        for (;;) yield toolEnd;
      }
      let shown = '';
      for await (const event of recorded(secret())) {
        if (event.type === 'text') shown += event.text;
        if (event.type === 'tool_end') break;
      }
      assert.equal(shown, 'It is [redacted]. Or tok');
      const texts = lines().flatMap(line => (line.type === 'text' ? [line.text] : []));
      assert.deepEqual(texts, [shown]);
    });

    it('has written the record and the line of what is shown as the last', async () => {
      for await (const event of recorded(eventsOf(start, routed, toolEnd, end))) {
        const last = (await records().catch(() => [])).at(-1)?.event;
        const expected = { routed: 'skill_start', tool_end: 'tool_call', run_end: 'skill_end' };
        if (event.type !== 'run_start') assert.equal(last, Reflect.get(expected, event.type));
        if (event.type === 'run_end') assert.equal(lines().at(-1)?.type, 'run_end');
      }
    });

    it('keeps in the file that the log could not be written', async () => {
      writeFileSync(join(dataDir, 'logs'), 'a file where the folder should be');
      await collect(recorded(eventsOf(start, routed, end)));
      assert.deepEqual(
        lines().map(({ type }) => type),
        ['run', 'run_start', 'notice', 'routed', 'totals', 'run_end'],
      );
    });
  });
});
