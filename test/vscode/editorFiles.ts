/**
 * Runs the test files that are named with mocha, says what becomes of each test as it ends, and sends it all to the process that has
 * started this one. A test that fails is tried once more, unless `--second` says that this is the second try.
 */
import { parseArgs } from 'node:util';
import Mocha from 'mocha';
import { endEditors } from './editor.ts';
import { stopServers } from './server.ts';

/** What became of a test, or of a hook that failed. */
export interface Outcome {
  file: string;
  title: string;
  state: 'passed' | 'failed' | 'pending';
  isHook: boolean;
  seconds: number;
  /** What failed at the first of two tries. */
  firstError?: string;
  /** What failed at last. */
  error?: string;
}

// Editors are in process groups of their own, and would outlive this one when it is ended before its time.
const endAll = async (): Promise<void> => {
  await Promise.allSettled([endEditors(), stopServers()]);
  process.exit(1);
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, endAll);
process.once('disconnect', endAll);

const { values, positionals: files } = parseArgs({
  options: { second: { type: 'boolean', default: false } },
  allowPositionals: true,
});

const withoutMocha = Mocha.utils.stackTraceFilter();
const mocha = new Mocha({ timeout: 120_000, retries: values.second ? 0 : 1, reporter: Mocha.reporters.Base });
for (const file of files) mocha.addFile(file);
await mocha.loadFilesAsync();

const outcomes: Outcome[] = [];
const firstErrors = new Map<string, string>();
await new Promise(resolve => {
  const runner = mocha.run(resolve);
  runner.on('suite', suite => {
    if (suite.parent?.root) console.log(`\n${suite.title}`);
  });
  runner.on('retry', (test, error) => {
    firstErrors.set(test.fullTitle(), textOf(error));
    console.log(`  ? ${test.title}: ${textOf(error).slice(0, 2_000)}\n    It is tried once more.`);
  });
  runner.on('pass', test => note(test, 'passed'));
  runner.on('pending', test => note(test, 'pending'));
  runner.on('fail', (test, error) => note(test, 'failed', error));
});
await new Promise(resolve => process.send?.(outcomes, resolve));
// What a failed test has left must not keep this from ending.
await endAll();

function note(test: Mocha.Runnable, state: Outcome['state'], error?: Error): void {
  const file = test.file ?? test.parent?.file;
  if (!file) throw new Error(`No file is known of "${test.fullTitle()}".`);
  const title = test.fullTitle();
  const firstError = firstErrors.get(title);
  const seconds = (test.duration ?? 0) / 1_000;
  outcomes.push({
    file,
    title,
    state,
    isHook: test instanceof Mocha.Hook,
    seconds,
    ...(firstError !== undefined && { firstError }),
    ...(error && { error: textOf(error) }),
  });
  const mark = { passed: '✔', failed: '✘', pending: '-' }[state];
  console.log(`  ${mark} ${test.title} (${seconds.toFixed(1)} s)`);
  if (error) console.log(textOf(error).replaceAll(/^/gm, '      '));
}

function textOf(error: Error): string {
  return withoutMocha(error.stack ?? String(error));
}
