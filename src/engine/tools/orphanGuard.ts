/** Ends what commands and servers have started when Telos itself ends without doing so. */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { ProcessMark } from './processTable.ts';

export interface OrphanGuard {
  /** Takes the first process of the guarded tree, which leads its own group. */
  watch(pid: number): void;
  /** Says that nothing of the tree is left to guard. */
  release(): void;
}

/**
 * A shell whose input ends with this process, however this process ends. For each tree that is still guarded it then does the work of
 * processTree.ts: by group and, if the system has /proc, by the mark. It sends TERM once and KILL for two more seconds, since
 * processes may start others meanwhile.
 */
const script = `
line='
'
guarded=
while read -r id what; do
  if [ "$what" != drop ]; then guarded="$guarded$id $what$line"; continue; fi
  left=
  IFS=$line
  for one in $guarded; do case $one in "$id "*) ;; *) left="$left$one$line" ;; esac; done
  unset IFS
  guarded=$left
done
end() {
  signal=TERM
  for round in 1 2 3 4 5 6; do
    if [ "$1" = group ]; then
      kill -s $signal -- "-$2"
    else
      for file in $(grep -lsE "^Max file locks .* $3 " /proc/[0-9]*/limits; grep -lsF -- "$2" /proc/[0-9]*/environ); do
        pid=\${file#/proc/}
        kill -s $signal "\${pid%/*}"
      done
    fi
    sleep 0.4
    signal=KILL
  done
}
IFS=$line
for one in $guarded; do
  unset IFS
  set -- $one
  # An empty word would be found in every process.
  case $2:$# in mark:4 | group:3) end "$2" "$3" "$4" & ;; esac
done
wait
`;

/** How long the shell waits for the next tree, in milliseconds: to start it takes longer than many commands do. */
const idleTime = 10_000;

type Shell = ChildProcessByStdio<Writable, null, null>;

let shell: Shell | undefined;
let idle: NodeJS.Timeout | undefined;
let latest = 0;
/** What the shell has to know of each guarded tree, by its number. */
const guarded = new Map<number, string[]>();

/**
 * Guards the tree that will be started with the mark. Must be called before that, so that no moment is unguarded. Without a shell
 * the command still runs, and ends with its run.
 */
export function guardOrphans({ name, value, lockLimit }: ProcessMark): OrphanGuard {
  if (process.platform === 'win32') return { watch: () => undefined, release: () => undefined };
  const id = ++latest;
  const say = (line: string): void => {
    guarded.get(id)?.push(line);
    tell(line);
  };
  guarded.set(id, []);
  clearTimeout(idle);
  shell ??= startShell();
  say(`${id} mark ${name}=${value} ${lockLimit}`);
  return {
    watch: pid => say(`${id} group ${pid}`),
    release() {
      if (!guarded.delete(id)) return;
      tell(`${id} drop`);
      if (guarded.size === 0) idle = setTimeout(endShell, idleTime).unref();
    },
  };
}

const tell = (line: string): void => void shell?.stdin.write(`${line}\n`);

/** Starts the shell and gives it the trees that an earlier one has guarded. */
function startShell(): Shell {
  const started = spawn('/bin/sh', ['-c', script], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // A separate group: a signal that ends the group of Telos must not end its guard.
    detached: true,
  });
  const gone = (): void => {
    if (shell === started) shell = undefined;
  };
  started.on('error', gone).on('exit', gone);
  started.stdin.on('error', () => undefined);
  started.unref();
  // The pipe alone must not keep this process.
  (started.stdin as Writable & { unref?(): void }).unref?.();
  for (const line of [...guarded.values()].flat()) started.stdin.write(`${line}\n`);
  return started;
}

function endShell(): void {
  shell?.kill('SIGKILL');
  shell?.stdin.destroy();
  shell = undefined;
}
