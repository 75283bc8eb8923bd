/** Copies a single skill under another name, and removes one in a way that can be undone. */

import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { loadText } from '../files/regularFile.ts';
import { ReplacedFolders } from '../files/replacedFolders.ts';
import { swapFolder } from '../files/swapFolder.ts';
import type { Agent, Skill } from './agent.ts';
import { scanName } from './frontmatter.ts';
import { uninstallPack } from './install.ts';
import { copyPack } from './installPlace.ts';
import { skillNameProblem } from './packSkills.ts';
import { placeFolder } from './scaffold.ts';
import { skillFileIn } from './skillFile.ts';

/**
 * Copies the skill's folder to one of that name beside it, and gives it that name. Links are not copied. Returns the path of the new
 * SKILL.md. Throws TelosError `pack` for a name that is unusable or taken.
 */
export async function duplicateSkill({ dir }: Pick<Skill, 'dir'>, name: string): Promise<string> {
  const problem = skillNameProblem(name);
  if (problem)
    throw new TelosError('pack', [
      sentence('The skill cannot be called {0}.', JSON.stringify(name)),
      problem,
    ]);
  const target = join(dirname(dir), name);
  const isPlaced = await placeFolder(target, async staged => {
    await copyPack(dir, staged);
    const file = skillFileIn(staged);
    if (file === undefined)
      throw new TelosError('pack', [sentence('{0} has no SKILL.md.', dir), sentence('Nothing was copied.')]);
    const text = await loadText(file);
    if (scanName(text) !== undefined)
      await writeFile(file, text.replace(/^name:[ \t]*.*$/m, `name: ${name}`));
  });
  if (!isPlaced)
    throw new TelosError('pack', [sentence('There is a skill {0} already; it stays as it is.', target)]);
  return skillFileIn(target) ?? join(target, 'SKILL.md');
}

/**
 * Removes a skill of an agent in the skills folder, and keeps it for undo. Returns the id of the undo. A skill that is an agent by
 * itself is removed with it. Throws TelosError `pack` for a skill that lies elsewhere.
 */
export async function uninstallSkill(agent: Agent, skill: Skill, config: Config): Promise<string> {
  if (skill.kind !== undefined)
    throw new TelosError('pack', [
      sentence("'{0}' belongs to the plugin {1}, and is not removed alone.", skill.id, agent.name),
      sentence('Disable it, or uninstall the plugin.'),
    ]);
  if (skill.dir === agent.packDir) return (await uninstallPack(agent.name, config)).undoId;
  if (agent.source !== 'user' || !skill.dir.startsWith(join(agent.packDir, '/')))
    throw new TelosError('pack', [
      sentence("The skill '{0}' is in {1}, which Telos did not install.", skill.id, skill.dir),
      sentence('Delete it there.'),
    ]);
  const { record } = await swapFolder(config.dataDir, {
    kind: 'uninstall',
    agent: `${agent.name}:${skill.id}`,
    target: skill.dir,
    from: null,
    replaces: true,
    prepare: async () => ({ left: null, along: [] }),
  });
  await new ReplacedFolders(config).sweep();
  return record.id;
}
