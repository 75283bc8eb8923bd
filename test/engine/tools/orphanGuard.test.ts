import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { until } from '../../eventually.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const module = fileURLToPath(new URL('../../../src/engine/tools/orphanGuard.ts', import.meta.url));
const mark = fileURLToPath(new URL('../../../src/engine/tools/processTable.ts', import.meta.url));

/** Starts what an argument says, marked and guarded, and writes its pids and that of the guard into a file. */
const script = `
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { guardOrphans } from ${JSON.stringify(module)};
import { marked } from ${JSON.stringify(mark)};
const [end, file] = process.argv.slice(1);
const mark = { name: 'GUARD_TEST', value: String(process.pid), lockLimit: 900_000 + process.pid };
const guard = guardOrphans(mark);
const env = { PATH: process.env.PATH, GUARD_TEST: String(process.pid) };
const tree = 'trap "" TERM; setsid sleep 983 & env -i setsid sleep 983.' + process.pid + ' & sleep 983';
const { program, args } = marked(mark, '/bin/sh', ['-c', tree]);
const child = spawn(program, args, { env, detached: true, stdio: 'ignore' });
guard.watch(child.pid);
if (end === 'release') { guard.release(); child.unref(); }
writeFileSync(file, String(child.pid));
if (end !== 'release') setInterval(() => {}, 1000);
`;

describe('what guards a command against the sudden end of Telos', () => {
  let folder: TempFolder;
  let group = 0;
  let owner: ChildProcess;
  const left = () => [
    ...processesWith('environ', `GUARD_TEST=${owner.pid}`),
    ...processesWith('cmdline', `983.${owner.pid}`),
  ];
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => {
    owner.kill('SIGKILL');
    for (const pid of left()) process.kill(pid, 'SIGKILL');
    folder.remove();
  });

  async function start(end: 'hold' | 'release') {
    const file = join(folder.path, 'pid');
    owner = spawn(process.execPath, ['--input-type=module', '-e', script, '--', end, file], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    for (const deadline = Date.now() + 8000; !existsSync(file) || readFileSync(file, 'utf8') === ''; ) {
      assert.ok(Date.now() < deadline, 'it never started');
      await delay(10);
    }
    group = Number(readFileSync(file, 'utf8'));
  }

  it('ends the whole tree, also what ignores TERM and what left its group and environment', async () => {
    await start('hold');
    assert.ok(isAlive(group));
    await until(() => left().length >= 4);
    owner.kill('SIGKILL');
    for (const deadline = Date.now() + 8000; isAlive(group) || left().length > 0; ) {
      assert.ok(Date.now() < deadline, 'something is left');
      await delay(50);
    }
  });

  it('leaves alone what it was released from', async () => {
    await start('release');
    if (owner.exitCode === null) await once(owner, 'exit');
    await delay(600);
    assert.ok(isAlive(group));
  });
});

function isAlive(pid: number): boolean {
  if (pid === 0) return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false;
  }
}

function processesWith(part: 'environ' | 'cmdline', text: string): number[] {
  const marked = readdirSync('/proc').filter(name => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/${part}`, 'utf8').split('\0').includes(text);
    } catch {
      return false;
    }
  });
  return marked.map(Number);
}
