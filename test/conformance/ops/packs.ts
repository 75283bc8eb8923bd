/** Installing and uninstalling, as version 4 does it and as version 3 did. */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { readToml, tableOf } from '../../../src/engine/files/settingsFile.ts';
import { installPack, uninstallPack } from '../../../src/engine/skills/install.ts';
import { planInstall } from '../../../src/engine/skills/planInstall.ts';
import { strings } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';

export const packOperations: Operations = {
  async install({ given, when, then }, world) {
    fillWorld(world, given, 'tmp');
    // A file of scripts comes with its bit, or has none to keep.
    for (const path of strings(then['executable']))
      chmodSync(join(world.tmp, 'src', path.split('/').slice(1).join('/')), 0o755);
    // Sources of other kinds come later; until then they are not folders, and an error says so.
    const source = String(when['source'] ?? given['remote']).split(' ')[0] ?? '';
    const seen = await install(source, world);
    return { ...seen, rejected: 'throws' in seen, future: 'throws' in seen, base: world.skills };
  },

  async uninstall({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    const seen = await refusals(async () => ({
      ...(await uninstallPack(String(when['name']), world.loadConfig())),
    }));
    return { ...seen, rejected: 'throws' in seen, base: world.skills };
  },

  async v3_install({ given }, world) {
    fillWorld(world, given, 'tmp');
    const seen = await install(join(world.tmp, 'src'), world);
    return { ...seen, ...configured(world), base: world.root };
  },

  async v3_uninstall({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    mkdirSync(world.skills, { recursive: true });
    const seen = await refusals(async () => ({
      ...(await uninstallPack(String(when['name']), world.loadConfig())),
    }));
    return { ...seen, ...configured(world), base: world.root };
  },
};

const install = (source: string, world: CaseWorld): Promise<Observed> =>
  refusals(async () => {
    // What is there already is replaced as after a yes; the specification knows no question.
    const { token: agreed } = await planInstall(source, world.loadConfig());
    const { name, skillCount, path } = await installPack(source, world.loadConfig(), { agreed });
    return { name, skill_count: skillCount, path };
  });

async function refusals(action: () => Promise<Observed>): Promise<Observed> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    return { throws: true, message: error.message };
  }
}

function configured(world: CaseWorld): Observed {
  const { table } = readToml(join(world.loadConfig().configDir, 'agents.toml'), 'agents-toml', []);
  const agents = tableOf(table, 'agents') ?? {};
  return { config_agents: agents, config_names: Object.keys(agents).sort() };
}
