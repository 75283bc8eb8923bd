/** Two thousand skills, and what it costs to find one of them again in an engine that is open. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import { Telos } from '../../src/engine/telos.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type Figure, figureLine, median } from './measure.ts';

export const manySkills = { agents: 40, skillsPerAgent: 50 };

export function addManySkills(root: string): void {
  for (let agent = 0; agent < manySkills.agents; agent++) {
    for (let skill = 0; skill < manySkills.skillsPerAgent; skill++) {
      const text = `---\nname: task-${agent}-${skill}\ndescription: Does task ${skill} of area ${agent}${skill === 0 ? `, an unusual${agent} reckoning` : ''}.\n---\n# Task\n\nDo it.\n`;
      const folder = join(root, `area-${agent}/skills/task-${agent}-${skill}`);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'SKILL.md'), text);
    }
  }
}

/**
 * A request to an engine that is open already, by a name and by words that only the index knows; the slower of the two. Beside it, reading
 * the files of all skills: nothing may be read again.
 */
export async function rerouteFigure(skills: string): Promise<Figure> {
  const config = loadConfig({
    env: { TELOS_SKILLS_DIR: skills, TELOS_ROUTING_MODE: 'local' },
    home: dirname(skills),
    cwd: dirname(skills),
  });
  const telos = Telos.open(config);
  const { signal } = new AbortController();
  const route = async (text: string): Promise<number> => {
    const start = performance.now();
    const { skill } = await telos.route({ text }, signal);
    if (!skill) throw new Error(`'${text}' finds no skill.`);
    return performance.now() - start;
  };
  const requests = [
    (number: number) => `please do task-${number % manySkills.agents}-7`,
    (number: number) => `unusual${number % manySkills.agents} reckoning`,
  ];
  const medians: number[] = [];
  for (const request of requests) {
    await route(request(0));
    const times: number[] = [];
    for (let turn = 1; turn <= 101; turn++) times.push(await route(request(turn)));
    medians.push(median(times));
  }
  const reads = Array.from({ length: 11 }, () => {
    const start = performance.now();
    for (const path of readdirSync(skills, { recursive: true, encoding: 'utf8' }))
      if (path.endsWith('SKILL.md')) readFileSync(join(skills, path), 'utf8');
    return performance.now() - start;
  });
  return {
    name: 'routed again in an engine that is open',
    unit: 'ms',
    ours: Math.max(...medians),
    bare: median(reads),
    limit: 0.2,
  };
}

if (import.meta.main) {
  const folder = tempFolder();
  addManySkills(join(folder.path, 'many'));
  console.log(figureLine(await rerouteFigure(join(folder.path, 'many'))));
  folder.remove();
}
