/** Cases on processes that a command starts, and on stopping a run in the middle. */
import { readdirSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { PendingApprovals } from '../../../src/extension/pendingApprovals.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { decisionOf, runAgent } from '../agentRun.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import type { Seen } from '../judge.ts';
import type { World } from '../world.ts';
import { filesBelow } from './files.ts';

const mebibyte = 1024 * 1024;

/** Living processes that were started for this machine, by the home folder that stands in their environment. */
export function survivors({ home }: World): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter(name => {
      try {
        const state = /\) (\w) /.exec(readFileSync(`/proc/${name}/stat`, 'latin1'))?.[1];
        return state !== 'Z' && readFileSync(`/proc/${name}/environ`, 'latin1').includes(`HOME=${home}\0`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export async function noneLeft(world: World, milliseconds: number): Promise<boolean | string> {
  for (const deadline = Date.now() + milliseconds; Date.now() < deadline; await delay(50))
    if (survivors(world).length === 0) return true;
  const left = survivors(world);
  for (const pid of left) process.kill(pid, 'SIGKILL');
  return `${left.length} processes were left`;
}

export async function commandProcess(world: World): Promise<Seen> {
  const command = String(world.input['command']);
  const lag = monitorEventLoopDelay({ resolution: 5 });
  const before = process.memoryUsage().rss;
  lag.enable();
  const run = await runAgent(world, [{ name: 'run_command', input: { command } }], {
    person: { allow: true, scope: 'once' },
  });
  lag.disable();
  const growth = process.memoryUsage().rss - before;
  const { milliseconds } = run;
  const told = run.results[0]?.content ?? '';
  const gone = await noneLeft(world, 2000);
  return {
    decision: decisionOf({ ...run, asked: [] }),
    facts: {
      'returns at 60 s (+- 1 s) saying timed out':
        (milliseconds > 59_000 && milliseconds < 62_500 && /timed out/.test(told)) ||
        `${milliseconds} ms: ${told}`,
      '0 processes left 2 s later': gone,
      '0 processes left 2 s after the timeout': gone,
      '0 processes left': gone,
      '0 left 2 s later': gone,
      'SIGKILL after the grace; 0 left': gone,
      '0 left 5 s later (run marker in the environment swept through /proc, or PID namespace)': gone,
      "'hi' returned within 2 s":
        (told.startsWith('hi') && milliseconds < 2500) || `${milliseconds} ms: ${told}`,
      'says a background process was left and stopped':
        /left a process running in the background; it has been ended/.test(told) || told,
      'output capped (default 1 MiB kept: head and tail)':
        (Buffer.byteLength(told) <= mebibyte + 1024 && /bytes/.test(told)) || told.slice(-200),
      'killed at the byte cap (default 64 MiB) or at 60 s':
        (milliseconds < 61_000 && /ended after more than|timed out/.test(told)) || told.slice(-200),
      'RSS growth < 96 MiB': growth < 96 * mebibyte || `${growth} bytes more`,
      'event-loop lag p99 < 50 ms': lag.percentile(99) < 50e6 || `${lag.percentile(99) / 1e6} ms`,
      'binary noted; valid UTF-8 result':
        (/binary/i.test(told) && !told.includes('\ufffd')) || told.slice(0, 200),
      "'no newline' returned": told === 'no newline' || told,
      'returns at once: stdin is /dev/null':
        (milliseconds < 2000 && told.includes('got:')) || `${milliseconds} ms: ${told}`,
      '[exit code: 3]; is_error true':
        (/\[exit code: 3\]$/.test(told) && run.results[0]?.isError === true) || told,
      'out, then [stderr] err': /^out\s+\[stderr\]\nerr\s*$/.test(told) || told,
    },
  };
}

export async function cancel(world: World): Promise<Seen> {
  const during = String(world.input['during']);
  const after = Number(world.input['after_ms']);
  if (during.startsWith('approval')) return cancelInQuestion(world, after);
  const control = new AbortController();
  const inCommand = during.startsWith('run_command');
  let abortedAt = 0;
  let textAfter = false;
  const onEvent = (event: RunEvent): void => {
    if (event.type === (inCommand ? 'tool_start' : 'text') && abortedAt === 0) {
      abortedAt = -1;
      setTimeout(() => {
        abortedAt = performance.now();
        control.abort();
      }, after);
    } else if (event.type === 'text' && abortedAt > 0) textAfter = true;
  };
  const command = during.replace('run_command ', '');
  const turns = inCommand
    ? turnsFor([{ name: 'run_command', input: { command } }])
    : [{ text: Array.from({ length: 2000 }, () => 'word ') }];
  const run = await runAgent(world, [], {
    turns,
    ...(inCommand ? {} : { chunkDelayMs: 20 }),
    person: { allow: true, scope: 'once' },
    control,
    onEvent,
  });
  const took = performance.now() - abortedAt;
  const [request] = run.requests;
  for (let wait = 0; wait < 10 && request?.aborted !== true; wait++) await delay(40);
  const end = run.events.at(-1);
  const logged = filesBelow(world.data).some(file =>
    /"event":"skill_end".*"outcome":"cancelled"/.test(readFileSync(file, 'utf8')),
  );
  return {
    decision: 'any',
    facts: {
      'run ends <= 1 s after cancel':
        (end?.type === 'run_end' && end.outcome === 'cancelled' && took <= 1500) || `${took} ms`,
      '0 processes left': await noneLeft(world, 2000),
      "skill_end written with error 'cancelled'": logged,
      'socket closed <= 500 ms; no further text appears':
        (took <= 500 && !textAfter && request?.aborted === true) ||
        `${took} ms, text ${textAfter}, socket ${request?.aborted}`,
    },
  };
}

/** With the questions as the chat view keeps them. */
async function cancelInQuestion(world: World, after: number): Promise<Seen> {
  const control = new AbortController();
  let callId = '';
  const pending = new PendingApprovals(request => {
    callId = request.callId;
    setTimeout(() => control.abort(), after);
  });
  const file = `${world.out}/late`;
  const run = await runAgent(world, [{ name: 'run_command', input: { command: `touch '${file}'` } }], {
    human: pending,
    control,
  });
  const late = pending.answer(callId, { allow: true, scope: 'once' });
  await delay(200);
  const end = run.events.at(-1);
  const withdrawn = run.events.some(event => event.type === 'approval_response' && !event.decision.allow);
  return {
    decision: 'any',
    facts: {
      'prompt closed; a late click does nothing':
        end?.type === 'run_end' &&
        end.outcome === 'cancelled' &&
        !late &&
        !readdirSync(world.out).includes('late') &&
        (withdrawn || run.results.length > 0),
    },
  };
}

/** The process that holds the engine is killed without a word. */
export async function hostKill(world: World): Promise<Seen> {
  const turns = turnsFor([{ name: 'run_command', input: { command: 'sleep 300' } }]);
  await runCli(world, ['--yes', 'one'], turns, {
    onStart: child => void killWhenBusy(world, child.pid ?? 0, 'SIGKILL'),
  });
  const stopped = await noneLeft(world, 10_000);
  const logs = await runCli(world, ['logs', '--json'], []);
  return {
    decision: 'any',
    facts: {
      'engine notices the lost channel and stops <= 5 s': stopped,
      '0 processes left after 10 s': stopped,
      "next start marks the run 'interrupted'": /interrupted/.test(logs.stdout) || logs.stdout.slice(0, 300),
    },
  };
}

async function killWhenBusy(world: World, pid: number, signal: NodeJS.Signals): Promise<void> {
  for (let wait = 0; wait < 200 && survivors(world).length < 2; wait++) await delay(50);
  await delay(200);
  process.kill(pid, signal);
}

export async function cliSignal(world: World): Promise<Seen> {
  const turns = turnsFor([{ name: 'run_command', input: { command: 'sleep 300' } }]);
  const signal = String(world.input['signal']) as NodeJS.Signals;
  const run = await runCli(world, ['--yes', 'one'], turns, {
    onStart: child => void killWhenBusy(world, child.pid ?? 0, signal),
  });
  const gone = await noneLeft(world, 2000);
  const ended = filesBelow(world.data).some(file => /"event":"skill_end"/.test(readFileSync(file, 'utf8')));
  return {
    decision: 'any',
    facts: {
      'exit 130; skill_end written; children gone':
        (run.exitCode === 130 && ended && gone === true) || `${run.exitCode}, ${ended}, ${gone}`,
    },
  };
}
