import assert from 'node:assert/strict';
import { join } from 'node:path';
import { editorRipgrep } from '../../../src/extension/base/editorRipgrep.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('editorRipgrep', () => {
  it('finds the program for this machine where editors keep it', () => {
    const desktop = 'node_modules.asar.unpacked/@vscode/ripgrep/bin/rg.exe';
    const server = 'node_modules/@vscode/ripgrep-universal/bin/linux-arm64/rg';
    const folder = tempFolder({ [`desktop/${desktop}`]: '', [`server/${server}`]: '' });
    try {
      const root = (name: string): string => join(folder.path, name);
      assert.equal(editorRipgrep(root('desktop'), 'win32', 'x64'), join(root('desktop'), desktop));
      assert.equal(editorRipgrep(root('server'), 'linux', 'arm64'), join(root('server'), server));
      assert.equal(editorRipgrep(root('server'), 'linux', 'x64'), undefined);
    } finally {
      folder.remove();
    }
  });
});
