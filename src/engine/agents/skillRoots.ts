/** The folders in which a run without a chosen skill looks for skills by itself. */
import { realpathSync, statSync } from 'node:fs';
import { type Config, type SkillRootKind, skillRootKinds } from '../config.ts';

export interface SkillRoot {
  kind: SkillRootKind;
  /** Absolute, as it was set. */
  path: string;
}

/** Those that are folders now, the strongest first; one folder by two names is listed once. Never throws. */
export function existingSkillRoots({ skillRoots }: Pick<Config, 'skillRoots'>): SkillRoot[] {
  const seen = new Set<string>();
  return skillRootKinds.flatMap(kind => {
    const path = skillRoots[kind];
    const real = path === undefined ? undefined : realFolder(path);
    if (path === undefined || real === undefined || seen.has(real)) return [];
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
