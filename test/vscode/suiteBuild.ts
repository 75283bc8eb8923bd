/** Turns the tests of `suite/` into the one module that both hosts load: the server's and `@vscode/test-electron`'s. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { cacheDir, root } from './paths.ts';

/** Exports `run(): Promise<void>`. */
export const suiteFile = join(cacheDir, 'suite', 'suite.mjs');

export async function buildSuite(): Promise<void> {
  const folder = join(root, 'test', 'vscode', 'suite');
  const tests = (await readdir(folder)).filter(name => name.endsWith('.test.ts')).sort();
  if (tests.length === 0) throw new Error(`There is no test in ${folder}.`);
  const loads = tests.map(name => `() => import('./${name}')`);
  await build({
    stdin: {
      contents: `import { runSuite } from './runSuite.ts';\nexport const run = () => runSuite([${loads.join(', ')}]);\n`,
      resolveDir: folder,
      loader: 'ts',
    },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    external: ['vscode', 'mocha'],
    sourcemap: 'inline',
    logLevel: 'warning',
    outfile: suiteFile,
  });
}
