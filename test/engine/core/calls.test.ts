/** The tool calls of one turn: each gets exactly one result, in order, however the turn ends. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { allowAll } from '../../../src/engine/human.ts';
import { createCommandTool } from '../../../src/engine/tools/command.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import { writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type LoopFolder, loopFolder, resultsOf } from '../run/loopFolder.ts';

describe('runCalls', () => {
  let folder: LoopFolder;
  beforeEach(() => {
    folder = loopFolder();
  });
  afterEach(() => folder.remove());

  it('sends back calls that came with one id under two, each with its own result', async () => {
    const twice = [
      calls('same', 'read_file', { path: 'in.txt' }),
      calls('same', 'list_directory', { path: '.' }),
      done('tool_use'),
    ];
    const again = [calls('same', 'read_file', { path: 'in.txt' }), done('tool_use')];
    const { events, end } = await folder.run(scriptedProvider([twice, again, [says('ok'), done()]]));
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

  it('gives each call its own result, also where a model calls two by one id', async () => {
    const turn = [
      calls('1', 'read_file', { path: 'in.txt' }),
      calls('1', 'read_file', { path: 'none.txt' }),
      done('tool_use'),
    ];
    const { end } = await folder.run(scriptedProvider([turn, [says('done'), done()]]));
    assert.deepEqual(
      resultsOf(end).map(({ is_error }) => is_error),
      [false, true],
    );
  });

  it('answers a call whose arguments go too deep to be kept, and goes on', async () => {
    let deep: unknown = 'x';
    for (let level = 0; level < 20_000; level++) deep = [deep];
    const provider = scriptedProvider([
      [calls('1', 'write_file', { path: 'o.md', content: 'C', deep }), done('tool_use')],
      [says('done'), done()],
    ]);
    const { end } = await folder.run(provider);
    assert.equal(end.outcome, 'completed');
    assert.match(String(resultsOf(end)[0]?.content), /nest lists and objects more than 100 levels deep/);
    assert.equal(existsSync(join(folder.path, 'work/o.md')), false);
  });

  it('runs eight calls at once at most, and gives the results in order', async () => {
    let running = 0;
    let most = 0;
    let meet = (): void => {};
    const together = new Promise<void>(resolve => {
      meet = resolve;
    });
    const slow: Tool = {
      definition: {
        name: 'read_file',
        description: '',
        inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
      },
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
    const { end } = await folder.run(provider, allowAll, new AbortController(), undefined, [slow]);
    assert.equal(most, 8);
    assert.deepEqual(
      resultsOf(end).map(({ content }) => content),
      Array.from({ length: 20 }, (_, n) => String(n)),
    );
  });

  it('shows the first report of how far a call is, and of those that follow at once the last', async () => {
    let seen = (): void => {};
    const last = new Promise<void>(resolve => {
      seen = resolve;
    });
    const slow: Tool = {
      definition: {
        name: 'read_file',
        description: '',
        inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
      },
      access: 'read',
      async execute(_input, { onProgress }) {
        for (let step = 1; step <= 500; step++) onProgress?.(`${step} of 500`, step / 500);
        await last;
        onProgress?.('too late to be seen');
        return { content: 'read', isError: false };
      },
    };
    const provider = scriptedProvider([
      [calls('1', 'read_file', { path: 'in.txt' }), done('tool_use')],
      [says('k'), done()],
    ]);
    const { events } = await folder.run(
      provider,
      allowAll,
      new AbortController(),
      event => {
        if (event.type === 'tool_progress' && event.share === 1) seen();
      },
      [slow],
    );
    const shown = events.flatMap(event => (event.type === 'tool_progress' ? [event.message] : []));
    assert.deepEqual(shown, ['1 of 500', '500 of 500']);
  });

  it('does what a person was asked about by itself', async () => {
    let running = 0;
    const together: string[][] = [];
    const open: string[] = [];
    const slow: Tool = {
      definition: {
        name: 'read_file',
        description: '',
        inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
      },
      access: 'read',
      async execute({ path }) {
        open.push(String(path));
        running++;
        await new Promise(resolve => setTimeout(resolve, 30));
        together.push(open.slice(-running));
        running--;
        return { content: 'x', isError: false };
      },
    };
    const asked = ['a', 'b', '/etc/hostname', 'c'].map((path, n) => calls(`c${n}`, 'read_file', { path }));
    const provider = scriptedProvider([
      [...asked, done('tool_use')],
      [says('k'), done()],
    ]);
    const { events } = await folder.run(provider, allowAll, new AbortController(), undefined, [slow]);
    assert.equal(events.filter(({ type }) => type === 'approval_request').length, 1);
    assert.deepEqual(together[0], ['a', 'b']);
    assert.deepEqual(together[2], ['/etc/hostname']);
    assert.deepEqual(together[3], ['c']);
  });

  it('answers every call of one turn in one message and in order, also unknown, unreadable and incomplete ones', async () => {
    const broken: RunEvent | object = {
      type: 'tool_call',
      call: { id: '3', name: 'read_file', input: {}, problem: 'The arguments are not JSON.' },
    };
    const { end } = await folder.run(
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

  it('gives every call a result when it is cancelled in the middle, and says cancelled', async () => {
    const control = new AbortController();
    const provider = scriptedProvider([
      [
        calls('1', 'run_command', { command: 'sleep 30' }),
        calls('2', 'read_file', { path: 'in.txt' }),
        done(),
      ],
    ]);
    const { end } = await folder.run(provider, allowAll, control, event => {
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

  it('keeps what tools write, and says that the changes of a command in the folder itself are unknown', async () => {
    const path = (name: string): string => join(folder.path, name);
    const store = new ChangeStore({ dataDir: path('data'), configDir: path('config') });
    const places = {
      workingDir: path('work'),
      commandDir: path('work'),
      packDir: path('pack'),
      skillDir: path('skill'),
    };
    const env = { PATH: process.env['PATH'] ?? '' };
    const context = { ...places, env, changes: store.keeper('run-1') };
    const policy = { ...places, home: folder.path, protectedDirs: [] };
    const turns = [
      [calls('1', 'run_command', { command: 'echo 1 > one.md' }), done('tool_use')],
      [calls('2', 'write_file', { path: 'two.md', content: '2' }), done('tool_use')],
      [says('ok'), done()],
    ];
    const { events } = await folder.run(
      scriptedProvider(turns),
      allowAll,
      undefined,
      undefined,
      [createCommandTool(), writeFileTool],
      { context, policy },
    );
    const ended = events.flatMap(event => (event.type === 'tool_end' ? [event.result] : []));
    assert.deepEqual(
      ended.map(({ isError, changedFiles }) => [isError, changedFiles]),
      [
        [false, undefined],
        [false, [path('work/two.md')]],
      ],
    );
    const { files, ranCommands } = await store.of('run-1');
    assert.deepEqual([files.map(file => file.path), ranCommands], [[path('work/two.md')], true]);
  });

  it('lets a server ask in the middle of its call only where a person is there', async () => {
    const seen: boolean[] = [];
    const tool: Tool = {
      definition: { name: 'list_directory', description: '', inputSchema: { type: 'object' } },
      access: 'read',
      execute: async (_, { askServer }) => {
        seen.push(askServer !== undefined);
        return { content: 'rung', isError: false };
      },
    };
    for (const isAway of [false, true]) {
      const turns = [
        [calls('1', 'list_directory', { path: '.' }), done('tool_use')],
        [says('ok'), done()],
      ];
      await folder.run(scriptedProvider(turns), { ...allowAll, isAway }, undefined, undefined, [tool]);
    }
    assert.deepEqual(seen, [true, false]);
  });

  it('cuts a long result to 64 KiB with its size', async () => {
    folder.add({ 'work/big.txt': 'ä'.repeat(100_000) });
    const { end } = await folder.run(
      scriptedProvider([
        [calls('1', 'read_file', { path: 'big.txt' }), done()],
        [says('done'), done()],
      ]),
    );
    const content = String(resultsOf(end)[0]?.content);
    assert.ok(Buffer.byteLength(content) <= 64 * 1024);
    assert.match(content, /200000 bytes/);
    assert.doesNotMatch(content, /\uFFFD/);
  });
});
