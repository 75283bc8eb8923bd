/** Carrying out commands that only look: real files, real programs, and their limits. */
import assert from 'node:assert/strict';
import { chmodSync, renameSync, rmSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { parseReadOnlyCommand } from '../../../src/engine/policy/readOnlyCommand.ts';
import { readOnlyShellTool, runReadOnly } from '../../../src/engine/tools/readOnlyShell.ts';
import type { ToolContext } from '../../../src/engine/tools/tool.ts';
import { itBoxed } from '../box/boxed.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('runReadOnly', () => {
  let run: TemporaryRun;
  const look = async (line: string, more: Partial<ToolContext> = {}, timeoutMs = 10_000): Promise<string> => {
    const verdict = await parseReadOnlyCommand(line, { roots: [run.work], cwd: run.work, home: run.home });
    assert.ok(verdict.allowed, verdict.allowed ? '' : verdict.reason);
    const outcome = await runReadOnly(verdict.command, { ...run.context, ...more }, timeoutMs);
    return 'content' in outcome ? outcome.content : `problem: ${outcome.problem}`;
  };
  /** A program of our own in a folder that the PATH names first. */
  const program = (name: string, script: string, folder = 'bin'): string => {
    chmodSync(run.put(`${folder}/${name}`, `#!/bin/sh\n${script}\n`), 0o755);
    return `${join(run.root, folder)}:${process.env['PATH']}`;
  };

  beforeEach(() => {
    run = temporaryRun();
    run.put('work/a.txt', 'alpha\nbeta\ngamma\n');
    run.put('work/long.txt', Array.from({ length: 300 }, (_, index) => `line ${index + 1}\n`).join(''));
    run.put('work/skills/one/SKILL.md', '# alpha\n');
    run.put('work/skills/.env', 'alpha=1\n');
    run.put('outside/secret.txt', 'alpha SECRET\n');
    symlinkSync(run.outside, join(run.work, 'skills', 'out'));
  });
  afterEach(() => run.remove());

  it('shows files whole, by lines, and where it is', async () => {
    assert.equal(await look('pwd'), run.work);
    assert.equal(await look('cat a.txt skills/one/SKILL.md'), 'alpha\nbeta\ngamma\n# alpha\n');
    assert.equal(await look('cat -n a.txt'), '     1\talpha\n     2\tbeta\n     3\tgamma\n');
    assert.equal(await look("sed -n '2,3p' a.txt"), 'beta\ngamma\n');
    assert.equal(await look("sed -n '3,1p' a.txt"), 'gamma\n');
    assert.match(await look("sed -n '299,$p' long.txt"), /^line 299\nline 300\n$/);
    assert.equal(await look('head -2 a.txt'), 'alpha\nbeta\n');
    assert.equal(await look('tail -n 1 a.txt'), 'gamma\n');
    assert.equal(await look('tail -n +3 a.txt'), 'gamma\n');
    assert.equal((await look('tail long.txt')).split('\n').length, 11);
    assert.match(await look('tail -f a.txt'), /gamma\n\n\[The file as it is now/);
    assert.equal(await look('head -n 0 a.txt'), '(no output)');
    assert.match(await look('cat absent.txt'), /^problem: .*absent\.txt does not exist/);
    assert.match(await look('cat skills'), /^problem: .*is a folder/);
  });

  it('reads at most 256 KiB of a file of any size, also where a line has no end', async () => {
    run.put('work/wide.txt', 'x'.repeat(400_000));
    run.put('work/hole.bin', '');
    truncateSync(join(run.work, 'hole.bin'), 2 ** 31);
    for (const line of ['cat wide.txt', 'tail wide.txt', "sed -n '1,5p' wide.txt"]) {
      const shown = await look(line);
      assert.match(shown.slice(-200), /\[Cut: these are the (first|last) 262,144 bytes.*400,000/);
    }
    assert.match(await look('cat hole.bin'), /binary, 2,147,483,648 bytes[\s\S]*\[Cut:/);
    assert.ok((await look('cat wide.txt wide.txt')).length < 263_000);
  });

  it('runs programs on the folders without following links or opening files of secrets', async () => {
    assert.match(await look('ls'), /a\.txt\nlong\.txt\nskills/);
    assert.equal(await look("find . -name '*.md' -type f"), './skills/one/SKILL.md');
    const found = await look('grep -rn alpha .');
    assert.match(found, /SKILL\.md:1:# alpha/);
    assert.doesNotMatch(found, /SECRET|\.env/);
    assert.equal(await look('grep nothing a.txt'), '(no output)');
    assert.match(await look('ls absent'), /^problem: .*absent/);
  });

  it('gives programs an environment without configuration and words of its own', async () => {
    const PATH = program('rg', 'env; printf "%s\\n" "$@"');
    const shown = await look('rg alpha a.txt', { env: { PATH, RIPGREP_CONFIG_PATH: '/x', SECRET: '1' } });
    assert.doesNotMatch(shown, /RIPGREP|SECRET/);
    assert.match(shown, /\n--no-config\n[\s\S]*\n--\nalpha\na\.txt$/);
  });

  it('takes no program that lies in the folders of the run, and says what to do without', async () => {
    const PATH = program('rg', 'echo planted', 'work/bin').split(':')[0]!;
    assert.match(
      await look('rg alpha .', { env: { PATH } }),
      /^problem: rg is not installed. Use search_files/,
    );
  });

  it('ends a program that takes too long, prints too much, or is no longer wanted', async () => {
    const slow = program('find', 'sleep 30 & echo started; wait');
    assert.match(
      await look('find .', { env: { PATH: slow } }, 300),
      /started\n\n\[The command timed out after 0\.3 s/,
    );
    const endless = program('ls', 'while :; do printf "%01000000d" 1; done');
    assert.match(await look('ls', { env: { PATH: endless } }), /It printed too much/);
    const abort = new AbortController();
    const looking = look('find .', { env: { PATH: slow }, signal: abort.signal });
    abort.abort(new Error('enough'));
    await assert.rejects(looking, /enough/);
  });
});

describe('readOnlyShellTool', () => {
  it('words a failure as JSON with the command, and runs nothing that was not checked', async () => {
    const run = temporaryRun();
    try {
      const worded = JSON.parse(readOnlyShellTool.wordFailure!({ command: 'rm x'.repeat(200) }, 'no'));
      assert.equal(worded.error, 'no');
      assert.match(worded.command, /^rm xrm x.{1,200}…$/);
      assert.equal((await readOnlyShellTool.execute({ command: 'pwd' }, run.context)).isError, true);
    } finally {
      run.remove();
    }
  });
});

describe('runReadOnly in a box', () => {
  itBoxed(
    'shows nothing behind a link that came in the place of a folder after its path was checked',
    async run => {
      run.put('work/d/private.txt', 'ok\n');
      run.put('home/.ssh/private.txt', 'PRIVATE\n');
      const lines = [
        'grep -rn -e ok -e PRIVATE d',
        'grep -n PRIVATE d/private.txt',
        'find d/ -type f',
        'ls d/',
      ];
      const context = { ...run.context, box: run.box };
      for (const line of lines) {
        const verdict = await parseReadOnlyCommand(line, {
          roots: [run.work],
          cwd: run.work,
          home: run.home,
        });
        assert.ok(verdict.allowed);
        const look = async (): Promise<string> =>
          JSON.stringify(await runReadOnly(verdict.command, context, 10_000));
        assert.match(await look(), /ok|private\.txt|no output/, line);
        renameSync(join(run.work, 'd'), join(run.work, 'kept'));
        symlinkSync(join(run.home, '.ssh'), join(run.work, 'd'));
        const shown = await look();
        assert.match(shown, /"problem":.*No such file/, line);
        assert.doesNotMatch(shown, /PRIVATE/, line);
        rmSync(join(run.work, 'd'));
        renameSync(join(run.work, 'kept'), join(run.work, 'd'));
      }
    },
  );
});
