import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  isOwnerRunning,
  isStillRunning,
  ownerHere,
  thisProcess,
} from '../../../src/engine/files/liveProcess.ts';
import { editShared, lockFile } from '../../../src/engine/files/settingsFile.ts';
import { endedWithProgram, rememberStarted } from '../../../src/engine/tools/startedCommands.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const source = new URL('../../../src/engine/files/', import.meta.url);

/** Runs a script in a process of its own. Returns what it says first, and the process, which goes on. */
async function other(script: string): Promise<{ said: string; kill: () => Promise<void> }> {
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', `${script}\nsetInterval(() => {}, 1000);`],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [said] = await once(child.stdout, 'data');
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  return { said: String(said), kill };
}

const saysWho = `import { thisProcess } from ${JSON.stringify(new URL('liveProcess.ts', source).href)};
process.stdout.write(JSON.stringify(thisProcess()));`;

describe('a process that wrote something down', () => {
  it('runs until it ends, and a later one with its pid is another', async () => {
    assert.equal(isStillRunning(thisProcess()), true);
    const { said, kill } = await other(saysWho);
    const who = JSON.parse(said);
    assert.equal(isStillRunning(who), true);
    for (const pid of [process.pid, 1, process.ppid])
      assert.equal(isStillRunning({ ...who, pid }), false, `${pid}`);
    await kill();
    assert.equal(isStillRunning(who), false);
    assert.equal(isStillRunning({ ...thisProcess(), started: 'another' }), false);
  });

  it('is unknown if it is one of another machine, another container or before a restart, or is said in part', () => {
    const here = thisProcess();
    for (const change of [{ boot: 'another' }, { namespace: 'another' }, { boot: '' }])
      assert.equal(isStillRunning({ ...here, ...change }), undefined);
    for (const one of [{}, { pid: process.pid }, { ...here, pid: 'x' }, { ...here, started: 7 }] as object[])
      assert.equal(isStillRunning(one), undefined);
    assert.equal(isOwnerRunning({ pid: process.pid, owner: ownerHere() }), true);
    assert.equal(isOwnerRunning({ pid: process.pid }), false);
  });
});

describe('a lock', function () {
  this.timeout(60_000);
  let folder: TempFolder;
  let file: string;
  beforeEach(() => {
    folder = tempFolder({ 'list.txt': '' });
    file = join(folder.path, 'list.txt');
  });
  afterEach(() => folder.remove());

  const takesLock =
    (): string => `import { lockFile } from ${JSON.stringify(new URL('settingsFile.ts', source).href)};
await lockFile(${JSON.stringify(`${file}.lock`)}); process.stdout.write('taken');`;

  it('of a process that was killed is taken over at once, whatever its time says', async () => {
    const { kill } = await other(takesLock());
    await kill();
    const ahead = new Date(Date.now() + 3_600_000);
    utimesSync(`${file}.lock`, ahead, ahead);
    await editShared(file, text => `${text}one`);
    assert.equal(readFileSync(file, 'utf8'), 'one');
    assert.equal(existsSync(`${file}.lock`), false);
  });

  it('of a process that runs stays its own, whatever its time says', async () => {
    const { kill } = await other(takesLock());
    try {
      const long = new Date(Date.now() - 3_600_000);
      const old = setInterval(() => utimesSync(`${file}.lock`, long, long), 1);
      const late = new AbortController();
      const taken = lockFile(`${file}.lock`).then(async lock => {
        late.abort();
        await lock.release();
      });
      await Promise.race([taken, new Promise(resolve => setTimeout(resolve, 300))]);
      assert.equal(late.signal.aborted, false);
      clearInterval(old);
      await kill();
      await taken;
    } finally {
      await kill();
    }
  });

  it('of no process of this machine is left alone while it beats', async () => {
    const lock = `${file}.lock`;
    writeFileSync(lock, 'of another machine');
    let beats = 0;
    const beat = setInterval(() => {
      const ago = new Date(Date.now() - 3_600_000 + beats++);
      utimesSync(lock, ago, ago);
      if (beats === 3) {
        clearInterval(beat);
        rmSync(lock);
      }
    }, 2_000);
    await editShared(file, text => `${text}one`);
    assert.equal(beats, 3);
  });
});

describe('commands in the background', () => {
  it('have ended with their program, also when another has its pid', () => {
    const folder = tempFolder();
    try {
      const file = rememberStarted(folder.path, 'a', 'npm start') ?? '';
      assert.deepEqual(endedWithProgram(folder.path), []);
      writeFileSync(file, readFileSync(file, 'utf8').replace(/"started":"[^"]*"/, '"started":"then"'));
      assert.deepEqual(endedWithProgram(folder.path), ['npm start']);
      assert.equal(existsSync(file), false);
    } finally {
      folder.remove();
    }
  });
});
