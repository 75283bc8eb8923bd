/** A run as a document: each thing that happened in it is told, with its figures. */
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { RunHistory } from '../../../src/engine/records/runHistory.ts';
import type { RunSummary } from '../../../src/engine/records/runSummary.ts';
import {
  costText,
  exportName,
  figuresOf,
  inputText,
  requestOf,
  restOfInput,
  runMarkdown,
  shownPart,
  timeText,
} from '../../../src/engine/records/runText.ts';
import { joinedDeltas, messagesFrom, withoutCutImages } from '../../../src/engine/records/transcript.ts';
import type { Message, RunEvent, ToolCall } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { writeRun } from './storedRuns.ts';

const call = (id: string, input: ToolCall['input'], name = 'tool'): RunEvent => ({
  type: 'tool_start',
  call: { id, name, input },
});
const ends = (callId: string, content: string, isError = false): RunEvent => ({
  type: 'tool_end',
  callId,
  name: 'tool',
  result: { content, isError },
});

describe('the document of a run', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  it('tells everything that happened, in its order', async () => {
    const file = writeRun(folder.path, {
      runId: 'a',
      request: 'plan my day',
      answer: 'Done.',
      events: [
        { type: 'step', skill: 'kickoff', detail: 'reads the calendar' },
        call('1', { path: 'a.md', content: 'two\nlines' }),
        { type: 'approval_response', callId: '1', decision: { allow: false, reason: 'not now' } as never },
        ends('1', 'denied', true),
        call('2', { command: 'ls', wait: 3 }),
        {
          type: 'approval_response',
          callId: '2',
          decision: { allow: true, scope: 'once', command: 'ls -a' },
        },
        ends('2', ' \n'),
        call('3', {}),
        { type: 'approval_response', callId: 'of another', decision: { allow: true, scope: 'run' } },
        ends('of another', 'nothing'),
        { type: 'notice', level: 'info', message: 'Nearly there' },
        { type: 'retry', attempt: 1, waitMs: 1, why: 'too busy' },
      ],
    });
    appendFileSync(file, 'not a line\n');
    const run = await new RunHistory(folder.path).read('a');
    const lines = runMarkdown(run).split('\n').filter(Boolean);
    const from = lines.indexOf('### What happened');
    assert.deepEqual(lines.slice(0, 1), ['## plan my day']);
    assert.deepEqual(lines.slice(lines.indexOf('### Request'), from), [
      '### Request',
      '````',
      'plan my day',
      '````',
    ]);
    assert.deepEqual(lines.slice(from + 1), [
      '> kickoff: reads the calendar',
      '**tool** `a.md` (failed), you denied it',
      '````',
      'content: two',
      'lines',
      '````',
      '````',
      'denied',
      '````',
      '**tool** `ls`, you changed it to `ls -a`',
      '````',
      'wait: 3',
      '````',
      '**tool** `` (without a result)',
      '> Nearly there',
      '> Retried: too busy',
      'Done.',
      '*1 line of the stored file could not be read and is missing here.*',
    ]);
  });

  it('names the attachments, and a request or a skill if there is one', async () => {
    writeRun(folder.path, { runId: 'a', request: '', skill: 'kickoff' });
    const { summary, events, ...rest } = await new RunHistory(folder.path).read('a');
    const named = runMarkdown({ ...rest, summary, events });
    assert.match(named, /^## Run kickoff$/m);
    assert.doesNotMatch(named, /### Request|With it:|could not be read/);
    const attached = [
      { kind: 'text', name: 'a.md' },
      { kind: 'image', name: 'b.png' },
    ] as const;
    const start: RunEvent = {
      type: 'run_start',
      runId: 'a',
      text: ' long\nrequest ',
      startedAt: '',
      attached,
    };
    const withThem = runMarkdown({ ...rest, summary, events: [start], skippedLines: 2 });
    assert.match(withThem, /^With it: `a\.md`, `b\.png`$/m);
    assert.match(withThem, /^## long request$/m);
    assert.match(withThem, /\*2 lines of the stored file could not be read and are missing here\.\*/);
    assert.equal(requestOf({ ...rest, summary, events: [start] }), 'long\nrequest');
    assert.equal(requestOf({ ...rest, summary: { ...summary, request: ' cut ' }, events: [] }), 'cut');
  });

  it('has the figures that are known', () => {
    const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0.5 };
    const summary: RunSummary = {
      runId: 'a',
      file: '/a',
      conversation: 'a',
      door: 'cli',
      startedAt: 'some time',
      request: '',
      agent: 'me',
      skill: 'notes',
      provider: 'p',
      model: 'm',
      outcome: 'failed',
      rounds: 2,
      toolCalls: 3,
      durationMs: 12_000,
      usage,
      isRecording: false,
      error: 'no key',
    };
    assert.deepEqual(figuresOf(summary), [
      ['Skill', 'me:notes'],
      ['Model', 'p m'],
      ['Outcome', 'failed: no key'],
      ['Started', 'some time'],
      ['Duration', '12 s'],
      ['Steps', '2'],
      ['Tool calls', '3'],
      ['Tokens', '100 in, 20 out'],
      ['Cost', '$0.5000'],
    ]);
    const { usage: _, durationMs: __, error: ___, ...open } = summary;
    assert.deepEqual(
      figuresOf({ ...open, outcome: 'running', skill: '', model: '' }).map(
        ([name, value]) => `${name}: ${value}`,
      ),
      ['Skill: none', 'Outcome: running', 'Started: some time', 'Steps: 2', 'Tool calls: 3'],
    );
    const cached = figuresOf({ ...summary, usage: { ...usage, cacheReadTokens: 7 } });
    assert.deepEqual(cached[7], ['Tokens', '100 in, 20 out, 7 from the cache']);
    assert.equal(costText({ ...summary, isRecording: true }), 'none, played from a recording');
    assert.equal(costText({ ...summary, usage: { ...usage, cost: 'unknown' } }), 'unknown');
    assert.equal(costText({ ...summary, rounds: 0 }), undefined);
    assert.equal(timeText('2026-01-31T09:05:00'), '2026-01-31 09:05');
    assert.equal(timeText('2026-11-09T23:59:00'), '2026-11-09 23:59');
  });

  it('shows the telling part of a call in a line, and the rest apart', () => {
    const shown = (input: ToolCall['input']): [string, string] => {
      const one = { id: '1', name: 't', input };
      return [inputText(one), restOfInput(one)];
    };
    assert.deepEqual(shown({ command: 'ls', path: 'a' }), ['a', 'command: ls']);
    assert.deepEqual(shown({ url: 'https://a.example', max: 2, list: ['x'] }), [
      'https://a.example',
      'max: 2\nlist: ["x"]',
    ]);
    assert.deepEqual(shown({ path: 7, days: 2 }), ['{"path":7,"days":2}', '']);
    assert.deepEqual(shown({}), ['', '']);
    const most = 'x'.repeat(20_000);
    assert.equal(shownPart(most), most);
    assert.equal(shownPart(`${most}yz`), `${most}\n[... 2 more characters]`);
  });

  it('has a name of at most sixty letters', () => {
    assert.equal(exportName('a'.repeat(80), '2026-01-02T00:00:00Z', 'md'), `2026-01-02-${'a'.repeat(60)}.md`);
    assert.equal(exportName('--x--', 'z', 'jsonl'), 'x.jsonl');
  });
});

describe('the transcript of a run', () => {
  const start: RunEvent = { type: 'run_start', runId: 'r', text: 'go', startedAt: '' };
  const says = (text: string): RunEvent => ({ type: 'text', text });

  it('leaves out what was empty and a result of no call, and keeps the images of a result', () => {
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
    } as const;
    const seen: RunEvent = {
      type: 'tool_end',
      callId: '1',
      name: 'tool',
      result: { content: 'ok', isError: false, images: [image] },
    };
    const events = [{ ...start, text: ' ' }, says(' '), ends('9', 'lost'), call('1', {}), seen];
    assert.deepEqual(messagesFrom([], events), [
      { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'tool', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: '1',
            content: [{ type: 'text', text: 'ok' }, image],
            is_error: false,
          },
        ],
      },
    ]);
  });

  it('begins another answer with a text behind a result, also without a usage between them', () => {
    const roles = messagesFrom([], [start, says('I look.'), call('1', {}), ends('1', 'ok'), says('So.')]);
    assert.deepEqual(
      roles.map(({ role }) => role),
      ['user', 'assistant', 'user', 'assistant'],
    );
  });

  it('adds the answer that was cut behind the messages that are known, and nothing that is known', () => {
    const own: Message[] = [{ role: 'user', content: 'go' }];
    assert.deepEqual(messagesFrom([], [start, says('ha'), says('lf')], own), [
      ...own,
      { role: 'assistant', content: 'half' },
    ]);
    assert.deepEqual(messagesFrom([], [start, says(' ')], own), own);
    const answered: Message[] = [...own, { role: 'assistant', content: 'half' }];
    assert.deepEqual(messagesFrom([], [start, says('half')], answered), answered);
    const before: Message[] = [{ role: 'user', content: 'before' }];
    assert.deepEqual(messagesFrom(before, [start], own), [...before, ...own]);
  });

  it('joins texts, and the pieces of one stretch of thought, also of a skill that a call runs', () => {
    const thinks = (text: string, durationMs?: number): RunEvent => ({
      type: 'reasoning',
      text,
      ...(durationMs !== undefined && { durationMs }),
    });
    const of = (callId: string, event: RunEvent): RunEvent => ({ type: 'skill_event', callId, event });
    assert.deepEqual(joinedDeltas(says('a'), says('b')), says('ab'));
    assert.deepEqual(joinedDeltas(thinks('a'), thinks('b', 9)), thinks('ab', 9));
    assert.equal(joinedDeltas(thinks('a', 9), thinks('b')), undefined);
    assert.equal(joinedDeltas(thinks('a'), says('b')), undefined);
    assert.equal(joinedDeltas(says('a'), thinks('b')), undefined);
    assert.equal(joinedDeltas(undefined, says('b')), undefined);
    assert.deepEqual(joinedDeltas(of('1', says('a')), of('1', says('b'))), of('1', says('ab')));
    assert.equal(joinedDeltas(of('1', says('a')), of('2', says('b'))), undefined);
    assert.equal(joinedDeltas(says('a'), of('1', says('b'))), undefined);
    assert.equal(joinedDeltas(of('1', says('a')), of('1', start)), undefined);
  });

  it('says of a PDF that was not kept whole that it was there', () => {
    const pdf = (data: string) =>
      ({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } }) as never;
    const [message] = withoutCutImages([{ role: 'user', content: [pdf('AAAA'), pdf('AA [...] AA')] }]);
    assert.deepEqual(message?.content, [
      pdf('AAAA'),
      { type: 'text', text: '[A PDF was here; it was too large to be stored.]' },
    ]);
  });
});
