/** Has the stories of a plan worked on by the workers of a database, for a terminal and for the process that runs a plan for an editor. */

import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import type { AttemptParts } from '@telos/plans/executor';
import type { PlanWorkers } from '@telos/plans/run';
import { ownName } from '@telos/plans/state';
import { databaseAddress } from './databaseAddress.ts';
import { loadDbos } from './dbos.ts';
import { PlanJobs } from './planJobs.ts';
import { PlanPusher } from './stories/planPusher.ts';
import { PlanRemote, remoteOf } from './stories/planRemote.ts';
import { WorkerSlots } from './stories/workerSlots.ts';

export interface WorkersWanted {
  /** Address of the database. */
  url: string | undefined;
  /** Of Telos. */
  version: string;
  /** Only workers with this label. Undefined for all. */
  label?: string | undefined;
  /** Name of the git remote. Undefined for the only one. */
  remote?: string | undefined;
  log: (line: string) => void;
}

/** Returns how to reach the workers. Throws TelosError `config` if the address of their database is not valid, or if a package is missing. */
export async function planWorkers({ dataDir }: Config, wanted: WorkersWanted): Promise<PlanWorkers> {
  const { url, version, label, log } = wanted;
  const address = databaseAddress(url);
  await loadDbos(dataDir);
  return async (parts, limits, signal) => {
    const over = new AbortController();
    const pusher = await pusherOf(parts, wanted, over.signal);
    const { folder } = parts;
    const keyFile = join(dataDir, 'plans', `${ownName(folder)}.key`);
    const jobs = await PlanJobs.open({ address, version, label, keyFile, name: folder.name, log });
    try {
      const stop = (): void => over.abort(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      await pusher.begin().finally(() => signal.removeEventListener('abort', stop));
    } catch (error) {
      await jobs.close();
      throw error;
    }
    return new WorkerSlots({ ...parts, jobs, pusher, limits });
  };
}

/** Returns the pusher of a plan, and says to which remote it pushes. Throws TelosError `config` if the remote cannot be used. */
async function pusherOf(
  { git, folder, settings, base, runs }: AttemptParts,
  { remote: name, log }: WorkersWanted,
  signal: AbortSignal,
): Promise<PlanPusher> {
  const { url, name: chosen } = await remoteOf(git, name);
  const remote = new PlanRemote({ url, dir: folder.repo, env: runs.config.env, log });
  log(
    `Pushes to ${chosen} (${remote.shown}) what workers need: the branch ${settings.branch}, and below refs/telos/${folder.name} the stories, their checks and their work.`,
  );
  return new PlanPusher({ git, remote, plan: folder.name, branch: settings.branch, base, log, signal });
}
