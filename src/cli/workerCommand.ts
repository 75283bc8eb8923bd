/** Implements `telos worker`, which runs the evals of others here, and `telos fleet status`. */

import type { Config } from '../engine/config.ts';
import { TelosError } from '../engine/errors.ts';
import { databaseAddress, databaseVariable } from '../engine/fleet/databaseAddress.ts';
import { answerOrder, type WorkerParts } from '../engine/fleet/evalWorker.ts';
import { FleetDatabase } from '../engine/fleet/fleetDatabase.ts';
import { suiteFacts, workerFacts } from '../engine/fleet/presence.ts';
import { runWorker } from '../engine/fleet/worker.ts';
import { Telos } from '../engine/telos.ts';
import { counted } from '../protocol/text.ts';
import { type ConfigOptions, configFor, hideStartEnvironment } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { errorText, terminalJson, terminalLine } from './terminalText.ts';

export interface WorkerCommandOptions extends ConfigOptions {
  database?: string;
  slots?: number;
  label?: string;
  /** Of Telos. */
  version: string;
}

/** Returns the exit code: 0 when it was told to end, 2 if it cannot start. */
export async function workerCommand(options: WorkerCommandOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  // The address has a password, and nothing that runs here needs it.
  const { [databaseVariable]: known, ...env } = config.env;
  hideStartEnvironment(name => name === databaseVariable);
  delete process.env[databaseVariable];
  hideArguments();
  const { maxCost: _maxCost, ...budget } = config.budget;
  const own = { ...config, env, budget };
  const parts: WorkerParts = {
    config: own,
    open: (its, more) => Telos.open(its, more),
    // Opened for each, so that what was spent today counts.
    model: named => Telos.open(withModel(own, named)).asideModel(),
    failed: error => terminal.say(errorText(error)),
  };
  const { signal, release } = abortOnInterrupt(() => undefined);
  const log = (line: string): void => terminal.say(terminalLine(line));
  try {
    const database = databaseAddress(options.database ?? known);
    const { slots = 1, label, version } = options;
    await runWorker(
      { database, slots, label, version, log, health: line => terminal.out(`${terminalLine(line)}\n`) },
      (given, stop) => answerOrder(given, parts, stop),
      signal,
    );
    return 0;
  } catch (error) {
    return failed(error, signal, terminal);
  } finally {
    release();
  }
}

/** Returns the configuration with the model `provider:model`: where it has no key, that is what is said. */
function withModel(config: Config, named: string): Config {
  const [, provider = named, model = ''] = /^([\w-]+):(.+)$/s.exec(named) ?? [];
  return { ...config, provider, model };
}

/** Puts a title in the place of the arguments, which other programs could read. */
function hideArguments(): void {
  process.title = 'telos worker';
}

/** Prints who is there. Returns the exit code: 0, or 2 if the database cannot be asked. */
export async function fleetStatusCommand(
  options: ConfigOptions & { database?: string; json?: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(() => undefined);
  let database: FleetDatabase | undefined;
  try {
    const address = databaseAddress(options.database ?? config.env[databaseVariable]);
    database = await FleetDatabase.open(address, line => terminal.say(terminalLine(line)), signal);
    const workers = (await database.present('worker')).map(one => ({
      id: one.id,
      ...workerFacts(one.facts),
    }));
    const suites = (await database.present('suite')).map(one => ({ id: one.id, ...suiteFacts(one.facts) }));
    if (options.json) terminal.out(`${terminalJson({ workers, suites })}\n`);
    else {
      const lines = [
        ...workers.map(
          ({ id, label, version, drains, running, slots, done, refused }) =>
            `${id}${label ? ` (${label})` : ''}: Telos ${version}, ${drains ? 'ending, ' : ''}${running} of ${counted(slots, 'slot')} busy, ${done} done, ${refused} refused`,
        ),
        ...suites.map(
          ({ id, version, waiting, running, done }) =>
            `suite ${id}: Telos ${version}, ${waiting} waiting, ${running} given to workers, ${done} done`,
        ),
      ];
      terminal.out(
        lines.length > 0 ? `${lines.map(line => terminalLine(line)).join('\n')}\n` : 'No worker is there.\n',
      );
    }
    return 0;
  } catch (error) {
    return failed(error, signal, terminal);
  } finally {
    await database?.close();
    release();
  }
}

function failed(error: unknown, signal: AbortSignal, terminal: Terminal): number {
  if (signal.aborted) return 0;
  if (!(error instanceof TelosError)) throw error;
  terminal.say(terminal.style.red(errorText(error)));
  return 2;
}
