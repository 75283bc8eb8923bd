/** Lines that were edited by hand, cut, or written by another version: each broken field is noticed, also the second of two. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { appendLine } from '../../../src/engine/files/jsonLines.ts';
import {
  appendRecord,
  figureIn,
  LogReader,
  type LogRecord,
  logDays,
  logPath,
  parseRecord,
  readLog,
  recordCall,
  recordRouting,
} from '../../../src/engine/records/logFile.ts';
import { isRunId, lineOf, parseLine } from '../../../src/engine/records/runFile.ts';

const ts = '2026-01-02T03:04:05.000Z';

describe('a line of a run’s file', () => {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 };
  const said = { role: 'user', content: 'go' };
  const good: readonly Readonly<Record<string, unknown>>[] = [
    { type: 'run', runId: 'a', startedAt: ts },
    { type: 'messages', messages: [said, { role: 'assistant', content: [{ type: 'text', text: 'x' }] }] },
    { type: 'totals', usage },
    { type: 'title', title: '' },
    { type: 'set_aside', isAside: false },
    { type: 'run_start', text: 'go' },
    { type: 'routed', agent: 'a', skill: 's', reason: { rule: 'name' } },
    { type: 'step', detail: 'd' },
    { type: 'notice', message: 'm' },
    { type: 'text', text: 't' },
    { type: 'reasoning', text: 't' },
    { type: 'tool_start', call: { id: '1', name: 'read_file', input: {} } },
    { type: 'approval_request', request: { callId: '1', subject: 's' } },
    { type: 'approval_response', decision: { allow: true } },
    { type: 'tool_output', text: 'o' },
    { type: 'tool_progress', message: 'm' },
    { type: 'skill_event', callId: '1', event: { type: 'text', text: 't' } },
    { type: 'tool_end', callId: '1', result: { content: '' } },
    { type: 'usage', usage },
    { type: 'retry', why: 'w' },
    { type: 'compacted', summary: 's' },
    { type: 'compaction_undone' },
    { type: 'run_end', outcome: 'completed' },
  ];

  it('is taken with the fields that its readers need, whatever else is in it', () => {
    for (const line of good)
      assert.deepEqual(parseLine(JSON.stringify({ ...line, more: 1 })), { ...line, more: 1 });
  });

  it('is none when any one of them is missing or of another kind', () => {
    for (const line of good)
      for (const name of Object.keys(line))
        for (const value of [undefined, null, 7, ['x', 7]]) {
          const text = JSON.stringify({ ...line, [name]: value });
          assert.equal(parseLine(text), undefined, text);
        }
  });

  it('is none when a field within a field is broken', () => {
    const call = { id: '1', name: 'n', input: {} };
    const broken: readonly unknown[] = [
      { type: 'tool_start', call: { ...call, id: 1 } },
      { type: 'tool_start', call: { ...call, name: 1 } },
      { type: 'tool_start', call: { ...call, input: 'x' } },
      { type: 'approval_request', request: { callId: 1, subject: 's' } },
      { type: 'approval_request', request: { callId: '1', subject: 1 } },
      { type: 'tool_end', callId: '1', result: { content: [] } },
      { type: 'skill_event', callId: '1', event: { type: 'title', title: 'no event' } },
      { type: 'skill_event', callId: '1', event: { type: 'text' } },
      { type: 'messages', messages: [said, { role: 'system', content: 'x' }] },
      { type: 'messages', messages: [said, { role: 'user', content: 7 }] },
      { type: 'messages', messages: [said, { role: 'user', content: [{ type: 'text' }, 'x'] }] },
      { type: 'messages', messages: [said, { role: 'user', content: [{ type: 'text' }, { type: 1 }] }] },
      { type: 'toString' },
      [],
      null,
    ];
    for (const line of broken) assert.equal(parseLine(JSON.stringify(line)), undefined, JSON.stringify(line));
  });

  it('is written whole if it can be read again, and else cut so that it can', () => {
    const short = { type: 'text', text: 'x'.repeat(100_000) } as const;
    assert.deepEqual(parseLine(lineOf(short)), short);
    const cut = parseLine(lineOf({ type: 'text', text: 'x'.repeat(9_000_000) }));
    assert.ok(cut?.type === 'text' && cut.text.length < 40_000, 'cut');
    assert.match(cut.text, /^x+\n\[\.\.\. \d+ bytes, of which the middle is left out/);
  });

  it('belongs to a run whose id may become a file’s name', () => {
    for (const id of ['a', 'A-1_b', '9'.repeat(100)]) assert.equal(isRunId(id), true, id);
    for (const id of ['', '-a', '_a', 'a.b', '9'.repeat(101), 'a\n']) assert.equal(isRunId(id), false, id);
  });
});

describe('a record of the log', () => {
  const read = (record: object): Record<string, unknown> | undefined =>
    parseRecord(JSON.stringify({ ts, ...record })) as Record<string, unknown> | undefined;

  it('of an earlier version says completed without an error, and failed with one', () => {
    const answered = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello.' },
    ];
    assert.equal(read({ event: 'skill_end', error: null, messages: answered })?.['outcome'], 'completed');
    for (const messages of [undefined, [], answered.slice(0, 1), [{ role: 'assistant', content: ' ' }]]) {
      const { outcome, error } = read({ event: 'skill_end', error: null, messages }) ?? {};
      assert.deepEqual([outcome, error], ['failed', 'This record does not say how the run ended.']);
    }
    assert.equal(read({ event: 'skill_end' })?.['outcome'], 'failed');
    assert.equal(read({ event: 'skill_end', error: 'no key' })?.['outcome'], 'failed');
    assert.equal(read({ event: 'skill_end', error: 'no key', outcome: 'budget' })?.['outcome'], 'budget');
  });

  it('has an empty value for each one that is broken', () => {
    assert.deepEqual(read({ event: 'tool_call', tool: 7, run_id: {} }), {
      ts,
      event: 'tool_call',
      tool: '-',
      run_id: '',
    });
    const names = { provider: '-', model: '-', agent: '-', skill: '-' };
    assert.deepEqual(read({ event: 'skill_start', provider: 1, model: [], agent: null }), {
      ts,
      event: 'skill_start',
      run_id: '',
      ...names,
    });
    const kept = { run_id: 'r', agent: 'a', skill: 's', provider: 'p', model: 'm' };
    assert.deepEqual(read({ event: 'skill_start', ...kept }), { ts, event: 'skill_start', ...kept });
    const end = read({
      event: 'skill_end',
      agent: 1,
      skill: {},
      duration_s: '4',
      rounds: null,
      messages: {},
    });
    const { agent, skill, duration_s, rounds, messages } = end ?? {};
    assert.deepEqual([agent, skill, duration_s, rounds, messages], [null, null, 0, 0, []]);
    assert.equal(read({ event: 'skill_end', error: {}, outcome: 'completed' })?.['error'], null);
    const whole = read({ event: 'skill_end', duration_s: 4, rounds: 2 });
    assert.deepEqual([whole?.['duration_s'], whole?.['rounds']], [4, 2]);
    assert.deepEqual([1, '1', Number.POSITIVE_INFINITY, Number.NaN].map(figureIn), [1, 0, 0, 0]);
  });

  it('keeps the messages that a model would take, and no other', () => {
    const text = { type: 'text', text: 'x' };
    const result = (...content: unknown[]) => ({ role: 'user', content: [{ type: 'tool_result', content }] });
    const good = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [text, { type: 'tool_use', id: '1' }] },
      { role: 'user', content: [{ type: 'tool_result', content: 'ok' }] },
      result(text, text),
    ];
    const broken = [
      null,
      { role: 'system', content: 'x' },
      { role: 'user', content: 7 },
      { role: 'user', content: [text, null] },
      { role: 'user', content: [text, { type: 'text', text: 7 }] },
      { role: 'user', content: [text, { text: 'no type' }] },
      { role: 'user', content: [text, { type: 'tool_result', content: 7 }] },
      result(text, { type: 'text' }),
    ];
    assert.deepEqual(read({ event: 'skill_end', messages: [...broken, ...good] })?.['messages'], good);
  });

  it('is none without a time or with another event', () => {
    assert.equal(parseRecord(JSON.stringify({ event: 'skill_end' })), undefined);
    assert.equal(parseRecord(JSON.stringify({ ts, event: 'other' })), undefined);
    assert.equal(parseRecord('"text"'), undefined);
  });
});

describe('the log on disk', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'telos-log-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));
  const call = { door: 'editor', provider: 'p', model: 'm' } as const;
  const usage = { inputTokens: 3, outputTokens: 2, cacheReadTokens: 1, cacheWriteTokens: 0, cost: 0.5 };
  const ends = async () =>
    (await readLog(logPath(dataDir))).records.flatMap(one => (one.event === 'skill_end' ? [one] : []));

  it('names its days in their order, and nothing that is no day', () => {
    assert.deepEqual(logDays(dataDir), []);
    const folder = join(dataDir, 'logs');
    mkdirSync(folder);
    for (const name of ['2026-02-01.jsonl', '2026-01-31.jsonl', 'notes.jsonl', '2026-01-30.jsonl.old'])
      writeFileSync(join(folder, name), '');
    assert.deepEqual(logDays(dataDir), [
      { day: '2026-01-31', file: join(folder, '2026-01-31.jsonl') },
      { day: '2026-02-01', file: join(folder, '2026-02-01.jsonl') },
    ]);
  });

  it('has a question that came through the editor: a round if the model was reached, and else none', async () => {
    recordCall(dataDir, call, { outcome: 'completed', error: null, toolCalls: 1, durationMs: 1234.6, usage });
    recordCall(dataDir, call, { outcome: 'failed', error: 'auth', toolCalls: 0, durationMs: 5 });
    const [reached, failed] = await ends();
    assert.deepEqual(
      [reached?.rounds, reached?.cost, reached?.duration_s, reached?.tool_calls, reached?.call],
      [1, 0.5, 1.235, 1, call],
    );
    assert.deepEqual(
      [failed?.rounds, failed?.cost, failed?.outcome, failed?.error],
      [0, 0, 'failed', 'auth'],
    );
    assert.notEqual(reached?.run_id, failed?.run_id);
  });

  it('has the choice of a skill that no run followed, and breaks nothing when it cannot be written', async () => {
    const routing = { provider: 'p', model: 'small' };
    recordRouting({ type: 'usage', round: 0, usage, routing }, dataDir);
    recordRouting({ type: 'usage', round: 1, usage }, dataDir);
    recordRouting({ type: 'text', text: 'x' }, dataDir);
    const [only, ...more] = await ends();
    assert.deepEqual(more, []);
    assert.deepEqual(
      [only?.routing?.model, only?.routing?.alone, only?.routing?.input_tokens, only?.input_tokens],
      ['small', true, 3, 3],
    );
    rmSync(join(dataDir, 'logs'), { recursive: true });
    writeFileSync(join(dataDir, 'logs'), 'in the way');
    recordRouting({ type: 'usage', round: 0, usage, routing }, dataDir);
  });

  it('is read on from where it stopped, whole lines alone', async () => {
    const file = logPath(dataDir);
    const record = { ts, event: 'tool_call', tool: 't', is_error: false, run_id: '', call_id: '1' } as const;
    const fromStart = new LogReader(dataDir, 'start');
    const added = async (reader: LogReader): Promise<LogRecord[]> => {
      const all: LogRecord[] = [];
      for await (const { records } of reader.readOn()) all.push(...records);
      return all;
    };
    assert.deepEqual(await added(fromStart), []);
    appendRecord(file, record);
    const fromEnd = new LogReader(dataDir, 'end');
    assert.deepEqual(await added(fromStart), [record]);
    assert.deepEqual(await added(fromStart), []);
    const line = JSON.stringify({ ...record, call_id: '2' });
    writeFileSync(file, line.slice(0, 30), { flag: 'a' });
    assert.deepEqual(await added(fromEnd), []);
    writeFileSync(file, `${line.slice(30)}\n`, { flag: 'a' });
    for (const reader of [fromStart, fromEnd])
      assert.deepEqual(await added(reader), [{ ...record, call_id: '2' }]);
  });

  it('says how many messages it left out where not even the ends of them fit', async () => {
    const text = Array.from({ length: 340_000 }, () => ({ type: 'text' as const, text: '' }));
    const messages = [
      { role: 'user', content: text },
      { role: 'assistant', content: 'end' },
    ] as const;
    recordCall(dataDir, call, { outcome: 'completed', error: null, toolCalls: 0, durationMs: 1 });
    const [written] = await ends();
    assert.ok(written);
    appendRecord(logPath(dataDir), { ...written, messages });
    assert.deepEqual((await ends())[1]?.messages, [
      { role: 'user', content: '[... 2 messages left out of the log ...]' },
    ]);
  }).timeout(60_000);

  it('takes no line where a pipe lies in its place', () => {
    const pipe = join(dataDir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    assert.throws(() => appendLine(pipe, 'x'), /regular file/);
  });
});
