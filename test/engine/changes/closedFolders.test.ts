/** What a command plants is seen and taken back also where it closes folders, and nothing goes that was only not seen before. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import type { CommandWatch, KeptChange } from '../../../src/engine/changes/commandWatch.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';
import { itAsUser } from './asUser.ts';

const closedTo = itAsUser(import.meta.filename);

describe('changes behind closed folders', function () {
  this.timeout(60_000);
  let run: TemporaryRun;
  let store: ChangeStore;

  beforeEach(() => {
    run = temporaryRun();
    store = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
  });
  afterEach(async () => {
    await store.settled();
    execFileSync('chmod', ['-R', 'u+rwX', run.root]);
    run.remove();
  });

  const inWork = (path: string): string => join(run.work, path);
  const mode = (path: string): number => statSync(inWork(path)).mode & 0o777;
  const plant =
    'echo evil > .envrc; echo evil > CLAUDE.md; mkdir -p .vscode; echo {} > .vscode/tasks.json; printf "all:\\n" > Makefile';
  const planted = ['.envrc', 'CLAUDE.md', '.vscode/tasks.json', 'Makefile'];

  interface Looked {
    watch: CommandWatch;
    changes: readonly KeptChange[];
    /** Paths below the working folder. */
    paths: string[];
  }

  async function looked(script: string, outside = false, runId = 'run-1'): Promise<Looked> {
    const env = { PATH: process.env['PATH'] ?? '' };
    const signal = new AbortController().signal;
    const watch = await store.keeper(runId)?.watchCommand({ workingDir: run.work, env, outside, signal });
    assert.ok(watch, 'not watched');
    execFileSync('/bin/sh', ['-ec', script], {
      cwd: run.work,
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
    const changes = await watch.end();
    assert.ok(changes, 'unknown');
    return { watch, changes, paths: changes.map(({ path }) => path.slice(run.work.length + 1)) };
  }

  /** Asserts that all that was planted is seen and can be taken back. */
  async function takesBack(script: string): Promise<Looked> {
    const found = await looked(`${plant}\n${script}`);
    for (const path of planted) assert.ok(found.paths.includes(path), `${script}: ${path} was not seen`);
    const names = found.changes.filter(({ path }) => planted.some(one => path === inWork(one)));
    assert.deepEqual(await found.watch.putBack(names), [], script);
    for (const path of planted) assert.ok(!existsSync(inWork(path)), `${script}: ${path} is left`);
    return found;
  }

  for (const size of ['small', 'large'])
    closedTo(`are seen where a command closes the working folder or one in it (${size} folder)`, async () => {
      if (size === 'large') for (let at = 0; at < 1001; at++) run.put(`work/others/${at}`, '');
      run.put('work/s/x.txt', 'mine');
      run.put('work/a.txt', 'mine');
      const { watch } = await takesBack('chmod 311 .');
      assert.deepEqual(watch.reopened, [run.work]);
      assert.equal(mode('.'), 0o755);
      await takesBack('chmod 000 s');
      assert.equal(mode('s'), 0o755);
      assert.equal(readFileSync(inWork('s/x.txt'), 'utf8'), 'mine');
      await takesBack('mkdir -p n/m; echo 1 > n/m/x; chmod 000 n/m n');
      assert.equal(mode('n/m'), 0o700);
      await takesBack('chmod 555 . .vscode');
      await takesBack('chmod 000 .');
    });

  closedTo('are seen of programs that packages bring, also among more files than are kept', async () => {
    const program =
      'mkdir -p node_modules/.bin; echo evil > node_modules/.bin/eslint; chmod 755 node_modules/.bin/eslint';
    const { paths } = await looked(`${program}; chmod 311 node_modules node_modules/.bin`);
    assert.ok(paths.includes('node_modules/.bin/eslint'));
    const filled = await looked(
      'mkdir -p p/node_modules/.bin p/node_modules/f; cd p/node_modules/f; seq 20100 | xargs touch; echo evil > ../.bin/tsc; echo evil > ../.envrc',
    );
    assert.ok(filled.paths.includes('p/node_modules/.bin/tsc'), filled.paths.join());
    assert.ok(filled.paths.includes('p/node_modules/.envrc'));
    assert.ok(filled.watch.unlooked.includes(inWork('p/node_modules')));
    const later = await looked('echo more > p/node_modules/.bin/tsc; echo 1 > p/node_modules/.bin/other');
    assert.deepEqual(later.paths, ['p/node_modules/.bin/other', 'p/node_modules/.bin/tsc']);
    assert.deepEqual(later.watch.unlooked, []);
    assert.deepEqual(await later.watch.putBack(later.changes), []);
    assert.equal(readFileSync(inWork('p/node_modules/.bin/tsc'), 'utf8'), 'evil\n');
  });

  closedTo('are seen of hooks and settings that are closed, many, large or not readable', async () => {
    const hook = 'echo evil > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit';
    for (const script of [
      `${hook}; chmod 000 .git/hooks .git`,
      `cd .git/hooks; seq -f x%g.sample 5100 | xargs touch; cd ../..; ${hook}`,
      `${hook}; truncate -s 2M .git/hooks/pre-commit`,
      `${hook}; chmod 311 .git/hooks/pre-commit`,
      `mkdir -p .git/modules/m; touch .git/modules/m/HEAD; echo '[core]' > .git/modules/m/config; ${hook}; chmod 311 .git/modules .git/modules/m`,
    ]) {
      const { changes, watch } = await looked(`git init -q r; cd r; ${script}`);
      const found = changes.filter(({ path }) => path.endsWith('pre-commit') || path.endsWith('m/config'));
      assert.equal(found.length, script.includes('modules') ? 2 : 1, script);
      assert.deepEqual(await watch.putBack(found), [], script);
      assert.ok(!existsSync(inWork('r/.git/hooks/pre-commit')), script);
      execFileSync('rm', ['-rf', inWork('r')]);
      await looked('true');
    }
  });

  closedTo('are taken back also of files that cannot be read', async () => {
    const { changes, watch } = await looked(
      'echo evil > .envrc; chmod 222 .envrc; truncate -s 1100M CLAUDE.md',
    );
    assert.deepEqual(await watch.putBack(changes), []);
    assert.deepEqual(readdirSync(run.work), []);
  });

  closedTo('are seen in a folder whose name is not UTF-8, which gets another one', async () => {
    const { watch, changes, paths } = await looked(
      'd=$(printf "caf\\351"); mkdir "$d" "$d/$d"; echo evil > "$d/.envrc"; cp "$d/.envrc" "$d/$d"; echo 1 > "$d.txt"; git init -q "$d"; git -C "$d" config core.fsmonitor evil',
    );
    for (const path of ['caf%E9/.envrc', 'caf%E9/caf%E9/.envrc', 'caf%E9/.git/config'])
      assert.ok(paths.includes(path), `${path} in ${paths.join()}`);
    assert.ok(watch.reopened.includes(inWork('caf%E9')));
    assert.deepEqual(await watch.putBack(changes), []);
    assert.ok(!existsSync(inWork('caf%E9/.envrc')));
    const names = readdirSync(run.work, { encoding: 'buffer' }).map(name => name.toString('latin1'));
    assert.deepEqual(names, ['caf%E9', 'caf\xe9.txt'], 'a file without a meaning keeps its name');
  });

  closedTo('remove nothing that was only not seen before', async () => {
    run.put('work/CLAUDE.md', 'mine');
    run.put('work/.vscode/tasks.json', '{}');
    run.put('work/a.txt', 'mine');
    const files = ['CLAUDE.md', '.vscode/tasks.json', 'a.txt'];
    chmodSync(run.work, 0o311);
    // As a command with the person's own rights does.
    const { changes, watch } = await looked('chmod 755 .', true);
    await watch.putBack(changes);
    watch.record(new Set());
    for (const path of files) assert.ok(existsSync(inWork(path)), path);
    await store.undo('run-1', { others: true });
    for (const path of files) assert.ok(existsSync(inWork(path)), `undo: ${path}`);
  });

  closedTo('leave a folder closed that a command with all rights has closed', async () => {
    run.put('work/s/x.txt', 'mine');
    await looked('true', true);
    await looked('chmod 000 s', true);
    assert.equal(mode('s'), 0);
    const { watch } = await looked('chmod 755 s', true, 'run-2');
    watch.record(new Set());
    await store.undo('run-2');
    assert.equal(readFileSync(inWork('s/x.txt'), 'utf8'), 'mine');
  });

  closedTo('remove nothing at undo that may be all that is left of what was not kept', async () => {
    run.put('work/s/lib/mine.txt', 'mine');
    chmodSync(inWork('s'), 0o311);
    run.put('work/video.mp4', '');
    truncateSync(inWork('video.mp4'), 70 * 1024 * 1024);
    run.put('work/kept.txt', 'mine');
    const moves = ['mv video.mp4 x.mp4', 'mv kept.txt moved.txt', 'mv s/lib lib; echo 1 > new.txt'];
    for (const [at, script] of moves.entries()) {
      const { watch } = await looked(script, false, `run-${at}`);
      watch.record(new Set());
      await store.undo(`run-${at}`, { others: true });
    }
    assert.equal(readFileSync(inWork('lib/mine.txt'), 'utf8'), 'mine');
    assert.equal(mode('s'), 0o311, 'what the person has closed stays closed');
    assert.ok(!existsSync(inWork('new.txt')), 'what the command made is removed');
    assert.ok(existsSync(inWork('x.mp4')));
    assert.deepEqual([existsSync(inWork('kept.txt')), existsSync(inWork('moved.txt'))], [true, false]);
  });
});
