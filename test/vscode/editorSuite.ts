/**
 * Runs `test/e2e` with mocha, or the files that are named. VS Code sometimes draws a row anew under the pointer, so a test has a second
 * try, and a file that failed has one in a new VS Code. Each is printed with what failed first: a test that is named again and again
 * has a defect.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import Mocha from 'mocha';
import { root } from './paths.ts';

const named = process.argv.slice(2);
const failed = await run(named.length > 0 ? named : allFiles());
const isGreen = failed.length === 0 || (named.length === 0 && (await passAgain(failed)));
// As late as this: the package of PostgreSQL ends the process with 0 when nothing is left to do.
process.once('exit', () => {
  process.exitCode = isGreen ? 0 : 1;
});

function allFiles(): string[] {
  const folder = join(root, 'test', 'e2e');
  const names = readdirSync(folder).filter(name => name.endsWith('.test.ts'));
  return names.sort().map(name => join(folder, name));
}

/** Returns the files with a test or a hook that failed at both tries. */
async function run(files: readonly string[]): Promise<string[]> {
  const mocha = new Mocha({ timeout: 120_000, retries: 1, color: process.stdout.isTTY });
  for (const file of files) mocha.addFile(file);
  await mocha.loadFilesAsync();
  const failures = new Set<string>();
  await new Promise(resolve => {
    const runner = mocha.run(resolve);
    runner.on('retry', (test, error) => {
      console.log(`    (a second try of "${test.fullTitle()}": ${String(error.message).slice(0, 2_000)})`);
    });
    runner.on('fail', test => failures.add(fileOf(test)));
  });
  return [...failures];
}

function fileOf(test: Mocha.Runnable): string {
  const found = test.file ?? test.parent?.file;
  if (found) return found;
  throw new Error(`No file is known of "${test.fullTitle()}".`);
}

/** A process of its own: a module is loaded once, so the same files cannot be run again here. */
async function passAgain(files: readonly string[]): Promise<boolean> {
  console.log(`\nOnce more, in a new VS Code: ${files.map(file => relative(root, file)).join(', ')}`);
  const child = spawn(process.execPath, [import.meta.filename, ...files], { stdio: 'inherit' });
  const [code] = await once(child, 'close');
  return code === 0;
}
