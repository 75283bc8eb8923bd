/** Where things are, and what the environment says. */
import { expandPath, loadConfig, skillRootKinds } from '../../../src/engine/config.ts';
import { texts } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Operations } from '../operations.ts';

const configOf = (given: Readonly<Record<string, unknown>>, world: CaseWorld) =>
  loadConfig({ env: texts(given['env']), home: world.home, cwd: world.cwd });

export const configOperations: Operations = {
  config_dir: async ({ given }, world) => ({ path: configOf(given, world).configDir }),
  skills_dir: async ({ given }, world) => ({ path: configOf(given, world).skillsDir }),
  data_dir: async ({ given }, world) => ({ path: configOf(given, world).dataDir }),

  resolve_working_dir: async ({ when }, world) => ({
    path: expandPath(String(when['value']), world.home, world.cwd),
  }),

  /** A file for each setting in the original's words, since what is absent is told from a folder. */
  async config_fields(_case, world) {
    const { skillRoots, ...others } = world.loadConfig();
    const names = [
      ...skillRootKinds
        .filter(kind => kind in skillRoots || kind === 'builtin')
        .map(kind => `skills_${kind}_dir`),
      ...Object.keys(others).map(name => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)),
    ];
    world.write(Object.fromEntries(names.map(name => [name, ''])));
    return { base: world.tmp };
  },

  async load_env({ given }, world) {
    fillWorld(world, given, 'tmp');
    return { vars: world.loadConfig(texts(given['process_env'])).env };
  },
};
