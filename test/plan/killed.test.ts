/** Kills a plan's runner again and again, then looks from outside: at git, at the files and at the processes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { agreeable, once, planWorld, type StoryText, writes } from './planWorld.ts';

/** How often it is killed; more with TELOS_NIGHTLY. */
const kills = process.env['TELOS_NIGHTLY'] ? 60 : 8;
const stories: readonly StoryText[] = [1, 2, 3, 4, 5, 6].map(number => ({
  id: `US-00${number}`,
  touches: [`src/part${number}.js`],
}));

describe('a plan whose runner is killed', function () {
  this.timeout(600_000);

  it(`has each story once after ${kills} kills, asks for no step again that ended, and leaves the checkout as it is`, async () => {
    const coders = stories.map(({ id }, index) => [
      `${id} coder`,
      once(writes({ [`src/part${index + 1}.js`]: `export const part = ${index};\n` })),
    ]);
    const world = await planWorld(stories, { ...agreeable, ...Object.fromEntries(coders) });
    try {
      const before = world.checkout();
      for (let count = 0; count < kills; count++) {
        const running = world.start('run', 'site', '--parallel', '2', '--unattended');
        // A later kill each time, so that a slow machine comes further too.
        await Promise.race([wait(400 + count * 250), running.result]);
        running.child.kill('SIGKILL');
        await running.result;
        assert.equal(world.checkout(), before);
      }
      const { code, stderr } = await world.plan('run', 'site', '--parallel', '2', '--unattended');
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
