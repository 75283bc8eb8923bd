/** Files that are read as context: those of the workspace's folders that really lie there, and the person's notes. */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { contextText } from '../../../src/engine/run/contextFiles.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('files that are read as context', () => {
  let folder: TempFolder;
  afterEach(() => folder.remove());

  const read = (files: Record<string, string>, names: readonly string[] = ['work']) => {
    folder = tempFolder({ 'work/.k': '', 'config/.k': '', ...files });
    return again(names);
  };
  const again = (names: readonly string[] = ['work']) =>
    contextText(
      {
        configDir: join(folder.path, 'config'),
        cwd: join(folder.path, 'work', 'deep', 'er'),
        workspaceFolders: names.map(name => ({ name, path: join(folder.path, name) })),
        projectFolders: [],
      },
      text => text.replaceAll('sk-planted-secret', '[redacted]'),
    );

  it('are those on the way to the folder of the call too, and names of the others further down', () => {
    const { text, names } = read({
      'work/AGENTS.md': 'ROOT',
      'work/deep/CLAUDE.md': 'DEEP',
      'work/deep/er/AGENTS.md': 'DEEPER',
      'work/other/pack/AGENTS.md': 'ELSEWHERE',
      'work/node_modules/x/AGENTS.md': 'INSTALLED',
    });
    assert.deepEqual(names, ['AGENTS.md', 'CLAUDE.md', 'AGENTS.md']);
    assert.match(
      text,
      /ROOT[\s\S]*DEEP[\s\S]*DEEPER[\s\S]*before you work there:\n- .*other\/pack\/AGENTS\.md$/,
    );
    assert.doesNotMatch(text, /ELSEWHERE|INSTALLED|node_modules/);
  });

  it('are AGENTS.md and CLAUDE.md of each folder, and notes.md of the configuration', () => {
    const { text, names } = read(
      {
        'work/AGENTS.md': 'Use tabs.',
        'work/CLAUDE.md': 'Test first.',
        'other/AGENTS.md': 'Use spaces.',
        'config/notes.md': 'I live in Kiel.',
      },
      ['work', 'other'],
    );
    assert.deepEqual(names, ['AGENTS.md', 'CLAUDE.md', 'AGENTS.md', 'notes.md']);
    assert.match(
      text,
      /They permit nothing[\s\S]*Use tabs\.[\s\S]*Test first\.[\s\S]*Use spaces\.[\s\S]*Kiel/,
    );
  });

  it('are only the notes where no folder is trusted, and nothing where there are none', () => {
    const { text } = read({ 'work/AGENTS.md': 'Use tabs.', 'config/notes.md': 'Kiel' }, []);
    assert.doesNotMatch(text, /tabs/);
    assert.match(text, /Kiel/);
    folder.remove();
    assert.deepEqual(read({}), { text: '', names: [] });
  });

  it('are no files that a link brings from elsewhere, and no others than files', () => {
    read({ 'elsewhere/secret.md': 'OUTSIDE', 'work/CLAUDE.md/x': 'FOLDER' });
    symlinkSync(join(folder.path, 'elsewhere/secret.md'), join(folder.path, 'work/AGENTS.md'));
    assert.deepEqual(again(), { text: '', names: [] });
    symlinkSync(join(folder.path, 'elsewhere'), join(folder.path, 'linked'));
    writeFileSync(join(folder.path, 'elsewhere/AGENTS.md'), 'OF THE FOLDER ITSELF');
    assert.match(again(['linked']).text, /OF THE FOLDER ITSELF/);
  });

  it('are said once where one is a link to the other', () => {
    read({ 'work/AGENTS.md': 'Use tabs.' });
    symlinkSync('AGENTS.md', join(folder.path, 'work/CLAUDE.md'));
    assert.deepEqual(again().names, ['AGENTS.md']);
  });

  it('have no secrets and no invisible characters, end where they are too long, and close no fence of ours', () => {
    const { text } = read({
      'work/AGENTS.md': `\u{E0041}\`\`\`\nsk-planted-secret\n${'long '.repeat(10_000)}`,
      'work/CLAUDE.md': 'x'.repeat(2_000_000),
    });
    assert.doesNotMatch(text, /\u{E0041}/u);
    assert.doesNotMatch(text, /sk-planted/);
    assert.match(text, /\[redacted\]/);
    assert.match(text, /cut: the file has \d+ bytes/);
    assert.match(text, /\n````markdown\n```\n/);
    assert.ok(text.length < 40_000);
  });
});
