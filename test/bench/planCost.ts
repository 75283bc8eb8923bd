/** What stories of a plan cost beside the same commits by plain git: the time of a whole run, its model answering at once. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agreeable, once, planWorld, writes } from '../plan/planWorld.ts';
import { type Figure, figureLine } from './measure.ts';

const stories = 20;
/** Files of the project, as in the small and in the large one that were measured. */
const sizes = [89, 25_900];

export async function planCostFigures(wanted = sizes): Promise<Figure[]> {
  const found: Figure[] = [];
  for (const size of wanted) found.push(await figureOf(size));
  return found;
}

async function figureOf(size: number): Promise<Figure> {
  const names = Array.from({ length: stories }, (_, at) => `notes/n${at + 1}.txt`);
  const ids = names.map((_, at) => `US-${String(at + 1).padStart(3, '0')}`);
  const world = await planWorld(
    names.map((name, at) => ({
      id: ids[at]!,
      touches: [name],
      checks: { there: `test -f ${name}` },
    })),
    {
      ...agreeable,
      ...Object.fromEntries(
        names.map((name, at) => [`${ids[at]} coder`, once(writes({ [name]: 'note\n' }))]),
      ),
    },
  );
  try {
    for (let at = 0; at < size; at++) {
      const path = join(world.repo, 'files', `d${at % 97}`, `f${at}.txt`);
      if (at < 97) mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `${at}\n`);
    }
    world.git('add', '--all', '--', 'files');
    world.git('commit', '-qm', 'files');
    const before = performance.now();
    const { code, stderr } = await world.start('run', 'site', '--unattended').result;
    const ours = performance.now() - before;
    if (code !== 0) throw new Error(stderr);
    return {
      name: `a story of a plan over ${size} files`,
      unit: 'ms',
      ours: ours / stories,
      bare: byHand(world.repo, world.git, names) / stories,
      limit: 2.5,
    };
  } finally {
    await world.close();
  }
}

/** The same in a worktree by hand: a branch, and for each file a check, a commit, and a look at it. */
function byHand(repo: string, git: (...args: string[]) => string, names: readonly string[]): number {
  const place = join(dirname(repo), 'by-hand');
  const before = performance.now();
  git('worktree', 'add', '--quiet', '-b', 'by-hand', place);
  const here = (...args: string[]): string => git('-C', place, ...args);
  for (const name of names) {
    mkdirSync(dirname(join(place, name)), { recursive: true });
    writeFileSync(join(place, name), 'note\n');
    execFileSync('bash', ['-c', `test -f ${name}`], { cwd: place });
    here('add', '--all');
    here('commit', '--quiet', '--message', name);
    here('show', '--stat', 'HEAD');
  }
  return performance.now() - before;
}

if (import.meta.main) for (const figure of await planCostFigures()) console.log(figureLine(figure));
