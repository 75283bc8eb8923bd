/** What it costs to land what commands write: six in a folder of 30,000 files beside six in one of ten. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { denyAll } from '../../src/engine/human.ts';
import { layered, layeredBox } from '../engine/run/layered.ts';
import { temporaryRun } from '../engine/tools/temporaryRun.ts';
import { alternate, type Figure, figureLine, median } from './measure.ts';

const many = 30_000;
const few = 10;
const filesInFolder = 20;
const commands = 6;

/** Returns what a command costs that changes one file. Returns nothing where no layer works, and says so. */
export async function watchedFigures(): Promise<Figure[]> {
  const finding = await layeredBox();
  if (!finding) {
    console.log('(no figure of landing: no layer works here)');
    return [];
  }
  const runs = [many, few].map(files => {
    const run = temporaryRun();
    for (let file = 0; file < files; file++) {
      const folder = join(run.work, `area-${Math.floor(file / filesInFolder)}`);
      if (file % filesInFolder === 0) mkdirSync(folder);
      writeFileSync(join(folder, `file-${file}.ts`), `export const x = ${file};\n`.repeat(20));
    }
    const store = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
    let done = 0;
    const command = async (): Promise<number> => {
      const start = performance.now();
      const { changedFiles } = await layered(`echo ${done++} > area-0/file-0.ts`, run, store, finding, {
        human: denyAll,
      });
      if (changedFiles.length !== 1) throw new Error('The command changed nothing.');
      return performance.now() - start;
    };
    return { run, command };
  });
  const [large, small] = runs;
  try {
    const { ours, bare } = await alternate(commands, large!.command, small!.command);
    const name = `landing what a command wrote, ${many} files beside ${few}`;
    return [{ name, unit: 'ms', ours: median(ours), bare: median(bare), limit: 2 }];
  } finally {
    for (const { run } of runs) run.remove();
  }
}

if (import.meta.main) for (const figure of await watchedFigures()) console.log(figureLine(figure));
