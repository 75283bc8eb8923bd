import assert from 'node:assert/strict';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { breaksOf } from './breaks.ts';
import { drawTable } from './report.ts';
import { breaksFor, type Order, tryBreaks } from './tryBreaks.ts';

const source = `export function open(door: { locked: boolean; held: boolean }, tries: number): boolean {
  if (door.locked) return false;
  if (tries > 3 || door.held) {
    log.push('tried');
    return [tries].some(one => one === 0);
  }
  return door.held ? false : true;
}
export const log: string[] = [];
`;
const test = `import assert from 'node:assert/strict';
import { open } from '../src/door.ts';
it('stays shut while it is locked or held', () => {
  assert.equal(open({ locked: true, held: false }, 1), false);
  assert.equal(open({ locked: false, held: true }, 1), false);
  assert.equal(open({ locked: false, held: false }, 1), true);
});
`;
const loose = 'export const half = (size: number): number => (size < 0 ? 0 : size / 2);\n';

const folders: TempFolder[] = [];

describe('npm run mutate', () => {
  afterEach(() => {
    for (const folder of folders.splice(0)) folder.remove();
  });

  it('makes each kind of break, each of which changes one place', () => {
    const root = smallCheckout();
    const lines = breaksOf(root, ['src/door.ts'], ['tsconfig.json']).map(
      one => `${one.line} ${one.kind}: ${one.after}`,
    );
    assert.deepEqual(lines, [
      '2 guard: ;',
      '2 negate: if (!(door.locked)) return false;',
      '3 guard: ;',
      '3 and-or: if (((tries > 3) && (door.held))) {',
      '3 negate: if (!(tries > 3 || door.held)) {',
      '3 limit: if (tries >= 3 || door.held) {',
      '3 limit: if (tries > 4 || door.held) {',
      '4 statement: ;',
      '5 some-every: return [tries].every(one => one === 0);',
      '5 limit: return [tries].some(one => one === 1);',
      '7 negate: return !(door.held) ? false : true;',
    ]);
  });

  it('chooses the same breaks for the same seed, and others for another', () => {
    const order = orderFor(smallCheckout());
    assert.deepEqual(breaksFor(order), breaksFor(order));
    assert.notDeepEqual(breaksFor(order), breaksFor({ ...order, seed: 8 }));
    assert.deepEqual(breaksFor({ ...order, count: 2 }), breaksFor(order).slice(0, 2));
  });

  it('tells what a test notices from what none does, and leaves the checkout as it is', async () => {
    const root = smallCheckout();
    const breaks = breaksFor(orderFor(root));
    const [known] = breaks.filter(one => one.kind === 'statement');
    assert.ok(known);
    const equivalents = [
      { file: known.file, line: known.before, kind: known.kind, reason: 'nobody reads it' },
    ];
    const { tried, unusable } = await tryBreaks(
      root,
      breaks,
      equivalents,
      AbortSignal.timeout(100_000),
      () => {},
    );
    const outcomes = tried.map(({ one, outcome }) => `${one.file}:${one.line} ${one.kind} ${outcome}`);
    assert.ok(outcomes.includes('src/door.ts:2 guard noticed'), outcomes.join('\n'));
    assert.ok(outcomes.includes('src/door.ts:5 some-every survived'), outcomes.join('\n'));
    assert.ok(outcomes.includes('src/door.ts:4 statement equivalent'), outcomes.join('\n'));
    assert.ok(outcomes.includes('src/loose.ts:1 negate not covered'), outcomes.join('\n'));
    assert.equal(tried.length, breaks.length);
    assert.deepEqual(unusable, []);
    assert.equal(readFileSync(join(root, 'src/door.ts'), 'utf8'), source);
    assert.match(drawTable(tried), /^all +\d+ %/m);
  }).timeout(120_000);

  it('does not use a test that fails without a break', async () => {
    const root = smallCheckout();
    writeFileSync(join(root, 'test/door.test.ts'), test.replace('false }, 1), true', 'false }, 1), false'));
    const breaks = breaksFor({ ...orderFor(root), room: 'src/door.ts', count: 2 });
    const { tried, unusable } = await tryBreaks(root, breaks, [], AbortSignal.timeout(100_000), () => {});
    assert.deepEqual(
      tried.map(({ outcome }) => outcome),
      ['not covered', 'not covered'],
    );
    assert.deepEqual(unusable, ['test/door.test.ts (failed)']);
  }).timeout(120_000);
});

const orderFor = (root: string): Order => ({
  root,
  files: ['src/door.ts', 'src/loose.ts'],
  projects: ['tsconfig.json'],
  room: undefined,
  seed: 7,
  count: 100,
});

function smallCheckout(): string {
  const folder = tempFolder({
    'tsconfig.json': JSON.stringify({ compilerOptions: { noLib: true, types: [] }, include: ['src'] }),
    'package.json': JSON.stringify({ type: 'module' }),
    'src/door.ts': source,
    'src/loose.ts': loose,
    'test/door.test.ts': test,
    'webview/none.ts': '',
  });
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder.path, 'node_modules'));
  folders.push(folder);
  return folder.path;
}
