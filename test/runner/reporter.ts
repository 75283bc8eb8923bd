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
    endAfterLast(runner, file);
  }
}

/** Long after the last test, on a slow machine too. */
const usualWaitMs = 30_000;

/** Ends the program some time after its last test, and writes down what kept it from ending by itself. */
function endAfterLast(runner: Mocha.Runner, file: string): void {
  const seen: { file: string; open: Map<string, number> }[] = [];
  runner.on('suite end', suite => {
    if (suite.parent?.root) seen.push({ file: relative(process.cwd(), suite.file ?? ''), open: openNow() });
  });
  runner.on('end', () => {
    const wait = Number(process.env['TELOS_TEST_WAIT_MS'] ?? usualWaitMs);
    const timer = setTimeout(() => {
      const left = [...openNow()].map(([kind, count]) => {
        const before = seen.findLastIndex(one => (one.open.get(kind) ?? 0) < count);
        const since = seen[before + 1]?.file;
        return `${count} ${kind}${since ? ` since ${since}` : ''}`;
      });
      const outcome: Outcome = { state: 'left', title: left.join(', '), ms: wait };
      appendFileSync(file, `${JSON.stringify(outcome)}\n`);
      process.exit();
    }, wait);
    timer.unref();
  });
}

/** Returns how many resources of each kind keep this process alive, but for its own output. */
function openNow(): Map<string, number> {
  const open = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo())
    if (kind !== 'PipeWrap' && kind !== 'TTYWrap') open.set(kind, (open.get(kind) ?? 0) + 1);
  return open;
}

/** From a worker process, an error arrives as an object of its fields. */
function textOf(error: unknown): string {
  const message = (error as { message?: unknown } | null)?.message;
  return (typeof message === 'string' ? message : String(error)).slice(0, 2_000);
}

// biome-ignore lint/style/noDefaultExport: mocha takes a reporter that is named by its file from there.
export { OutcomeReporter as default };
