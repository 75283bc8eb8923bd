import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { openFolder, openRegularFile } from '../../../src/engine/files/openFile.ts';
import {
  isInside,
  PathProblem,
  refuseSpecialFile,
  refuseWindowsDevice,
  resolvePath,
} from '../../../src/engine/files/paths.ts';
import { skipBecause } from '../../skipBecause.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

const special = (error: unknown): boolean => error instanceof PathProblem && error.kind === 'special';
const unusable = (error: unknown): boolean => error instanceof PathProblem && error.kind === 'unusable';

describe('paths', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());
  const resolved = (path: string): Promise<string> => resolvePath(path, run.work, run.home);

  it('resolves relative, absolute, home and dot-dot paths', async () => {
    assert.equal(await resolved('notes/a.md'), join(run.work, 'notes/a.md'));
    assert.equal(await resolved('.'), run.work);
    assert.equal(await resolved('../outside/a'), join(run.outside, 'a'));
    assert.equal(await resolved(join(run.outside, 'a')), join(run.outside, 'a'));
    assert.equal(await resolved('~/a'), join(run.home, 'a'));
    assert.equal(await resolved('~'), run.home);
    assert.equal(await resolved('~name'), join(run.work, '~name'));
  });

  it('says where a link leads: to a file, through a folder, to nothing, and in a chain', async () => {
    const secret = run.put('outside/secret.txt');
    symlinkSync(secret, join(run.work, 'file'));
    symlinkSync(run.outside, join(run.work, 'folder'));
    symlinkSync('../outside/new.txt', join(run.work, 'nothing'));
    symlinkSync('nothing', join(run.work, 'chain'));
    assert.equal(await resolved('file'), secret);
    assert.equal(await resolved('folder/secret.txt'), secret);
    assert.equal(await resolved('folder/sub/new.txt'), join(run.outside, 'sub/new.txt'));
    assert.equal(await resolved('nothing'), join(run.outside, 'new.txt'));
    assert.equal(await resolved('chain'), join(run.outside, 'new.txt'));
  });

  it('refuses links in a circle, empty paths and NUL', async () => {
    symlinkSync('b', join(run.work, 'a'));
    symlinkSync('a', join(run.work, 'b'));
    await assert.rejects(resolved('a'), unusable);
    await assert.rejects(resolved(''), unusable);
    await assert.rejects(resolved('a\0b'), unusable);
  });

  it('refuses a path that is longer than any, and spends no time on it', async () => {
    await assert.rejects(resolved('a/'.repeat(300_000)), unusable);
  });

  it('refuses the system places, also behind a link', async () => {
    symlinkSync('/proc/self/environ', join(run.work, 'environ'));
    symlinkSync('/dev/stdin', join(run.work, 'stdin'));
    for (const path of [
      '/proc/self/environ',
      '/proc/self/cwd/a',
      '/dev/zero',
      '/sys',
      '/x/../dev/tty',
      'environ',
      'stdin',
    ])
      await assert.rejects(resolved(path), special, path);
    assert.equal(await resolved('/procedure'), '/procedure');
  });

  it('compares whole names, not prefixes', () => {
    assert.equal(isInside('/a/work', '/a/work'), true);
    assert.equal(isInside('/a/work', '/a/work/x'), true);
    assert.equal(isInside('/a/work', '/a/work/..x'), true);
    assert.equal(isInside('/a/work', '/a/work-evil/x'), false);
    assert.equal(isInside('/a/work', '/a'), false);
    assert.equal(isInside('/', '/a'), true);
  });

  it('opens regular files only, and does not wait for a pipe', async () => {
    const file = run.put('work/a.txt', 'abc');
    const { handle, size } = await openRegularFile(file);
    await handle.close();
    assert.equal(size, 3);
    const pipe = join(run.work, 'pipe');
    execFileSync('mkfifo', [pipe]);
    await assert.rejects(openRegularFile(pipe), special);
    await assert.rejects(refuseSpecialFile(pipe), special);
    await assert.rejects(openRegularFile(run.work), unusable);
    await assert.rejects(openRegularFile(join(run.work, 'none')), /does not exist/);
  });

  it('does not open what became a link after it was resolved, itself or its parent', async () => {
    const secret = run.put('outside/a.txt', 'SECRET');
    symlinkSync(secret, join(run.work, 'a.txt'));
    await assert.rejects(openRegularFile(join(run.work, 'a.txt')), /became a link/);
    symlinkSync(run.outside, join(run.work, 'folder'));
    await assert.rejects(openRegularFile(join(run.work, 'folder/a.txt')), unusable);
    assert.throws(() => openFolder(join(run.work, 'folder')), unusable);
    mkdirSync(join(run.outside, 'sub'));
    assert.throws(() => openFolder(join(run.work, 'folder/sub')), unusable);
  });

  it('looks names up in the opened folder, though its path leads elsewhere by then', async function () {
    // Other systems have no name for an opened folder.
    if (process.platform !== 'linux') return skipBecause(this, 'only on Linux');
    run.put('work/folder/a.txt', 'mine');
    run.put('outside/a.txt', 'SECRET');
    const { anchor, close } = openFolder(join(run.work, 'folder'));
    renameSync(join(run.work, 'folder'), join(run.work, 'moved'));
    symlinkSync(run.outside, join(run.work, 'folder'));
    assert.equal(readFileSync(join(anchor, 'a.txt'), 'utf8'), 'mine');
    close();
  });

  it('knows the devices and streams of Windows', () => {
    for (const path of [
      'C:\\w\\CON',
      'C:\\w\\nul.txt',
      'C:\\w\\com1',
      'C:\\w\\a.txt:hidden',
      '\\\\.\\pipe\\x',
      '\\\\?\\C:\\x',
    ])
      assert.throws(() => refuseWindowsDevice(path), special, path);
    for (const path of ['C:\\w\\a.txt', 'C:\\w\\console.log', 'C:\\w\\icon'])
      assert.doesNotThrow(() => refuseWindowsDevice(path), path);
  });
});
