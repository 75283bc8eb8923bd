/** Keeps the paths that a project's files name inside the project, since a link in a clone can lead anywhere. */

import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config.ts';
import type { Diagnostic } from '../files/diagnostic.ts';
import { isInside, realPlace } from '../files/paths.ts';

export interface ProjectLimit {
  /** The project's folder. Absolute. */
  readonly folder: string;
  /**
   * Returns true if a path's links lead out of the project, or nowhere that is known. The project's diagnostics then report it.
   */
  refuses(path: string): boolean;
}

/** Returns the limit of a project. `diagnostics` gets one for each path that is refused. */
export function projectLimit(folder: string, diagnostics: Diagnostic[]): ProjectLimit {
  return {
    folder,
    refuses(path) {
      if (liesWithin(folder, path)) return false;
      const real = realPlace(path);
      const message = `It leads out of the project ${folder}${real === undefined ? '' : `, to ${real}`}, so it is not used. What a project's files name must lie inside the project.`;
      diagnostics.push({
        severity: 'warning',
        code: 'project-outside',
        message,
        file: path,
        line: 1,
        fix: 'Put the files themselves where the link is.',
      });
      return true;
    },
  };
}

/** Whether `path`, wherever its links lead, is really in the project's folder, or will be once it is created. */
export function liesWithin(folder: string, path: string): boolean {
  const real = realPlace(path);
  return real !== undefined && isInside(realPlace(folder) ?? folder, real);
}

/**
 * Returns the folders of the project around the current folder, the nearest first: up to the root of its repository, or the
 * current folder alone. Never contains the home folder, a folder that contains it, or a folder above that belongs to another
 * user, who could have put a repository there.
 */
export function projectFoldersAt({ cwd, home }: Pick<Config, 'cwd' | 'home'>): string[] {
  const realHome = realPlace(home) ?? home;
  const start = realPlace(cwd);
  const folders: string[] = [];
  const isTooWide = (folder: string): boolean => dirname(folder) === folder || isInside(folder, realHome);
  for (let folder = start; folder !== undefined && !isTooWide(folder); folder = dirname(folder)) {
    if (folder !== start && !isOwn(folder)) break;
    folders.push(folder);
    if (existsSync(join(folder, '.git'))) return folders;
  }
  return folders.slice(0, 1);
}

/** Whether a folder belongs to the user. Windows has no such number, and there only an administrator can write above. */
function isOwn(folder: string): boolean {
  try {
    const user = process.getuid?.();
    return user === undefined || statSync(folder).uid === user;
  } catch {
    return false;
  }
}
