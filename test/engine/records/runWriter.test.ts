import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ownerHere } from '../../../src/engine/files/liveProcess.ts';
import { record } from '../../../src/engine/records/record.ts';
import { parseLine, type RunLine } from '../../../src/engine/records/runFile.ts';
import type { RecordedRun } from '../../../src/engine/records/runWriter.ts';
import { redactor } from '../../../src/engine/redact.ts';
import type { Message, RunEvent } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

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
  hasMcp: false,
};
const call: RunEvent = { type: 'tool_start', call: { id: 't1', name: 'read_file', input: { path: 'a' } } };
const result: RunEvent = {
  type: 'tool_end',
  callId: 't1',
  name: 'read_file',
  result: { content: 'ok', isError: false },
};
const text = (words: string): RunEvent => ({ type: 'text', text: words });
const end = (messages: Message[]): RunEvent => ({
  type: 'run_end',
  outcome: 'completed',
  rounds: 2,
  toolCalls: 1,
  durationMs: 5,
  messages,
});

describe('the file of a run', () => {
  let folder: TempFolder;
  const file = (): string => join(folder.path, 'runs', 'r1.jsonl');
  const lines = (): RunLine[] =>
    readFileSync(file(), 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => parseLine(line) ?? assert.fail(`no line of a run: ${line}`));
  const recorded = (
    events: AsyncIterable<RunEvent>,
    { messages = [], earlier = 0 }: Partial<RecordedRun> = {},
    request: RecordedRun['request'] = {},
  ) =>
    record(
      events,
      { request: { origin: 'cli', ...request }, messages, earlier, redact: redactor(['sesame-1234']) },
      folder.path,
    );
  const typesIn = (): string[] => lines().map(({ type }) => type);

  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  it('keeps what was said before, too, where that stands in no run before it', async () => {
    const messages: Message[] = [{ role: 'user', content: 'said elsewhere' }];
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      messages.push({ role: 'user', content: 'go' });
      yield text('Yes.');
      messages.push({ role: 'assistant', content: 'Yes.' });
      yield end(messages);
    }
    for await (const _ of recorded(run(), { messages, earlier: 1 }));
    const written = lines().flatMap(line => (line.type === 'messages' ? [line] : []));
    assert.deepEqual(
      written.map(({ earlier }) => earlier),
      [0],
    );
    assert.deepEqual(
      written.flatMap(line => line.messages.map(({ content }) => content)),
      ['said elsewhere', 'go', 'Yes.'],
    );
  });

  it('keeps the events with neighbouring text as one, the transcript without secrets, and what it all comes to', async () => {
    const messages: Message[] = [{ role: 'user', content: 'said before' }];
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield routed;
      messages.push({ role: 'user', content: 'go with sesame-1234' });
      yield { type: 'reasoning', text: 'First ' };
      yield { type: 'reasoning', text: 'look.' };
      yield { type: 'reasoning', text: '', durationMs: 12 };
      yield text('Look');
      yield text('ing.');
      messages.push({ role: 'assistant', content: 'Looking.' });
      yield call;
      yield result;
      yield { type: 'usage', round: 1, usage: { ...tokens, cost: 0.5 } };
      yield { type: 'usage', round: 2, usage: { ...tokens, cost: 0.25 } };
      yield text('Done.');
      messages.push({ role: 'assistant', content: 'Done.' });
      yield end(messages);
    }
    const tokens = { inputTokens: 10, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const state = { messages, earlier: 1 };
    const request = { conversationId: 'c1', parentRunId: 'r0' };
    const seen: RunEvent[] = [];
    for await (const event of recorded(run(), state, request)) {
      seen.push(event);
      if (event.type === 'run_end') assert.equal(typesIn().at(-1), 'run_end', 'written before it is seen');
    }
    assert.equal(seen.filter(({ type }) => type === 'text').length, 3, 'events pass as they came');
    const all = lines();
    const { pid, owner, ...header } = all[0] as Extract<RunLine, { type: 'run' }>;
    assert.equal(pid, process.pid);
    assert.deepEqual(owner, ownerHere());
    assert.deepEqual(header, {
      type: 'run',
      version: 1,
      runId: 'r1',
      conversation: 'c1',
      after: 'r0',
      door: 'cli',
      startedAt: '2026-01-02T03:04:05.000Z',
      request: 'go',
    });
    assert.deepEqual(
      all.flatMap(line => (line.type === 'text' ? [line.text] : [])),
      ['Looking.', 'Done.'],
    );
    assert.deepEqual(
      all.filter(({ type }) => type === 'reasoning'),
      [{ type: 'reasoning', text: 'First look.', durationMs: 12 }],
    );
    const own = all.flatMap(line => (line.type === 'messages' ? line.messages : []));
    assert.deepEqual(
      own.map(({ content }) => content),
      ['go with [redacted]', 'Looking.', 'Done.'],
    );
    const [totals, last] = all.slice(-2);
    assert.equal(totals?.type === 'totals' && totals.usage.cost, 0.75);
    assert.equal(totals?.type === 'totals' && totals.usage.inputTokens, 20);
    assert.deepEqual(last, { ...end([]) });
    assert.equal(statSync(file()).mode & 0o777, 0o600);
    assert.equal(statSync(join(folder.path, 'runs')).mode & 0o777, 0o700);
  });

  it('has written what a long step is about while that goes on, and streaming text after a while', async () => {
    let go = (): void => undefined;
    const gate = new Promise<void>(resolve => {
      go = resolve;
    });
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield routed;
      yield text('So far');
      await gate;
      yield end([]);
    }
    const reading = (async () => {
      for await (const _ of recorded(run()));
    })();
    while (!existsSync(file()) || !readFileSync(file(), 'utf8').includes('So far')) await wait(20);
    assert.deepEqual(typesIn(), ['run', 'run_start', 'routed', 'text']);
    go();
    await reading;
    assert.deepEqual(typesIn(), ['run', 'run_start', 'routed', 'text', 'totals', 'run_end']);
  });

  it('keeps a run whose reader walks away as cancelled, with what it had said', async () => {
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield routed;
      yield text('half');
      yield call;
    }
    for await (const event of recorded(run())) if (event.type === 'tool_start') break;
    const last = lines().at(-1);
    assert.equal(last?.type === 'run_end' && last.outcome, 'cancelled');
    assert.ok(typesIn().includes('text'));
  });

  it('says once that the folder cannot be written, and lets the run go on', async () => {
    writeFileSync(join(folder.path, 'runs'), 'a file where the folder should be');
    const seen: RunEvent[] = [];
    const isSaid = (): boolean => seen.some(({ type }) => type === 'notice');
    let yielded = 0;
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      for (let index = 0; index < 20 || !isSaid(); index++) {
        await wait(1);
        yield call;
        yield result;
        yielded += 2;
      }
      yield end([]);
    }
    for await (const event of recorded(run())) seen.push(event);
    const notices = seen.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    assert.equal(notices.length, 1);
    assert.match(
      notices[0] ?? '',
      /This run is not saved, or only in part\. .*runs is not a folder\. Check the folder/,
    );
    assert.equal(seen.at(-1)?.type, 'run_end');
    assert.equal(seen.length, yielded + 3);
  });

  it('goes on with the file, nothing lost, when the disk takes writes again', async () => {
    const blocked = join(folder.path, 'runs');
    writeFileSync(blocked, '');
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield call;
      await wait(20);
      rmSync(blocked);
      yield result;
      yield end([]);
    }
    for await (const _ of recorded(run()));
    assert.deepEqual(typesIn(), ['run', 'run_start', 'tool_start', 'tool_end', 'totals', 'run_end']);
  });

  it('never makes a path of an id that is none', async () => {
    async function* run(runId: string): AsyncGenerator<RunEvent> {
      yield { type: 'run_start', runId, text: '', startedAt: '' };
      yield end([]);
    }
    for await (const _ of recorded(run('../../evil')));
    assert.equal(existsSync(join(folder.path, 'runs')), false);
    for await (const _ of recorded(run('r1')));
    assert.deepEqual(typesIn(), ['run', 'run_start', 'totals', 'run_end']);
  });

  it('begins with what the run is of, the beginning of a long request, and its door', async () => {
    const { text: request, ...rest } = start as Extract<RunEvent, { type: 'run_start' }>;
    async function* run(): AsyncGenerator<RunEvent> {
      yield { ...rest, text: request.padEnd(900, '.') };
      yield { ...rest, text: 'again' };
      yield end([]);
    }
    const step = { key: 'US-001.a2.coder' };
    const state = { messages: [], earlier: 0, folder: '/w', redact: redactor([]) };
    for await (const _ of record(run(), { request: { step }, ...state }, folder.path));
    const [header, ...more] = lines();
    assert.ok(header?.type === 'run');
    const { request: written, step: key, door, folder: where, conversation } = header;
    assert.deepEqual([written.length, key, door, where, conversation], [500, step.key, 'other', '/w', 'r1']);
    assert.ok(!('after' in header));
    assert.equal(more.filter(({ type }) => type === 'run').length, 0, 'one header');
    async function* plain(): AsyncGenerator<RunEvent> {
      yield { ...rest, runId: 'r1', text: request };
      yield end([]);
    }
    rmSync(file());
    for await (const _ of recorded(plain()));
    const [second] = lines();
    assert.deepEqual(second && Object.keys(second).sort(), [
      'conversation',
      'door',
      'owner',
      'pid',
      'request',
      'runId',
      'startedAt',
      'type',
      'version',
    ]);
  });

  it('leaves out what a command prints while it runs, also of a skill within', async () => {
    const output: RunEvent = { type: 'tool_output', callId: 't1', text: 'line' };
    const progress: RunEvent = { type: 'tool_progress', callId: 't1', name: 'x', message: 'half' };
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield call;
      yield output;
      yield progress;
      yield { type: 'skill_event', callId: 't1', event: output };
      yield { type: 'skill_event', callId: 't1', event: text('kept') };
      yield result;
      yield end([]);
    }
    for await (const _ of recorded(run()));
    assert.deepEqual(typesIn(), [
      'run',
      'run_start',
      'tool_start',
      'skill_event',
      'tool_end',
      'totals',
      'run_end',
    ]);
  });

  it('has written a completed call and a question at once, and a small event soon after', async () => {
    const asks: RunEvent = {
      type: 'approval_request',
      request: { callId: 't1', token: 't', tool: 'x', subject: 's', rule: 'r', reason: '', scopes: ['once'] },
    };
    let go = (): void => undefined;
    const gate = new Promise<void>(resolve => {
      go = resolve;
    });
    async function* run(): AsyncGenerator<RunEvent> {
      yield* [start, text('I look.'), call, result, asks];
      yield { type: 'notice', level: 'info', message: 'soon' };
      await gate;
      yield end([]);
    }
    const reading = (async () => {
      for await (const event of recorded(run()))
        if (event.type === 'tool_end' || event.type === 'approval_request')
          assert.equal(typesIn().at(-1), event.type);
    })();
    while (!existsSync(file()) || !readFileSync(file(), 'utf8').includes('soon')) await wait(5);
    go();
    await reading;
    assert.deepEqual(typesIn().slice(1, 4), ['run_start', 'text', 'tool_start']);
  });

  it('writes each message once, and the secrets of none', async () => {
    const messages: Message[] = [];
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      messages.push({ role: 'user', content: 'go' });
      yield call;
      yield result;
      messages.push({ role: 'assistant', content: 'sesame-1234' });
      yield result;
      yield end(messages);
    }
    for await (const _ of recorded(run(), { messages }));
    const written = lines().flatMap(line => (line.type === 'messages' ? [line.messages] : []));
    assert.deepEqual(
      written.map(some => some.map(({ content }) => content)),
      [['go'], ['[redacted]']],
    );
  });

  it('writes no message of a run that has added none to those it was given', async () => {
    const messages: Message[] = [{ role: 'user', content: 'said elsewhere' }];
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield end(messages);
    }
    for await (const _ of recorded(run(), { messages, earlier: 1 }));
    assert.deepEqual(typesIn(), ['run', 'run_start', 'totals', 'run_end']);
  });

  it('holds no more than it may for a disk that takes nothing, and goes on with what comes later', async () => {
    const blocked = join(folder.path, 'runs');
    writeFileSync(blocked, '');
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      for (let index = 0; index < 3; index++) {
        yield text('x'.repeat(7_000_000));
        yield result;
      }
      rmSync(blocked);
      yield call;
      yield end([]);
    }
    for await (const _ of recorded(run()));
    assert.ok(statSync(file()).size < 8_000_000, `${statSync(file()).size} bytes`);
    assert.equal(parseLine(readFileSync(file(), 'utf8').trimEnd().split('\n').at(-1) ?? '')?.type, 'run_end');
  }).timeout(60_000);

  it('goes on in a file that is there by no one else’s run: it never writes into one', async () => {
    folder.add({ 'runs/r1.jsonl': 'of another run\n' });
    async function* run(): AsyncGenerator<RunEvent> {
      yield start;
      yield end([]);
    }
    const seen: RunEvent[] = [];
    for await (const event of recorded(run())) seen.push(event);
    assert.equal(readFileSync(file(), 'utf8'), 'of another run\n');
    assert.ok(seen.some(event => event.type === 'notice' && /not saved/.test(event.message)));
  });
});
