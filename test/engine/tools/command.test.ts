import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { commandEnvironment, createCommandTool } from '../../../src/engine/tools/command.ts';
import type { ToolResult } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('run_command', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());
  const command = (text: string, timeoutMs = 20_000, more = {}): Promise<ToolResult> =>
    createCommandTool({ timeoutMs }).execute({ command: text }, { ...run.context, ...more });

  it('returns output, errors and exit code in one form', async () => {
    const results: readonly [string, string, boolean][] = [
      ['echo hi', 'hi', false],
      ['true', '(no output)', false],
      ["printf 'no newline'", 'no newline', false],
      ['echo out; echo err >&2', 'out\n\n[stderr]\nerr', false],
      ['echo o; echo e >&2; exit 2', 'o\n\n[stderr]\ne\n\n[exit code: 2]', true],
      ['exit 3', '[exit code: 3]', true],
      ['kill -9 $$', '[exit code: 137]', true],
      ['read x; echo "got:$x"', 'got:', false],
      ['pwd', run.pack, false],
    ];
    for (const [text, content, isError] of results)
      assert.deepEqual(await command(text), { content, isError }, text);
  });

  it('runs with the given environment and none of the own variables', async () => {
    process.env['TELOS_TEST_API_KEY'] = 'SECRET';
    const { content } = await command('env');
    delete process.env['TELOS_TEST_API_KEY'];
    const ofShell = ['SHLVL', '_'];
    const names = content
      .split('\n')
      .map(line => line.split('=', 1)[0]!)
      .filter(name => !ofShell.includes(name));
    assert.deepEqual(names.sort(), ['HOME', 'PATH', 'PWD', 'TELOS_COMMAND']);
  });

  it('says what stands in the way of a start', async () => {
    assert.match((await command(' ')).content, /empty/);
    assert.match((await command('a\0b')).content, /NUL/);
    assert.match((await command('echo a', 1000, { approvedSubject: 'echo b' })).content, /approved/);
    assert.equal((await command('echo a', 1000, { approvedSubject: 'echo a' })).content, 'a');
    assert.equal((await command('pwd', 20_000, { approvedFolder: run.pack })).content, run.pack);
    const elsewhere = await command('pwd', 20_000, { approvedFolder: run.outside });
    assert.match(elsewhere.content, /now means another folder than .*outside, .* Nothing was run/);
    rmSync(run.pack, { recursive: true });
    const missing = await command('echo a');
    assert.equal(missing.isError, true);
    assert.match(missing.content, /does not exist/);
  });

  it('keeps head and tail of long output and says what is left out', async () => {
    const { content, isError } = await command('seq 1 400000');
    assert.equal(isError, false);
    assert.ok(content.length <= 1024 ** 2);
    assert.match(content, /^1\n2\n/);
    assert.match(content, /\n\[Cut: 1,902,463 of 2,688,895 bytes are left out here\.\]\n/);
    assert.match(content, /\n400000$/);
  });

  it('ends a flood, and says binary output instead of showing it', async () => {
    const flood = await command('yes');
    assert.equal(flood.isError, true);
    assert.match(flood.content, /\[ended because it printed more than 67,108,864 bytes/);
    assert.match((await command('head -c 100000 /dev/urandom')).content, /^\[output: binary, 100,000 bytes/);
  });

  it('ends everything that a command leaves behind, and says so', async () => {
    const shapes = [
      'sleep 987 & echo hi',
      'nohup sleep 987 >/dev/null 2>&1 & echo hi',
      'setsid sleep 987 & echo hi',
      '(setsid sh -c "setsid sleep 987 & sleep 987" >/dev/null 2>&1 &); echo hi',
    ];
    const note = '[the command left a process running in the background; it was ended]';
    const results = await Promise.all(shapes.map(text => command(text)));
    for (const [index, result] of results.entries())
      assert.deepEqual(result, { content: `hi\n\n${note}`, isError: false }, shapes[index]!);
    assert.deepEqual(running(run.pack), []);
  });

  it('ends the whole tree at the time limit, whatever its shape', async () => {
    const shapes = [
      'echo begun; sleep 987',
      'echo begun; sleep 987 & sleep 987',
      "echo begun; trap '' TERM; sleep 987; sleep 987",
      'echo begun; setsid sleep 987 & sleep 987',
      'echo begun; (setsid sh -c "sleep 987 & sleep 987" &); sleep 987',
      'echo begun; env -i setsid sleep 987 & sleep 987',
    ];
    const results = await Promise.all(shapes.map(text => command(text, 1_500)));
    for (const [index, { content, isError }] of results.entries()) {
      assert.equal(isError, true);
      assert.match(content, /^begun\n\n\[timed out after 1\.5 s: /, shapes[index]!);
    }
    assert.deepEqual(running(run.pack), []);
  });

  it('takes a shorter time limit from the call, and no longer one than its own', async () => {
    const tool = createCommandTool({ timeoutMs: 1_500 });
    for (const [timeout_s, after] of [
      [1, '1'],
      [2, '2'],
      [-1, '1.5'],
      [undefined, '1.5'],
    ] as const) {
      const { content } = await tool.execute({ command: 'sleep 987', timeout_s }, run.context);
      assert.ok(content.includes(`timed out after ${after} s`), content);
    }
    assert.deepEqual(running(run.pack), []);
  });

  it('ends the whole tree on abort and throws its reason', async () => {
    const stop = new AbortController();
    const reason = new Error('stopped');
    const ended = command('setsid sleep 987 & sleep 987', 20_000, { signal: stop.signal });
    while (running(run.pack).length < 3) await new Promise(later => setTimeout(later, 5));
    stop.abort(reason);
    await assert.rejects(ended, error => error === reason);
    assert.deepEqual(running(run.pack), []);
  });
});

describe('commandEnvironment', () => {
  it('looks for programs in whole places alone, not where the command runs', () => {
    const env = { PATH: '.:/usr/bin::bin:/bin:' };
    assert.equal(commandEnvironment(env, { packDir: '/p', skillDir: '/s' })['PATH'], '/usr/bin:/bin');
  });

  for (const data of [undefined, 'data'])
    it(`keeps what Python compiles ${data ? 'in the data folder' : 'nowhere'}, and reads none that lies beside a script`, async () => {
      const run = temporaryRun();
      try {
        run.put('pack/scripts/main.py', 'import util\nprint(util.x)\n');
        run.put('pack/scripts/util.py', 'x = "shown"\n');
        const dataDir = data && join(run.root, data);
        const { packDir, skillDir } = run.context;
        const env = commandEnvironment({ PATH: process.env['PATH'] ?? '' }, { packDir, skillDir }, dataDir);
        const command = 'python3 scripts/main.py';
        const { content } = await createCommandTool().execute({ command }, { ...run.context, env });
        assert.equal(content.trim(), 'shown');
        assert.deepEqual(readdirSync(join(run.pack, 'scripts')).sort(), ['main.py', 'util.py']);
        assert.equal(existsSync(join(run.root, 'data/python-cache')), data !== undefined);
      } finally {
        run.remove();
      }
    });

  it('runs the source that a card is about, not compiled code that was laid beside it', async () => {
    const run = temporaryRun();
    try {
      run.put('pack/scripts/main.py', 'import util\nprint(util.x)\n');
      const util = run.put('pack/scripts/util.py', 'x = "other"\n');
      const compile =
        'import py_compile, sys; py_compile.compile(sys.argv[1], invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)';
      execFileSync('python3', ['-c', compile, util]);
      run.put('pack/scripts/util.py', 'x = "shown"\n');
      const { packDir, skillDir } = run.context;
      const env = commandEnvironment(
        { PATH: process.env['PATH'] ?? '' },
        { packDir, skillDir },
        join(run.root, 'data'),
      );
      const input = { command: 'python3 scripts/main.py' };
      const { content } = await createCommandTool().execute(input, { ...run.context, env });
      assert.equal(content.trim(), 'shown');
    } finally {
      run.remove();
    }
  });

  it('passes the harmless variables and the folders on, and never a key', () => {
    const env = {
      PATH: '/bin',
      HOME: '/h',
      LANG: 'C',
      LC_ALL: 'C',
      TERM: 'x',
      TZ: 'UTC',
      ANTHROPIC_API_KEY: 'k',
      DISCORD_TOKEN: 't',
      LC_API_KEY_: 'k',
      LD_PRELOAD: 'l',
      NODE_OPTIONS: 'n',
    };
    assert.deepEqual(commandEnvironment(env, { packDir: '/p', skillDir: '/s' }), {
      PATH: '/bin',
      HOME: '/h',
      LANG: 'C',
      LC_ALL: 'C',
      TERM: 'x',
      TZ: 'UTC',
      PYTHONDONTWRITEBYTECODE: '1',
      TELOS_SKILL_DIR: '/s',
      CLAUDE_PLUGIN_ROOT: '/s',
      CLAUDE_SKILL_DIR: '/s',
      SKILL_DIR: '/s',
      SKILL_PATH: '/s',
      SKILL_ROOT: '/s',
      TELOS_PACK_DIR: '/p',
    });
  });
});

/** The processes that run in a folder, as the system itself lists them. */
function running(folder: string): string[] {
  return readdirSync('/proc').filter(name => {
    try {
      return /^\d+$/.test(name) && readlinkSync(join('/proc', name, 'cwd')) === folder;
    } catch {
      return false;
    }
  });
}
