/** What it costs to know what a command changed: in a folder of 50,000 files beside one of 50, of which each command changes one. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { alternate, type Figure, figureLine, median } from './measure.ts';

const many = 50_000;
const few = 50;
const filesInFolder = 20;
const commands = 15;

export async function watchedFigures(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'telos-bench-watched-'));
  try {
    const [large, small] = [await folderOf(join(root, 'many'), many), await folderOf(join(root, 'few'), few)];
    console.log(
      `(The first command there: ${large.first.toFixed(0)} ms among ${many} files, ${small.first.toFixed(0)} ms among ${few})`,
    );
    const { ours, bare } = await alternate(commands, large.command, small.command);
    const name = `knowing what a command changed, ${many} files beside ${few}`;
    return [{ name, unit: 'ms', ours: median(ours), bare: median(bare), limit: 600 }];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Makes a folder with so many files, in which commands are watched. `command` returns what a command that changes one costs. */
async function folderOf(root: string, files: number) {
  const work = join(root, 'work');
  for (let file = 0; file < files; file++) {
    const part = Math.floor(file / filesInFolder);
    const folder = join(work, `area-${part % 50}`, `part-${part}`);
    if (file % filesInFolder === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `file-${file}.ts`), `export const x = ${file};\n`.repeat(20));
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
  let done = 0;
  const command = (): Promise<number> =>
    once(() => writeFileSync(join(work, 'area-0/part-0/file-0.ts'), `// ${done++}\n`));
  return { first: await once(() => undefined), command };
}

if (import.meta.main) for (const figure of await watchedFigures()) console.log(figureLine(figure));
