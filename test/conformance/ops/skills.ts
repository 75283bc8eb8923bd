/** Reading a SKILL.md, and finding them. */
import { join } from 'node:path';
import { findSkills } from '../../../src/engine/skills/findSkills.ts';
import { openSkill } from '../../../src/engine/skills/skillFile.ts';
import { fillWorld } from '../caseWorld.ts';
import type { Operations } from '../operations.ts';

export const skillOperations: Operations = {
  async parse_skill({ given }, world) {
    world.write({ 'skill/SKILL.md': given['content'] ?? '' });
    const { description, body } = openSkill(join(world.tmp, 'skill/SKILL.md'), 'user');
    return { description, body };
  },

  /** A file that is not text is listed with its defect; the names are those of the skills that can run. */
  async discover_skills({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    const skills = findSkills(String(when['dir']), 'user');
    const readable = skills.filter(skill => !skill.diagnostics.some(({ severity }) => severity === 'error'));
    return { names: readable.map(({ id }) => id) };
  },
};
