/** Runs a plan apart from the editor that has started it: reads its order from its input, and says at the end what came of it. */

import { text } from 'node:stream/consumers';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { mapStrings, redactor, secretsIn } from '@telos/engine/policy';
import { denyAll } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import { importPlanWorkers } from '@telos/fleet/executors';
import { openPlan } from '@telos/plans/plan';
import { type RunAnswer, type RunnerLine, readOrder } from '@telos/plans/run';

/** Says a line of its own to who has started the process. */
const say = (line: RunnerLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

/** Returns what the process says when it is done. Never throws. */
export async function runOrdered(): Promise<string> {
  const controller = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => controller.abort());
  // The terminal or the window that it was started from is closed.
  if (process.platform !== 'win32') process.on('SIGHUP', () => undefined);
  return JSON.stringify(await carryOut(controller.signal));
}

async function carryOut(signal: AbortSignal): Promise<RunAnswer> {
  let redact = (said: string): string => said;
  try {
    const {
      config,
      repo,
      plan: name,
      slots,
      retry,
      until,
      goOnRed,
      ripgrep,
      workers,
    } = readOrder(await text(process.stdin));
    redact = redactor(secretsIn(config.env)).text;
    const runs = Telos.open(config, { ...(ripgrep !== undefined && { ripgrep }) });
    const plan = openPlan(repo, name, { runs, human: denyAll, by: 'editor' });
    const log = (line: string): void => say({ log: redact(line) });
    const elsewhere = workers && (await (await importPlanWorkers()).planWorkers(config, { ...workers, log }));
    const end = await plan.run(
      {
        slots,
        unattended: true,
        ...(elsewhere && { workers: elsewhere }),
        ...(retry && { retry }),
        ...(until !== undefined && { until }),
        goOnRed: async () => goOnRed === true,
      },
      signal,
    );
    return { end };
  } catch (error) {
    const said = error instanceof TelosError ? error.runError : { message: reasonOf(error) };
    return { error: mapStrings(said, redact) };
  }
}
