import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Inputs, type StartedProcess, startProcess } from '../../../src/engine/tools/processStart.ts';
import { eventually } from '../../eventually.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const isAlive = (pid: number): boolean => {
  try {
    // One that was killed and that nobody has asked about is still listed.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
};

describe('a program that a large process starts', () => {
  let large: Buffer | undefined;
  let folder: TempFolder;
  before(function () {
    // Elsewhere a process is not started by a copy.
    if (process.platform !== 'linux') return this.skip();
    // Written to, so that it counts as memory that is used.
    large = Buffer.alloc(320 * 1024 ** 2, 1);
    folder = tempFolder();
  });
  after(() => {
    assert.notEqual(large?.length, 0);
    large = undefined;
    folder?.remove();
  });

  async function started(line: string, inputs?: Inputs, stdin?: string): Promise<StartedProcess> {
    const env = { PATH: '/usr/bin:/bin', ONE: 'a "b"\nc' };
    const start = { program: '/bin/sh', args: ['-c', line], folder: folder.path, env };
    const child = await startProcess(start, inputs, false, stdin);
    if (typeof child === 'string') throw new Error(child);
    return child;
  }

  async function ended(child: StartedProcess): Promise<{ out: string; err: string; code: number | null }> {
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', text => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', text => {
      err += text;
    });
    const [code] = await child.exited;
    await child.closed;
    return { out, err, code };
  }

  /** Starts one and returns the process that has started it. */
  async function parentOf(line = ''): Promise<{ child: StartedProcess; parent: number }> {
    const child = await started(`echo $PPID; ${line}`);
    const [first] = (await once(child.stdout, 'data')) as [Buffer];
    return { child, parent: Number(first.toString()) };
  }

  it('reads all of the input that it is given, or ends without it', async () => {
    const text = 'ä'.repeat(1_000_000);
    assert.deepEqual(await ended(await started('wc -c', [], text)), { out: '2000000\n', err: '', code: 0 });
    assert.equal((await ended(await started('exit 3', [], text))).code, 3);
    assert.equal((await ended(await started('wc -c'))).out, '0\n');
  });

  it('is started by another one, with its output, its folder, its environment and its exit code', async () => {
    const child = await started('echo $PPID; pwd; echo "$ONE"; echo wrong >&2; exit 7');
    const { out, err, code } = await ended(child);
    const [parent, ...rest] = out.split('\n');
    assert.notEqual(Number(parent), process.pid);
    assert.deepEqual(rest, [folder.path, 'a "b"', 'c', '']);
    assert.deepEqual([err, code], ['wrong\n', 7]);
  });

  it('leads a group, and says when it was started', async () => {
    const child = await started('read -r stat < /proc/self/stat; echo "$stat"; kill -9 $$');
    const { out } = await ended(child);
    const fields = out.slice(out.lastIndexOf(')') + 2).split(' ');
    assert.equal(Number(fields[2]), child.pid);
    assert.equal(fields[19], child.started);
    assert.deepEqual(await child.exited, [null, 'SIGKILL']);
  });

  it('has nothing open, and nothing in its environment, of the one that starts it', async () => {
    const { out } = await ended(await started('exec env; :'));
    assert.deepEqual(
      out.split('\n').filter(line => !/^(?:PATH|ONE|PWD|OLDPWD|SHLVL|_|c)\b/.test(line)),
      [''],
    );
    const ls = ['-c', 'exec ls /proc/self/fd'];
    const listed = await ended(await started(ls[1] ?? ''));
    // What this process was itself started with is handed down in both ways.
    const here = spawn('/bin/sh', ls, { stdio: ['ignore', 'pipe', 'ignore'] });
    assert.deepEqual(listed.out, String(await here.stdout.toArray().then(Buffer.concat)));
  });

  it('reads bytes, and the very file that is open here, whatever has its name by now', async () => {
    const [file, other] = [join(folder.path, 'file'), join(folder.path, 'other')];
    writeFileSync(file, 'meant');
    writeFileSync(other, 'not meant');
    const written = openSync(join(folder.path, 'written'), 'wx+');
    rmSync(join(folder.path, 'written'));
    // As the box opens what it shows.
    const place = openSync(file, 0o10000000 | constants.O_NOFOLLOW);
    renameSync(other, file);
    const bytes = Buffer.from([0, 255, 10]);
    const line = 'od -An -tx1 <&3; cat /proc/self/fd/5; echo said >&4';
    const { out, err } = await ended(await started(line, [bytes, written, place]));
    assert.deepEqual([out, err], [' 00 ff 0a\nmeant', '']);
    assert.equal(readFileSync(written, 'utf8'), 'said\n');
    closeSync(written);
    closeSync(place);
  });

  it('gives all that it prints, in its order', async () => {
    const child = await started('seq 1 1000000');
    const { out } = await ended(child);
    assert.equal(out, Array.from({ length: 1_000_000 }, (_, index) => `${index + 1}\n`).join(''));
  });

  it('gives what it prints also when it has ended by the time that someone reads', async () => {
    const starting = started('echo said');
    // All that is reported of it arrives at once then.
    for (const until = performance.now() + 500; performance.now() < until; );
    assert.equal((await ended(await starting)).out, 'said\n');
  });

  it('says why it could not be started', async () => {
    const start = { program: join(folder.path, 'missing'), args: [], folder: folder.path, env: {} };
    assert.match(String(await startProcess(start)), /missing ENOENT/);
  });

  it('may leave its output to another one that no one waits for', async () => {
    const { child, parent } = await parentOf('sleep 60 & exit 3');
    assert.deepEqual(await child.exited, [3, null]);
    const late = setTimeout(() => assert.fail('It was waited for.'), 30_000);
    child.release();
    await child.closed;
    clearTimeout(late);
    process.kill(-child.pid, 'SIGKILL');
    assert.equal(isAlive(parent), true);
  });

  it('counts as killed when the one that has started it is killed, and the next is started by a new one', async () => {
    const { child, parent } = await parentOf('exec sleep 60');
    process.kill(parent, 'SIGKILL');
    assert.deepEqual(await child.exited, [null, 'SIGKILL']);
    child.release();
    process.kill(-child.pid, 'SIGKILL');
    const next = await parentOf();
    assert.notEqual(next.parent, parent);
    assert.notEqual(next.parent, process.pid);
    assert.deepEqual(await next.child.exited, [0, null]);
  });

  /** Runs one in a process of its own, after `before`. Returns the numbers that it printed: that process and the parent of the program. */
  async function inOther(before: string): Promise<[number, number, number]> {
    const source = new URL('../../../src/engine/tools/processStart.ts', import.meta.url).href;
    const code = `const large = Buffer.alloc(320 * 1024 ** 2, 1);
      const { expectProcess, startProcess } = await import(${JSON.stringify(source)});
      const start = { program: '/bin/sh', args: ['-c', 'echo $PPID'], folder: '/', env: {} };
      ${before}
      const child = await startProcess(start);
      child.stdout.on('data', text => console.log(process.pid, String(text).trim(), large.length));
      await child.closed;`;
    const other = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    other.stdout.setEncoding('utf8').on('data', text => {
      said += text;
    });
    assert.deepEqual(await once(other, 'close'), [0, null]);
    return said.trim().split(/\s+/).map(Number) as [number, number, number];
  }

  it('does not keep the process, nor what has started it, when that process ends', async () => {
    const [own, parent] = await inOther('');
    assert.notEqual(parent, own);
    await eventually(() => assert.equal(isAlive(parent), false));
  });

  it('is started by what was expected to start it', async () => {
    const [expected, own, parent] = await inOther(`
      const { readFileSync } = await import('node:fs');
      expectProcess();
      process.stdout.write(readFileSync('/proc/thread-self/children'));`);
    assert.notEqual(expected, own);
    assert.equal(parent, expected);
  });

  it('is started by the process itself where nothing else can', async () => {
    for (const program of ['/bin/false', '/nowhere/node']) {
      const [own, parent] = await inOther(`process.execPath = ${JSON.stringify(program)};`);
      assert.equal(parent, own, program);
    }
  });
});
