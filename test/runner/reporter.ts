/** A reporter of mocha: prints as `spec` does, and writes a line for each outcome into the file that `TELOS_TEST_OUTCOMES` names. */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import Mocha from 'mocha';
import type { Outcome } from './outcomes.ts';

export class OutcomeReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const file = process.env['TELOS_TEST_OUTCOMES'];
    if (file === undefined) return;
    const write = (state: Outcome['state'], test: Mocha.Runnable, error?: unknown): void => {
      const of = test.file ?? test.parent?.file;
      const outcome: Outcome = {
        state,
        title: test.fullTitle(),
        ...(of !== undefined && { file: relative(process.cwd(), of) }),
        ...('type' in test && test.type === 'hook' && { isHook: true }),
        ...(error !== undefined && { error: textOf(error) }),
        ms: test.duration ?? 0,
      };
      appendFileSync(file, `${JSON.stringify(outcome)}\n`);
    };
    runner.on('pass', test => write('passed', test));
    runner.on('fail', (test, error) => write('failed', test, error));
    runner.on('pending', test => write('skipped', test));
  }
}

/** From a worker process, an error arrives as an object of its fields. */
function textOf(error: unknown): string {
  const message = (error as { message?: unknown } | null)?.message;
  return (typeof message === 'string' ? message : String(error)).slice(0, 2_000);
}

// biome-ignore lint/style/noDefaultExport: mocha takes a reporter that is named by its file from there.
export { OutcomeReporter as default };
