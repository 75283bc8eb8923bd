/** Where things are, and what the environment says. */
import { expandPath, loadConfig } from '../../../src/engine/config.ts';
import { texts } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Operations } from '../operations.ts';

const configOf = (given: Readonly<Record<string, unknown>>, world: CaseWorld) =>
  loadConfig({ env: texts(given['env']), home: world.home, cwd: world.cwd });

export const configOperations: Operations = {
  config_dir: async ({ given }, world) => ({ path: configOf(given, world).configDir }),
  data_dir: async ({ given }, world) => ({ path: configOf(given, world).dataDir }),

  resolve_working_dir: async ({ when }, world) => ({
    path: expandPath(String(when['value']), world.home, world.cwd),
  }),

  async load_env({ given }, world) {
    fillWorld(world, given, 'tmp');
    return { vars: world.loadConfig(texts(given['process_env'])).env };
  },
};
