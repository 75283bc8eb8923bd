/** Remembers where each installed agent came from and what was installed, in the data folder: a pack says nothing of that itself. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FolderContents } from '../changes/folderContents.ts';
import type { AlongFile } from '../changes/folderRecord.ts';

export interface InstallOrigin {
  format: 'telos-install';
  version: 1;
  agent: string;
  /** The installed folder. Absolute. */
  path: string;
  /** Other kinds of source can follow. */
  source: { kind: 'folder'; path: string };
  /** ISO 8601, UTC. */
  installedAt: string;
  /** Tells the installed folder from another one in its place. */
  identity: string;
  files: FolderContents;
  leftOut: readonly string[];
}

/** What was noted of the folder `target`; undefined where nothing was. Whether that folder is still the same is for the caller to see. */
export function readOrigin(dataDir: string, target: string): InstallOrigin | undefined {
  try {
    const value = JSON.parse(readFileSync(originPath(dataDir, target), 'utf8')) as Partial<InstallOrigin>;
    const { format, version, path, source, installedAt, files } = value;
    const isOrigin =
      format === 'telos-install' &&
      version === 1 &&
      path === target &&
      source?.kind === 'folder' &&
      typeof source.path === 'string' &&
      typeof installedAt === 'string' &&
      typeof files === 'object' &&
      files !== null;
    return isOrigin ? (value as InstallOrigin) : undefined;
  } catch {
    return undefined;
  }
}

/** The file that says so, as it becomes with an install, or without `origin` with an uninstall. */
export function originFile(dataDir: string, target: string, origin?: InstallOrigin): AlongFile {
  const file = originPath(dataDir, target);
  return { file, before: textOf(file), after: origin ? `${JSON.stringify(origin)}\n` : null };
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** One file for each folder, so that two windows never write over each other's. */
function originPath(dataDir: string, target: string): string {
  const key = createHash('sha256').update(target).digest('hex').slice(0, 24);
  return join(dataDir, 'installs', `${key}.json`);
}
