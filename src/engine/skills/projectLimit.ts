/** Keeps what a project's files name inside the project: a link in a clone can lead anywhere. */

import type { Diagnostic } from '../files/diagnostic.ts';
import { isInside, realPlace } from '../files/paths.ts';

export interface ProjectLimit {
  /** The project's folder. Absolute. */
  readonly folder: string;
  /** True for a path that by its links leads out of the project, or nowhere that can be told; the project's diagnostics then say so. */
  refuses(path: string): boolean;
}

/** `diagnostics` gets one for each path that is refused. */
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

/** True when `path`, wherever its links lead, really lies in the project's folder, or will once it is made. */
export function liesWithin(folder: string, path: string): boolean {
  const real = realPlace(path);
  return real !== undefined && isInside(realPlace(folder) ?? folder, real);
}
