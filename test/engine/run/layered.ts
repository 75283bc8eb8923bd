/** Runs commands in a real box with a layer, and lands what they write, for the tests of landing. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { commandBox } from '../../../src/engine/box/commandBox.ts';
import { type BoxFinding, findBox } from '../../../src/engine/box/findBox.ts';
import type { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import type { KeptWrites } from '../../../src/engine/changes/keptWrites.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { RunMemory } from '../../../src/engine/policy/decision.ts';
import { type LookedAfter, landLayer } from '../../../src/engine/run/landLayer.ts';
import { runLine } from '../../../src/engine/tools/command.ts';
import type { CommandBox, CommandLayer, ToolContext } from '../../../src/engine/tools/tool.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

/** The run whose changes are kept. */
export const runId = '0f8fad5b-d9cb-469f-a165-70867728950e';

export interface Landed extends LookedAfter {
  out: string;
  /** What the model is told of the command beside what that printed. */
  note: string;
  /** What the person is told, one line each. */
  said: string;
}

type Working = Extract<BoxFinding, { works: true }>;

/** Returns the box where layers work in `dataDir`, with programs of `path`; undefined elsewhere. */
export async function layeredBox(
  dataDir?: string,
  path = process.env['PATH'] ?? '',
): Promise<Working | undefined> {
  const here = temporaryRun();
  const finding = await findBox({ ...here.context, env: { PATH: path } }, dataDir);
  here.remove();
  return finding.works && finding.kind === 'bubblewrap' && finding.features.layers ? finding : undefined;
}

export interface LayeredOptions {
  human: Human;
  /** Called once the command prints something. */
  meanwhile?: (() => void) | undefined;
  dataDir?: string | undefined;
  path?: string | undefined;
  /** Keeps the old bytes in place of the one of `runId`. */
  keeper?: KeptWrites | undefined;
}

/** The commands of a conversation share a box, which knows the folder by then. */
const boxes = new WeakMap<TemporaryRun, Map<string, CommandBox>>();

/** Runs a line in its layer, in the working folder, and lands that. */
export async function layered(
  line: string,
  run: TemporaryRun,
  store: ChangeStore,
  finding: Working,
  {
    human,
    meanwhile,
    dataDir = join(run.root, 'data'),
    path = process.env['PATH'] ?? '',
    keeper = store.keeper(runId),
  }: LayeredOptions,
): Promise<Landed> {
  const config = { home: run.home, env: {}, dataDir, configDir: join(run.root, 'config') };
  for (const folder of [config.dataDir, config.configDir]) mkdirSync(folder, { recursive: true });
  const env = { PATH: path, HOME: run.home, GIT_CONFIG_NOSYSTEM: '1' };
  const context: ToolContext = { ...run.context, env, commandDir: run.work };
  const key = JSON.stringify([dataDir, path]);
  const known = boxes.get(run) ?? new Map<string, CommandBox>();
  boxes.set(run, known);
  const box = known.get(key) ?? commandBox({ finding, config, folders: context, conversation: 'one' });
  known.set(key, box);
  let layer: CommandLayer | undefined;
  const kept: CommandBox = {
    async enclose(start, ask) {
      const enclosed = await box.enclose(start, ask, true);
      layer = enclosed.layer;
      return enclosed;
    },
  };
  let act = meanwhile;
  const end = await runLine(line, { ...context, box: kept }, {}, () => {
    act?.();
    act = undefined;
  });
  assert.ok('streams' in end, 'refusal' in end ? end.refusal : '');
  assert.ok(layer);
  const policy = { ...context, home: run.home, protectedDirs: [], memory: new RunMemory() };
  assert.ok(keeper);
  const call = { id: '1', name: 'run_command', input: {} };
  const events = landLayer(call, layer, { human, policy }, keeper.layered(), new AbortController().signal);
  const said: string[] = [];
  for (;;) {
    const step: IteratorResult<RunEvent, LookedAfter> = await events.next();
    if (step.done) {
      const { stdout, stderr } = end.streams;
      box.rest?.();
      assert.deepEqual(readdirSync(join(config.dataDir, 'box/layers')), [], 'the layer is gone');
      for (let one = keeper.takeProblem(); one !== undefined; one = keeper.takeProblem()) said.push(one);
      return {
        ...step.value,
        out: stdout.text() + stderr.text(),
        note: end.note ?? '',
        said: said.join('\n'),
      };
    }
    if (step.value.type === 'notice') said.push(step.value.message);
  }
}
