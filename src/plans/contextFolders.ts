/** Keeps which folders besides the project tell the planning steps about it. In the person's own data folder, since a plan's folder can come with someone else's repository. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { readSettings, writeOwn } from '@telos/engine/files';
import { ProjectContext } from './contextAnswer.ts';
import { contextModel } from './contextModel.ts';
import { ownName } from './planCard.ts';
import type { PlanFolder } from './planFolder.ts';

const fileOf = ({ dataDir }: Pick<Config, 'dataDir'>, folder: PlanFolder): string =>
  join(dataDir, 'plans', `${ownName(folder)}.context.json`);

/** Returns the folders that the person named for a plan. Empty if there are none, or they cannot be read. */
export function contextFolders(config: Pick<Config, 'dataDir'>, folder: PlanFolder): string[] {
  try {
    const folders: unknown = JSON.parse(readSettings(fileOf(config, folder)));
    return Array.isArray(folders) ? folders.filter(one => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

/** Keeps absolute folders for a plan. Throws TelosError `config` for one that does not exist. */
export async function keepContextFolders(
  config: Pick<Config, 'dataDir'>,
  folder: PlanFolder,
  folders: readonly string[],
): Promise<void> {
  refuseMissing(folders);
  await writeOwn(fileOf(config, folder), `${JSON.stringify(folders)}\n`);
}

/** Throws TelosError `config` for a folder that does not exist. */
export function refuseMissing(folders: readonly string[]): void {
  const missing = folders.find(path => !statSync(path, { throwIfNoEntry: false })?.isDirectory());
  if (missing !== undefined)
    throw new TelosError('config', `The folder ${missing} does not exist. Name another with --context.`);
}

/** Returns what answers questions about the project of a plan. It reads nothing before it is asked; close it at the end. */
export const projectContext = (config: Config, folder: PlanFolder): ProjectContext =>
  new ProjectContext([folder.repo, ...contextFolders(config, folder)], () => contextModel(config));
