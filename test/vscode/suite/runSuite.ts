/** Mocha as a function, because an extension host has no command line. */
import { format } from 'node:util';
import Mocha from 'mocha';

/** Stands before each line of the report, so that it can be told from everything else that the host writes. */
export const reportMark = '[suite] ';

/** Loads each test file, then runs them all. Rejects when a test has failed, and when there was none. */
export async function runSuite(loads: readonly (() => Promise<unknown>)[]): Promise<void> {
  Mocha.reporters.Base.consoleLog = (...args: unknown[]) => {
    for (const line of format(...args).split('\n')) console.log(`${reportMark}${line}`);
  };
  const mocha = new Mocha({ ui: 'bdd', reporter: 'spec', color: false, timeout: 60_000 });
  // Makes `describe` and `it` known to the files that load next.
  mocha.suite.emit('pre-require', globalThis, '', mocha);
  for (const load of loads) await load();
  if (mocha.suite.total() === 0) throw new Error('The suite holds no test.');
  const failures = await new Promise<number>(resolve => mocha.run(resolve));
  if (failures > 0) throw new Error(`${failures} of the tests in the extension host failed.`);
}
