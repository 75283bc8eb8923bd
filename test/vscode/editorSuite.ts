/**
 * Runs `test/e2e` with mocha: `--part day`, `--part night`, the files that are named, or all. `npm test` tries files with a failed test
 * once more, in a new VS Code, when nothing else runs.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import Mocha from 'mocha';
import { filesOf } from '../e2e/parts.ts';
import { OutcomeReporter } from '../runner/reporter.ts';
import { endEditors } from './editor.ts';
import { stopServers } from './server.ts';

const { values, positionals } = parseArgs({
  options: { part: { type: 'string' } },
  allowPositionals: true,
});
const { part } = values;
if (part !== undefined && part !== 'day' && part !== 'night') {
  console.error('Usage: node test/vscode/editorSuite.ts [--part day|night | FILE...]');
  process.exit(2);
}
if (part === 'night') process.env['TELOS_WALK'] = '1';

// Editors are in process groups of their own, and would outlive this one when it is ended before its time.
const endAll = async (code: number): Promise<void> => {
  await Promise.allSettled([endEditors(), stopServers()]);
  process.exit(code);
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => endAll(1));

const mocha = new Mocha({ timeout: 120_000, reporter: OutcomeReporter });
for (const file of positionals.length > 0 ? positionals : filesOf(part)) mocha.addFile(resolve(file));
await mocha.loadFilesAsync();
const failures = await new Promise<number>(ended => mocha.run(ended));
// What a failed test has left must not keep this from ending.
await endAll(failures > 0 ? 1 : 0);
