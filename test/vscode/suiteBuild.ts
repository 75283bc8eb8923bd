/** Turns the tests of `suite/` into the one module that both hosts load: the server's and `@vscode/test-electron`'s. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type PluginBuild } from 'esbuild';
import { root } from './paths.ts';

/**
 * Writes the module into the installed extension and returns its path. VS Code gives every extension a `vscode` of its own; only
 * a test inside the folder shares that of Telos and can answer its questions in place of a person.
 */
export async function buildSuite(extension: string): Promise<string> {
  const suiteFile = join(extension, 'suite.mjs');
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
    external: ['vscode'],
    // The build of a package for CommonJS may load its own files by a path that a bundle does not have.
    mainFields: ['module', 'main'],
    // CommonJS inside of an ES module asks for Node's own modules by it.
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
    plugins: [{ name: 'mocha-in-place', setup: findMochaHere }],
    sourcemap: 'inline',
    logLevel: 'warning',
    outfile: suiteFile,
  });
  return suiteFile;
}

/** The extension's folder has no `node_modules` to find mocha in. */
function findMochaHere(build: PluginBuild): void {
  build.onResolve({ filter: /^mocha$/ }, () => ({ path: import.meta.resolve('mocha'), external: true }));
}
