/** Runs commands in folders on mounts of their own, in a mount namespace that only this process has; prints what each came to. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBox } from '../../../src/engine/box/findBox.ts';
import { temporaryRun } from '../tools/temporaryRun.ts';
import { boxedRun, type Ran } from './boxed.ts';

/** A file system in user space whose program has ended, as after a lost connection. */
const lost = `import ctypes, os, sys
fd = os.open('/dev/fuse', os.O_RDWR)
options = 'fd=%d,rootmode=40000,user_id=%d,group_id=%d' % (fd, os.getuid(), os.getgid())
if ctypes.CDLL(None, use_errno=True).mount(b'lost', sys.argv[1].encode(), b'fuse', 6, options.encode()): sys.exit(os.strerror(ctypes.get_errno()))`;

const run = temporaryRun();
const finding = await findBox(run.context);
if (!finding.works) throw new Error(finding.why);
const folder = (name: string): string => {
  mkdirSync(join(run.root, name), { recursive: true });
  return join(run.root, name);
};
const mount = (...words: string[]): unknown =>
  execFileSync('mount', words, { stdio: ['ignore', 'ignore', 'inherit'] });
const inFolder = (workingDir: string): Promise<Ran> =>
  boxedRun(finding, { workingDir, commandDir: workingDir }, run).sh(
    'cat kept mounted/kept 2>&1; echo new > made; ls',
  );

const other = folder('other');
mount('-t', 'tmpfs', 'tmpfs', other);
writeFileSync(join(other, 'kept'), 'kept\n');
mkdirSync(join(other, 'mounted'));
mount('-t', 'tmpfs', 'tmpfs', join(other, 'mounted'));
writeFileSync(join(other, 'mounted/kept'), 'below\n');
const [gone, around] = [folder('gone'), folder('around')];
mkdirSync(join(around, 'mounted'));
writeFileSync(join(around, 'kept'), 'kept\n');
for (const at of [gone, join(around, 'mounted')])
  execFileSync('python3', ['-c', lost, at], { stdio: ['ignore', 'ignore', 'inherit'] });
const ran = { other: await inFolder(other), gone: await inFolder(gone), around: await inFolder(around) };
console.log(JSON.stringify(ran));
process.exit();
