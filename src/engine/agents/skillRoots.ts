/** The folders in which a run without a chosen skill looks for skills by itself. */
import { realpathSync, statSync } from 'node:fs';
import { type Config, type SkillRootKind, skillRootKinds } from '../config.ts';
import { isInside } from '../tools/paths.ts';
import type { Diagnostic } from './agent.ts';
import { projectLimit } from './projectLimit.ts';

export interface SkillRoot {
  kind: SkillRootKind;
  /** Absolute, as it was set. */
  path: string;
}

/**
 * Those that are folders now, the strongest first; one folder by two names is listed once. One in the folder of the call must really lie there,
 * since a clone brings its own: `diagnostics` gets one for each that does not. Never throws.
 */
export function existingSkillRoots(
  { skillRoots, cwd }: Pick<Config, 'skillRoots' | 'cwd'>,
  diagnostics: Diagnostic[] = [],
): SkillRoot[] {
  const seen = new Set<string>();
  const limit = projectLimit(cwd, diagnostics);
  return skillRootKinds.flatMap(kind => {
    const path = skillRoots[kind];
    const real = path === undefined ? undefined : realFolder(path);
    if (path === undefined || real === undefined || seen.has(real)) return [];
    const isOfProject = kind === 'project' && isInside(cwd, path) && path !== skillRoots.user;
    if (isOfProject && limit.refuses(path)) return [];
    seen.add(real);
    return [{ kind, path }];
  });
}

function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync.native(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch {
    return undefined;
  }
}
