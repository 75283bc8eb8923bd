/** What does not fit into the box ends with a sentence, and changes nothing outside. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../eventually.ts';
import { type Boxed, boxedRun, itBoxed, type Ran } from './boxed.ts';

const fails = ({ code, err }: Ran, says: RegExp): void => {
  assert.notEqual(code, 0);
  assert.match(err, says);
};

/** The box of the same run for another working folder. */
const boxedIn = (run: Boxed, workingDir: string): Boxed =>
  boxedRun(run.finding, { workingDir, commandDir: workingDir }, run);

describe('what does not fit into the box', () => {
  itBoxed('is a terminal', async ({ sh }) => {
    fails(await sh('exec < /dev/tty'), /\/dev\/tty/);
    fails(await sh('tty -s || { tty >&2; exit 1; }'), /^$|not a tty/);
  });

  itBoxed('is a program that takes the rights of its owner', async ({ sh }) => {
    fails(await sh('cp /bin/sh own && chmod 4755 own'), /not permitted/i);
    fails(await sh('su nobody -s /bin/sh -c id'), /\w/);
    assert.match((await sh('grep NoNewPrivs /proc/self/status')).out, /1/);
  });

  itBoxed('is a debugger on a process outside', async ({ sh }) => {
    fails(await sh(`kill -0 ${process.pid}`), /No such process/i);
    fails(await sh(`cat /proc/${process.pid}/environ`), /No such file/i);
    const attach = `import ctypes, os, sys; c = ctypes.CDLL(None, use_errno=True); sys.exit(c.ptrace(16, ${process.pid}, 0, 0) and os.strerror(ctypes.get_errno()))`;
    fails(await sh(`/usr/bin/python3 -c '${attach}'`), /No such process|not permitted/i);
  });

  itBoxed('is a container', async ({ sh }) => {
    fails(await sh('unshare -Ur true'), /unshare/);
  });

  itBoxed('is an error that only looks like one of the sandbox', async ({ sh }) => {
    const { code, err } = await sh('echo "bwrap: Creating new namespace failed" >&2; exit 1');
    assert.deepEqual([code, err.trim()], [1, 'bwrap: Creating new namespace failed']);
  });

  itBoxed('is a pipe at whose other end nobody reads', async ({ sh, work }) => {
    execFileSync('mkfifo', [join(work, 'pipe')]);
    const { code, note } = await sh('echo x > pipe', {}, { timeoutMs: 1000 });
    assert.equal(code, undefined);
    assert.match(note ?? '', /timed out/);
  });

  itBoxed('is not a working folder with spaces and other scripts', async run => {
    const folder = join(run.root, 'mein Ordner – 作業 "x" $HOME');
    mkdirSync(folder);
    const { code, out } = await boxedIn(run, folder).sh('pwd && echo done > file');
    assert.deepEqual([code, out.trim(), readFileSync(join(folder, 'file'), 'utf8')], [0, folder, 'done\n']);
  });

  itBoxed('is not a working folder over a link, which then leads to one folder only', async run => {
    const [real, other, link] = ['real', 'other', 'link'].map(name => join(run.root, name)) as [
      string,
      string,
      string,
    ];
    for (const folder of [real, other]) mkdirSync(folder);
    symlinkSync(real, link);
    const boxed = boxedIn(run, link);
    assert.equal((await boxed.sh('echo done > file')).code, 0);
    assert.ok(existsSync(join(real, 'file')));
    writeFileSync(join(other, 'kept'), 'kept\n');
    rmSync(link);
    symlinkSync(other, link);
    await boxed.sh('echo changed > kept');
    assert.equal(readFileSync(join(other, 'kept'), 'utf8'), 'kept\n');
  });

  itBoxed('is not a folder on a mount of its own, but one whose server is lost', async () => {
    const words = [process.getuid?.() === 0 ? '-m' : '-rm', process.execPath];
    const script = new URL('onMounts.ts', import.meta.url).pathname;
    const { status, stdout, stderr } = spawnSync('unshare', [...words, script], { encoding: 'utf8' });
    // Some machines let nobody but bubblewrap mount anything.
    if (status !== 0) return assert.match(stderr, /unshare: |mount: |not permitted|Permission denied/);
    const { other, gone, around } = JSON.parse(stdout) as Record<'other' | 'gone' | 'around', Ran>;
    assert.deepEqual([other.code, other.out], [0, 'kept\nbelow\nkept\nmade\nmounted']);
    assert.match(gone.err, /^The folder for commands, .*gone, cannot be read: .*\. Nothing was run\.$/);
    assert.deepEqual([around.code, around.out.split('\n')[0]], [0, 'kept']);
    // As any folder that cannot be listed, it is hidden whole.
    assert.match(around.out, /Permission denied/);
  });

  itBoxed('is a working folder that goes away while the command runs', async ({ sh, work, root }) => {
    const running = sh('echo begun > begun; while test -e begun; do sleep 0.1; done; echo x > after');
    await eventually(() => assert.ok(existsSync(join(work, 'begun'))));
    renameSync(join(work, 'begun'), join(root, 'begun'));
    rmSync(work, { recursive: true });
    const { err } = await running;
    assert.match(err, /after/);
    assert.ok(!existsSync(join(work, 'after')));
    const { code, out } = await sh('ls -A');
    assert.deepEqual([code, out], [0, '']);
  });
});
