import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { openableFile, openableLink } from '../../../src/extension/chat/chatMessages.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('openableLink', () => {
  it('passes web and mail addresses', () => {
    assert.equal(openableLink('HTTPS://example.com/a?b#c'), 'https://example.com/a?b#c');
    assert.equal(openableLink('http://127.0.0.1:8080/'), 'http://127.0.0.1:8080/');
    assert.equal(openableLink('mailto:a@example.com'), 'mailto:a@example.com');
  });

  it('refuses every other scheme and what is no address', () => {
    const refused = [
      'command:workbench.action.quit',
      'file:///etc/passwd',
      'vscode://x',
      'java\nscript:alert(1)',
      'a/b',
      '',
    ];
    for (const url of refused) assert.equal(openableLink(url), undefined, url);
  });
});

describe('openableFile', () => {
  let folder: TempFolder;
  let inside: string;
  beforeEach(() => {
    folder = tempFolder({ 'work/notes/a.md': 'a', 'secret.txt': 's', 'workshop/b.md': 'b' });
    inside = join(folder.path, 'work');
  });
  afterEach(() => folder.remove());

  it('opens a file of an allowed folder, by absolute or relative path', async () => {
    const file = join(inside, 'notes', 'a.md');
    assert.equal(await openableFile(file, ['/nowhere', inside], undefined), file);
    assert.equal(await openableFile('notes/a.md', [inside], inside), file);
  });

  it('refuses what lies outside, by dots, by a like-named folder or by a link', async () => {
    symlinkSync(join(folder.path, 'secret.txt'), join(inside, 'link.txt'));
    for (const path of ['../secret.txt', '../workshop/b.md', 'link.txt']) {
      assert.equal(await openableFile(path, [inside], inside), undefined, path);
    }
  });

  it('takes backslashes as a person on Windows writes them, and no path of another machine', async () => {
    assert.equal(await openableFile('notes\\a.md', [inside], inside), join(inside, 'notes', 'a.md'));
    for (const path of [
      '//server/share/a.md',
      '\\\\server\\share\\a.md',
      '..\\secret.txt',
      'notes\\..\\..\\secret.txt',
    ])
      assert.equal(await openableFile(path, [inside], inside), undefined, path);
  });

  it('refuses folders, what is missing, and a relative path that starts nowhere', async () => {
    assert.equal(await openableFile(join(inside, 'notes'), [inside], undefined), undefined);
    assert.equal(await openableFile(join(inside, 'gone.md'), [inside], undefined), undefined);
    assert.equal(await openableFile('notes/a.md', [inside], undefined), undefined);
  });
});
