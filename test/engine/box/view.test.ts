/** What is hidden and read-only in the box, as data. */
import assert from 'node:assert/strict';
import { renameSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { FolderNames } from '../../../src/engine/box/folderNames.ts';
import { profileOf } from '../../../src/engine/box/seatbelt.ts';
import { inOrder, type Place } from '../../../src/engine/box/view.ts';
import known from '../../../src/engine/files/knownNames.json' with { type: 'json' };
import { isSensitive, obeyedAt } from '../../../src/engine/files/sensitiveNames.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('names in a folder of the box', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());
  const namesOf = async (names: FolderNames): Promise<string[]> =>
    ((await names.look()) ?? [])
      .map(({ kind, path }) => `${kind} ${path.slice(folder.path.length + 1)}`)
      .sort();

  it('are found at any depth, but not behind a link or in what was installed', async () => {
    folder.add({
      '.env': '',
      'a/b/.git/config': '',
      'a/.vscode/settings.json': '',
      'a/.vscode/.env': '',
      'keys/.ssh/id_rsa': '',
      'node_modules/x/.env': '',
      'package.json': '',
      Makefile: '',
      'docs/AGENTS.md': '',
      'docs/.env.example': '',
    });
    symlinkSync('.env', join(folder.path, 'link.pem'));
    assert.deepEqual(await namesOf(new FolderNames(folder.path)), [
      'obeyed a/.vscode',
      'obeyed docs/AGENTS.md',
      'repository a/b/.git',
      'secret .env',
      'secret a/.vscode/.env',
      'secret keys/.ssh',
    ]);
  });

  it('are all that the table knows by several names, however deep', async () => {
    const lines = [
      ...known.secret.places,
      ...known.agents.anywhere,
      ...known.programs.flatMap(({ anywhere = [] }: { anywhere?: string[] }) => anywhere),
    ];
    const several = lines.flatMap(line => line.split(' ')).filter(place => place.includes('/'));
    const paths = several.map(
      (place, at) => `${at}/deep/${place.replaceAll('+', ' ').replace(/[*?]/g, 'x')}`,
    );
    for (const path of paths) folder.add({ [path]: '' });
    const marked = ((await new FolderNames(folder.path).look()) ?? []).map(({ path }) => path);
    const isWritten = (path: string): boolean =>
      obeyedAt(path, path)?.by === 'package managers' ||
      obeyedAt(path, path)?.by === 'builds, tests and linters';
    const missed = paths
      .map(path => join(folder.path, path))
      .filter(
        path =>
          !marked.some(each => `${path}/`.startsWith(`${each}/`)) && (isSensitive(path) || !isWritten(path)),
      );
    assert.deepEqual(missed, []);
    assert.ok(several.length > 60);
  });

  it('are those of now, also right after a look', async () => {
    folder.add({ 'a/b/c.txt': '' });
    const names = new FolderNames(folder.path);
    assert.deepEqual(await namesOf(names), []);
    for (let round = 0; round < 20; round++) {
      renameSync(join(folder.path, 'a/b/c.txt'), join(folder.path, 'a/b/.env'));
      assert.deepEqual(await namesOf(names), ['secret a/b/.env']);
      renameSync(join(folder.path, 'a/b/.env'), join(folder.path, 'a/b/c.txt'));
      assert.deepEqual(await namesOf(names), []);
    }
    const old = new Date(Date.now() - 60_000);
    utimesSync(join(folder.path, 'a/b'), old, old);
    assert.deepEqual(await namesOf(names), []);
    folder.add({ 'a/b/.netrc': '' });
    utimesSync(join(folder.path, 'a/b'), old, old);
    assert.deepEqual(await namesOf(names), ['secret a/b/.netrc'], 'a time that was set back hides nothing');
  });
});

const shown = (places: readonly Place[]): string[] =>
  inOrder(places).map(({ kind, path }) => `${kind} ${path}`);

describe('places of the box', () => {
  it('come from the outermost to the innermost, and the later of two counts', () => {
    const places: Place[] = [
      { kind: 'write', path: '/home/a/work/.git', isInWork: true },
      { kind: 'read', path: '/home/a/work/.git/config', isInWork: true },
      { kind: 'read', path: '/home/a/work' },
      { kind: 'hidden', path: '/home/a/work/.env', isFolder: false },
      { kind: 'read', path: '/home/a/work/docs' },
      { kind: 'write', path: '/home/a/work' },
      { kind: 'write', path: '/home/a/work/src' },
      { kind: 'hidden', path: '/home/a/work/.ssh', isFolder: true },
      { kind: 'read', path: '/home/a/work/.ssh/config' },
    ];
    assert.deepEqual(shown(places), [
      'write /home/a/work',
      'write /home/a/work/.git',
      'hidden /home/a/work/.env',
      'read /home/a/work/docs',
      'hidden /home/a/work/.ssh',
      'read /home/a/work/.git/config',
    ]);
  });
});

describe('the profile of Seatbelt', () => {
  it('allows the places in their order, and nothing else', () => {
    const profile = profileOf([
      { kind: 'read', path: '/usr' },
      { kind: 'write', path: '/Users/a/"work" \\' },
      { kind: 'write', path: '/Users/a/"work" \\/.git', isInWork: true },
      { kind: 'hidden', path: '/Users/a/"work" \\/.env', isFolder: false },
      { kind: 'write', path: '/tmp', from: '/Users/a/data/tmp' },
    ]);
    assert.match(profile, /^\(version 1\)\n\(deny default\)\n/);
    assert.doesNotMatch(profile, /network|tty|\(allow default|\(subpath "\/tmp"/);
    const [work, git] = ['/Users/a/\\"work\\" \\\\', '/Users/a/\\"work\\" \\\\/.git'];
    assert.deepEqual(
      profile
        .split('\n')
        .filter(line => !line.includes('(regex '))
        .slice(-10),
      [
        '(allow file-read* (subpath "/usr"))',
        '(deny file-write* (subpath "/usr"))',
        `(allow file-read* file-write* (subpath "${work}"))`,
        `(allow file-read* file-write* (subpath "${git}"))`,
        `(deny file-write-unlink (literal "${git}"))`,
        ...['config', 'config.worktree', 'hooks', 'commondir'].map(
          name => `(deny file-write* (subpath "${git}/${name}"))`,
        ),
        `(deny file-read* file-write* (subpath "${work}/.env"))`,
        '(allow file-read* file-write* (subpath "/Users/a/data/tmp"))',
      ].slice(-10),
    );
    for (const line of profile.split('\n')) assert.match(line, /^\(.*\)$/, line);
  });

  it('refuses names that others obey, whether they are there or not, in any letters, and no others', () => {
    const profile = profileOf([{ kind: 'write', path: '/Users/a.b/work' }]);
    const rules = [...profile.matchAll(/^\(deny file-write\* \(regex #"(.*)"\)\)$/gm)].map(
      ([, rule = '']) => rule,
    );
    const isRefused = (path: string): boolean => rules.some(rule => new RegExp(rule).test(path));
    for (const name of [
      '.vscode/tasks.json',
      'sub/.VSCode/x',
      'AGENTS.md',
      '.git/hooks/x',
      '.github/ci.yml',
      '.zshrc',
    ])
      assert.ok(isRefused(`/Users/a.b/work/${name}`), name);
    for (const name of ['src/index.ts', 'package.json', 'Makefile', 'docs/agents.txt'])
      assert.ok(!isRefused(`/Users/a.b/work/${name}`), name);
    assert.ok(!isRefused('/Users/aXb/work/AGENTS.md'));
  });
});
