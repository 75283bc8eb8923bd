/** Runs every layer for `npm test`, even after one has failed, and ends with what failed and one line for each layer. */
import { spawn } from 'node:child_process';
import { findBox } from '../src/engine/box/findBox.ts';

interface LayerResult {
  name: string;
  ok: boolean;
  /** From mocha's own summary. Empty for the checks. */
  counts: string;
  /** What mocha says of the tests that failed, or the end of the output where mocha says nothing. Empty for a layer that passed. */
  failures: string;
  seconds: number;
}

const layers = [
  'check',
  'test:unit',
  'test:parts',
  'test:cli',
  'test:mcp',
  'test:conformance',
  'test:plan',
  'test:fleet',
  'test:host',
  'test:e2e',
  'test:adversarial',
  'test:faults',
  'test:real-skills',
];

/** Limit for one layer. No layer takes longer unless it hangs. In milliseconds. */
const layerLimitMs = 50 * 60_000;

const failureLimit = 6_000;

const results: LayerResult[] = [];
for (const name of layers) results.push(await runLayer(name));

// Repeated here, because the output of a whole run is long.
for (const { name, failures } of results) if (failures) console.log(`\n--- ${name} failed:\n${failures}`);

console.log(`\n${'layer'.padEnd(18)}${'result'.padEnd(10)}${'seconds'.padStart(7)}   tests`);
for (const { name, ok, seconds, counts } of results) {
  console.log(
    `${name.padEnd(18)}${(ok ? 'passed' : 'FAILED').padEnd(10)}${seconds.toFixed(1).padStart(7)}   ${counts}`,
  );
}
const box = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
if (!box.works) {
  const mend = box.mend === undefined ? '' : ` To run them: ${box.mend}`;
  console.log(`\nThe tests of the box did not run, but for what is promised without one: ${box.why}${mend}`);
}
const failed = results.filter(result => !result.ok).map(result => result.name);
console.log(failed.length === 0 ? '\nAll layers passed.' : `\nFailed: ${failed.join(', ')}.`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function runLayer(name: string): Promise<LayerResult> {
  console.log(`\n--- npm run ${name}`);
  const start = Date.now();
  const script = process.env['npm_execpath'];
  const [program, args] = script?.endsWith('npm-cli.js') ? [process.execPath, [script]] : ['npm', []];
  const child = spawn(program, [...args, 'run', '--silent', name], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: layerLimitMs,
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    process.stdout.write(chunk);
    text += chunk.toString();
  });
  const code = await new Promise<number | null>(resolve => {
    child.on('error', error => {
      console.error(`npm could not be started: ${error.message}`);
      resolve(null);
    });
    child.on('close', resolve);
  });
  const counts = text.match(/\d+ (?:passing|failing|pending)/g) ?? [];
  return {
    name,
    ok: code === 0,
    counts: counts.join(', '),
    failures: code === 0 ? '' : failuresIn(text),
    seconds: (Date.now() - start) / 1000,
  };
}

/** Returns at most `failureLimit` characters. */
function failuresIn(text: string): string {
  const at = text.search(/^ *\d+ failing/m);
  return at < 0 ? text.slice(-failureLimit) : text.slice(at, at + failureLimit);
}
