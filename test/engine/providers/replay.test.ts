import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CompletionRequest, Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import {
  openRecorder,
  openReplay,
  openSkillReplay,
  replayBySkill,
} from '../../../src/engine/providers/recording.ts';
import { listDirectoryTool, readFileTool } from '../../../src/engine/tools/files.ts';
import type { Message } from '../../../src/protocol/run.ts';

const turns: StreamEvent[][] = [
  [
    { type: 'text', text: 'Look' },
    { type: 'text', text: ' here' },
    { type: 'thinking', block: { type: 'thinking', thinking: 'hm', signature: 's' } },
    { type: 'tool_call', call: { id: 't', name: 'read_file', input: { path: 'a.md' } } },
    { type: 'done', stopReason: 'tool_use' },
  ],
  [
    { type: 'text', text: 'Bye' },
    { type: 'done', stopReason: 'end_turn' },
  ],
];

function request(assistantMessages: number, skillDir?: string): CompletionRequest {
  const messages = Array.from({ length: assistantMessages * 2 + 1 }, (_, index) => ({
    role: index % 2 ? ('assistant' as const) : ('user' as const),
    content: 'x',
  }));
  return { system: '', messages, tools: [], maxTokens: 10, ...(skillDir ? { skillDir } : {}) };
}

async function collect(provider: Provider, ask: CompletionRequest, signal = new AbortController().signal) {
  const events: StreamEvent[] = [];
  for await (const event of provider.streamCompletion(ask, signal)) events.push(event);
  return events;
}

/** A model that says its turns in order, each with a retry before it and the tokens behind it. */
function model(): Provider {
  return {
    name: 'made-up',
    model: 'M',
    async *streamCompletion(ask) {
      const turn = turns[ask.messages.filter(message => message.role === 'assistant').length];
      if (!turn) throw new Error('the model failed');
      yield { type: 'retry', attempt: 1, waitMs: 0, why: 'busy' };
      for (const event of turn) {
        const usage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 };
        yield event.type === 'done' ? { ...event, usage } : event;
      }
    },
  };
}

describe('recording and replay', () => {
  let folder: string;
  let file: string;
  const run = { agent: 'kairos', skill: 'kickoff', request: 'run kickoff' };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'telos-replay-'));
    file = join(folder, 'deep', 'run.jsonl');
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function record(): Promise<void> {
    const recorder = openRecorder(model(), file, run).provider;
    for (const position of turns.keys()) await collect(recorder, request(position));
  }

  it('plays back turn by turn what was recorded, for any number of readers', async () => {
    await record();
    const replay = await openReplay(file, 0);
    assert.deepEqual(await collect(replay, request(1)), turns[1]);
    assert.deepEqual(await collect(replay, request(0)), turns[0]);
    assert.equal(replay.name, 'replay');
    assert.equal(replay.model, 'M');
    assert.equal(replay.recording?.model, 'M');
    assert.ok(!Number.isNaN(Date.parse(replay.recording?.recordedAt ?? '')));
  });

  it('passes everything through, and holds a whole recording after each turn', async () => {
    const recorder = openRecorder(model(), file, run).provider;
    const events = await collect(recorder, request(0));
    assert.equal(events[0]?.type, 'retry');
    assert.equal(events.length, turns[0]!.length + 1);
    const [header, first, end] = (await readFile(file, 'utf8')).split('\n');
    assert.deepEqual(JSON.parse(header ?? '').request, 'run kickoff');
    assert.deepEqual(
      JSON.parse(first ?? '').events.map((event: StreamEvent) => event.type),
      ['text', 'text', 'thinking', 'tool_call', 'done'],
    );
    assert.equal(end, '');
    await assert.rejects(collect(recorder, request(7)), /the model failed/);
    assert.deepEqual(await collect(await openReplay(file, 0), request(0)), turns[0]);
    assert.deepEqual(await readdir(join(folder, 'deep')), ['run.jsonl']);
  });

  it('says which recording cannot be written, whatever stands in its way', async () => {
    await writeFile(join(folder, 'plain'), '');
    await mkdir(join(folder, 'taken'));
    for (const path of ['plain/run.jsonl', 'taken']) {
      const recorder = openRecorder(model(), join(folder, path), run).provider;
      await assert.rejects(collect(recorder, request(0)), {
        code: 'config',
        message: new RegExp(`The recording .*${path} could not be written: .* Choose another file\\.$`),
      });
    }
    assert.deepEqual((await readdir(folder)).sort(), ['plain', 'taken']);
  });

  it('says which turn is missing, and in which file', async () => {
    await record();
    const replay = await openReplay(file, 0);
    await assert.rejects(collect(replay, request(2)), {
      code: 'provider',
      message: /run\.jsonl has only 2 turns, and the run needs turn 3/,
    });
  });

  it('takes its time with a text, but not too long, and stops when told', async () => {
    const text: StreamEvent[] = Array.from({ length: 3 }, () => ({ type: 'text', text: 'a' }));
    await mkdir(join(folder, 'deep'));
    await record();
    const header = (await readFile(file, 'utf8')).split('\n')[0];
    const events = [...text, { type: 'done', stopReason: 'end_turn' }];
    await writeFile(file, `${header}\n${JSON.stringify({ events })}\n`);
    const started = performance.now();
    await collect(await openReplay(file, 20), request(0));
    // A timer may be a little early by another clock.
    assert.ok(performance.now() - started >= 50);
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('enough')), 10);
    await assert.rejects(collect(await openReplay(file, 60_000), request(0), controller.signal), /enough/);
  });

  it('names file and line of what it cannot read', async () => {
    const broken: [string, number][] = [
      ['', 1],
      ['{"format":"other"}\n', 1],
      ['HEADER\nnot json\n', 2],
      ['HEADER\n\n{"events":[{"type":"text","text":"cut"}]}\n', 3],
      ['HEADER\n{"events":[{"type":"tool_call","call":{"id":"x"}},{"type":"done","stopReason":"y"}]}\n', 2],
      ['HEADER\n{"events":[{"type":"surprise"},{"type":"done","stopReason":"y"}]}\n', 2],
    ];
    await record();
    const header = (await readFile(file, 'utf8')).split('\n')[0] ?? '';
    for (const [content, line] of broken) {
      await writeFile(file, content.replace('HEADER', header));
      await assert.rejects(openReplay(file, 0), (error: { code: string; message: string }) => {
        assert.equal(error.code, 'config');
        assert.ok(error.message.startsWith(`${file}:${line}: `), error.message);
        return true;
      });
    }
    await writeFile(file, header.replace('"version":2', '"version":3'));
    await assert.rejects(openReplay(file, 0), /has version 3, which is unknown/);
    await symlink('/dev/zero', join(folder, 'endless.jsonl'));
    await assert.rejects(openReplay(join(folder, 'endless.jsonl'), 0), {
      code: 'config',
      message: /endless\.jsonl could not be read: .*a device, not a file/,
    });
    await assert.rejects(openReplay(join(folder, 'gone.jsonl'), 0), {
      code: 'config',
      message: /gone\.jsonl/,
    });
  });

  it('plays the recording of the skill, and says what to do when there is none', async () => {
    await record();
    const skillDir = join(folder, 'kickoff');
    await mkdir(skillDir);
    const none = {
      message: 'No model is set up, so the skill kickoff cannot run.',
      remedy: { kind: 'set_up_model' },
    };
    await assert.rejects(collect(await openSkillReplay(skillDir, 0), request(0)), none);
    await assert.rejects(collect(replayBySkill(0), request(0, skillDir)), none);
    await writeFile(join(skillDir, 'recording.jsonl'), await readFile(file));
    assert.equal((await openSkillReplay(skillDir, 0)).model, 'M');
    assert.deepEqual(await collect(replayBySkill(0), request(0, skillDir)), turns[0]);
  });

  /** Plays a recording as a loop would, with the real tools that look, and with `said` in place of those that act. */
  async function playAll(replay: Provider, workingDir: string, said = 'done'): Promise<StreamEvent[]> {
    const messages: Message[] = [{ role: 'user', content: 'go' }];
    const all: StreamEvent[] = [];
    const signal = new AbortController().signal;
    const context = {
      workingDir,
      packDir: folder,
      skillDir: folder,
      commandDir: workingDir,
      env: {},
      signal,
    };
    for (let isDone = false; !isDone; ) {
      const events = await collect(replay, { system: '', messages, tools: [], maxTokens: 9, workingDir });
      all.push(...events);
      const calls = events.flatMap(event => (event.type === 'tool_call' ? [event.call] : []));
      const results = [];
      for (const { id, name, input } of calls) {
        const tool = [listDirectoryTool, readFileTool].find(({ definition }) => definition.name === name);
        const { content, isError } = (await tool?.execute(input, context)) ?? {
          content: said,
          isError: false,
        };
        results.push({ type: 'tool_result' as const, tool_use_id: id, content, is_error: isError });
      }
      messages.push({
        role: 'assistant',
        content: calls.map(call => ({ type: 'tool_use' as const, ...call })),
      });
      messages.push({ role: 'user', content: results });
      isDone = calls.length === 0;
    }
    return all;
  }

  it('holds sample recordings that play to their end in the sample folder, whatever commands say', async () => {
    const demo = fileURLToPath(new URL('../../../media/demo/', import.meta.url));
    for (const [skill, writes] of [
      ['kickoff', 'today.md'],
      ['weekly-summary', 'weekly-summary.md'],
    ] as const) {
      const replay = await openSkillReplay(join(demo, 'skills/kairos/skills', skill), 0);
      const events = await playAll(replay, join(demo, 'workspace'), String(Math.random()));
      assert.deepEqual(events.at(-1), { type: 'done', stopReason: 'end_turn' });
      const written = events.flatMap(event =>
        event.type === 'tool_call' && event.call.name === 'write_file' ? [event.call.input['path']] : [],
      );
      assert.deepEqual(written, [writes]);
    }
  });

  it('writes down what the tools found, and plays only where they find it again', async () => {
    const write = { id: 'w', name: 'write_file', input: { path: 'b.md', content: 'b' } };
    const script: StreamEvent[][] = [
      turns[0] ?? [],
      [
        { type: 'tool_call', call: write },
        { type: 'done', stopReason: 'tool_use' },
      ],
      turns[1] ?? [],
    ];
    const scripted: Provider = {
      ...model(),
      async *streamCompletion(ask) {
        yield* script[ask.messages.filter(({ role }) => role === 'assistant').length] ?? [];
      },
    };
    const [one, same, other] = ['one', 'same', 'other'].map(name => join(folder, name));
    for (const [place, text] of [
      [one, 'a secret'],
      [same, 'a secret'],
      [other, 'a'],
    ] as const) {
      await mkdir(place ?? '');
      await writeFile(join(place ?? '', 'a.md'), text);
    }
    const played = await playAll(openRecorder(scripted, file, run).provider, one ?? '');
    assert.doesNotMatch(await readFile(file, 'utf8'), /secret/);
    for (const place of [one, same])
      assert.deepEqual(await playAll(await openReplay(file, 0), place ?? ''), played);
    // A turn that only speaks is stopped too.
    const told = join(folder, 'told.jsonl');
    await playAll(openRecorder(model(), told, run).provider, one ?? '');
    await assert.rejects(
      async () => playAll(await openReplay(told, 0), other ?? ''),
      /made in another folder/,
    );
    await assert.rejects(async () => playAll(await openReplay(file, 0), other ?? ''), {
      code: 'provider',
      message: 'This recording was made in another folder. Set up a model to run it here.',
      remedy: { kind: 'set_up_model' },
    });
  });

  it('writes nothing in another folder, even where it has not looked at anything first', async () => {
    const write = { id: 'w', name: 'write_file', input: { path: 'b.md', content: 'b' } };
    const writer: Provider = {
      ...model(),
      async *streamCompletion(ask) {
        const isFirst = ask.messages.length === 1;
        if (isFirst) yield { type: 'tool_call', call: write };
        yield { type: 'done', stopReason: isFirst ? 'tool_use' : 'end_turn' };
      },
    };
    const [one, other] = [join(folder, 'one'), join(folder, 'other')];
    for (const place of [one, other]) await mkdir(place, { recursive: true });
    await playAll(openRecorder(writer, file, run).provider, one);
    await playAll(await openReplay(file, 0), one);
    const replay = await openReplay(file, 0);
    const yielded: StreamEvent[] = [];
    const playing = async (): Promise<void> => {
      for await (const event of replay.streamCompletion(
        { ...request(0), workingDir: other },
        new AbortController().signal,
      ))
        yielded.push(event);
    };
    await assert.rejects(playing, { code: 'provider', message: /made in another folder/ });
    assert.deepEqual(yielded, []);
  });
});
