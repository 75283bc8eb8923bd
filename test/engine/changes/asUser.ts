/** Runs tests as a user who is not root: the kernel refuses root nothing, so what a mode closes is only closed to others. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

const user = 4242;
const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js');

/** Returns `it` for the tests of `file`. Where the suite is root, each runs in a process of an ordinary user. */
export function itAsUser(file: string): (title: string, test: () => Promise<void>) => void {
  return (title, test) => {
    if (process.getuid?.() !== 0) it(title, test);
    else
      it(title, () => {
        const args = ['--no-config', '--timeout', '60000', '--fgrep', title, file];
        const { status, stdout, stderr } = spawnSync(process.execPath, [mocha, ...args], {
          uid: user,
          gid: user,
          env: { PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8' },
          encoding: 'utf8',
        });
        assert.equal(status, 0, stdout + stderr);
        assert.match(stdout, /1 passing/);
      });
  };
}
