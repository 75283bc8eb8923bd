/** Cases on processes that a command starts, and on stopping a run in the middle. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { PendingApprovals } from '../../../src/extension/chat/chatRuns.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import type { AnthropicTurn } from '../../fakes/anthropicServer.ts';
import { decisionOf, runAgent } from '../agentRun.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import { accept, caseServer, configure, tool } from '../mcpWorld.ts';
import { isBinary, type Reference, referenceRun, sameLines } from '../reference.ts';
import { noneLeft, survivors } from '../witness.ts';
import type { World } from '../world.ts';
import { filesBelow } from './files.ts';

const mebibyte = 1024 * 1024;

export async function commandProcess(world: World): Promise<Seen> {
  const command = String(world.input['command']);
  const plain = await referenceRun(world, command, { cwd: world.pack, limitBytes: 64 * mebibyte });
  const lag = monitorEventLoopDelay({ resolution: 5 });
  const before = process.memoryUsage().rss;
  lag.enable();
  const run = await runAgent(world, [{ name: 'run_command', input: { command } }], {
    person: { allow: true, scope: 'once' },
  });
  lag.disable();
  const growth = process.memoryUsage().rss - before;
  const told = run.results[0]?.content ?? '';
  const gone = await noneLeft(world, 5000);
  return {
    decision: decisionOf({ ...run, asked: [] }),
    checks: applying(
      check('processes', 'no process is left 5 s later', gone),
      check(
        'time',
        'it ends at 60 s at the latest',
        run.milliseconds < 60_000 + inTime(6000) || `${run.milliseconds} ms`,
      ),
      check('memory', 'memory grows by less than 96 MiB', growth < 96 * mebibyte || `${growth} bytes more`),
      check('shown', 'the result is text', !told.includes('\ufffd')),
      check(
        'model',
        'at most 1 MiB is returned',
        Buffer.byteLength(told) <= mebibyte + 1024 || `${Buffer.byteLength(told)} bytes`,
      ),
      ...(plain ? ofCommand(plain, told, run.results[0]?.isError === true, run.milliseconds) : []),
      plain?.flooded &&
        check(
          'time',
          'others get their turn',
          lag.percentile(99) < inTime(50) * 1e6 || `${lag.percentile(99) / 1e6} ms`,
        ),
    ),
  };
}

/** What a command comes to is what it comes to in a plain shell, within the limits. */
function ofCommand(plain: Reference, told: string, isError: boolean, milliseconds: number): Seen['checks'] {
  const { stdout, stderr, exitCode, flooded, leftProcesses } = plain;
  if (flooded)
    return [
      check(
        'shown',
        'it is ended at a limit, which is named at the end',
        /\[[^\]]*(?:67,108,864|64 MiB|60 s)[^\]]*\]\s*$/.test(told) || told.slice(-200),
      ),
    ];
  if (exitCode === undefined)
    return [
      check('shown', 'it is said that it timed out', /timed out/.test(told) || told),
      check('time', 'it has its 60 s', milliseconds > 59_000 || `${milliseconds} ms`),
      check('model', 'that is an error', isError),
    ];
  const binary = isBinary(stdout);
  const text = stdout.toString('utf8');
  const isShort = !binary && text.length < 32 * 1024;
  return applying(
    check('time', 'it ends when it is done', milliseconds < inTime(10_000) || `${milliseconds} ms`),
    check('end', 'the exit code is said', told.includes(`[exit code: ${exitCode}]`) === exitCode > 0 || told),
    check('model', 'it is an error when it fails', isError === exitCode > 0),
    leftProcesses &&
      check(
        'shown',
        'it is said that a process was left and ended',
        /left a process running in the background; it was ended/.test(told) || told,
      ),
    binary && check('shown', 'it is said that this is binary', /binary/i.test(told) || told.slice(0, 200)),
    isShort &&
      text !== '' &&
      check('shown', 'its output comes first', told.startsWith(text.trimEnd()) || told),
    isShort &&
      stderr !== '' &&
      check(
        'shown',
        'what it says of errors comes after',
        (/\[stderr\]/.test(told) &&
          sameLines(told.split(/\[stderr\]\n/)[1]?.split('\n[exit code')[0] ?? '', stderr)) ||
          told,
      ),
    text === '' &&
      stderr === '' &&
      exitCode === 0 &&
      !leftProcesses &&
      check('shown', 'it is said that there is no output', /no output/.test(told) || told),
  );
}

/** What a run is busy with when it is stopped, and the agent and the turns for that. */
async function workOf(world: World, during: string): Promise<{ turns: AnthropicTurn[]; close?: () => void }> {
  const call = (name: string, input: object): AnthropicTurn[] => turnsFor([{ name, input }]);
  if (during.startsWith('run_command'))
    return { turns: call('run_command', { command: during.replace(/^run_command ?/, '') || 'sleep 300' }) };
  if (/stream|text/.test(during)) return { turns: [{ text: Array.from({ length: 2000 }, () => 'word ') }] };
  if (/mcp/i.test(during)) {
    configure(world, {
      s: caseServer(world, 's', { tools: [tool('q')], fault: 'never answers calls' }).entry,
    });
    await accept(world);
    return { turns: call('q', {}) };
  }
  if (/fetch/.test(during)) {
    const server = createServer(() => undefined);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    return {
      turns: call('fetch_url', { url: `http://127.0.0.1:${port}/` }),
      close: () => void server.close(),
    };
  }
  throw new CannotJudge(`nothing here is stopped during ${during}`);
}

export async function cancel(world: World): Promise<Seen> {
  const during = String(world.input['during']);
  const after = Number(world.input['after_ms']);
  if (during.startsWith('approval')) return cancelInQuestion(world, after);
  const control = new AbortController();
  const { turns, close } = await workOf(world, during);
  const inCall = turns[0]?.toolCalls !== undefined;
  let abortedAt = 0;
  let textAfter = false;
  const onEvent = (event: RunEvent): void => {
    if (event.type === (inCall ? 'tool_start' : 'text') && abortedAt === 0) {
      abortedAt = -1;
      setTimeout(() => {
        abortedAt = performance.now();
        control.abort();
      }, after);
    } else if (event.type === 'text' && abortedAt > 0) textAfter = true;
  };
  const run = await runAgent(world, [], {
    turns,
    ...(inCall ? {} : { chunkDelayMs: 20 }),
    person: { allow: true, scope: 'once' },
    control,
    onEvent,
  });
  const took = performance.now() - abortedAt;
  close?.();
  const [request] = run.requests;
  for (let wait = 0; wait < 10 && request?.aborted !== true; wait++) await delay(40);
  const end = run.events.at(-1);
  const logged = filesBelow(world.data).some(file =>
    /"event":"skill_end".*"outcome":"cancelled"/.test(readFileSync(file, 'utf8')),
  );
  return {
    decision: 'any',
    checks: applying(
      check(
        'time',
        'the run ends at once',
        (end?.type === 'run_end' && end.outcome === 'cancelled' && took <= inTime(1500)) || `${took} ms`,
      ),
      check('processes', 'no process is left', await noneLeft(world, 2000)),
      check('records', 'the end is recorded as cancelled', logged),
      !inCall && check('shown', 'no more text appears', !textAfter),
      !inCall && check('network', 'the connection to the model is closed', request?.aborted === true),
      inCall &&
        check(
          'model',
          'the call gets its result',
          run.results.length === 1 || `${run.results.length} results`,
        ),
    ),
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
    checks: [
      check('end', 'the run ends as cancelled', end?.type === 'run_end' && end.outcome === 'cancelled'),
      check('shown', 'the question is withdrawn', withdrawn || run.results.length > 0),
      check('files', 'a late answer does nothing', !late && !readdirSync(world.out).includes('late')),
    ],
  };
}

/** The process that holds the engine is killed without a word. */
export async function hostKill(world: World): Promise<Seen> {
  const turns = turnsFor([{ name: 'run_command', input: { command: 'sleep 300' } }]);
  await runCli(world, ['--yes', 'one'], turns, {
    onStart: child => void killWhenBusy(world, child.pid ?? 0, 'SIGKILL'),
  });
  const stopped = await noneLeft(world, 10_000);
  const runs = await runCli(world, ['runs', '--json'], []);
  return {
    decision: 'any',
    checks: [
      check('processes', 'the commands end with it', stopped),
      check(
        'records',
        'the run is shown as interrupted at the next start',
        /interrupted/.test(runs.stdout) || runs.stdout.slice(0, 300),
      ),
      check('end', 'the next start works', runs.exitCode === 0),
    ],
  };
}

async function killWhenBusy(world: World, pid: number, signal: NodeJS.Signals, twice = false): Promise<void> {
  for (let wait = 0; wait < 200 && survivors(world).length < 2; wait++) await delay(50);
  await delay(200);
  process.kill(pid, signal);
  if (!twice) return;
  await delay(50);
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended already.
  }
}

export async function cliSignal(world: World): Promise<Seen> {
  const turns = turnsFor([{ name: 'run_command', input: { command: 'sleep 300' } }]);
  const signal = String(world.input['signal']) as NodeJS.Signals;
  const twice = world.input['twice'] === true;
  const run = await runCli(world, ['--yes', 'one'], turns, {
    onStart: child => void killWhenBusy(world, child.pid ?? 0, signal, twice),
  });
  const code = 128 + (constants.signals[signal] ?? 0);
  const gone = await noneLeft(world, 2000);
  const ended = filesBelow(world.data).some(file => /"event":"skill_end"/.test(readFileSync(file, 'utf8')));
  return {
    decision: 'any',
    checks: applying(
      check(
        'end',
        'the exit code says that it was stopped',
        run.exitCode === code || run.exitCode === 130 || String(run.exitCode),
      ),
      !twice && check('records', 'the end is recorded', ended),
      check('processes', 'the commands end with it', gone),
    ),
  };
}
