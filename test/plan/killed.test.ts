/** Kills a plan's runner again and again, then looks from outside: at git, at the files and at the processes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { agreeable, nodeTests, once, planWorld, type StoryText, writes } from './planWorld.ts';

/** More with TELOS_NIGHTLY. */
const [kills, count, slots] = process.env['TELOS_NIGHTLY'] ? [30, 100, '4'] : [8, 6, '2'];
const stories: readonly StoryText[] = Array.from({ length: count }, (_, index) => ({
  id: `US-${String(index + 1).padStart(3, '0')}`,
  touches: [`src/part${index + 1}.js`],
  checks: nodeTests,
}));

describe('a plan whose runner is killed', function () {
  this.timeout(600_000);

  it(`has each of ${count} stories once after ${kills} kills, asks for no step again that ended, and leaves the checkout as it is`, async () => {
    const coders = stories.map(({ id }, index) => [
      `${id} coder`,
      once(writes({ [`src/part${index + 1}.js`]: `export const part = ${index};\n` })),
    ]);
    const world = await planWorld(stories, { ...agreeable, ...Object.fromEntries(coders) });
    try {
      const before = world.checkout();
      for (let kill = 0; kill < kills; kill++) {
        const running = world.start('run', 'site', '--parallel', slots, '--unattended');
        // A later kill each time, so that a slow machine comes further too.
        await Promise.race([wait(400 + kill * 250), running.result]);
        running.child.kill('SIGKILL');
        await running.result;
        assert.equal(world.checkout(), before);
      }
      const { code, stderr } = await world.start('run', 'site', '--parallel', slots, '--unattended').result;
      assert.equal(code, 0, stderr);
      const ids = world.git('log', '--format=%(trailers:key=Telos-Story,valueonly)', 'main..telos/site');
      assert.deepEqual(
        ids.split('\n').filter(Boolean).sort(),
        stories.map(({ id }) => id),
      );
      assert.equal(world.checkout(), before);
      assert.deepEqual(doubled(world.journal()), []);
      assert.equal(
        execFileSync('git', ['fsck', '--no-dangling'], { cwd: world.repo, encoding: 'utf8' }).trim(),
        '',
      );
      assert.deepEqual(marked(world.home.folder.path), []);
      assert.equal((await world.plan('finish', 'site', '--keep')).code, 0);
      assert.equal(world.git('worktree', 'list').trim().split('\n').length, 1);
    } finally {
      await world.close();
    }
  });
});

/** Keys of steps that began again although they had ended well. */
function doubled(lines: readonly { type: string; [key: string]: unknown }[]): string[] {
  const ended = new Set<unknown>();
  return lines.flatMap(line => {
    if (line.type === 'step_ended' && line['outcome'] === 'completed') ended.add(line['key']);
    return line.type === 'step_started' && ended.has(line['key']) ? [String(line['key'])] : [];
  });
}

/** Processes that work below a folder. */
function marked(folder: string): string[] {
  const rows = execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' }).split('\n');
  return rows.filter(row => row.includes(folder) && !row.includes('ps -eo'));
}
