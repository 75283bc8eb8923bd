/** A process is killed before each single change that it makes: afterwards the old agent is there or the new one, whole, and the way back is open. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { loadConfig } from '../../../src/engine/config.ts';
import { contentsOf } from '../../../src/engine/files/folderRecord.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { verifyPacks } from '../../../src/packs/sources/locked.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { treeOf } from './treeOf.ts';

const source = fileURLToPath(new URL('killedProcess.ts', import.meta.url));
const skill = '---\ndescription: D\n---\nB';

describe('a process that is killed while it', function () {
  this.timeout(120_000);
  let folder: TempFolder;
  let built: TempFolder;
  let script: string;
  before(async () => {
    built = tempFolder();
    script = join(built.path, 'killed.mjs');
    // One file starts several times as fast, and it is started a hundred times.
    await build({
      entryPoints: [source],
      outfile: script,
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner: {
        js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
      },
    });
  });
  after(() => built.remove());
  beforeEach(() => {
    folder = tempFolder({
      'p/skills/s/SKILL.md': skill,
      'p/run.sh': '#!/bin/sh\n',
      'home/.skills/p/skills/mine/SKILL.md': 'mine',
      'home/.skills/p/notes.md': 'notes',
      'home/.skills/p/.git/config': 'mine too',
    });
    mkdirSync(target('empty'));
    symlinkSync('/nowhere', target('link'));
    chmodSync(target('notes.md'), 0o640);
  });
  afterEach(() => folder.remove());

  const target = (path = ''): string => join(folder.path, 'home/.skills/p', path);
  const open = (): Telos =>
    Telos.open(loadConfig({ env: {}, home: join(folder.path, 'home'), cwd: folder.path }));
  /** False when it came to its end. */
  const kill = (action: string, at: number): boolean => {
    const { signal, status } = spawnSync(process.execPath, [script, folder.path, action, String(at)], {
      stdio: 'inherit',
    });
    assert.ok(signal === 'SIGKILL' || status === 0, `${signal} ${status}`);
    return signal === 'SIGKILL';
  };

  /** Kills before the first change, the second and so on, each time in the same world, until there are no more. */
  async function atEachChange(action: string, check: (place: string) => Promise<void>): Promise<number> {
    const before = tempFolder();
    copyAll(folder.path, before.path);
    let at = 1;
    try {
      for (; kill(action, at); at++) {
        assert.ok(at < 200, 'it is never done');
        await check(`killed before change ${at}`);
        rmSync(join(folder.path, 'home'), { recursive: true });
        copyAll(before.path, folder.path);
      }
    } finally {
      before.remove();
    }
    return at;
  }

  /** With the times of folders too, which Node's own copy does not keep. */
  const copyAll = (from: string, to: string): void => {
    const { status } = spawnSync('cp', ['-a', join(from, 'home'), to], { stdio: 'inherit' });
    assert.equal(status, 0);
  };

  const leftovers = (): string[] => [
    // A lock file that was being written lies beside itself for an hour.
    ...readdirSync(join(folder.path, 'home/.skills')).filter(
      name => name !== 'p' && !name.startsWith('.telos-lock.json.') && name !== 'telos-lock.json',
    ),
    ...(existsSync(join(folder.path, 'home/.local/share/telos/replacing'))
      ? readdirSync(join(folder.path, 'home/.local/share/telos/replacing')).filter(
          name => !name.startsWith('.'),
        )
      : []),
  ];

  /** Folder and lock file agree, whenever it was killed. */
  const locked = async (): Promise<string[]> =>
    (await verifyPacks({ config: open().config })).map(({ name, state }) => `${name}: ${state}`);

  it('installs over another agent', async () => {
    const fresh = await contentsOf(join(folder.path, 'p'));
    const old = treeOf(target());
    const outcomes = new Set<string>();
    const kills = await atEachChange('install', async place => {
      await open().agents();
      assert.deepEqual(leftovers(), [], place);
      const telos = open();
      const [record] = await telos.replaced.list();
      if (treeOf(target()) === old) {
        outcomes.add('old');
        assert.equal(record, undefined, place);
        assert.deepEqual(await locked(), [], place);
        return;
      }
      outcomes.add('new');
      const now = await contentsOf(target());
      assert.deepEqual(Object.keys(now ?? {}), Object.keys(fresh ?? {}), place);
      assert.deepEqual(await locked(), ['p: same'], place);
      await telos.undoFolder(record!.id);
      assert.equal(treeOf(target()), old, place);
    });
    assert.ok(kills > 10, `${kills} changes`);
    assert.deepEqual([...outcomes], ['old', 'new']);
  });

  for (const action of ['uninstall', 'undo']) {
    it(`${action}s one`, async () => {
      const old = treeOf(target());
      if (action === 'undo') {
        const telos = open();
        await telos.install('p', { agreed: (await telos.planInstall('p')).token });
        cpSync(join(folder.path, 'p/run.sh'), target('edited'));
      }
      const put = treeOf(target());
      await atEachChange(action, async place => {
        await open().agents();
        assert.deepEqual(
          leftovers().filter(name => name !== 'p'),
          [],
          place,
        );
        const telos = open();
        const now = treeOf(target());
        if (action === 'undo') {
          assert.ok([old, put].includes(now), `${place}: ${now}`);
          const state = await telos.replaced.look((await telos.replaced.list()).at(-1)!.id);
          assert.equal(state.state, now === old ? 'undone' : 'edited', place);
          if (now !== old) return;
          await telos.undoFolder((await telos.replaced.list())[0]!.id, { force: true });
          assert.equal(treeOf(target()), put, place);
        } else if (now !== old) {
          assert.equal(now, 'nothing', place);
          await telos.undoFolder((await telos.replaced.list())[0]!.id);
          assert.equal(treeOf(target()), old, place);
        }
      });
    });
  }
});
