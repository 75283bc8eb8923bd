/** A name means the user's program, never one that a run could have put there. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { serverProgram } from '../../../src/engine/mcp/link.ts';
import { createCommandTool } from '../../../src/engine/tools/command.ts';
import { findProgram, trustedPath } from '../../../src/engine/tools/programPath.ts';
import type { ToolContext } from '../../../src/engine/tools/tool.ts';
import { importsOf, withoutEntries } from '../../importRules.ts';
import { projectSources } from '../../map.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('the PATH of a run', () => {
  let run: TemporaryRun;

  const program = (path: string, body = 'echo planted'): string => {
    const file = run.put(path, `#!/bin/sh\n${body}\n`);
    chmodSync(file, 0o755);
    return file;
  };
  const at = (path: string): string => join(run.root, path);
  const withPath = (folders: readonly string[], more: Partial<ToolContext> = {}): ToolContext => ({
    ...run.context,
    ...more,
    env: { HOME: run.home, PATH: [...folders, '/usr/bin', '/bin'].join(delimiter) },
  });
  const shell = async (command: string, context: ToolContext): Promise<string> =>
    (await createCommandTool().execute({ command }, context)).content;

  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  it('has no folder that lies in a folder of work, by whichever way', () => {
    program('work/bin/tool');
    program('other/tools/tool');
    program('tools/bin/tool', 'echo mine');
    symlinkSync(run.work, at('alias'));
    symlinkSync(at('work/bin'), at('bin'));
    mkdirSync(at('work/out'));
    symlinkSync(at('tools/bin'), at('work/out/bin'));
    const ways = [
      'work/bin',
      'alias/bin',
      'bin',
      'WORK/bin',
      'work/out/bin',
      'tools/../work/bin',
      'work/not/yet',
    ];
    for (const way of [...ways.map(at), `${run.root}/./work/bin`, '', '.', 'bin', 'work/bin'])
      assert.deepEqual(trustedPath(withPath([way])).folders, ['/usr/bin', '/bin'], way);
    const others = withPath([at('other/tools'), at('tools/bin')], { workFolders: [at('other')] });
    assert.equal(findProgram('tool', others), at('tools/bin/tool'));
    assert.deepEqual(trustedPath(others).leftOut, [{ path: at('other/tools'), place: at('other') }]);
  });

  it('has no programs of a project that npm has put there, whoever works in it', () => {
    program('project/node_modules/.bin/tool');
    program('home/.config/yarn/global/node_modules/.bin/tool', 'echo mine');
    const kept = at('home/.config/yarn/global/node_modules/.bin');
    const context = withPath([at('project/node_modules/.bin'), kept]);
    assert.equal(findProgram('tool', context), join(kept, 'tool'));
  });

  it('passes by a program that is a link into a folder of work, or leads through one', () => {
    program('work/build/tool');
    program('mine/tool', 'echo mine');
    mkdirSync(at('tools'));
    symlinkSync(at('work/build/tool'), at('tools/tool'));
    mkdirSync(at('through'));
    symlinkSync(at('mine'), at('work/current'));
    symlinkSync(at('work/current/tool'), at('through/tool'));
    const context = withPath([at('tools'), at('through'), at('mine')]);
    assert.equal(findProgram('tool', context), at('mine/tool'));
    mkdirSync(at('mine/other'));
    assert.equal(findProgram('other', context), undefined, 'a folder is not a program');
  });

  it('is what a shell command gets, and scripts that it starts', async () => {
    program('work/bin/tool');
    program('tools/bin/tool', 'echo mine');
    run.put('work/run.sh', '#!/usr/bin/env tool-interpreter\n');
    program('work/bin/tool-interpreter');
    chmodSync(at('work/run.sh'), 0o755);
    const context = withPath([at('work/bin'), at('tools/bin')]);
    assert.equal((await shell('tool', context)).trim(), 'mine');
    assert.match(await shell('env tool', context), /mine/);
    assert.doesNotMatch(await shell(`${at('work/run.sh')}`, context), /planted/);
    assert.match(await shell(at('work/bin/tool'), context), /planted/, 'by its path it runs');
  });

  it('finds nothing in the current folder where no folder is left', async () => {
    program('pack/tool');
    for (const PATH of ['', '.', ':', at('work/bin')]) {
      const shown = await shell('tool', { ...run.context, env: { PATH } });
      assert.doesNotMatch(shown, /planted/, PATH);
      assert.match(shown, /not found/);
    }
  });

  it('leaves the rest of a folder in use where one program leads into a folder of work', async () => {
    program('work/build/tool');
    program('work/build/lone');
    program('tools/other', 'echo other');
    program('mine/tool', 'echo "mine $1"');
    symlinkSync(at('work/build/tool'), at('tools/tool'));
    symlinkSync(at('work/build/lone'), at('tools/lone'));
    const context = withPath([at('tools'), at('mine')]);
    assert.equal((await shell('other', context)).trim(), 'other');
    assert.equal((await shell("tool 'a b'", context)).trim(), 'mine a b');
    const told = await shell('lone', context);
    assert.doesNotMatch(told, /planted/);
    assert.match(
      told,
      /lone in .*tools was not used, because it leads into .*work.* Run it by its path: .*tools\/lone/,
    );
    assert.match(told, /exit code: 127/);
  });

  it('is explained where a command failed without a program that was left out', async () => {
    const file = program('work/node_modules/.bin/eslint');
    const context = withPath([at('work/node_modules/.bin')]);
    const told = await shell('eslint src', context);
    assert.ok(told.includes(`Run it by its path: ${file}`), told);
    assert.match(told, /eslint in .* was not used, because runs can change what is in .*work/);
    assert.doesNotMatch(await shell('echo eslint', context), /not used/);
  });

  it('is what MCP servers are started with, by the whole path of their program', () => {
    program('work/bin/server');
    program('tools/server');
    const stdio = (command: string, env = {}) => ({ type: 'stdio' as const, command, args: [], env });
    const PATH = [at('work/bin'), at('tools'), '/usr/bin'].join(delimiter);
    const found = serverProgram(stdio('server'), { PATH }, [run.work]);
    assert.equal(found.command, at('tools/server'));
    assert.equal(found.env['PATH'], [at('tools'), '/usr/bin'].join(delimiter));
    const own = stdio('server', { PATH: at('work/bin') });
    assert.throws(
      () => serverProgram(own, { PATH }, [run.work]),
      /the program 'server' was not found; server in .*work\/bin was not used/,
    );
    assert.equal(serverProgram(stdio('./server'), { PATH }, [run.work]).command, './server');
  });
});

/**
 * All files of the product that start programs, and how they know that it is the person's. A name alone would mean whatever a run has put
 * on the PATH.
 */
const starters: Readonly<Record<string, string>> = {
  'src/cli/lineEditor.ts': 'a full path',
  'src/cli/workerTry.ts': 'findProgram in npm.ts',
  'src/engine/box/findBox.ts': 'findProgram',
  'src/engine/box/helper.ts': 'findProgram in findBox.ts',
  'src/engine/changes/gitObjects.ts': 'findGit in landLayer.ts',
  'src/evals/earlierVersion.ts': 'findGit',
  'src/engine/files/leftLayers.ts': 'rm by its path',
  'src/engine/files/liveProcess.ts': '/bin/ps and /usr/sbin/sysctl, by their paths',
  'src/engine/files/placeFile.ts': '/bin/cp, by its path',
  // PostgreSQL itself lies below the data folder.
  'src/fleet/tryDatabase.ts': 'findProgram',
  'src/engine/mcp/boxedServer.ts': 'findProgram in link.ts, or the box',
  'src/engine/providers/signInProgram.ts': 'findProgram',
  'src/engine/schedule/clock.ts': 'findProgram',
  'src/packs/sources/gitSource.ts': 'findGit',
  'src/packs/sources/npm.ts': 'findProgram',
  'src/engine/tools/gitStart.ts': 'findGit in those that call it, which are all in this list',
  'src/engine/tools/orphanGuard.ts': '/bin/sh',
  'src/engine/tools/processStart.ts':
    'this Node, what readOnlyShell.ts has found, and for command.ts /bin/sh with the PATH of commandPrograms',
  'src/engine/tools/processTable.ts': 'findProgram',
  'src/engine/tools/processTree.ts': 'taskkill by its path, on Windows',
  'src/engine/tools/readOnlyShell.ts': 'findProgram',
  'src/engine/tools/search.ts': 'findProgram',
  'src/plans/detachedRun.ts': 'this Node',
  'src/plans/finishPlan.ts': 'findProgram',
  'src/plans/gitProgram.ts': 'findGit',
  'src/plans/planDemo.ts': 'findProgram',
  'src/fleet/stories/planRemote.ts': 'findGit',
};

/** A call that starts a program by a bare name. */
const byName = /\b(?:spawn|spawnSync|execFile|execFileSync|exec|execSync|fork)\)?\(\s*['"`](?!\/)([^'"`]*)/g;

describe('the product', () => {
  const sources = withoutEntries(projectSources());
  const starting = [...sources].filter(
    ([path, text]) =>
      importsOf(path, text).some(({ file, kind }) => kind !== 'type' && file?.endsWith('/gitStart.ts')) ||
      (/from 'node:child_process'/.test(text) && !/import type [^;]*'node:child_process'/.test(text)),
  );

  it('starts programs in these files only', () => {
    assert.deepEqual(starting.map(([path]) => path).sort(), Object.keys(starters).sort());
    for (const [path, text] of starting)
      if (/^find(?:Program|Git)$/.test(starters[path] ?? ''))
        assert.match(text, /\bfind(?:Program|Git)\(/, path);
  });

  it('starts none by a bare name', () => {
    const named = starting.flatMap(([path, text]) =>
      [...text.matchAll(byName)].map(([, name]) => `${path}: ${name}`),
    );
    assert.deepEqual(named, []);
    for (const line of ["spawn('git', [])", "promisify(execFile)(\n  'gh', [])", 'this.spawn("git")'])
      assert.equal([...line.matchAll(byName)].length, 1, line);
    for (const line of ["spawn('/bin/sh', [])", 'spawn(program, args)', 'pattern.exec(text)'])
      assert.equal([...line.matchAll(byName)].length, 0, line);
  });
});
