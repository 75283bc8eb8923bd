/** What was installed or removed comes back as it was, and what was edited in the meantime is never lost. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadConfig } from '../../../src/engine/config.ts';
import { ReplacedFolders } from '../../../src/engine/files/replacedFolders.ts';
import { discover } from '../../../src/engine/skills/discover.ts';
import { installPack, uninstallPack } from '../../../src/engine/skills/install.ts';
import { planInstall } from '../../../src/engine/skills/planInstall.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { treeOf } from '../skills/treeOf.ts';

const skill = '---\ndescription: D\n---\nB';
const day = 24 * 60 * 60 * 1000;

describe('ReplacedFolders', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'p/skills/s/SKILL.md': skill,
      'home/.skills/p/notes.md': 'mine',
      'home/.skills/p/skills/s/SKILL.md': skill,
    });
  });
  afterEach(() => folder.remove());

  const config = () => loadConfig({ env: {}, home: join(folder.path, 'home'), cwd: folder.path });
  const folders = () => new ReplacedFolders(config());
  const target = (path = '') => join(folder.path, 'home/.skills/p', path);
  const data = (path = '') => join(folder.path, 'home/.local/share/telos', path);
  const install = async (path = 'p'): Promise<string> => {
    const { token } = await planInstall(path, config());
    return (await installPack(path, config(), { agreed: token })).undoId ?? '';
  };

  it('takes back an install where nothing was before', async () => {
    rmSync(target(), { recursive: true });
    await folders().undo(await install());
    assert.equal(existsSync(target()), false);
    assert.deepEqual(readdirSync(data('installs')), []);
  });

  it('takes back the latest of several installs, and then the one before', async () => {
    const byHand = treeOf(target());
    const first = await install();
    const installed = treeOf(target());
    folder.add({ 'p/more': 'x' });
    const second = await install();
    assert.deepEqual(
      (await folders().list()).map(({ id }) => id),
      [second, first],
    );
    await folders().undo(second);
    assert.equal(treeOf(target()), installed);
    // It is known again where it came from.
    assert.equal((await planInstall('p', config())).replaces?.isSameSource, true);
    await folders().undo(first);
    assert.equal(treeOf(target()), byHand);
    assert.equal((await planInstall('p', config())).replaces?.origin.kind, 'by hand');
    assert.equal((await folders().look(first)).state, 'undone');
  });

  it('refuses where the agent was edited in the meantime; forced, it keeps that one too', async () => {
    const byHand = treeOf(target());
    const id = await install();
    folder.add({ 'home/.skills/p/own.md': 'later', 'home/.skills/p/skills/s/SKILL.md': 'edited' });
    const edited = treeOf(target());
    const { state, edits } = await folders().look(id);
    assert.deepEqual(
      [state, edits],
      [
        'edited',
        [
          { path: 'own.md', change: 'added' },
          { path: 'skills/s/SKILL.md', change: 'changed' },
        ],
      ],
    );
    await assert.rejects(folders().undo(id), /was edited in the meantime.*Nothing was changed/);
    assert.equal(treeOf(target()), edited);
    assert.equal((await folders().undo(id, { force: true })).editedKept, true);
    assert.equal(treeOf(target()), byHand);
    const [latest] = await folders().list();
    assert.equal(latest?.kind, 'undo');
    await folders().undo(latest?.id ?? '');
    assert.equal(treeOf(target()), edited);
  });

  it('brings an uninstalled agent back, unless another is in its place', async () => {
    const before = treeOf(target());
    const { undoId } = await uninstallPack('p', config());
    assert.equal(existsSync(target()), false);
    folder.add({ 'home/.skills/p/other.md': 'another' });
    await assert.rejects(folders().undo(undoId), /was replaced in the meantime/);
    await folders().undo(undoId, { force: true });
    assert.equal(treeOf(target()), before);
    await folders().undo((await folders().list())[0]?.id ?? '', { force: true });
    assert.deepEqual(readdirSync(target()), ['other.md']);
  });

  it('puts the entry of an agent of version 3 back, unless agents.toml was edited in the meantime', async () => {
    const toml = join(folder.path, 'home/.config/telos/agents.toml');
    const text = '# mine\n[agents.old]\nmode = "installed"\n\n[agents.k]\nskills_dir = "/v"\n';
    folder.add({
      'home/.config/telos/agents.toml': text,
      'home/.local/share/telos/agents/old/skills/s/SKILL.md': skill,
    });
    const first = await uninstallPack('old', config());
    await folders().undo(first.undoId);
    assert.equal(readFileSync(toml, 'utf8'), text);
    const second = await uninstallPack('old', config());
    writeFileSync(toml, '# edited\n');
    assert.deepEqual((await folders().undo(second.undoId)).leftAlone, [toml]);
    assert.equal(readFileSync(toml, 'utf8'), '# edited\n');
  });

  it('keeps a folder beside its place where the data folder is on another disk', async () => {
    // Where there is no second file system, it is the first.
    const other = existsSync('/dev/shm') ? mkdtempSync('/dev/shm/telos-test-') : folder.path;
    const away = { ...config(), dataDir: join(other, 'data') };
    try {
      const before = treeOf(target());
      const { token } = await planInstall('p', away);
      const { undoId = '' } = await installPack('p', away, { agreed: token });
      assert.deepEqual(
        discover(away).agents.map(({ name }) => name),
        ['p'],
      );
      await new ReplacedFolders(away).undo(undoId);
      assert.equal(treeOf(target()), before);
      await uninstallPack('p', away);
      await new ReplacedFolders(away).sweep(Date.now() + 31 * day);
      assert.deepEqual(readdirSync(join(folder.path, 'home/.skills')), []);
    } finally {
      if (other !== folder.path) rmSync(other, { recursive: true });
    }
  });

  it('gives up what is older than 30 days, and nothing else', async () => {
    const id = await install();
    const { kept } = (await folders().list())[0] ?? {};
    await folders().sweep(Date.now() + 29 * day);
    assert.equal((await folders().look(id)).state, 'ready');
    await folders().sweep(Date.now() + 31 * day);
    assert.deepEqual([await folders().list(), existsSync(kept ?? '')], [[], false]);
    assert.ok(existsSync(target('skills/s/SKILL.md')));
  });

  it('never takes a path out of an edited record for its own', async () => {
    const id = await install();
    folder.add({ 'victim/keep': 'x' });
    const file = data(`replaced/${id}/record.json`);
    const record = JSON.parse(readFileSync(file, 'utf8'));
    for (const kept of [join(folder.path, 'victim'), '../victim', 7]) {
      writeFileSync(file, JSON.stringify({ ...record, kept }));
      await folders().sweep(Date.now() + 31 * day);
      assert.ok(existsSync(join(folder.path, 'victim/keep')));
      folder.add({ [`home/.local/share/telos/replaced/${id}/record.json`]: '{' });
    }
    assert.deepEqual(await folders().list(), []);
  });
});

describe('installs of several processes at once', function () {
  this.timeout(120_000);

  it('lose no entry of the lock file, nor of that of ClawHub', async () => {
    const { path, remove } = tempFolder();
    try {
      const source = new URL('../../../src/engine/', import.meta.url).href;
      const [processes, each] = [4, 15];
      const script = (own: number): string => `
        import { putAlong } from '${source}files/swapFolder.ts';
        import { clawhubChanges } from '${source}skills/clawhubFiles.ts';
        import { lockChange } from '${source}skills/lockFile.ts';
        const resolved = { kind: 'clawhub', registry: 'https://example.com', slug: 's', version: '1.0.0' };
        const entry = { source: 's', resolved: { kind: 'folder', path: '/s' }, digest: '', files: {}, leftOut: [], pinned: false, installedAt: '2026-01-01T00:00:00Z' };
        for (let index = 0; index < ${each}; index++) {
          const name = 'p${own}-' + index;
          const left = await putAlong([
            { file: ${JSON.stringify(join(path, 'telos-lock.json'))}, before: null, after: JSON.stringify(entry), entry: name },
            ...clawhubChanges(name, resolved, ${JSON.stringify(path)}),
          ]);
          if (left.length > 0) throw new Error(left.join());
        }`;
      const ended = Array.from({ length: processes }, (_, own) =>
        promisify(execFile)(process.execPath, ['--input-type=module', '-e', script(own)]),
      );
      await Promise.all(ended);
      const read = (file: string) => JSON.parse(readFileSync(join(path, file), 'utf8'));
      assert.equal(Object.keys(read('telos-lock.json').packs).length, processes * each);
      assert.equal(Object.keys(read('.clawhub/lock.json').skills).length, processes * each);
      assert.deepEqual(readdirSync(join(path, '.clawhub')), ['lock.json']);
    } finally {
      remove();
    }
  });
});
