/** Ends what Telos has started when Telos itself is gone without a word: killed, or its editor's window with it. */
import { spawn } from 'node:child_process';
import type { ProcessMark } from './processMark.ts';

export interface OrphanGuard {
  /** The first process of what is guarded, which leads its own group. */
  watch(pid: number): void;
  /** Nothing is left to guard. */
  release(): void;
}

const unguarded: OrphanGuard = { watch: () => undefined, release: () => undefined };

/**
 * A shell whose input ends with this process, however that ends. Then it does what processTree.ts would have done: by group, and where the
 * system has /proc by the mark, TERM once and KILL for two seconds more, since what is hit may start others.
 */
const script = `
read -r leader
read -r rest
signal=TERM
for round in 1 2 3 4 5 6; do
  if [ -n "$leader" ]; then kill -s $signal -- "-$leader"; fi
  for file in $(grep -lsE "^Max file locks .* $2 " /proc/[0-9]*/limits; grep -lsF -- "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    kill -s $signal "\${pid%/*}"
  done
  sleep 0.4
  signal=KILL
done
`;

/** `mark` is that of what will be started; call it before that, so that no moment is without a guard. */
export function guardOrphans({ name, value, lockLimit }: ProcessMark): OrphanGuard {
  if (process.platform === 'win32') return unguarded;
  const guard = spawn('/bin/sh', ['-c', script, 'sh', `${name}=${value}`, String(lockLimit)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // A group of its own: what ends the group of Telos must not end its guard.
    detached: true,
  });
  // Without a guard the command still runs, and ends with its run.
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  guard.unref();
  return {
    watch: pid => void guard.stdin.write(`${pid}\n`),
    release() {
      guard.kill('SIGKILL');
      guard.stdin.destroy();
    },
  };
}
