/** Finds the tests of a source file by the import lines. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { importsOf } from '../importRules.ts';

/** Tests that need a build, a browser or an editor, or that take minutes. They are tried by their layers. */
const notFromSource = [
  'test/adversarial/',
  'test/conformance/',
  'test/e2e/',
  'test/faults/',
  'test/fleet/',
  'test/mutate/',
  'test/plan/',
  'test/realSkills/',
  'test/vscode/',
];

/** Who imports this starts the built command line, in which there is no break. */
const startsBuild = 'test/cli/cliProcess.ts';

export type Importers = ReadonlyMap<string, readonly string[]>;

/** Returns who imports each file of the checkout; the types alone do not count. */
export function importersIn(root: string): Importers {
  const importers = new Map<string, string[]>();
  for (const from of sourceFiles(root)) {
    for (const { file, kind } of importsOf(from, readFileSync(join(root, from), 'utf8'))) {
      if (file === undefined || kind === 'type') continue;
      importers.set(file, [...(importers.get(file) ?? []), from]);
    }
  }
  return importers;
}

/** Returns the test files that import the file directly or through others: its own first, then by the number of steps. */
export function nearestTests(file: string, importers: Importers): string[] {
  const steps = stepsFrom(file, importers);
  const built = stepsFrom(startsBuild, importers);
  const own = `${basename(file).replace(/\.tsx?$/, '')}.test.ts`;
  const room = dirname(file).replace(/^src\//, 'test/');
  const rank = (path: string): [number, number, number] => [
    basename(path) === own ? 0 : 1,
    steps.get(path) ?? 0,
    dirname(path) === room ? 0 : 1,
  ];
  return [...steps.keys()]
    .filter(path => path.endsWith('.test.ts') && !built.has(path))
    .filter(path => !notFromSource.some(start => path.startsWith(start)))
    .sort((one, other) => {
      const [mine, theirs] = [rank(one), rank(other)];
      const at = mine.findIndex((value, index) => value !== theirs[index]);
      return at < 0 ? one.localeCompare(other) : (mine[at] ?? 0) - (theirs[at] ?? 0);
    });
}

/** Returns the files that lead to this one, each with the number of imports in between. */
function stepsFrom(file: string, importers: Importers): Map<string, number> {
  const steps = new Map([[file, 0]]);
  for (const [reached, count] of steps) {
    for (const from of importers.get(reached) ?? []) if (!steps.has(from)) steps.set(from, count + 1);
  }
  return steps;
}

function sourceFiles(root: string): string[] {
  return ['src', 'webview', 'test'].flatMap(top =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .map(name => `${top}/${name.replaceAll('\\', '/')}`)
      .filter(path => /(?<!\.d)\.tsx?$/.test(path) && !path.startsWith('test/fixtures/')),
  );
}
