/** What the suite of the editor says of tests that fail, of those that pass at their second try, and of hooks. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { resultsOf } from '../runner/outcomes.ts';
import { root } from '../vscode/paths.ts';

/** Notes each try, and fails those before the given one. */
const helper = `
import { appendFileSync, readFileSync } from 'node:fs';
export function passesAt(name, count) {
  const file = new URL(name, import.meta.url);
  appendFileSync(file, 'x');
  const tries = readFileSync(file, 'utf8').length;
  if (tries < count) throw new Error(\`\${name} at try \${tries}\`);
}
`;
const tests = `
import { passesAt } from './helper.mjs';
describe('the barrel', () => {
  it('is full', () => passesAt('full', 1));
  it('is flaky', () => passesAt('flaky', 2));
  it('leaks', () => passesAt('leaks', 3));
  it('is left out', function () { this.skip(); });
});
`;
const hooks = `
import { passesAt } from './helper.mjs';
describe('the garden', () => {
  before(() => passesAt('opens', 2));
  it('grows', () => passesAt('grows', 1));
});
describe('the shed', () => {
  it('was flaky before', () => passesAt('shed', 2));
});
`;
const closed = `
import { passesAt } from './helper.mjs';
describe('the cellar', () => {
  before(() => passesAt('cellar', 3));
  it('is dark', () => passesAt('dark', 1));
});
`;

describe('the suite of the editor', function () {
  this.timeout(60_000);
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'helper.mjs': helper,
      'tests.test.mjs': tests,
      'hooks.test.mjs': hooks,
      'closed.test.mjs': closed,
    });
  });
  afterEach(() => folder.remove());

  const triesOf = (name: string): number => readFileSync(join(folder.path, name), 'utf8').length;

  /** Runs the files; returns the exit code and what was printed. */
  async function suite(...names: readonly string[]): Promise<{ code: number; said: string }> {
    const program = join(root, 'test', 'vscode', 'editorSuite.ts');
    const files = names.map(name => join(folder.path, `${name}.test.mjs`));
    const env = { ...process.env, TELOS_TEST_OUTCOMES: join(folder.path, 'outcomes') };
    return promisify(execFile)(process.execPath, [program, ...files], { env }).then(
      ({ stdout }) => ({ code: 0, said: stdout }),
      ({ code, stdout }) => ({ code, said: stdout }),
    );
  }

  it('names a test as flaky that passes at its second try, and tries none a third time', async () => {
    const { code, said } = await suite('tests');
    assert.equal(code, 1);
    assert.deepEqual(said.match(/^flaky: .*$/gm), [
      'flaky: the barrel is flaky: Error: flaky at try 1 (failed at first, passed at its second try)',
    ]);
    assert.match(said, /\n {2}2 passing \(\d+s\)\n {2}1 pending\n {2}1 flaky\n {2}1 failing\n/);
    assert.match(said, /1\) the barrel leaks:\n.*leaks at try 1[\s\S]*leaks at try 2/);
    assert.deepEqual(['full', 'flaky', 'leaks'].map(triesOf), [1, 2, 2]);
    const told = resultsOf(readFileSync(join(folder.path, 'outcomes'), 'utf8'));
    assert.deepEqual(told.passedTitles, ['the barrel is full', 'the barrel is flaky']);
    const titlesOf = (all: readonly { title: string }[]): string[] => all.map(({ title }) => title);
    assert.deepEqual([told.flaky, told.failed, told.skipped].map(titlesOf), [
      ['the barrel is flaky'],
      ['the barrel leaks'],
      ['the barrel is left out'],
    ]);
  });

  it('takes a file again whose hook failed, says that it did, and keeps what was flaky in it', async () => {
    const { code, said } = await suite('hooks');
    assert.equal(code, 0, said);
    assert.deepEqual(said.match(/^flaky: .*: Error/gm)?.sort(), [
      'flaky: the garden "before all" hook for "grows": Error',
      'flaky: the shed was flaky before: Error',
    ]);
    assert.match(said, /\n {2}2 passing .*\n {2}2 flaky\n$/);
    assert.deepEqual(['opens', 'grows', 'shed'].map(triesOf), [2, 1, 3]);
  });

  it('fails where a hook fails twice', async () => {
    const { code, said } = await suite('closed');
    assert.equal(code, 1);
    assert.match(said, /\n {2}0 passing .*\n {2}1 failing\n[\s\S]*the cellar "before all" hook/);
    assert.equal(triesOf('cellar'), 2);
  });
});
