/** One call of a built-in tool, decided and carried out as in a run. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { runCalls } from '../../../src/engine/core/calls.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { callPolicy, type ToolCallContext } from '../../../src/engine/run/callPolicy.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { startProcess } from '../../../src/engine/tools/processStart.ts';
import type { ToolResult } from '../../../src/protocol/run.ts';
import { isRecord, type JsonRecord, strings } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';

/** A person who has commands run, and nothing that leads out of the agent's folders. */
export const commandsOnly: Human = {
  ...denyAll,
  approve: async (request, signal) =>
    request.tool === 'run_command' ? { allow: true, scope: 'once' } : denyAll.approve(request, signal),
};

export const toolOperations: Operations = {
  async tool_names() {
    const required = builtinTools.map(({ definition }) => [
      definition.name,
      strings(definition.inputSchema['required']),
    ]);
    return {
      names: builtinTools.map(tool => tool.definition.name).sort(),
      required: Object.fromEntries(required),
    };
  },

  async tool({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    const work = String(given['cwd'] ?? join(world.tmp, String(given['working_dir'] ?? 'w')));
    const pack = String(
      given['command_cwd'] ?? (given['pack_dir'] ? join(world.tmp, String(given['pack_dir'])) : work),
    );
    for (const folder of [work, pack]) mkdirSync(folder, { recursive: true });
    const name = String(when['name']);
    if (typeof given['command'] === 'string') return seconds(given['command'], bench(work, pack, world));
    if (!isRecord(when['args'])) return placeOf(name, work, pack, world);
    return seen(await call(name, when['args'], bench(work, pack, world)));
  },
};

export const seen = ({ content, isError }: ToolResult): Observed => ({ content, is_error: isError });

/** Where a command runs, and where a file goes, told by the last part of the folder's name. */
async function placeOf(name: string, work: string, pack: string, world: CaseWorld): Promise<Observed> {
  const args: JsonRecord = name === 'run_command' ? { command: 'pwd' } : { path: 'made.txt', content: 'x' };
  const { content } = await call(name, args, bench(work, pack, world));
  const holder = [work, pack].find(folder => world.exists('made.txt', folder)) ?? '';
  return { cwd: content.trim().split('/').at(-1), root: holder.split('/').at(-1) };
}

/**
 * Runs a command that would take too long under a clock that is moved by hand, and tells when its time was up: its end takes real time
 * besides, in which the clock goes on. Looked at every `between` seconds.
 */
export async function seconds(command: string, tools: ToolCallContext, between = 20): Promise<Observed> {
  // What starts the commands of a large process is ready before the clock is moved: it takes real time.
  const first = await startProcess({ program: '/bin/sh', args: ['-c', ':'], folder: '/', env: {} });
  if (typeof first !== 'string') first.release();
  const realTimeout = setTimeout;
  const real = (milliseconds: number): Promise<void> =>
    new Promise(resolve => void realTimeout(resolve, milliseconds));
  mock.timers.enable({ apis: ['setTimeout'] });
  const { setTimeout: moved } = globalThis;
  let passed = 0;
  let ended: number | undefined;
  const noticing = (then: () => void, milliseconds = 0): NodeJS.Timeout =>
    moved(() => {
      if (milliseconds >= 1000) ended ??= passed;
      then();
    }, milliseconds);
  Object.assign(globalThis, { setTimeout: noticing });
  try {
    let result: ToolResult | undefined;
    const running = call('run_command', { command }, tools).then(came => {
      result = came;
    });
    await real(100);
    while (!result && passed < 100) {
      passed++;
      mock.timers.tick(1000);
      if (passed % between === 0) await real(60);
    }
    await running;
    return { ...(result ? seen(result) : {}), after_seconds: ended ?? passed };
  } finally {
    mock.timers.reset();
  }
}

/** Folders of a run that works in `work` and has its commands run in `pack`. */
export function bench(work: string, pack: string, world: CaseWorld): ToolCallContext {
  const folders = { workingDir: work, packDir: pack, skillDir: pack, commandDir: pack };
  return {
    tools: builtinTools,
    human: commandsOnly,
    policy: { ...folders, home: world.home, protectedDirs: [world.loadConfig().configDir] },
    context: { ...folders, env: { PATH: process.env['PATH'] ?? '' } },
    messages: [],
  };
}

export async function call(name: string, input: JsonRecord, tools: ToolCallContext): Promise<ToolResult> {
  let result: ToolResult | undefined;
  for await (const event of runCalls(
    [{ id: '1', name, input }],
    callPolicy(tools),
    tools.messages,
    new AbortController().signal,
  )) {
    if (event.type === 'tool_end') result = event.result;
  }
  if (!result) throw new Error('The call has no result.');
  return result;
}
