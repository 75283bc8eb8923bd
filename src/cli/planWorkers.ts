/** Has the stories of a plan worked on by the workers of a database, for a terminal and for the process that runs a plan for an editor. */
import { join } from 'node:path';
import type { Config } from '../engine/config.ts';
import { databaseAddress } from '../engine/fleet/databaseAddress.ts';
import { loadDbos } from '../engine/fleet/dbos.ts';
import { PlanJobs } from '../engine/fleet/planJobs.ts';
import { ownName } from '../engine/workflow/planCard.ts';
import type { PlanWorkers } from '../engine/workflow/planRun.ts';

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
export async function planWorkers(
  { dataDir }: Config,
  { url, version, label, remote, log }: WorkersWanted,
): Promise<PlanWorkers> {
  const address = databaseAddress(url);
  await loadDbos(dataDir);
  return {
    ...(remote !== undefined && { remote }),
    log,
    open: folder => {
      const keyFile = join(dataDir, 'plans', `${ownName(folder)}.key`);
      return PlanJobs.open({ address, version, label, keyFile, name: folder.name, log });
    },
  };
}
