/** A real box around real folders for its tests. Where none works, they assert what is promised then. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { commandBox } from '../../../src/engine/box/commandBox.ts';
import { type BoxFinding, findBox } from '../../../src/engine/box/findBox.ts';
import { boxNetwork, type NetworkOptions } from '../../../src/engine/box/forwarder.ts';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type CommandLimits, runLine } from '../../../src/engine/tools/command.ts';
import type { CommandBox, ToolContext } from '../../../src/engine/tools/tool.ts';
import { skipBecause } from '../../skipBecause.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

export interface Boxed extends TemporaryRun {
  box: CommandBox;
  finding: Working;
  /** Runs a line in the box, in the working folder unless another one is given. */
  sh(line: string, more?: Partial<ToolContext>, limits?: Partial<CommandLimits>): Promise<Ran>;
}

export interface Ran {
  code: number | undefined;
  out: string;
  err: string;
  note: string | undefined;
}

type Working = Extract<BoxFinding, { works: true }>;

export function boxedRun(
  finding: Working,
  more: Partial<ToolContext> = {},
  run = temporaryRun(),
  network: NetworkOptions = {},
  conversation = 'one',
): Boxed {
  for (const name of ['data', 'config']) mkdirSync(join(run.root, name), { recursive: true });
  const config = {
    home: run.home,
    env: {},
    dataDir: join(run.root, 'data'),
    configDir: join(run.root, 'config'),
  };
  const context: ToolContext = { ...run.context, commandDir: run.work, ...more };
  const box = commandBox({
    finding,
    config,
    folders: context,
    conversation,
    network: boxNetwork(network),
    sharesNetwork: true,
  });
  return {
    ...run,
    box,
    finding,
    async sh(line, others = {}, limits = {}) {
      const end = await runLine(line, { ...context, box, ...others }, limits);
      if ('refusal' in end) return { code: undefined, out: '', err: end.refusal, note: undefined };
      const { stdout, stderr } = end.streams;
      return { code: end.code, out: stdout.text(), err: stderr.text(), note: end.note };
    },
  };
}

/**
 * A test with a real box. Where none works, it is skipped, after a look that a sentence says why and that the command is asked about.
 */
export function itBoxed(title: string, test: (run: Boxed, context: Mocha.Context) => Promise<void>): void {
  it(title, async function () {
    const run = temporaryRun();
    try {
      const finding = await findBox(run.context);
      if (finding.works) await test(boxedRun(finding, {}, run), this);
      else {
        await promisedWithout(finding, run);
        skipBecause(this, 'no sandbox works here');
      }
    } finally {
      run.remove();
    }
  });
}

async function promisedWithout(finding: Exclude<BoxFinding, Working>, run: TemporaryRun): Promise<void> {
  assert.match(finding.why, /^\w.*\.$/);
  const call = { id: '1', name: 'run_command', input: { command: 'npm test' } };
  const decision = await decide(call, { ...run.context, home: run.home, protectedDirs: [] });
  assert.equal(decision.action, 'ask', finding.why);
}
