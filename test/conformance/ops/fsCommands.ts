/** Commands of a step that only looks: decided on, and carried out as in a run. */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { denyAll } from '../../../src/engine/human.ts';
import { parseReadOnlyCommand, type ReadOnlyVerdict } from '../../../src/engine/policy/readOnlyCommand.ts';
import type { ToolCallContext } from '../../../src/engine/run/callPolicy.ts';
import { readOnlyTools } from '../../../src/engine/run/runTools.ts';
import { strings } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';
import { call, seconds, seen } from './tools.ts';

export const fsCommandOperations: Operations = {
  async command_allowed({ when }, world) {
    return { allowed: (await parsed(String(when['command']), [world.cwd], world)).allowed };
  },

  async extract_paths({ when }, world) {
    return { count: (await parsed(String(when['command']), [world.cwd], world)).named.length };
  },

  async in_scope({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    const line = `ls '${String(when['path'])}'`;
    return { in_scope: (await parsed(line, strings(given['roots']), world)).allowed };
  },

  async fs_tool({ given }, world) {
    if (given['limit_s'] === undefined)
      return structured(
        seen(await call('run_command', { command: String(given['command']) }, looking(world))),
      );
    // A program that looks at files and does not come back.
    world.write({ 'bin/find': '#!/bin/sh\nexec sleep 60\n' });
    chmodSync(join(world.tmp, 'bin', 'find'), 0o755);
    const observed = structured(await seconds('find .', looking(world), 5));
    // The signal takes a moment of real time, in which the clock may be moved on.
    const late = Number(observed['after_seconds']) - Number(given['limit_s']);
    const inTime = late >= 0 && late < 60;
    return { ...observed, structured_error: observed['structured_error'] === true && inTime };
  },
};

const parsed = (line: string, roots: readonly string[], world: CaseWorld): Promise<ReadOnlyVerdict> =>
  parseReadOnlyCommand(line, { roots, cwd: world.cwd, home: world.home });

/** A result at all means that the turn goes on. */
function structured(observed: Observed): Observed {
  const record: unknown = JSON.parse(String(observed['content']));
  return { ...observed, record, structured_error: observed['is_error'], turn_aborted: false };
}

function looking(world: CaseWorld): ToolCallContext {
  const folder = world.cwd;
  const folders = { workingDir: folder, packDir: folder, skillDir: folder, commandDir: folder };
  return {
    tools: readOnlyTools,
    human: denyAll,
    policy: { ...folders, home: world.home, protectedDirs: [], role: 'read-only' },
    context: { ...folders, env: { PATH: `${join(world.tmp, 'bin')}:${process.env['PATH']}` } },
    messages: [],
  };
}
