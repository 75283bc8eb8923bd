/** Implements `telos fleet status`, `drain` and `retry`, which show what workers do and tell them to end or to try again. */

import { setTimeout as delay } from 'node:timers/promises';
import { databaseAddress, databaseVariable, FleetDatabase, loadDbos, queueOf } from '@telos/fleet/executors';
import { beatMs, failedFacts, Signs, suiteFacts, workerFacts } from '@telos/fleet/workers';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { terminalJson, terminalLine } from './terminalText.ts';
import { failed } from './workerCommand.ts';

export interface FleetCommandOptions extends ConfigOptions {
  database?: string;
  json?: boolean;
}

/** Opens the database for a command. Returns its exit code, or 2 if the database cannot be used. */
async function withDatabase(
  options: FleetCommandOptions,
  terminal: Terminal,
  use: (database: FleetDatabase, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(terminal, () => undefined);
  let database: FleetDatabase | undefined;
  try {
    const address = databaseAddress(options.database ?? config.env[databaseVariable]);
    await loadDbos(config.dataDir);
    database = await FleetDatabase.open(address, line => terminal.say(terminalLine(line)), signal);
    return await use(database, signal);
  } catch (error) {
    return failed(error, signal, terminal);
  } finally {
    await database?.close();
    release();
  }
}

/** Prints who is there, and what failed. Returns the exit code: 0, or 2 if the database cannot be asked. */
export const fleetStatusCommand = (options: FleetCommandOptions, terminal: Terminal): Promise<number> =>
  withDatabase(options, terminal, async database => {
    const queued = await database.queued();
    const workers = (await database.present('worker')).map(({ id, facts }) => ({
      id,
      ...workerFacts(facts),
      queued: queued.get(queueOf(id)) ?? 0,
    }));
    const suites = (await database.present('suite')).map(({ id, facts }) => ({ id, ...suiteFacts(facts) }));
    const failedRuns = (await database.present('failed')).map(({ id, facts }) => ({
      id,
      ...failedFacts(facts),
    }));
    if (options.json) {
      terminal.out(`${terminalJson({ workers, suites, failed: failedRuns })}\n`);
      return 0;
    }
    const lines = [
      ...workers.map(
        ({ id, label, version, drains, running, slots, queued: next, done, refused }) =>
          `${id}${label ? ` (${label})` : ''}: Telos ${version}, ${drains ? 'ending, ' : ''}${running} of ${counted(slots, 'slot')} busy, ${next} queued, ${done} done, ${refused} refused`,
      ),
      ...suites.map(
        ({ id, isPlan, version, waiting, running, done, failed: stuck }) =>
          `${isPlan ? 'plan' : 'suite'} ${id}: Telos ${version}, ${waiting} waiting, ${running} given to workers, ${done} done, ${stuck} failed`,
      ),
      ...failedRuns.map(({ id, job, worker, why }) => `failed ${id}: ${job}, on ${worker}: ${why}`),
    ];
    terminal.out(
      lines.length > 0 ? `${lines.map(line => terminalLine(line)).join('\n')}\n` : 'No worker is running.\n',
    );
    return 0;
  });

/** A worker that was asked to end has so long, in milliseconds: its half minute, and until it looks. */
const drainMs = 35_000;

/** Asks workers to end, by name or label, and waits for it. Returns the exit code: 0 if all have ended, 1 if not, 2 for wrong usage. */
export const fleetDrainCommand = (
  named: readonly string[],
  { all, ...options }: FleetCommandOptions & { all?: boolean },
  terminal: Terminal,
): Promise<number> =>
  withDatabase(options, terminal, async (database, signal) => {
    const there = (await database.present('worker')).map(one => ({ ...one, ...workerFacts(one.facts) }));
    const isMeant = (one: (typeof there)[number]): boolean =>
      all === true || named.some(name => name === one.id || name === one.label);
    const unknown = named.filter(name => !there.some(({ id, label }) => name === id || name === label));
    if (unknown[0] !== undefined || (named.length === 0 && !all)) {
      terminal.say(
        unknown[0] === undefined
          ? 'Name a worker or a label, or use --all. `telos fleet status` lists them.'
          : terminalLine(`There is no worker ${unknown[0]}. \`telos fleet status\` lists them.`),
      );
      return 2;
    }
    const asked = there.filter(isMeant).map(({ id }) => id);
    for (const id of asked) await database.announce('drain', id, {});
    const left = await ended(asked, database, terminal, signal);
    for (const id of left) {
      await database.withdraw('drain', id);
      terminal.say(terminalLine(`The worker ${id} has not ended. End it where it runs.`));
    }
    return left.length === 0 ? 0 : 1;
  });

/** Returns those that have not ended in time. The entry of one that gives no sign is removed. */
async function ended(
  asked: readonly string[],
  database: FleetDatabase,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string[]> {
  const left = new Set(asked);
  const signs = new Signs();
  const over = (id: string, how: string): void => {
    left.delete(id);
    terminal.out(`${terminalLine(`The worker ${id} ${how}.`)}\n`);
  };
  for (const end = performance.now() + drainMs; left.size > 0 && performance.now() < end; ) {
    await delay(beatMs, undefined, { signal });
    const beats = new Map((await database.present('worker')).map(({ id, beat }) => [id, beat]));
    for (const id of left) if (!beats.has(id)) over(id, 'has ended');
    for (const id of signs.look(beats)) {
      if (!left.has(id)) continue;
      for (const kind of ['worker', 'drain'] as const) await database.withdraw(kind, id);
      over(id, 'was gone already, and its entry is removed');
    }
  }
  return [...left];
}

/** Has runs that failed given again. Returns the exit code: 0, or 2 if one of those named is not among them. */
export const fleetRetryCommand = (
  named: readonly string[],
  { failed: all, ...options }: FleetCommandOptions & { failed?: boolean },
  terminal: Terminal,
): Promise<number> =>
  withDatabase(options, terminal, async database => {
    const there = (await database.present('failed')).map(({ id }) => id);
    const unknown = named.find(name => !there.includes(name));
    if (unknown !== undefined || (named.length === 0 && !all)) {
      terminal.say(
        unknown === undefined
          ? 'Name runs, or use --failed for all. `telos fleet status` lists those that failed.'
          : terminalLine(`No run ${unknown} has failed. \`telos fleet status\` lists those that have.`),
      );
      return 2;
    }
    const again = all ? there : named;
    for (const id of again) await database.announce('retry', id, {});
    terminal.out(
      `${again.length === 0 ? 'No run has failed' : `Queued again: ${counted(again.length, 'run')}`}.\n`,
    );
    return 0;
  });
