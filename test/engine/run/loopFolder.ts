/** A temporary folder in which loops run, with the folders of a skill and one file to read. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { RunMemory } from '../../../src/engine/policy/decision.ts';
import { newRun } from '../../../src/engine/run/request.ts';
import type { RunSetup } from '../../../src/engine/run/runSetup.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { loopRun } from '../../fakes/loopRun.ts';
import type { ScriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

type RunEnd = Extract<RunEvent, { type: 'run_end' }>;

export interface LoopFolder extends TempFolder {
  run(
    provider: ScriptedProvider,
    human?: Human,
    control?: AbortController,
    onEvent?: (event: RunEvent) => void,
    tools?: readonly Tool[],
    more?: Partial<RunSetup>,
  ): Promise<{ events: RunEvent[]; end: RunEnd }>;
}

export function loopFolder(): LoopFolder {
  const folder = tempFolder({ 'work/in.txt': 'data', 'pack/.k': '', 'skill/.k': '' });
  const folders = {
    workingDir: join(folder.path, 'work'),
    packDir: join(folder.path, 'pack'),
    skillDir: join(folder.path, 'skill'),
    commandDir: join(folder.path, 'pack'),
  };
  const run: LoopFolder['run'] = async (
    provider,
    human = denyAll,
    { signal } = new AbortController(),
    onEvent = () => undefined,
    tools = builtinTools,
    more = {},
  ) => {
    const events: RunEvent[] = [];
    const config = loadConfig({ env: {}, home: folder.path, cwd: folder.path });
    const run = newRun({ text: 'do it' }, human, config);
    run.messages.push({ role: 'user', content: 'BODY' });
    const spec = {
      provider,
      human,
      system: 'S',
      skillDir: folders.skillDir,
      tools,
      context: { ...folders, env: { PATH: process.env['PATH'] ?? '' } },
      policy: { ...folders, home: folder.path, protectedDirs: [], memory: new RunMemory() },
      priceOf: () => 'unknown' as const,
      ...more,
    };
    for await (const event of loopRun(run, spec, signal)) {
      events.push(event);
      onEvent(event);
    }
    const end = events.at(-1);
    assert.ok(end?.type === 'run_end');
    return { events, end };
  };
  return { ...folder, run };
}

export const resultsOf = (end: RunEnd) =>
  end.messages
    .flatMap(message => (typeof message.content === 'string' ? [] : message.content))
    .filter(block => block.type === 'tool_result');
