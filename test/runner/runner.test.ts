/** The runner of the layers, on small layers of its own. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { rememberFlakes } from './flakes.ts';
import { type LayerResult, runLayer } from './layerRun.ts';
import { resultsInText } from './outcomes.ts';
import { secondTry } from './secondTry.ts';
import { budgetsOf, drawSummary } from './summary.ts';
import { drawTable, type Layer, layers } from './table.ts';

const layerOf = (command: Layer['command']): Layer => ({
  name: 'unit',
  shows: 'a layer of this test',
  lane: 'computes',
  when: 'day',
  needsBuild: false,
  command,
  budget: { day: 1, night: 1 },
});

const result = (fields: Partial<LayerResult>): LayerResult => ({
  name: 'unit',
  ok: true,
  ended: true,
  passed: 1,
  passedTitles: [],
  failed: [],
  skipped: [],
  flaky: [],
  wallSeconds: 1,
  cpuSeconds: 1,
  log: 'unit.log',
  ...fields,
});

const summary = (results: LayerResult[], notRun: string[] = []): string =>
  drawSummary({ results, isNight: false, flakes: new Map(), tooFlaky: [], notRun });

describe('the runner of the layers', () => {
  const folder = tempFolder();
  after(() => folder.remove());

  function mochaLayer(name: string, body: string): Layer {
    const file = join(folder.path, `${name}.test.mjs`);
    writeFileSync(file, body);
    return layerOf({ kind: 'mocha', specs: [file], testLimitMs: 5_000 });
  }

  it('counts what passed, failed and was skipped, with the first error', async () => {
    const layer = mochaLayer(
      'three',
      `describe('a', () => { it('holds', () => {}); it('breaks', () => { throw new Error('the reason\\nmore'); }); it.skip('waits'); });`,
    );
    const seen = await runLayer(layer, { folder: folder.path, isNight: false });
    assert.equal(seen.ok, false);
    assert.deepEqual([seen.passed, seen.skipped.map(one => one.title)], [1, ['a waits']]);
    assert.deepEqual(
      seen.failed.map(({ title, error }) => [title, error]),
      [['a breaks', 'the reason\nmore']],
    );
    const text = summary([seen]);
    assert.match(text, /unit: a breaks\n {4}the reason more/);
    assert.match(text, /^1 passed, 1 failed, 1 skipped$/m);
  });

  it('says that a test is flaky which fails and then passes, with both outcomes', async () => {
    const mark = JSON.stringify(join(folder.path, 'mark'));
    const layer = mochaLayer(
      'flaky',
      `import fs from 'node:fs';
       it('now and then', () => { if (!fs.existsSync(${mark})) { fs.writeFileSync(${mark}, ''); throw new Error('not yet'); } });
       it('never', () => { throw new Error('no'); });`,
    );
    const first = await runLayer(layer, { folder: folder.path, isNight: false });
    const then = await secondTry(layer, first, { folder: folder.path, isNight: false });
    assert.deepEqual(then?.flaky, [{ title: 'now and then', firstError: 'not yet' }]);
    assert.deepEqual([then?.ok, then?.failed.map(one => one.title)], [false, ['never']]);
    assert.match(summary([then!]), /Flaky: failed, then passed:\n {2}unit: now and then .*not yet/);
  });

  it('takes a file again whose hook failed, with the tests that it kept from running', async () => {
    const mark = JSON.stringify(join(folder.path, 'opened'));
    const layer = mochaLayer(
      'hooks',
      `import fs from 'node:fs';
       describe('the garden', () => {
         before(() => { if (!fs.existsSync(${mark})) { fs.writeFileSync(${mark}, ''); throw new Error('closed'); } });
         it('grows', () => {});
       });
       it('rains', () => {});`,
    );
    const first = await runLayer(layer, { folder: folder.path, isNight: false });
    assert.deepEqual([first.ok, first.passedTitles], [false, ['rains']]);
    const then = await secondTry(layer, first, { folder: folder.path, isNight: false });
    assert.deepEqual([then?.ok, then?.failed, then?.passedTitles], [true, [], ['rains', 'the garden grows']]);
    assert.deepEqual(then?.flaky, [
      { title: 'the garden "before all" hook for "grows"', firstError: 'closed' },
    ]);
  });

  it('fails where a hook fails twice', async () => {
    const layer = mochaLayer(
      'cellar',
      `describe('the cellar', () => { before(() => { throw new Error('closed'); }); it('is dark', () => {}); }); it('rains', () => {});`,
    );
    const first = await runLayer(layer, { folder: folder.path, isNight: false });
    const then = await secondTry(layer, first, { folder: folder.path, isNight: false });
    assert.deepEqual(
      [then?.ok, then?.failed.map(one => one.title)],
      [false, ['the cellar "before all" hook for "is dark"']],
    );
  });

  it('tries the files of the editor once more, too', async () => {
    const mark = JSON.stringify(join(folder.path, 'shown'));
    const file = join(folder.path, 'view.test.mjs');
    writeFileSync(
      file,
      `import fs from 'node:fs';
       it('shows', () => { if (!fs.existsSync(${mark})) { fs.writeFileSync(${mark}, ''); throw new Error('not yet'); } });`,
    );
    const layer = layerOf({ kind: 'node', args: ['test/vscode/editorSuite.ts', file], prints: 'mocha' });
    const first = await runLayer(layer, { folder: folder.path, isNight: false });
    const then = await secondTry(layer, first, { folder: folder.path, isNight: false });
    assert.deepEqual([first.ok, then?.ok, then?.flaky[0]?.title], [false, true, 'shows']);
  });

  it('has no second try for a layer that ended before its last test', async () => {
    const layer = mochaLayer(
      'crash',
      `it('breaks', () => { throw new Error('no'); }); it('ends all', () => { process.kill(process.pid, 'SIGKILL'); });`,
    );
    const seen = await runLayer(layer, { folder: folder.path, isNight: false });
    assert.equal(seen.ok, false);
    assert.equal(await secondTry(layer, seen, { folder: folder.path, isNight: false }), undefined);
  });

  it('fails a layer without a test', async () => {
    const seen = await runLayer(mochaLayer('none', ''), { folder: folder.path, isNight: false });
    assert.equal(seen.ok, false);
    assert.match(summary([seen]), /unit: It ran no test\./);
  });

  it('ends a layer whose tests leave something open, and names it; the night fails for it', async () => {
    const layer = mochaLayer(
      'door',
      `import { createServer } from 'node:http'; describe('a door', () => { it('opens', done => { createServer().listen(0, '127.0.0.1', done); }); });`,
    );
    const options = { folder: folder.path, isNight: false, waitMs: 200 };
    const [day, night] = [
      await runLayer(layer, options),
      await runLayer(layer, { ...options, isNight: true }),
    ];
    assert.deepEqual([day.ok, day.ended, day.passed], [true, true, 1]);
    assert.match(day.left ?? '', /^1 TCPServerWrap since .*door\.test\.mjs$/);
    assert.match(summary([day]), /Left open after the last test:\n {2}unit: 1 TCPServerWrap since/);
    assert.deepEqual([night.ok, night.why], [false, `It left open: ${night.left}.`]);
    const broken = mochaLayer(
      'brokenDoor',
      `import { createServer } from 'node:http'; it('opens', done => { createServer().listen(0, '127.0.0.1', done); }); it('breaks', () => { throw new Error('no'); });`,
    );
    const red = await runLayer(broken, options);
    assert.deepEqual([red.ok, red.passed, red.failed.map(one => one.title)], [false, 1, ['breaks']]);
  });

  it('stops a layer that hangs, and what it started', async () => {
    const script = join(folder.path, 'hang.mjs');
    const pidFile = join(folder.path, 'pid');
    writeFileSync(
      script,
      `import { spawn } from 'node:child_process'; import fs from 'node:fs';
       const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
       fs.writeFileSync(${JSON.stringify(pidFile)}, String(child.pid)); setInterval(() => {}, 1000);`,
    );
    const layer = layerOf({ kind: 'node', args: [script], prints: 'nothing' });
    const seen = await runLayer(layer, { folder: folder.path, isNight: false, limitMs: 4_000 });
    assert.deepEqual([seen.ok, seen.ended], [false, false]);
    assert.match(seen.why ?? '', /did not end within .* and was stopped/);
    const pid = Number(readFileSync(pidFile, 'utf8'));
    await eventually(() => assert.throws(() => process.kill(pid, 0)));
  });

  it('reads what mocha prints inside of VS Code', () => {
    const text = `  2 passing (3s)\n  1 pending\n  1 failing\n\n  1) the view\n       opens:\n\n      AssertionError: it did not\n      + expected\n`;
    const { passed, failed, skipped } = resultsInText(text);
    assert.deepEqual(
      [passed, skipped.length, failed[0]?.title, failed[0]?.error],
      [2, 1, 'the view opens', 'AssertionError: it did not + expected'],
    );
  });

  it('remembers ten runs, and starts anew where the file is broken', () => {
    mkdirSync(join(folder.path, 'cache'));
    const file = join(folder.path, 'cache', 'flaky.json');
    writeFileSync(file, '{');
    assert.equal(rememberFlakes(['a test'], file).get('a test'), 1);
    assert.equal(rememberFlakes(['a test'], file).get('a test'), 2);
    for (let run = 0; run < 9; run++) rememberFlakes([], file);
    assert.equal(rememberFlakes(['a test'], file).get('a test'), 1);
  });

  it('measures what a layer may take by the type check of the same run', () => {
    const [, unit] = budgetsOf(
      [result({ name: 'types', cpuSeconds: 10 }), result({ cpuSeconds: 10_000 })],
      false,
    );
    assert.equal(unit?.over, true);
    const slower = [result({ name: 'types', cpuSeconds: 9_000 }), result({ cpuSeconds: 10_000 })];
    assert.equal(budgetsOf(slower, false)[1]?.over, false);
  });

  it('ends with at most 100 lines', () => {
    const failed = Array.from({ length: 300 }, (_, at) => ({
      state: 'failed' as const,
      title: `test ${at}`,
      error: 'one\ntwo\nthree',
      ms: 1,
    }));
    const flaky = failed.map(({ title }) => ({ title, firstError: 'one\ntwo' }));
    const results = layers.map(({ name }) => result({ name, ok: false, failed, flaky, skipped: failed }));
    const text = summary(
      results,
      failed.map(one => one.title),
    );
    assert.ok(text.split('\n').length <= 100, `${text.split('\n').length} lines`);
  });

  it('lists each layer once', () => {
    const listed = drawTable()
      .split('\n')
      .map(line => line.split(/ +/)[2]);
    for (const { name } of layers) assert.equal(listed.filter(one => one === name).length, 1, name);
  });
});
