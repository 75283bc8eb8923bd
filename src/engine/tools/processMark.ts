/** Marks a process so that everything it starts is known for its own, whatever that does to its parent, group, session or environment. */
import { randomInt, randomUUID } from 'node:crypto';
import { lockLimitOf } from './processTable.ts';

export interface ProcessMark {
  /** The environment entry that children inherit, unless they are started with an empty environment. */
  name: string;
  value: string;
  /**
   * Linux alone: a limit that every child inherits, that only the system's administrator can raise, and that no kernel since 2.4 obeys, so it
   * limits nothing. Anybody may read it, also of another user's process.
   */
  lockLimit: number | undefined;
}

export function newMark(): ProcessMark {
  return {
    name: 'TELOS_COMMAND',
    value: randomUUID(),
    lockLimit: process.platform === 'linux' ? newLockLimit() : undefined,
  };
}

/** Also where the system counts in 32 bits. */
const highestLimit = 2 ** 31 - 1;

/** Below our own: in a command of another Telos there is a limit already, which can only be lowered. */
function newLockLimit(): number | undefined {
  const highest = Math.min(lockLimitOf(process.pid) ?? highestLimit, highestLimit);
  return highest > 1000 ? randomInt(Math.floor(highest / 2), highest) : undefined;
}

/** The shells of Linux call the limit -w or -x. The program takes the place of the shell, so the pid stays. */
const script = `
ulimit -w "$0" 2>/dev/null || ulimit -x "$0" 2>/dev/null
command -v -- "$1" >/dev/null || { echo "there is no program '$1'" >&2; exit 127; }
exec "$@"
`;

/** How to start a program so that it carries the mark, given that its environment holds the entry. */
export function marked(
  mark: ProcessMark,
  program: string,
  args: readonly string[],
): { program: string; args: string[] } {
  if (mark.lockLimit === undefined) return { program, args: [...args] };
  return { program: '/bin/sh', args: ['-c', script, String(mark.lockLimit), program, ...args] };
}
