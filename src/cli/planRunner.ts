/** Runs a plan apart from the editor that has started it: reads its order from its input, and says at the end what came of it. */
import { text } from 'node:stream/consumers';
import { reasonOf, TelosError } from '../engine/errors.ts';
import { denyAll } from '../engine/human.ts';
import { mapStrings, redactor, secretsIn } from '../engine/redact.ts';
import { Telos } from '../engine/telos.ts';
import { type RunAnswer, type RunnerLine, readOrder } from '../engine/workflow/detachedRun.ts';
import { openPlan } from '../engine/workflow/plan.ts';

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
    const elsewhere =
      workers && (await (await import('./planWorkers.ts')).planWorkers(config, { ...workers, log }));
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
