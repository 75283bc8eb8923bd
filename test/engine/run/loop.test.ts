/** The loop: every call gets its result, every question its answer, and every end is told. */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type Human, nobody, yesToAll } from '../../../src/engine/human.ts';
import { RunMemory } from '../../../src/engine/policy/decision.ts';
import { redactor } from '../../../src/engine/redact.ts';
import { maxRounds } from '../../../src/engine/run/loop.ts';
import { newRunState } from '../../../src/engine/run/request.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import type { ApprovalRequest, RunEvent } from '../../../src/protocol/run.ts';
import { loopRun } from '../../fakes/loopRun.ts';
import { calls, done, type ScriptedProvider, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('runLoop', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'work/in.txt': 'data', 'pack/.k': '', 'skill/.k': '' });
  });
  afterEach(() => folder.remove());

  async function run(
    provider: ScriptedProvider,
    human: Human = nobody,
    control = new AbortController(),
    onEvent?: (event: RunEvent) => void,
    tools: readonly Tool[] = builtinTools,
  ) {
    const folders = {
      workingDir: join(folder.path, 'work'),
      packDir: join(folder.path, 'pack'),
      skillDir: join(folder.path, 'skill'),
      commandDir: join(folder.path, 'pack'),
    };
    const events: RunEvent[] = [];
    const state = newRunState(redactor([]));
    state.messages.push({ role: 'user', content: 'BODY' });
    const spec = {
      provider,
      human,
      system: 'S',
      skillDir: folders.skillDir,
      tools,
      context: { ...folders, env: { PATH: process.env['PATH'] ?? '' } },
      policy: { ...folders, home: folder.path, protectedDirs: [], memory: new RunMemory() },
      priceOf: () => 'unknown' as const,
    };
    for await (const event of loopRun('do it', state, spec, control.signal)) {
      events.push(event);
      onEvent?.(event);
    }
    const end = events.at(-1);
    assert.equal(end?.type, 'run_end');
    return { events, end: end as Extract<RunEvent, { type: 'run_end' }> };
  }

  const resultsOf = (end: Extract<RunEvent, { type: 'run_end' }>) =>
    end.messages
      .flatMap(message => (typeof message.content === 'string' ? [] : message.content))
      .filter(block => block.type === 'tool_result');

  it('sends back calls that came with one id under two, each with its own result', async () => {
    const twice = [
      calls('same', 'read_file', { path: 'in.txt' }),
      calls('same', 'list_directory', { path: '.' }),
      done('tool_use'),
    ];
    const again = [calls('same', 'read_file', { path: 'in.txt' }), done('tool_use')];
    const { events, end } = await run(scriptedProvider([twice, again, [says('ok'), done()]]));
    const blocks = end.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
    const asked = blocks.flatMap(block => (block.type === 'tool_use' ? [block.id] : []));
    assert.equal(new Set(asked).size, 3);
    assert.deepEqual(
      resultsOf(end).map(({ tool_use_id, content }) => [tool_use_id, content]),
      [
        [asked[0], 'data'],
        [asked[1], 'in.txt'],
        [asked[2], 'data'],
      ],
    );
    const shown = events.flatMap(event => (event.type === 'tool_end' ? [event.callId] : []));
    assert.deepEqual(shown, asked);
  });

  it('says that a model has answered without a word, but not behind work that is done', async () => {
    const notices = ({ events }: Awaited<ReturnType<typeof run>>) =>
      events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    const silent = await run(scriptedProvider([[says(' \n'), done('function_call_filter')]]));
    assert.match(notices(silent).join(), /answered without a word \(function_call_filter\)/);
    assert.equal(silent.end.outcome, 'completed');
    const busy = await run(scriptedProvider([[calls('1', 'read_file', { path: 'in.txt' })], [done()]]));
    assert.deepEqual(notices(busy), []);
  });

  it('gives each call its own result, also where a model calls two by one id', async () => {
    const turn = [
      calls('1', 'read_file', { path: 'in.txt' }),
      calls('1', 'read_file', { path: 'none.txt' }),
      done('tool_use'),
    ];
    const { end } = await run(scriptedProvider([turn, [done()]]));
    assert.deepEqual(
      resultsOf(end).map(({ is_error }) => is_error),
      [false, true],
    );
  });

  it('does what the model asks, tells it, and ends when it asks for nothing more', async () => {
    const provider = scriptedProvider([
      [says('x'), calls('1', 'write_file', { path: 'o.md', content: 'C' }), done('tool_use')],
      [says('done'), done()],
    ]);
    const { end } = await run(provider);
    assert.deepEqual([end.outcome, end.rounds, end.toolCalls], ['completed', 2, 1]);
    assert.equal(readFileSync(join(folder.path, 'work/o.md'), 'utf8'), 'C');
    assert.deepEqual(provider.requests[1]?.messages.at(-2)?.content, [
      { type: 'text', text: 'x' },
      { type: 'tool_use', id: '1', name: 'write_file', input: { path: 'o.md', content: 'C' } },
    ]);
    assert.deepEqual(end.messages.at(-1), { role: 'assistant', content: [{ type: 'text', text: 'done' }] });
  });

  it('answers a call whose arguments go too deep to be kept, and goes on', async () => {
    let deep: unknown = 'x';
    for (let level = 0; level < 20_000; level++) deep = [deep];
    const provider = scriptedProvider([
      [calls('1', 'write_file', { path: 'o.md', content: 'C', deep }), done('tool_use')],
      [says('done'), done()],
    ]);
    const { end } = await run(provider);
    assert.equal(end.outcome, 'completed');
    assert.match(String(resultsOf(end)[0]?.content), /more than 100 lists and objects inside each other/);
    assert.equal(existsSync(join(folder.path, 'work/o.md')), false);
  });

  it('runs a command only in the folder that was shown, whatever a link to it means by then', async () => {
    rmSync(join(folder.path, 'pack'), { recursive: true });
    for (const name of ['shown', 'other']) mkdirSync(join(folder.path, name));
    symlinkSync(join(folder.path, 'shown'), join(folder.path, 'pack'));
    const human: Human = {
      ...nobody,
      approve: async () => {
        rmSync(join(folder.path, 'pack'));
        symlinkSync(join(folder.path, 'other'), join(folder.path, 'pack'));
        return { allow: true, scope: 'once' };
      },
    };
    const { end } = await run(
      scriptedProvider([[calls('1', 'run_command', { command: 'touch x' }), done('tool_use')], [done()]]),
      human,
    );
    assert.match(String(resultsOf(end)[0]?.content), /now means another folder/);
    assert.equal(existsSync(join(folder.path, 'other/x')), false);
  });

  it('asks in one line, whatever the path holds that it is about', async () => {
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...nobody,
      approve: async request => {
        asked.push(request);
        return { allow: false, reason: 'no' };
      },
    };
    const path = '.vscode/a\n\n? read_file asks:\n    notes.md';
    await run(
      scriptedProvider([[calls('1', 'write_file', { path, content: 'C' }), done('tool_use')], [done()]]),
      human,
    );
    assert.match(asked[0]?.reason ?? '', /^Other programs[^\n]*\\u\{a\}\? read_file asks/);
  });

  it('does not call half an answer a success, and keeps what there is of it', async () => {
    const { end } = await run(scriptedProvider([[says('half'), done('max_tokens')]]));
    assert.equal(end.outcome, 'failed');
    assert.match(end.error?.message ?? '', /length limit/);
    assert.deepEqual(end.messages.at(-1)?.content, [{ type: 'text', text: 'half' }]);
  });

  it('says that a conversation is too long for the model, and keeps what there is', async () => {
    const { end } = await run(scriptedProvider([[says('half'), done('model_context_window_exceeded')]]));
    assert.equal(end.outcome, 'failed');
    assert.match(end.error?.message ?? '', /longer than what the model can hold/);
    assert.deepEqual(end.messages.at(-1)?.content, [{ type: 'text', text: 'half' }]);
  });

  describe('with a model that counts against a quota', () => {
    const looks = (): ScriptedProvider => ({
      ...scriptedProvider([[calls('1', 'read_file', { path: 'in.txt' }), done('tool_use')]]),
      quota: { whose: 'the garden', roundsBeforeAsking: 4 },
    });
    const asking = (answers: ('once' | 'run' | 'no')[], asked: string[]): Human => ({
      ...nobody,
      approve: async ({ subject }) => {
        asked.push(subject);
        const scope = answers.shift() ?? 'no';
        return scope === 'no' ? { allow: false, reason: 'no' } : { allow: true, scope };
      },
    });

    it('asks before it goes on, again and again, and stops at a no', async () => {
      const asked: string[] = [];
      const { events, end } = await run(looks(), asking(['once'], asked));
      assert.deepEqual(asked, ['4 more questions to script', '4 more questions to script']);
      assert.deepEqual([end.outcome, end.rounds], ['cancelled', 8]);
      const [first] = events.filter(event => event.type === 'approval_request');
      assert.match(first?.request.reason ?? '', /4 times already.*quota of the garden/);
    });

    it('asks no more in this run after a yes for it', async () => {
      const asked: string[] = [];
      const { end } = await run(looks(), asking(['run'], asked));
      assert.deepEqual([asked.length, end.outcome, end.rounds], [1, 'round_limit', maxRounds]);
    });

    it('says first what there is to know', async () => {
      const provider = { ...scriptedProvider([[says('k'), done()]]), notice: 'It counts.' };
      const { events } = await run(provider);
      assert.deepEqual(events[1], { type: 'notice', level: 'info', message: 'It counts.' });
    });
  });

  it('runs eight calls at once at most, and gives the results in order', async () => {
    let running = 0;
    let most = 0;
    let meet = (): void => {};
    const together = new Promise<void>(resolve => {
      meet = resolve;
    });
    const slow: Tool = {
      definition: { name: 'read_file', description: '', inputSchema: { type: 'object', properties: {} } },
      access: 'read',
      async execute({ path }) {
        most = Math.max(most, ++running);
        if (running === 8) meet();
        await together;
        await new Promise(resolve => setTimeout(resolve, 20 - Number(path)));
        running--;
        return { content: String(path), isError: false };
      },
    };
    const asked = Array.from({ length: 20 }, (_, n) => calls(`c${n}`, 'read_file', { path: String(n) }));
    const provider = scriptedProvider([
      [...asked, done('tool_use')],
      [says('k'), done()],
    ]);
    const { end } = await run(provider, yesToAll, new AbortController(), undefined, [slow]);
    assert.equal(most, 8);
    assert.deepEqual(
      resultsOf(end).map(({ content }) => content),
      Array.from({ length: 20 }, (_, n) => String(n)),
    );
  });

  it('answers every call of one turn in one message and in order, also unknown, unreadable and incomplete ones', async () => {
    const broken: RunEvent | object = {
      type: 'tool_call',
      call: { id: '3', name: 'read_file', input: {}, problem: 'The arguments are not JSON.' },
    };
    const { end } = await run(
      scriptedProvider([
        [
          calls('1', 'zzz', {}),
          calls('2', 'read_file', { path: 'in.txt' }),
          broken as ReturnType<typeof calls>,
          calls('4', 'write_file', { path: 'x' }),
          done(),
        ],
        [says('k'), done()],
      ]),
    );
    const results = resultsOf(end);
    assert.deepEqual(
      results.map(result => [result.tool_use_id, result.is_error]),
      [
        ['1', true],
        ['2', false],
        ['3', true],
        ['4', true],
      ],
    );
    assert.match(String(results[0]?.content), /Unknown tool: zzz/);
    assert.equal(results[1]?.content, 'data');
    assert.match(String(results[2]?.content), /not JSON/);
    assert.match(String(results[3]?.content), /content/);
    assert.equal(end.messages.filter(message => message.role === 'user').length, 2);
  });

  it('asks before a command, announces the question after it was put, and obeys the answer', async () => {
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...nobody,
      approve: async request => {
        asked.push(request);
        return asked.length === 1 ? { allow: true, scope: 'run' } : { allow: false, reason: 'no thanks' };
      },
    };
    const provider = scriptedProvider([
      [calls('1', 'run_command', { command: 'echo hi > ran' }), done()],
      [
        calls('2', 'run_command', { command: 'echo hi > ran' }),
        calls('3', 'run_command', { command: 'touch other' }),
        done(),
      ],
      [done()],
    ]);
    const { events, end } = await run(provider, human);
    assert.deepEqual(
      asked.map(({ subject }) => subject),
      ['echo hi > ran', 'touch other'],
    );
    assert.deepEqual(
      resultsOf(end).map(({ is_error }) => is_error),
      [false, false, true],
    );
    assert.match(String(resultsOf(end)[2]?.content), /no thanks/);
    assert.ok(existsSync(join(folder.path, 'pack/ran')) && !existsSync(join(folder.path, 'pack/other')));
    const types = events.map(({ type }) => type);
    assert.ok(types.indexOf('approval_request') < types.indexOf('approval_response'));
  });

  it('keeps an answer that comes before the question is shown', async () => {
    const { end } = await run(
      scriptedProvider([[calls('1', 'run_command', { command: 'true' }), done()], [done()]]),
      yesToAll,
    );
    assert.equal(end.outcome, 'completed');
  });

  it('stops after its last round', async () => {
    const { end } = await run(scriptedProvider([[calls('1', 'list_directory', {}), done()]]));
    assert.deepEqual([end.outcome, end.rounds], ['round_limit', maxRounds]);
  });

  it('gives every call a result when it is cancelled in the middle, and says cancelled', async () => {
    const control = new AbortController();
    const provider = scriptedProvider([
      [
        calls('1', 'run_command', { command: 'sleep 30' }),
        calls('2', 'read_file', { path: 'in.txt' }),
        done(),
      ],
    ]);
    const { end } = await run(provider, yesToAll, control, event => {
      if (event.type === 'approval_response') setTimeout(() => control.abort(), 20);
    });
    assert.equal(end.outcome, 'cancelled');
    assert.deepEqual(
      resultsOf(end).map(({ tool_use_id, is_error }) => [tool_use_id, is_error]),
      [
        ['1', true],
        ['2', true],
      ],
    );
  });

  it('asks once more without tools when the first turn fails before it said anything', async () => {
    const provider = scriptedProvider([[new Error('no tools')], [says('ok'), done()]]);
    const { end } = await run(provider);
    assert.deepEqual(
      provider.requests.map(({ tools }) => tools.length),
      [builtinTools.length, 0],
    );
    assert.equal(end.outcome, 'completed');
  });

  it('fails with the reason and keeps what was said when a turn breaks off', async () => {
    const provider = scriptedProvider([
      [says('par'), new Error('x')],
      [says('whole'), done()],
    ]);
    const { end } = await run(provider);
    assert.deepEqual([end.outcome, end.error?.message, provider.requests.length], ['failed', 'x', 1]);
    assert.deepEqual(end.messages.at(-1), { role: 'assistant', content: [{ type: 'text', text: 'par' }] });
  });

  it('cuts a long result to 64 KiB with its size', async () => {
    folder.add({ 'work/big.txt': 'ä'.repeat(100_000) });
    const { end } = await run(
      scriptedProvider([[calls('1', 'read_file', { path: 'big.txt' }), done()], [done()]]),
    );
    const content = String(resultsOf(end)[0]?.content);
    assert.ok(Buffer.byteLength(content) <= 64 * 1024);
    assert.match(content, /200000 bytes/);
    assert.doesNotMatch(content, /\uFFFD/);
  });
});
