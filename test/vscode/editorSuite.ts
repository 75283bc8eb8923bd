/**
 * Runs `test/e2e` with mocha: `--part day`, `--part night`, the files that are named, or all. A test that failed has one second try in
 * the same window, and a file in which nothing but a hook failed has one in a new VS Code. What passes then is printed as flaky, with
 * what failed first, and counted.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { filesOf } from '../e2e/parts.ts';
import type { Outcome as TestOutcome } from '../runner/outcomes.ts';
import type { Outcome } from './editorFiles.ts';
import { root } from './paths.ts';

const { values, positionals } = parseArgs({
  options: { part: { type: 'string' } },
  allowPositionals: true,
});
const { part } = values;
if (part !== undefined && part !== 'day' && part !== 'night') {
  console.error('Usage: node test/vscode/editorSuite.ts [--part day|night | FILE...]');
  process.exit(2);
}

const began = performance.now();
const first = await run(positionals.length > 0 ? positionals.map(file => resolve(file)) : filesOf(part));
const again = withFailedHooks(first);
const outcomes = again.length > 0 ? taken(first, again, await run(again, '--second')) : first;
report(outcomes);
handOver(outcomes);
process.exitCode = outcomes.some(({ state }) => state === 'failed') ? 1 : 0;

/** Runs files in a process of its own: a module is loaded once, so a second try needs another one. */
async function run(files: readonly string[], ...flags: readonly string[]): Promise<Outcome[]> {
  const env = { ...process.env, ...(part === 'night' && { TELOS_WALK: '1' }) };
  const child = fork(join(import.meta.dirname, 'editorFiles.ts'), [...flags, ...files], { env });
  let told: Outcome[] | undefined;
  const end = (): void => void child.kill();
  process.once('SIGTERM', end);
  child.on('message', message => {
    told = message as Outcome[];
  });
  const [code, signal] = await once(child, 'close');
  if (told) return told;
  const error = `The process of the tests ended with ${signal ?? code} before all had run.`;
  return [{ file: '', title: 'the tests of the editor', state: 'failed', isHook: false, seconds: 0, error }];
}

/** Returns the files in which nothing but hooks failed. A test that failed twice has had its tries. */
function withFailedHooks(all: readonly Outcome[]): string[] {
  const failed = all.filter(({ state }) => state === 'failed');
  const files = new Set(failed.flatMap(({ file, isHook }) => (isHook ? [file] : [])));
  for (const { file, isHook } of failed) if (!isHook) files.delete(file);
  return [...files];
}

/** Returns what holds once files were taken again: of them the second outcomes, beside what failed first. */
function taken(before: readonly Outcome[], files: readonly string[], second: readonly Outcome[]): Outcome[] {
  const isAgain = ({ file }: Outcome): boolean => files.includes(file);
  const mended = before
    .filter(outcome => isAgain(outcome) && outcome.state === 'failed')
    .filter(({ file }) => !second.some(outcome => outcome.file === file && outcome.state === 'failed'))
    .map(hook => ({ ...hook, state: 'passed' as const, firstError: hook.error ?? '' }));
  // A test that was flaky before its file was taken again still was.
  const firstErrors = new Map(before.map(({ title, firstError }) => [title, firstError]));
  const now = second.map(outcome => {
    const firstError = firstErrors.get(outcome.title);
    return firstError === undefined ? outcome : { ...outcome, firstError };
  });
  return [...before.filter(outcome => !isAgain(outcome)), ...now, ...mended];
}

/** Writes the outcomes where `npm test` wants them, as its own reporter does. */
function handOver(all: readonly Outcome[]): void {
  const into = process.env['TELOS_TEST_OUTCOMES'];
  if (into === undefined) return;
  const lines = all.flatMap(({ file, title, state, isHook, seconds, firstError, error }): TestOutcome[] => {
    const test = { title, file: relative(root, file), ms: seconds * 1_000 };
    const tried = firstError === undefined ? [] : [{ ...test, state: 'tried' as const, error: firstError }];
    if (isHook && state === 'passed') return tried;
    return [...tried, { ...test, state: state === 'pending' ? 'skipped' : state, ...(error && { error }) }];
  });
  writeFileSync(into, lines.map(line => `${JSON.stringify(line)}\n`).join(''));
}

/** Prints the seconds of each file, each flaky test on a line of its own, and mocha's usual summary. */
function report(all: readonly Outcome[]): void {
  console.log('\nSeconds of the tests, without their hooks:');
  const seconds = new Map<string, number>();
  for (const outcome of all) seconds.set(outcome.file, (seconds.get(outcome.file) ?? 0) + outcome.seconds);
  for (const [file, sum] of seconds)
    console.log(`  ${basename(file).padEnd(32)}${sum.toFixed(1).padStart(7)}`);
  const flaky = all.filter(({ state, firstError }) => state === 'passed' && firstError !== undefined);
  for (const { title, firstError = '' } of flaky)
    console.log(`flaky: ${title}: ${firstError.split('\n')[0]} (failed at first, passed at its second try)`);
  const of = (state: Outcome['state']): Outcome[] =>
    all.filter(outcome => outcome.state === state && !(state === 'passed' && outcome.isHook));
  console.log(`\n  ${of('passed').length} passing (${Math.round((performance.now() - began) / 1_000)}s)`);
  if (of('pending').length > 0) console.log(`  ${of('pending').length} pending`);
  if (flaky.length > 0) console.log(`  ${flaky.length} flaky`);
  if (of('failed').length > 0) console.log(`  ${of('failed').length} failing`);
  for (const [index, { title, firstError, error }] of of('failed').entries()) {
    const before =
      firstError === undefined ? '' : `\n     At the first try: ${firstError}\n     At the second:`;
    console.log(`\n  ${index + 1}) ${title}:${before}\n     ${error?.replaceAll('\n', '\n     ')}`);
  }
}
