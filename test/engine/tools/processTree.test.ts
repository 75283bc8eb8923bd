import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { createCommandTool } from '../../../src/engine/tools/command.ts';
import { noteOn } from '../../../src/engine/tools/commandEnd.ts';
import type { ToolResult } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

const quiet = '</dev/null >/dev/null 2>&1';

/** Each leaves something with a cleared environment, in a session of its own and without its parent. The word names its processes. */
const shapes: Readonly<Record<string, string>> = {
  'a cleared environment': `env -i setsid sleep WORD ${quiet} &`,
  'a cleared environment and output that stays open': 'env -i setsid sleep WORD &',
  'a double fork': `(env -i setsid sh -c '(sleep WORD; true) & sleep 0.01' ${quiet} &); sleep 0.2`,
  'a daemon in another folder': `(cd /; env -i setsid sh -c 'env -i setsid sleep WORD & exit' ${quiet}) &`,
  'another name': `cp "$(command -v sleep)" ./kworker; env -i setsid ./kworker WORD ${quiet} &`,
  'one that stops itself': `env -i setsid sh -c 'kill -STOP $$; sleep WORD' ${quiet} & sleep 0.1`,
  'one that ignores signals': `env -i setsid sh -c 'trap "" TERM HUP INT; while :; do sleep WORD; done' ${quiet} &`,
  'two that start each other': `env -i setsid sh -c 'trap "" TERM; while :; do env -i setsid sleep WORD; done' ${quiet} & env -i setsid sh -c 'trap "" TERM; while :; do env -i setsid sleep WORD & wait; done' ${quiet} &`,
  'one that starts others all the time': `env -i setsid sh -c 'trap "" TERM; while :; do (env -i setsid sleep WORD &); sleep 0.05; done' ${quiet} &`,
  'one that starts its successor and ends': `env -i setsid sh hop.sh 30000 WORD ${quiet} &`,
  'a change of its other limits': `env -i setsid sh -c 'ulimit -n 50; ulimit -c 0; sleep WORD; true' ${quiet} &`,
};

describe('what a command has started', () => {
  let run: TemporaryRun;
  let word = 0;
  beforeEach(() => {
    run = temporaryRun();
    word = 900_000_000 + Math.floor(Math.random() * 90_000_000);
    run.put('pack/hop.sh', `[ "$1" -gt 0 ] && env -i setsid sh hop.sh $(($1 - 1)) $2 ${quiet} &\n`);
    run.put(
      'pack/bomb.sh',
      `trap "" TERM\n[ "$1" -gt 0 ] && for i in 1 2; do env -i setsid sh bomb.sh $(($1 - 1)) $2 ${quiet} & done\nsleep $2; true\n`,
    );
  });
  afterEach(() => {
    for (const pid of running(String(word).slice(0, 6))) process.kill(pid, 'SIGKILL');
    run.remove();
  });

  const command = (text: string, limits = {}, more = {}): Promise<ToolResult> =>
    createCommandTool({ timeoutMs: 20_000, ...limits }).execute(
      { command: text },
      { ...run.context, ...more },
    );
  const each = Object.entries(shapes);

  for (const [name, shape] of each) {
    it(`ends with it: ${name}`, async () => {
      const { content } = await command(`${shape.replaceAll('WORD', String(word))}\necho done`);
      assert.match(content, /^done/);
      await stayGone(word);
    });
  }

  it('ends at the time limit', async () => {
    const all = each.map(([, shape], index) => `${shape.replaceAll('WORD', String(word + index))}\n`);
    const { content } = await command(`echo begun\n${all.join('')}\nwait; sleep ${word}`, {
      timeoutMs: 1500,
    });
    assert.match(content, /^begun\n\n\[timed out after 1\.5 s: the command and all its processes/);
    await stayGone(...each.map((_, index) => word + index));
  });

  it('ends when the run is cancelled', async () => {
    const stop = new AbortController();
    const all = each.map(([, shape], index) => `${shape.replaceAll('WORD', String(word + index))}\n`);
    const ended = command(`${all.join('')}\nsleep ${word}`, {}, { signal: stop.signal });
    while (running(String(word)).length < 2) await delay(5);
    stop.abort(new Error('stopped'));
    await assert.rejects(ended, /stopped/);
    await stayGone(...each.map((_, index) => word + index));
  });

  it('is ended when it becomes too many processes, which is said', async () => {
    const many = `i=0; while [ $i -lt 40 ]; do sleep ${word} & i=$((i + 1)); done; wait`;
    const { content, isError } = await command(many, { processes: 20 });
    assert.equal(content, '[ended because it ran more than 20 processes at a time; start fewer]');
    assert.equal(isError, true);
    await stayGone(word);
  });

  it('is ended as a whole when it multiplies faster than it can be counted', async () => {
    for (const start of [`sh bomb.sh 8 ${word}`, `env -i setsid sh bomb.sh 8 ${word} ${quiet} & sleep 20`]) {
      const { content } = await command(start, { processes: 64 });
      assert.match(content, /\[ended because it ran more than 64 processes at a time; start fewer\]/);
      await stayGone(word);
    }
  });

  it('is ended when it takes too much memory, which is said', async () => {
    const take = `"${process.execPath}" -e "const kept = Buffer.alloc(3e8, 1); setTimeout(() => kept, 60000)" ${word}`;
    const { content } = await command(`env -i setsid ${take}; :`, { memoryBytes: 256 * 1024 ** 2 });
    assert.equal(content, '[ended because it used more than 0.25 GiB of memory; use less]');
    await stayGone(word);
  });

  it('is named when it cannot be ended', () => {
    const limits = { timeoutMs: 60_000, processes: 256, memoryBytes: 4 * 1024 ** 3 };
    const unended = [
      { pid: 1234, name: 'python3' },
      { pid: 1240, name: 'a\n[b]\u202e' },
    ];
    const note = (stopped: 'timeout' | undefined, count: number) =>
      noteOn({ stopped, leftBehind: !stopped, unended: unended.slice(0, count) }, limits);
    assert.equal(
      note(undefined, 2),
      '[the command left a process running in the background; 2 processes could not be ended: 1234 (python3), 1240 (a<U+000A>[b]<U+202E>)]',
    );
    assert.equal(note('timeout', 1), '[timed out after 60 s; 1 process could not be ended: 1234 (python3)]');
  });
});

/** Looks for a while: what starts its successor and ends can be missed by a single look. */
async function stayGone(...words: readonly number[]): Promise<void> {
  for (let look = 0; look < 20; look++) {
    for (const word of words) assert.deepEqual(running(String(word)).map(commandLine), []);
    await delay(10);
  }
}

/** The processes whose command line holds a word, as the system itself lists them. */
function running(word: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && commandLine(Number(name)).includes(word))
    .map(Number);
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
