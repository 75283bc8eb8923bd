/** Where agents work and have worked is known to every later run. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rememberWorkFolder, workFoldersOf } from '../../../src/engine/skills/workFolders.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('workFoldersOf', () => {
  let folder: ReturnType<typeof tempFolder>;
  const places = (cwd: string) => ({
    cwd,
    dataDir: join(folder.path, 'data'),
    home: '/home/me',
    workingRoot: '/home/me/telos',
    workspaceFolders: [{ name: 'w', path: '/w' }],
  });
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  it('has those of all agents, of the call and of the workspace', () => {
    const agents = [
      { workingDir: '/a', source: 'user' as const },
      { workingDir: '/p', source: 'project' as const },
    ];
    assert.deepEqual(workFoldersOf(places('/cwd'), agents).sort(), [
      '/a',
      '/cwd',
      '/home/me/telos',
      '/p',
      '/w',
    ]);
  });

  it('takes no home folder for one, unless an agent of the user works there', () => {
    for (const cwd of ['/home/me', '/home', '/'])
      assert.deepEqual(workFoldersOf(places(cwd), []), ['/home/me/telos', '/w']);
    assert.ok(workFoldersOf(places('/'), [{ workingDir: '/home/me', source: 'user' }]).includes('/home/me'));
  });

  it('remembers those of earlier runs, once each, whatever became of the file', () => {
    const here = places('/cwd');
    for (const path of ['/once', '/once', '/home/me', '/']) rememberWorkFolder(here, path, 'tea');
    appendFileSync(join(here.dataDir, 'work-folders.jsonl'), '{"cut');
    assert.equal(rememberWorkFolder(here, '/twice', 'tea'), true);
    assert.equal(rememberWorkFolder(here, '/twice', 'tea'), false);
    assert.equal(rememberWorkFolder(here, '/twice', 'milk'), true);
    assert.deepEqual(workFoldersOf(here, []), ['/home/me/telos', '/once', '/twice', '/cwd', '/w']);
  });

  it('goes on where nothing can be written', () => {
    writeFileSync(join(folder.path, 'data'), '');
    rememberWorkFolder(places('/cwd'), '/x', 'tea');
    mkdirSync(join(folder.path, 'other'));
    assert.equal(workFoldersOf(places('/cwd'), []).includes('/x'), false);
  });
});
