/** What it costs to know what a command changed: in a folder of 50,000 files, of which each command changes one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { type Figure, median } from './measure.ts';

const folders = 2500;
const filesEach = 20;
const commands = 15;

export async function watchedFigures(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'telos-bench-watched-'));
  const work = join(root, 'work');
  try {
    for (let folder = 0; folder < folders; folder++) {
      const path = join(work, `area-${folder % 50}`, `part-${folder}`);
      mkdirSync(path, { recursive: true });
      for (let file = 0; file < filesEach; file++)
        writeFileSync(join(path, `file-${file}.ts`), `export const x = ${folder * file};\n`.repeat(20));
    }
    const store = new ChangeStore({ dataDir: join(root, 'data'), configDir: join(root, 'config') });
    const changes = store.keeper('run-1')!;
    const env = { PATH: process.env['PATH'] ?? '' };
    const place = { workingDir: work, env, outside: false, signal: new AbortController().signal };
    const once = async (act: () => void): Promise<number> => {
      const start = performance.now();
      const watch = await changes.watchCommand(place);
      const began = performance.now() - start;
      act();
      const ended = performance.now();
      if (!(await watch?.end())) throw new Error(changes.takeProblem());
      watch?.record(new Set());
      return began + performance.now() - ended;
    };
    const first = await once(() => undefined);
    const git = (...args: string[]) =>
      execFileSync('git', args, {
        cwd: work,
        env: { ...env, GIT_DIR: join(root, 'git'), GIT_WORK_TREE: work },
      });
    git('init', '-q');
    git('add', '-A');
    git('ls-files', '-m', '-o');
    const [times, bare]: [number[], number[]] = [[], []];
    for (let command = 0; command < commands; command++) {
      times.push(await once(() => writeFileSync(join(work, 'area-0/part-0/file-0.ts'), `// ${command}\n`)));
      const start = performance.now();
      git('ls-files', '-m', '-o');
      bare.push(performance.now() - start);
    }
    console.log(
      `(The first command there: ${first.toFixed(0)} ms; one git ls-files -m -o there: ${median(bare).toFixed(1)} ms)`,
    );
    const name = `knowing what a command changed among ${folders * filesEach} files`;
    return [{ name, unit: 'ms', ours: median(times), bare: undefined, limit: 150 }];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

if (import.meta.main) for (const { name, ours } of await watchedFigures()) console.log(name, ours.toFixed(1));
